//! What may the product never write, whatever it knows? Asked of each of its writes, as it takes effect.
//!
//! - No pod of a Job that goes on is deleted or evicted.
//! - Nothing is written before the process has read everything, nor outside its term.
//! - A gang's first member is bound when enough members were there for all, under a plan that says so, and
//!   each where the plan says.
//! - A Job is released when its plan stands (Unified).
//!
//! A leader that slept may send what it was about to as it wakes ([`super::late`]); nothing else is excused.
//! Knows requests and the API's objects. Must never ask the product.

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::seeing::target;
use super::{Limits, late, lead};
use crate::kind;
use crate::scenario::Placement;
use crate::wire::sight::{Sender, Sight, What};
use crate::world::{GangView, World, gangs_of_pod, is_true, text};

/// Lease and the longest request: a leader that has not renewed for so long writes no more.
const TERM_MAX: SignedDuration = SignedDuration::from_secs(20);

/// The longest that a request is on its way.
const ON_ITS_WAY_MAX: SignedDuration = SignedDuration::from_secs(5);

/// What is wrong with a write.
pub(super) fn check(world: &mut World, sight: &Sight, now: Timestamp, limits: &Limits) -> Vec<String> {
    let What::Wrote { method, body } = &sight.what else { return Vec::new() };
    let path = sight.path.as_str();
    if path.contains("/leases") || late::may_be_sent_late(world, now) {
        return Vec::new();
    }
    let mut wrong = Vec::new();
    if !world.seeing.has_read(&sight.sender) {
        wrong.push(format!("{method} {path} was sent before everything was read"));
    }
    wrong.extend(outside_its_term(world, &sight.sender, path, now));
    wrong.extend(robbed(world, method, path));
    if limits.placement.all_or_nothing() && path.ends_with("/binding") {
        wrong.extend(bound(world, path, body, now, limits));
    }
    if limits.placement == Placement::Unified && *method == Method::PATCH && releases(body) {
        wrong.extend(released(world, path, now));
    }
    wrong
}

/// Whoever writes holds the lease, where there is an election.
fn outside_its_term(world: &World, sender: &Sender, path: &str, now: Timestamp) -> Option<String> {
    let mut leases = world.all(kind::LEASE).filter(|_| !sender.who.is_empty());
    let lease = leases.find(|lease| lease["metadata"]["name"] == lead::NAME)?;
    let holder = text(&lease["spec"]["holderIdentity"]);
    let own = format!("{}_{}", sender.who, sender.number);
    let held = world.renewed.is_some_and(|at| now.duration_since(at) <= TERM_MAX);
    (holder != own || !held).then(|| format!("{own} wrote {path} outside its term; {holder} holds the lease"))
}

/// Nobody deletes a pod of a Job that goes on: it would count as failed.
fn robbed(world: &World, method: &Method, path: &str) -> Option<String> {
    let (key, subresource) = target(path).filter(|(key, _)| key.0 == kind::POD)?;
    if *method != Method::DELETE && subresource != "eviction" {
        return None;
    }
    let pod = world.get(kind::POD, &key.1, &key.2)?;
    let owner = pod["metadata"]["ownerReferences"].as_array()?.iter().find(|owner| owner["kind"] == "Job")?;
    let job = world.get(kind::JOB, &key.1, text(&owner["name"]))?;
    let same = job["metadata"]["uid"] == owner["uid"];
    let over = is_true(job, "Complete") || is_true(job, "Failed");
    let going = !job["metadata"]["deletionTimestamp"].is_null();
    (same && !over && !going).then(|| format!("pod {} of a Job that goes on was deleted", key.2))
}

/// Whether a patch lets a Job run.
fn releases(body: &Value) -> bool {
    let step =
        |step: &Value| step["op"] != "test" && step["path"] == "/spec/suspend" && step["value"] == false;
    match body {
        Value::Array(steps) => steps.iter().any(step),
        merge => merge["spec"]["suspend"] == false,
    }
}

/// A Job is released under a plan that is in force, or was when the request was sent: an undo that begins
/// meanwhile suspends it again. One that fails is let go without.
fn released(world: &World, path: &str, now: Timestamp) -> Option<String> {
    let (key, _) = target(path).filter(|(key, _)| key.0 == kind::JOB)?;
    let job = world.get(kind::JOB, &key.1, &key.2)?;
    let ends = ["Complete", "Failed", "FailureTarget", "SuccessCriteriaMet"];
    if ends.iter().any(|kind| is_true(job, kind)) {
        return None;
    }
    let uid = text(&job["metadata"]["uid"]);
    let stands = |plan: &Value| match text(&plan["status"]["phase"]) {
        "Committed" | "Settled" => true,
        "Undoing" => {
            let since = world.phased.get(text(&plan["metadata"]["uid"]));
            since.is_some_and(|since| now.duration_since(*since) < ON_ITS_WAY_MAX)
        }
        _ => false,
    };
    let found = world.all(kind::GANG_PLAN).any(|plan| is_of(plan, &key.1, uid) && stands(plan));
    (!found).then(|| format!("job {} was released and no plan says so", key.2))
}

/// Whether a plan is that of the gang with these owner words: a Job's uid, or `PodGroup`'s key.
fn is_of(plan: &Value, namespace: &str, owner: &str) -> bool {
    plan["metadata"]["namespace"] == namespace
        && plan["spec"]["owners"].as_array().is_some_and(|owners| owners.iter().any(|one| one == owner))
}

/// The plan under which a pod may be bound.
fn plan_of<'a>(world: &'a World, pod: &Value) -> Option<&'a Value> {
    let namespace = text(&pod["metadata"]["namespace"]);
    let group = pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"].as_str();
    let owners = pod["metadata"]["ownerReferences"].as_array();
    let job = owners.and_then(|owners| owners.iter().find(|owner| owner["kind"] == "Job"));
    world.all(kind::GANG_PLAN).find(|plan| {
        let by_job = job.is_some_and(|job| is_of(plan, namespace, text(&job["uid"])));
        let by_group = group.is_some_and(|name| {
            let here = plan["metadata"]["namespace"] == namespace;
            let own = plan["spec"]["gang"]["kind"] == "PodGroup" && plan["spec"]["gang"]["name"] == name;
            let of_it =
                |owner: &Value| owner.as_str().is_some_and(|text| text.ends_with(&format!("/{name}")));
            here && (own || plan["spec"]["owners"].as_array().is_some_and(|all| all.iter().any(of_it)))
        });
        by_job || by_group
    })
}

/// A member is bound under a plan, to a node that it names; the first one when enough were there for all.
fn bound(world: &mut World, path: &str, body: &Value, now: Timestamp, limits: &Limits) -> Vec<String> {
    let Some((key, _)) = target(path) else { return Vec::new() };
    let Some(pod) = world.get(kind::POD, &key.1, &key.2).cloned() else { return Vec::new() };
    let Some(gang) = gangs_of_pod(&pod).into_iter().next() else { return Vec::new() };
    let Some(plan) = plan_of(world, &pod) else {
        let asked = limits.placement == Placement::Unified;
        let wrong = asked.then(|| format!("pod {} was bound and no plan says so", key.2));
        return wrong.into_iter().collect();
    };
    let mut wrong = Vec::new();
    let node = text(&body["target"]["name"]);
    if !nodes(plan).any(|name| name == node) {
        wrong.push(format!("pod {} was bound to {node}, of which its plan knows nothing", key.2));
    }
    let uid = text(&plan["metadata"]["uid"]).to_owned();
    if world.begun.insert(uid) && !has_members(&world.gang(&gang)) {
        let (have, need) = (world.lately.members(&gang), world.lately.minimum(&gang, now));
        if have < need {
            wrong.push(format!("gang {} was begun with {have} of {need} members there", gang.name));
        }
    }
    wrong
}

/// Members that run, or have run to their end.
fn has_members(view: &GangView<'_>) -> bool {
    !view.bound().is_empty() || view.succeeded() > 0
}

/// The nodes that a plan names.
fn nodes(plan: &Value) -> impl Iterator<Item = String> {
    let sets = plan["spec"]["podSets"].as_array().into_iter().flatten();
    let groups = sets.flat_map(|set| set["nodes"].as_array().into_iter().flatten());
    groups.flat_map(|group| {
        let roots = group["roots"].as_array().into_iter().flatten();
        roots.map(|root| format!("{}{}{}", text(&group["prefix"]), text(root), text(&group["suffix"])))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn patches_of_both_kinds_are_seen_to_release() {
        assert!(releases(&json!({"spec": {"suspend": false}})));
        assert!(!releases(&json!({"spec": {"suspend": true}})));
        let suspended = json!({"op": "test", "path": "/spec/suspend", "value": true});
        assert!(releases(&json!([suspended, {"op": "replace", "path": "/spec/suspend", "value": false}])));
        assert!(!releases(&json!([suspended, {"op": "replace", "path": "/spec/parallelism", "value": 1}])));
    }

    #[test]
    fn the_nodes_of_a_plan_are_read_from_their_columns() {
        let plan = json!({"spec": {"podSets": [
            {"nodes": [{"prefix": "w", "roots": ["1", "12"], "suffix": "-a", "pods": 2}]},
            {"nodes": [{"roots": ["x"], "podsEach": [1]}]},
        ]}});
        assert_eq!(nodes(&plan).collect::<Vec<_>>(), ["w1-a", "w12-a", "x"]);
    }
}
