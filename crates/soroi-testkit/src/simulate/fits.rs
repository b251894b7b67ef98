//! Does something wait although it fits? Counted anew from the API's objects.
//!
//! For the small world of [`super::draw`]: one flavor, which may be missing, GPUs and pod slots, cohorts of
//! one level, every queue BestEffortFIFO. What may be had by preempting gangs of lower priority in its own
//! queue is there, too, and what the queue's own quota has lent to others. On purpose no code of the engine.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde_json::Value;

use crate::kind;
use crate::rule::Limits;
use crate::scenario::{GangRef, Placement};
use crate::world::{
    Amounts, GangView, State, World, amount, amounts, condition, gangs_of_pod, has_ended, is_true,
    pod_requests, text,
};

const GPU: &str = "example.com/gpu";
const RACK: &str = "topology.example.com/rack";

/// Who waits in vain, how it would fit, and what it says itself.
pub(crate) type InVain = Vec<(GangRef, &'static str, String)>;

/// Gangs that wait although quota and places for all their members are there.
pub fn waits_in_vain(world: &World, limits: &Limits, now: Timestamp) -> Vec<String> {
    let waiting = in_vain(world, limits).into_iter();
    waiting
        .filter(|(gang, _, _)| !pauses(world, gang, now, limits))
        .map(|(gang, how, told)| format!("gang {} waits although it fits{how}; {told}", gang.name))
        .collect()
}

/// Whether the gang was put back until a time that is still to come (Kueue's `requeueState`).
pub(crate) fn pauses(world: &World, gang: &GangRef, now: Timestamp, limits: &Limits) -> bool {
    world.gang(gang).workloads.iter().any(|workload| is_put_back(workload, now, limits))
}

/// How many Workloads are put back: what waits in vain may change with it although nothing else does.
pub(crate) fn pausing(world: &World, now: Timestamp, limits: &Limits) -> usize {
    world.all(kind::WORKLOAD).filter(|workload| is_put_back(workload, now, limits)).count()
}

fn is_put_back(workload: &Value, now: Timestamp, limits: &Limits) -> bool {
    let until = workload["status"]["requeueState"]["requeueAt"].as_str();
    until
        .and_then(|until| until.parse::<Timestamp>().ok())
        .is_some_and(|until| now < until.saturating_add(limits.astray).unwrap_or(Timestamp::MAX))
}

/// Whether somebody has quota whose pods are not ready: where that keeps others from starting, they wait.
fn is_one_getting_ready(world: &World) -> bool {
    let gets_ready = |workload: &Value| {
        is_true(workload, "QuotaReserved")
            && !is_true(workload, "Finished")
            && !is_true(workload, "PodsReady")
    };
    world.all(kind::WORKLOAD).any(gets_ready)
}

/// The same, each with how it fits, and what it says itself; those who pause included.
pub(crate) fn in_vain(world: &World, limits: &Limits) -> InVain {
    let placement = limits.placement;
    let gangs = world.gangs();
    if limits.one_gets_ready && is_one_getting_ready(world) {
        return Vec::new();
    }
    // What is kept for somebody while others leave for him is not seen from here.
    if is_kept(world, &gangs) {
        return Vec::new();
    }
    // Nor is where places are kept for members to come: each takes what it needs where that does most harm.
    let to_come: i64 = gangs.iter().map(to_come).sum();
    let none = BTreeSet::new();
    let rooms_now = rooms(world, &none);
    let by_quota_alone = match placement {
        Placement::Unified => false,
        Placement::TopologyOnly => world.all(kind::TOPOLOGY).next().is_none(),
        Placement::AfterAdmission | Placement::QuotaOnly => true,
    };
    let calm = !is_somebody_leaving(world);
    let in_vain = |view: &GangView<'_>| {
        let asked = asked(world, view)?;
        let (queue, wants) = (asked.queue.as_str(), asked.wants());
        let has_places =
            |rooms: &[Room]| by_quota_alone || fits(rooms, asked.count, to_come, asked.gpus, required(view));
        if quota_left(world, queue, 0) >= wants && has_places(&rooms_now) {
            return Some("");
        }
        if !calm {
            return None;
        }
        let below = below(world, &gangs, view, queue);
        let given = below.iter().map(|victim| held_by(victim)).sum();
        let gone: BTreeSet<&GangRef> = below.iter().map(|victim| &victim.gang).collect();
        // Without borrowing, so that the rules for those who borrow do not matter.
        if !below.is_empty()
            && own_left(world, queue) + given >= wants
            && quota_left(world, queue, given) >= wants
            && has_places(&rooms(world, &gone))
        {
            return Some(" if it preempts");
        }
        let reclaims = world
            .get(kind::CLUSTER_QUEUE, "", queue)
            .is_some_and(|found| found["spec"]["preemption"]["reclaimWithinCohort"] == "Any");
        (reclaims && own_left(world, queue) >= wants && has_places(&rooms_now)).then_some(" if it reclaims")
    };
    let told = |view: &GangView<'_>| {
        let how = in_vain(view)?;
        let why = view.why().unwrap_or("nothing");
        Some((view.gang.clone(), how, format!("it says: {why}")))
    };
    gangs.iter().filter_map(told).collect()
}

/// Whether somebody has had others evicted who have not left yet.
fn is_kept(world: &World, gangs: &[GangView<'_>]) -> bool {
    let preempted = |workload: &Value| {
        is_true(workload, "Evicted")
            && condition(workload, "Evicted").is_some_and(|evicted| evicted["reason"] == "Preempted")
    };
    let stays = |view: &GangView<'_>| {
        let has_quota = view.workloads.iter().any(|workload| is_true(workload, "QuotaReserved"));
        has_quota || view.pods.iter().any(|pod| pod["spec"]["nodeName"].is_string() && !has_ended(pod))
    };
    world.all(kind::GANG_PLAN).any(|plan| plan["status"]["phase"] == "Holding")
        || gangs.iter().any(|view| view.workloads.iter().any(|one| preempted(one)) && stays(view))
}

/// Whether somebody is on his way out, or others wait for that: what comes of it is not known yet.
fn is_somebody_leaving(world: &World) -> bool {
    let on_its_way =
        |plan: &Value| matches!(text(&plan["status"]["phase"]), "Holding" | "Undoing" | "Committed");
    let leaves = |workload: &Value| is_true(workload, "Evicted") && is_true(workload, "QuotaReserved");
    let dies = |pod: &Value| !pod["metadata"]["deletionTimestamp"].is_null();
    world.all(kind::GANG_PLAN).any(on_its_way)
        || world.all(kind::WORKLOAD).any(leaves)
        || world.all(kind::POD).any(dies)
}

/// The gangs that this one may preempt in its own queue for their lower priority.
fn below<'g, 'a>(
    world: &World,
    gangs: &'g [GangView<'a>],
    view: &GangView<'_>,
    queue: &str,
) -> Vec<&'g GangView<'a>> {
    let rules = world.get(kind::CLUSTER_QUEUE, "", queue).map(|found| &found["spec"]["preemption"]);
    let may = rules.is_some_and(|rules| {
        matches!(text(&rules["withinClusterQueue"]), "LowerPriority" | "LowerOrNewerEqualPriority")
    });
    let own = priority(view);
    let is_below = |other: &&GangView<'_>| {
        let there = other.workloads.iter().all(|one| one["status"]["admission"]["clusterQueue"] == queue);
        may && other.state() == State::Admitted && there && priority(other) < own
    };
    gangs.iter().filter(is_below).collect()
}

fn priority(view: &GangView<'_>) -> i64 {
    view.workloads.iter().filter_map(|workload| workload["spec"]["priority"].as_i64()).max().unwrap_or(0)
}

fn held_by(view: &GangView<'_>) -> i64 {
    view.workloads.iter().map(|workload| used(workload)).sum()
}

/// What is free on a node that takes pods, and its rack.
struct Room {
    free: Amounts,
    rack: String,
}

/// The rooms, when these gangs are gone.
fn rooms(world: &World, gone: &BTreeSet<&GangRef>) -> Vec<Room> {
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    let stays = |pod: &&Value| gone.is_empty() || !gangs_of_pod(pod).iter().any(|gang| gone.contains(gang));
    for pod in world.all(kind::POD).filter(|pod| !has_ended(pod)).filter(stays) {
        let Some(node) = pod["spec"]["nodeName"].as_str() else { continue };
        let on_node = used.entry(node).or_default();
        for (resource, amount) in pod_requests(pod) {
            *on_node.entry(resource).or_insert(0) += amount;
        }
    }
    let taken = |node: &&Value| {
        let shut = node["spec"]["unschedulable"] == true
            || node["spec"]["taints"].as_array().is_some_and(|taints| !taints.is_empty());
        !shut && is_true(node, "Ready") && node["metadata"]["deletionTimestamp"].is_null()
    };
    let room = |node: &Value| {
        let mut free = amounts(&node["status"]["allocatable"]);
        for (resource, amount) in used.get(node["metadata"]["name"].as_str()?).into_iter().flatten() {
            *free.entry(resource.clone()).or_insert(0) -= amount;
        }
        let rack = node["metadata"]["labels"][RACK].as_str().unwrap_or_default().to_owned();
        Some(Room { free, rack })
    };
    world.all(kind::NODE).filter(taken).filter_map(room).collect()
}

/// The level that all members must share, if any.
fn required<'a>(view: &GangView<'a>) -> Option<&'a str> {
    let job = view.jobs.first()?;
    job["spec"]["template"]["metadata"]["annotations"]["kueue.x-k8s.io/podset-required-topology"].as_str()
}

/// GPUs of members that an admitted gang has not got, or has lost.
fn to_come(view: &GangView<'_>) -> i64 {
    let missing = members(view).saturating_sub(view.bound().len() + view.succeeded());
    let each = view.workloads.iter().flat_map(|workload| pod_sets(workload)).map(gpus_of).max();
    match view.state() {
        State::Admitted | State::Reserved => {
            i64::try_from(missing).unwrap_or(i64::MAX).saturating_mul(each.unwrap_or(0))
        }
        _ => 0,
    }
}

/// Whether so many members have places, although others take so many GPUs: of each at most one place.
fn fits(rooms: &[Room], count: usize, taken: i64, gpus: i64, required: Option<&str>) -> bool {
    let mut domains: BTreeMap<String, usize> = BTreeMap::new();
    for (at, room) in rooms.iter().enumerate() {
        let of = |resource: &str| room.free.get(resource).copied().unwrap_or(0).max(0);
        let seats = usize::try_from((of(GPU) / gpus.max(1)).min(of("pods"))).unwrap_or(0);
        let domain = match required {
            None => String::new(),
            Some(RACK) => room.rack.clone(),
            Some(_) => at.to_string(),
        };
        *domains.entry(domain).or_insert(0) += seats;
    }
    let count = count.saturating_add(usize::try_from(taken).unwrap_or(0));
    domains.values().any(|seats| *seats >= count)
}

/// What a gang asks for.
struct Asked {
    queue: String,
    count: usize,
    /// Of the largest member.
    gpus: i64,
}

impl Asked {
    /// As much is enough for all.
    fn wants(&self) -> i64 {
        self.gpus.saturating_mul(i64::try_from(self.count).unwrap_or(i64::MAX))
    }
}

/// What a gang that waits and may start asks for.
fn asked(world: &World, view: &GangView<'_>) -> Option<Asked> {
    if view.state() != State::Pending {
        return None;
    }
    let workload = *view.workloads.first()?;
    let stopped = workload["spec"]["active"] == false || !workload["metadata"]["deletionTimestamp"].is_null();
    let queue = workload["spec"]["queueName"].as_str()?;
    let found = world.get(kind::CLUSTER_QUEUE, "", queue)?;
    if !is_in_force(world, view, found) {
        return None;
    }
    if stopped || !matches!(found["spec"]["stopPolicy"].as_str(), None | Some("None")) {
        return None;
    }
    let there =
        view.pods.iter().filter(|pod| !has_ended(pod) && pod["metadata"]["deletionTimestamp"].is_null());
    if view.group.is_some() && there.count() < view.minimum() {
        return None;
    }
    // A Job is asked about anew when it has stopped.
    if !view.jobs.is_empty() && view.pods.iter().any(|pod| !has_ended(pod)) {
        return None;
    }
    let count = count_of(workload);
    // Where even as many of the largest would fit, so do these.
    let gpus = pod_sets(workload).map(gpus_of).max()?;
    (count > 0).then(|| Asked { queue: queue.to_owned(), count, gpus })
}

/// Whether all that leads to the queue's quota is there: its LocalQueue, its flavor, that one's topology.
fn is_in_force(world: &World, view: &GangView<'_>, queue: &Value) -> bool {
    let stays = |object: Option<&Value>| {
        object.is_some_and(|object| object["metadata"]["deletionTimestamp"].is_null())
    };
    let named = |name: &Value| name.as_str().unwrap_or_default().to_owned();
    let door = world.get(kind::LOCAL_QUEUE, &view.gang.namespace, &named(&queue["metadata"]["name"]));
    let flavor = named(&queue["spec"]["resourceGroups"][0]["flavors"][0]["name"]);
    let flavor = world.get(kind::FLAVOR, "", &flavor);
    let topology = flavor.map(|flavor| &flavor["spec"]["topologyName"]).filter(|name| name.is_string());
    stays(Some(queue))
        && stays(door)
        && stays(flavor)
        && topology.is_none_or(|name| stays(world.get(kind::TOPOLOGY, "", &named(name))))
}

/// How many members the gang is to have.
fn members(view: &GangView<'_>) -> usize {
    view.workloads.iter().map(|workload| count_of(workload)).sum()
}

/// GPUs of a member of a pod set.
fn gpus_of(set: &Value) -> i64 {
    pod_requests(&set["template"]).get(GPU).copied().unwrap_or(0)
}

fn pod_sets(workload: &Value) -> impl Iterator<Item = &Value> {
    workload["spec"]["podSets"].as_array().into_iter().flatten()
}

fn count_of(workload: &Value) -> usize {
    pod_sets(workload).filter_map(|set| usize::try_from(set["count"].as_u64()?).ok()).sum()
}

/// A ClusterQueue's quota, and what is held of it.
struct Quota {
    nominal: i64,
    /// What nobody else may use.
    kept: i64,
    /// What it may use of others.
    borrows: Option<i64>,
    held: i64,
}

impl Quota {
    fn of(world: &World, queue: &Value) -> Self {
        let name = text(&queue["metadata"]["name"]);
        let resources = &queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"];
        let nominal = amount_of(resources, "nominalQuota").unwrap_or(0);
        let kept = amount_of(resources, "lendingLimit").map_or(0, |lends| (nominal - lends).max(0));
        let borrows = amount_of(resources, "borrowingLimit");
        Self { nominal, kept, borrows, held: reserved(world, name) + lingering(world, name) }
    }

    /// What it takes of what the cohort shares.
    fn shared(&self) -> i64 {
        (self.held - self.kept).max(0)
    }
}

/// What a gang of the queue could get; with what is `given` back by gangs of the same queue.
fn quota_left(world: &World, queue: &str, given: i64) -> i64 {
    let Some(found) = world.get(kind::CLUSTER_QUEUE, "", queue) else { return 0 };
    let mut own = Quota::of(world, found);
    own.held -= given;
    if !found["spec"]["cohortName"].is_string() {
        return own.nominal - own.held;
    }
    let others = world.all(kind::CLUSTER_QUEUE).filter(|other| {
        other["spec"]["cohortName"] == found["spec"]["cohortName"] && other["metadata"] != found["metadata"]
    });
    let left = |quota: &Quota| quota.nominal - quota.kept - quota.shared();
    let shared = left(&own) + others.map(|other| left(&Quota::of(world, other))).sum::<i64>();
    let limited = own.borrows.map_or(shared, |most| shared.min(left(&own) + most));
    (own.kept - own.held).max(0) + limited
}

/// What its queue would have left of its own.
fn own_left(world: &World, queue: &str) -> i64 {
    let found = world.get(kind::CLUSTER_QUEUE, "", queue);
    found.map(|found| Quota::of(world, found)).map_or(0, |quota| quota.nominal - quota.held)
}

/// More than any quota.
const UNSEEN: i64 = 1 << 40;

/// What gangs hold of this queue that have given it back, or are gone, and of which pods are still on nodes:
/// all of it until the last has left, and nothing shows any more how much that was.
fn lingering(world: &World, queue: &str) -> i64 {
    let gives_back = |gang: &GangRef| {
        let view = world.gang(gang);
        let names = view.workloads.iter().filter_map(|workload| workload["spec"]["queueName"].as_str());
        let of_queue = view.workloads.is_empty() || names.into_iter().any(|name| name == queue);
        of_queue && !matches!(view.state(), State::Admitted | State::Reserved)
    };
    let mut there = world.all(kind::POD).filter(|pod| pod["spec"]["nodeName"].is_string() && !has_ended(pod));
    let staying = there.any(|pod| gpus_of_pod(pod) > 0 && gangs_of_pod(pod).iter().any(gives_back));
    if staying { UNSEEN } else { 0 }
}

fn gpus_of_pod(pod: &Value) -> i64 {
    pod_requests(pod).get(GPU).copied().unwrap_or(0)
}

fn amount_of(resources: &Value, field: &str) -> Option<i64> {
    let gpu = resources.as_array().into_iter().flatten().find(|one| one["name"] == GPU)?;
    (!gpu[field].is_null()).then(|| amount(GPU, &gpu[field]))
}

/// What the Workloads of a queue hold.
fn reserved(world: &World, queue: &str) -> i64 {
    let holds = |workload: &&Value| {
        workload["status"]["admission"]["clusterQueue"] == queue
            && is_true(workload, "QuotaReserved")
            && !is_true(workload, "Finished")
    };
    world.all(kind::WORKLOAD).filter(holds).map(used).sum()
}

fn used(workload: &Value) -> i64 {
    let sets = workload["status"]["admission"]["podSetAssignments"].as_array();
    sets.into_iter().flatten().map(|set| amount(GPU, &set["resourceUsage"][GPU])).sum()
}
