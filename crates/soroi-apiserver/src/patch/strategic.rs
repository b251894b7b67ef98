//! Strategic merge patches.

use serde_json::Value;

use crate::status::ApiError;

/// Applies a patch to an object of a built-in kind.
pub(crate) fn apply(_kind: &str, object: &mut Value, patch: &Value) -> Result<(), ApiError> {
    json_patch::merge(object, patch);
    Ok(())
}
