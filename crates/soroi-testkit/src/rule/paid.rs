//! Invariant 4 as far as the API shows it: who gets quota finds it free.
//!
//! When a Workload is seen to get quota, all that is held of its queue (or of the whole cohort) must be
//! within what that has. A gang holds what its Workloads show; one that has given it back still holds
//! what its pods on nodes need. What there is, is the most that there was since it was decided, or shortly
//! before that: who has a plan was decided when that was first seen. Not asked shortly after a leader woke,
//! whose late write may show a decision that is taken back (ARCHITECTURE.md, "The protocol, checked").
//!
//! Counts GPUs, as drawn stories do. On purpose no code of the product.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::lately::{in_force, lately};
use crate::kind;
use crate::world::{Changed, GangView, World, amount, amounts, has_ended, is_true, pod_requests, text};

const GPU: &str = "example.com/gpu";
/// How long a late write may be seen for a decision.
const AWAKE: SignedDuration = SignedDuration::from_secs(60);

/// What of quota the rule remembers between changes.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paid {
    /// Uids of Workloads that held quota when they were last seen.
    holding: BTreeSet<String>,
    /// What each queue had, and from when.
    had: BTreeMap<String, Vec<(Timestamp, i64)>>,
    /// By namespace and Workload: since when there is a plan.
    planned: BTreeMap<(String, String), Timestamp>,
}

impl Paid {
    /// The most that a queue had since then.
    fn most(&self, queue: &str, since: Timestamp) -> i64 {
        let known = self.had.get(queue).map(Vec::as_slice).unwrap_or_default();
        in_force(known, since).max().unwrap_or(0)
    }

    fn plan(&mut self, plan: Option<&Value>, before: Option<&Value>, now: Timestamp) {
        let Some(any) = plan.or(before) else { return };
        let gang = &any["spec"]["gang"];
        let key = (text(&gang["namespace"]).to_owned(), text(&gang["name"]).to_owned());
        match plan {
            Some(_) => _ = self.planned.entry(key).or_insert(now),
            None => _ = self.planned.remove(&key),
        }
    }
}

/// Looks at what changed.
pub(super) fn check(world: &mut World, changed: &[Changed], now: Timestamp) -> Vec<String> {
    let mut paid = std::mem::take(&mut world.paid);
    for Changed { key, before } in changed {
        let object = world.get(key.0, &key.1, &key.2);
        match key.0 {
            kind::CLUSTER_QUEUE => {
                let has = object.map_or(0, nominal);
                let had = paid.had.entry(key.2.clone()).or_default();
                if had.last().is_none_or(|(_, last)| *last != has) {
                    had.push((now, has));
                }
            }
            kind::GANG_PLAN => paid.plan(object, before.as_ref(), now),
            _ => {}
        }
    }
    let mut over = Vec::new();
    for Changed { key, .. } in changed.iter().filter(|changed| changed.key.0 == kind::WORKLOAD) {
        let Some(workload) = world.get(key.0, &key.1, &key.2) else { continue };
        let uid = workload["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        if !holds(workload) {
            paid.holding.remove(&uid);
        } else if paid.holding.insert(uid) {
            let decided = paid.planned.get(&(key.1.clone(), key.2.clone())).copied().unwrap_or(now);
            over.extend(overdrawn(world, &paid, workload, lately(decided)));
        }
    }
    world.paid = paid;
    let woke = |until: Timestamp| (SignedDuration::ZERO..=AWAKE).contains(&now.duration_since(until));
    if world.naps.iter().any(|nap| woke(nap.until)) { Vec::new() } else { over }
}

fn holds(workload: &Value) -> bool {
    is_true(workload, "QuotaReserved") && !is_true(workload, "Finished")
}

fn nominal(queue: &Value) -> i64 {
    let groups = queue["spec"]["resourceGroups"].as_array().into_iter().flatten();
    let flavors = groups.flat_map(|group| group["flavors"].as_array().into_iter().flatten());
    let quotas = flavors.flat_map(|flavor| flavor["resources"].as_array().into_iter().flatten());
    quotas.filter(|one| one["name"] == GPU).map(|gpu| amount(GPU, &gpu["nominalQuota"])).sum()
}

/// Whether more is held of the queue that this Workload got quota of, than there is.
fn overdrawn(world: &World, paid: &Paid, workload: &Value, since: Timestamp) -> Option<String> {
    let name = workload["status"]["admission"]["clusterQueue"].as_str()?;
    let own = world.get(kind::CLUSTER_QUEUE, "", name)?;
    let cohort = own["spec"]["cohortName"].as_str();
    let in_it = |queue: &&Value| match cohort {
        Some(_) => queue["spec"]["cohortName"].as_str() == cohort,
        None => queue["metadata"]["name"] == name,
    };
    let queues: Vec<&Value> = world.all(kind::CLUSTER_QUEUE).filter(in_it).collect();
    let names: BTreeSet<&str> =
        queues.iter().filter_map(|queue| queue["metadata"]["name"].as_str()).collect();
    let has: i64 = names.iter().map(|name| paid.most(name, since)).sum();
    let held_of = |queues: &BTreeSet<&str>| -> Vec<(String, i64)> {
        let views = world.gangs();
        let each = views.iter().map(|view| (view.gang.name.clone(), held(world, view, queues)));
        each.filter(|(_, held)| *held > 0).collect()
    };
    // A limit of what it borrows stays as long as its queue does.
    let limit = borrowing_limit(own).filter(|_| cohort.is_some());
    let alone = limit.map(|limit| {
        let most = paid.most(name, since).saturating_add(limit);
        (held_of(&BTreeSet::from([name])), most)
    });
    let all = std::iter::once((held_of(&names), has)).chain(alone);
    let mut over = all.filter(|(held, most)| held.iter().map(|(_, held)| held).sum::<i64>() > *most);
    over.next().map(|(held, most)| {
        let sum: i64 = held.iter().map(|(_, held)| held).sum();
        let each: Vec<String> = held.iter().map(|(gang, held)| format!("{gang} {held}")).collect();
        let got = &workload["metadata"]["name"];
        format!("{got} got quota of {name}, of which {sum} is held and there is {most}: {}", each.join(", "))
    })
}

fn borrowing_limit(queue: &Value) -> Option<i64> {
    let resources = queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"].as_array()?;
    let limit = &resources.iter().find(|one| one["name"] == GPU)?["borrowingLimit"];
    (!limit.is_null()).then(|| amount(GPU, limit))
}

/// What a gang holds of these queues.
fn held(world: &World, view: &GangView<'_>, queues: &BTreeSet<&str>) -> i64 {
    // What is left of one that was deleted, or has ended, holds no more than its pods do.
    let owned = |workload: &Value| {
        let owner = &workload["metadata"]["ownerReferences"][0]["uid"];
        let of_it = |object: &&&Value| object["metadata"]["uid"] == *owner;
        let goes_on = |object: &Value| !is_true(object, "Complete") && !is_true(object, "Failed");
        view.jobs.iter().chain(&view.group).find(of_it).is_some_and(|object| goes_on(object))
    };
    // Who has done his part has given his share back, before the Workload says so.
    let most = match view.group {
        Some(_) => view.pods.iter().filter(|pod| !has_ended(pod)).count(),
        None => view.minimum(),
    };
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let holding: Vec<&Value> =
        view.workloads.iter().copied().filter(|one| holds(one) && owned(one)).collect();
    if !holding.is_empty() {
        return holding.iter().map(|one| shown(one, queues, most)).sum();
    }
    let of_queue = |pod: &&&Value| {
        let labels = &pod["metadata"]["labels"];
        labels["kueue.x-k8s.io/cluster-queue"].as_str().is_some_and(|name| queues.contains(name))
            || view
                .workloads
                .iter()
                .any(|one| one["spec"]["queueName"].as_str().is_some_and(|name| queues.contains(name)))
    };
    let on_node = |pod: &&&Value| {
        let node = pod["spec"]["nodeName"].as_str().and_then(|name| world.get(kind::NODE, "", name));
        node.is_some_and(|node| is_true(node, "Ready")) && !has_ended(pod)
    };
    let pods = view.pods.iter().filter(on_node).filter(of_queue);
    pods.map(|pod| pod_requests(pod).get(GPU).copied().unwrap_or(0)).sum()
}

/// What a Workload shows that it holds: without pods that will not run again, and of each pod set no more
/// than `most`.
fn shown(workload: &Value, queues: &BTreeSet<&str>, most: i64) -> i64 {
    let admission = &workload["status"]["admission"];
    if !admission["clusterQueue"].as_str().is_some_and(|name| queues.contains(name)) {
        return 0;
    }
    let back = |name: &Value| -> i64 {
        let entries = workload["status"]["reclaimablePods"].as_array().into_iter().flatten();
        entries.filter(|entry| entry["name"] == *name).filter_map(|entry| entry["count"].as_i64()).sum()
    };
    let sets = admission["podSetAssignments"].as_array().into_iter().flatten();
    sets.map(|set| {
        let count = set["count"].as_i64().filter(|count| *count > 0).unwrap_or(1);
        let usage = amounts(&set["resourceUsage"]).get(GPU).copied().unwrap_or(0);
        usage / count * (count - back(&set["name"])).min(most).max(0)
    })
    .sum()
}
