//! Which changes of a Job are allowed.
//!
//! The template may change only while the Job is suspended, says so in its status, and has no
//! active pod; and then only where its pods go and what they request (Kubernetes 1.36,
//! `ValidateJobUpdate` with the gates for mutable scheduling directives and pod resources).

use serde_json::Value;

use crate::object;
use crate::status::FieldError;

/// What is wrong with a change from `old` to `new`.
pub(super) fn check(new: &Value, old: &Value) -> Vec<FieldError> {
    let (Some(spec), Some(before)) = (new.get("spec"), old.get("spec")) else { return Vec::new() };
    if spec == before {
        return Vec::new();
    }
    let mut errors = Vec::new();
    completions(spec, before, &mut errors);
    for key in [
        "selector",
        "completionMode",
        "podFailurePolicy",
        "backoffLimitPerIndex",
        "managedBy",
        "successPolicy",
    ] {
        if !object::same(spec.get(key), before.get(key)) {
            errors.push(immutable(&format!("spec.{key}"), spec.get(key)));
        }
    }
    let allowed = may_place(old);
    let expected =
        if allowed { placed(before, spec) } else { before.get("template").cloned().unwrap_or_default() };
    if !object::same(spec.get("template"), Some(&expected)) {
        errors.push(immutable("spec.template", spec.get("template")));
    }
    errors
}

fn immutable(field: &str, value: Option<&Value>) -> FieldError {
    FieldError::invalid(field, value.cloned().unwrap_or_default(), "field is immutable")
}

/// Completions are fixed, but for an Indexed Job that changes them together with parallelism.
fn completions(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let number = |spec, key| object::number(spec, &[key]);
    if number(new, "completions") == number(old, "completions") {
        return;
    }
    let elastic = object::text(old, &["completionMode"]) == "Indexed" && number(new, "completions").is_some();
    if !elastic {
        errors.push(immutable("spec.completions", new.get("completions")));
    } else if number(new, "completions") != number(new, "parallelism") {
        let shown = new.get("completions").cloned().unwrap_or_default();
        let why = "can only be modified in tandem with spec.parallelism";
        errors.push(FieldError::invalid("spec.completions", shown, why));
    }
}

/// Is this a Job whose pods may still be placed anew?
fn may_place(old: &Value) -> bool {
    let suspended = object::list(old, &["status", "conditions"])
        .iter()
        .any(|c| object::text(c, &["type"]) == "Suspended" && object::text(c, &["status"]) == "True");
    let active = object::number(old, &["status", "active"]).unwrap_or(0);
    object::flag(old, &["spec", "suspend"]) && suspended && active == 0
}

/// The old template with the changeable fields of the new one.
fn placed(old: &Value, new: &Value) -> Value {
    let mut template = old.get("template").cloned().unwrap_or_default();
    let new = new.get("template").unwrap_or(&Value::Null);
    let metadata = object::ensure(&mut template, &["metadata"]);
    for key in ["labels", "annotations"] {
        object::put(metadata, key, object::at(new, &["metadata", key]).cloned());
    }
    let spec = object::ensure(&mut template, &["spec"]);
    for key in ["nodeSelector", "tolerations", "schedulingGates"] {
        object::put(spec, key, object::at(new, &["spec", key]).cloned());
    }
    for list in ["containers", "initContainers"] {
        let resources = object::list(new, &["spec", list]).iter().map(|c| c.get("resources").cloned());
        let containers = spec.get_mut(list).and_then(Value::as_array_mut);
        for (container, resources) in containers.into_iter().flatten().zip(resources) {
            object::put(object::fields_mut(container), "resources", resources);
        }
    }
    let affinity = object::at(new, &["spec", "affinity", "nodeAffinity"]).cloned();
    object::put(object::ensure(&mut template, &["spec", "affinity"]), "nodeAffinity", affinity);
    template
}
