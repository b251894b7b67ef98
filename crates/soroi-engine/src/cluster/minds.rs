//! What the pods that are there demand of one that comes, and the other way round, asked by node.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cluster, Count, Need, NodeIx, NodeSlot};
use crate::event::{Labels, Name, PodSelector, PodTerm, Shape, Who};
use crate::reason::NodeProblem;
use crate::resources::ResourceIx;

impl Cluster {
    /// The labels of a namespace, which selectors of other pods look at; `None`: it is gone.
    pub fn set_namespace(&mut self, name: &Name, labels: Option<&Labels>) {
        if self.crowd.set_namespace(name, labels) && self.crowd.is_watched() {
            self.gains.forget_all();
        }
    }

    /// What of a pod matters to where it may be, beside its shape: nothing, mostly.
    pub(crate) fn seen_as(&self, who: &Arc<Who>, shape: &Shape) -> Option<Arc<Who>> {
        self.crowd.seen_as(who, shape)
    }

    /// Whether labels of pods began to matter that did not before, since this was last asked.
    pub(crate) fn take_news_of_labels(&mut self) -> bool {
        self.crowd.take_news()
    }

    /// Whether somebody who is there does not want this pod around.
    pub(crate) fn is_minded(&self, who: &Who) -> bool {
        self.crowd.minded().keys().any(|term| self.is_of(std::slice::from_ref(&term.pods), who))
    }

    /// Whether all of these mean the pod.
    pub(crate) fn is_of(&self, kind: &[PodSelector], who: &Who) -> bool {
        self.crowd.is_of(kind, who)
    }

    /// How many pods that all of these mean are on each node that has some.
    pub(crate) fn of_kind(&mut self, kind: &[PodSelector]) -> &BTreeMap<NodeIx, Count> {
        let everybody =
            self.occupants.values().filter_map(|charge| Some((charge.node, charge.face.as_ref()?)));
        self.crowd.of_kind(kind, everybody)
    }

    /// Whom those that are there do not want around, and on which nodes they are.
    pub(crate) fn minded(&self) -> &BTreeMap<PodTerm, BTreeMap<NodeIx, u32>> {
        self.crowd.minded()
    }

    /// Whether the ports that the pod must have are free on the node.
    pub(crate) fn ports_are_free(&self, node: NodeIx, shape: &Shape) -> bool {
        let demanded = shape.neighbours.iter().flat_map(|demands| &demands.ports);
        demanded.into_iter().all(|port| !self.crowd.ports_on(node).any(|taken| taken.conflicts(port)))
    }

    /// Whether it matters to a pod, or to others, who is around it.
    pub(crate) fn minds(&self, need: &Need, who: &Who) -> bool {
        need.ask.shape.neighbours.is_some() || self.is_minded(who) || self.shares_volumes(need)
    }

    /// Whether the pod and somebody who is there cannot be so close, in either one's opinion. (Whom it
    /// wants around, and how evenly pods are spread, was decided for the gang as a whole: its other
    /// members may have come since.)
    pub(crate) fn clashes(&mut self, node: &Name, need: &Need, who: &Who) -> bool {
        let Some(ix) = self.node_ix(node) else { return true };
        if !self.ports_are_free(ix, &need.ask.shape) || self.is_mounted(need) {
            return true;
        }
        let minded = self.minded().iter();
        let minded = minded.filter(|(term, _)| self.is_of(std::slice::from_ref(&term.pods), who));
        if minded.into_iter().any(|(term, nodes)| self.is_near(ix, &term.topology_key, nodes.keys())) {
            return true;
        }
        let Some(demands) = need.ask.shape.neighbours.clone() else { return false };
        demands.anti_affinity.iter().any(|term| {
            let there: Vec<NodeIx> = self.of_kind(std::slice::from_ref(&term.pods)).keys().copied().collect();
            self.is_near(ix, &term.topology_key, there.iter())
        })
    }

    /// Whether one of the nodes is in the domain of this one.
    fn is_near<'n>(&self, node: NodeIx, key: &Name, mut nodes: impl Iterator<Item = &'n NodeIx>) -> bool {
        let domain = |node: NodeIx| self.slot_of(node).facts.as_ref()?.labels.get(key);
        domain(node).is_some_and(|here| nodes.any(|there| domain(*there) == Some(here)))
    }

    /// The problem of a node that is short of this.
    pub(crate) fn short_of(&self, resource: ResourceIx) -> NodeProblem {
        match resource {
            ResourceIx::PODS => NodeProblem::TooManyPods,
            _ => NodeProblem::Insufficient { resource: self.names.name(resource).clone() },
        }
    }

    pub(crate) fn slots(&self) -> &[NodeSlot] {
        &self.nodes
    }
}
