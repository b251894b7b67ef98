//! What must hold, whatever the story? Rules over a world, read from the API alone.
//!
//! [`on_change`] holds at every moment, [`over_time`] as time passes, [`at_rest`] when nothing is
//! under way, [`leftovers`] when everything was deleted. The numbers are those of the project's
//! list of invariants. Knows the world; never the product's memory.

mod deed;
pub(crate) mod evicted;
mod gone;
mod late;
pub(crate) mod lately;
mod lead;
pub(crate) mod paid;
pub(crate) mod seat;
pub(crate) mod seeing;
pub(crate) mod vain;
mod whole;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use soroi_quantity::{Quantity, base_units, display};

use crate::kind::{self, Kind};
use crate::scenario::{Clause, Compare, Condition, Measure, Placement};
use crate::wire::sight::{Sight, What};
use crate::world::{
    Amounts, Changed, GangView, Key, State, World, amounts, gangs_of_pod, has_ended, is_true, pod_requests,
};

/// What somebody else does to a node, by binding a pod there or by taking resources away, may cross a bind
/// of the product whose watch was just cut: it cannot know.
const CROSSING_MAX: SignedDuration = SignedDuration::from_secs(30);

/// What a run allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The policy.
    pub placement: Placement,
    /// How long a gang that was whole may rest between nothing and its minimum.
    pub recovery: Duration,
    /// Extra time for what must be seen, for runs in which the product is hindered.
    pub patience: Duration,
    /// How much longer than usual a gang may be between nothing and its minimum after the last thing that
    /// met it: requests that are slow, one after the other.
    pub slack: Duration,
    /// Watches may be cut, so that binds of others are seen late.
    pub stale: bool,
    /// Nobody gets quota while pods of somebody else who has some are not ready (`blockAdmission`).
    pub one_gets_ready: bool,
    /// How far the product's clocks may be off: a time that it writes may be so far from the cluster's.
    pub astray: Duration,
}

/// Checks what a change may have broken; adds to the world's violations.
pub fn on_change(world: &mut World, changed: &[Changed], now: Timestamp, limits: &Limits) {
    let mut wrong = Vec::new();
    for change in changed {
        match change.key.0 {
            kind::POD => bind(world, &change.key, now, limits),
            kind::LEASE => wrong.extend(lead::check(world, change, now)),
            kind::GANG_PLAN => wrong.extend(gone::check(world, change, now)),
            _ => {}
        }
    }
    whole::on_change(world, changed, now);
    wrong.extend(paid::check(world, changed, now));
    wrong.extend(evicted::check(world, changed, now, limits));
    wrong.extend(forbidden(world));
    if changed.iter().any(|changed| changed.key.0 == kind::CLUSTER_QUEUE) {
        wrong.extend(negative_usage(world));
    }
    for violation in wrong {
        violate(world, violation);
    }
}

fn forbidden(world: &World) -> Vec<String> {
    let broken = world.forbidden.iter().filter(|condition| holds(world, condition));
    broken.map(|condition| format!("forbidden: {}", condition.text)).collect()
}

/// Checks what is seen on the product's wire, as it happens.
pub fn on_sight(world: &mut World, sight: &Sight, now: Timestamp, limits: &Limits) {
    world.seeing.note(sight, now);
    if sight.what == What::Hindered {
        for gang in seeing::gangs_of(world, &sight.path) {
            world.seeing.touch(gang, now);
        }
    }
    for violation in deed::check(world, sight, now, limits) {
        violate(world, violation);
    }
}

/// Checks what time alone may break.
pub fn over_time(world: &mut World, now: Timestamp, limits: &Limits) {
    whole::over_time(world, now, limits);
    for violation in vain::check(world, now, limits) {
        violate(world, violation);
    }
}

fn violate(world: &mut World, violation: String) {
    if !world.violations.contains(&violation) {
        world.violations.push(violation);
    }
}

/// Invariants 3 and 6: a pod is bound once, and no bind overfills a node. What somebody else puts
/// onto a node that others are just leaving is not the product's doing.
fn bind(world: &mut World, key: &Key, now: Timestamp, limits: &Limits) {
    let Some(pod) = world.get(kind::POD, &key.1, &key.2) else { return };
    let Some(node) = pod["spec"]["nodeName"].as_str().map(str::to_owned) else { return };
    let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
    match world.bound_to.get(&uid) {
        Some(first) if *first == node => return,
        Some(first) => {
            let violation = format!("pod {} was bound to {first} and then to {node}", key.2);
            return violate(world, violation);
        }
        None => {}
    }
    let ours = !is_foreign(pod) || !gangs_of_pod(pod).is_empty();
    let pod = pod.clone();
    if let Some(violation) = late::note(world, &pod, now) {
        violate(world, violation);
    }
    let over = if ours { overfull(world, &node, now, limits) } else { None };
    let bound_by_product = limits.placement.all_or_nothing() && ours && !late::is_late(world, &pod, now);
    if let Some(violation) = bound_by_product.then(|| seat::check(world, &pod, now)).flatten() {
        violate(world, violation);
    }
    world.bound_to.insert(uid, node.clone());
    if let Some(what) = over {
        violate(world, format!("the bind of pod {} overfills node {node}: {what}", key.2));
    }
}

/// What a node has too much of.
fn overfull(world: &World, node: &str, now: Timestamp, limits: &Limits) -> Option<String> {
    let room = amounts(&world.get(kind::NODE, "", node)?["status"]["allocatable"]);
    let crosses = |at: &Timestamp| now.duration_since(*at) < CROSSING_MAX;
    if limits.stale && world.shrank.get(node).is_some_and(crosses) {
        return None;
    }
    let mut used = Amounts::new();
    let here = world.all(kind::POD).filter(|pod| pod["spec"]["nodeName"] == node);
    for pod in here.filter(|pod| !matches!(pod["status"]["phase"].as_str(), Some("Succeeded" | "Failed"))) {
        if is_foreign(pod) && limits.stale && age(pod, now) < CROSSING_MAX || late::is_late(world, pod, now) {
            return None;
        }
        for (resource, amount) in pod_requests(pod) {
            let sum = used.entry(resource).or_insert(0);
            *sum = sum.saturating_add(amount);
        }
    }
    let over = used.iter().find(|(resource, used)| **used > room.get(*resource).copied().unwrap_or(0));
    over.map(|(resource, used)| {
        let room = room.get(resource).copied().unwrap_or(0);
        format!("{resource} {} of {}", display(resource, *used), display(resource, room))
    })
}

fn is_foreign(pod: &Value) -> bool {
    pod["spec"]["schedulerName"] == "default-scheduler"
}

fn age(object: &Value, now: Timestamp) -> SignedDuration {
    let created =
        object["metadata"]["creationTimestamp"].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    created.map_or(SignedDuration::MAX, |created| now.duration_since(created))
}

fn negative_usage(world: &World) -> Vec<String> {
    let mut found = Vec::new();
    for queue in world.all(kind::CLUSTER_QUEUE) {
        for (flavor, resource, amount) in usage(&queue["status"]["flavorsUsage"]) {
            if amount < 0 {
                let name = &queue["metadata"]["name"];
                found.push(format!("usage of {resource} in flavor {flavor} of queue {name} is negative"));
            }
        }
    }
    found
}

/// Whether every clause of a condition holds.
pub fn holds(world: &World, condition: &Condition) -> bool {
    condition.clauses.iter().all(|clause| clause_holds(world, clause))
}

fn clause_holds(world: &World, clause: &Clause) -> bool {
    let value = measure(world, &clause.measure);
    match clause.compare {
        Compare::Less => value < clause.bound,
        Compare::Equal => value == clause.bound,
        Compare::More => value > clause.bound,
    }
}

fn measure(world: &World, measure: &Measure) -> i64 {
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    match measure {
        Measure::Bound(gang) => count(world.gang(gang).bound().len()),
        Measure::Pods(gang) => {
            count(world.gang(gang).pods.iter().filter(|pod| !crate::world::has_ended(pod)).count())
        }
        Measure::Terminating(gang) => {
            let terminating = |pod: &&&Value| !pod["metadata"]["deletionTimestamp"].is_null();
            count(world.gang(gang).pods.iter().filter(terminating).count())
        }
        Measure::Failed(gang) => count(world.failed(gang)),
        Measure::Evictions(gang) => i64::from(world.evictions(gang)),
        Measure::Usage { queue, resource } => {
            let Some(queue) = world.get(kind::CLUSTER_QUEUE, "", queue) else { return 0 };
            let usage = usage(&queue["status"]["flavorsUsage"]);
            usage.iter().filter(|(_, name, _)| name == resource).map(|(_, _, amount)| amount).sum()
        }
    }
}

/// Flavor, resource and amount of every entry of a queue's usage.
fn usage(flavors: &Value) -> Vec<(String, String, i64)> {
    let mut found = Vec::new();
    for flavor in flavors.as_array().into_iter().flatten() {
        let name = flavor["name"].as_str().unwrap_or_default();
        for resource in flavor["resources"].as_array().into_iter().flatten() {
            let kind = resource["name"].as_str().unwrap_or_default();
            let total =
                resource["total"].as_str().map_or_else(|| resource["total"].to_string(), str::to_owned);
            let amount = total.parse::<Quantity>().map_or(0, |quantity| base_units(kind, &quantity));
            found.push((name.to_owned(), kind.to_owned(), amount));
        }
    }
    found
}

/// Whether a plan stands for pods that run on although their PodGroup was deleted: they hold their
/// quota until the last of them has ended.
fn outlives_its_group(world: &World, plan: &Value) -> bool {
    let gang = &plan["spec"]["gang"];
    let runs_on = |pod: &Value| {
        let metadata = &pod["metadata"];
        metadata["namespace"] == gang["namespace"]
            && metadata["annotations"]["scheduling.k8s.io/group-name"] == gang["name"]
            && !pod["spec"]["nodeName"].is_null()
            && !has_ended(pod)
    };
    !plan["metadata"]["deletionTimestamp"].is_null()
        && gang["kind"] == "PodGroup"
        && world.all(kind::POD).any(runs_on)
}

/// What a plan pays.
fn add_planned(sums: &mut BTreeMap<(String, String), i64>, plan: &Value) {
    for set in plan["spec"]["podSets"].as_array().into_iter().flatten() {
        let usage = amounts(&set["usage"]);
        for (resource, flavor) in set["flavors"].as_object().into_iter().flatten() {
            let flavor = flavor.as_str().unwrap_or_default().to_owned();
            let amount = usage.get(resource).copied().unwrap_or(0);
            *sums.entry((flavor, resource.clone())).or_insert(0) += amount;
        }
    }
}

/// Everything that must hold when nothing is under way.
pub fn at_rest(world: &World, limits: &Limits) -> Vec<String> {
    let mut broken = Vec::new();
    for view in world.gangs() {
        broken.extend(gang_at_rest(world, &view, limits));
    }
    broken.extend(books(world));
    broken.extend(going(world));
    broken.extend(plans(world, limits));
    broken
}

/// Whether an event says of a Job what is wrong with it: where no Workload can be made, only that can.
fn is_told_of_jobs(world: &World, view: &GangView<'_>) -> bool {
    let warns = |job: &Value, event: &Value| {
        event["type"] == "Warning" && event["involvedObject"]["uid"] == job["metadata"]["uid"]
    };
    let unheard = |job: &&Value| !world.all(kind::EVENT).any(|event| warns(job, event));
    !view.jobs.is_empty() && view.workloads.is_empty() && !view.jobs.iter().any(unheard)
}

/// Invariants 1, 2 and 7 for one gang.
fn gang_at_rest(world: &World, view: &GangView<'_>, limits: &Limits) -> Vec<String> {
    let name = &view.gang.name;
    let lack = whole::lack(world, view);
    let mut broken = Vec::new();
    if whole::over(view) {
        return broken;
    }
    if let Some(lack) =
        lack.as_ref().filter(|_| limits.placement.all_or_nothing() && !view.bound().is_empty())
    {
        broken.push(format!("gang {name} rests at {lack}"));
    }
    let holds_quota = matches!(view.state(), State::Admitted | State::Reserved);
    let placing = limits.placement == Placement::Unified && holds_quota && !view.workloads.is_empty();
    if let Some(lack) = lack.filter(|_| placing) {
        broken.push(format!("gang {name} holds quota with {lack} placed"));
    }
    if view.state() == State::Pending && view.why().is_none() && !is_told_of_jobs(world, view) {
        broken.push(format!("gang {name} waits and nothing says why"));
    }
    if view.state() == State::Admitted {
        let gated =
            |pod: &&Value| pod["spec"]["schedulingGates"].as_array().is_some_and(|gates| !gates.is_empty());
        let gated = view.pods.iter().copied().filter(gated).count();
        if gated > 0 {
            broken.push(format!("gang {name} is admitted and {gated} of its pods are still gated"));
        }
    }
    broken
}

/// Invariant 4 as far as the API shows it: what queues say is the sum of what Workloads hold.
fn books(world: &World) -> Vec<String> {
    let mut broken = Vec::new();
    for queue in world.all(kind::CLUSTER_QUEUE) {
        let name = queue["metadata"]["name"].as_str().unwrap_or_default();
        let of_queue = |workload: &&Value| {
            workload["status"]["admission"]["clusterQueue"] == name && !is_true(workload, "Finished")
        };
        let holding: Vec<&Value> = world.all(kind::WORKLOAD).filter(of_queue).collect();
        for (field, held) in [("flavorsUsage", "Admitted"), ("flavorsReservation", "QuotaReserved")] {
            let mut sums: BTreeMap<(String, String), i64> = BTreeMap::new();
            for workload in holding.iter().filter(|workload| is_true(workload, held)) {
                add_assignments(&mut sums, workload);
            }
            for plan in world.all(kind::GANG_PLAN).filter(|plan| plan["spec"]["clusterQueue"] == name) {
                if outlives_its_group(world, plan) {
                    add_planned(&mut sums, plan);
                }
            }
            let mut shown: BTreeMap<(String, String), i64> = BTreeMap::new();
            for (flavor, resource, amount) in usage(&queue["status"][field]) {
                *shown.entry((flavor, resource)).or_insert(0) += amount;
            }
            sums.retain(|_, amount| *amount != 0);
            shown.retain(|_, amount| *amount != 0);
            if sums != shown {
                let each: Vec<String> = holding.iter().map(|workload| assigned(workload)).collect();
                broken.push(format!(
                    "queue {name}: {field} shows {shown:?}, its Workloads hold {sums:?}: {}",
                    each.join(", ")
                ));
            }
        }
    }
    broken
}

/// What a Workload was given and gave back, in a line.
fn assigned(workload: &Value) -> String {
    let status = &workload["status"];
    let text = |list: &Value| {
        let each = list.as_array().into_iter().flatten();
        let each = each.map(|entry| {
            let name = entry["name"].as_str().unwrap_or_default();
            format!("{name} {}", entry["count"])
        });
        each.collect::<Vec<_>>().join(" ")
    };
    let (given, back) = (&status["admission"]["podSetAssignments"], &status["reclaimablePods"]);
    format!("{} has {} less {}", workload["metadata"]["name"], text(given), text(back))
}

/// What a Workload holds: what it was given, less the share of pods that will not run again.
fn add_assignments(sums: &mut BTreeMap<(String, String), i64>, workload: &Value) {
    let status = &workload["status"];
    let ended = |name: &Value| {
        let entries = status["reclaimablePods"].as_array().into_iter().flatten();
        entries
            .filter(|entry| entry["name"] == *name)
            .filter_map(|entry| entry["count"].as_i64())
            .sum::<i64>()
    };
    for assignment in workload["status"]["admission"]["podSetAssignments"].as_array().into_iter().flatten() {
        let usage = amounts(&assignment["resourceUsage"]);
        for (resource, flavor) in assignment["flavors"].as_object().into_iter().flatten() {
            let flavor = flavor.as_str().unwrap_or_default().to_owned();
            let count = assignment["count"].as_i64().filter(|count| *count > 0).unwrap_or(1);
            let amount = usage.get(resource).copied().unwrap_or(0);
            let amount = amount / count * (count - ended(&assignment["name"])).max(0);
            *sums.entry((flavor, resource.clone())).or_insert(0) += amount;
        }
    }
}

/// Invariant 6: nothing hangs in deletion.
fn going(world: &World) -> Vec<String> {
    let kinds: [Kind; 4] = [kind::POD, kind::JOB, kind::WORKLOAD, kind::GANG_PLAN];
    let objects = kinds.into_iter().flat_map(|kind| world.all(kind).map(move |object| (kind, object)));
    objects
        .filter(|(_, object)| !object["metadata"]["deletionTimestamp"].is_null())
        .filter(|(_, object)| !held_by_story(object) && !outlives_its_group(world, object))
        .map(|(kind, object)| {
            let metadata = &object["metadata"];
            format!(
                "{} {} is still being deleted, finalizers {}",
                kind.word, metadata["name"], metadata["finalizers"]
            )
        })
        .collect()
}

/// A finalizer of the story itself (`example.com/…`) is none of the product's business.
pub fn held_by_story(object: &Value) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Value::as_str).any(|name| name.starts_with(crate::scenario::OWN_PREFIX))
}

/// Invariant 6 for commit records: a gang that holds something has one, no other gang has.
fn plans(world: &World, limits: &Limits) -> Vec<String> {
    let mut broken = Vec::new();
    let holding = world.gangs().into_iter().filter(|view| !view.bound().is_empty()).count();
    let plans = world.all(kind::GANG_PLAN).filter(|plan| !outlives_its_group(world, plan)).count();
    if limits.placement == Placement::Unified && plans > holding {
        broken.push(format!("{plans} GangPlans for {holding} gangs that have bound pods"));
    }
    broken
}

/// What is left although every Job, PodGroup and pod was deleted.
pub fn leftovers(world: &World) -> Vec<String> {
    let mut left = Vec::new();
    for kind in [kind::WORKLOAD, kind::GANG_PLAN, kind::POD, kind::JOB, kind::POD_GROUP] {
        for object in world.all(kind).filter(|object| !held_by_story(object)) {
            left.push(format!("{} {} is left", kind.word, object["metadata"]["name"]));
        }
    }
    for queue in world.all(kind::CLUSTER_QUEUE) {
        if !queue["metadata"]["deletionTimestamp"].is_null() {
            left.push(format!("queue {} is still being deleted", queue["metadata"]["name"]));
        }
        for field in ["flavorsUsage", "flavorsReservation"] {
            for (flavor, resource, amount) in usage(&queue["status"][field]) {
                if amount != 0 {
                    let name = &queue["metadata"]["name"];
                    left.push(format!("queue {name}: {field} of {flavor}/{resource} is still {amount}"));
                }
            }
        }
    }
    left
}

#[cfg(test)]
mod tests;
