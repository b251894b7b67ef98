//! Objects without `metadata.managedFields`: who wrote what, which takes many bytes, decodes into a tree
//! of its own, and is of no use to whoever only follows objects.
//!
//! Knows JSON's brackets and strings. Must never know what an object means.

use std::borrow::Cow;

/// How API servers write the field. Within a string each quote has a backslash before it, so these
/// bytes are always a key.
const KEY: &[u8] = b"\"managedFields\":[";

/// The same JSON with an empty list for each `managedFields`. What is no JSON stays no JSON.
pub(super) fn without_managed_fields(json: &[u8]) -> Cow<'_, [u8]> {
    let Some(first) = find(json) else { return Cow::Borrowed(json) };
    let mut short = Vec::with_capacity(json.len());
    let (mut rest, mut next) = (json, Some(first));
    while let Some(begin) = next {
        let inner = begin + KEY.len();
        let Some(length) = length(&rest[inner..]) else { break };
        short.extend_from_slice(&rest[..inner]);
        rest = &rest[inner + length..];
        next = find(rest);
    }
    short.extend_from_slice(rest);
    Cow::Owned(short)
}

fn find(json: &[u8]) -> Option<usize> {
    memchr::memmem::find(json, KEY)
}

/// How many bytes come before the bracket that ends the list, which has begun.
fn length(list: &[u8]) -> Option<usize> {
    let (mut depth, mut in_string, mut escaped) = (1_usize, false, false);
    for (at, byte) in list.iter().enumerate() {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'[' | b'{') => depth += 1,
            (false, b']' | b'}') => {
                depth -= 1;
                if depth == 0 {
                    return Some(at);
                }
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn check(json: &str, expected: &str) {
        assert_eq!(String::from_utf8_lossy(&without_managed_fields(json.as_bytes())), expected);
    }

    #[test]
    fn only_the_field_itself_is_emptied() {
        check(r#"{"metadata":{"name":"a"}}"#, r#"{"metadata":{"name":"a"}}"#);
        check(
            r#"{"a":1,"managedFields":[{"f":{"k:{\"x\":\"]\"}":[{}]}}],"b":[{"managedFields":[2]}]}"#,
            r#"{"a":1,"managedFields":[],"b":[{"managedFields":[]}]}"#,
        );
        // In a string it is a text like any other.
        let text = r#"{"note":"{\"managedFields\":[1]}"}"#;
        check(text, text);
        // Cut off in the middle.
        check(r#"{"managedFields":[{"f":1"#, r#"{"managedFields":[{"f":1"#);
    }

    fn emptied(value: &mut Value) {
        match value {
            Value::Object(fields) => fields.iter_mut().for_each(|(name, value)| match value {
                Value::Array(list) if name == "managedFields" => list.clear(),
                value => emptied(value),
            }),
            Value::Array(list) => list.iter_mut().for_each(emptied),
            _ => {}
        }
    }

    proptest! {
        #[test]
        fn all_else_stays_whatever_the_texts(
            key in r#"(managedFields|[\\"\[\]{}:,a]{0,6})"#,
            text in r#"[\\"\[\]{}:,a]{0,12}"#,
        ) {
            let list = json!([{ &key: [&text, { &text: key }] }, [], {}]);
            let object = json!({ &key: list, "managedFields": list, &text: { "managedFields": [&key, list] } });
            let short = without_managed_fields(object.to_string().as_bytes()).into_owned();
            let mut expected = object;
            emptied(&mut expected);
            prop_assert_eq!(serde_json::from_slice::<Value>(&short).unwrap(), expected);
        }
    }
}
