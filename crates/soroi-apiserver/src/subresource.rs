//! Binding, eviction and scale.

use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use serde_json::{Value, json};

use crate::query::Query;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::store::{PODS, Stored};
use crate::write::{Call, success};
use crate::{decode, delete, object, write};

/// Does the resource have this subresource, beside status?
pub(crate) fn exists(resource: &Resource, name: &str) -> bool {
    match name {
        "binding" | "eviction" => &*resource.slot == PODS,
        "scale" => resource.scale.is_some(),
        _ => false,
    }
}

/// Answers a request on a subresource.
pub(crate) fn answer(call: &mut Call, parts: &Parts, _query: &Query, body: Bytes) -> Result<Reply, ApiError> {
    match (call.subresource.as_str(), &parts.method) {
        ("binding", &Method::POST) => bind(call, &decode::value(&parts.headers, &body)?),
        ("eviction", &Method::POST) => evict(call, &decode::value(&parts.headers, &body)?),
        _ => Err(ApiError::method_not_allowed()),
    }
}

/// Binds a pod to a node.
fn bind(call: &mut Call, binding: &Value) -> Result<Reply, ApiError> {
    let node = object::text(binding, &["target", "name"]).to_owned();
    let now = object::timestamp(call.shared.clock.now());
    let mut state = call.shared.store.lock();
    let current = state
        .get(&call.resource.slot, &call.namespace, &call.name)
        .cloned()
        .ok_or_else(|| ApiError::not_found(&call.resource, &call.name))?;
    check_binding(call, binding, &current)?;
    let mut pod = current.value.clone();
    object::ensure(&mut pod, &["spec"]).insert("nodeName".into(), node.into());
    if let Some(annotations) = object::map(binding, &["metadata", "annotations"]) {
        let target = object::ensure(&mut pod, &["metadata", "annotations"]);
        target.extend(annotations.iter().map(|(k, v)| (k.clone(), v.clone())));
    }
    let scheduled = json!({
        "type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now,
    });
    let status = object::ensure(&mut pod, &["status"]);
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    if let Some(conditions) = conditions.as_array_mut() {
        match conditions.iter_mut().find(|c| object::text(c, &["type"]) == "PodScheduled") {
            Some(condition) => *condition = scheduled,
            None => conditions.push(scheduled),
        }
    }
    state.put(&call.resource.slot, pod);
    Ok(Reply::created(success()))
}

fn check_binding(call: &Call, _binding: &Value, current: &Arc<Stored>) -> Result<(), ApiError> {
    let node = object::text(&current.value, &["spec", "nodeName"]);
    if !node.is_empty() {
        let why = format!("pod {} is already assigned to node {node:?}", call.name);
        return Err(ApiError::conflict(&call.resource, &call.name, why));
    }
    Ok(())
}

fn evict(call: &mut Call, eviction: &Value) -> Result<Reply, ApiError> {
    let options = object::at(eviction, &["deleteOptions"]).cloned().unwrap_or(Value::Null);
    delete::delete(call, &delete::DeleteOptions::from_value(&options)?)?;
    Ok(Reply::created(write::success()))
}
