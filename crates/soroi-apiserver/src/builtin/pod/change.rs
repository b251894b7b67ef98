//! Which changes of a pod are allowed (`ValidatePodUpdate` of Kubernetes 1.36).

use serde_json::Value;

use crate::object::{self, Fields};
use crate::status::FieldError;

const ONLY: &str = "pod updates may not change fields other than `spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)";
const AFFINITY: [&str; 2] = ["affinity", "nodeAffinity"];
const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// What is wrong with a change from `old` to `new`.
pub(crate) fn check(new: &Value, old: &Value) -> Vec<FieldError> {
    let (Some(new), Some(old)) = (new.get("spec"), old.get("spec")) else { return Vec::new() };
    if new == old {
        return Vec::new();
    }
    let mut errors = Vec::new();
    deadline(new, old, &mut errors);
    tolerations(new, old, &mut errors);
    gates(new, old, &mut errors);
    // What may change is made equal; what then differs may not.
    let mut rest = new.clone();
    let fields = object::fields_mut(&mut rest);
    for key in ["activeDeadlineSeconds", "tolerations", "schedulingGates"] {
        object::put(fields, key, old.get(key).cloned());
    }
    for list in ["containers", "initContainers"] {
        keep_images(fields, old, list);
    }
    if object::number(new, &["terminationGracePeriodSeconds"]) == Some(1)
        && object::number(old, &["terminationGracePeriodSeconds"]).is_some_and(|s| s < 0)
    {
        object::put(
            fields,
            "terminationGracePeriodSeconds",
            old.get("terminationGracePeriodSeconds").cloned(),
        );
    }
    if !object::list(old, &["schedulingGates"]).is_empty() {
        narrowed_selector(new, old, &mut errors);
        narrowed_affinity(new, old, &mut errors);
        object::put(fields, "nodeSelector", old.get("nodeSelector").cloned());
        put_affinity(&mut rest, object::at(old, &AFFINITY).cloned());
    }
    if !object::same(Some(&rest), Some(old)) {
        errors.push(FieldError::forbidden("spec", ONLY));
    }
    errors
}

fn put_affinity(spec: &mut Value, affinity: Option<Value>) {
    object::put(object::ensure(spec, &["affinity"]), "nodeAffinity", affinity);
}

fn keep_images(fields: &mut Fields, old: &Value, list: &str) {
    let old = object::list(old, &[list]);
    let new = fields.get_mut(list).and_then(Value::as_array_mut);
    for (new, old) in new.into_iter().flatten().zip(old) {
        object::put(object::fields_mut(new), "image", old.get("image").cloned());
    }
}

fn deadline(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let field = "spec.activeDeadlineSeconds";
    let (new, old) =
        (object::number(new, &["activeDeadlineSeconds"]), object::number(old, &["activeDeadlineSeconds"]));
    match (new, old) {
        (Some(new), Some(old)) if new > old => {
            errors.push(FieldError::invalid(field, new, "must be less than or equal to previous value"));
        }
        (None, Some(_)) => {
            errors.push(FieldError::invalid(
                field,
                Value::Null,
                "must not update from a positive integer to nil value",
            ));
        }
        _ => {}
    }
}

fn tolerations(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    // The period may change, all else must stay.
    let without_secs = |t: &Value| {
        let mut t = t.clone();
        object::fields_mut(&mut t).remove("tolerationSeconds");
        t
    };
    let kept: Vec<Value> = object::list(new, &["tolerations"]).iter().map(without_secs).collect();
    let lost = object::list(old, &["tolerations"]).iter().any(|t| !kept.contains(&without_secs(t)));
    if lost {
        let why = "existing toleration can not be modified except its tolerationSeconds";
        errors.push(FieldError::forbidden("spec.tolerations", why));
    }
}

fn gates(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let before = object::list(old, &["schedulingGates"]);
    for gate in object::list(new, &["schedulingGates"]).iter().filter(|g| !before.contains(g)) {
        let name = object::text(gate, &["name"]);
        let why = format!("only deletion is allowed, but found new scheduling gate '{name}'");
        errors.push(FieldError::forbidden("spec.schedulingGates", why));
    }
}

/// A gated pod's selector may get keys, but not lose or change them.
fn narrowed_selector(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let now = object::map(new, &["nodeSelector"]);
    let kept = object::map(old, &["nodeSelector"])
        .into_iter()
        .flatten()
        .all(|(key, value)| now.and_then(|n| n.get(key)) == Some(value));
    if !kept {
        let shown = object::at(new, &["nodeSelector"]).cloned().unwrap_or_default();
        let why = "only additions to spec.nodeSelector are allowed (no mutations or deletions)";
        errors.push(FieldError::invalid("spec.nodeSelector", shown, why));
    }
}

/// A gated pod's required node affinity may get expressions in each term, but no other terms.
fn narrowed_affinity(new: &Value, old: &Value, errors: &mut Vec<FieldError>) {
    let field = format!("spec.{}.{REQUIRED}", AFFINITY.join("."));
    let terms = |spec| object::list(spec, &[AFFINITY[0], AFFINITY[1], REQUIRED, "nodeSelectorTerms"]);
    let (now, before) = (terms(new), terms(old));
    if before.is_empty() {
        return;
    }
    if now.len() != before.len() {
        let shown = Value::Array(now.to_vec());
        let why = "no additions/deletions to non-empty NodeSelectorTerms list are allowed";
        errors.push(FieldError::invalid(&format!("{field}.nodeSelectorTerms"), shown, why));
        return;
    }
    for (at, (now, before)) in now.iter().zip(before).enumerate() {
        let grown = ["matchExpressions", "matchFields"].iter().all(|key| {
            let kept = object::list(now, &[key]);
            object::list(before, &[key]).iter().all(|e| kept.contains(e))
        });
        if !grown {
            let field = format!("{field}.nodeSelectorTerms[{at}]");
            let why = "only additions are allowed (no mutations or deletions)";
            errors.push(FieldError::invalid(&field, now.clone(), why));
        }
    }
}
