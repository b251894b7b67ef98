//! ResourceQuota for pods: how many, and how much they request together.
//!
//! The sums are taken from the stored pods under the store's lock, so that two pods cannot share
//! the last of a quota. (Kubernetes 1.36, `pkg/quota/v1/evaluator/core/pods.go`.)

use std::collections::BTreeMap;

use serde_json::Value;
use soroi_quantity::{Format, Quantity};

use super::{amount, qos};
use crate::object;
use crate::status::ApiError;
use crate::store::{PODS, State};

/// Refuses a new pod that is beyond a quota of its namespace.
pub(crate) fn check(state: &State, pod: &Value) -> Result<(), ApiError> {
    let namespace = object::meta(pod, "namespace");
    let Some(quotas) = state.collection("resourcequotas") else { return Ok(()) };
    for (_, quota) in quotas.range(Some(namespace), None) {
        let quota = &quota.value;
        if applies(quota, pod) {
            check_one(state, quota, pod, namespace)?;
        }
    }
    Ok(())
}

fn check_one(state: &State, quota: &Value, pod: &Value, namespace: &str) -> Result<(), ApiError> {
    let Some(hard) = object::map(quota, &["spec", "hard"]) else { return Ok(()) };
    let name = object::meta(quota, "name");
    let forbid = |why: String| Err(ApiError::forbidden_pod(object::meta(pod, "name"), why));
    let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for key in hard.keys().filter(|k| is_compute(k)) {
        for container in object::list(pod, &["spec", "containers"]) {
            if of_container(container, key).is_none() {
                missing.entry(object::text(container, &["name"])).or_default().push(key);
            }
        }
    }
    if !missing.is_empty() {
        let all: Vec<String> =
            missing.iter().map(|(container, keys)| format!("{} for: {container}", keys.join(","))).collect();
        return forbid(format!("failed quota: {name}: must specify {}", all.join("; ")));
    }
    let asked: BTreeMap<&str, Quantity> = hard
        .keys()
        .filter_map(|k| Some((k.as_str(), usage(pod, k)?)))
        .filter(|(_, q)| !q.is_zero())
        .collect();
    let mut used: BTreeMap<&str, Quantity> = BTreeMap::new();
    for (_, other) in state.collection(PODS).into_iter().flat_map(|c| c.range(Some(namespace), None)) {
        if is_over(&other.value) || !applies(quota, &other.value) {
            continue;
        }
        for key in asked.keys() {
            if let Some(more) = usage(&other.value, key) {
                let sum = used.entry(key).or_insert(Quantity::ZERO);
                *sum = sum.saturating_add(&more);
            }
        }
    }
    let mut exceeded = Vec::new();
    for (key, more) in &asked {
        let used = used.get(key).copied().unwrap_or(Quantity::ZERO);
        let Some(limit) = amount(Some(hard), key) else { continue };
        if used.saturating_add(more) > limit {
            exceeded.push((*key, *more, used, limit));
        }
    }
    if exceeded.is_empty() {
        return Ok(());
    }
    let list = |pick: fn(&(&str, Quantity, Quantity, Quantity)) -> Quantity| {
        exceeded.iter().map(|e| format!("{}={}", e.0, pick(e))).collect::<Vec<_>>().join(",")
    };
    forbid(format!(
        "exceeded quota: {name}, requested: {}, used: {}, limited: {}",
        list(|e| e.1),
        list(|e| e.2),
        list(|e| e.3)
    ))
}

/// Ended pods use nothing.
fn is_over(pod: &Value) -> bool {
    matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed")
}

/// Does the quota count this pod, by its scopes?
fn applies(quota: &Value, pod: &Value) -> bool {
    let best_effort = || qos::class(pod) == "BestEffort";
    let deadline = || object::at(pod, &["spec", "activeDeadlineSeconds"]).is_some();
    let scope = |scope: &str| match scope {
        "BestEffort" => best_effort(),
        "NotBestEffort" => !best_effort(),
        "Terminating" => deadline(),
        "NotTerminating" => !deadline(),
        "PriorityClass" => !object::text(pod, &["spec", "priorityClassName"]).is_empty(),
        _ => false,
    };
    let class = object::text(pod, &["spec", "priorityClassName"]);
    let expression = |e: &Value| {
        if object::text(e, &["scopeName"]) != "PriorityClass" {
            return scope(object::text(e, &["scopeName"]));
        }
        let named = object::list(e, &["values"]).iter().any(|v| v.as_str() == Some(class));
        match object::text(e, &["operator"]) {
            "In" => named,
            "NotIn" => !named,
            "Exists" => !class.is_empty(),
            "DoesNotExist" => class.is_empty(),
            _ => false,
        }
    };
    object::list(quota, &["spec", "scopes"]).iter().filter_map(Value::as_str).all(scope)
        && object::list(quota, &["spec", "scopeSelector", "matchExpressions"]).iter().all(expression)
}

/// Must every container say how much it wants of this?
fn is_compute(key: &str) -> bool {
    matches!(key, "cpu" | "memory" | "requests.cpu" | "requests.memory" | "limits.cpu" | "limits.memory")
}

fn of_container(container: &Value, key: &str) -> Option<Quantity> {
    let (which, resource) = match key.split_once('.') {
        Some(("limits", resource)) => ("limits", resource),
        Some(("requests", resource)) => ("requests", resource),
        _ => ("requests", key),
    };
    amount(object::map(container, &["resources", which]), resource)
}

/// What a pod uses of a quota's key; none for keys that are not about pods.
fn usage(pod: &Value, key: &str) -> Option<Quantity> {
    if matches!(key, "pods" | "count/pods") {
        return Some(Quantity::from_units(1, Format::DecimalSi));
    }
    let sum = |list: &str| {
        let each = object::list(pod, &["spec", list]).iter().filter_map(|c| of_container(c, key));
        each.fold(Quantity::ZERO, |a, b| a.saturating_add(&b))
    };
    if key.contains('/') && !key.starts_with("requests.") {
        return None;
    }
    let largest_init =
        object::list(pod, &["spec", "initContainers"]).iter().filter_map(|c| of_container(c, key)).max();
    let overhead =
        amount(object::map(pod, &["spec", "overhead"]), key.rsplit_once('.').map_or(key, |(_, r)| r));
    let running = sum("containers");
    let most = largest_init.map_or(running, |init| running.max(init));
    Some(most.saturating_add(&overhead.unwrap_or(Quantity::ZERO)))
}
