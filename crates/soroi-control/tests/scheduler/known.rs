//! Where Soroi decides otherwise than kube-scheduler, on purpose.

use k8s_openapi::api::core::v1::Pod;
use serde_json::Value;

use crate::draw::Situation;

/// The taint that the node lifecycle controller derives from `spec.unschedulable`.
const CORDON: &str = "node.kubernetes.io/unschedulable";

/// Expressions that hold of an object without labels.
const HELD_BY_NOTHING: [&str; 2] = ["NotIn", "DoesNotExist"];

/// Why the two may differ about this pod on this node; `None`: they may not.
pub fn reason(
    situation: &Situation,
    pod: &Pod,
    node: &str,
    kube_scheduler_takes_it: bool,
) -> Option<&'static str> {
    let node = situation.nodes.iter().find(|one| one["metadata"]["name"] == node)?;
    if kube_scheduler_takes_it && !is_ready(node) {
        return Some("Soroi looks at the condition Ready, kube-scheduler at the taint that follows it");
    }
    let of_cordon = "Soroi looks at spec.unschedulable, kube-scheduler at the taint that follows it, too";
    if !kube_scheduler_takes_it && has_cordon_taint(node) && !is_cordoned(node) {
        return Some(of_cordon);
    }
    let follows = |node: &Value| has_cordon_taint(node) == is_cordoned(node);
    if honours_taints(pod) && !situation.nodes.iter().all(follows) {
        return Some(of_cordon);
    }
    means_nameless_namespaces(pod).then_some(
        "kube-scheduler 1.36.1 takes a namespaceSelector of a pod that comes to mean every namespace, if an \
         object without labels would match it",
    )
}

/// Whether any of that may matter to these pods, wherever they are.
pub fn may_matter<'p>(situation: &Situation, mut pods: impl Iterator<Item = &'p Pod>) -> bool {
    let settled = |node: &Value| is_ready(node) && has_cordon_taint(node) == is_cordoned(node);
    !situation.nodes.iter().all(settled) || pods.any(means_nameless_namespaces)
}

fn is_ready(node: &Value) -> bool {
    let conditions = node["status"]["conditions"].as_array();
    conditions.is_some_and(|all| all.iter().any(|one| one["type"] == "Ready" && one["status"] == "True"))
}

fn is_cordoned(node: &Value) -> bool {
    node["spec"]["unschedulable"] == true
}

fn has_cordon_taint(node: &Value) -> bool {
    node["spec"]["taints"].as_array().is_some_and(|all| all.iter().any(|one| one["key"] == CORDON))
}

/// Whether nodes that the pod does not tolerate do not count for how evenly pods are spread.
fn honours_taints(pod: &Pod) -> bool {
    let constraints = pod.spec.as_ref().and_then(|spec| spec.topology_spread_constraints.as_ref());
    constraints.into_iter().flatten().any(|one| one.node_taints_policy.as_deref() == Some("Honor"))
}

/// Since 1.36, `mergeAffinityTermNamespacesIfNotEmpty` changes a copy of the term: the namespaces that are
/// selected are added, but the selector stays, and is asked of no labels at all. Soroi means those that the
/// API's documentation means.
fn means_nameless_namespaces(pod: &Pod) -> bool {
    let affinity = pod.spec.as_ref().and_then(|spec| spec.affinity.as_ref());
    let near = affinity.and_then(|all| {
        all.pod_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
    });
    let apart = affinity.and_then(|all| {
        all.pod_anti_affinity.as_ref()?.required_during_scheduling_ignored_during_execution.as_ref()
    });
    near.into_iter().chain(apart).flatten().filter_map(|term| term.namespace_selector.as_ref()).any(
        |selector| {
            let expressions = selector.match_expressions.as_deref().unwrap_or_default();
            selector.match_labels.as_ref().is_none_or(std::collections::BTreeMap::is_empty)
                && !expressions.is_empty()
                && expressions.iter().all(|one| HELD_BY_NOTHING.contains(&one.operator.as_str()))
        },
    )
}
