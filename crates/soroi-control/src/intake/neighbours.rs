//! What does a pod demand of other pods? Host ports, required pod (anti-)affinity, and topology
//! spread constraints that must be met, in the engine's form.
//!
//! Templates are read as the API server would make pods of them: ports of `hostNetwork` follow from
//! container ports, and `matchLabelKeys` become part of the selector (Kubernetes 1.36,
//! `SetDefaults_Pod`, pod strategy `applyMatchLabelKeysAndMismatchLabelKeys`). What a real pod has of
//! this already changes nothing.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{ContainerPort, PodAffinityTerm, PodSpec, TopologySpreadConstraint};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use soroi_engine::event::{
    Expression, HostPort, Name, Neighbours, Operator, PodSelector, PodTerm, Protocol, Selector, Spread, Who,
};

use super::{Invalid, selector, some_name};

/// A spread constraint that must be met.
const MUST: &str = "DoNotSchedule";
/// One that should.
pub(super) const SHOULD: &str = "ScheduleAnyway";

/// What the pod demands; `None` if nothing.
///
/// # Errors
/// [`Invalid`] on the field, within the pod's `spec`.
pub(super) fn neighbours(spec: &PodSpec, who: &Who) -> Result<Option<Arc<Neighbours>>, Invalid> {
    let affinity = spec.affinity.as_ref();
    let near = affinity
        .and_then(|affinity| affinity.pod_affinity.as_ref())
        .and_then(|near| near.required_during_scheduling_ignored_during_execution.as_ref());
    let apart = affinity
        .and_then(|affinity| affinity.pod_anti_affinity.as_ref())
        .and_then(|apart| apart.required_during_scheduling_ignored_during_execution.as_ref());
    let required = "requiredDuringSchedulingIgnoredDuringExecution";
    let demands = Neighbours {
        ports: ports(spec)?,
        affinity: terms(&format!("affinity.podAffinity.{required}"), near, who)?,
        anti_affinity: terms(&format!("affinity.podAntiAffinity.{required}"), apart, who)?,
        spread: spread(spec, who, MUST)?,
    };
    Ok((!demands.is_empty()).then(|| Arc::new(demands)))
}

/// Ports of containers and sidecars; others' are not taken while the pod runs (kube-scheduler,
/// `GetHostPorts`).
fn ports(spec: &PodSpec) -> Result<Vec<HostPort>, Invalid> {
    let sidecars = spec.init_containers.iter().flatten().enumerate();
    let sidecars = sidecars.filter(|(_, one)| one.restart_policy.as_deref() == Some("Always"));
    let all = sidecars.map(|(at, one)| (format!("initContainers[{at}]"), one));
    let all =
        all.chain(spec.containers.iter().enumerate().map(|(at, one)| (format!("containers[{at}]"), one)));
    let of_node = spec.host_network == Some(true);
    let mut ports = Vec::new();
    for (container, one) in all {
        for (at, port) in one.ports.iter().flatten().enumerate() {
            let parsed = host_port(port, of_node);
            ports.extend(parsed.map_err(|problem| problem.within(&format!("{container}.ports[{at}]")))?);
        }
    }
    ports.sort();
    ports.dedup();
    Ok(ports)
}

fn host_port(port: &ContainerPort, of_node: bool) -> Result<Option<HostPort>, Invalid> {
    let number = match port.host_port {
        Some(number) if number != 0 => number,
        _ if of_node => port.container_port,
        _ => return Ok(None),
    };
    let protocol = match port.protocol.as_deref() {
        None | Some("" | "TCP") => Protocol::Tcp,
        Some("UDP") => Protocol::Udp,
        Some("SCTP") => Protocol::Sctp,
        Some(other) => return Err(Invalid::new("protocol", format!("unknown protocol \"{other}\""))),
    };
    let number = u16::try_from(number)
        .map_err(|_| Invalid::new("hostPort", format!("{number} must be between 1 and 65535")))?;
    let ip = some_name(port.host_ip.as_ref()).filter(|ip| &**ip != "0.0.0.0");
    Ok(Some(HostPort { port: number, protocol, ip }))
}

fn terms(field: &str, list: Option<&Vec<PodAffinityTerm>>, who: &Who) -> Result<Vec<PodTerm>, Invalid> {
    let each = list.into_iter().flatten().enumerate();
    let mut terms = each
        .map(|(at, one)| term(one, who).map_err(|problem| problem.within(&format!("{field}[{at}]"))))
        .collect::<Result<Vec<_>, _>>()?;
    terms.sort();
    terms.dedup();
    Ok(terms)
}

/// Without namespaces and without a selector of namespaces, the pod's own is meant
/// (kube-scheduler, `getNamespacesFromPodAffinityTerm`).
pub(super) fn term(term: &PodAffinityTerm, who: &Who) -> Result<PodTerm, Invalid> {
    let of_namespaces = term.namespace_selector.as_ref().map(selector::label_selector).transpose();
    let namespace_selector = of_namespaces.map_err(|problem| problem.within("namespaceSelector"))?;
    let mut namespaces: Vec<Name> =
        term.namespaces.iter().flatten().map(|name| Arc::from(name.as_str())).collect();
    if namespaces.is_empty() && namespace_selector.is_none() {
        namespaces.push(who.namespace.clone());
    }
    namespaces.sort();
    namespaces.dedup();
    let mut labels = labels(term.label_selector.as_ref())?;
    if let Some(labels) = &mut labels {
        add_keys(labels, term.match_label_keys.as_ref(), who, Operator::In);
        add_keys(labels, term.mismatch_label_keys.as_ref(), who, Operator::NotIn);
    }
    Ok(PodTerm {
        topology_key: topology_key(&term.topology_key)?,
        pods: PodSelector {
            namespaces,
            namespace_selector: namespace_selector.map(canonical),
            labels: labels.map(canonical),
        },
    })
}

/// The topology spread constraints of the pod that are of this kind ([`MUST`] or [`SHOULD`]).
///
/// # Errors
/// [`Invalid`] on the field, within the pod's `spec`.
pub(super) fn spread(spec: &PodSpec, who: &Who, kind: &str) -> Result<Vec<Spread>, Invalid> {
    let mut constraints = Vec::new();
    for (at, one) in spec.topology_spread_constraints.iter().flatten().enumerate() {
        let parsed = constraint(one, who, kind);
        constraints
            .extend(parsed.map_err(|problem| problem.within(&format!("topologySpreadConstraints[{at}]")))?);
    }
    constraints.sort();
    constraints.dedup();
    Ok(constraints)
}

fn constraint(one: &TopologySpreadConstraint, who: &Who, kind: &str) -> Result<Option<Spread>, Invalid> {
    match one.when_unsatisfiable.as_str() {
        this if this == kind => {}
        MUST | SHOULD => return Ok(None),
        other => return Err(Invalid::new("whenUnsatisfiable", format!("unknown value \"{other}\""))),
    }
    let at_least_one = |field: &str, number: i32| match u32::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => Err(Invalid::new(field, format!("{number} must be at least 1"))),
    };
    let mut labels = labels(one.label_selector.as_ref())?;
    if let Some(labels) = &mut labels {
        add_keys(labels, one.match_label_keys.as_ref(), who, Operator::In);
    }
    let pods = PodSelector {
        namespaces: vec![who.namespace.clone()],
        namespace_selector: None,
        labels: labels.map(canonical),
    };
    Ok(Some(Spread {
        topology_key: topology_key(&one.topology_key)?,
        pods,
        max_skew: at_least_one("maxSkew", one.max_skew)?,
        min_domains: at_least_one("minDomains", one.min_domains.unwrap_or(1))?,
        honours_affinity: honours("nodeAffinityPolicy", one.node_affinity_policy.as_deref(), true)?,
        honours_taints: honours("nodeTaintsPolicy", one.node_taints_policy.as_deref(), false)?,
    }))
}

fn honours(field: &str, policy: Option<&str>, default: bool) -> Result<bool, Invalid> {
    match policy {
        None | Some("") => Ok(default),
        Some("Honor") => Ok(true),
        Some("Ignore") => Ok(false),
        Some(other) => Err(Invalid::new(field, format!("unknown policy \"{other}\""))),
    }
}

fn labels(list: Option<&LabelSelector>) -> Result<Option<Selector>, Invalid> {
    let parsed = list.map(selector::label_selector).transpose();
    parsed.map_err(|problem| problem.within("labelSelector"))
}

/// A key that the pod has no label of is passed over.
fn add_keys(labels: &mut Selector, keys: Option<&Vec<String>>, who: &Who, op: fn(Vec<Name>) -> Operator) {
    for key in keys.into_iter().flatten() {
        if let Some((key, value)) = who.labels.get_key_value(key.as_str()) {
            labels.push(Expression { key: key.clone(), op: op(vec![value.clone()]) });
        }
    }
}

fn topology_key(key: &str) -> Result<Name, Invalid> {
    match key.is_empty() {
        true => Err(Invalid::new("topologyKey", "must be given")),
        false => Ok(Arc::from(key)),
    }
}

/// Equal selectors are equal values, however they were written.
fn canonical(mut selector: Selector) -> Selector {
    for expression in &mut selector {
        if let Operator::In(values) | Operator::NotIn(values) = &mut expression.op {
            values.sort();
            values.dedup();
        }
    }
    selector.sort();
    selector.dedup();
    selector
}

#[cfg(test)]
mod tests;
