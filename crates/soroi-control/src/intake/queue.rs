//! What may which queue use? Flavors, topologies, cohorts and queues, Kueue's and Volcano's.
//!
//! None of these functions fails: a queue that cannot be understood is an inactive queue with the
//! reason in it, so that its workloads can say why they wait and all others go on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::Namespace;
use soroi_api::Quantity;
use soroi_api::kueue;
use soroi_api::labels::soroi as soroi_keys;
use soroi_api::plan::{PackingPolicy, PlacementPolicy};
use soroi_api::volcano;
use soroi_engine::event::{
    self, Amount, FlavorQuotas, Fungibility, Name, Policy, Preemptible, Preemption, QueueingStrategy, Quota,
    ResourceGroup, StopPolicy, WhileBorrowing,
};
use soroi_engine::packing::Packing;
use soroi_engine::reason::QueueInactive;

use super::{Invalid, labels, selector};

/// Full share in fair sharing, in thousandths.
const WEIGHT_MILLI_DEFAULT: Amount = 1000;

/// Whether each AdmissionCheck that exists is active.
pub type Checks = BTreeMap<Name, bool>;

fn name(meta: &kube::api::ObjectMeta) -> Name {
    Arc::from(meta.name.as_deref().unwrap_or_default())
}

fn some(text: Option<&String>) -> Option<Name> {
    super::some_name(text)
}

/// A namespace. The API server gives each the label `kubernetes.io/metadata.name`.
pub fn namespace(namespace: &Namespace) -> event::Event {
    let name = name(&namespace.metadata);
    let mut labels = labels(namespace.metadata.labels.as_ref());
    labels.entry(Arc::from("kubernetes.io/metadata.name")).or_insert_with(|| name.clone());
    event::Event::Namespace { name, labels }
}

/// A ResourceFlavor.
///
/// # Errors
/// [`Invalid`] on a taint or toleration. Queues that use it are inactive then, with that reason.
pub fn flavor(flavor: &kueue::ResourceFlavor) -> Result<event::Flavor, Invalid> {
    let spec = &flavor.spec;
    Ok(event::Flavor {
        name: name(&flavor.metadata),
        node_labels: labels(Some(&spec.node_labels)),
        node_taints: selector::taints("spec.nodeTaints", Some(&spec.node_taints))?,
        tolerations: selector::tolerations(Some(&spec.tolerations)).map_err(|e| e.within("spec"))?,
        topology: some(spec.topology_name.as_ref()),
    })
}

/// A Topology.
pub fn topology(topology: &kueue::Topology) -> event::Topology {
    event::Topology {
        name: name(&topology.metadata),
        levels: topology.spec.levels.iter().map(|level| Arc::from(level.node_label.as_str())).collect(),
    }
}

/// A Cohort. One that cannot be understood has no quota of its own; what its members own counts.
///
/// # Errors
/// Beside the cohort without quota, the [`Invalid`] to report.
pub fn cohort(cohort: &kueue::Cohort) -> Result<event::Cohort, (event::Cohort, Invalid)> {
    let spec = &cohort.spec;
    let parent = some(spec.parent_name.as_ref());
    let empty = event::Cohort { parent, ..cohort_without_quota(&name(&cohort.metadata)) };
    let parsed = groups(&spec.resource_groups, spec.parent_name.is_some())
        .and_then(|groups| Ok((groups, weight(spec.fair_sharing.as_ref())?)));
    match parsed {
        Ok((groups, weight_milli)) => Ok(event::Cohort { groups, weight_milli, ..empty }),
        Err(invalid) => Err((empty, invalid)),
    }
}

/// A Cohort that has nothing of its own.
pub(crate) fn cohort_without_quota(name: &Name) -> event::Cohort {
    let name = name.clone();
    event::Cohort { name, parent: None, groups: Vec::new(), weight_milli: WEIGHT_MILLI_DEFAULT }
}

/// A ClusterQueue, with the reason for which it cannot admit as far as its own object and the
/// AdmissionChecks tell.
pub fn cluster_queue(queue: &kueue::ClusterQueue, checks: &Checks) -> event::ClusterQueue {
    let spec = &queue.spec;
    let mut fact = event::ClusterQueue {
        name: name(&queue.metadata),
        cohort: some(spec.cohort_name.as_ref()),
        namespace_selector: None,
        strategy: match spec.queueing_strategy() {
            kueue::QueueingStrategy::StrictFifo => QueueingStrategy::StrictFifo,
            kueue::QueueingStrategy::BestEffortFifo => QueueingStrategy::BestEffortFifo,
        },
        stop: stop(spec.stop_policy()),
        groups: Vec::new(),
        fungibility: fungibility(spec.flavor_fungibility.as_ref()),
        preemption: preemption(spec.preemption.as_ref()),
        weight_milli: WEIGHT_MILLI_DEFAULT,
        placement: None,
        packing: None,
        inactive: missing_checks(spec, checks),
    };
    if let Err(invalid) = fill_in(queue, &mut fact) {
        fact.inactive = Some(QueueInactive::Invalid(invalid.reason()));
    }
    if queue.metadata.deletion_timestamp.is_some() {
        fact.inactive = Some(QueueInactive::Terminating);
    }
    fact
}

fn fill_in(queue: &kueue::ClusterQueue, fact: &mut event::ClusterQueue) -> Result<(), Invalid> {
    let spec = &queue.spec;
    fact.namespace_selector = spec
        .namespace_selector
        .as_ref()
        .map(selector::label_selector)
        .transpose()
        .map_err(|e| e.within("spec.namespaceSelector"))?;
    fact.groups = groups(&spec.resource_groups, spec.cohort_name.is_some())?;
    fact.weight_milli = weight(spec.fair_sharing.as_ref())?;
    fact.placement = placement(queue.metadata.annotations.as_ref())?;
    fact.packing = packing(queue.metadata.annotations.as_ref())?;
    Ok(())
}

/// The policy that a ClusterQueue names; `None` if it names none, or none that there is.
pub fn own_placement(queue: &kueue::ClusterQueue) -> Option<Policy> {
    placement(queue.metadata.annotations.as_ref()).ok().flatten()
}

fn placement(annotations: Option<&BTreeMap<String, String>>) -> Result<Option<Policy>, Invalid> {
    let Some(text) = annotations.and_then(|all| all.get(soroi_keys::PLACEMENT)) else { return Ok(None) };
    let named = text.parse::<PlacementPolicy>();
    let field = || format!("metadata.annotations[{}]", soroi_keys::PLACEMENT);
    named.map(|named| Some(policy(named))).map_err(|error| Invalid::new(field(), error))
}

fn packing(annotations: Option<&BTreeMap<String, String>>) -> Result<Option<Packing>, Invalid> {
    let Some(text) = annotations.and_then(|all| all.get(soroi_keys::PACKING)) else { return Ok(None) };
    let field = || format!("metadata.annotations[{}]", soroi_keys::PACKING);
    let named = text.parse::<PackingPolicy>().map_err(|error| Invalid::new(field(), error))?;
    Ok(Some(match named {
        PackingPolicy::BestFit => Packing::BestFit,
        PackingPolicy::Fragmentation => Packing::Fragmentation,
        PackingPolicy::Spread => Packing::Spread,
    }))
}

/// A policy as the engine has it.
pub fn policy(policy: PlacementPolicy) -> Policy {
    match policy {
        PlacementPolicy::Unified => Policy::Unified,
        PlacementPolicy::TopologyOnly => Policy::TopologyOnly,
        PlacementPolicy::AfterAdmission => Policy::AfterAdmission,
        PlacementPolicy::QuotaOnly => Policy::QuotaOnly,
    }
}

/// A policy as objects write it.
pub fn placement_policy(policy: Policy) -> PlacementPolicy {
    match policy {
        Policy::Unified => PlacementPolicy::Unified,
        Policy::TopologyOnly => PlacementPolicy::TopologyOnly,
        Policy::AfterAdmission => PlacementPolicy::AfterAdmission,
        Policy::QuotaOnly => PlacementPolicy::QuotaOnly,
    }
}

fn stop(policy: kueue::StopPolicy) -> StopPolicy {
    match policy {
        kueue::StopPolicy::None => StopPolicy::None,
        kueue::StopPolicy::Hold => StopPolicy::Hold,
        kueue::StopPolicy::HoldAndDrain => StopPolicy::HoldAndDrain,
    }
}

fn fungibility(fungibility: Option<&kueue::FlavorFungibility>) -> Fungibility {
    let stops = |policy: Option<kueue::FlavorFungibilityPolicy>, default: bool| {
        policy.map_or(default, |policy| policy == kueue::FlavorFungibilityPolicy::MayStopSearch)
    };
    Fungibility {
        stop_at_borrow: stops(fungibility.and_then(|f| f.when_can_borrow), true),
        stop_at_preempt: stops(fungibility.and_then(|f| f.when_can_preempt), false),
        prefer_preemption: fungibility.and_then(|f| f.preference)
            == Some(kueue::FlavorFungibilityPreference::PreemptionOverBorrowing),
    }
}

fn preemption(preemption: Option<&kueue::ClusterQueuePreemption>) -> Preemption {
    use kueue::{BorrowWithinCohortPolicy, ReclaimWithinCohortPolicy, WithinClusterQueuePolicy};
    let Some(preemption) = preemption else { return Preemption::default() };
    let borrow = preemption.borrow_within_cohort.as_ref();
    let borrow = borrow.filter(|borrow| borrow.policy == Some(BorrowWithinCohortPolicy::LowerPriority));
    Preemption {
        within_queue: match preemption.within_cluster_queue {
            None | Some(WithinClusterQueuePolicy::Never) => Preemptible::Never,
            Some(WithinClusterQueuePolicy::LowerPriority) => Preemptible::LowerPriority,
            Some(WithinClusterQueuePolicy::LowerOrNewerEqualPriority) => Preemptible::LowerOrNewerEqual,
        },
        reclaim: match preemption.reclaim_within_cohort {
            None | Some(ReclaimWithinCohortPolicy::Never) => Preemptible::Never,
            Some(ReclaimWithinCohortPolicy::LowerPriority) => Preemptible::LowerPriority,
            Some(ReclaimWithinCohortPolicy::Any) => Preemptible::Any,
        },
        while_borrowing: borrow.map(|borrow| WhileBorrowing { priority_max: borrow.max_priority_threshold }),
    }
}

fn missing_checks(spec: &kueue::ClusterQueueSpec, checks: &Checks) -> Option<QueueInactive> {
    let named: BTreeSet<&str> = spec
        .admission_checks_strategy
        .iter()
        .flat_map(|strategy| &strategy.admission_checks)
        .map(|check| check.name.as_str())
        .collect();
    let those = |of: fn(Option<&bool>) -> bool| -> Vec<Name> {
        named.iter().filter(|name| of(checks.get(**name))).map(|name| Arc::from(*name)).collect()
    };
    let missing = those(|active| active.is_none());
    let inactive = those(|active| active == Some(&false));
    if !missing.is_empty() {
        Some(QueueInactive::CheckNotFound(missing))
    } else if !inactive.is_empty() {
        Some(QueueInactive::CheckInactive(inactive))
    } else {
        None
    }
}

/// Resource groups. What the schema and its rules already refuse is refused here again, because an
/// object may be older than the rules: a flavor or resource in two groups, a flavor that does not
/// list exactly the covered resources, limits without a cohort.
fn groups(groups: &[kueue::ResourceGroup], has_parent: bool) -> Result<Vec<ResourceGroup>, Invalid> {
    let mut flavors_seen = BTreeSet::new();
    let mut resources_seen = BTreeSet::new();
    let mut parsed = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        let field = format!("spec.resourceGroups[{at}]");
        for (at, resource) in group.covered_resources.iter().enumerate() {
            if !resources_seen.insert(resource) {
                let field = format!("{field}.coveredResources[{at}]");
                return Err(Invalid::new(field, format!("\"{resource}\" is covered twice")));
            }
        }
        let mut flavors = Vec::new();
        for (at, flavor) in group.flavors.iter().enumerate() {
            let field = format!("{field}.flavors[{at}]");
            if !flavors_seen.insert(&flavor.name) {
                let problem = format!("flavor \"{}\" is listed twice", flavor.name);
                return Err(Invalid::new(format!("{field}.name"), problem));
            }
            if !flavor.resources.iter().map(|quota| &quota.name).eq(&group.covered_resources) {
                let problem = "must list exactly the coveredResources, in their order";
                return Err(Invalid::new(format!("{field}.resources"), problem));
            }
            let quotas = flavor.resources.iter().enumerate();
            let quotas = quotas.map(|(at, one)| quota(&format!("{field}.resources[{at}]"), one, has_parent));
            flavors.push(FlavorQuotas {
                flavor: Arc::from(flavor.name.as_str()),
                quotas: quotas.collect::<Result<_, _>>()?,
            });
        }
        let covered = group.covered_resources.iter().map(|name| Arc::from(name.as_str())).collect();
        parsed.push(ResourceGroup { covered, flavors });
    }
    Ok(parsed)
}

fn quota(field: &str, quota: &kueue::ResourceQuota, has_parent: bool) -> Result<Quota, Invalid> {
    let read = |part: &str, quantity: &Quantity| amount(&format!("{field}.{part}"), &quota.name, quantity);
    let limit = |part: &str, quantity: &Option<Quantity>| match quantity {
        Some(_) if !has_parent => Err(Invalid::new(format!("{field}.{part}"), "needs a cohort")),
        Some(quantity) => read(part, quantity).map(Some),
        None => Ok(None),
    };
    let nominal = read("nominalQuota", &quota.nominal_quota)?;
    let lending_limit = limit("lendingLimit", &quota.lending_limit)?;
    if lending_limit.is_some_and(|limit| limit > nominal) {
        return Err(Invalid::new(format!("{field}.lendingLimit"), "must be at most nominalQuota"));
    }
    Ok(Quota {
        resource: Arc::from(quota.name.as_str()),
        nominal,
        borrowing_limit: limit("borrowingLimit", &quota.borrowing_limit)?,
        lending_limit,
    })
}

/// A quantity of one of our objects in base units, not negative.
pub(super) fn amount(field: &str, resource: &str, quantity: &Quantity) -> Result<Amount, Invalid> {
    let read = quantity.read().map_err(|error| Invalid::new(field, error))?;
    if read.is_negative() {
        return Err(Invalid::new(field, format!("\"{quantity}\": must not be negative")));
    }
    Ok(soroi_quantity::base_units(resource, &read))
}

fn weight(sharing: Option<&kueue::FairSharing>) -> Result<Amount, Invalid> {
    let Some(weight) = sharing.and_then(|sharing| sharing.weight.as_ref()) else {
        return Ok(WEIGHT_MILLI_DEFAULT);
    };
    let field = "spec.fairSharing.weight";
    let read = weight.read().map_err(|error| Invalid::new(field, error))?;
    if read.is_negative() {
        return Err(Invalid::new(field, format!("\"{weight}\": must not be negative")));
    }
    Ok(read.milli())
}

/// A LocalQueue. Without a ClusterQueue it leads to one that does not exist.
pub fn local_queue(queue: &kueue::LocalQueue) -> event::LocalQueue {
    event::LocalQueue {
        namespace: Arc::from(queue.metadata.namespace.as_deref().unwrap_or_default()),
        name: name(&queue.metadata),
        cluster_queue: some(queue.spec.cluster_queue.as_ref()).unwrap_or_else(|| Arc::from("")),
        stop: stop(queue.spec.stop_policy()),
    }
}

/// A Volcano Queue. It takes gangs unless its state says Closed or Closing: a queue whose state
/// nobody ever wrote must not hold its gangs without a reason.
///
/// Beside it the [`Invalid`] on `spec.capability[resource]`, if there is one: nobody knows its ceiling then.
pub fn volcano_queue(queue: &volcano::Queue) -> (event::VolcanoQueue, Option<Invalid>) {
    let name = name(&queue.metadata);
    let root = &*name == volcano::ROOT_QUEUE;
    let state = queue.status.as_ref().and_then(|status| status.state);
    let mut invalid = None;
    let mut amounts = |field: &str, list: Option<&soroi_api::Quantities>| {
        let mut amounts = BTreeMap::new();
        for (resource, quantity) in list.into_iter().flatten() {
            match amount(&format!("{field}[{resource}]"), resource, quantity) {
                Ok(amount) => _ = amounts.insert(Arc::from(resource.as_str()), amount),
                Err(problem) => _ = invalid.get_or_insert(problem),
            }
        }
        amounts
    };
    let capability = amounts("spec.capability", queue.spec.capability.as_ref());
    let guarantee = queue.spec.guarantee.as_ref().and_then(|kept| kept.resource.as_ref());
    let guarantee = amounts("spec.guarantee.resource", guarantee);
    let fact = event::VolcanoQueue {
        parent: (!root).then(|| Arc::from(queue.spec.parent().unwrap_or(volcano::ROOT_QUEUE))),
        capability,
        guarantee,
        priority: queue.spec.priority.unwrap_or(0),
        open: !matches!(state, Some(volcano::QueueState::Closed | volcano::QueueState::Closing)),
        invalid: invalid.as_ref().map(Invalid::reason),
        name,
    };
    (fact, invalid)
}

#[cfg(test)]
mod tests;
