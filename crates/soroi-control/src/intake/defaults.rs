//! What will the API server make of this template? The shape that its pods will have.
//!
//! A suspended Job's template carries none of what the API server, LimitRanger, the RuntimeClass
//! and the toleration plugins add when a pod is created (Kubernetes 1.36; seen on it). Places are
//! reserved before there are pods, so the same steps are taken here, in the same order.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::core::v1::{
    Container, LimitRange, LimitRangeItem, PodSpec, PodTemplateSpec, ResourceRequirements, Toleration,
};
use k8s_openapi::api::node::v1::RuntimeClass;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use soroi_api::labels::kueue as kueue_keys;
use soroi_engine::event::{Name, Shape, Who};
use soroi_quantity::Quantity;

use super::amount::{self, Sums};
use super::request::{self, List, Side};
use super::{Invalid, labels, pod};

/// The objects that the API server consults when a pod is created, and those that give priorities.
/// Kept in name order: where Kubernetes leaves the order open, the answer is the same each time.
#[derive(Clone, Debug, Default)]
pub struct Defaults {
    limit_ranges: BTreeMap<(Name, Name), Vec<LimitRangeItem>>,
    runtime_classes: BTreeMap<Name, RuntimeClass>,
    priority_classes: BTreeMap<Name, Class>,
    workload_priority_classes: BTreeMap<Name, i32>,
}

#[derive(Clone, Copy, Debug)]
struct Class {
    value: i32,
    global_default: bool,
}

/// Where a workload's priority comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrioritySource {
    /// A WorkloadPriorityClass, named by a label of the job.
    Workload(Name),
    /// A PriorityClass, named by the pod template or the cluster's default.
    Pod(Name),
}

impl Defaults {
    /// A LimitRange is there, or changed. Its own defaulting (`core/v1` SetDefaults_LimitRangeItem)
    /// is applied here, so that a server that did not do it makes no difference.
    pub fn set_limit_range(&mut self, range: &LimitRange) {
        let mut items = range.spec.as_ref().map(|spec| spec.limits.clone()).unwrap_or_default();
        items.iter_mut().filter(|item| item.type_ == "Container").for_each(default_item);
        self.limit_ranges.insert(key(range.metadata.namespace.as_ref(), range.metadata.name.as_ref()), items);
    }

    /// The LimitRange is gone.
    pub fn remove_limit_range(&mut self, namespace: &str, name: &str) {
        self.limit_ranges.remove(&(Arc::from(namespace), Arc::from(name)));
    }

    /// A RuntimeClass is there, or changed.
    pub fn set_runtime_class(&mut self, class: &RuntimeClass) {
        let name = key(None, class.metadata.name.as_ref()).1;
        let mut kept = class.clone();
        kept.metadata = Default::default();
        self.runtime_classes.insert(name, kept);
    }

    /// The RuntimeClass is gone.
    pub fn remove_runtime_class(&mut self, name: &str) {
        self.runtime_classes.remove(name);
    }

    /// A PriorityClass is there, or changed.
    pub fn set_priority_class(&mut self, class: &PriorityClass) {
        let name = key(None, class.metadata.name.as_ref()).1;
        let global_default = class.global_default.unwrap_or(false);
        self.priority_classes.insert(name, Class { value: class.value.unwrap_or(0), global_default });
    }

    /// The PriorityClass is gone.
    pub fn remove_priority_class(&mut self, name: &str) {
        self.priority_classes.remove(name);
    }

    /// A WorkloadPriorityClass is there, or changed its value.
    pub fn set_workload_priority_class(&mut self, name: &str, value: i32) {
        self.workload_priority_classes.insert(Arc::from(name), value);
    }

    /// The WorkloadPriorityClass is gone.
    pub fn remove_workload_priority_class(&mut self, name: &str) {
        self.workload_priority_classes.remove(name);
    }

    /// A workload's priority as Kueue finds it: the WorkloadPriorityClass that the job's label
    /// names, else the PriorityClass that the pods name, else the cluster's default one, else 0.
    ///
    /// # Errors
    /// [`Invalid`] on the label or field that names a class which does not exist.
    pub fn priority(
        &self,
        workload_class: Option<&str>,
        pod_class: Option<&str>,
    ) -> Result<(i32, Option<PrioritySource>), Invalid> {
        if let Some(name) = workload_class {
            let value = self.workload_priority_classes.get(name).ok_or_else(|| {
                let field = format!("metadata.labels[{}]", kueue_keys::PRIORITY_CLASS);
                Invalid::new(field, format!("WorkloadPriorityClass \"{name}\" not found"))
            })?;
            return Ok((*value, Some(PrioritySource::Workload(Arc::from(name)))));
        }
        if let Some(name) = pod_class {
            let value = self.pod_priority(name).ok_or_else(|| {
                let field = "spec.template.spec.priorityClassName";
                Invalid::new(field, format!("PriorityClass \"{name}\" not found"))
            })?;
            return Ok((value, Some(PrioritySource::Pod(Arc::from(name)))));
        }
        // Of several global defaults the API server takes the lowest value.
        let defaults = self.priority_classes.iter().filter(|(_, class)| class.global_default);
        let default = defaults.min_by_key(|(_, class)| class.value);
        Ok(default.map_or((0, None), |(name, class)| (class.value, Some(PrioritySource::Pod(name.clone())))))
    }

    /// The value of a PriorityClass; the two that every cluster has are known without an object.
    pub fn pod_priority(&self, class: &str) -> Option<i32> {
        match class {
            "system-cluster-critical" => Some(2_000_000_000),
            "system-node-critical" => Some(2_000_001_000),
            _ => self.priority_classes.get(class).map(|class| class.value),
        }
    }

    fn limits(&self, namespace: &str) -> impl Iterator<Item = (&Name, &LimitRangeItem)> {
        let each = self.limit_ranges.iter().filter(move |((of, _), _)| &**of == namespace);
        each.flat_map(|((_, name), items)| items.iter().map(move |item| (name, item)))
    }
}

fn key(namespace: Option<&String>, name: Option<&String>) -> (Name, Name) {
    let text = |text: Option<&String>| Arc::from(text.map(String::as_str).unwrap_or_default());
    (text(namespace), text(name))
}

fn default_item(item: &mut LimitRangeItem) {
    fill(&mut item.default, &item.max);
    fill(&mut item.default_request, &item.default);
    fill(&mut item.default_request, &item.min);
}

/// The shape that pods of this template will have in this namespace: limits→requests as the API
/// server defaults pods, then LimitRange defaults, RuntimeClass overhead, selector and
/// tolerations, the two default tolerations, and last the LimitRange check.
///
/// # Errors
/// [`Invalid`] within `template` on a malformed field, a RuntimeClass that does not exist or
/// contradicts the template, or a LimitRange that the pods would violate: no pod could be created.
pub fn template(template: &PodTemplateSpec, namespace: &str, defaults: &Defaults) -> Result<Shape, Invalid> {
    predict(template, namespace, defaults).map_err(|invalid| invalid.within("template"))
}

fn predict(template: &PodTemplateSpec, namespace: &str, defaults: &Defaults) -> Result<Shape, Invalid> {
    let mut spec = template.spec.clone().ok_or_else(|| Invalid::new("spec", "is missing"))?;
    request::apply_pod_defaults(&mut spec)?;
    for (_, item) in defaults.limits(namespace) {
        apply_limit_defaults(&mut spec, item);
    }
    apply_runtime_class(&mut spec, defaults)?;
    apply_default_tolerations(&mut spec);
    for (name, item) in defaults.limits(namespace) {
        check_limits(&spec, item)
            .map_err(|e| Invalid::new(e.field, format!("LimitRange {name}: {}", e.problem)))?;
    }
    let requests = request::requests(&spec, None)?;
    pod::shape(&spec, requests, &who(template, namespace))
}

/// As whom others mean the pods of this template.
pub fn who(template: &PodTemplateSpec, namespace: &str) -> Who {
    let meta = template.metadata.as_ref();
    Who { namespace: Arc::from(namespace), labels: labels(meta.and_then(|meta| meta.labels.as_ref())) }
}

/// LimitRanger's defaults (`plugin/pkg/admission/limitranger`): what is missing is filled in.
fn apply_limit_defaults(spec: &mut PodSpec, item: &LimitRangeItem) {
    if item.type_ != "Container" {
        return;
    }
    let init = spec.init_containers.iter_mut().flatten();
    for container in spec.containers.iter_mut().chain(init) {
        let resources = container.resources.get_or_insert_default();
        fill(&mut resources.limits, &item.default);
        fill(&mut resources.requests, &item.default_request);
    }
}

fn fill(into: &mut Option<List>, from: &Option<List>) {
    for (resource, value) in from.iter().flatten() {
        into.get_or_insert_default().entry(resource.clone()).or_insert_with(|| value.clone());
    }
}

/// The RuntimeClass plugin (`plugin/pkg/admission/runtimeclass`): overhead, selector, tolerations.
fn apply_runtime_class(spec: &mut PodSpec, defaults: &Defaults) -> Result<(), Invalid> {
    let Some(name) = spec.runtime_class_name.as_deref() else { return Ok(()) };
    let class = defaults
        .runtime_classes
        .get(name)
        .ok_or_else(|| Invalid::new("spec.runtimeClassName", format!("RuntimeClass \"{name}\" not found")))?;
    if let Some(overhead) = &class.overhead {
        let fixed = overhead.pod_fixed.clone().filter(|list| !list.is_empty());
        let given = spec.overhead.as_ref().filter(|list| !list.is_empty());
        let same = |a: &List, b: &List| Ok(amount::sums("", Some(a))? == amount::sums("", Some(b))?);
        if let Some(given) = given
            && !same(given, &fixed.clone().unwrap_or_default())
                .map_err(|e: Invalid| e.within("spec.overhead"))?
        {
            return Err(Invalid::new(
                "spec.overhead",
                format!("differs from that of RuntimeClass \"{name}\""),
            ));
        }
        spec.overhead = fixed;
    }
    let Some(scheduling) = &class.scheduling else { return Ok(()) };
    for (label, value) in scheduling.node_selector.iter().flatten() {
        let selector = spec.node_selector.get_or_insert_default();
        let own = selector.entry(label.clone()).or_insert_with(|| value.clone());
        if own != value {
            let problem = format!("\"{own}\" contradicts \"{value}\" of RuntimeClass \"{name}\"");
            return Err(Invalid::new(format!("spec.nodeSelector[{label}]"), problem));
        }
    }
    if let Some(tolerations) = &scheduling.tolerations {
        spec.tolerations.get_or_insert_default().extend(tolerations.iter().cloned());
    }
    Ok(())
}

/// The DefaultTolerationSeconds plugin: pods stay for a while on nodes that do not answer.
fn apply_default_tolerations(spec: &mut PodSpec) {
    let none = |text: &Option<String>| text.as_ref().is_none_or(String::is_empty);
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerations = spec.tolerations.get_or_insert_default();
        let there = tolerations.iter().any(|toleration| {
            (none(&toleration.key) || toleration.key.as_deref() == Some(key))
                && (none(&toleration.effect) || toleration.effect.as_deref() == Some("NoExecute"))
        });
        if !there {
            tolerations.push(Toleration {
                key: Some(key.into()),
                operator: Some("Exists".into()),
                effect: Some("NoExecute".into()),
                toleration_seconds: Some(300),
                value: None,
            });
        }
    }
}

/// LimitRanger's check: every container, or the pod as a whole, is within the bounds.
fn check_limits(spec: &PodSpec, item: &LimitRangeItem) -> Result<(), Invalid> {
    match item.type_.as_str() {
        "Container" => {
            let each = |field: &'static str, containers: &[Container]| {
                containers.iter().enumerate().try_for_each(|(at, container)| {
                    let field = format!("spec.{field}[{at}].resources");
                    let none = ResourceRequirements::default();
                    let resources = container.resources.as_ref().unwrap_or(&none);
                    let requests = amount::sums(&format!("{field}.requests"), resources.requests.as_ref())?;
                    let limits = amount::sums(&format!("{field}.limits"), resources.limits.as_ref())?;
                    check_item(&field, item, &requests, &limits)
                })
            };
            each("containers", &spec.containers)?;
            each("initContainers", spec.init_containers.as_deref().unwrap_or_default())
        }
        "Pod" => {
            let of_pod = |side| -> Result<Sums, Invalid> {
                let mut sum = request::of_containers(spec, side, None)?;
                // The plugin's own copy of the formula knows no huge pages at pod level.
                let own = request::pod_level(spec, side)?;
                sum.extend(own.into_iter().filter(|(name, _)| matches!(&**name, "cpu" | "memory")));
                Ok(sum)
            };
            check_item("spec", item, &of_pod(Side::Requests)?, &of_pod(Side::Limits)?)
        }
        _ => Ok(()),
    }
}

fn check_item(field: &str, item: &LimitRangeItem, requests: &Sums, limits: &Sums) -> Result<(), Invalid> {
    let kind = &item.type_;
    for (resource, bound) in amount::sums("min", item.min.as_ref())? {
        let problem = match (requests.get(&resource), limits.get(&resource)) {
            (None, _) => "no request is specified".to_string(),
            (Some(request), _) if *request < bound => format!("the request is {request}"),
            (_, Some(limit)) if *limit < bound => format!("the limit is {limit}"),
            _ => continue,
        };
        return Err(Invalid::new(
            field,
            format!("minimum {resource} usage per {kind} is {bound}, but {problem}"),
        ));
    }
    for (resource, bound) in amount::sums("max", item.max.as_ref())? {
        let problem = match (requests.get(&resource), limits.get(&resource)) {
            (_, None) => "no limit is specified".to_string(),
            (_, Some(limit)) if *limit > bound => format!("the limit is {limit}"),
            (Some(request), _) if *request > bound => format!("the request is {request}"),
            _ => continue,
        };
        return Err(Invalid::new(
            field,
            format!("maximum {resource} usage per {kind} is {bound}, but {problem}"),
        ));
    }
    for (resource, ratio) in amount::sums("maxLimitRequestRatio", item.max_limit_request_ratio.as_ref())? {
        check_ratio(field, item, &resource, ratio, requests.get(&resource), limits.get(&resource))?;
    }
    Ok(())
}

fn check_ratio(
    field: &str,
    item: &LimitRangeItem,
    resource: &str,
    ratio: Quantity,
    request: Option<&Quantity>,
    limit: Option<&Quantity>,
) -> Result<(), Invalid> {
    let some = |amount: Option<&Quantity>| amount.filter(|amount| !amount.is_zero()).copied();
    let problem = match (some(request), some(limit)) {
        (None, _) => "no request is specified or it is 0".to_string(),
        (_, None) => "no limit is specified or it is 0".to_string(),
        (Some(request), Some(limit)) if exceeds(limit, request, ratio) => {
            format!("{limit} to {request} is given")
        }
        _ => return Ok(()),
    };
    let kind = &item.type_;
    let text = format!("{resource} max limit to request ratio per {kind} is {ratio}, but {problem}");
    Err(Invalid::new(field, text))
}

/// `limit / request > ratio`, in whole numbers: thousandths where they do not overflow, as
/// LimitRanger does.
fn exceeds(limit: Quantity, request: Quantity, ratio: Quantity) -> bool {
    let wide = |amount: i64| i128::from(amount);
    let (limit, request) = match (limit.milli(), request.milli()) {
        (i64::MAX, _) | (_, i64::MAX) => (wide(limit.units()), wide(request.units())),
        (limit, request) => (wide(limit), wide(request)),
    };
    // Both sides are below 2^63 × 1000 × 2^63, which is within 128 bits.
    limit * 1000 > wide(ratio.milli()) * request
}

#[cfg(test)]
mod tests;
