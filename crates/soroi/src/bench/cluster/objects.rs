//! What is put on the cluster? Nodes, pods in the way, gangs.
//!
//! Everything asks for a resource that only the bench's own nodes have, so that nothing of it lands
//! elsewhere and nothing else is in its way.

use serde_json::{Value, json};

/// Of all namespaced objects, and the name of the cluster's.
pub(super) const NAME: &str = "soroi-bench";
/// A resource that only the bench's nodes have.
pub(super) const GPU: &str = "bench.soroi.dev/gpu";
/// The label by which pods are told apart.
pub(super) const BATCH: &str = "bench.soroi.dev/batch";
/// The scheduler of pods that this client binds itself, or that nobody binds.
pub(super) const NOBODY: &str = "soroi-bench";

pub(super) const PODS: &str = "/api/v1/namespaces/soroi-bench/pods";
pub(super) const JOBS: &str = "/apis/batch/v1/namespaces/soroi-bench/jobs";
pub(super) const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/soroi-bench/podgroups";
pub(super) const NATIVE_GROUPS: &str = "/apis/scheduling.k8s.io/v1alpha2/namespaces/soroi-bench/podgroups";
pub(super) const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/soroi-bench/workloads";
pub(super) const PLANS: &str = "/apis/soroi.dev/v1alpha1/namespaces/soroi-bench/gangplans";

/// Who is to place a pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Gang {
    /// Nobody but this client.
    None,
    /// kube-scheduler, one by one.
    Single,
    /// Soroi, as members of this PodGroup.
    Soroi(String),
    /// kube-scheduler, as members of its own kind of group.
    Native(String),
}

/// Node number `number` with so many GPUs.
pub(super) fn node(number: usize, gpus: u32) -> Value {
    let name = node_name(number);
    let room = json!({ "cpu": "64", "memory": "256Gi", "pods": "200", GPU: gpus.to_string() });
    json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64", NODE_LABEL: "true",
            },
        },
        "status": { "capacity": room, "allocatable": room },
    })
}

/// The label of all nodes of the bench.
pub(super) const NODE_LABEL: &str = "bench.soroi.dev/node";

pub(super) fn node_name(number: usize) -> String {
    format!("soroi-bench-{number:05}")
}

/// A pod of a batch with one GPU.
pub(super) fn pod(name: &str, batch: &str, gang: &Gang) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": NAME, "labels": { BATCH: batch } },
        "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 0, "schedulerName": NOBODY,
            "containers": [container()],
        },
    });
    match gang {
        Gang::None => {}
        Gang::Single => pod["spec"]["schedulerName"] = "default-scheduler".into(),
        Gang::Soroi(group) => {
            pod["spec"]["schedulerName"] = "soroi".into();
            pod["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": group });
        }
        Gang::Native(group) => {
            pod["spec"]["schedulerName"] = "default-scheduler".into();
            pod["spec"]["schedulingGroup"] = json!({ "podGroupName": group });
        }
    }
    pod
}

fn container() -> Value {
    json!({
        "name": "main", "image": "registry.k8s.io/pause:3.10",
        "resources": { "requests": { GPU: "1" }, "limits": { GPU: "1" } },
    })
}

/// The pod in the way: nobody queues it, and it is created on its node.
pub(super) fn hog(batch: &str, node: usize) -> Value {
    let mut pod = pod(batch, batch, &Gang::None);
    pod["spec"]["nodeName"] = node_name(node).into();
    pod
}

/// A suspended Job of `pods` pods; under the queue, or nobody's. Its pods get their scheduler when they
/// are created.
pub(super) fn job(name: &str, pods: usize, queued: bool) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": NAME, "labels": {} },
        "spec": {
            "parallelism": pods, "completions": pods, "suspend": true,
            "template": {
                "metadata": { "labels": { BATCH: name } },
                "spec": {
                    "restartPolicy": "Never", "terminationGracePeriodSeconds": 0,
                    "containers": [container()],
                },
            },
        },
    });
    if queued {
        job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = NAME.into();
    }
    job
}

/// A PodGroup of Volcano's kind, which Soroi serves.
pub(super) fn group(name: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": NAME }, "spec": { "minMember": pods },
    })
}

/// A PodGroup of Kubernetes' own kind (1.36: `scheduling.k8s.io/v1alpha2`).
pub(super) fn native_group(name: &str, pods: usize) -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1alpha2", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": NAME },
        "spec": { "schedulingPolicy": { "gang": { "minCount": pods } } },
    })
}

/// The core/v1 Binding of a pod; as Soroi sends it.
pub(super) fn binding(name: &str, uid: &str, node: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": {
            "name": name, "namespace": NAME, "uid": uid,
            "annotations": { "bench.soroi.dev/leader-epoch": "1" },
        },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node_name(node) },
    })
}

/// A flavor, a ClusterQueue with room for `gpus`, and its LocalQueue: kind, path and object.
pub(super) fn queues(gpus: usize) -> [(&'static str, Value); 3] {
    const API: &str = "kueue.x-k8s.io/v1beta2";
    [
        (
            FLAVORS,
            json!({
                "apiVersion": API, "kind": "ResourceFlavor", "metadata": { "name": NAME },
                "spec": { "nodeLabels": { NODE_LABEL: "true" } },
            }),
        ),
        (
            CLUSTER_QUEUES,
            json!({
                "apiVersion": API, "kind": "ClusterQueue", "metadata": { "name": NAME },
                "spec": { "namespaceSelector": {}, "resourceGroups": [{
                    "coveredResources": [GPU],
                    "flavors": [{
                        "name": NAME, "resources": [{ "name": GPU, "nominalQuota": gpus.to_string() }],
                    }],
                }] },
            }),
        ),
        (
            LOCAL_QUEUES,
            json!({
                "apiVersion": API, "kind": "LocalQueue", "metadata": { "name": NAME, "namespace": NAME },
                "spec": { "clusterQueue": NAME },
            }),
        ),
    ]
}

pub(super) const FLAVORS: &str = "/apis/kueue.x-k8s.io/v1beta2/resourceflavors";
pub(super) const CLUSTER_QUEUES: &str = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues";
pub(super) const LOCAL_QUEUES: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/soroi-bench/localqueues";
