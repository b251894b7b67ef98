//! `pods/eviction`: a deletion that disruption budgets may refuse.
//!
//! Kubernetes 1.36, `pkg/registry/core/pod/storage/eviction.go`.

use std::sync::Arc;

use serde_json::Value;

use crate::admission::Operation;
use crate::delete::{self, DeleteOptions};
use crate::object;
use crate::reply::Reply;
use crate::select::LabelSelector;
use crate::status::ApiError;
use crate::store::{State, Stored};
use crate::write::{Call, success};

const BUDGETS: &str = "poddisruptionbudgets.policy";

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
    call.subresource.clear();
    delete::delete(call, &options)?;
    Ok(Reply::created(success()))
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
    if allowed <= 0 {
        let why =
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently");
        return Err(ApiError::disruption_budget(why, 0));
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

/// The budgets whose selector, if it has one, matches the pod.
fn covering(state: &State, pod: &Value) -> Vec<Arc<Stored>> {
    let Some(budgets) = state.collection(BUDGETS) else { return Vec::new() };
    let covers = |budget: &Value| {
        let selector = object::at(budget, &["spec", "selector"]).and_then(LabelSelector::from_object);
        selector.is_some_and(|s| !s.is_empty() && s.matches(object::labels(pod)))
    };
    let here = budgets.range(Some(object::meta(pod, "namespace")), None);
    here.filter(|(_, b)| covers(&b.value)).map(|(_, b)| b.clone()).collect()
}

fn is_ready(pod: &Value) -> bool {
    object::list(pod, &["status", "conditions"])
        .iter()
        .any(|c| object::text(c, &["type"]) == "Ready" && object::text(c, &["status"]) == "True")
}
