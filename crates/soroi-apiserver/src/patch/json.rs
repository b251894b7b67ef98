//! JSON patches (RFC 6902).

use serde_json::Value;

use crate::status::ApiError;

/// Most operations of one patch; Kubernetes' own bound.
const OPERATIONS_MAX: usize = 10_000;

/// Parses the list of operations.
pub(crate) fn parse(body: &[u8]) -> Result<json_patch::Patch, ApiError> {
    let list: Vec<Value> = serde_json::from_slice(body).map_err(|_| {
        let found = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        ApiError::bad_request(format!("error decoding patch: {found}"))
    })?;
    let patch: json_patch::Patch = serde_json::from_value(Value::Array(list))
        .map_err(|e| ApiError::bad_request(format!("error decoding patch: {e}")))?;
    if patch.len() > OPERATIONS_MAX {
        let count = patch.len();
        return Err(ApiError::too_large(&format!(
            "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
        )));
    }
    Ok(patch)
}

/// Applies all operations or none.
pub(crate) fn apply(patch: &json_patch::Patch, object: &mut Value) -> Result<(), ApiError> {
    json_patch::patch(object, patch).map_err(|_| ApiError::unprocessable())
}
