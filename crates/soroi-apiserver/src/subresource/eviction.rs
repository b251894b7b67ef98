//! `pods/eviction`: a deletion that disruption budgets may refuse.
//!
//! Kubernetes 1.36, `pkg/registry/core/pod/storage/eviction.go`.

use std::sync::Arc;

use serde_json::{Value, json};

use crate::admission::Operation;
use crate::delete::{self, DeleteOptions};
use crate::object;
use crate::reply::Reply;
use crate::select::LabelSelector;
use crate::status::ApiError;
use crate::store::{State, Stored};
use crate::write::{Call, success};

const BUDGETS: &str = "poddisruptionbudgets.policy";
/// Evictions that were granted and that nobody has seen happen (`MaxDisruptedPodSize`).
const DISRUPTED_MAX: usize = 2000;

/// Evicts the pod that the call names.
pub(super) fn evict(call: &mut Call, eviction: &Value) -> Result<Reply, ApiError> {
    let name = object::meta(eviction, "name");
    if name != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Eviction object"));
    }
    let options = DeleteOptions::from_value(eviction.get("deleteOptions").unwrap_or(&Value::Null))?;
    call.validate_as("Eviction", Operation::Create, Some(eviction), None)?;
    let trial = options.dry_run || call.options.dry_run;
    let pod = call.current()?;
    if !is_free(&pod.value) {
        let now = object::timestamp(call.shared.clock.now());
        charge_budget(&mut call.shared.store.lock(), &pod.value, &now, trial)?;
    }
    if !trial {
        mark(call, &options);
    }
    call.subresource.clear();
    delete::delete(call, &options)?;
    Ok(Reply::created(success()))
}

/// Says on the pod why it will go, unless it is another one than is meant: then its deletion will be
/// refused.
fn mark(call: &Call, options: &DeleteOptions) {
    let now = object::timestamp(call.shared.clock.now());
    let mut state = call.shared.store.lock();
    let Some(current) = state.get(&call.resource.slot, &call.namespace, &call.name).cloned() else { return };
    let another = options.uid.as_deref().is_some_and(|uid| uid != object::meta(&current.value, "uid"));
    // Whoever names a version means the pod as it is, not as we would make it.
    if another || options.revision.is_some() {
        return;
    }
    let mut pod = current.value.clone();
    let target = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastTransitionTime": now,
    });
    let conditions = object::ensure(&mut pod, &["status"]).entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return };
    let same = |one: &Value| object::text(one, &["type"]) == "DisruptionTarget";
    match conditions.iter_mut().find(|one| same(one)) {
        Some(there) if object::text(there, &["status"]) == "True" => return,
        Some(there) => *there = target,
        None => conditions.push(target),
    }
    state.put(&call.resource.slot, pod);
}

/// Pods that run nothing, or are on their way out, disturb nobody when they go.
fn is_free(pod: &Value) -> bool {
    object::deleting(pod)
        || matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed" | "Pending")
}

/// Takes one disruption from the budget that covers the pod, if one does.
fn charge_budget(state: &mut State, pod: &Value, now: &str, trial: bool) -> Result<(), ApiError> {
    let budgets = covering(state, pod);
    let budget = match budgets.as_slice() {
        [] => return Ok(()),
        [one] => one,
        _ => {
            return Err(ApiError::unknown(
                "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
            ));
        }
    };
    let (value, name) = (&budget.value, object::meta(&budget.value, "name"));
    let count = |key| object::number(value, &["status", key]).unwrap_or(0);
    let (healthy, desired) = (count("currentHealthy"), count("desiredHealthy"));
    let always = object::text(value, &["spec", "unhealthyPodEvictionPolicy"]) == "AlwaysAllow";
    if !is_ready(pod) && (always || (healthy >= desired && desired > 0)) {
        return Ok(());
    }
    if count("observedGeneration") < object::number(value, &["metadata", "generation"]).unwrap_or(0) {
        let why = format!("The disruption budget {name} is still being processed by the server.");
        return Err(ApiError::disruption_budget(why, 10));
    }
    let allowed = count("disruptionsAllowed");
    if allowed < 0 {
        let why = "pdb disruptions allowed is negative";
        return Err(ApiError::forbidden_named("policy", "poddisruptionbudget", name, why));
    }
    if object::map(value, &["status", "disruptedPods"]).is_some_and(|pods| pods.len() > DISRUPTED_MAX) {
        let why = "DisruptedPods map too big - too many evictions not confirmed by PDB controller";
        return Err(ApiError::forbidden_named("policy", "poddisruptionbudget", name, why));
    }
    if allowed == 0 {
        return Err(ApiError::disruption_budget(why_none(value, name, healthy, desired), 0));
    }
    if !trial {
        let mut new = value.clone();
        let pod = object::meta(pod, "name").to_owned();
        object::ensure(&mut new, &["status"]).insert("disruptionsAllowed".into(), (allowed - 1).into());
        object::ensure(&mut new, &["status", "disruptedPods"]).insert(pod, now.into());
        state.put(&Arc::from(BUDGETS), new);
    }
    Ok(())
}

fn why_none(budget: &Value, name: &str, healthy: i64, desired: i64) -> String {
    let conditions = object::list(budget, &["status", "conditions"]);
    let allowed = conditions.iter().find(|c| object::text(c, &["type"]) == "DisruptionAllowed");
    let said = |key: &'static str| allowed.map_or("", |allowed| object::text(allowed, &[key]));
    let (reason, message) = (said("reason"), said("message"));
    let refuses = said("status") == "False" && !message.is_empty();
    // Its counts mean nothing after a failed sync.
    if refuses && reason == "SyncFailed" {
        return format!(
            "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
        );
    }
    if healthy <= desired {
        return format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        );
    }
    let more = if refuses { format!(" ({reason}): {message}") } else { String::new() };
    format!("The disruption budget {name} does not allow evicting pods currently{more}")
}

/// The budgets whose selector matches the pod: an empty one means every pod, none means no pod.
fn covering(state: &State, pod: &Value) -> Vec<Arc<Stored>> {
    let Some(budgets) = state.collection(BUDGETS) else { return Vec::new() };
    let covers = |budget: &Value| {
        let selector = object::at(budget, &["spec", "selector"]).and_then(LabelSelector::from_object);
        selector.is_some_and(|selector| selector.matches(object::labels(pod)))
    };
    let here = budgets.range(Some(object::meta(pod, "namespace")), None);
    here.filter(|(_, b)| covers(&b.value)).map(|(_, b)| b.clone()).collect()
}

fn is_ready(pod: &Value) -> bool {
    object::list(pod, &["status", "conditions"])
        .iter()
        .any(|c| object::text(c, &["type"]) == "Ready" && object::text(c, &["status"]) == "True")
}
