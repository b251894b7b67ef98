//! What do the objects say? Facts that are neither nodes nor quotas nor gangs, as they came.
//!
//! Knows flavors, topologies, namespaces, the doors to queues, and pods with their owners. Never
//! decides anything: it answers what is known now, whatever the order in which it arrived.

use std::collections::{BTreeMap, BTreeSet};

use crate::event::{Flavor, GangId, Labels, LocalQueue, Millis, Name, Pod, PodPhase, PodUid, Topology};

/// The facts.
#[derive(Clone, Debug, Default)]
pub(crate) struct World {
    pub(crate) namespaces: BTreeMap<Name, Labels>,
    pub(crate) flavors: BTreeMap<Name, Flavor>,
    pub(crate) topologies: BTreeMap<Name, Topology>,
    /// By namespace and name.
    pub(crate) local_queues: BTreeMap<(Name, Name), LocalQueue>,
    pub(crate) pods: BTreeMap<PodUid, Pod>,
    /// Nodes that are not ready, or gone, and since when that is known.
    pub(crate) unready_since: BTreeMap<Name, Millis>,
    families: BTreeMap<Name, Family>,
}

/// An owner's gangs (one, unless objects contradict each other) and pods.
#[derive(Clone, Debug, Default)]
struct Family {
    gangs: BTreeSet<GangId>,
    /// Those whose objects are gone. What was made again under the same name comes before them.
    gone: BTreeSet<GangId>,
    pods: BTreeSet<PodUid>,
    /// How many of the pods take space on each node.
    nodes: BTreeMap<Name, u32>,
}

impl Family {
    /// Whose pods they are. Of several that claim them, the first by uid.
    fn head(&self) -> Option<&GangId> {
        self.gangs.first().or_else(|| self.gone.first())
    }
}

impl World {
    /// Takes in a pod. Returns what was known of it before.
    pub(crate) fn set_pod(&mut self, pod: Pod) -> Option<Pod> {
        let uid = pod.uid.clone();
        let owner = pod.owner.clone();
        let old = self.pods.insert(uid.clone(), pod);
        let old_owner = old.as_ref().and_then(|old| old.owner.clone());
        if let Some(old) = &old {
            self.leave_node(old);
        }
        if old_owner != owner {
            old_owner.iter().for_each(|owner| self.leave_family(owner, &uid));
        }
        if let Some(owner) = owner {
            let family = self.families.entry(owner).or_default();
            if let Some(node) = self.pods[&uid].occupies() {
                *family.nodes.entry(node.clone()).or_default() += 1;
            }
            family.pods.insert(uid);
        }
        old
    }

    /// Forgets a pod. Returns what was known of it.
    pub(crate) fn remove_pod(&mut self, uid: &PodUid) -> Option<Pod> {
        let old = self.pods.remove(uid)?;
        self.leave_node(&old);
        old.owner.iter().for_each(|owner| self.leave_family(owner, uid));
        Some(old)
    }

    /// Notes which owners' pods a gang counts as its members, instead of those it named before.
    pub(crate) fn set_owners(&mut self, gang: &GangId, before: &[Name], now: &[Name]) {
        for owner in before {
            if let Some(family) = self.families.get_mut(owner) {
                family.gangs.remove(gang);
                family.gone.remove(gang);
                self.forget_if_empty(owner);
            }
        }
        for owner in now {
            let family = self.families.entry(owner.clone()).or_default();
            family.gone.remove(gang);
            family.gangs.insert(gang.clone());
        }
    }

    /// The objects of a gang with these owners are gone: its members are those of whoever else
    /// claims them.
    pub(crate) fn step_back(&mut self, gang: &GangId, owners: &[Name]) {
        for owner in owners {
            if let Some(family) = self.families.get_mut(owner)
                && family.gangs.remove(gang)
            {
                family.gone.insert(gang.clone());
            }
        }
    }

    /// Gangs without objects that claim the same pods.
    pub(crate) fn gone_with(&self, owners: &[Name]) -> Vec<GangId> {
        let families = owners.iter().filter_map(|owner| self.families.get(owner));
        families.flat_map(|family| family.gone.iter().cloned()).collect()
    }

    /// The gang that a pod is a member of.
    pub(crate) fn gang_of(&self, pod: &Pod) -> Option<&GangId> {
        self.families.get(pod.owner.as_ref()?)?.head()
    }

    /// The pods that are members of the gang with these owners, in uid order.
    pub(crate) fn members<'a>(
        &'a self,
        gang: &'a GangId,
        owners: &'a [Name],
    ) -> impl Iterator<Item = &'a Pod> {
        let families = owners.iter().filter_map(|owner| self.families.get(owner));
        let ours = families.filter(move |family| family.head() == Some(gang));
        ours.flat_map(|family| &family.pods).filter_map(|uid| self.pods.get(uid))
    }

    /// The nodes on which members of the gang with these owners take space; one twice if pods of two
    /// owners do.
    pub(crate) fn nodes_of<'a>(
        &'a self,
        gang: &'a GangId,
        owners: &'a [Name],
    ) -> impl Iterator<Item = &'a Name> {
        let families = owners.iter().filter_map(|owner| self.families.get(owner));
        families.filter(move |family| family.head() == Some(gang)).flat_map(|family| family.nodes.keys())
    }

    /// A pod does not take the space that it did.
    fn leave_node(&mut self, old: &Pod) {
        let (Some(owner), Some(node)) = (&old.owner, old.occupies()) else { return };
        let Some(family) = self.families.get_mut(owner) else { return };
        if let Some(count) = family.nodes.get_mut(node) {
            *count -= 1;
            if *count == 0 {
                family.nodes.remove(node);
            }
        }
    }

    fn leave_family(&mut self, owner: &Name, uid: &PodUid) {
        if let Some(family) = self.families.get_mut(owner) {
            family.pods.remove(uid);
            self.forget_if_empty(owner);
        }
    }

    fn forget_if_empty(&mut self, owner: &Name) {
        if self.families.get(owner).is_some_and(|f| f.head().is_none() && f.pods.is_empty()) {
            self.families.remove(owner);
        }
    }
}

impl Pod {
    /// It ended, well or badly, and takes nothing any more.
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, PodPhase::Succeeded | PodPhase::Failed)
    }

    /// It runs or may run: neither ended nor on its way out.
    pub fn is_live(&self) -> bool {
        !self.is_terminal() && !self.terminating
    }

    /// It takes space on this node.
    pub(crate) fn occupies(&self) -> Option<&Name> {
        self.node.as_ref().filter(|_| !self.is_terminal())
    }
}
