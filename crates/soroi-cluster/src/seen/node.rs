//! A node, as kubelets, schedulers and controllers see it.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

use super::Meta;
use crate::cache::Seen;
use crate::due::after;
use crate::need::{self, Amounts};

/// A kubelet reports a node's status at least every five minutes (`nodeStatusReportFrequency`),
/// with half a period of spread.
const STATUS_EVERY_MAX: Duration = Duration::from_secs(450);

/// How our kubelets call themselves.
pub(crate) const KUBELET_VERSION: &str = "v1.36.1+soroi";

/// One node.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(crate) struct Node {
    pub(crate) meta: Meta,
    /// Cordoned.
    pub(crate) unschedulable: bool,
    pub(crate) taints: Vec<Taint>,
    pub(crate) capacity: BTreeMap<String, Quantity>,
    /// As written; may be empty on a node that nobody has served yet.
    pub(crate) allocatable_written: BTreeMap<String, Quantity>,
    /// What pods may use.
    pub(crate) allocatable: Amounts,
    pub(crate) conditions: Vec<NodeCondition>,
    /// Some kubelet has said its version, ours perhaps.
    pub(crate) versioned: bool,
    /// The kubelet that has registered it says its version, and is none of ours.
    pub(crate) registered: bool,
}

impl Seen for Node {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Node {
    pub(crate) fn name(&self) -> &str {
        &self.meta.key.name
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&NodeCondition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// `status` of the condition Ready, if somebody has said anything yet.
    pub(crate) fn ready(&self) -> Option<&str> {
        self.condition("Ready").map(|ready| ready.status.as_str())
    }

    /// Whether a kubelet that is not ours serves it: one that has registered it and was heard of
    /// not long ago. A copy of a real node's object is served by nobody.
    pub(crate) fn served_elsewhere(&self, now: Timestamp) -> bool {
        let heard = self.condition("Ready").and_then(|ready| ready.last_heartbeat_time.as_ref());
        self.registered && heard.is_some_and(|heard| now < after(heard.0, STATUS_EVERY_MAX))
    }

    /// Where it lives in the API.
    pub(crate) fn path(&self) -> String {
        format!("/api/v1/nodes/{}", self.name())
    }
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
    #[serde(default)]
    spec: SpecWire,
    #[serde(default)]
    status: StatusWire,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SpecWire {
    unschedulable: Option<bool>,
    taints: Option<Vec<Taint>>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct StatusWire {
    capacity: Option<BTreeMap<String, Quantity>>,
    allocatable: Option<BTreeMap<String, Quantity>>,
    conditions: Option<Vec<NodeCondition>>,
    node_info: Option<InfoWire>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct InfoWire {
    kubelet_version: Option<String>,
}

impl From<Wire> for Node {
    fn from(Wire { metadata, spec, status }: Wire) -> Self {
        let allocatable_written = status.allocatable.unwrap_or_default();
        let version = status.node_info.and_then(|info| info.kubelet_version).unwrap_or_default();
        Self {
            meta: metadata,
            unschedulable: spec.unschedulable.unwrap_or(false),
            taints: spec.taints.unwrap_or_default(),
            capacity: status.capacity.unwrap_or_default(),
            // An amount that cannot be read must not look endless here: nothing of it is there.
            allocatable: need::amounts(&allocatable_written)
                .into_iter()
                .filter(|(_, amount)| *amount < i64::MAX)
                .collect(),
            allocatable_written,
            conditions: status.conditions.unwrap_or_default(),
            versioned: !version.is_empty(),
            registered: !matches!(version.as_str(), "" | KUBELET_VERSION),
        }
    }
}
