//! How are fields of any object read? Absent and empty are the same here.
//!
//! Knows JSON and `metadata`; never a kind.

use serde_json::Value;

/// A text, empty if there is none.
pub(super) fn text<'a>(object: &'a Value, pointer: &str) -> &'a str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// A list, empty if there is none.
pub(super) fn list<'a>(object: &'a Value, pointer: &str) -> &'a [Value] {
    object.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `metadata.name`.
pub(super) fn name(object: &Value) -> &str {
    text(object, "/metadata/name")
}

/// `namespace/name`, or the name of an object of the whole cluster.
pub(super) fn place(object: &Value) -> String {
    match text(object, "/metadata/namespace") {
        "" => name(object).to_owned(),
        namespace => format!("{namespace}/{}", name(object)),
    }
}

/// An annotation.
pub(super) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// A label.
pub(super) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["labels"][key].as_str()
}

/// Whether a condition is True.
pub(super) fn holds(object: &Value, kind: &str) -> bool {
    list(object, "/status/conditions").iter().any(|one| one["type"] == kind && one["status"] == "True")
}

/// The path of an object whose resource is served at `base` (`/apis/GROUP/VERSION`, `PLURAL`).
pub(super) fn path(base: &str, plural: &str, object: &Value) -> String {
    match text(object, "/metadata/namespace") {
        "" => format!("{base}/{plural}/{}", name(object)),
        namespace => format!("{base}/namespaces/{namespace}/{plural}/{}", name(object)),
    }
}
