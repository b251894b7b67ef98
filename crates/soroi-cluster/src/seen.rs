//! What do we see of an object? The few fields that the parts of a cluster act upon, read once.

mod node;
mod pod;

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use serde::Deserialize;

pub(crate) use node::{KUBELET_VERSION, Node};
pub(crate) use pod::{Container, Phase, Pod, Restart, State, Status, with_condition};

use crate::cache::Key;

/// What every object has.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "MetaWire")]
pub(crate) struct Meta {
    pub(crate) key: Key,
    pub(crate) uid: String,
    /// The resource version as a number: comparable since Kubernetes 1.35 (KEP-5504). 0 if it is
    /// none, which makes every news count.
    pub(crate) version: u64,
    /// Counts the changes of its spec.
    pub(crate) generation: i64,
    pub(crate) created: Timestamp,
    /// When its deletion was asked for (or, for pods, when their grace ends).
    pub(crate) deleting: Option<Timestamp>,
    /// How long it may take to go, seconds; set while it is being deleted.
    pub(crate) grace: Option<i64>,
    pub(crate) labels: BTreeMap<String, String>,
    pub(crate) annotations: BTreeMap<String, String>,
    pub(crate) finalizers: Vec<String>,
    pub(crate) owners: Vec<OwnerReference>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
struct MetaWire {
    namespace: Option<String>,
    name: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    generation: Option<i64>,
    creation_timestamp: Option<Time>,
    deletion_timestamp: Option<Time>,
    deletion_grace_period_seconds: Option<i64>,
    labels: Option<BTreeMap<String, String>>,
    annotations: Option<BTreeMap<String, String>>,
    finalizers: Option<Vec<String>>,
    owner_references: Option<Vec<OwnerReference>>,
}

impl From<MetaWire> for Meta {
    fn from(wire: MetaWire) -> Self {
        Self {
            key: Key::new(wire.namespace.unwrap_or_default(), wire.name.unwrap_or_default()),
            uid: wire.uid.unwrap_or_default(),
            version: wire.resource_version.and_then(|version| version.parse().ok()).unwrap_or(0),
            generation: wire.generation.unwrap_or(0),
            created: wire.creation_timestamp.map(|time| time.0).unwrap_or_default(),
            deleting: wire.deletion_timestamp.map(|time| time.0),
            grace: wire.deletion_grace_period_seconds,
            labels: wire.labels.unwrap_or_default(),
            annotations: wire.annotations.unwrap_or_default(),
            finalizers: wire.finalizers.unwrap_or_default(),
            owners: wire.owner_references.unwrap_or_default(),
        }
    }
}

impl Meta {
    /// The owner that controls it, if any.
    pub(crate) fn controller(&self) -> Option<&OwnerReference> {
        self.owners.iter().find(|owner| owner.controller == Some(true))
    }

    pub(crate) fn has_finalizer(&self, name: &str) -> bool {
        self.finalizers.iter().any(|finalizer| finalizer == name)
    }

    pub(crate) fn annotation(&self, name: &str) -> Option<&str> {
        self.annotations.get(name).map(String::as_str)
    }

    /// What a patch must say so that it meets this very state of this very object.
    pub(crate) fn precondition(&self) -> serde_json::Value {
        let mut precondition = serde_json::json!({ "uid": self.uid });
        if self.version != 0 {
            precondition["resourceVersion"] = self.version.to_string().into();
        }
        precondition
    }
}

/// Reads an object out of the answer to a write.
pub(crate) fn read<T: serde::de::DeserializeOwned>(body: &str) -> Option<T> {
    serde_json::from_str(body).inspect_err(|error| tracing::warn!(%error, "unreadable answer")).ok()
}
