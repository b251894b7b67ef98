//! `pods/resize`: new resources for the containers of a pod in place, and nothing else.

use http::Method;
use http::request::Parts;
use serde_json::Value;

use crate::builtin::pod::qos;
use crate::object;
use crate::patch::Patch;
use crate::reply::Reply;
use crate::status::{ApiError, FieldError};
use crate::write::{Call, change};
use crate::{decode, read};

/// Changes the resources of the pod's containers.
pub(super) fn resize(call: &mut Call, parts: &Parts, body: &[u8]) -> Result<Reply, ApiError> {
    let resource = call.resource.clone();
    let whole = (parts.method == Method::PUT).then(|| decode::value(&parts.headers, body)).transpose()?;
    let patch = match whole {
        Some(_) => None,
        None => Some(Patch::parse(&resource, &parts.headers, body)?),
    };
    let stored = change(call, |call, current| {
        let wanted = match (&patch, &whole) {
            (Some(patch), _) => patch.apply(&call.resource, current.clone())?,
            (None, whole) => whole.clone().unwrap_or_default(),
        };
        let mut new = with_resources(current, &wanted);
        if let Some(schema) = resource.schema() {
            schema.settle(&mut new).map_err(ApiError::bad_request)?;
        }
        if qos::class(&new) != qos::class(current) {
            let why = "Pod QOS Class may not change as a result of resizing";
            // The class that the pod has, as Kubernetes says it.
            let error = FieldError::invalid("spec", qos::class(current), why);
            return Err(ApiError::invalid_object(&resource, &call.name, &[error]));
        }
        Ok(new)
    })?;
    Ok(Reply::ok(read::show_json(&resource, &stored)))
}

/// The pod with the resources that another form of it gives its containers.
fn with_resources(current: &Value, wanted: &Value) -> Value {
    let mut pod = current.clone();
    for list in ["containers", "initContainers"] {
        let wanted = object::list(wanted, &["spec", list]);
        for container in object::list_mut(&mut pod, &["spec", list]).into_iter().flatten() {
            let name = object::text(container, &["name"]).to_owned();
            if let Some(new) = wanted.iter().find(|c| object::text(c, &["name"]) == name) {
                object::put(object::fields_mut(container), "resources", new.get("resources").cloned());
            }
        }
    }
    pod
}
