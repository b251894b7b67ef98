//! Are all pods of a Workload ready? Its condition PodsReady, which people and dashboards wait for.
//!
//! Kueue 0.18 has the condition while its `waitForPodsReady` is on (from 0.19 on the default), and
//! then on every Workload of its own, `False` before the start. Here a gang is always waited for,
//! so it is always shown, in words of Kueue. It goes with the writes that are made anyway (waiting,
//! admission, giving quota back); only what becomes of the pods later is a write of its own, one
//! per change and gang.
//!
//! Workloads whose pods somebody else starts are for them to judge.

use super::{Composed, PartSeen, Scene};
use crate::parsed::WorkloadState;
use soroi_api::conditions::{self, workload as condition};
use soroi_engine::decision::Admission;

/// Whether the Workload's pods are started by a Job or a PodGroup that we follow.
pub(super) fn is_followed(gang: &Composed, seen: &PartSeen<'_>) -> bool {
    seen.job.is_some() || gang.group.is_some()
}

/// Whether all pods of an admitted Workload are ready or have ended well; `None` if that is not
/// ours to say. `admission`: what this Workload got.
pub(super) fn of(
    scene: Scene<'_>,
    gang: &Composed,
    seen: &PartSeen<'_>,
    admission: &Admission,
) -> Option<bool> {
    if !is_followed(gang, seen) {
        return None;
    }
    let ready = match seen.job {
        Some(job) => job.pods_ready(),
        None => are_members_ready(scene, gang, admission),
    };
    Some(ready && seen.workload.facts.facts.is_admitted)
}

/// Whether the Workload shows that already.
pub(super) fn is_shown(workload: &WorkloadState, ready: bool) -> bool {
    let shown = conditions::get(&workload.status.conditions, condition::PODS_READY);
    shown.is_some_and(|shown| (shown.status == "True") == ready)
}

fn are_members_ready(scene: Scene<'_>, gang: &Composed, admission: &Admission) -> bool {
    let Some(group) = gang.group.as_ref().and_then(|uid| scene.world.groups.by_uid(uid)) else {
        return false;
    };
    let admitted = admission.pod_sets.iter().fold(0_u32, |sum, set| sum.saturating_add(set.count));
    scene.world.are_members_ready(&group.facts.facts, admitted)
}
