//! Writing an admission down, and showing it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde_json::{Value, json};
use soroi_api::conditions::workload::reason as word;
use soroi_api::conditions::{self, workload as condition};
use soroi_api::kueue::{AdmissionCheckState, CheckState, ReclaimablePod};
use soroi_api::plan::PlanVictim;
use soroi_engine::decision::Admission;
use soroi_engine::event::{Name, PlanPhase};

use super::{Composed, Next, PartSeen, Reached, Scene, of_part, ready};
use crate::call::Call;
use crate::course::{Course, needs_plan};
use crate::draft::Draft;
use crate::intake::PlanFacts;
use crate::intake::group::{GroupPodSet, pod_sets};
use crate::jobs::batch;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::project;
use crate::project::status::Moment;
use crate::world::store::{Known, Meta};

/// Writes the admission down: as a plan where it decides places, else as the status of the gang's
/// Workloads. A single pod needs no record (its bind is one), nor does a group that only waits for
/// its turn under Volcano's queue.
pub(super) fn commit(scene: Scene<'_>, gang: &Composed, course: &Course, admission: &Admission) -> Next {
    if gang.pod.is_some() {
        return Next::reached(Reached::Committed);
    }
    if needs_plan(admission) {
        return commit_plan(scene, gang, admission);
    }
    let writes = shown(scene, gang, course, admission);
    if writes.is_empty() { Next::reached(Reached::Committed) } else { Next::write(writes) }
}

/// Writes down what is kept for a gang while its victims leave, and who these are. Where no plan is written
/// there is nothing to keep but quota: it is kept in memory, and a restart finds the victims told to leave.
pub(super) fn keep(scene: Scene<'_>, gang: &Composed, admission: &Admission, victims: &[PlanVictim]) -> Next {
    if !needs_plan(admission) {
        return Next::reached(Reached::Committed);
    }
    let target = Target::new(Kind::GangPlan, &gang.gang.namespace, &gang.gang.id);
    let wanted = || {
        let of = crate::project::plan::PlanOf { victims, ..scene.plan_of(gang) };
        json!(project::plan::plan(&of, admission, PlanPhase::Holding, scene.now))
    };
    let kept = |plan: &PlanFacts| {
        plan.plan.phase == PlanPhase::Holding && plan.plan.admission == *admission && plan.victims == victims
    };
    match scene.plan(gang) {
        None => Next::write(vec![Write { target, call: Call::Create(wanted()) }]),
        Some(known) if known.meta.terminating && !scene.any_there(gang) => {
            Next::write(batch::let_go(&known.meta, Kind::GangPlan, FINALIZER).into_iter().collect())
        }
        Some(known) if kept(&known.facts) => Next::reached(Reached::Committed),
        Some(known) => {
            let call = Call::Replace(with_version(wanted(), &known.meta));
            Next::write(vec![Write { target, call }])
        }
    }
}

fn commit_plan(scene: Scene<'_>, gang: &Composed, admission: &Admission) -> Next {
    let target = Target::new(Kind::GangPlan, &gang.gang.namespace, &gang.gang.id);
    let wanted = || {
        let of = scene.plan_of(gang);
        json!(project::plan::plan(&of, admission, PlanPhase::Committed, scene.now))
    };
    match scene.plan(gang) {
        None => Next::write(vec![Write { target, call: Call::Create(wanted()) }]),
        // It is on its way out, and nothing runs under it: it makes room for a new one. Where members are
        // bound it stays in force until they are gone.
        Some(known) if known.meta.terminating && !scene.any_there(gang) => {
            Next::write(batch::let_go(&known.meta, Kind::GangPlan, FINALIZER).into_iter().collect())
        }
        Some(known) if stands(&known.facts, admission) => Next::reached(Reached::Committed),
        Some(known) => {
            let call = Call::Replace(with_version(wanted(), &known.meta));
            Next::write(vec![Write { target, call }])
        }
    }
}

const FINALIZER: &str = soroi_api::labels::soroi::PLAN_FINALIZER;

/// The plan says the same and is in force.
fn stands(plan: &PlanFacts, admission: &Admission) -> bool {
    matches!(plan.plan.phase, PlanPhase::Committed | PlanPhase::Settled) && plan.plan.admission == *admission
}

fn with_version(mut object: Value, meta: &Meta) -> Value {
    object["metadata"]["resourceVersion"] = Value::from(&*meta.version);
    object["metadata"]["uid"] = Value::from(&*meta.uid);
    object
}

/// The status of the gang's Workloads follows from the admission; whatever else they say is wrong.
pub(super) fn shown(scene: Scene<'_>, gang: &Composed, course: &Course, admission: &Admission) -> Vec<Write> {
    if admission.cluster_queue.is_none() {
        return Vec::new();
    }
    let unpaid = course.unpaid(admission);
    let admission = course.without_lost(gang, admission);
    if let Some(first) = grown(scene, gang, &admission) {
        return vec![first];
    }
    let each = scene.parts(gang);
    each.filter_map(|seen| {
        let ended = ended(&seen, &unpaid);
        reserve(scene, gang, &seen, &of_part(&admission, seen.part), ended)
    })
    .collect()
}

/// What a group took in after its start, its Workload has to ask for before it can say what it got.
fn grown(scene: Scene<'_>, gang: &Composed, admission: &Admission) -> Option<Write> {
    let group = &scene.world.groups.by_uid(gang.group.as_ref()?)?.facts.facts;
    let PartSeen { workload, job: None, .. } = scene.parts(gang).next()? else { return None };
    let asked = &workload.facts.facts.pod_sets;
    let asked = |name: &Name| asked.iter().find(|set| set.name == *name).map(|set| set.count);
    let more = admission.pod_sets.iter().filter(|set| asked(&set.name).is_none_or(|count| count < set.count));
    let (larger, added): (Vec<_>, Vec<_>) = more.partition(|set| asked(&set.name).is_some());
    let larger: Vec<_> = larger.into_iter().map(|set| (set.name.clone(), set.count)).collect();
    let mut new = Vec::new();
    if !added.is_empty() {
        let members = scene.world.group_roll(group, &scene.world.feeding(group));
        for kind in pod_sets(&members, &scene.world.named(group, Some(&workload.facts.facts))) {
            let got = added.iter().find(|set| set.name == kind.name);
            if let (Some(got), Some(example)) = (got, scene.world.pods.by_uid(&kind.example)) {
                let pod = super::bind::pod_target(&example.facts.pod);
                new.push((GroupPodSet { count: got.count, ..kind }, pod));
            }
        }
    }
    let target = Target::new(Kind::Workload, &workload.meta.namespace, &workload.meta.name);
    let nothing = new.is_empty() && larger.is_empty();
    (!nothing).then(|| Write { target, call: Call::Draft(Box::new(Draft::GrownWorkload { new, larger })) })
}

fn reserve(
    scene: Scene<'_>,
    gang: &Composed,
    seen: &PartSeen<'_>,
    admission: &Admission,
    ended: Option<Vec<ReclaimablePod>>,
) -> Option<Write> {
    let state = &seen.workload.facts;
    let got = admission.pod_sets.iter().flat_map(|set| set.flavors.values().cloned()).collect();
    let required = scene.world.required_checks(&state.facts, &got);
    let shown = says(seen, admission)
        && lists(&state.status.admission_checks, &required)
        && state.facts.is_admitted == state.facts.checks_ready();
    let ready = ready::of(scene, gang, seen, admission).filter(|ready| !ready::is_shown(state, *ready));
    if shown && ended.is_none() && ready.is_none() {
        return None;
    }
    let mut status = state.status.clone();
    let moment = moment(scene, seen.workload);
    if let Some(word) = requeue_word(&status.conditions) {
        project::status::requeue(&mut status, word, moment);
    }
    if !shown {
        let mut there = std::mem::take(&mut status.admission_checks);
        there.retain(|check| required.iter().any(|name| **name == *check.name));
        let missing = required.iter().filter(|name| !there.iter().any(|check| *check.name == ***name));
        let missing: Vec<_> = missing.map(|name| pending_check(name, scene.now)).collect();
        there.extend(missing);
        status.admission_checks = there;
        project::status::reserve(&mut status, admission, moment);
    }
    if let Some(ready) = ready {
        project::status::pods_ready(&mut status, ready, moment);
    }
    if let Some(ended) = ended {
        status.reclaimable_pods = ended;
    }
    batch::status(&seen.workload.meta, &state.status, &status)
}

/// The Workload lists the checks that it has to pass, and no others.
fn lists(there: &[AdmissionCheckState], required: &[Name]) -> bool {
    there.len() == required.len()
        && required.iter().all(|name| there.iter().any(|check| *check.name == **name))
}

/// A check that nobody has answered yet.
fn pending_check(name: &Name, now: Timestamp) -> AdmissionCheckState {
    AdmissionCheckState {
        name: name.to_string(),
        state: CheckState::Pending,
        last_transition_time: Time(now),
        message: String::new(),
        pod_set_updates: Vec::new(),
        requeue_after_seconds: None,
        retry_count: None,
    }
}

/// Pods that will not run again and whose quota is free: the Workload has to say so, if it does not
/// yet. The numbers only rise (Kueue, ReclaimablePods). A member of a group that ended well may have
/// left its place to another, which pays on.
fn ended(seen: &PartSeen<'_>, unpaid: &BTreeMap<Name, u32>) -> Option<Vec<ReclaimablePod>> {
    let said = &seen.workload.facts.status.reclaimable_pods;
    let each = seen.part.pod_sets.iter().zip(&seen.part.ended).map(|((name, set), ended)| {
        let ended = unpaid.get(set).map_or(ended, |unpaid| unpaid.min(ended));
        let said = said.iter().find(|there| *there.name == **name).map_or(0, |there| there.count);
        let count = i32::try_from(*ended).unwrap_or(i32::MAX).max(said);
        ReclaimablePod { name: name.to_string(), count }
    });
    let all: Vec<ReclaimablePod> = each.filter(|ended| ended.count > 0).collect();
    (all != *said && !all.is_empty()).then_some(all)
}

/// The word with which an evicted Workload is in its queue again, if it does not say so yet.
pub(super) fn requeue_word(shown: &[Condition]) -> Option<&'static str> {
    let out = conditions::get(shown, condition::REQUEUED).filter(|there| there.status == "False")?;
    Some(match out.reason.as_str() {
        reason if reason.starts_with(word::DEACTIVATED) => word::REACTIVATED,
        word::CLUSTER_QUEUE_STOPPED => word::CLUSTER_QUEUE_RESTARTED,
        word::LOCAL_QUEUE_STOPPED => word::LOCAL_QUEUE_RESTARTED,
        _ => word::BACKOFF_FINISHED,
    })
}

/// Whether the Workload's status shows this admission. Usage is left out: it follows from the rest.
fn says(seen: &PartSeen<'_>, admission: &Admission) -> bool {
    let state = &seen.workload.facts;
    let Some(held) = &state.facts.admitted else { return false };
    let mut sets = held.pod_sets.iter();
    let same = |set: &soroi_engine::decision::PodSetAdmission| {
        sets.next().is_some_and(|(name, count, flavors)| {
            *name == set.name
                && *count == set.count
                && *flavors == set.flavors
                && held.topology.get(name) == set.topology.as_ref()
        })
    };
    Some(&held.cluster_queue) == admission.cluster_queue.as_ref()
        && held.pod_sets.len() == admission.pod_sets.len()
        && admission.pod_sets.iter().all(same)
        && state.facts.evicted.is_none()
}

pub(super) fn moment(scene: Scene<'_>, workload: &Known<crate::parsed::WorkloadState>) -> Moment {
    scene.world.at(scene.now).of(workload.meta.generation)
}

/// The plan says so when all members are bound, and nothing else than what is in force.
pub(super) fn settle(scene: Scene<'_>, gang: &Composed, settled: bool) -> Next {
    let Some(known) = scene.plan(gang) else { return Next::default() };
    let phase = match known.facts.plan.phase {
        PlanPhase::Committed if settled => PlanPhase::Settled,
        // By a leader that was replaced before its write arrived.
        PlanPhase::Undoing => PlanPhase::Committed,
        _ => return Next::default(),
    };
    Next::write(vec![set_phase(scene, known, phase, None)])
}

/// Moves a plan to another phase.
pub(super) fn set_phase(
    scene: Scene<'_>,
    plan: &Known<PlanFacts>,
    phase: PlanPhase,
    undo: Option<soroi_api::plan::PlanUndo>,
) -> Write {
    let meta = &plan.meta;
    let body = json!({
        "metadata": { "uid": &*meta.uid, "resourceVersion": &*meta.version },
        "spec": { "leaderEpoch": scene.epoch },
        "status": project::plan::status(phase, scene.now, undo),
    });
    Write { target: Target::new(Kind::GangPlan, &meta.namespace, &meta.name), call: Call::Merge(body) }
}
