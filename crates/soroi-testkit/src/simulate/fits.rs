//! Does something wait although it fits? Counted anew from the API's objects.
//!
//! For the small world of [`super::draw`]: one flavor, which may be missing, GPUs and pod slots, whole
//! cohorts without limits, every queue BestEffortFIFO. On purpose no code of the engine.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::kind;
use crate::scenario::{GangRef, Placement};
use crate::world::{
    Amounts, GangView, State, World, amount, amounts, gangs_of_pod, has_ended, is_true, pod_requests,
};

const GPU: &str = "example.com/gpu";
const RACK: &str = "topology.example.com/rack";

/// Gangs that wait although quota and places for all their members are there.
pub fn waits_in_vain(world: &World, placement: Placement) -> Vec<String> {
    let waiting = in_vain(world, placement).into_iter();
    waiting.map(|(gang, told)| format!("gang {} waits although it fits; {told}", gang.name)).collect()
}

/// The same, each with what it says itself.
pub(crate) fn in_vain(world: &World, placement: Placement) -> Vec<(GangRef, String)> {
    let gangs = world.gangs();
    // A place that is kept for a member to come is not seen from here.
    let incomplete = |view: &GangView<'_>| {
        view.state() == State::Admitted && view.bound().len() + view.succeeded() < members(view)
    };
    if gangs.iter().any(incomplete) {
        return Vec::new();
    }
    let rooms = rooms(world);
    let by_quota_alone = match placement {
        Placement::Unified => false,
        Placement::TopologyOnly => world.all(kind::TOPOLOGY).next().is_none(),
        Placement::AfterAdmission | Placement::QuotaOnly => true,
    };
    let in_vain = |view: &&GangView<'_>| {
        let Some((queue, count, gpus)) = asked(world, view) else { return false };
        quota_left(world, &queue) >= gpus.saturating_mul(i64::try_from(count).unwrap_or(i64::MAX))
            && (by_quota_alone || fits(&rooms, count, gpus, required(view)))
    };
    let told = |view: &GangView<'_>| {
        let why = view.why().unwrap_or("nothing");
        (view.gang.clone(), format!("it says: {why}"))
    };
    gangs.iter().filter(in_vain).map(told).collect()
}

/// What is free on a node that takes pods, and its rack.
struct Room {
    free: Amounts,
    rack: String,
}

fn rooms(world: &World) -> Vec<Room> {
    let mut used: BTreeMap<&str, Amounts> = BTreeMap::new();
    for pod in world.all(kind::POD).filter(|pod| !has_ended(pod)) {
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

fn fits(rooms: &[Room], count: usize, gpus: i64, required: Option<&str>) -> bool {
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
    domains.values().any(|seats| *seats >= count)
}

/// Queue, members and GPUs of the largest, of a gang that waits and may start.
fn asked(world: &World, view: &GangView<'_>) -> Option<(String, usize, i64)> {
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
    let each = pod_sets(workload).map(|set| pod_requests(&set["template"]).get(GPU).copied().unwrap_or(0));
    let gpus = each.max()?;
    (count > 0).then(|| (queue.to_owned(), count, gpus))
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

fn pod_sets(workload: &Value) -> impl Iterator<Item = &Value> {
    workload["spec"]["podSets"].as_array().into_iter().flatten()
}

fn count_of(workload: &Value) -> usize {
    pod_sets(workload).filter_map(|set| usize::try_from(set["count"].as_u64()?).ok()).sum()
}

/// What the queue, or its whole cohort, has left.
fn quota_left(world: &World, queue: &str) -> i64 {
    let cohort = |queue: &Value| queue["spec"]["cohortName"].as_str().map(str::to_owned);
    let Some(own) = world.get(kind::CLUSTER_QUEUE, "", queue) else { return 0 };
    let name = cohort(own);
    let shared: Vec<&Value> = match name {
        None => vec![own],
        Some(_) => world.all(kind::CLUSTER_QUEUE).filter(|queue| cohort(queue) == name).collect(),
    };
    let of = |queue: &&Value| {
        let nominal =
            amounts_of(&queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"], "nominalQuota");
        let name = queue["metadata"]["name"].as_str().unwrap_or_default();
        nominal - reserved(world, name)
    };
    let names: Vec<&str> = shared.iter().filter_map(|queue| queue["metadata"]["name"].as_str()).collect();
    shared.iter().map(of).sum::<i64>() - lingering(world, &names)
}

/// What pods on nodes hold of these queues although their gang has given it back, or is gone: they have not
/// left yet.
fn lingering(world: &World, queues: &[&str]) -> i64 {
    let gives_back = |gang: &GangRef| {
        let view = world.gang(gang);
        let names = view.workloads.iter().filter_map(|workload| workload["spec"]["queueName"].as_str());
        let of_queue = view.workloads.is_empty() || names.into_iter().any(|name| queues.contains(&name));
        of_queue && !matches!(view.state(), State::Admitted | State::Reserved)
    };
    let there = world.all(kind::POD).filter(|pod| pod["spec"]["nodeName"].is_string() && !has_ended(pod));
    let staying = there.filter(|pod| gangs_of_pod(pod).iter().any(gives_back));
    staying.map(|pod| pod_requests(pod).get(GPU).copied().unwrap_or(0)).sum()
}

fn amounts_of(resources: &Value, field: &str) -> i64 {
    let gpu = resources.as_array().into_iter().flatten().find(|one| one["name"] == GPU);
    gpu.map_or(0, |gpu| amount(GPU, &gpu[field]))
}

/// What the Workloads of a queue hold.
fn reserved(world: &World, queue: &str) -> i64 {
    let holds = |workload: &&Value| {
        workload["status"]["admission"]["clusterQueue"] == queue
            && is_true(workload, "QuotaReserved")
            && !is_true(workload, "Finished")
    };
    let used = |workload: &Value| -> i64 {
        let sets = workload["status"]["admission"]["podSetAssignments"].as_array();
        sets.into_iter().flatten().map(|set| amount(GPU, &set["resourceUsage"][GPU])).sum()
    };
    world.all(kind::WORKLOAD).filter(holds).map(used).sum()
}
