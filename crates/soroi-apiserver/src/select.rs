//! Which objects are meant? Label and field selectors.
//!
//! Knows the selector syntax of Kubernetes. Must never know storage.

mod field;
mod label;

pub(crate) use field::FieldSelector;
pub(crate) use label::{LABEL_VALUE, LabelSelector, NAME_PART, is_qualified_part};

use serde_json::Value;

/// Both selectors of a list or watch, resolved for one resource.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
}

impl Selection {
    /// Is the object meant?
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.fields.matches(object) && self.labels.matches(crate::object::labels(object))
    }

    /// Is every object meant?
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_empty() && self.fields.is_empty()
    }
}
