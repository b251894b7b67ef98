//! What a pod would like and can do without. Most pods would like nothing, and have no such value.
//!
//! The fields are those of kube-scheduler 1.36's scores (plugins NodeAffinity, InterPodAffinity,
//! PodTopologySpread); what nodes would like (`PreferNoSchedule`) is among their taints.

use super::{NodeSelectorTerm, PodTerm, Spread};

/// See the module. Each list is sorted; what is there twice counts twice.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Preferences {
    /// Nodes that it would like, and how much (1 to 100).
    pub nodes: Vec<(u32, NodeSelectorTerm)>,
    /// Pods in whose domains it would like to be, and how much each of them counts.
    pub near: Vec<(u32, PodTerm)>,
    /// Pods in whose domains it would not, and how much each of them counts.
    pub apart: Vec<(u32, PodTerm)>,
    /// How evenly pods should be spread (`whenUnsatisfiable: ScheduleAnyway`).
    pub spread: Vec<Spread>,
}

impl Preferences {
    /// Whether it would like nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether it would like something of other pods.
    pub(crate) fn mind_others(&self) -> bool {
        !(self.near.is_empty() && self.apart.is_empty() && self.spread.is_empty())
    }
}
