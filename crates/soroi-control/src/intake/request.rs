//! How much does a pod ask for? The request formula of Kubernetes 1.36, and what its API server
//! makes of limits before that formula is used.
//!
//! The sums are exact (thousandths of a unit, 128 bits) and rounded up once at the end, as
//! `resource.Quantity` does; only then do they saturate.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod, PodSpec, PodStatus, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use soroi_engine::event::{Amount, Name};

use super::Invalid;
use super::amount::{Sums, add, finish, larger, sums};

/// A list of quantities as the API writes it.
pub(super) type List = BTreeMap<String, Quantity>;

/// Which side of `resources` a sum is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    /// `resources.requests`.
    Requests,
    /// `resources.limits`.
    Limits,
}

impl Side {
    fn of(self, resources: Option<&ResourceRequirements>) -> Option<&List> {
        let resources = resources?;
        match self {
            Self::Requests => resources.requests.as_ref(),
            Self::Limits => resources.limits.as_ref(),
        }
    }

    fn field(self) -> &'static str {
        match self {
            Self::Requests => "resources.requests",
            Self::Limits => "resources.limits",
        }
    }
}

/// What a pod is charged on its node: requests by Kubernetes' formula with overhead, zero ones
/// left out. A pod that has a status is charged the largest of what it asks for, was allocated
/// and really has, while a resize is under way (`component-helpers` resource.PodRequests with
/// status resources, as kube-scheduler calls it).
///
/// # Errors
/// [`Invalid`] on a quantity, within `spec` or `status`.
pub(super) fn charged(pod: &Pod) -> Result<BTreeMap<Name, Amount>, Invalid> {
    let Some(spec) = &pod.spec else { return Err(Invalid::new("spec", "is missing")) };
    let status = pod.status.as_ref().map(Resize::of);
    requests(spec, status.as_ref())
}

/// The same for a pod that does not exist yet.
///
/// # Errors
/// [`Invalid`] on a quantity, within `spec`.
pub(super) fn requests(
    spec: &PodSpec,
    resize: Option<&Resize<'_>>,
) -> Result<BTreeMap<Name, Amount>, Invalid> {
    let mut sum = of_containers(spec, Side::Requests, resize)?;
    for (resource, amount) in of_pod(spec, resize)? {
        sum.insert(resource, amount);
    }
    add(&mut sum, &sums("spec.overhead", spec.overhead.as_ref())?);
    Ok(finish(&sum))
}

/// What the status says of a resize under way.
pub(super) struct Resize<'a> {
    status: &'a PodStatus,
    containers: BTreeMap<&'a str, &'a ContainerStatus>,
    /// The kubelet said that the resize can never be done: what is asked for does not count then.
    infeasible: bool,
}

impl<'a> Resize<'a> {
    fn of(status: &'a PodStatus) -> Self {
        let lists = [&status.container_statuses, &status.init_container_statuses];
        let containers = lists.into_iter().flatten().flatten().map(|one| (one.name.as_str(), one)).collect();
        let pending =
            status.conditions.iter().flatten().find(|condition| condition.type_ == "PodResizePending");
        let infeasible = pending.is_some_and(|condition| condition.reason.as_deref() == Some("Infeasible"));
        Self { status, containers, infeasible }
    }

    /// The largest of the three, or of the two when the request is in vain.
    fn effective(
        &self,
        asked: Sums,
        actual: Option<&List>,
        allocated: Option<&List>,
    ) -> Result<Sums, Invalid> {
        let mut sum = if self.infeasible { Sums::new() } else { asked };
        larger(&mut sum, &sums("status.resources.requests", actual)?);
        larger(&mut sum, &sums("status.allocatedResources", allocated)?);
        Ok(sum)
    }

    fn container(&self, container: &Container, asked: Sums) -> Result<Sums, Invalid> {
        let status = self.containers.get(container.name.as_str());
        match status.and_then(|status| Some((status, status.resources.as_ref()?))) {
            None => Ok(asked),
            Some((status, actual)) => {
                self.effective(asked, actual.requests.as_ref(), status.allocated_resources.as_ref())
            }
        }
    }
}

/// The containers' part: the sum of containers and sidecars, or the most that is needed while an
/// init container runs (itself and the sidecars started before it), whichever is larger.
pub(super) fn of_containers(
    spec: &PodSpec,
    side: Side,
    resize: Option<&Resize<'_>>,
) -> Result<Sums, Invalid> {
    let mut sum = Sums::new();
    for (at, container) in spec.containers.iter().enumerate() {
        let own = of_container(&format!("spec.containers[{at}]"), container, side)?;
        add(&mut sum, &with_resize(container, own, resize)?);
    }
    let mut sidecars = Sums::new();
    let mut starting = Sums::new();
    for (at, container) in spec.init_containers.iter().flatten().enumerate() {
        let own = of_container(&format!("spec.initContainers[{at}]"), container, side)?;
        if container.restart_policy.as_deref() == Some("Always") {
            let own = with_resize(container, own, resize)?;
            add(&mut sum, &own);
            add(&mut sidecars, &own);
            larger(&mut starting, &sidecars);
        } else {
            let mut now = own;
            add(&mut now, &sidecars);
            larger(&mut starting, &now);
        }
    }
    larger(&mut sum, &starting);
    Ok(sum)
}

fn with_resize(container: &Container, own: Sums, resize: Option<&Resize<'_>>) -> Result<Sums, Invalid> {
    resize.map_or(Ok(own.clone()), |resize| resize.container(container, own))
}

fn of_container(field: &str, container: &Container, side: Side) -> Result<Sums, Invalid> {
    sums(&format!("{field}.{}", side.field()), side.of(container.resources.as_ref()))
}

/// The pod-level part: where it is given, it stands instead of the containers' sum.
fn of_pod(spec: &PodSpec, resize: Option<&Resize<'_>>) -> Result<Sums, Invalid> {
    let asked = pod_level(spec, Side::Requests)?;
    let Some((resize, actual)) = resize.and_then(|resize| Some((resize, resize.status.resources.as_ref()?)))
    else {
        return Ok(asked);
    };
    let allocated = resize.status.allocated_resources.as_ref();
    let effective = resize.effective(asked.clone(), actual.requests.as_ref(), allocated)?;
    // Only what the spec names is replaced; what the status lacks counts as nothing.
    Ok(asked
        .into_keys()
        .map(|name| (name.clone(), effective.get(&name).copied().unwrap_or_default()))
        .collect())
}

/// The pod's own requests or limits, as far as Kubernetes takes them at pod level.
pub(super) fn pod_level(spec: &PodSpec, side: Side) -> Result<Sums, Invalid> {
    let mut list = sums(&format!("spec.{}", side.field()), side.of(spec.resources.as_ref()))?;
    list.retain(|resource, _| at_pod_level(resource));
    Ok(list)
}

/// Resources that may be given at pod level (`component-helpers` IsSupportedPodLevelResource).
pub(super) fn at_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// What the API server does to a pod's resources at creation (`core/v1` SetDefaults_Pod): missing
/// requests follow from limits, per container and at pod level. Templates never get this.
///
/// # Errors
/// [`Invalid`] on a quantity that had to be added up.
pub(super) fn apply_pod_defaults(spec: &mut PodSpec) -> Result<(), Invalid> {
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        let Some(resources) = &mut container.resources else { continue };
        let Some(limits) = &resources.limits else { continue };
        let requests = resources.requests.get_or_insert_default();
        for (resource, limit) in limits {
            requests.entry(resource.clone()).or_insert_with(|| limit.clone());
        }
    }
    let Some(pod_level) = &spec.resources else { return Ok(()) };
    let given = |list: &Option<List>| list.as_ref().is_some_and(|list| !list.is_empty());
    if !given(&pod_level.limits) && !given(&pod_level.requests) {
        return Ok(());
    }
    let container_limits = of_containers(spec, Side::Limits, None)?;
    let container_requests = of_containers(spec, Side::Requests, None)?;
    let Some(pod_level) = &mut spec.resources else { return Ok(()) };
    default_pod_limits(pod_level, &container_limits);
    default_pod_requests(pod_level, &container_requests);
    Ok(())
}

/// Huge pages that containers limit are limited at pod level too, unless the pod requests them.
fn default_pod_limits(pod_level: &mut ResourceRequirements, containers: &Sums) {
    for (resource, limit) in containers {
        let requested = pod_level.requests.as_ref().is_some_and(|list| list.contains_key(&**resource));
        if resource.starts_with("hugepages-") && !requested {
            let limits = pod_level.limits.get_or_insert_default();
            limits.entry(resource.to_string()).or_insert_with(|| super::amount::quantity(*limit));
        }
    }
}

/// Requests at pod level follow from the containers', else from the limit at pod level.
fn default_pod_requests(pod_level: &mut ResourceRequirements, containers: &Sums) {
    let Some(limits) = pod_level.limits.clone().filter(|limits| !limits.is_empty()) else { return };
    let requests = pod_level.requests.get_or_insert_default();
    for (resource, sum) in containers {
        if matches!(&**resource, "cpu" | "memory") {
            requests.entry(resource.to_string()).or_insert_with(|| super::amount::quantity(*sum));
        }
    }
    for (resource, limit) in limits {
        if at_pod_level(&resource) {
            requests.entry(resource).or_insert(limit);
        }
    }
}

#[cfg(test)]
mod tests;
