//! Strategic merge patches: Kubernetes' own merge, which knows keyed lists and directives.
//!
//! Follows Kubernetes 1.36 (`apimachinery/pkg/util/strategicpatch`): null deletes; `$patch` is
//! `replace`, `delete` or `merge`; `$retainKeys` names the keys that stay; `$setElementOrder/x`
//! orders a list; `$deleteFromPrimitiveList/x` takes values out of one.

use serde_json::{Map, Value};

use crate::object::Fields;
use crate::schema::Shape;
use crate::status::ApiError;

const PATCH: &str = "$patch";
const RETAIN: &str = "$retainKeys";
const ORDER: &str = "$setElementOrder/";
const REMOVE: &str = "$deleteFromPrimitiveList/";

/// Deeper patches than this are refused: the merge recurses along the patch.
const DEPTH_MAX: usize = 100;

/// Applies a patch to an object of a built-in kind.
///
/// # Errors
/// 400 for a directive that makes no sense, 500 (as Kubernetes) for an item without its key.
pub(crate) fn apply(shape: Shape<'_>, object: &mut Value, patch: &Value) -> Result<(), ApiError> {
    match (object, patch) {
        (Value::Object(object), Value::Object(patch)) => merge_map(shape, object, patch, 0),
        _ => Err(ApiError::bad_request("invalid patch: it is no object")),
    }
}

fn merge_map(shape: Shape<'_>, original: &mut Fields, patch: &Fields, depth: usize) -> Result<(), ApiError> {
    if depth > DEPTH_MAX {
        return Err(ApiError::bad_request(format!("the patch is nested deeper than {DEPTH_MAX}")));
    }
    match patch.get(PATCH).map(|p| p.as_str().unwrap_or("")) {
        Some("replace") => {
            *original = without_directives(patch);
            return Ok(());
        }
        Some("delete") => {
            original.clear();
            return Ok(());
        }
        Some("merge") | None => {}
        Some(_) => return Err(bad_patch(patch)),
    }
    retain_keys(original, patch)?;
    for (key, value) in patch {
        if let Some(field) = key.strip_prefix(REMOVE) {
            remove_values(original, field, value)?;
        }
    }
    for (key, value) in patch {
        if key.starts_with('$') {
            continue;
        }
        if value.is_null() {
            original.remove(key);
            continue;
        }
        let inner = shape.field(key);
        match (original.get_mut(key), value) {
            (Some(Value::Object(old)), Value::Object(new)) => {
                merge_map(inner, old, new, depth + 1)?;
                // An object that is deleted by directive goes with its key.
                if new.get(PATCH).and_then(Value::as_str) == Some("delete") {
                    original.remove(key);
                }
            }
            (Some(Value::Array(old)), Value::Array(new)) => {
                let order = patch.get(&format!("{ORDER}{key}"));
                merge_list(inner, old, new, order, depth + 1)?;
            }
            (_, value) => {
                original.insert(key.clone(), fresh(inner, value)?);
            }
        }
    }
    reorder_untouched(shape, original, patch)
}

/// `$retainKeys`: the keys that are not named go.
fn retain_keys(original: &mut Fields, patch: &Fields) -> Result<(), ApiError> {
    let Some(kept) = patch.get(RETAIN) else { return Ok(()) };
    let Some(kept) = kept.as_array() else {
        return Err(ApiError::bad_request("invalid patch format of retainKeys: it is no list"));
    };
    let named = |key: &str| kept.iter().any(|k| k.as_str() == Some(key));
    if let Some(stray) = patch.keys().find(|k| !k.starts_with('$') && !named(k)) {
        let why = format!("invalid patch format of retainKeys: {stray} is in the patch but not retained");
        return Err(ApiError::bad_request(why));
    }
    original.retain(|key, _| named(key));
    Ok(())
}

fn remove_values(original: &mut Fields, field: &str, values: &Value) -> Result<(), ApiError> {
    let Some(gone) = values.as_array() else {
        return Err(ApiError::bad_request("invalid patch format of primitive list"));
    };
    if let Some(list) = original.get_mut(field).and_then(Value::as_array_mut) {
        list.retain(|item| !gone.contains(item));
    }
    Ok(())
}

/// Order directives of lists that the patch does not change otherwise.
fn reorder_untouched(shape: Shape<'_>, original: &mut Fields, patch: &Fields) -> Result<(), ApiError> {
    for (key, order) in patch {
        let Some(field) = key.strip_prefix(ORDER) else { continue };
        if patch.contains_key(field) {
            continue;
        }
        if let Some(list) = original.get_mut(field).and_then(Value::as_array_mut) {
            let before = list.clone();
            sort(shape.field(field).merge_key(), list, &before, order)?;
        }
    }
    Ok(())
}

fn merge_list(
    shape: Shape<'_>,
    original: &mut Vec<Value>,
    patch: &[Value],
    order: Option<&Value>,
    depth: usize,
) -> Result<(), ApiError> {
    let before = original.clone();
    match shape.merge_key() {
        Some(key) => merge_items(shape, key, original, patch, depth)?,
        None if shape.merges_values() => {
            for value in patch.iter().filter(|v| !v.is_null()) {
                if !original.contains(value) {
                    original.push(value.clone());
                }
            }
        }
        None => {
            *original = patch.iter().map(stripped).collect();
            return Ok(());
        }
    }
    match order {
        Some(order) => sort(shape.merge_key(), original, &before, order),
        None => Ok(()),
    }
}

fn merge_items(
    shape: Shape<'_>,
    key: &'static str,
    original: &mut Vec<Value>,
    patch: &[Value],
    depth: usize,
) -> Result<(), ApiError> {
    let directive = |item: &Value| item.get(PATCH).and_then(Value::as_str).map(str::to_owned);
    if patch.iter().any(|item| directive(item).as_deref() == Some("replace")) {
        // One item with `$patch: replace` replaces the list by the others.
        let others = patch.iter().filter(|item| directive(item).as_deref() != Some("replace"));
        *original = others.map(stripped).collect();
        return Ok(());
    }
    for item in patch {
        let Value::Object(fields) = item else {
            return Err(ApiError::bad_request("invalid patch: an item of a keyed list is no object"));
        };
        let Some(value) = fields.get(key) else {
            return Err(ApiError::unknown(format!("map: {item} does not contain declared merge key: {key}")));
        };
        match directive(item).as_deref() {
            Some("delete") => {
                original.retain(|o| o.get(key) != Some(value));
                continue;
            }
            Some("merge") | None => {}
            Some(_) => return Err(bad_patch(fields)),
        }
        match original.iter_mut().find(|o| o.get(key) == Some(value)) {
            Some(Value::Object(old)) => merge_map(shape.item(), old, fields, depth + 1)?,
            _ => original.push(fresh(shape.item(), item)?),
        }
    }
    Ok(())
}

/// Brings a list into the order that the patch gives; items that the patch does not name keep
/// their place among those that they stood before.
fn sort(key: Option<&str>, list: &mut Vec<Value>, before: &[Value], order: &Value) -> Result<(), ApiError> {
    let Some(order) = order.as_array() else {
        return Err(ApiError::bad_request("invalid patch format of setElementOrder list"));
    };
    let id = |item: &Value| match key {
        Some(key) => item.get(key).cloned().unwrap_or_default(),
        None => item.clone(),
    };
    let wanted: Vec<Value> = order.iter().map(id).collect();
    let place = |list: &[Value], item: &Value| list.iter().position(|other| id(other) == id(item));
    let rank = |item: &Value| wanted.iter().position(|w| *w == id(item));
    let (mut named, others): (Vec<Value>, Vec<Value>) =
        std::mem::take(list).into_iter().partition(|i| rank(i).is_some());
    named.sort_by_key(rank);
    let (mut named, mut others) = (named.into_iter().peekable(), others.into_iter().peekable());
    while let (Some(n), Some(o)) = (named.peek(), others.peek()) {
        let named_first = place(before, n).is_none_or(|n| place(before, o).is_none_or(|o| n < o));
        list.extend(if named_first { named.next() } else { others.next() });
    }
    list.extend(named.chain(others));
    Ok(())
}

/// A value that is new to the object: without directives and nulls.
fn fresh(shape: Shape<'_>, value: &Value) -> Result<Value, ApiError> {
    match value {
        Value::Object(fields) => {
            let mut object = Map::new();
            merge_map(shape, &mut object, fields, 0)?;
            Ok(Value::Object(object))
        }
        Value::Array(items) => {
            let mut list = Vec::new();
            merge_list(shape, &mut list, items, None, 0)?;
            Ok(Value::Array(list))
        }
        other => Ok(other.clone()),
    }
}

fn stripped(value: &Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(without_directives(fields)),
        other => other.clone(),
    }
}

fn without_directives(fields: &Fields) -> Fields {
    let kept = fields.iter().filter(|(key, value)| !key.starts_with('$') && !value.is_null());
    kept.map(|(key, value)| (key.clone(), stripped(value))).collect()
}

fn bad_patch(fields: &Fields) -> ApiError {
    let kind = fields.get(PATCH).cloned().unwrap_or_default();
    let shown = Value::Object(fields.clone());
    ApiError::bad_request(format!("unknown patch type: {kind} in map: {shown}"))
}

#[cfg(test)]
mod tests;
