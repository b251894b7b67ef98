//! The status of ClusterQueues and LocalQueues: counters, usage, and whether they admit.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use soroi_api::Quantity;
use soroi_api::conditions::queue::{ACTIVE, reason as word};
use soroi_api::conditions::{self, NewCondition};
use soroi_api::kueue::{
    ClusterQueueStatus, CohortStatus, FairSharingStatus, FlavorUsage, LocalQueueFlavorUsage,
    LocalQueueResourceUsage, LocalQueueStatus, ResourceUsage,
};
use soroi_engine::decision;
use soroi_engine::event::Name;
use soroi_engine::reason::QueueInactive;

/// Why a queue is not active where Kueue has no word for it.
const MISCONFIGURED: &str = "Misconfigured";
/// The same for cohorts that form a cycle.
const COHORT_CYCLE: &str = "CohortCycle";

/// A ClusterQueue's status after the engine's account of it. `before` is what was read, if anything:
/// its conditions' transition times and the fields that are not ours are kept.
pub fn cluster_queue(
    account: &decision::ClusterQueueStatus,
    before: Option<&ClusterQueueStatus>,
    generation: i64,
    now: Timestamp,
) -> ClusterQueueStatus {
    let mut status = before.cloned().unwrap_or_default();
    let shown = |usage| -> Vec<FlavorUsage> {
        let each = by_flavor(usage).into_iter().map(|(flavor, resources)| FlavorUsage {
            name: flavor.to_string(),
            resources: resources.into_iter().map(resource_usage).collect(),
        });
        each.collect()
    };
    status.flavors_reservation = shown(&account.usage);
    status.flavors_usage = shown(&account.admitted_usage);
    status.pending_workloads = Some(count(account.pending));
    status.reserving_workloads = Some(count(account.reserving));
    status.admitted_workloads = Some(count(account.admitted));
    status.fair_sharing = account.share.map(fair_sharing);
    let (reason, message) = match &account.inactive {
        None => (word::READY, "Can admit new workloads".to_string()),
        Some(inactive) => cluster_queue_inactive(inactive),
    };
    active(&mut status.conditions, account.inactive.is_none(), reason, message, generation, now);
    status
}

/// A Cohort's status with its share.
pub fn cohort(share: i64) -> CohortStatus {
    CohortStatus { fair_sharing: Some(fair_sharing(share)) }
}

/// A LocalQueue's status after the engine's account of it.
pub fn local_queue(
    account: &decision::LocalQueueStatus,
    before: Option<&LocalQueueStatus>,
    generation: i64,
    now: Timestamp,
) -> LocalQueueStatus {
    let mut status = before.cloned().unwrap_or_default();
    let shown = |usage| -> Vec<LocalQueueFlavorUsage> {
        let each = by_flavor(usage).into_iter().map(|(flavor, resources)| LocalQueueFlavorUsage {
            name: flavor.to_string(),
            resources: resources
                .into_iter()
                .map(|one| LocalQueueResourceUsage {
                    name: one.resource.to_string(),
                    total: Some(Quantity::of(&one.resource, one.total)),
                })
                .collect(),
        });
        each.collect()
    };
    status.flavors_reservation = shown(&account.usage);
    status.flavors_usage = shown(&account.admitted_usage);
    status.pending_workloads = Some(count(account.pending));
    status.reserving_workloads = Some(count(account.reserving));
    status.admitted_workloads = Some(count(account.admitted));
    let (reason, message) = match &account.inactive {
        None => (word::READY, "Can submit new workloads to localQueue".to_string()),
        Some(inactive) => local_queue_inactive(inactive),
    };
    active(&mut status.conditions, account.inactive.is_none(), reason, message, generation, now);
    status
}

fn fair_sharing(weighted_share: i64) -> FairSharingStatus {
    FairSharingStatus { weighted_share }
}

fn active(
    conditions: &mut Vec<Condition>,
    holds: bool,
    reason: &str,
    message: String,
    generation: i64,
    now: Timestamp,
) {
    let observed_generation = Some(generation);
    let new = NewCondition { type_: ACTIVE, status: Some(holds), reason, message, observed_generation };
    conditions::set(conditions, new, now);
}

fn count(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

/// Flavors in the order of the queue, the resources of each by name, as Kueue lists them.
fn by_flavor(usage: &[decision::FlavorUsage]) -> Vec<(Name, Vec<&decision::FlavorUsage>)> {
    let mut flavors: Vec<(Name, Vec<&decision::FlavorUsage>)> = Vec::new();
    for one in usage {
        match flavors.iter_mut().find(|(flavor, _)| *flavor == one.flavor) {
            Some((_, resources)) => resources.push(one),
            None => flavors.push((one.flavor.clone(), vec![one])),
        }
    }
    for (_, resources) in &mut flavors {
        resources.sort_by(|a, b| a.resource.cmp(&b.resource));
    }
    flavors
}

fn resource_usage(usage: &decision::FlavorUsage) -> ResourceUsage {
    ResourceUsage {
        name: usage.resource.to_string(),
        total: Some(Quantity::of(&usage.resource, usage.total)),
        borrowed: Some(Quantity::of(&usage.resource, usage.borrowed)),
    }
}

/// Reason and message of a ClusterQueue's Active=False, in Kueue's wording where it has one.
pub fn cluster_queue_inactive(inactive: &QueueInactive) -> (&'static str, String) {
    let list = |names: &[Name]| names.iter().map(|name| &**name).collect::<Vec<_>>().join(",");
    let (reason, what) = match inactive {
        QueueInactive::Terminating => {
            return (word::TERMINATING, "Can't admit new workloads; clusterQueue is terminating".into());
        }
        QueueInactive::Stopped => (word::STOPPED, "is stopped".to_string()),
        QueueInactive::FlavorNotFound(names) => {
            (word::FLAVOR_NOT_FOUND, format!("references missing ResourceFlavor(s): {}", list(names)))
        }
        QueueInactive::TopologyNotFound(name) => {
            (word::TOPOLOGY_NOT_FOUND, format!("there is no Topology \"{name}\""))
        }
        QueueInactive::CheckNotFound(names) => (
            word::ADMISSION_CHECK_NOT_FOUND,
            format!("references missing AdmissionCheck(s): {}", list(names)),
        ),
        QueueInactive::CheckInactive(names) => (
            word::ADMISSION_CHECK_INACTIVE,
            format!("references inactive AdmissionCheck(s): {}", list(names)),
        ),
        QueueInactive::CohortCycle(name) => {
            (COHORT_CYCLE, format!("its cohorts form a cycle through \"{name}\""))
        }
        QueueInactive::Invalid(text) => (MISCONFIGURED, text.to_string()),
        QueueInactive::ClusterQueueMissing | QueueInactive::ClusterQueueInactive => {
            return (word::UNKNOWN, "Can't admit new workloads.".into());
        }
    };
    (reason, format!("Can't admit new workloads: {what}."))
}

/// The same for a LocalQueue.
pub fn local_queue_inactive(inactive: &QueueInactive) -> (&'static str, String) {
    match inactive {
        QueueInactive::Stopped => (word::STOPPED, "LocalQueue is stopped".into()),
        QueueInactive::ClusterQueueMissing => {
            (word::CLUSTER_QUEUE_DOES_NOT_EXIST, "Can't submit new workloads to clusterQueue".into())
        }
        QueueInactive::Invalid(text) => {
            (MISCONFIGURED, format!("Can't submit new workloads to localQueue: {text}."))
        }
        _ => (word::CLUSTER_QUEUE_IS_INACTIVE, "Can't submit new workloads to clusterQueue".into()),
    }
}

#[cfg(test)]
mod tests;
