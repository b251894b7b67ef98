//! What persistent volumes demand of where a pod is.
//!
//! A pod names claims, a claim its volume, a volume the nodes that reach it. Objects of the three kinds come
//! in any order; what is not known is not there (yet). The rules are those of kube-scheduler 1.36 (plugins
//! VolumeBinding, VolumeZone, VolumeRestrictions, NodeVolumeLimits).

use std::collections::{BTreeMap, BTreeSet};

use super::{Labels, Name, NodeSelectorTerm};

/// A PersistentVolumeClaim by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClaimKey {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Where it is.
    pub key: ClaimKey,
    /// The volume that it names.
    pub volume: Option<Name>,
    /// How far it is.
    pub state: ClaimState,
    /// One pod at a time (access mode `ReadWriteOncePod`).
    pub alone: bool,
}

/// How far a claim is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaimState {
    /// It has its volume.
    Bound,
    /// It has none yet. Whether a pod would bring it one does not matter: Soroi chooses no volumes.
    Unbound,
    /// Its volume is gone.
    Lost,
    /// It is being deleted.
    Leaving,
}

/// A PersistentVolume.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: Name,
    /// Which nodes reach it: one term must match. `None`: all do.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Its labels of zone and region, as far as it has some: nodes that have any must have one of the values.
    pub zones: BTreeMap<Name, BTreeSet<Name>>,
    /// What a CSI driver attaches; `None`: nobody counts it.
    pub attached: Option<Attached>,
}

/// A volume as a CSI driver knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attached {
    /// The driver.
    pub driver: Name,
    /// The volume, by the driver's name for it.
    pub handle: Name,
}

/// Labels of nodes and volumes that say where they are, the old ones first; the second is what the first
/// is called today (VolumeZone, `topologyLabels`).
pub const ZONE_LABELS: [(&str, &str); 4] = [
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("topology.kubernetes.io/zone", "topology.kubernetes.io/zone"),
    ("topology.kubernetes.io/region", "topology.kubernetes.io/region"),
];

/// Why no node takes a pod because of one of its claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimProblem {
    /// There is no such claim.
    Missing,
    /// It has no volume yet.
    Unbound,
    /// Its volume is gone.
    Lost,
    /// It is being deleted.
    Leaving,
    /// There is no such volume.
    NoVolume,
}

impl Volume {
    /// Whether it is in the zone of a node with these labels (VolumeZone): a node that says nothing of
    /// zones is everywhere.
    pub fn is_in_zone(&self, node: &Labels) -> bool {
        if !ZONE_LABELS.iter().any(|(label, _)| node.contains_key(*label)) {
            return true;
        }
        self.zones.iter().all(|(label, values)| {
            let today = ZONE_LABELS.iter().find(|(old, _)| *old == &**label).map(|(_, today)| *today);
            let there = node.get(label).or_else(|| node.get(today?));
            there.is_some_and(|value| values.contains(value))
        })
    }
}
