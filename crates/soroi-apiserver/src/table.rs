//! What does `kubectl get` show? Objects as rows of a `meta.k8s.io/v1` Table.
//!
//! Knows columns and cells, and how a table is written. Which columns a built-in kind has is data, in
//! `table/builtin.rs` and `table/pod.rs`; those of custom kinds are in their definitions. Must never
//! know storage or HTTP.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::read::show_json;
use crate::resource::Resource;
use crate::store::Stored;

mod builtin;
mod cell;
mod custom;
mod path;
mod pod;

pub(crate) use builtin::columns as of_builtin;
pub(crate) use custom::columns as of_custom;

/// One column: its name and where its cells come from.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    name: String,
    kind: &'static str,
    format: String,
    /// 0 is always shown, more only by `-o wide`.
    priority: i64,
    cell: Cell,
}

/// Where a cell comes from.
#[derive(Clone, Debug)]
enum Cell {
    /// The text at a path; where nothing is, the second.
    Text(&'static [&'static str], &'static str),
    /// The whole number at a path, 0 where nothing is.
    Number(&'static [&'static str]),
    /// How long ago the time at a path was.
    Since(&'static [&'static str]),
    /// What a function makes of the object at a moment.
    Made(fn(&Value, Timestamp) -> Value),
    /// What a JSON path finds, as a column of a custom kind shows it.
    Found(path::JsonPath),
}

impl Column {
    fn new(name: &str, kind: &'static str, cell: Cell) -> Self {
        let format = if name == "Name" { "name" } else { "" };
        Self { name: name.to_owned(), kind, format: format.to_owned(), priority: 0, cell }
    }

    /// Shown by `-o wide` only.
    fn wide(self) -> Self {
        Self { priority: 1, ..self }
    }

    fn cell(&self, object: &Value, now: Timestamp) -> Value {
        match &self.cell {
            Cell::Text(path, missing) => cell::text(object, path, missing).into(),
            Cell::Number(path) => crate::object::number(object, path).unwrap_or(0).into(),
            Cell::Since(path) => cell::since(object, path, now).into(),
            Cell::Made(make) => make(object, now),
            Cell::Found(path) => custom::cell(path, self.kind, object, now),
        }
    }

    fn definition(&self) -> Value {
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": "",
            "priority": self.priority,
        })
    }
}

/// What a row carries of its object (`includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Included {
    Nothing,
    Metadata,
    Object,
}

/// Objects as a table, as JSON text; `metadata` is the list's.
pub(crate) fn encode<'a>(
    resource: &Resource,
    metadata: &Value,
    objects: impl Iterator<Item = &'a Stored>,
    included: Included,
    now: Timestamp,
) -> Bytes {
    let definitions: Value = resource.columns.iter().map(Column::definition).collect();
    let head = format!(
        "{{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":{metadata},\"columnDefinitions\":{definitions},\"rows\":["
    );
    let mut text = head.into_bytes();
    for (at, stored) in objects.enumerate() {
        if at > 0 {
            text.push(b',');
        }
        row(&mut text, resource, stored, included, now);
    }
    text.extend_from_slice(b"]}");
    Bytes::from(text)
}

/// One object as a table of one row.
pub(crate) fn encode_one(resource: &Resource, stored: &Stored, included: Included, now: Timestamp) -> Bytes {
    let metadata = json!({ "resourceVersion": crate::object::meta(&stored.value, "resourceVersion") });
    encode(resource, &metadata, std::iter::once(stored), included, now)
}

fn row(text: &mut Vec<u8>, resource: &Resource, stored: &Stored, included: Included, now: Timestamp) {
    let cells: Vec<Value> = resource.columns.iter().map(|c| c.cell(&stored.value, now)).collect();
    text.extend_from_slice(b"{\"cells\":");
    append(text, &cells);
    text.extend_from_slice(b",\"object\":");
    match included {
        Included::Nothing => text.extend_from_slice(b"null"),
        Included::Object => text.extend_from_slice(&show_json(resource, stored)),
        Included::Metadata => {
            text.extend_from_slice(
                b"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":",
            );
            append(text, stored.value.get("metadata").unwrap_or(&Value::Null));
            text.push(b'}');
        }
    }
    text.push(b'}');
}

fn append<T: serde::Serialize + ?Sized>(text: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(text, value).expect("JSON values can be written to memory");
}

#[cfg(test)]
mod tests;
