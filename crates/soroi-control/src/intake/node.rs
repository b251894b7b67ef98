//! What does a node offer?

use std::sync::Arc;

use k8s_openapi::api::core::v1::Node;
use soroi_engine::event;

use super::{Invalid, amount, labels, selector};

/// The taint that the node lifecycle controller derives from `spec.unschedulable`. The engine
/// looks at the field, which changes first.
const CORDON_TAINT: &str = "node.kubernetes.io/unschedulable";

/// A node as placement sees it. `allocatable` falls back to `capacity`, as the API server's
/// defaulting does (`core/v1` NodeStatus); a node without a Ready condition is not ready.
///
/// # Errors
/// [`Invalid`] on `metadata.name`, `spec.taints[i]` or `status.allocatable[resource]`.
pub fn node(node: &Node) -> Result<event::Node, Invalid> {
    let name = node.metadata.name.as_deref().ok_or_else(|| Invalid::new("metadata.name", "is missing"))?;
    let spec = node.spec.as_ref();
    let status = node.status.as_ref();
    let mut taints = selector::taints("spec.taints", spec.and_then(|spec| spec.taints.as_ref()))?;
    taints.retain(|taint| &*taint.key != CORDON_TAINT);
    taints.sort();
    let allocatable = match status.and_then(|status| status.allocatable.as_ref()) {
        Some(allocatable) => amount::amounts("status.allocatable", Some(allocatable))?,
        None => amount::amounts("status.capacity", status.and_then(|status| status.capacity.as_ref()))?,
    };
    let conditions = status.and_then(|status| status.conditions.as_ref()).into_iter().flatten();
    Ok(event::Node {
        name: Arc::from(name),
        labels: labels(node.metadata.labels.as_ref()),
        taints,
        unschedulable: spec.and_then(|spec| spec.unschedulable).unwrap_or(false),
        ready: conditions.clone().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
        allocatable,
    })
}
