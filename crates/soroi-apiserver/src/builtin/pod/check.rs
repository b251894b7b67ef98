//! What is wrong with a pod (Kubernetes 1.36, `pkg/apis/core/validation`).
//!
//! The rules that a scheduler's users run into: names, resources, gates, tolerations, selectors.
//! What only a kubelet minds (volumes' sources, probes, security) is not looked at.

use std::collections::BTreeSet;

use serde_json::Value;
use soroi_quantity::Quantity;

use super::amount;
use crate::meta::{NameRule, annotation_errors, label_errors, name_errors};
use crate::object;
use crate::status::FieldError;

/// What is wrong with a pod.
pub(crate) fn pod(pod: &Value) -> Vec<FieldError> {
    let Some(spec) = pod.get("spec") else { return vec![FieldError::required("spec", "")] };
    let mut errors = pod_spec(spec, "spec");
    let gated = !object::list(spec, &["schedulingGates"]).is_empty();
    let fresh = object::text(pod, &["status", "phase"]) != "Running";
    if gated && fresh && !object::text(spec, &["nodeName"]).is_empty() {
        errors.push(FieldError::forbidden(
            "spec.nodeName",
            "cannot be set until all schedulingGates have been cleared",
        ));
    }
    errors
}

/// What is wrong with a pod template.
pub(crate) fn template(template: &Value, path: &str) -> Vec<FieldError> {
    let mut errors =
        label_errors(object::at(template, &["metadata", "labels"]), &format!("{path}.metadata.labels"));
    let annotations = object::at(template, &["metadata", "annotations"]);
    errors.extend(annotation_errors(annotations, &format!("{path}.annotations")));
    if let Some(spec) = template.get("spec") {
        errors.extend(pod_spec(spec, &format!("{path}.spec")));
    }
    errors
}

fn pod_spec(spec: &Value, path: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let containers = object::list(spec, &["containers"]);
    if containers.is_empty() {
        errors.push(FieldError::required(&format!("{path}.containers"), ""));
    }
    let mut names = BTreeSet::new();
    for list in ["containers", "initContainers"] {
        for (at, container) in object::list(spec, &[list]).iter().enumerate() {
            let path = format!("{path}.{list}[{at}]");
            self::container(spec, container, &path, &mut names, &mut errors);
        }
    }
    one_of(spec, "restartPolicy", path, &["Always", "OnFailure", "Never"], &mut errors);
    one_of(
        spec,
        "dnsPolicy",
        path,
        &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"],
        &mut errors,
    );
    if let Some(secs) = object::number(spec, &["activeDeadlineSeconds"])
        && !(1..=i64::from(i32::MAX)).contains(&secs)
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(FieldError::invalid(&format!("{path}.activeDeadlineSeconds"), secs, why));
    }
    let selector = object::at(spec, &["nodeSelector"]);
    errors.extend(label_errors(selector, &format!("{path}.nodeSelector")));
    for (at, toleration) in object::list(spec, &["tolerations"]).iter().enumerate() {
        self::toleration(toleration, &format!("{path}.tolerations[{at}]"), &mut errors);
    }
    gates(spec, path, &mut errors);
    node_affinity(spec, path, &mut errors);
    errors
}

fn one_of(spec: &Value, key: &str, path: &str, supported: &[&str], errors: &mut Vec<FieldError>) {
    let value = object::text(spec, &[key]);
    if !value.is_empty() && !supported.contains(&value) {
        errors.push(FieldError::not_supported(&format!("{path}.{key}"), value, supported));
    }
}

fn container<'a>(
    spec: &Value,
    container: &'a Value,
    path: &str,
    names: &mut BTreeSet<&'a str>,
    errors: &mut Vec<FieldError>,
) {
    let name = object::text(container, &["name"]);
    let at = format!("{path}.name");
    if name.is_empty() {
        errors.push(FieldError::required(&at, ""));
    } else {
        errors.extend(name_errors(NameRule::Label, name, &at));
    }
    if !name.is_empty() && !names.insert(name) {
        errors.push(FieldError::duplicate(&at, name));
    }
    if object::text(container, &["image"]).is_empty() {
        errors.push(FieldError::required(&format!("{path}.image"), ""));
    }
    for (at, port) in object::list(container, &["ports"]).iter().enumerate() {
        let number = object::number(port, &["containerPort"]).unwrap_or(0);
        if !(1..=65535).contains(&number) {
            let field = format!("{path}.ports[{at}].containerPort");
            errors.push(FieldError::invalid(&field, number, "must be between 1 and 65535, inclusive"));
        }
    }
    for (at, mount) in object::list(container, &["volumeMounts"]).iter().enumerate() {
        let volume = object::text(mount, &["name"]);
        if !object::list(spec, &["volumes"]).iter().any(|v| object::text(v, &["name"]) == volume) {
            errors.push(FieldError::not_found(&format!("{path}.volumeMounts[{at}].name"), volume));
        }
    }
    resources(container, &format!("{path}.resources"), errors);
}

/// Resources that Kubernetes itself knows.
fn is_standard(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory" | "ephemeral-storage") || resource.starts_with("hugepages-")
}

fn resources(container: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let (limits, requests) = (
        object::map(container, &["resources", "limits"]),
        object::map(container, &["resources", "requests"]),
    );
    for (which, list) in [("limits", limits), ("requests", requests)] {
        for (resource, value) in list.into_iter().flatten() {
            let field = format!("{path}.{which}[{resource}]");
            if !is_standard(resource) && !resource.contains('/') {
                let why = "must be a standard resource type or fully qualified";
                errors.push(FieldError::invalid(&field, resource.as_str(), why));
                errors.push(FieldError::invalid(
                    &field,
                    resource.as_str(),
                    "must be a standard resource for containers",
                ));
            }
            let Some(quantity) = value.as_str().and_then(|v| v.parse::<Quantity>().ok()) else { continue };
            if quantity.is_negative() {
                errors.push(FieldError::invalid(&field, value.clone(), "must be greater than or equal to 0"));
            }
            if !is_standard(resource) && !quantity.is_whole() {
                errors.push(FieldError::invalid(&field, value.clone(), "must be an integer"));
            }
        }
    }
    for (resource, value) in requests.into_iter().flatten() {
        let Some(request) = amount(requests, resource) else { continue };
        let whole_devices = !is_standard(resource) || resource.starts_with("hugepages-");
        match amount(limits, resource) {
            Some(limit) if whole_devices && request != limit => {
                let why = format!("must be equal to {resource} limit of {limit}");
                errors.push(FieldError::invalid(&format!("{path}.requests"), value.clone(), why));
            }
            Some(limit) if request > limit => {
                let why = format!("must be less than or equal to {resource} limit of {limit}");
                errors.push(FieldError::invalid(&format!("{path}.requests"), value.clone(), why));
            }
            None if whole_devices => {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&format!("{path}.limits"), why));
            }
            _ => {}
        }
    }
}

fn toleration(toleration: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let get = |key| object::text(toleration, &[key]);
    if get("key").is_empty() && get("operator") != "Exists" {
        let why =
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        errors.push(FieldError::invalid(&format!("{path}.operator"), get("operator"), why));
    }
    if object::at(toleration, &["tolerationSeconds"]).is_some() && get("effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        errors.push(FieldError::invalid(&format!("{path}.effect"), get("effect"), why));
    }
    match get("operator") {
        "" | "Equal" | "Lt" | "Gt" => {}
        "Exists" => {
            if !get("value").is_empty() {
                let why = "value must be empty when `operator` is 'Exists'";
                errors.push(FieldError::invalid(&format!("{path}.operator"), toleration.clone(), why));
            }
        }
        other => {
            errors.push(FieldError::not_supported(&format!("{path}.operator"), other, &["Equal", "Exists"]))
        }
    }
    one_of(toleration, "effect", path, &["NoSchedule", "PreferNoSchedule", "NoExecute"], errors);
}

fn gates(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut seen = BTreeSet::new();
    for (at, gate) in object::list(spec, &["schedulingGates"]).iter().enumerate() {
        let name = object::text(gate, &["name"]);
        let field = format!("{path}.schedulingGates[{at}]");
        if name.is_empty() {
            errors.push(FieldError::required(&field, ""));
        }
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&field, name));
        }
    }
}

fn node_affinity(spec: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let required = ["affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];
    let Some(selector) = object::at(spec, &required) else { return };
    let path = format!("{path}.{}.nodeSelectorTerms", required.join("."));
    let terms = object::list(selector, &["nodeSelectorTerms"]);
    if terms.is_empty() {
        errors.push(FieldError::required(&path, "must have at least one node selector term"));
    }
    for (at, term) in terms.iter().enumerate() {
        for (i, expression) in object::list(term, &["matchExpressions"]).iter().enumerate() {
            let path = format!("{path}[{at}].matchExpressions[{i}]");
            let values = object::list(expression, &["values"]);
            match object::text(expression, &["operator"]) {
                "In" | "NotIn" if values.is_empty() => errors.push(FieldError::required(
                    &format!("{path}.values"),
                    "must be specified when `operator` is 'In' or 'NotIn'",
                )),
                "Exists" | "DoesNotExist" if !values.is_empty() => errors.push(FieldError::forbidden(
                    &format!("{path}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                )),
                "Gt" | "Lt" if values.len() != 1 => errors.push(FieldError::required(
                    &format!("{path}.values"),
                    "must be specified single value when `operator` is 'Lt' or 'Gt'",
                )),
                "In" | "NotIn" | "Exists" | "DoesNotExist" | "Gt" | "Lt" => {}
                other => {
                    let field = format!("{path}.operator");
                    errors.push(FieldError::invalid(&field, other, "not a valid selector operator"));
                }
            }
        }
    }
}
