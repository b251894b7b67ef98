//! Which members of a group have done their part and are gone since?
//!
//! Pods that ended well may go at any time: with their node, by garbage collection, by hand. What they
//! did still counts while the others of the same admission run. The PodGroup's status says how many
//! ended well in all, so that a restart does not forget it; between two statuses it is what was seen
//! that tells who is gone from who has ended. (Nobody sees who ends while no leader is there: as many of
//! those that were gone before are then forgotten, and the gang may leave for want of its minimum; it
//! never rests below it.) Must never know what follows from the numbers.

use std::collections::BTreeMap;

use soroi_api::volcano::PodGroupPhase::{Completed, Inqueue, Running, Unknown};
use soroi_engine::event::{Name, PodPhase};

use super::World;
use super::root::Root;
use crate::intake::{GroupFacts, PodFacts};

/// How many members of a group are done and gone, by role.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Gone(BTreeMap<Option<Name>, u32>);

impl Gone {
    /// In all.
    pub(crate) fn all(&self) -> u32 {
        self.0.values().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// By role.
    pub(crate) fn by_role(&self) -> impl Iterator<Item = (Option<&Name>, u32)> {
        self.0.iter().map(|(role, count)| (role.as_ref(), *count))
    }

    fn add(&mut self, role: Option<Name>, count: u32) {
        if count > 0 {
            let there = self.0.entry(role).or_default();
            *there = there.saturating_add(count);
        }
    }
}

impl World {
    /// Members that ended well and whose pods are gone, as long as what was admitted with them runs,
    /// and when the last of them has ended.
    pub(crate) fn done_and_gone(&self, group: &GroupFacts) -> Gone {
        let over = self.is_over(group);
        if over || self.plan(&group.namespace, &group.uid).is_some() {
            self.gone_so_far(group, self.done_and_there(group), over)
        } else {
            Gone::default()
        }
    }

    /// Whether all members of a group have ended.
    fn is_over(&self, group: &GroupFacts) -> bool {
        let members = self.roll_of_group(&group.key);
        let goes_on = |phase: PodPhase| !matches!(phase, PodPhase::Succeeded | PodPhase::Failed);
        !members.is_empty() && members.count(goes_on) == 0
    }

    /// Whether all members of an admitted group have ended and its status does not say so yet.
    pub(crate) fn has_just_ended(&self, root: &Root) -> bool {
        let Root::Group(namespace, name) = root else { return false };
        let Some(known) = self.groups.get(&(namespace.clone(), name.clone())) else { return false };
        let group = &known.facts.facts;
        group.phase != Some(Completed)
            && self.plan(&group.namespace, &group.uid).is_some()
            && self.is_over(group)
    }

    fn done_and_there(&self, group: &GroupFacts) -> u32 {
        self.roll_of_group(&group.key).count(|phase| phase == PodPhase::Succeeded)
    }

    /// What was seen, and what the status knows beyond. `there`: members that ended well and are there.
    fn gone_so_far(&self, group: &GroupFacts, there: u32, over: bool) -> Gone {
        let mut gone = self.done_and_gone.get(&group.uid).cloned().unwrap_or_default();
        let by_status = match group.phase {
            Some(Inqueue | Running | Unknown) => group.succeeded.saturating_sub(there),
            Some(Completed) if over => group.succeeded.saturating_sub(there),
            _ => 0,
        };
        let mut unknown = by_status.saturating_sub(gone.all());
        // Which role they had nobody knows any more: one that lacks members.
        let members = self.roll_of_group(&group.key);
        for (role, least) in &group.min_per_role {
            let of_role = members.by_role(|phase| phase != PodPhase::Failed);
            let of_role = of_role.filter(|(of, _)| *of == Some(role)).map(|(_, count)| count);
            let have: u32 = of_role.fold(0, u32::saturating_add);
            let known = gone.0.get(&Some(role.clone())).copied().unwrap_or(0);
            let more = least.saturating_sub(have.saturating_add(known)).min(unknown);
            gone.add(Some(role.clone()), more);
            unknown -= more;
        }
        gone.add(None, unknown);
        gone
    }

    /// A member is about to end well; or it had, and is `gone` now. What the group's status says is
    /// put by before it means something else.
    pub(super) fn note_done(&mut self, pod: &PodFacts, gone: bool) {
        let place = pod.group.clone().map(|group| (pod.pod.namespace.clone(), group));
        let Some(group) = place.and_then(|place| self.groups.get(&place)) else { return };
        let group = &group.facts.facts;
        if self.plan(&group.namespace, &group.uid).is_none() {
            return;
        }
        let there = self.done_and_there(group).saturating_add(gone.into());
        let mut now = self.gone_so_far(group, there, false);
        now.add(pod.pod.role.clone(), gone.into());
        if now != Gone::default() {
            let uid = group.uid.clone();
            self.done_and_gone.insert(uid, now);
        }
    }
}
