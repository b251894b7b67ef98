//! A configuration laid over an object.

use serde_json::Value;

use super::fields::step_of;
use crate::schema::{ListShape, Shape};

/// Lays a configuration over an object: maps and keyed lists item by item, the rest as a whole.
pub(super) fn merge(shape: Shape<'_>, object: &mut Value, configuration: &Value) {
    match (object, configuration) {
        (Value::Object(object), Value::Object(wanted)) if !shape.is_atomic_map() => {
            for (name, value) in wanted {
                match object.get_mut(name) {
                    Some(inner) => merge(shape.field(name), inner, value),
                    None => {
                        object.insert(name.clone(), value.clone());
                    }
                }
            }
        }
        (Value::Array(items), Value::Array(wanted)) if shape.list() != ListShape::Atomic => {
            merge_items(shape, items, wanted);
        }
        (object, value) => *object = value.clone(),
    }
}

/// Items of the configuration come in its order, those of others stay where they are among them.
fn merge_items(shape: Shape<'_>, items: &mut Vec<Value>, wanted: &[Value]) {
    for new in wanted {
        let step = step_of(shape, new);
        match items.iter_mut().find(|i| step_of(shape, i) == step) {
            Some(item) => merge(shape.item(), item, new),
            None => items.push(new.clone()),
        }
    }
}
