//! Kinds whose rules are a few lines each.

use serde_json::{Value, json};

use crate::builtin::pod::defaults as pod_defaults;
use crate::builtin::{PLAIN, Rules};
use crate::meta::NameRule;
use crate::object::{self, set_default};
use crate::status::{ApiError, FieldError};
use crate::store::State;

/// Deployments, ReplicaSets, StatefulSets: replicas and a template.
pub(crate) const REPLICATED: Rules =
    Rules { generation: true, defaults: replicated, check: check_selector, ..PLAIN };

/// DaemonSets and PodTemplates: a template alone.
pub(crate) const TEMPLATED: Rules = Rules { generation: true, defaults: pod_defaults::template, ..PLAIN };

pub(crate) const POD_TEMPLATE: Rules = Rules { generation: true, defaults: pod_template, ..PLAIN };

fn pod_template(object: &mut Value) {
    pod_defaults::template_spec(object::ensure(object, &["template", "spec"]));
}

fn replicated(object: &mut Value) {
    pod_defaults::template(object);
    set_default(object::ensure(object, &["spec"]), "replicas", 1);
}

fn check_selector(object: &Value) -> Vec<FieldError> {
    let Some(selector) = object::at(object, &["spec", "selector"]) else {
        return vec![FieldError::required("spec.selector", "")];
    };
    let labels = object::map(object, &["spec", "template", "metadata", "labels"]);
    match crate::select::LabelSelector::from_object(selector) {
        Some(parsed) if parsed.matches(labels) => Vec::new(),
        _ => {
            let shown = labels.cloned().unwrap_or_default();
            let why = "`selector` does not match template `labels`";
            vec![FieldError::invalid("spec.template.metadata.labels", shown, why)]
        }
    }
}

pub(crate) const PRIORITY_CLASS: Rules = Rules {
    generation: true,
    defaults: priority_class,
    check: check_priority,
    check_update: check_priority_change,
    admit_stored: one_default,
    ..PLAIN
};

/// The highest priority that a user may give.
const USER_PRIORITY_MAX: i64 = 1_000_000_000;

fn priority_class(class: &mut Value) {
    set_default(object::fields_mut(class), "preemptionPolicy", "PreemptLowerPriority");
    set_default(object::fields_mut(class), "value", 0);
}

fn check_priority(class: &Value) -> Vec<FieldError> {
    let value = object::number(class, &["value"]).unwrap_or(0);
    let name = object::meta(class, "name");
    let mut errors = Vec::new();
    if name.starts_with("system-") && !SYSTEM_CLASSES.iter().any(|(n, v)| *n == name && *v == value) {
        let why = "priority class names with 'system-' prefix are reserved for system use only. error: not a known system priority class";
        errors.push(FieldError::forbidden("metadata.name", why));
    } else if value > USER_PRIORITY_MAX && !name.starts_with("system-") {
        let why = format!("maximum allowed value of a user defined priority is {USER_PRIORITY_MAX}");
        errors.push(FieldError::forbidden("value", why));
    }
    let policy = object::text(class, &["preemptionPolicy"]);
    if !matches!(policy, "PreemptLowerPriority" | "Never") {
        errors.push(FieldError::not_supported(
            "preemptionPolicy",
            policy,
            &["Never", "PreemptLowerPriority"],
        ));
    }
    errors
}

fn check_priority_change(class: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if class.get("value") != old.get("value") {
        errors.push(FieldError::forbidden("value", "may not be changed in an update."));
    }
    if class.get("preemptionPolicy") != old.get("preemptionPolicy") {
        let shown = class.get("preemptionPolicy").cloned().unwrap_or_default();
        errors.push(FieldError::invalid("preemptionPolicy", shown, "field is immutable"));
    }
    errors
}

/// The classes that every cluster has, with their values.
pub(crate) const SYSTEM_CLASSES: [(&str, i64); 2] =
    [("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000)];

fn one_default(state: &State, class: &Value) -> Result<(), ApiError> {
    if !object::flag(class, &["globalDefault"]) {
        return Ok(());
    }
    let classes =
        state.collection("priorityclasses.scheduling.k8s.io").into_iter().flat_map(|c| c.range(None, None));
    for (_, other) in classes {
        if object::flag(&other.value, &["globalDefault"]) {
            let (name, other) = (object::meta(class, "name"), object::meta(&other.value, "name"));
            let why = format!("PriorityClass {other} already exists as default. Only one default can exist");
            return Err(ApiError::forbidden_named("scheduling.k8s.io", "priorityclasses", name, why));
        }
    }
    Ok(())
}

pub(crate) const LIMIT_RANGE: Rules = Rules { defaults: limit_range, ..PLAIN };

/// What a LimitRange leaves out follows from what it says: the default limit from the maximum,
/// the default request from the default limit, or else from the minimum.
fn limit_range(range: &mut Value) {
    for limit in object::list_mut(range, &["spec", "limits"]).into_iter().flatten() {
        if object::text(limit, &["type"]) != "Container" {
            continue;
        }
        for (from, to) in [("max", "default"), ("default", "defaultRequest"), ("min", "defaultRequest")] {
            let source = object::map(limit, &[from]).cloned().unwrap_or_default();
            for (resource, amount) in source {
                set_default(object::ensure(limit, &[to]), &resource, amount);
            }
        }
    }
}

pub(crate) const RUNTIME_CLASS: Rules = Rules { check: check_runtime, check_update: fixed_handler, ..PLAIN };

fn check_runtime(class: &Value) -> Vec<FieldError> {
    if object::text(class, &["handler"]).is_empty() {
        return vec![FieldError::required("handler", "")];
    }
    Vec::new()
}

fn fixed_handler(class: &Value, old: &Value) -> Vec<FieldError> {
    if class.get("handler") == old.get("handler") {
        return Vec::new();
    }
    vec![FieldError::invalid("handler", object::text(class, &["handler"]), "field is immutable")]
}

pub(crate) const SERVICE: Rules = Rules { name: NameRule::ServiceLabel, defaults: service, ..PLAIN };

fn service(service: &mut Value) {
    let spec = object::ensure(service, &["spec"]);
    set_default(spec, "type", "ClusterIP");
    set_default(spec, "sessionAffinity", "None");
    set_default(spec, "internalTrafficPolicy", "Cluster");
    if let Some(address) = spec.get("clusterIP").cloned() {
        set_default(spec, "clusterIPs", json!([address]));
    }
    for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let port = object::fields_mut(port);
        set_default(port, "protocol", "TCP");
        if let Some(number) = port.get("port").cloned() {
            set_default(port, "targetPort", number);
        }
    }
}

pub(crate) const SECRET: Rules = Rules { defaults: secret, ..PLAIN };

fn secret(secret: &mut Value) {
    let fields = object::fields_mut(secret);
    set_default(fields, "type", "Opaque");
    // `stringData` is only a way to write `data`.
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    let data = object::ensure(secret, &["data"]);
    for (key, text) in texts {
        data.insert(key, base64(text.as_str().unwrap_or("").as_bytes()).into());
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let letter = LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char;
            out.push(if at <= chunk.len() { letter } else { '=' });
        }
    }
    out
}

pub(crate) const CLAIM: Rules = Rules { defaults: claim, create: pending, ..PLAIN };
pub(crate) const VOLUME: Rules = Rules { defaults: volume, create: pending, ..PLAIN };

fn claim(claim: &mut Value) {
    set_default(object::ensure(claim, &["spec"]), "volumeMode", "Filesystem");
}

fn volume(volume: &mut Value) {
    let spec = object::ensure(volume, &["spec"]);
    set_default(spec, "volumeMode", "Filesystem");
    set_default(spec, "persistentVolumeReclaimPolicy", "Retain");
}

fn pending(object: &mut Value) {
    object::fields_mut(object).insert("status".into(), json!({ "phase": "Pending" }));
}

pub(crate) const STORAGE_CLASS: Rules = Rules { defaults: storage_class, ..PLAIN };

fn storage_class(class: &mut Value) {
    let fields = object::fields_mut(class);
    set_default(fields, "reclaimPolicy", "Delete");
    set_default(fields, "volumeBindingMode", "Immediate");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_encoded() {
        for (text, encoded) in
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")]
        {
            assert_eq!(base64(text.as_bytes()), encoded);
        }
    }
}
