//! May this pod sit here? The filters that one node alone answers, each with a typed reason.
//!
//! Knows one pod's needs and one node's facts. Must never know other pods, domains or quotas. The
//! rules are those of kube-scheduler 1.36 (plugins NodeUnschedulable, TaintToleration,
//! NodeAffinity, NodeResourcesFit), asked in its order, so that the first reason is its reason.

use std::sync::Arc;

use crate::event::{
    Expression, Labels, Name, Node, NodeSelectorTerm, Operator, Shape, Taint, TaintEffect, Toleration,
    TolerationMatch, Volume,
};
use crate::reason::NodeProblem;

/// The taint that a cordon stands for (Kubernetes 1.36, NodeUnschedulable plugin).
const UNSCHEDULABLE_TAINT: &str = "node.kubernetes.io/unschedulable";
/// The only field that node affinity can select on.
const NAME_FIELD: &str = "metadata.name";

/// What a pod asks of a node: its own shape, and what its flavor adds when the pod starts there.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ask {
    /// The pod's own requests and constraints.
    pub shape: Arc<Shape>,
    /// `nodeLabels` of its flavors: more node selector. Nodes without them are not looked at.
    pub node_labels: Labels,
    /// Tolerations that its flavors give it.
    pub tolerations: Vec<Toleration>,
}

impl Ask {
    /// The ask of a pod that no flavor adds anything to.
    pub fn plain(shape: &Arc<Shape>) -> Self {
        Self { shape: shape.clone(), node_labels: Labels::new(), tolerations: Vec::new() }
    }

    fn tolerates(&self, taint: &Taint) -> bool {
        tolerated(taint, self.shape.tolerations.iter().chain(&self.tolerations))
    }
}

/// Why this node takes no such pod, however empty it is; `None` if it may. Resources are asked
/// separately, because they change with every pod while these answers change only with the node.
pub fn node_problem(ask: &Ask, node: &Node) -> Option<NodeProblem> {
    if !node.ready {
        return Some(NodeProblem::NotReady);
    }
    if node.unschedulable && !ask.tolerates(&unschedulable_taint()) {
        return Some(NodeProblem::Unschedulable);
    }
    if let Some(taint) = node.taints.iter().find(|taint| repels(taint) && !ask.tolerates(taint)) {
        return Some(NodeProblem::Taint { key: taint.key.clone(), value: taint.value.clone() });
    }
    if !has_labels(&ask.node_labels, &node.labels) || !has_labels(&ask.shape.node_selector, &node.labels) {
        return Some(NodeProblem::Selector);
    }
    if !has_affinity(&ask.shape, node) {
        return Some(NodeProblem::Affinity);
    }
    ask.shape.unserved.map(NodeProblem::Unserved)
}

/// Whether the pod tolerates all taints of a node that keep pods away, the one that a cordon stands for
/// included.
pub(crate) fn tolerates_node(ask: &Ask, node: &Node) -> bool {
    (!node.unschedulable || ask.tolerates(&unschedulable_taint()))
        && node.taints.iter().all(|taint| !repels(taint) || ask.tolerates(taint))
}

/// Whether the pod's selector and affinity, and the selector of its flavors, mean the node.
pub(crate) fn selects_node(ask: &Ask, node: &Node) -> bool {
    has_labels(&ask.node_labels, &node.labels)
        && has_labels(&ask.shape.node_selector, &node.labels)
        && has_affinity(&ask.shape, node)
}

/// Whether a node would rather have pods elsewhere that do not tolerate it.
pub(crate) fn has_soft_taint(node: &Node) -> bool {
    node.taints.iter().any(|taint| taint.effect == TaintEffect::PreferNoSchedule)
}

/// How many of a node's taints would rather have the pod elsewhere (kube-scheduler 1.36, the score of
/// TaintToleration).
pub(crate) fn disliked(ask: &Ask, node: &Node) -> u32 {
    let soft = node.taints.iter().filter(|taint| taint.effect == TaintEffect::PreferNoSchedule);
    u32::try_from(soft.filter(|taint| !ask.tolerates(taint)).count()).unwrap_or(u32::MAX)
}

/// How much the pod would like the node for itself (kube-scheduler 1.36, the score of NodeAffinity).
pub(crate) fn liked(shape: &Shape, node: &Node) -> u32 {
    let terms = shape.prefers.iter().flat_map(|prefers| &prefers.nodes);
    let meant = terms.filter(|(_, term)| term_matches(term, node));
    meant.fold(0, |sum, (weight, _)| sum.saturating_add(*weight))
}

fn has_affinity(shape: &Shape, node: &Node) -> bool {
    shape.node_affinity.as_ref().is_none_or(|terms| terms.iter().any(|term| term_matches(term, node)))
}

/// Whether any of these tolerations tolerates the taint (Kubernetes,
/// `Toleration.ToleratesTaint`). A toleration without key means every key.
pub fn tolerated<'a>(taint: &Taint, mut tolerations: impl Iterator<Item = &'a Toleration>) -> bool {
    tolerations.any(|toleration| {
        toleration.effect.is_none_or(|effect| effect == taint.effect)
            && toleration.key.as_ref().is_none_or(|key| *key == taint.key)
            && match &toleration.matches {
                TolerationMatch::Exists => true,
                TolerationMatch::Equal(value) => *value == taint.value,
            }
    })
}

/// Whether a taint keeps pods away that do not tolerate it. `PreferNoSchedule` never does.
pub fn repels(taint: &Taint) -> bool {
    match taint.effect {
        TaintEffect::NoSchedule | TaintEffect::NoExecute => true,
        TaintEffect::PreferNoSchedule => false,
    }
}

/// Whether all the wanted labels are there with the same values.
pub fn has_labels(wanted: &Labels, labels: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}

/// Whether all expressions hold of these labels; no expressions hold of everything.
pub fn selects(selector: &[Expression], labels: &Labels) -> bool {
    selector.iter().all(|expression| holds(&expression.op, labels.get(&expression.key)))
}

/// Whether what an operator demands holds of a label's value (`None`: no such label). `Gt` and
/// `Lt` compare whole numbers; a value that is none does not match (Kubernetes,
/// `labels.Requirement.Matches`).
pub fn holds(op: &Operator, value: Option<&Name>) -> bool {
    let number = || value.and_then(|v| v.parse::<i64>().ok());
    match op {
        Operator::In(values) => value.is_some_and(|v| values.contains(v)),
        Operator::NotIn(values) => !value.is_some_and(|v| values.contains(v)),
        Operator::Exists => value.is_some(),
        Operator::DoesNotExist => value.is_none(),
        Operator::Gt(bound) => number().is_some_and(|v| v > *bound),
        Operator::Lt(bound) => number().is_some_and(|v| v < *bound),
    }
}

fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    term_means(term, &node.labels, &node.name)
}

fn term_means(term: &NodeSelectorTerm, labels: &Labels, name: &Name) -> bool {
    let empty = term.labels.is_empty() && term.fields.is_empty();
    !empty && selects(&term.labels, labels) && term.fields.iter().all(|field| field_holds(field, name))
}

/// Fields know `In` and `NotIn` only; the API refuses the rest, and kube-scheduler lets a term
/// with anything else match nothing.
fn field_holds(field: &Expression, node_name: &Name) -> bool {
    &*field.key == NAME_FIELD
        && matches!(field.op, Operator::In(_) | Operator::NotIn(_))
        && holds(&field.op, Some(node_name))
}

/// Whether a volume is reached from a node (VolumeBinding, `CheckNodeAffinity`). Nodes have no name there.
pub(crate) fn reaches(volume: &Volume, node: &Node) -> bool {
    let nameless = Name::from("");
    let reached =
        |terms: &Vec<NodeSelectorTerm>| terms.iter().any(|term| term_means(term, &node.labels, &nameless));
    volume.node_affinity.as_ref().is_none_or(reached)
}

fn unschedulable_taint() -> Taint {
    Taint { key: UNSCHEDULABLE_TAINT.into(), value: "".into(), effect: TaintEffect::NoSchedule }
}

#[cfg(test)]
mod tests;
