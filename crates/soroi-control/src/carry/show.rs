//! Telling people why a gang waits: on its Workloads, its PodGroup and its pods.
//!
//! What is to be told, and how often its numbers may change, is decided before; here it is only
//! kept shown.

use soroi_api::conditions::workload::reason as word;
use soroi_engine::event::Name;
use soroi_engine::reason::{NotYet, Off, PlaceProblem, Reason};

use super::{Composed, Course, Next, PODS_AT_ONCE, PartSeen, Scene, bind, commit, ready};
use crate::call::Call;
use crate::course::{Stage, Told};
use crate::intake::group::{Named, Roll, Rolls, pod_sets};
use crate::intake::pod::{UNSCHEDULABLE, without_numbers};
use crate::intake::{PodFacts, group_key};
use crate::jobs::batch;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::parsed::GroupState;
use crate::project;
use crate::project::group::{Member, Verdict};
use crate::world::store::{Known, Place};

/// Keeps the reason of a gang shown wherever its users look.
pub(super) fn reasons(scene: Scene<'_>, gang: &Composed, course: &Course, next: &mut Next) {
    let waits = matches!(course.stage, Stage::Waiting | Stage::Holding { .. });
    if let Some(told) = &course.told {
        if waits {
            next.writes.extend(scene.parts(gang).filter_map(|seen| pending(scene, gang, &seen, told)));
        }
        // Nobody has looked for places yet while members come, or their Workload is on its way: a
        // write for each of thousands would only hold up those that are still missing.
        let gathers =
            matches!(told.reason, Reason::NotYet(NotYet::MembersMissing { .. } | NotYet::WorkloadBehind));
        if !gathers {
            next.writes.extend(pods(scene, gang, told));
        }
    }
}

fn pending(scene: Scene<'_>, gang: &Composed, seen: &PartSeen<'_>, told: &Told) -> Option<Write> {
    let state = &seen.workload.facts;
    // As in Kueue, who is deactivated while it waits is evicted, unless it is still shown as evicted.
    let deactivated = told.reason == Reason::Off(Off::Deactivated) && state.facts.evicted.is_none();
    if state.facts.admitted.is_some() || (shows(seen, told) && !deactivated) {
        return None;
    }
    let mut after = state.status.clone();
    let moment = commit::moment(scene, seen.workload);
    // Who waits for others' pods is in its queue.
    let out = told.reason != Reason::NotYet(NotYet::OthersNotReady)
        && matches!(
            told.reason,
            Reason::Off(_) | Reason::BackingOff { .. } | Reason::Queue(_) | Reason::NotYet(_)
        );
    if let Some(word) = commit::requeue_word(&after.conditions).filter(|_| !out) {
        project::status::requeue(&mut after, word, moment);
    }
    let sets = scene.world.charged(&state.facts.pod_sets);
    project::status::pending(&mut after, told.word, &told.message, &sets, moment);
    if deactivated {
        let cause = scene.world.deactivation(&gang.parts);
        let (reason, message) = cause.unwrap_or_else(|| (word::DEACTIVATED.into(), told.message.clone()));
        project::status::evict(&mut after, &reason, &message, moment);
    }
    if ready::is_followed(gang, seen) {
        project::status::pods_ready(&mut after, false, moment);
    }
    batch::status(&seen.workload.meta, &state.status, &after)
}

fn shows(seen: &PartSeen<'_>, told: &Told) -> bool {
    use soroi_api::conditions::{get, workload::QUOTA_RESERVED};
    let shown = get(&seen.workload.facts.status.conditions, QUOTA_RESERVED);
    shown.is_some_and(|shown| {
        shown.status == "False" && shown.reason == told.word && shown.message == told.message
    })
}

/// Every member that exists and has no place says why: node autoscalers look there. New numbers alone
/// are not worth a write per pod.
fn pods(scene: Scene<'_>, gang: &Composed, told: &Told) -> Vec<Write> {
    let message = of_a_member(told);
    match &gang.pod {
        Some(uid) => {
            let roll: Roll = scene.world.pods.by_uid(uid).map(|known| &known.facts).into_iter().collect();
            unschedulable(scene, &Rolls::from(&roll), &message)
        }
        None => unschedulable(scene, &scene.world.owners_roll(&gang.gang.owners, &[]), &message),
    }
}

/// Why a member without a place waits, in words about one pod.
pub(crate) fn of_a_member(told: &Told) -> String {
    match place_problem(&told.reason) {
        Some((_, problem)) => project::group::nodes_error(problem),
        None => told.message.clone(),
    }
}

/// Pods that name a PodGroup which does not exist say so.
pub(crate) fn group_missing(scene: Scene<'_>, group: &Place) -> Vec<Write> {
    let key = group_key(&group.0, &group.1);
    unschedulable(scene, &scene.world.roll_of_group(&key), &group_not_found(&group.1))
}

/// In the words of the API server, as far as a user needs them.
pub(crate) fn group_not_found(name: &str) -> String {
    format!("PodGroup \"{name}\" not found")
}

fn unschedulable(scene: Scene<'_>, members: &Rolls<'_>, message: &str) -> Vec<Write> {
    let kind = without_numbers(message);
    let untold = members.untold(&kind).filter_map(|uid| scene.world.pods.by_uid(uid));
    let patches = untold.map(|known| &known.facts).filter_map(|pod| {
        let patch = project::pod::unschedulable(pod, UNSCHEDULABLE, message, scene.now)?;
        Some(Write { target: bind::pod_target(&pod.pod), call: Call::JsonStatus(patch) })
    });
    patches.take(PODS_AT_ONCE).collect()
}

/// The status of a PodGroup, in phases and words of Volcano, and the text for an event if it cannot
/// start. `course`: that of its gang, while it is one.
pub(crate) fn group(
    scene: Scene<'_>,
    known: &Known<GroupState>,
    course: Option<&Course>,
) -> (Option<Write>, Option<String>) {
    let group = &known.facts.facts;
    let feeders = scene.world.feeding(group);
    let placed = |pod: &PodFacts| course.is_some_and(|course| course.binds.contains_key(&pod.pod.uid));
    let pods = scene.world.group_members(group, &feeders);
    let stage = course.map_or(&Stage::Waiting, |course| &course.stage);
    let gone = scene.world.done_and_gone(group);
    let mut members: Vec<Member> = pods.iter().map(|pod| Member::of(pod, placed(pod))).collect();
    let least = group.min_member;
    let scheduled = || pods.iter().zip(&members).filter(|(_, member)| member.is_scheduled());
    // Pods beyond the minimum may wait for room; the group is ready all the same (Volcano's gang
    // plugin judges only groups that are not).
    let counted = scheduled().map(|(pod, _)| (pod.pod.role.as_ref(), 1)).chain(gone.by_role());
    let ready = scheduled().next().is_some() && group.minima().are_met(counted);
    for (role, count) in gone.by_role() {
        members.extend((0..count).map(|_| Member::gone(role.cloned())));
    }
    let verdict = match (course.and_then(|course| course.told.as_ref()), stage) {
        (Some(_), Stage::Admitted { .. }) if ready => Verdict::Ready,
        (Some(told), Stage::Waiting | Stage::Holding { .. }) if members.is_empty() => {
            Verdict::Other(&told.message)
        }
        (Some(told), _) => {
            let members = scene.world.group_roll(group, &feeders);
            verdict(told, &members, &scene.world.named(group, None))
        }
        (None, Stage::Admitted { settled: true, .. }) => Verdict::Ready,
        // Without pods there is no gang that could be told anything.
        (None, _) if members.is_empty() => Verdict::TooFewPods,
        _ => Verdict::Underway,
    };
    let admitted = matches!(stage, Stage::Admitted { .. });
    let before = &known.facts.status;
    let uid = &known.meta.uid;
    let (after, event) =
        project::group::status(uid, least, &members, admitted, &verdict, Some(before), scene.now);
    let patch = project::status_patch(Some(&known.meta.version), Some(before), &after);
    let target = Target::new(Kind::PodGroup, &known.meta.namespace, &known.meta.name);
    (patch.map(|patch| Write { target, call: Call::Merge(patch) }), event)
}

fn verdict<'a>(told: &'a Told, members: &Rolls<'_>, named: &[Named]) -> Verdict<'a> {
    match (&told.reason, place_problem(&told.reason)) {
        (_, Some((set, problem))) => {
            let sets = pod_sets(members, named);
            let of_name = sets.into_iter().find(|one| one.name == *set);
            Verdict::NoPlace(of_name.and_then(|set| set.role), problem)
        }
        (Reason::NotYet(NotYet::MembersMissing(lack)), _) if lack.role.is_some() => Verdict::TooFewPodsOfRole,
        (Reason::NotYet(NotYet::MembersMissing(_)), _) => Verdict::TooFewPods,
        _ => Verdict::Other(&told.message),
    }
}

/// What the places lack, and for which pod set, if that is the reason.
fn place_problem(reason: &Reason) -> Option<(&Name, &PlaceProblem)> {
    use soroi_engine::reason::FlavorProblem;
    match reason {
        Reason::NoPlace(sets) => sets.first().map(|(set, problem)| (set, problem)),
        Reason::NoFlavor(sets) => {
            let problems = sets.iter().flat_map(|(set, problems)| problems.iter().map(move |one| (set, one)));
            problems.into_iter().find_map(|(set, problem)| match problem {
                FlavorProblem::NoPlace { problem, .. } => Some((set, problem)),
                _ => None,
            })
        }
        _ => None,
    }
}
