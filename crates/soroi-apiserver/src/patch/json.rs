//! JSON patches (RFC 6902), with bounds on what they can grow an object to.

use json_patch::PatchOperation;
use serde_json::Value;

use crate::status::ApiError;

/// Most operations of one patch; Kubernetes' own bound.
const OPERATIONS_MAX: usize = 10_000;

/// Most values that the copies and moves of one patch may touch together: a patch of a few
/// hundred bytes could double an object with each operation.
const COPIED_MAX: usize = 100_000;

/// Objects nested deeper are refused, as they are when they come as JSON: every walk recurses.
const DEPTH_MAX: usize = 128;

/// Parses the list of operations.
pub(crate) fn parse(body: &[u8]) -> Result<json_patch::Patch, ApiError> {
    let mut list: Vec<Value> = serde_json::from_slice(body).map_err(|_| {
        let found = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp";
        ApiError::bad_request(format!("error decoding patch: {found}"))
    })?;
    for operation in &mut list {
        // Kubernetes takes a missing value as null.
        if let Some(fields) = operation.as_object_mut()
            && matches!(fields.get("op").and_then(Value::as_str), Some("add" | "replace" | "test"))
        {
            fields.entry("value").or_insert(Value::Null);
        }
    }
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

/// Applies the operations in turn. On an error the object is left half changed: callers give a
/// copy.
pub(crate) fn apply(patch: &json_patch::Patch, object: &mut Value) -> Result<(), ApiError> {
    let mut copied = 0;
    for operation in &patch.0 {
        let (path, source) = match operation {
            PatchOperation::Add(add) => (&add.path, Some(&add.value)),
            PatchOperation::Replace(replace) => (&replace.path, Some(&replace.value)),
            PatchOperation::Copy(copy) => (&copy.path, object.pointer(copy.from.as_str())),
            PatchOperation::Move(moved) => (&moved.path, object.pointer(moved.from.as_str())),
            PatchOperation::Remove(remove) => (&remove.path, None),
            PatchOperation::Test(test) => (&test.path, None),
        };
        let (count, depth) = source.map_or((0, 0), measure);
        if matches!(operation, PatchOperation::Copy(_) | PatchOperation::Move(_)) {
            copied += count;
        }
        if copied > COPIED_MAX {
            return Err(ApiError::too_large("the patch copies too much"));
        }
        if path.tokens().count() + depth > DEPTH_MAX {
            return Err(ApiError::bad_request(format!("the patch nests values deeper than {DEPTH_MAX}")));
        }
        json_patch::patch_unsafe(object, std::slice::from_ref(operation))
            .map_err(|_| ApiError::unprocessable())?;
    }
    Ok(())
}

/// How many values there are in a value, and how deep they are nested. Stops counting above the
/// bound, and does not recurse.
fn measure(value: &Value) -> (usize, usize) {
    let (mut count, mut deepest) = (0, 0);
    let mut open = vec![(value, 1)];
    while let Some((value, depth)) = open.pop() {
        count += 1;
        deepest = deepest.max(depth);
        if count > COPIED_MAX {
            break;
        }
        match value {
            Value::Array(items) => open.extend(items.iter().map(|i| (i, depth + 1))),
            Value::Object(fields) => open.extend(fields.values().map(|f| (f, depth + 1))),
            _ => {}
        }
    }
    (count, deepest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn patched(mut object: Value, patch: Value) -> Result<Value, u16> {
        let patch = parse(patch.to_string().as_bytes()).map_err(|e| e.code)?;
        apply(&patch, &mut object).map_err(|e| e.code)?;
        Ok(object)
    }

    #[test]
    fn operations_are_applied_in_turn() {
        let cases = [
            (json!([{"op": "add", "path": "/a", "value": 1}]), Ok(json!({"a": 1, "l": [1, 2]}))),
            (json!([{"op": "add", "path": "/l/-", "value": 3}]), Ok(json!({"l": [1, 2, 3]}))),
            (json!([{"op": "remove", "path": "/l/0"}]), Ok(json!({"l": [2]}))),
            (json!([{"op": "move", "from": "/l", "path": "/m"}]), Ok(json!({"m": [1, 2]}))),
            (json!([{"op": "copy", "from": "/l", "path": "/m"}]), Ok(json!({"l": [1, 2], "m": [1, 2]}))),
            (json!([{"op": "remove", "path": "/zzz"}]), Err(422)),
            (json!([{"op": "test", "path": "/l/0", "value": 2}]), Err(422)),
            (json!([{"op": "twist", "path": "/l"}]), Err(400)),
            (json!({"op": "remove"}), Err(400)),
        ];
        for (patch, expected) in cases {
            assert_eq!(patched(json!({"l": [1, 2]}), patch.clone()), expected, "{patch}");
        }
    }

    #[test]
    fn a_patch_cannot_grow_an_object_without_bound() {
        let double = json!({"op": "copy", "from": "/a", "path": "/a/b"});
        let again = json!({"op": "copy", "from": "/a", "path": "/a/c"});
        let bomb: Vec<Value> = (0..100).flat_map(|_| [double.clone(), again.clone()]).collect();
        assert_eq!(patched(json!({"a": {"x": [1, 2, 3]}}), bomb.into()), Err(413));
        let down: String = std::iter::repeat_n("/a", 200).collect();
        let deep = json!([{"op": "add", "path": down, "value": 1}]);
        assert_eq!(patched(json!({}), deep), Err(400));
    }
}
