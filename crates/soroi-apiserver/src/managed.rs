//! Who owns which field? Server-side apply.

use serde_json::Value;

use crate::status::ApiError;
use crate::write::Call;

pub(crate) fn on_create(_: &Call, _: &mut Value) {}

pub(crate) fn on_change(_: &Call, _: &mut Value, _: &Value) {}

pub(crate) fn check_configuration(_: &Call, _: &Value) -> Result<(), ApiError> {
    Ok(())
}

pub(crate) fn applied(
    call: &Call,
    current: Option<&Value>,
    configuration: &Value,
) -> Result<Value, ApiError> {
    let mut new = current.cloned().unwrap_or_else(|| configuration.clone());
    json_patch::merge(&mut new, configuration);
    crate::object::fields_mut(&mut new).insert("kind".into(), call.resource.kind.as_str().into());
    Ok(new)
}
