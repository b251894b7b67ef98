//! Pods of our releases are handed to our scheduler when they are created.
//!
//! A Job's template cannot change its scheduler, not even while it is suspended, so the release
//! puts a label on it instead, and this is where the label has its effect.

use serde_json::Value;
use soroi_api::labels::{kubernetes, kueue, soroi};

use crate::json::{items, label, text};

/// Names our scheduler in a pod that carries the label of a gang that we place. A pod that names
/// another one on purpose keeps it, and so does a pod that is pinned to a topology domain: that is
/// bound by whom it names.
pub(crate) fn default(pod: &Value) -> Option<Value> {
    label(pod, soroi::GANG)?;
    let unnamed = match text(&pod["spec"]["schedulerName"]) {
        None => true,
        Some(name) => name == kubernetes::DEFAULT_SCHEDULER,
    };
    let pinned =
        items(&pod["spec"]["schedulingGates"]).iter().any(|gate| gate["name"] == kueue::GATE_TOPOLOGY);
    if !unnamed || pinned || !pod["spec"].is_object() {
        return None;
    }
    let mut pod = pod.clone();
    pod["spec"]["schedulerName"] = soroi::SCHEDULER_NAME.into();
    Some(pod)
}
