//! May a gang be evicted for another, and does that one start then? Asked when a Workload is seen to be preempted.
//!
//! - A plan says for whom, before anybody is told (Unified).
//! - The rules of the preemptor's queue allow it: by priority in its own queue, and in others of its cohort.
//! - While nobody does anything to the cluster, who has had others evicted starts, as soon as they are gone.
//!
//! Knows plans, Workloads and queues. Must never know how victims are chosen.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Limits;
use crate::kind;
use crate::scenario::Placement;
use crate::world::{Changed, World, condition, is_true, text};

/// So long after a plan stopped naming a victim it may still be told: what was on its way arrives.
const TOLD_WITHIN: SignedDuration = SignedDuration::from_secs(600);

/// What the rule remembers between changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evicted {
    /// By uid of a gang's object: the plan that names it as a victim.
    named: BTreeMap<String, Named>,
    /// By uid of a plan in phase Holding: since when it is there.
    holding: BTreeMap<String, Timestamp>,
}

/// A plan that names a victim.
#[derive(Clone, Debug)]
struct Named {
    /// The preemptor's queue.
    queue: String,
    /// The uid of the preemptor's Workload or PodGroup.
    by: String,
    /// Until when it did; `None`: it does.
    until: Option<Timestamp>,
}

/// What is wrong with what changed.
pub(super) fn check(world: &mut World, changed: &[Changed], now: Timestamp, limits: &Limits) -> Vec<String> {
    let mut evicted = std::mem::take(&mut world.evicted);
    let mut wrong = Vec::new();
    for Changed { key, before } in changed {
        let object = world.get(key.0, &key.1, &key.2);
        match key.0 {
            kind::GANG_PLAN => wrong.extend(evicted.plan(world, object, before.as_ref(), now)),
            kind::WORKLOAD if limits.placement == Placement::Unified => {
                let was = before.as_ref().is_some_and(is_preempted);
                if let Some(workload) = object.filter(|workload| is_preempted(workload) && !was) {
                    wrong.extend(evicted.told(world, workload));
                }
            }
            _ => {}
        }
    }
    evicted.named.retain(|_, named| named.until.is_none_or(|until| now.duration_since(until) < TOLD_WITHIN));
    world.evicted = evicted;
    wrong
}

fn is_preempted(workload: &Value) -> bool {
    is_true(workload, "Evicted")
        && condition(workload, "Evicted").is_some_and(|evicted| evicted["reason"] == "Preempted")
}

fn holds(plan: &Value) -> bool {
    plan["status"]["phase"] == "Holding"
}

fn victims(plan: &Value) -> impl Iterator<Item = &Value> {
    plan["spec"]["victims"].as_array().into_iter().flatten()
}

impl Evicted {
    /// Notes how a plan is; `None`: it is gone.
    fn plan(
        &mut self,
        world: &World,
        plan: Option<&Value>,
        before: Option<&Value>,
        now: Timestamp,
    ) -> Option<String> {
        let is = plan.filter(|plan| holds(plan));
        let was = before.filter(|before| holds(before));
        for victim in was.into_iter().flat_map(victims) {
            if let Some(named) = self.named.get_mut(text(&victim["uid"])) {
                named.until = Some(now);
            }
        }
        if let Some(plan) = is {
            let (queue, by) = (&plan["spec"]["clusterQueue"], &plan["spec"]["gang"]["uid"]);
            for victim in victims(plan) {
                let (queue, by) = (text(queue).to_owned(), text(by).to_owned());
                self.named.insert(text(&victim["uid"]).to_owned(), Named { queue, by, until: None });
            }
            self.holding.entry(text(&plan["metadata"]["uid"]).to_owned()).or_insert(now);
            return None;
        }
        let was = was?;
        let began = self.holding.remove(text(&was["metadata"]["uid"]))?;
        let starts = plan.is_some_and(|plan| {
            let stays = plan["metadata"]["deletionTimestamp"].is_null();
            stays && matches!(text(&plan["status"]["phase"]), "Committed" | "Settled")
        });
        let undisturbed = world.is_in_lull() && world.last_deed.is_none_or(|at| at < began);
        let left: Vec<&str> = victims(was)
            .filter(|victim| workload_of(world, text(&victim["uid"])).is_some_and(is_preempted))
            .map(|victim| text(&victim["name"]))
            .collect();
        (!starts && undisturbed && !left.is_empty()).then(|| {
            let gang = text(&was["spec"]["gang"]["name"]);
            format!("{} left for {gang}, which did not start", left.join(", "))
        })
    }

    /// A Workload is told to leave for another.
    fn told(&self, world: &World, victim: &Value) -> Option<String> {
        let name = text(&victim["metadata"]["name"]);
        let owner = &victim["metadata"]["ownerReferences"][0]["uid"];
        let known = [&victim["metadata"]["uid"], owner].into_iter().find_map(|uid| self.named.get(text(uid)));
        let Some(named) = known else {
            return Some(format!("{name} was evicted for another, and no plan says for whom"));
        };
        let by = workload_of(world, &named.by)?;
        let rules = &world.get(kind::CLUSTER_QUEUE, "", &named.queue)?["spec"]["preemption"];
        let rank = |workload: &Value| workload["spec"]["priority"].as_i64().unwrap_or(0);
        let (theirs, ours) = (rank(victim), rank(by));
        let from = text(&victim["status"]["admission"]["clusterQueue"]);
        let within = from == named.queue || from.is_empty();
        let rule = match within {
            true => text(&rules["withinClusterQueue"]),
            false => text(&rules["reclaimWithinCohort"]),
        };
        let may = match rule {
            "Any" => true,
            "LowerPriority" => theirs < ours,
            "LowerOrNewerEqualPriority" => theirs <= ours,
            _ => false,
        };
        let cohort = |queue: &str| {
            world.get(kind::CLUSTER_QUEUE, "", queue).map(|queue| text(&queue["spec"]["cohortName"]))
        };
        let related = within || cohort(from).is_none() || cohort(from) == cohort(&named.queue);
        (!may || !related).then(|| {
            let for_whom = text(&by["metadata"]["name"]);
            format!(
                "{name} of {from} (priority {theirs}) was evicted for {for_whom} of {} (priority {ours}), \
                 whose queue says {rule}",
                named.queue
            )
        })
    }
}

/// The Workload of this uid, or of the PodGroup or Job of this uid.
fn workload_of<'a>(world: &'a World, uid: &str) -> Option<&'a Value> {
    let is_it = |workload: &&Value| {
        let metadata = &workload["metadata"];
        metadata["uid"] == uid || metadata["ownerReferences"][0]["uid"] == uid
    };
    world.all(kind::WORKLOAD).find(is_it)
}
