//! How are fields of a JSON object reached? Small accessors over raw JSON.
//!
//! Knows the layout of `metadata`. Must never know a kind.

use jiff::Timestamp;
use serde_json::{Map, Value};

/// A JSON object's fields.
pub(crate) type Fields = Map<String, Value>;

/// The field at a path of keys, or `None` where a step is missing or null.
pub(crate) fn at<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    let mut here = value;
    for key in path {
        here = here.get(*key)?;
    }
    (!here.is_null()).then_some(here)
}

/// The text at a path, or `""`.
pub(crate) fn text<'a>(value: &'a Value, path: &[&str]) -> &'a str {
    at(value, path).and_then(Value::as_str).unwrap_or("")
}

/// The whole number at a path.
pub(crate) fn number(value: &Value, path: &[&str]) -> Option<i64> {
    at(value, path).and_then(Value::as_i64)
}

/// The truth value at a path; missing is false.
pub(crate) fn flag(value: &Value, path: &[&str]) -> bool {
    at(value, path).and_then(Value::as_bool).unwrap_or(false)
}

/// The list at a path; missing is empty.
pub(crate) fn list<'a>(value: &'a Value, path: &[&str]) -> &'a [Value] {
    at(value, path).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The object at a path.
pub(crate) fn map<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Fields> {
    at(value, path).and_then(Value::as_object)
}

/// The fields of `value`, which is made an object if it is none.
pub(crate) fn fields_mut(value: &mut Value) -> &mut Fields {
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    value.as_object_mut().expect("it was made an object above")
}

/// The object at a path, made where it is missing.
pub(crate) fn ensure<'a>(value: &'a mut Value, path: &[&str]) -> &'a mut Fields {
    let mut here = value;
    for key in path {
        here = fields_mut(here).entry(*key).or_insert_with(|| Value::Object(Map::new()));
    }
    fields_mut(here)
}

/// The list at a path for writing, if there is one.
pub(crate) fn list_mut<'a>(value: &'a mut Value, path: &[&str]) -> Option<&'a mut Vec<Value>> {
    let mut here = value;
    for key in path {
        here = here.get_mut(*key)?;
    }
    here.as_array_mut()
}

/// `metadata` for writing.
pub(crate) fn meta_mut(value: &mut Value) -> &mut Fields {
    ensure(value, &["metadata"])
}

/// A text field of `metadata`, or `""`.
pub(crate) fn meta<'a>(value: &'a Value, key: &str) -> &'a str {
    text(value, &["metadata", key])
}

/// Is the object waiting for its finalizers or its kubelet?
pub(crate) fn deleting(value: &Value) -> bool {
    at(value, &["metadata", "deletionTimestamp"]).is_some()
}

/// The finalizers.
pub(crate) fn finalizers(value: &Value) -> &[Value] {
    list(value, &["metadata", "finalizers"])
}

/// The labels.
pub(crate) fn labels(value: &Value) -> Option<&Fields> {
    map(value, &["metadata", "labels"])
}

/// Puts `value` under `key` unless something is there already.
pub(crate) fn set_default(fields: &mut Fields, key: &str, value: impl Into<Value>) {
    if fields.get(key).is_none_or(Value::is_null) {
        fields.insert(key.to_owned(), value.into());
    }
}

/// `value` under `key`, or nothing there when it is `None`.
pub(crate) fn put(fields: &mut Fields, key: &str, value: Option<Value>) {
    match value {
        Some(value) => {
            fields.insert(key.to_owned(), value);
        }
        None => {
            fields.remove(key);
        }
    }
}

/// A time stamp as `metav1.Time` prints it: whole seconds, UTC.
pub(crate) fn timestamp(when: Timestamp) -> String {
    when.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// Are two values the same to Go, where null, empty lists and empty maps are absent?
pub(crate) fn same(a: Option<&Value>, b: Option<&Value>) -> bool {
    match (a.filter(|v| !is_empty(v)), b.filter(|v| !is_empty(v))) {
        (None, None) => true,
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            a.iter().all(|(k, v)| same(Some(v), b.get(k)))
                && b.iter().all(|(k, v)| a.contains_key(k) || same(None, Some(v)))
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(Some(a), Some(b)))
        }
        (Some(a), Some(b)) => a == b,
        _ => false,
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn absent_null_and_empty_are_the_same() {
        let cases = [
            (json!({}), json!({"a": null}), true),
            (json!({"a": []}), json!({"a": {}}), true),
            (json!({"a": {"b": {}}}), json!({}), true),
            (json!({"a": [1]}), json!({"a": [2]}), false),
            (json!({"a": ""}), json!({}), false),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 1, "c": null}}), true),
        ];
        for (a, b, expected) in cases {
            assert_eq!(same(Some(&a), Some(&b)), expected, "{a} {b}");
            assert_eq!(same(Some(&b), Some(&a)), expected, "{b} {a}");
        }
    }

    #[test]
    fn timestamps_have_whole_seconds() {
        let when = Timestamp::from_millisecond(1_234_567_890_123).unwrap();
        assert_eq!(timestamp(when), "2009-02-13T23:31:30Z");
    }
}
