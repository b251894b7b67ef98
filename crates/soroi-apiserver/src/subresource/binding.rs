//! `pods/binding`: the one write that gives a pod its node.
//!
//! Kubernetes 1.36, `pkg/registry/core/pod/storage`: the binding may name the uid and the
//! resourceVersion that the pod must have; it is refused for a pod that is bound, being deleted
//! or gated. Nothing checks that the node exists or has room.

use serde_json::{Value, json};

use crate::admission::Operation;
use crate::object;
use crate::reply::Reply;
use crate::status::ApiError;
use crate::store::Stored;
use crate::write::{Call, success};

/// Binds the pod that the call names.
pub(super) fn bind(call: &mut Call, binding: &Value) -> Result<Reply, ApiError> {
    check_form(call, binding)?;
    call.validate_as("Binding", Operation::Create, Some(binding), None)?;
    let now = object::timestamp(call.shared.clock.now());
    let mut state = call.shared.store.lock();
    let current = state
        .get(&call.resource.slot, &call.namespace, &call.name)
        .cloned()
        .ok_or_else(|| ApiError::not_found(&call.resource, &call.name))?;
    check_pod(call, binding, &current)?;
    if !call.options.dry_run {
        state.put(&call.resource.slot, bound(&current.value, binding, &now));
    }
    Ok(Reply::created(success()))
}

fn check_form(call: &Call, binding: &Value) -> Result<(), ApiError> {
    if object::meta(binding, "name") != call.name {
        return Err(ApiError::bad_request("name in URL does not match name in Binding object"));
    }
    let kind = object::text(binding, &["target", "kind"]);
    if !matches!(kind, "" | "Node") {
        let text =
            format!("target.kind: Unsupported value: {kind:?}: supported values: \"Node\", \"<empty>\"");
        return Err(ApiError::unknown(text));
    }
    if object::text(binding, &["target", "name"]).is_empty() {
        return Err(ApiError::unknown("target.name: Required value"));
    }
    Ok(())
}

fn check_pod(call: &Call, binding: &Value, current: &Stored) -> Result<(), ApiError> {
    let pod = &current.value;
    let name = &call.name;
    let (uid, wanted) = (object::meta(pod, "uid"), object::meta(binding, "uid"));
    if !wanted.is_empty() && wanted != uid {
        return Err(call.precondition("UID", wanted, uid));
    }
    let (revision, wanted) = (current.revision.to_string(), object::meta(binding, "resourceVersion"));
    if !wanted.is_empty() && wanted != revision {
        return Err(call.precondition("ResourceVersion", wanted, &revision));
    }
    let node = object::text(pod, &["spec", "nodeName"]);
    let why = if object::deleting(pod) {
        format!("pod {name} is being deleted, cannot be assigned to a host")
    } else if !node.is_empty() {
        format!("pod {name} is already assigned to node {node:?}")
    } else if !object::list(pod, &["spec", "schedulingGates"]).is_empty() {
        format!("pod {name} has non-empty .spec.schedulingGates")
    } else {
        return Ok(());
    };
    Err(ApiError::conflict_named("pods/binding", name, why))
}

/// The pod with its node, the binding's annotations, and the condition that it is scheduled.
fn bound(pod: &Value, binding: &Value, now: &str) -> Value {
    let mut pod = pod.clone();
    let node = object::at(binding, &["target", "name"]).cloned().unwrap_or_default();
    object::ensure(&mut pod, &["spec"]).insert("nodeName".into(), node);
    if let Some(annotations) = object::map(binding, &["metadata", "annotations"]) {
        let target = object::ensure(&mut pod, &["metadata", "annotations"]);
        target.extend(annotations.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    // Without `observedGeneration`, as Kubernetes 1.36 has it (`BindingREST.setPodNodeAndMetadata`).
    let scheduled = json!({ "type": "PodScheduled", "status": "True", "lastTransitionTime": now });
    let status = object::ensure(&mut pod, &["status"]);
    status.remove("nominatedNodeName");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        match conditions.iter_mut().find(|c| object::text(c, &["type"]) == "PodScheduled") {
            Some(condition) => *condition = scheduled,
            None => conditions.push(scheduled),
        }
    }
    pod
}
