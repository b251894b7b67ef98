//! The nodes that a control plane starts with: plain Node objects, all alike.

use serde_json::{Value, json};

use super::kubectl::Kubectl;

/// What nodes there are from the beginning.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    /// How many.
    pub(crate) nodes: usize,
    /// How many `example.com/gpu` each of them has.
    pub(crate) gpus: u32,
}

/// Creates them: `node-1`, `node-2` and so on.
///
/// # Errors
/// When the API server refuses one.
pub(super) fn create(kubectl: &Kubectl, wanted: Wanted) -> anyhow::Result<()> {
    if wanted.nodes == 0 {
        return Ok(());
    }
    let nodes: Vec<Value> = (1..=wanted.nodes).map(|number| node(number, wanted.gpus)).collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": nodes });
    kubectl.run(&["create", "--filename", "-"], Some(&list.to_string())).map(|_| ())
}

fn node(number: usize, gpus: u32) -> Value {
    let name = format!("node-{number}");
    let mut room = json!({ "cpu": "16", "memory": "64Gi", "pods": "110" });
    if gpus > 0 {
        room["example.com/gpu"] = json!(gpus.to_string());
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "kubernetes.io/arch": "amd64",
            },
        },
        "status": { "capacity": room, "allocatable": room },
    })
}

/// Whether they are Ready and take pods, and pods can be created in the namespace `default`.
///
/// # Errors
/// When the API server does not answer.
pub(super) fn are_ready(kubectl: &Kubectl, wanted: Wanted) -> anyhow::Result<bool> {
    let accounts = kubectl.run(&["get", "serviceaccounts", "--output", "name"], None)?;
    let nodes: Value = serde_json::from_str(&kubectl.run(&["get", "nodes", "--output", "json"], None)?)?;
    let ready = nodes["items"].as_array().into_iter().flatten().filter(|node| is_ready(node)).count();
    Ok(ready >= wanted.nodes && accounts.contains("serviceaccount/default"))
}

/// The API server gives every new node a taint, which kube-controller-manager takes away when the
/// node is Ready.
fn is_ready(node: &Value) -> bool {
    let all = |path: &str| node.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let mut taints = all("/spec/taints");
    all("/status/conditions").any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && !taints.any(|taint| taint["key"] == "node.kubernetes.io/not-ready")
}
