//! Is the node well? Its silence, its conditions, and the taints that follow from them.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{NodeCondition, Taint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use crate::due::after;
use crate::seen::Node;
use crate::write::Request;

/// How long a node that has never said anything may take (`nodeStartupGracePeriod`).
const STARTUP_GRACE: Duration = Duration::from_secs(60);
const NOT_READY: &str = "node.kubernetes.io/not-ready";
const UNREACHABLE: &str = "node.kubernetes.io/unreachable";
const UNSCHEDULABLE: &str = "node.kubernetes.io/unschedulable";
/// Conditions that a kubelet keeps, and that nobody knows any more when it is silent.
const KUBELET_CONDITIONS: [&str; 4] = ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"];
/// Conditions and the taints that they stand for when True.
const PRESSURES: [(&str, &str); 4] = [
    ("MemoryPressure", "node.kubernetes.io/memory-pressure"),
    ("DiskPressure", "node.kubernetes.io/disk-pressure"),
    ("NetworkUnavailable", "node.kubernetes.io/network-unavailable"),
    ("PIDPressure", "node.kubernetes.io/pid-pressure"),
];

/// What is known of a node's health beyond the node itself.
#[derive(Clone, Debug)]
pub(crate) struct Health {
    /// When its kubelet last gave a sign of life, by our own clock.
    pub(crate) heard: Timestamp,
    heartbeat: Option<Timestamp>,
    /// Its pods were told that it is not Ready.
    pub(crate) lost: bool,
}

impl Health {
    pub(crate) fn new(node: &Node, now: Timestamp) -> Self {
        Self { heard: now, heartbeat: heartbeat(node), lost: false }
    }

    /// The node has changed: perhaps its kubelet has posted its status.
    pub(crate) fn told(&mut self, node: &Node, now: Timestamp) {
        let heartbeat = heartbeat(node);
        if heartbeat != self.heartbeat {
            self.heartbeat = heartbeat;
            self.heard = now;
        }
    }

    /// When its silence will have lasted for too long.
    pub(crate) fn silent_at(&self, node: &Node, grace: Duration) -> Timestamp {
        let grace = if node.ready().is_none() { STARTUP_GRACE } else { grace };
        // Later than the grace, not at its end.
        after(after(self.heard, grace), Duration::from_millis(1))
    }
}

fn heartbeat(node: &Node) -> Option<Timestamp> {
    node.condition("Ready")?.last_heartbeat_time.as_ref().map(|time| time.0)
}

/// Says that nobody knows how the node is, unless that is said already.
pub(crate) fn give_up(node: &Node, now: Timestamp) -> Option<Request> {
    if node.ready() == Some("Unknown") {
        return None;
    }
    let mut conditions = node.conditions.clone();
    for kind in KUBELET_CONDITIONS {
        let unknown = |reason: &str, message: &str, heartbeat: Option<Time>| NodeCondition {
            type_: kind.into(),
            status: "Unknown".into(),
            reason: Some(reason.into()),
            message: Some(message.into()),
            last_heartbeat_time: heartbeat,
            last_transition_time: Some(Time(now)),
        };
        match conditions.iter_mut().find(|condition| condition.type_ == kind) {
            None => {
                let message = "Kubelet never posted node status.";
                let created = Some(Time(node.meta.created));
                conditions.push(unknown("NodeStatusNeverUpdated", message, created));
            }
            Some(known) if known.status != "Unknown" => {
                let message = "Kubelet stopped posting node status.";
                *known = unknown("NodeStatusUnknown", message, known.last_heartbeat_time.take());
            }
            Some(_) => {}
        }
    }
    let body = json!({ "metadata": node.meta.precondition(), "status": { "conditions": conditions } });
    Some(Request::merge(format!("{}/status", node.path()), body))
}

/// Gives the node the taints that follow from its conditions, and takes others of that kind away.
pub(crate) fn retaint(node: &Node, now: Timestamp) -> Option<Request> {
    let wanted = wanted(node);
    let ours = |taint: &Taint| {
        let condition = [NOT_READY, UNREACHABLE].contains(&taint.key.as_str());
        let pressure = PRESSURES.iter().any(|(_, key)| *key == taint.key);
        match taint.effect.as_str() {
            "NoSchedule" => condition || pressure || taint.key == UNSCHEDULABLE,
            "NoExecute" => condition,
            _ => false,
        }
    };
    let same = |taint: &Taint, (key, effect): &(&str, &str)| taint.key == *key && taint.effect == *effect;
    let kept = node.taints.iter().filter(|taint| !ours(taint) || wanted.iter().any(|want| same(taint, want)));
    let mut taints: Vec<Taint> = kept.cloned().collect();
    for want in &wanted {
        if !taints.iter().any(|taint| same(taint, want)) {
            let (key, effect) = (want.0.into(), want.1.into());
            taints.push(Taint { key, effect, value: None, time_added: Some(Time(now)) });
        }
    }
    if taints == node.taints {
        return None;
    }
    let taints = if taints.is_empty() { json!(null) } else { json!(taints) };
    Some(Request::merge(
        node.path(),
        json!({ "metadata": node.meta.precondition(), "spec": { "taints": taints } }),
    ))
}

fn wanted(node: &Node) -> Vec<(&'static str, &'static str)> {
    let mut wanted = Vec::new();
    match node.ready() {
        Some("True") => {}
        Some("False") => wanted.extend([(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]),
        Some(_) => wanted.extend([(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]),
        // Nobody has said anything yet: the taint that the API server gave to the new node stays.
        None => wanted.extend(
            node.taints
                .iter()
                .any(|taint| taint.key == NOT_READY && taint.effect == "NoSchedule")
                .then_some((NOT_READY, "NoSchedule")),
        ),
    }
    for (kind, key) in PRESSURES {
        if node.condition(kind).is_some_and(|condition| condition.status == "True") {
            wanted.push((key, "NoSchedule"));
        }
    }
    if node.unschedulable {
        wanted.push((UNSCHEDULABLE, "NoSchedule"));
    }
    wanted
}
