//! Pods: defaults, built-in admission, validation, and which changes are allowed.

use serde_json::{Value, json};

use crate::builtin::{PLAIN, Rules};
use crate::object::{self, Fields};
use crate::status::ApiError;
use crate::store::State;

pub(crate) mod admit;
mod change;
pub(crate) mod check;
pub(crate) mod defaults;
pub(crate) mod qos;
mod quota;

pub(crate) const RULES: Rules = Rules {
    generation: true,
    defaults: defaults::pod,
    admit,
    admit_stored: quota::check,
    create,
    check: check::pod,
    check_update: change::check,
    ..PLAIN
};

/// Kubernetes' admission plugins for pods, in its order.
fn admit(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    admit::limit_ranges(state, pod)?;
    admit::service_account(pod);
    admit::priority(state, pod)?;
    admit::tolerations(pod);
    admit::runtime_class(state, pod)
}

/// A new pod is pending; one with gates says that it may not be scheduled yet.
fn create(pod: &mut Value) {
    let qos = qos::class(pod);
    let gated = !object::list(pod, &["spec", "schedulingGates"]).is_empty();
    let mut status = json!({ "phase": "Pending", "qosClass": qos });
    if gated {
        status["conditions"] = json!([{
            "type": "PodScheduled",
            "status": "False",
            "reason": "SchedulingGated",
            "message": "Scheduling is blocked due to non-empty scheduling gates",
        }]);
    }
    object::fields_mut(pod).insert("status".into(), status);
}

/// The containers of a pod or template, the initial ones first.
pub(crate) fn all_containers(spec: &Value) -> impl Iterator<Item = &Value> {
    object::list(spec, &["initContainers"]).iter().chain(object::list(spec, &["containers"]))
}

/// Does something with every container of a pod spec.
pub(crate) fn each_container(spec: &mut Fields, mut act: impl FnMut(&mut Fields)) {
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            act(object::fields_mut(container));
        }
    }
}

/// The quantity under a key of a resource list, if it is there and well-formed.
pub(crate) fn amount(list: Option<&Fields>, resource: &str) -> Option<soroi_quantity::Quantity> {
    list?.get(resource)?.as_str()?.parse().ok()
}

#[cfg(test)]
mod tests;
