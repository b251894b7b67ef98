//! What is written to a pod: its binding, why it waits, and the way out of a topology gate.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Binding, ObjectReference};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde_json::{Value, json};
use soroi_api::labels::{kueue as keys, soroi as soroi_keys, volcano as volcano_keys};
use soroi_engine::event::{Labels, Pod};

use super::Steps;
use crate::call;
use crate::intake::PodFacts;

/// The body of `POST pods/<name>/binding`. The uid makes the API server refuse it (409) when the
/// pod is another one by now; the annotation, which it copies onto the pod, says which leader
/// bound it.
pub(crate) fn binding(namespace: &str, name: &str, bound: &call::Binding) -> Binding {
    let epoch = (soroi_keys::LEADER_EPOCH.into(), bound.epoch.to_string());
    Binding {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            namespace: Some(namespace.to_string()),
            uid: Some(bound.pod.to_string()),
            annotations: Some(BTreeMap::from([epoch])),
            ..ObjectMeta::default()
        },
        target: ObjectReference {
            api_version: Some("v1".into()),
            kind: Some("Node".into()),
            name: Some(bound.node.to_string()),
            ..ObjectReference::default()
        },
    }
}

/// Says on a pod why it is not scheduled: `PodScheduled=False` with this reason (`Unschedulable`
/// makes node autoscalers look at it). A JSON patch for the status subresource; `None` when the
/// pod says so already. It fails when the conditions have changed since the pod was read.
pub fn unschedulable(
    pod: &PodFacts,
    reason: &str,
    message: &str,
    now: Timestamp,
) -> Option<json_patch::Patch> {
    let steps = Steps::default().test("/metadata/uid", &*pod.pod.uid);
    let condition = json!({
        "type": "PodScheduled", "status": "False", "reason": reason, "message": message,
        "lastProbeTime": null, "lastTransitionTime": Time(now),
    });
    let patch = match &pod.scheduled {
        Some(there) if there.is_false && &*there.reason == reason && &*there.message == message => {
            return None;
        }
        Some(there) => {
            let at = format!("/status/conditions/{}", there.at);
            let steps = steps.test(&format!("{at}/type"), "PodScheduled");
            if there.is_false {
                steps.set(&format!("{at}/reason"), reason).set(&format!("{at}/message"), message)
            } else {
                steps.set(&at, condition)
            }
        }
        None if pod.has_conditions => steps.set("/status/conditions/-", condition),
        None => steps.set("/status/conditions", json!([condition])),
    };
    Some(patch.patch())
}

/// Lets a pod out of the topology gate, pinned to its domain: what Kueue's ungater does under
/// TopologyOnly. `domain` holds a label value per level; it may only add to the node selector of a
/// gated pod. `None` when the pod has no such gate.
pub fn ungate(pod: &PodFacts, domain: &Labels) -> Option<json_patch::Patch> {
    if !pod.gates.iter().any(|gate| &**gate == keys::GATE_TOPOLOGY) {
        return None;
    }
    let mut selector = pod.pod.shape.node_selector.clone();
    selector.extend(domain.iter().map(|(key, value)| (key.clone(), value.clone())));
    let selector: BTreeMap<&str, &str> = selector.iter().map(|(key, value)| (&**key, &**value)).collect();
    let gates = pod.gates.iter().filter(|gate| &***gate != keys::GATE_TOPOLOGY);
    let gates: Vec<Value> = gates.map(|gate| json!({"name": &**gate})).collect();
    let steps = Steps::default()
        .test("/metadata/uid", &*pod.pod.uid)
        .set("/spec/nodeSelector", json!(selector))
        .set_or_remove("/spec/schedulingGates", Value::Array(gates));
    Some(steps.patch())
}

/// Ties a pod to the PodGroup that was made for it (a merge patch), as Volcano does.
pub fn join_group(pod: &Pod, group: &str) -> Value {
    json!({"metadata": {"uid": &*pod.uid, "annotations": {volcano_keys::GROUP_NAME: group}}})
}

#[cfg(test)]
mod tests;
