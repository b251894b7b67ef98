//! What does a kubelet write? The bodies of its patches.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use super::life::{Life, Process};
use crate::seen::{Container, KUBELET_VERSION, Node, Phase, Pod, with_condition};
use crate::write::Request;

/// Pods that a node takes if nobody says otherwise (the kubelet's `maxPods`).
const MAX_PODS: &str = "110";

/// Shows in the pod's status what its containers do.
pub(crate) fn show(pod: &Pod, life: &Life, ready: bool, now: Timestamp) -> Request {
    let phase = life.phase();
    let mut conditions = pod.conditions.clone();
    let mut set = |kind: &str, met: bool, reason: Option<&str>, message: Option<String>| {
        let condition = PodCondition {
            type_: kind.into(),
            status: if met { "True" } else { "False" }.into(),
            reason: reason.map(Into::into),
            message,
            last_transition_time: Some(Time(now)),
            ..PodCondition::default()
        };
        conditions = with_condition(&conditions, condition);
    };
    let began = !matches!(life.process, Process::Ended { since: None, .. });
    let (reason, message) = match phase {
        Phase::Succeeded => (Some("PodCompleted"), None),
        Phase::Failed => (Some("PodFailed"), None),
        _ if ready => (None, None),
        _ => {
            let names: Vec<&str> = pod.containers.iter().map(|container| container.name.as_str()).collect();
            (
                Some("ContainersNotReady"),
                Some(format!("containers with unready status: [{}]", names.join(" "))),
            )
        }
    };
    set("PodReadyToStartContainers", phase == Phase::Running, None, None);
    set("Initialized", began, None, None);
    set("Ready", ready, reason, message.clone());
    set("ContainersReady", ready, reason, message);
    let statuses: Vec<Value> =
        pod.containers.iter().map(|container| container_status(container, life, ready)).collect();
    let mut status = json!({
        "phase": phase_name(phase),
        "startTime": Time(pod.started.unwrap_or(now)),
        "conditions": conditions,
        "containerStatuses": statuses,
    });
    if began && !matches!(life.process, Process::Starting { .. }) {
        let address = address(&pod.meta.uid);
        status["podIP"] = address.as_str().into();
        status["podIPs"] = json!([{ "ip": address }]);
    }
    Request::merge(
        format!("{}/status", pod.path()),
        json!({ "metadata": pod.meta.precondition(), "status": status }),
    )
}

/// An address that nobody can reach: made of the uid, so that it stays the same.
fn address(uid: &str) -> String {
    // FNV-1a, 32 bits: few pods share one, and nothing depends on it.
    let hash =
        uid.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let [a, b, ..] = hash.to_be_bytes();
    format!("10.244.{a}.{}", b.clamp(1, 254))
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pending => "Pending",
        Phase::Unknown => "Unknown",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
    }
}

fn container_status(container: &Container, life: &Life, ready: bool) -> Value {
    let ended = |exit: i32, since: Timestamp, ended: Timestamp| {
        json!({ "terminated": {
            "exitCode": exit,
            "reason": if exit == 0 { "Completed" } else { "Error" },
            "startedAt": Time(since),
            "finishedAt": Time(ended),
        } })
    };
    let (state, last) = match life.process {
        Process::Starting { .. } => (json!({ "waiting": { "reason": "ContainerCreating" } }), json!({})),
        Process::Running { since } => (json!({ "running": { "startedAt": Time(since) } }), json!({})),
        Process::Crashed { exit, since, ended: at, .. } => {
            (json!({ "waiting": { "reason": "CrashLoopBackOff" } }), ended(exit, since, at))
        }
        Process::Ended { exit, since, ended: at } => (ended(exit, since.unwrap_or(at), at), json!({})),
    };
    json!({
        "name": container.name,
        "image": container.image,
        "imageID": "",
        "ready": ready,
        "started": matches!(life.process, Process::Running { .. }),
        "restartCount": life.restarts,
        "state": state,
        "lastState": last,
    })
}

/// Tells that the kubelet does not take this pod.
pub(crate) fn refuse(pod: &Pod, reason: &str, message: &str) -> Request {
    let status =
        json!({ "phase": "Failed", "reason": reason, "message": format!("Pod was rejected: {message}") });
    Request::merge(
        format!("{}/status", pod.path()),
        json!({ "metadata": pod.meta.precondition(), "status": status }),
    )
}

/// Tells the API server that nothing of the pod is left on its node.
pub(crate) fn remove(pod: &Pod) -> Request {
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "gracePeriodSeconds": 0,
        "preconditions": { "uid": pod.meta.uid },
    });
    Request::delete(pod.path(), options)
}

/// Makes the node Ready, if its kubelet has something to say about that: a node that nobody has
/// served yet, or one that was given up because its kubelet was silent. A condition that somebody
/// else has set on purpose stays.
pub(crate) fn serve(node: &Node, now: Timestamp) -> Option<Request> {
    let ready = node.condition("Ready");
    let given_up = |reason: &str| reason == "NodeStatusUnknown" || reason == "NodeStatusNeverUpdated";
    let ours =
        ready.is_none_or(|ready| ready.status == "Unknown" && ready.reason.as_deref().is_some_and(given_up));
    // Somebody may add to the capacity later, as people do who have no real devices; a kubelet then
    // says that it can be had.
    let had = |name: &String| node.allocatable_written.contains_key(name);
    let complete = had(&"pods".to_owned()) && node.capacity.keys().all(had);
    if !ours && complete {
        return None;
    }
    let mut status = serde_json::Map::new();
    if ours {
        status.insert("conditions".into(), conditions(node, now));
        if !node.versioned {
            status.insert("nodeInfo".into(), info());
        }
    }
    if !complete {
        let mut capacity = node.capacity.clone();
        let mut allocatable = node.allocatable_written.clone();
        for (name, amount) in &capacity {
            allocatable.entry(name.clone()).or_insert_with(|| amount.clone());
        }
        let slots = || {
            capacity
                .get("pods")
                .cloned()
                .unwrap_or_else(|| k8s_openapi::apimachinery::pkg::api::resource::Quantity(MAX_PODS.into()))
        };
        allocatable.entry("pods".into()).or_insert_with(slots);
        for (name, amount) in &allocatable {
            capacity.entry(name.clone()).or_insert_with(|| amount.clone());
        }
        status.insert("capacity".into(), json!(capacity));
        status.insert("allocatable".into(), json!(allocatable));
    }
    let body = json!({ "metadata": node.meta.precondition(), "status": status });
    Some(Request::merge(format!("{}/status", node.path()), body))
}

/// What `kubectl get nodes -o wide` and `describe node` show of a machine that is none.
fn info() -> Value {
    json!({
        "kubeletVersion": KUBELET_VERSION,
        "kubeProxyVersion": "",
        "operatingSystem": "linux",
        "architecture": "amd64",
        "osImage": "simulated",
        "kernelVersion": "simulated",
        "containerRuntimeVersion": "simulated://1",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    })
}

fn conditions(node: &Node, now: Timestamp) -> Value {
    let all = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let ours = all.iter().map(|(kind, status, reason, message)| {
        let old = node.condition(kind).filter(|old| old.status == *status);
        let since = old.and_then(|old| old.last_transition_time.clone()).unwrap_or(Time(now));
        json!({
            "type": kind, "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": Time(now), "lastTransitionTime": since,
        })
    });
    let others = node.conditions.iter().filter(|other| all.iter().all(|(kind, ..)| *kind != other.type_));
    others.map(|other| json!(other)).chain(ours).collect()
}
