//! What has to be written next? Pure: from what is seen and what was decided to the next requests.
//!
//! ```text
//! Admit ──▶ commit ──▶ release ──▶ (pods appear) ──▶ bind ──▶ settled
//!                                                      │
//! Undo ───▶ record ──▶ suspend ──▶ restore ──▶ give quota back ──▶ remove the record
//! ```
//!
//! Every step is asked for as long as what is seen shows that it is missing, and no longer: after a
//! crash, a lost answer or somebody else's write the same functions say what to do next. Steps that
//! may be taken at once are returned together; a step that needs an earlier one to stand is not
//! returned before that is seen.
//!
//! Knows the protocol (ARCHITECTURE.md, "Carrying it out"). Must never know how a request is sent or when it is tried again.

use std::collections::BTreeMap;

use jiff::Timestamp;
use soroi_api::plan::GangRef;
use soroi_engine::decision::Admission;
use soroi_engine::event::{Name, PodUid};

use crate::course::{Course, Stage};
use crate::intake::{JobFacts, PlanFacts, group};
use crate::lanes::Write;
use crate::parsed::WorkloadState;
use crate::project::plan::PlanOf;
use crate::world::World;
use crate::world::gang::{Composed, Part};
use crate::world::store::Known;

/// Requests about single pods that are prepared at one look: more than can be under way at once,
/// and few enough that a gang of thousands is not gone through at every answer.
pub(crate) const PODS_AT_ONCE: usize = 128;
/// While so many requests wait in a gang's lane, nobody has to look for more when one about a single pod
/// was answered: enough to send until somebody does.
pub(crate) const PODS_ENOUGH: usize = 32;

mod bind;
pub(crate) use bind::pod_target;
mod commit;
pub(crate) mod orphan;
mod ready;
mod release;
pub(crate) mod show;
mod undo;

/// What a step may look at.
#[derive(Clone, Copy)]
pub(crate) struct Scene<'a> {
    pub(crate) world: &'a World,
    pub(crate) now: Timestamp,
    /// The epoch of this leadership.
    pub(crate) epoch: i64,
}

/// What follows for a gang.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Next {
    /// Requests that may be sent now, the most important one first.
    pub(crate) writes: Vec<Write>,
    /// What is seen to stand.
    pub(crate) reached: Option<Reached>,
    /// [`Course::pins`] as they are from now on.
    pub(crate) pins: BTreeMap<PodUid, Vec<Name>>,
}

/// A step that is seen to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reached {
    /// The admission is written down.
    Committed,
    /// The admission is taken back; only the record is left.
    Undone,
    /// Some of what was taken back is seen again.
    Relapsed,
    /// Nothing of an earlier admission is left.
    Clean,
}

impl Next {
    fn write(writes: Vec<Write>) -> Self {
        Self { writes, ..Self::default() }
    }

    fn reached(step: Reached) -> Self {
        Self { reached: Some(step), ..Self::default() }
    }
}

/// A Workload of a gang with its Job, as they are seen.
pub(crate) struct PartSeen<'a> {
    part: &'a Part,
    workload: &'a Known<WorkloadState>,
    job: Option<&'a JobFacts>,
}

impl<'a> Scene<'a> {
    /// The gang's plan.
    fn plan(&self, gang: &Composed) -> Option<&'a Known<PlanFacts>> {
        self.world.plan(&gang.gang.namespace, &gang.gang.id)
    }

    /// Whether any of the gang's members still takes its place on a node.
    fn any_there(&self, gang: &Composed) -> bool {
        self.world.owners_roll(&gang.gang.owners, &[]).any_there()
    }

    /// The gang's Workloads. One that was deleted meanwhile is left out.
    fn parts(&self, gang: &'a Composed) -> impl Iterator<Item = PartSeen<'a>> {
        let world = self.world;
        gang.parts.iter().filter_map(move |part| {
            let workload = world.workloads.by_uid(&part.workload)?;
            let job = part.job.as_ref().and_then(|uid| world.jobs.by_uid(uid));
            Some(PartSeen { part, workload, job: job.map(|known| &known.facts) })
        })
    }

    /// Whose plan it is.
    fn plan_of(&self, gang: &'a Composed) -> PlanOf<'a> {
        let (kind, api_version) = gang.stands_for();
        PlanOf {
            gang: GangRef {
                kind: kind.into(),
                namespace: gang.gang.namespace.to_string(),
                name: gang.gang.name.to_string(),
                uid: gang.gang.id.to_string(),
            },
            api_version,
            owners: &gang.gang.owners,
            leader_epoch: self.epoch,
            local_queue: gang.gang.local_queue.as_deref(),
            volcano_queue: gang.gang.volcano_queue.as_deref(),
            min_members: gang.gang.minima.as_ref().map(|minima| minima.members),
            shapes: self.shapes(gang),
            victims: &[],
        }
    }

    /// By pod set of a PodGroup of pods: the fingerprint of the shape that it was decided for.
    fn shapes(&self, gang: &Composed) -> BTreeMap<Name, Name> {
        let of_jobs = gang.parts.iter().any(|part| part.job.is_some());
        let sets = gang.gang.pod_sets.iter().filter(|_| gang.group.is_some() && !of_jobs);
        let now = sets.map(|set| (set.name.clone(), group::fingerprint(&set.shape)));
        let before = self.plan(gang).into_iter().flat_map(|known| known.facts.named.iter().cloned());
        now.chain(before).collect()
    }
}

/// What has to be written next for a gang.
pub(crate) fn next(scene: Scene<'_>, gang: &Composed, course: &Course) -> Next {
    let mut next = match &course.stage {
        Stage::Waiting => waiting(scene, gang),
        Stage::Admitted { admission, committed: false, .. } => commit::commit(scene, gang, course, admission),
        Stage::Admitted { admission, committed: true, settled } => {
            let mut next = commit::settle(scene, gang, *settled);
            next.writes.extend(bind::binds(scene, course));
            next.writes.extend(release::releases(scene, gang, admission));
            next.writes.extend(commit::shown(scene, gang, course, admission));
            bind::ungate(scene, gang, admission, course, &mut next);
            next
        }
        Stage::Holding { admission, victims, written: false } => {
            commit::keep(scene, gang, admission, victims)
        }
        Stage::Holding { written: true, .. } => Next::default(),
        Stage::Leaving { undo, undone: false } => undo::undo(scene, gang, undo),
        Stage::Leaving { undone: true, .. } => undo::finish(scene, gang),
    };
    show::reasons(scene, gang, course, &mut next);
    next
}

/// Nothing was decided: nothing may run.
fn waiting(scene: Scene<'_>, gang: &Composed) -> Next {
    let held = scene.plan(gang).is_some()
        || scene.parts(gang).any(|seen| seen.workload.facts.facts.admitted.is_some());
    if held {
        return Next::default();
    }
    let jobs = scene.parts(gang).filter_map(|seen| seen.job);
    Next::write(jobs.flat_map(crate::jobs::batch::suspended).collect())
}

/// The share of an admission that one Workload shows, under its own names.
fn of_part(admission: &Admission, part: &Part) -> Admission {
    let sets = part.pod_sets.iter().filter_map(|(own, in_gang)| {
        let set = admission.pod_sets.iter().find(|set| set.name == *in_gang)?;
        Some(soroi_engine::decision::PodSetAdmission { name: own.clone(), ..set.clone() })
    });
    Admission { pod_sets: sets.collect(), ..admission.clone() }
}

/// The name that a pod set of the gang has in its Workload.
fn own_name<'a>(part: &'a Part, in_gang: &Name) -> Option<&'a Name> {
    part.pod_sets.iter().find(|(_, name)| name == in_gang).map(|(own, _)| own)
}
