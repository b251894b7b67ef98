//! Volumes that pods share or not: for one pod at a time, and so many of a driver on a node.
//!
//! As kube-scheduler 1.36 counts (VolumeRestrictions, NodeVolumeLimits): a volume that several pods of a node
//! mount is attached once; one that is for one pod is in use wherever that pod is.

use std::collections::{BTreeMap, BTreeSet};

use super::super::part::Part;
use crate::cluster::{Cluster, NodeIx};
use crate::event::{Attached, ClaimKey, Name};
use crate::reason::NodeProblem;

/// See the module. Empty where nobody has such volumes.
#[derive(Default)]
pub(super) struct VolumeRules {
    parts: Vec<OfPart>,
    /// Claims for one pod at a time, and how many pods of the gang mount them now.
    alone: BTreeMap<ClaimKey, u32>,
    attached: BTreeMap<NodeIx, BTreeMap<Attached, u32>>,
    limits: BTreeMap<NodeIx, BTreeMap<Name, u32>>,
}

#[derive(Default)]
struct OfPart {
    alone: Vec<ClaimKey>,
    /// One of these is in use already.
    taken: bool,
    attaches: BTreeSet<Attached>,
}

impl VolumeRules {
    pub(super) fn new(cluster: &Cluster, parts: &[Part]) -> Self {
        if !parts.iter().any(|part| cluster.shares_volumes(&part.need)) {
            return Self::default();
        }
        let of_part = |part: &Part| {
            let volumes = part.need.mounted.iter().filter_map(|one| one.volume.as_ref().ok());
            OfPart {
                alone: part.need.mounted.iter().filter(|one| one.alone).map(|one| one.key.clone()).collect(),
                taken: cluster.is_mounted(&part.need),
                attaches: volumes.filter_map(|volume| volume.attached.clone()).collect(),
            }
        };
        let parts: Vec<OfPart> = parts.iter().map(of_part).collect();
        let drivers: BTreeSet<&Name> =
            parts.iter().flat_map(|part| &part.attaches).map(|one| &one.driver).collect();
        let limits = (0..cluster.slots().len()).map(NodeIx::of).map(|node| {
            let of_node = drivers
                .iter()
                .filter_map(|driver| Some(((*driver).clone(), cluster.volume_limit(node, driver)?)));
            (node, of_node.collect())
        });
        Self { limits: limits.collect(), attached: cluster.attached(), alone: BTreeMap::new(), parts }
    }

    /// What keeps one more pod of the part away from the node now.
    pub(super) fn problem(&self, part: usize, node: NodeIx) -> Option<NodeProblem> {
        let own = self.parts.get(part)?;
        if own.taken || own.alone.iter().any(|claim| self.alone.get(claim).is_some_and(|pods| *pods > 0)) {
            return Some(NodeProblem::VolumeInUse);
        }
        let there = self.attached.get(&node);
        let is_there = |one: &Attached| there.is_some_and(|there| there.contains_key(one));
        let full = |(driver, most): (&Name, &u32)| {
            let of = |one: &&Attached| one.driver == *driver;
            let new = own.attaches.iter().filter(of).filter(|one| !is_there(one)).count();
            let old = there.into_iter().flat_map(BTreeMap::keys).filter(of).count();
            new > 0 && new + old > *most as usize
        };
        let mut limits = self.limits.get(&node).into_iter().flatten();
        limits.any(full).then_some(NodeProblem::VolumeLimit)
    }

    /// Whether a volume of the part is in use by somebody who is there.
    pub(super) fn is_taken(&self, part: usize) -> bool {
        self.parts.get(part).is_some_and(|own| own.taken)
    }

    /// The most pods of a part that could sit, wherever.
    pub(super) fn most(&self, part: usize) -> u64 {
        match self.parts.get(part) {
            Some(own) if !own.alone.is_empty() => 1,
            _ => u64::MAX,
        }
    }

    /// A pod of the part is put on the node, or lifted.
    pub(super) fn change(&mut self, part: usize, node: NodeIx, more: bool) {
        let Some(own) = self.parts.get(part) else { return };
        for claim in &own.alone {
            step(&mut self.alone, claim, more);
        }
        for one in &own.attaches {
            step(self.attached.entry(node).or_default(), one, more);
        }
    }
}

/// Counts one more, or one less; nobody is not counted.
fn step<K: Ord + Clone>(counts: &mut BTreeMap<K, u32>, key: &K, more: bool) {
    let count = counts.entry(key.clone()).or_default();
    *count = if more { *count + 1 } else { count.saturating_sub(1) };
    if *count == 0 {
        counts.remove(key);
    }
}
