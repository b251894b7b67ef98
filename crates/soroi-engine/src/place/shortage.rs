//! A question that was answered "no", asked again only when the answer may have changed.
//!
//! A gang that lacks room waits until nodes gain room, and most gains are too few or in the wrong
//! place. What a node that gained takes now is the most by which it can have helped, whatever
//! domain it is in; while the sum of that is less than what was missing, the answer is still "no",
//! and no index need be touched. So thousands of different shortages cost each event a few filters.

use std::sync::Arc;

use super::{PlaceRequest, PodSetRequest, fitting, place};
use crate::cluster::{Cluster, Need, NodeIx};
use crate::event::Name;
use crate::fit::has_labels;

/// A request for which there is no place.
#[derive(Clone, Debug)]
pub struct Shortage {
    request: PlaceRequest,
    needs: Vec<Arc<Need>>,
    /// Per pod set: how many pods more must fit before another look is worth it; all zero if each
    /// fits alone and only together they do not.
    missing: Vec<u64>,
}

/// Nodes that may have gained room, since some time; `None`: perhaps all.
#[derive(Clone, Debug)]
pub struct Gains(Option<Vec<NodeIx>>);

impl Cluster {
    /// Where the record of gains ends now, for [`Cluster::gains_since`] next time.
    pub fn gains_end(&mut self) -> u64 {
        self.gains_position()
    }

    /// Nodes that may have gained room since then: somebody left, or the node itself changed.
    /// What was only tried out is no gain.
    pub fn gains_since(&self, position: u64) -> Gains {
        Gains(self.gained_nodes(position))
    }
}

impl Gains {
    /// Nothing happened that could help anybody.
    pub fn is_empty(&self) -> bool {
        self.0.as_ref().is_some_and(Vec::is_empty)
    }
}

impl Shortage {
    /// Remembers a request that [`place`] has just refused.
    pub fn new(cluster: &mut Cluster, request: PlaceRequest) -> Self {
        let mut shortage = Self { request, needs: Vec::new(), missing: Vec::new() };
        shortage.measure(cluster);
        shortage
    }

    /// What was asked.
    pub fn request(&self) -> &PlaceRequest {
        &self.request
    }

    /// Whether there is a place for all now, given which nodes gained room since this was last
    /// asked (or since the shortage was made). Exact, but for searches that prove nothing.
    pub fn ended(&mut self, cluster: &mut Cluster, gains: &Gains) -> bool {
        if !self.may_have_ended(cluster, gains) {
            return false;
        }
        let ended = match &self.request.pod_sets[..] {
            [alone] if self.is_simple() && alone.request.slices.is_empty() && !self.minds(cluster) => {
                fitting(cluster, alone) >= u64::from(alone.asked())
            }
            _ => place(cluster, &self.request).is_ok(),
        };
        if !ended {
            self.measure(cluster);
        }
        ended
    }

    fn is_simple(&self) -> bool {
        self.request.minima.is_none() && self.request.excluded.is_empty()
    }

    fn may_have_ended(&mut self, cluster: &Cluster, gains: &Gains) -> bool {
        let Some(nodes) = &gains.0 else { return true };
        if self.minds(cluster) {
            // Whoever came or left may be whom it minds, wherever that was.
            return true;
        }
        let mut helped = false;
        for &node in nodes {
            if self.is_bound(&cluster.slot_of(node).name) {
                return true;
            }
            for at in 0..self.needs.len() {
                let gain = u64::from(self.gain(cluster, node, at));
                helped |= gain > 0;
                self.missing[at] = self.missing[at].saturating_sub(gain);
            }
        }
        helped && self.missing.iter().all(|missing| *missing == 0)
    }

    /// Whether other pods matter to where its pods may be.
    fn minds(&self, cluster: &Cluster) -> bool {
        let demands =
            |set: &PodSetRequest| set.ask.shape.neighbours.is_some() || !set.ask.shape.claims.is_empty();
        let minded = |set: &PodSetRequest| set.who.as_deref().is_some_and(|who| cluster.is_minded(who));
        self.request.pod_sets.iter().any(|set| demands(set) || minded(set))
    }

    /// Where members sit decides which domain they need: such a node changes everything.
    fn is_bound(&self, node: &Name) -> bool {
        self.request.pod_sets.iter().any(|pod_set| pod_set.bound.iter().any(|(bound, _)| bound == node))
    }

    /// How many pods of a pod set the node takes now.
    fn gain(&self, cluster: &Cluster, node: NodeIx, pod_set: usize) -> u32 {
        let slot = cluster.slot_of(node);
        let need = &self.needs[pod_set];
        let fits = slot.facts.as_ref().is_some_and(|facts| {
            has_labels(&need.ask.node_labels, &facts.labels) && need.node_problem(facts).is_none()
        });
        if fits && !self.request.excluded.contains(&slot.name) {
            slot.space.fit_count(&need.requests)
        } else {
            0
        }
    }

    fn measure(&mut self, cluster: &mut Cluster) {
        // Made anew each time: what claims lead to may have changed.
        self.needs = self.request.pod_sets.iter().map(|pod_set| cluster.need(&pod_set.ask)).collect();
        let enough_would_do = self.request.minima.is_some();
        // One pod more may make a whole slice fit.
        let missing = |pod_set: &PodSetRequest| match enough_would_do || !pod_set.request.slices.is_empty() {
            true => 0,
            false => u64::from(pod_set.asked()).saturating_sub(fitting(cluster, pod_set)),
        };
        self.missing = self.request.pod_sets.iter().map(missing).collect();
    }
}
