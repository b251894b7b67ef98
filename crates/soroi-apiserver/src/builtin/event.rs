//! Events: one stored object, seen as `v1` and as `events.k8s.io/v1`.
//!
//! What is stored is the core form. The two differ in the names of some fields only (Kubernetes
//! 1.36, `pkg/apis/events/v1/conversion.go`).

use serde_json::Value;

use crate::object;

/// Fields that selectors may name, in either view.
pub(crate) const SELECTABLE: &[&str] = &[
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "regarding.kind",
    "regarding.namespace",
    "regarding.name",
    "regarding.uid",
    "regarding.apiVersion",
    "regarding.resourceVersion",
    "regarding.fieldPath",
    "reason",
    "reportingComponent",
    "reportingController",
    "source",
    "type",
];

/// Core's name of a field, and that of `events.k8s.io`.
const NAMES: &[(&str, &str)] = &[
    ("involvedObject", "regarding"),
    ("message", "note"),
    ("reportingComponent", "reportingController"),
    ("source", "deprecatedSource"),
    ("firstTimestamp", "deprecatedFirstTimestamp"),
    ("lastTimestamp", "deprecatedLastTimestamp"),
    ("count", "deprecatedCount"),
];

/// The stored form as `events.k8s.io/v1`.
pub(crate) fn to_new(mut event: Value) -> Value {
    let fields = object::fields_mut(&mut event);
    for (core, new) in NAMES {
        if let Some(value) = fields.remove(*core) {
            fields.insert((*new).to_owned(), value);
        }
    }
    fields.insert("apiVersion".into(), "events.k8s.io/v1".into());
    event
}

/// An `events.k8s.io/v1` object in the stored form.
pub(crate) fn to_stored(mut event: Value) -> Value {
    let fields = object::fields_mut(&mut event);
    for (core, new) in NAMES {
        if let Some(value) = fields.remove(*new) {
            fields.insert((*core).to_owned(), value);
        }
    }
    fields.insert("apiVersion".into(), "v1".into());
    event
}
