//! What is in the demo's cluster? The article's objects, with shorter names.
//!
//! The same for every policy: only Soroi's configuration differs.

use serde_json::{Value, json};

pub(crate) const GPU: &str = "example.com/gpu";
/// Level of the topology above the node.
const RACK: &str = "cloud.provider.com/topology-rack";
/// GPUs that the queue owns.
pub(crate) const QUOTA: i64 = 4;
/// GPUs of a worker.
pub(crate) const GPUS_PER_WORKER: i64 = 2;

/// One control-plane node and two workers in one rack.
pub(crate) fn nodes() -> Vec<Value> {
    vec![control_plane(), worker("worker-1"), worker("worker-2")]
}

fn control_plane() -> Value {
    let mut node = node("control-plane", json!({"cpu": "8", "memory": "32Gi", "pods": "110"}));
    node["metadata"]["labels"]["node-role.kubernetes.io/control-plane"] = json!("");
    node["spec"] =
        json!({"taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]});
    node
}

/// A worker with two GPUs.
pub(crate) fn worker(name: &str) -> Value {
    let mut node =
        node(name, json!({"cpu": "8", "memory": "32Gi", "pods": "110", GPU: GPUS_PER_WORKER.to_string()}));
    node["metadata"]["labels"][RACK] = json!("rack-1");
    node
}

fn node(name: &str, room: Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"}},
        "status": {"capacity": room, "allocatable": room},
    })
}

/// Two topology levels.
pub(crate) fn topology() -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "gpu-topology"},
        "spec": {"levels": [{"nodeLabel": RACK}, {"nodeLabel": "kubernetes.io/hostname"}]},
    })
}

/// The nodes of the rack, as a flavor.
pub(crate) fn flavor() -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "gpu-flavor"},
        "spec": {"nodeLabels": {RACK: "rack-1"}, "topologyName": "gpu-topology"},
    })
}

/// A queue that owns 4 GPUs.
pub(crate) fn cluster_queue() -> Value {
    let quota = |name: &str, amount: Value| json!({"name": name, "nominalQuota": amount});
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "gpu-queue"},
        "spec": {"namespaceSelector": {}, "resourceGroups": [{
            "coveredResources": ["cpu", "memory", GPU],
            "flavors": [{"name": "gpu-flavor", "resources": [
                quota("cpu", json!("16")), quota("memory", json!("32Gi")), quota(GPU, json!(QUOTA.to_string())),
            ]}],
        }]},
    })
}

/// The team's door to the queue.
pub(crate) fn local_queue() -> Value {
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "team-a", "namespace": "default"}, "spec": {"clusterQueue": "gpu-queue"},
    })
}

/// A pod that nobody queues, created on its node.
pub(crate) fn hog() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "hog", "namespace": "default"},
        "spec": {"nodeName": "worker-1", "containers": [{
            "name": "hog", "image": "registry.k8s.io/pause:3.9",
            "resources": {"requests": {GPU: "1"}, "limits": {GPU: "1"}},
        }]},
    })
}

/// A job of `pods` pods with one GPU each, that run for `runs`.
pub(crate) fn job(name: &str, pods: u32, runs: &str, backoff_limit: Option<u32>) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "team-a"},
        },
        "spec": {
            "parallelism": pods, "completions": pods, "suspend": true,
            "template": {
                "metadata": {"annotations": {soroi_cluster::annotation::RUN_FOR: runs}},
                "spec": {"restartPolicy": "Never", "containers": [{
                    "name": "trainer", "image": "registry.k8s.io/pause:3.9",
                    "resources": {
                        "requests": {"cpu": "500m", "memory": "128Mi", GPU: "1"}, "limits": {GPU: "1"},
                    },
                }]},
            },
        },
    });
    if let Some(limit) = backoff_limit {
        job["spec"]["backoffLimit"] = json!(limit);
    }
    job
}
