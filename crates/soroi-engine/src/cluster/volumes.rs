//! Which claim has which volume, and what that means to a pod.
//!
//! Knows claims, volumes and the limits of drivers, as they come. Must never know pods: needs ask.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Cluster, Need, NodeIx};
use crate::event::{Attached, Claim, ClaimKey, ClaimProblem, ClaimState, Event, Name, Volume};
use crate::reason::NodeProblem;

/// What is known of volumes.
#[derive(Clone, Debug, Default)]
pub(super) struct Volumes {
    claims: BTreeMap<ClaimKey, Claim>,
    volumes: BTreeMap<Name, Arc<Volume>>,
    /// By volume: the claims that name it.
    claimants: BTreeMap<Name, BTreeSet<ClaimKey>>,
    /// Per node and driver: how many volumes it attaches.
    limits: BTreeMap<Name, BTreeMap<Name, u32>>,
}

/// A claim of a pod, with what it leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mounted {
    pub(crate) key: ClaimKey,
    /// One pod at a time.
    pub(crate) alone: bool,
    pub(crate) volume: Result<Arc<Volume>, ClaimProblem>,
}

impl Mounted {
    /// What is wrong with it on every node.
    pub(crate) fn problem(&self) -> Option<NodeProblem> {
        let problem = *self.volume.as_ref().err()?;
        Some(NodeProblem::Claim { claim: self.key.name.clone(), problem })
    }
}

impl Volumes {
    pub(super) fn mounted(&self, keys: &[ClaimKey]) -> Vec<Mounted> {
        keys.iter().map(|key| self.mount(key)).collect()
    }

    fn mount(&self, key: &ClaimKey) -> Mounted {
        let claim = self.claims.get(key);
        let volume = match claim.map(|claim| &claim.state) {
            None => Err(ClaimProblem::Missing),
            Some(ClaimState::Unbound) => Err(ClaimProblem::Unbound),
            Some(ClaimState::Lost) => Err(ClaimProblem::Lost),
            Some(ClaimState::Leaving) => Err(ClaimProblem::Leaving),
            Some(ClaimState::Bound) => self.volume_of(key).ok_or(ClaimProblem::NoVolume),
        };
        Mounted { key: key.clone(), alone: claim.is_some_and(|claim| claim.alone), volume }
    }

    /// The volume that a claim names, whatever the claim's state.
    fn volume_of(&self, key: &ClaimKey) -> Option<Arc<Volume>> {
        self.volumes.get(self.claims.get(key)?.volume.as_ref()?).cloned()
    }

    fn claims_of(&self, volume: &Name) -> Vec<ClaimKey> {
        self.claimants.get(volume).into_iter().flatten().cloned().collect()
    }

    /// What the claim was before.
    fn put(&mut self, key: &ClaimKey, claim: Option<&Claim>) -> Option<Claim> {
        let before = match claim {
            Some(claim) => self.claims.insert(key.clone(), claim.clone()),
            None => self.claims.remove(key),
        };
        if let Some(volume) = before.as_ref().and_then(|before| before.volume.as_ref())
            && let Some(claimants) = self.claimants.get_mut(volume)
        {
            claimants.remove(key);
            if claimants.is_empty() {
                self.claimants.remove(volume);
            }
        }
        if let Some(volume) = claim.and_then(|claim| claim.volume.as_ref()) {
            self.claimants.entry(volume.clone()).or_default().insert(key.clone());
        }
        before
    }

    pub(super) fn discrepancies(&self, found: &mut Vec<String>) {
        let mut fresh = Self::default();
        self.claims.values().for_each(|claim| _ = fresh.put(&claim.key, Some(claim)));
        if fresh.claimants != self.claimants {
            found.push(format!("claims by volume: {:?}, recomputed {:?}", self.claimants, fresh.claimants));
        }
    }
}

impl Cluster {
    /// A claim is there, or changed; `None`: it is gone. Says whether anything changed.
    pub fn set_claim(&mut self, key: &ClaimKey, claim: Option<&Claim>) -> bool {
        let changed = self.volumes.put(key, claim).as_ref() != claim;
        if changed {
            self.volumes_changed(std::slice::from_ref(key));
        }
        changed
    }

    /// A volume is there, or changed; `None`: it is gone. Says whether anything changed.
    pub fn set_volume(&mut self, name: &Name, volume: Option<&Volume>) -> bool {
        let before = match volume {
            Some(volume) => self.volumes.volumes.insert(name.clone(), Arc::new(volume.clone())),
            None => self.volumes.volumes.remove(name),
        };
        let changed = before.as_deref() != volume;
        if changed {
            let claims = self.volumes.claims_of(name);
            self.volumes_changed(&claims);
        }
        changed
    }

    /// How many volumes of each driver a node attaches; empty: no limits. Says whether anything changed.
    pub fn set_volume_limits(&mut self, node: &Name, limits: &BTreeMap<Name, u32>) -> bool {
        let before = match limits.is_empty() {
            true => self.volumes.limits.remove(node).unwrap_or_default(),
            false => self.volumes.limits.insert(node.clone(), limits.clone()).unwrap_or_default(),
        };
        let changed = before != *limits;
        if changed {
            self.gains.forget_all();
        }
        changed
    }

    /// Pods with these claims are understood anew, and who waits for places may have some now.
    fn volumes_changed(&mut self, claims: &[ClaimKey]) {
        if self.needs.forget(claims) {
            self.gains.forget_all();
        }
    }

    /// Everything that is known of volumes, as it was told.
    pub(crate) fn volume_facts(&self) -> impl Iterator<Item = Event> {
        let claims = self.volumes.claims.values().cloned().map(Event::Claim);
        let volumes = self.volumes.volumes.values().map(|volume| Event::Volume((**volume).clone()));
        let limits = self.volumes.limits.iter();
        let limits =
            limits.map(|(node, limits)| Event::VolumeLimits { node: node.clone(), limits: limits.clone() });
        claims.chain(volumes).chain(limits)
    }

    /// Whether it matters to a pod with these claims who else has volumes: one is for one pod at a time,
    /// or of a driver that attaches so many to a node.
    pub(crate) fn shares_volumes(&self, need: &Need) -> bool {
        let counted = |one: &Mounted| one.volume.as_ref().is_ok_and(|volume| volume.attached.is_some());
        let limited = !self.volumes.limits.is_empty();
        need.mounted.iter().any(|one| one.alone || limited && counted(one))
    }

    /// Whether a volume of the pod that is for one pod at a time is mounted already, wherever.
    pub(crate) fn is_mounted(&self, need: &Need) -> bool {
        let mut alone = need.mounted.iter().filter(|one| one.alone);
        let is_known = |node: NodeIx| self.slot_of(node).facts.is_some();
        alone.any(|one| self.crowd.mounts_of(&one.key).any(is_known))
    }

    /// What is attached to each node, as far as somebody mounts it there.
    pub(crate) fn attached(&self) -> BTreeMap<NodeIx, BTreeMap<Attached, u32>> {
        let mut attached: BTreeMap<NodeIx, BTreeMap<Attached, u32>> = BTreeMap::new();
        for (key, node) in self.crowd.mounts() {
            if let Some(volume) = self.volumes.volume_of(key)
                && let Some(one) = &volume.attached
            {
                *attached.entry(node).or_default().entry(one.clone()).or_default() += 1;
            }
        }
        attached
    }

    /// The limit of a driver on a node.
    pub(crate) fn volume_limit(&self, node: NodeIx, driver: &Name) -> Option<u32> {
        self.volumes.limits.get(&self.slot_of(node).name)?.get(driver).copied()
    }
}
