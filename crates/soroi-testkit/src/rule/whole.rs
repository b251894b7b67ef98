//! Is every gang whole or empty? As time passes: on the way from nothing to whole, and back, it may be for
//! so long between the two, counted from the last thing that met it.
//!
//! Knows members, minima and disturbances. Must never know what a gang waits for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Limits, violate};
use crate::kind;
use crate::scenario::GangRef;
use crate::world::{Changed, GangView, State, World, gangs_of_job, gangs_of_pod, gangs_of_workload};

/// How long a gang may take from its first bind to its minimum, or from its minimum to nothing.
const GATHER_MAX: Duration = Duration::from_secs(15);

/// The gangs that a change may have changed.
fn concerned(world: &World, changed: &Changed) -> BTreeSet<GangRef> {
    let (kind, namespace, name) = &changed.key;
    let now = world.get(*kind, namespace, name);
    let each = now.into_iter().chain(&changed.before);
    match *kind {
        kind::POD => each.flat_map(gangs_of_pod).collect(),
        kind::JOB => each.flat_map(gangs_of_job).collect(),
        kind::POD_GROUP => BTreeSet::from([GangRef { namespace: namespace.clone(), name: name.clone() }]),
        // A Workload is of its owner, and of the group that this one is of.
        kind::WORKLOAD => {
            let own: BTreeSet<GangRef> = each.flat_map(gangs_of_workload).collect();
            let job = |gang: &GangRef| world.get(kind::JOB, &gang.namespace, &gang.name).map(gangs_of_job);
            own.iter().filter_map(job).flatten().chain(own.iter().cloned()).collect()
        }
        _ => BTreeSet::new(),
    }
}

/// What of a pod counts as news of its gang: time counts anew from that.
fn moved(before: Option<&Value>, pod: Option<&Value>) -> bool {
    let (Some(before), Some(pod)) = (before, pod) else { return true };
    ["/spec/nodeName", "/status/phase", "/metadata/deletionTimestamp"]
        .iter()
        .any(|field| before.pointer(field) != pod.pointer(field))
}

/// Remembers since when each gang has been between nothing and its minimum.
pub(super) fn on_change(world: &mut World, changed: &[Changed], now: Timestamp) {
    for Changed { key, before } in changed.iter().filter(|changed| changed.key.0 == kind::POD) {
        let pod = world.get(key.0, &key.1, &key.2).cloned();
        world.lately.pod(before.as_ref(), pod.as_ref(), now);
        if moved(before.as_ref(), pod.as_ref()) {
            for gang in pod.as_ref().or(before.as_ref()).map(gangs_of_pod).unwrap_or_default() {
                world.seeing.touch(gang, now);
            }
        }
    }
    for gang in changed.iter().flat_map(|changed| concerned(world, changed)).collect::<BTreeSet<_>>() {
        between(world, gang, now);
    }
}

/// Notes how a gang is that something has happened to.
fn between(world: &mut World, gang: GangRef, now: Timestamp) {
    // What was deleted is judged no more, and begins anew if it is made again.
    if !world.is_gang(&gang) {
        world.between.remove(&gang);
        world.were_whole.remove(&gang);
        world.done.remove(&gang);
        return;
    }
    let mut lately = std::mem::take(&mut world.lately);
    let mut done = std::mem::take(&mut world.done);
    let view = world.gang(&gang);
    lately.gang(&view, now);
    note_done(&mut done, &view);
    let holds = !view.bound().is_empty();
    let whole = lack_of(&done, &view).is_none();
    // All-or-nothing does not concern it.
    let over = view.minimum() == 0 || over(&view);
    (world.done, world.lately) = (done, lately);
    if holds && whole {
        world.were_whole.insert(gang.clone());
    }
    // Members that are done hold nothing: without bound ones the gang is empty.
    if !holds || whole || over {
        world.between.remove(&gang);
    } else {
        world.between.entry(gang).or_insert(now);
    }
}

/// Uids of members that have done their part, by group.
type Done = BTreeMap<GangRef, BTreeSet<String>>;

/// Who of a group has done his part: what is done stays done while the others run.
fn note_done(known: &mut Done, view: &GangView<'_>) {
    if view.group.is_none() || !view.jobs.is_empty() {
        known.remove(&view.gang);
        return;
    }
    let done = known.entry(view.gang.clone()).or_default();
    if view.bound().is_empty() {
        done.clear();
    }
    let there = view.pods.iter().filter(|pod| pod["status"]["phase"] == "Succeeded");
    done.extend(there.filter_map(|pod| pod["metadata"]["uid"].as_str()).map(str::to_owned));
}

/// Bound members; where pods count on their own (a group without Jobs) also those that succeeded.
fn members(known: &Done, view: &GangView<'_>) -> usize {
    let done = if view.jobs.is_empty() { view.succeeded() } else { 0 };
    view.bound().len() + done.max(known.get(&view.gang).map_or(0, BTreeSet::len))
}

/// What a gang lacks of what makes it whole: members in all, or of a role.
pub(super) fn lack(world: &World, view: &GangView<'_>) -> Option<String> {
    lack_of(&world.done, view)
}

fn lack_of(done: &Done, view: &GangView<'_>) -> Option<String> {
    let (have, need) = (members(done, view), view.minimum());
    if have < need {
        return Some(format!("{have} of {need} members"));
    }
    view.lacking_role().map(|(role, have, need)| format!("{have} of {need} members of role {role}"))
}

/// Whether all-or-nothing does not concern the gang: it ended, or its objects are going, or another
/// scheduler places what it is made of.
pub(super) fn over(view: &GangView<'_>) -> bool {
    let going = |object: &&Value| !object["metadata"]["deletionTimestamp"].is_null();
    let objects = view.jobs.iter().chain(view.group.iter());
    let nothing_left = view.jobs.is_empty() && view.group.is_none();
    let ended = view.state() == State::Finished || view.jobs_ended();
    nothing_left || ended || view.is_of_another_scheduler() || objects.clone().any(going)
}

/// Invariant 1 as time passes: a gang rests whole or empty. Time counts from what met it last, and stands
/// while nobody is there who could see to it.
pub(super) fn over_time(world: &mut World, now: Timestamp, limits: &Limits) {
    if !world.is_seen_to(now) {
        world.seeing.shake(now);
        return;
    }
    if !limits.placement.all_or_nothing() {
        return;
    }
    let late: Vec<String> = world
        .between
        .iter()
        .filter_map(|(gang, since)| {
            let whole_before = world.were_whole.contains(gang);
            let usual = if whole_before { limits.recovery } else { GATHER_MAX };
            let allowed = SignedDuration::try_from(usual.saturating_add(limits.slack)).ok()?;
            let since = world.seeing.undisturbed(gang).max(*since);
            (now.duration_since(since) > allowed).then(|| {
                let view = world.gang(gang);
                format!("gang {} rests at {}", gang.name, lack(world, &view).unwrap_or_default())
            })
        })
        .collect();
    for violation in late {
        violate(world, violation);
    }
}
