//! Which fields may an object have? Structural schemas.

use serde_json::Value;

use crate::status::FieldError;

/// The schema of one kind.
#[derive(Debug)]
pub(crate) struct Schema {}

impl Schema {
    pub(crate) fn of_custom(_: &Value) -> Result<Self, Vec<FieldError>> {
        Ok(Self {})
    }

    pub(crate) fn prune(&self, _: &mut Value) -> Vec<String> {
        Vec::new()
    }

    pub(crate) fn fill_defaults(&self, _: &mut Value) {}

    pub(crate) fn validate(&self, _: &Value, _: Option<&Value>) -> Vec<FieldError> {
        Vec::new()
    }
}
