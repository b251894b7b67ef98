//! The nodes that a cluster begins with.

use std::time::Duration;

use anyhow::{Context as _, bail};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, PostParams};
use serde_json::{Value, json};
use soroi_clock::Clock;

use super::files::Manifest;

/// How many nodes are made when nothing else is said: the article's workers.
const NODES: u32 = 2;
/// Until all nodes are Ready, on a machine that is busy with other things.
const READY_MAX: Duration = Duration::from_secs(30);
/// How often is looked whether they are.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Nodes that are to be made.
pub(super) struct Wanted {
    count: u32,
    gpus: u32,
}

impl Wanted {
    /// Without a number, none if manifests bring their own.
    pub(super) fn new(count: Option<u32>, gpus: u32, loaded: &[Manifest]) -> Self {
        let brought = loaded
            .iter()
            .any(|Manifest { object, .. }| object["kind"] == "Node" && object["apiVersion"] == "v1");
        Self { count: count.unwrap_or(if brought { 0 } else { NODES }), gpus }
    }
}

/// Makes them.
pub(super) async fn create(client: &kube::Client, wanted: &Wanted) -> anyhow::Result<()> {
    let nodes: Api<Node> = Api::all(client.clone());
    for number in 1..=wanted.count {
        let node = serde_json::from_value(node(number, wanted.gpus))?;
        nodes.create(&PostParams::default(), &node).await.context("cannot make a node")?;
    }
    Ok(())
}

fn node(number: u32, gpus: u32) -> Value {
    let name = format!("node-{number}");
    let mut amounts = json!({ "cpu": "32", "memory": "128Gi", "pods": "110" });
    if gpus > 0 {
        amounts["example.com/gpu"] = gpus.to_string().into();
    }
    json!({
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": { "name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64",
        } },
        "status": { "capacity": amounts, "allocatable": amounts },
    })
}

/// Waits until every node is Ready; their number.
pub(super) async fn ready(client: &kube::Client) -> anyhow::Result<usize> {
    let nodes: Api<Node> = Api::all(client.clone());
    let clock = Clock::real();
    let until = clock.now() + READY_MAX;
    loop {
        let all = nodes.list(&ListParams::default()).await.context("cannot list nodes")?.items;
        let waiting = all.iter().find(|node| !is_ready(node));
        let Some(waiting) = waiting else { return Ok(all.len()) };
        if clock.now() > until {
            let name = waiting.metadata.name.as_deref().unwrap_or_default();
            bail!("node {name} did not become Ready within {READY_MAX:?} (does it say so itself in a file?)");
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

/// Ready, and free of the taint that every new node has.
fn is_ready(node: &Node) -> bool {
    let status = node.status.iter().flat_map(|status| status.conditions.iter().flatten());
    let taints = node.spec.iter().flat_map(|spec| spec.taints.iter().flatten());
    let mut ready = status.filter(|condition| condition.type_ == "Ready");
    let mut taints = taints.filter(|taint| taint.key == "node.kubernetes.io/not-ready");
    ready.any(|condition| condition.status == "True") && taints.next().is_none()
}
