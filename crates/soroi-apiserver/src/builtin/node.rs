//! Nodes: the taint of new ones, and allocatable.

use serde_json::{Value, json};

use crate::builtin::{PLAIN, Rules};
use crate::object;
use crate::status::FieldError;

pub(crate) const RULES: Rules = Rules {
    created_with_status: true,
    defaults,
    create,
    check,
    check_status: check_change,
    check_update: check_change,
    ..PLAIN
};

fn defaults(node: &mut Value) {
    let capacity = object::at(node, &["status", "capacity"]).cloned();
    if let Some(capacity) = capacity
        && object::at(node, &["status", "allocatable"]).is_none()
    {
        object::ensure(node, &["status"]).insert("allocatable".into(), capacity);
    }
}

/// A new node is not ready until the node lifecycle controller has seen that it is
/// (Kubernetes' admission plugin TaintNodesByCondition).
fn create(node: &mut Value) {
    const KEY: &str = "node.kubernetes.io/not-ready";
    let tainted = object::list(node, &["spec", "taints"])
        .iter()
        .any(|t| object::text(t, &["key"]) == KEY && object::text(t, &["effect"]) == "NoSchedule");
    if tainted {
        return;
    }
    let taints = object::ensure(node, &["spec"]).entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut() {
        taints.push(json!({ "key": KEY, "effect": "NoSchedule" }));
    }
}

fn check(node: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut seen = Vec::new();
    for (at, taint) in object::list(node, &["spec", "taints"]).iter().enumerate() {
        let (key, effect) = (object::text(taint, &["key"]), object::text(taint, &["effect"]));
        let path = format!("spec.taints[{at}]");
        if key.is_empty() {
            errors.push(FieldError::required(&format!("{path}.key"), ""));
        }
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(FieldError::required(&format!("{path}.effect"), "")),
            other => errors.push(FieldError::not_supported(
                &format!("{path}.effect"),
                other,
                &["NoSchedule", "PreferNoSchedule", "NoExecute"],
            )),
        }
        if seen.contains(&(key, effect)) {
            errors.push(FieldError::duplicate(&path, taint.clone()));
        }
        seen.push((key, effect));
    }
    errors
}

fn check_change(node: &Value, old: &Value) -> Vec<FieldError> {
    let (new, before) =
        (object::text(node, &["spec", "providerID"]), object::text(old, &["spec", "providerID"]));
    if before.is_empty() || new == before {
        return Vec::new();
    }
    vec![FieldError::forbidden(
        "spec.providerID",
        "node updates may not change providerID except from \"\" to valid",
    )]
}
