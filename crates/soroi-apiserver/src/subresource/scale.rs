//! The scale subresource: how many, seen as one small object of `autoscaling/v1`.

use http::HeaderMap;
use serde_json::{Value, json};

use crate::object;
use crate::patch::Patch;
use crate::reply::Reply;
use crate::resource::{Resource, Scale};
use crate::select::LabelSelector;
use crate::status::{ApiError, FieldError};
use crate::write::{Call, change};

/// GET.
pub(super) fn show(call: &Call) -> Result<Reply, ApiError> {
    let current = call.current()?;
    Ok(Reply::value(&of(&call.resource, &current.value)?))
}

/// PUT.
pub(super) fn replace(call: &mut Call, scale: &Value) -> Result<Reply, ApiError> {
    set(call, |_, _| Ok(scale.clone()))
}

/// PATCH.
pub(super) fn patch(call: &mut Call, headers: &HeaderMap, body: &[u8]) -> Result<Reply, ApiError> {
    let patch = Patch::parse(&call.resource, headers, body)?;
    set(call, |resource, shown| patch.apply(resource, shown))
}

fn set(
    call: &mut Call,
    make: impl Fn(&Resource, Value) -> Result<Value, ApiError>,
) -> Result<Reply, ApiError> {
    let resource = call.resource.clone();
    let paths = resource.scale.clone().ok_or_else(ApiError::no_path)?;
    let stored = change(call, |call, current| {
        let scale = make(&resource, of(&resource, current)?)?;
        let replicas = object::number(&scale, &["spec", "replicas"]).unwrap_or(0);
        if replicas < 0 {
            let why = "must be greater than or equal to 0";
            let error = FieldError::invalid("spec.replicas", replicas, why);
            return Err(ApiError::invalid("autoscaling", "Scale", &call.name, &[error]));
        }
        let mut new = current.clone();
        let metadata = object::meta_mut(&mut new);
        for key in ["resourceVersion", "uid"] {
            // The scale's own identity is a precondition, as that of an update is.
            if !object::meta(&scale, key).is_empty() {
                metadata.insert(key.into(), object::meta(&scale, key).into());
            }
        }
        if let Some((last, parents)) = paths.spec_replicas.split_last() {
            let parents: Vec<&str> = parents.iter().map(String::as_str).collect();
            object::ensure(&mut new, &parents).insert(last.clone(), replicas.into());
        }
        Ok(new)
    })?;
    Ok(Reply::value(&of(&resource, &stored.value)?))
}

/// An object's scale.
fn of(resource: &Resource, value: &Value) -> Result<Value, ApiError> {
    let Scale { spec_replicas, status_replicas, selector } =
        resource.scale.as_ref().ok_or_else(ApiError::no_path)?;
    let number = |path: &[String]| found(value, path).and_then(Value::as_i64).unwrap_or(0);
    let mut status = json!({ "replicas": number(status_replicas) });
    if let Some(selector) = selector.as_ref().and_then(|path| found(value, path)) {
        let text = match selector {
            Value::String(text) => text.clone(),
            object => LabelSelector::from_object(object).map(|s| s.to_string()).unwrap_or_default(),
        };
        status["selector"] = text.into();
    }
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if !object::meta(value, key).is_empty() {
            metadata[key] = object::meta(value, key).into();
        }
    }
    // As in Go's type, where none is not written.
    let spec = match number(spec_replicas) {
        0 => json!({}),
        replicas => json!({ "replicas": replicas }),
    };
    Ok(json!({
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": metadata,
        "spec": spec,
        "status": status,
    }))
}

fn found<'a>(value: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(value, |here, key| here.get(key))
}
