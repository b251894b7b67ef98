//! Must the pod leave? Tolerations of `NoExecute` taints, and what is written when a pod has to go.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::constraint;
use crate::seen::{Node, Pod};
use crate::write::Request;

/// For how long a pod puts up with the taints of its node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tolerated {
    ForEver,
    For(Duration),
}

/// The shortest time for which the tolerations that match hold; none if a taint is not tolerated.
pub(crate) fn tolerated(pod: &Pod, node: &Node) -> Tolerated {
    let taints = node.taints.iter().filter(|taint| taint.effect == "NoExecute");
    let mut shortest: Option<Duration> = None;
    for taint in taints {
        let matching = pod.tolerations.iter().filter(|toleration| constraint::tolerates(toleration, taint));
        let mut any = false;
        for toleration in matching {
            any = true;
            if let Some(seconds) = toleration.toleration_seconds {
                let span = Duration::from_secs(u64::try_from(seconds).unwrap_or(0));
                shortest = Some(shortest.map_or(span, |other| other.min(span)));
            }
        }
        if !any {
            return Tolerated::For(Duration::ZERO);
        }
    }
    shortest.map_or(Tolerated::ForEver, Tolerated::For)
}

fn disruption(reason: &str, message: &str, now: Timestamp) -> PodCondition {
    PodCondition {
        type_: "DisruptionTarget".into(),
        status: "True".into(),
        reason: Some(reason.into()),
        message: Some(message.into()),
        last_transition_time: Some(Time(now)),
        ..PodCondition::default()
    }
}

fn marked(pod: &Pod) -> bool {
    pod.condition("DisruptionTarget").is_some_and(|target| target.status == "True")
}

/// Whether the next step of an eviction is the deletion.
pub(crate) fn is_deletion(pod: &Pod) -> bool {
    marked(pod)
}

/// The next step of an eviction: first the reason, then the deletion.
pub(crate) fn evict(pod: &Pod, now: Timestamp) -> Request {
    if marked(pod) {
        return Request::delete(pod.path(), json!({ "preconditions": { "uid": pod.meta.uid } }));
    }
    let message = "Taint manager: deleting due to NoExecute taint";
    let conditions = pod.conditions_with(disruption("DeletionByTaintManager", message, now));
    status(pod, json!({ "conditions": conditions }))
}

/// The next step of taking away a pod that no kubelet will end: first its phase, then the pod.
pub(crate) fn fail_and_remove(pod: &Pod, why: Option<(&str, &str)>, now: Timestamp) -> Request {
    if pod.ended() {
        let options = json!({ "gracePeriodSeconds": 0, "preconditions": { "uid": pod.meta.uid } });
        return Request::delete(pod.path(), options);
    }
    let mut patch = json!({ "phase": "Failed" });
    if let Some((reason, message)) = why {
        patch["conditions"] = json!(pod.conditions_with(disruption(reason, message, now)));
    }
    status(pod, patch)
}

/// Says that the pod is not ready, because its node is not.
pub(crate) fn not_ready(pod: &Pod, now: Timestamp) -> Request {
    let mut ready = pod.condition("Ready").cloned().unwrap_or_default();
    ready.status = "False".into();
    ready.last_transition_time = Some(Time(now));
    status(pod, json!({ "conditions": pod.conditions_with(ready) }))
}

fn status(pod: &Pod, status: serde_json::Value) -> Request {
    let body = json!({ "metadata": pod.meta.precondition(), "status": status });
    Request::merge(format!("{}/status", pod.path()), body)
}
