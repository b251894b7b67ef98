//! Is it a place where this pod may be? Asked when the product has bound one.
//!
//! - Not on a node that has long been shut: cordoned, tainted, silent.
//! - Members that must share a domain of the topology do.
//!
//! Labels that changed make domains that nobody could have known, so nothing is said of nodes that
//! were moved. Knows nodes and pods; never why a place was chosen.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::kind;
use crate::world::{World, has_ended, is_true, text};

/// How old what the product knows of a node may be: its watches are cut, lag, and are opened again.
const STALE_MAX: SignedDuration = SignedDuration::from_secs(30);
/// Names the level of the topology that all pods of a set must share.
const REQUIRED: &str = "kueue.x-k8s.io/podset-required-topology";

/// Whether no pod of the drawn stories may be put onto a node.
pub(crate) fn is_shut(node: &Value) -> bool {
    let taints = node["spec"]["taints"].as_array().into_iter().flatten();
    let repels = |taint: &Value| matches!(text(&taint["effect"]), "NoSchedule" | "NoExecute");
    node["spec"]["unschedulable"] == true || !is_true(node, "Ready") || taints.into_iter().any(repels)
}

/// What is wrong with the place of a pod that was just bound.
pub(super) fn check(world: &World, pod: &Value, now: Timestamp) -> Option<String> {
    let (name, node) = (text(&pod["metadata"]["name"]), text(&pod["spec"]["nodeName"]));
    let tolerates = pod["spec"]["tolerations"].as_array().into_iter().flatten();
    let story_tolerates = tolerates.into_iter().any(|one| one["effect"].is_null());
    let long_shut = |since: &Timestamp| now.duration_since(*since) > STALE_MAX;
    if !story_tolerates && world.shut.get(node).is_some_and(long_shut) {
        return Some(format!("pod {name} was bound to {node}, which has been shut for long"));
    }
    apart(world, pod)
}

/// Members that must be in one domain are in several.
fn apart(world: &World, pod: &Value) -> Option<String> {
    let level = pod["metadata"]["annotations"][REQUIRED].as_str()?;
    let owner = pod["metadata"]["ownerReferences"][0]["uid"].as_str()?;
    let together = |other: &&Value| {
        other["metadata"]["ownerReferences"][0]["uid"] == owner
            && other["spec"]["nodeName"].is_string()
            && other["metadata"]["deletionTimestamp"].is_null()
            && !has_ended(other)
    };
    let nodes: BTreeSet<&str> =
        world.all(kind::POD).filter(together).map(|pod| text(&pod["spec"]["nodeName"])).collect();
    if nodes.iter().any(|node| world.moved.contains(*node)) {
        return None;
    }
    let domain =
        |node: &&str| world.get(kind::NODE, "", node).map(|node| text(&node["metadata"]["labels"][level]));
    let domains: BTreeSet<&str> = nodes.iter().filter_map(domain).collect();
    (domains.len() > 1).then(|| {
        let name = text(&pod["metadata"]["name"]);
        format!("pod {name} must share a {level} with its gang, which is in {domains:?}")
    })
}
