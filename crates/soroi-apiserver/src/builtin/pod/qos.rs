//! Which quality of service has a pod? (`pkg/apis/core/v1/helper/qos`.)

use serde_json::Value;

use super::{all_containers, amount};
use crate::object;

/// `Guaranteed`, `Burstable` or `BestEffort`, from the pod's CPU and memory.
pub(crate) fn class(pod: &Value) -> &'static str {
    let Some(spec) = pod.get("spec") else { return "BestEffort" };
    // Pod-level resources, where given, decide alone.
    let whole = object::at(spec, &["resources"]).filter(|r| r.as_object().is_some_and(|f| !f.is_empty()));
    let lists: Vec<&Value> = match whole {
        Some(resources) => vec![resources],
        None => all_containers(spec).filter_map(|c| object::at(c, &["resources"])).collect(),
    };
    let containers = if whole.is_some() { 1 } else { all_containers(spec).count() };
    let given = |list: &Value, which: &str, resource: &str| {
        amount(object::map(list, &[which]), resource).filter(|q| !q.is_zero())
    };
    let mut any = false;
    let mut guaranteed = lists.len() == containers;
    for list in lists {
        for resource in ["cpu", "memory"] {
            let (request, limit) = (given(list, "requests", resource), given(list, "limits", resource));
            any |= request.is_some() || limit.is_some();
            guaranteed &= limit.is_some() && request.is_none_or(|r| Some(r) == limit);
        }
    }
    match (any, guaranteed) {
        (false, _) => "BestEffort",
        (true, true) => "Guaranteed",
        (true, false) => "Burstable",
    }
}
