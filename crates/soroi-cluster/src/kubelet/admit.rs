//! Does the node take the pod that was bound to it? The kubelet's own check on arrival.
//!
//! Source: `pkg/kubelet/lifecycle/predicate.go`, Kubernetes 1.36. One difference on purpose: a
//! pod that wants an extended resource which the node does not have at all is refused here. A
//! real kubelet leaves that to the device plugin, which a simulated node has not.

use crate::constraint;
use crate::need::{self, Amounts};
use crate::seen::{Node, Pod};

/// Why a pod is refused: the reason in its status, and a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Whether `node`, of which `used` is taken by `others`, takes `pod`.
pub(crate) fn admit<'a>(
    pod: &Pod,
    node: &Node,
    used: &Amounts,
    others: impl Iterator<Item = &'a Pod>,
) -> Result<(), Refusal> {
    if let Some(short) = need::shortages(&pod.need, used, &node.allocatable).into_iter().next() {
        // The kubelet counts the pods that are there; it asks for no amount of them.
        let requested = if short.resource == need::PODS { 1 } else { short.requested };
        return Err(Refusal {
            reason: format!("OutOf{}", short.resource),
            message: format!(
                "Node didn't have enough resource: {}, requested: {requested}, used: {}, capacity: {}",
                short.resource, short.used, short.capacity
            ),
        });
    }
    let predicate = |name: &str, why: &str| Refusal {
        reason: name.into(),
        message: format!("Predicate {name} failed: {why}"),
    };
    if !constraint::selects(pod, node) {
        return Err(predicate("NodeAffinity", "node(s) didn't match Pod's node affinity/selector"));
    }
    let mut others = others;
    if !pod.host_ports.is_empty() && others.any(|other| constraint::ports_collide(pod, other)) {
        return Err(predicate("NodePorts", "node(s) didn't have free ports for the requested pod ports"));
    }
    if constraint::untolerated(pod, node, &["NoExecute"]).is_some() {
        return Err(predicate("TaintToleration", "node(s) had taints that the pod didn't tolerate"));
    }
    Ok(())
}
