//! The columns of custom kinds: `additionalPrinterColumns` of their definitions.
//!
//! Follows `customresource/tableconvertor` of Kubernetes 1.36.

use jiff::Timestamp;
use serde_json::Value;

use super::path::JsonPath;
use super::{Cell, Column, cell};
use crate::object;

/// The columns of a version of a definition; without any in it, name and age.
pub(crate) fn columns(version: &Value) -> Vec<Column> {
    let mut columns = vec![Column::new("Name", "string", Cell::Text(&["metadata", "name"], ""))];
    let given = object::list(version, &["additionalPrinterColumns"]);
    if given.is_empty() {
        columns.push(Column::new("Age", "date", Cell::Since(&["metadata", "creationTimestamp"])));
    }
    columns.extend(given.iter().filter_map(column));
    columns
}

fn column(given: &Value) -> Option<Column> {
    let path = JsonPath::parse(object::text(given, &["jsonPath"]))?;
    let kind = match object::text(given, &["type"]) {
        "integer" => "integer",
        "number" => "number",
        "boolean" => "boolean",
        "date" => "date",
        _ => "string",
    };
    let mut column = Column::new(object::text(given, &["name"]), kind, Cell::Found(path));
    column.format = object::text(given, &["format"]).to_owned();
    column.priority = object::number(given, &["priority"]).unwrap_or(0);
    Some(column)
}

/// The cell of a column of this type.
pub(super) fn cell(path: &JsonPath, kind: &str, object: &Value, now: Timestamp) -> Value {
    let Some(found) = path.first(object) else { return Value::Null };
    match (kind, found) {
        (_, Value::Null) => Value::Null,
        ("string", Value::String(text)) => text.as_str().into(),
        ("string", other) => other.to_string().into(),
        ("integer", Value::Number(n)) if n.is_i64() => found.clone(),
        ("integer", Value::Number(n)) => n.as_f64().map_or(Value::Null, |f| (f as i64).into()),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => found.clone(),
        ("date", Value::String(text)) => match text.parse::<Timestamp>() {
            Ok(then) => cell::between(then, now).into(),
            Err(_) => "<invalid>".into(),
        },
        _ => Value::Null,
    }
}
