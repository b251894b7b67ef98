//! How does a story act on a cluster? Through the API, as kubectl would.
//!
//! Knows requests; no story and no rule.

use http::{Method, Request};
use kube::Client;
use serde_json::{Value, json};

use crate::kind::{self, Kind};
use crate::scenario::Ref;
use crate::world::is_true;

/// What the API said no to, or why it could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The API refused the request.
    #[error("{message}")]
    Refused {
        /// HTTP status.
        code: u16,
        /// Machine-readable reason.
        reason: String,
        /// The sentence that a user sees.
        message: String,
    },
    /// The manifest is of no kind that stories know.
    #[error("{api_version} {kind}: stories know no such kind")]
    UnknownKind {
        /// `apiVersion` as written.
        api_version: String,
        /// `kind` as written.
        kind: String,
    },
    /// There was no answer that could be read.
    #[error("no answer: {0}")]
    NoAnswer(#[source] Box<kube::Error>),
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => {
                Self::Refused { code: status.code, reason: status.reason, message: status.message }
            }
            other => Self::NoAnswer(Box::new(other)),
        }
    }
}

impl ApiError {
    /// Whether the request itself is wrong, and not the moment. (What exists and cannot be changed any
    /// more is of the moment.)
    pub fn is_of_the_request(&self) -> bool {
        match self {
            Self::Refused { code: 400, .. } | Self::UnknownKind { .. } => true,
            Self::Refused { code: 422, message, .. } => {
                !["immutable", "may not change"].iter().any(|past| message.contains(past))
            }
            Self::Refused { .. } | Self::NoAnswer(_) => false,
        }
    }

    fn is(&self, wanted: u16, reason_wanted: &str) -> bool {
        matches!(self, Self::Refused { code, reason, .. } if *code == wanted && reason == reason_wanted)
    }
}

/// A cluster as a user drives it.
#[derive(Clone)]
pub struct Hands {
    client: Client,
}

impl Hands {
    /// Drives the cluster behind `client`.
    pub fn new(client: Client) -> Self {
        Self { client }
    }

    async fn send(&self, method: Method, path: &str, content: &str, body: &Value) -> Result<Value, ApiError> {
        let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        let request = Request::builder().method(method).uri(path).header("content-type", content).body(bytes);
        let request = request.map_err(|error| ApiError::NoAnswer(Box::new(kube::Error::HttpError(error))))?;
        Ok(self.client.request::<Value>(request).await?)
    }

    /// Creates the object, or merges the manifest into the one that is there. A status that the
    /// manifest brings is written too.
    ///
    /// # Errors
    /// What the API refused, with its message.
    pub async fn apply(&self, manifest: &Value) -> Result<(), ApiError> {
        let (api_version, name) = (text(&manifest["apiVersion"]), text(&manifest["metadata"]["name"]));
        let kind_name = text(&manifest["kind"]);
        let kind = Kind::of_manifest(api_version, kind_name).ok_or_else(|| ApiError::UnknownKind {
            api_version: api_version.to_owned(),
            kind: kind_name.to_owned(),
        })?;
        let collection = kind.path(Some(namespace_of(manifest)));
        let path = format!("{collection}/{name}");
        let strict = |path: &str| format!("{path}?fieldValidation=Strict");
        let now = match self.send(Method::POST, &strict(&collection), JSON, manifest).await {
            Err(error) if error.is(409, "AlreadyExists") => {
                self.send(Method::PATCH, &strict(&path), MERGE, manifest).await?
            }
            other => other?,
        };
        let status = &manifest["status"];
        if !status.is_null() && *status != now["status"] && kind != kind::POD_GROUP {
            self.send(Method::PATCH, &format!("{path}/status"), MERGE, &json!({"status": status})).await?;
        }
        Ok(())
    }

    /// Deletes the object in the background; that it is gone already is no error.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn delete(&self, target: &Ref) -> Result<(), ApiError> {
        self.gone(target, "Background").await
    }

    /// Deletes the object, and leaves behind what it owns; that it is gone already is no error.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn orphan(&self, target: &Ref) -> Result<(), ApiError> {
        self.gone(target, "Orphan").await
    }

    async fn gone(&self, target: &Ref, policy: &str) -> Result<(), ApiError> {
        let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
        match self.send(Method::DELETE, &path(target), JSON, &options).await {
            Err(error) if error.is(404, "NotFound") => Ok(()),
            other => other.map(drop),
        }
    }

    /// Merges into the object, or into a subresource of it.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn patch(
        &self,
        target: &Ref,
        subresource: Option<&str>,
        patch: &Value,
    ) -> Result<(), ApiError> {
        let suffix = subresource.map(|name| format!("/{name}")).unwrap_or_default();
        let path = format!("{}{suffix}?fieldValidation=Strict", path(target));
        self.send(Method::PATCH, &path, MERGE, patch).await.map(drop)
    }

    /// Evicts a pod.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn evict(&self, pod: &Ref) -> Result<(), ApiError> {
        let eviction = json!({
            "apiVersion": "policy/v1", "kind": "Eviction",
            "metadata": {"name": pod.name, "namespace": pod.namespace},
        });
        self.send(Method::POST, &format!("{}/eviction", path(pod)), JSON, &eviction).await.map(drop)
    }

    /// Whether pods can be created in a namespace as far as its `default` ServiceAccount goes.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn has_account(&self, namespace: &str) -> Result<bool, ApiError> {
        let path = format!("/api/v1/namespaces/{namespace}/serviceaccounts/default");
        match self.send(Method::GET, &path, JSON, &Value::Null).await {
            Ok(_) => Ok(true),
            Err(error) if error.is(404, "NotFound") => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a node is ready, and has lost the taint that every new node gets.
    ///
    /// # Errors
    /// What the API refused.
    pub async fn takes_pods(&self, node: &str) -> Result<bool, ApiError> {
        let target = Ref { kind: kind::NODE, namespace: String::new(), name: node.to_owned() };
        let node = self.get(&target).await?;
        let mut taints = node["spec"]["taints"].as_array().into_iter().flatten();
        let new = taints.any(|taint| taint["key"] == "node.kubernetes.io/not-ready");
        Ok(is_true(&node, "Ready") && !new)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// What the API refused, `NotFound` included.
    pub async fn get(&self, target: &Ref) -> Result<Value, ApiError> {
        self.send(Method::GET, &path(target), JSON, &Value::Null).await
    }
}

const JSON: &str = "application/json";
const MERGE: &str = "application/merge-patch+json";

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn namespace_of(manifest: &Value) -> &str {
    manifest["metadata"]["namespace"].as_str().unwrap_or(crate::scenario::DEFAULT_NAMESPACE)
}

fn path(target: &Ref) -> String {
    format!("{}/{}", target.kind.path(Some(&target.namespace)), target.name)
}
