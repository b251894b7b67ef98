//! Reading raw JSON whose shape nobody has promised: what is not there, or is something else, is
//! nothing.

use serde_json::{Map, Value};

/// The items of a list.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// The entries of a map.
pub(crate) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flat_map(Map::iter)
}

/// A text that is not empty.
pub(crate) fn text(value: &Value) -> Option<&str> {
    value.as_str().filter(|text| !text.is_empty())
}

/// The value of a label that is not empty.
pub(crate) fn label<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    text(&object["metadata"]["labels"][key])
}

/// The value of an annotation, if there is one.
pub(crate) fn annotation<'a>(object: &'a Value, key: &str) -> Option<&'a str> {
    object["metadata"]["annotations"][key].as_str()
}

/// Whether a condition of an object's status is True.
pub(crate) fn condition_is_true(object: &Value, type_: &str) -> bool {
    items(&object["status"]["conditions"])
        .iter()
        .any(|condition| condition["type"] == type_ && condition["status"] == "True")
}

/// The item of a list that has this name.
pub(crate) fn named<'a>(list: &'a Value, name: &Value) -> Option<&'a Value> {
    items(list).iter().find(|item| item["name"] == *name)
}
