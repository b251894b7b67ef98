//! How long may the pods of an admitted Workload take to be ready? (Kueue, `waitForPodsReady`.)
//!
//! Reads the condition PodsReady as it stands on the Workload, whoever wrote it, so that a restart knows what
//! was known before. What is decided about those that take too long is the engine's.

use soroi_api::conditions::{self, workload as condition};
use soroi_engine::event::{Millis, PodsReady};

use super::World;
use super::gang::{Composed, Part};
use super::store::Known;
use crate::config::WaitForPodsReady;
use crate::intake::GroupFacts;
use crate::parsed::WorkloadState;

impl World {
    /// How far the pods of a gang are, where that is waited for.
    pub(super) fn pods_ready(&self, gang: &Composed) -> PodsReady {
        let Some(rules) = &self.waits else { return PodsReady::default() };
        let mut shown = !gang.parts.is_empty();
        let mut due: Option<Millis> = None;
        for part in &gang.parts {
            let Some(workload) = self.workloads.by_uid(&part.workload) else { continue };
            let conditions = &workload.facts.status.conditions;
            shown &= conditions::is_true(conditions, condition::PODS_READY);
            let late = when_due(workload, rules).filter(|_| !self.are_ready(gang, part));
            due = due.into_iter().chain(late).min();
        }
        PodsReady { shown, due }
    }

    /// Whether they are, although their Workload may not say so yet.
    fn are_ready(&self, gang: &Composed, part: &Part) -> bool {
        if let Some(job) = part.job.as_ref().and_then(|uid| self.jobs.by_uid(uid)) {
            return job.facts.pods_ready();
        }
        let Some(group) = gang.group.as_ref().and_then(|uid| self.groups.by_uid(uid)) else { return false };
        let admitted = gang.gang.admitted.iter().flat_map(|held| &held.pod_sets);
        let admitted = admitted.fold(0_u32, |sum, (_, count, _)| sum.saturating_add(*count));
        self.are_members_ready(&group.facts.facts, admitted)
    }

    /// As many members of a group as were admitted, and no fewer than its minimum, are ready or have
    /// ended well (and may be gone since), and none that runs is not.
    pub(crate) fn are_members_ready(&self, group: &GroupFacts, admitted: u32) -> bool {
        let feeders = self.feeding(group);
        let members = self.group_roll(group, &feeders);
        let gone = self.done_and_gone(group).all();
        members.well().saturating_add(gone) >= admitted.max(group.min_member) && members.all_ready()
    }

    /// Whether a Workload was put back so often that it is not put back once more.
    pub(crate) fn is_put_back_too_often(&self, parts: &[Part]) -> bool {
        let Some(limit) = self.waits.as_ref().and_then(|rules| rules.requeuing.limit) else { return false };
        let workloads = parts.iter().filter_map(|part| self.workloads.by_uid(&part.workload));
        let counts = workloads.map(|known| {
            let state = known.facts.status.requeue_state.as_ref();
            state.and_then(|state| state.count).and_then(|count| u32::try_from(count).ok()).unwrap_or(0)
        });
        counts.max().unwrap_or(0) >= limit
    }

    /// Whether who was not ready in time is put behind those who came after it.
    pub(crate) fn puts_to_the_back(&self) -> bool {
        self.waits.as_ref().is_none_or(|rules| rules.requeuing.to_the_back)
    }
}

/// When the pods of an admitted Workload have to be ready: of one that starts, counted from its admission; of one
/// that was ready once, since it is not (Kueue 0.18, `admittedNotReadyWorkload`).
fn when_due(workload: &Known<WorkloadState>, rules: &WaitForPodsReady) -> Option<Millis> {
    let shown = &workload.facts.status.conditions;
    let since = |kind: &str, holds: &str| {
        let shown = conditions::get(shown, kind).filter(|shown| shown.status == holds)?;
        Some((shown.last_transition_time.0.as_millisecond(), shown.reason.as_str()))
    };
    let (admitted_at, _) = since(condition::ADMITTED, "True")?;
    if since(condition::PODS_READY, "True").is_some() || since(condition::EVICTED, "True").is_some() {
        return None;
    }
    match since(condition::PODS_READY, "False") {
        Some((lost_at, condition::reason::WAIT_FOR_RECOVERY)) => {
            Some(lost_at.saturating_add(rules.recovery_timeout?))
        }
        _ => Some(admitted_at.saturating_add(rules.timeout)),
    }
}

#[cfg(test)]
mod tests;
