//! Objects of built-in kinds, read as Go's decoder reads them.

use serde_json::Value;
use soroi_quantity::Quantity;

use super::path::Path;
use super::{Additional, Kind, Node, NodeIx, Schema, Special};
use crate::decode::type_word;

/// What the API server says of a malformed quantity.
const QUANTITY: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

impl Node {
    /// May anything stand here, so that a null has a meaning?
    fn is_free(&self) -> bool {
        self.kind == Kind::Any && self.special == Special::None && !self.int_or_string
    }
}

impl Schema {
    /// Reads a value in place: unknown fields and nulls go, quantities and times become canonical.
    /// `within` is the name of the type around it, for errors.
    pub(super) fn read_typed(
        &self,
        ix: NodeIx,
        value: &mut Value,
        path: &Path<'_>,
        within: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), String> {
        let node = &self.nodes[ix];
        match node.special {
            Special::None => {}
            Special::Quantity => return read_quantity(value),
            Special::Time => return read_time(value, false),
            Special::MicroTime => return read_time(value, true),
        }
        if node.int_or_string {
            let fits = value.is_string() || value.is_i64();
            return if fits { Ok(()) } else { Err(mismatch(node, value, path, within)) };
        }
        if !node.kind.admits(value) {
            return Err(mismatch(node, value, path, within));
        }
        match value {
            Value::Object(_) => self.read_fields(node, value, path, within, unknown),
            Value::Array(items) => {
                let Some(ix) = node.items else { return Ok(()) };
                for (at, item) in items.iter_mut().enumerate() {
                    self.read_typed(ix, item, &path.item(at), within, unknown)?;
                }
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn read_fields(
        &self,
        node: &Node,
        value: &mut Value,
        path: &Path<'_>,
        within: &str,
        unknown: &mut Vec<String>,
    ) -> Result<(), String> {
        // A type without properties is free: raw extensions, managed fields, JSON values.
        let free = node.properties.is_empty() && node.additional == Additional::Nothing;
        let Value::Object(fields) = value else { return Ok(()) };
        if free {
            return Ok(());
        }
        let within = if node.name.is_empty() { within } else { node.name.as_str() };
        let mut gone: Vec<String> = Vec::new();
        for (name, inner) in fields.iter_mut() {
            let child = match (node.properties.get(name).copied(), node.additional) {
                (Some(ix), _) | (None, Additional::Schema(ix)) => Some(ix),
                (None, Additional::Anything) => None,
                (None, Additional::Nothing) => {
                    unknown.push(path.field(name).to_string());
                    gone.push(name.clone());
                    continue;
                }
            };
            let Some(child) = child else { continue };
            if inner.is_null() && !self.nodes[child].is_free() {
                let in_map = !node.properties.contains_key(name);
                if in_map
                    && self.nodes[child].kind == Kind::String
                    && self.nodes[child].special == Special::None
                {
                    // Into a map Go's decoder puts what is nothing of its type.
                    *inner = Value::String(String::new());
                    continue;
                }
                gone.push(name.clone());
                continue;
            }
            self.read_typed(child, inner, &path.field(name), within, unknown)?;
        }
        for name in gone {
            fields.remove(&name);
        }
        Ok(())
    }
}

fn mismatch(node: &Node, value: &Value, path: &Path<'_>, within: &str) -> String {
    let wanted = match node.kind {
        Kind::Object if node.name.is_empty() => "map[string]string".to_owned(),
        Kind::Object => format!("v1.{}", node.name),
        Kind::Array => "[]v1.Item".to_owned(),
        Kind::Integer => if node.limits.format == "int64" { "int64" } else { "int32" }.to_owned(),
        Kind::Number => "float64".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::String | Kind::Any => "string".to_owned(),
    };
    let (found, field) = (type_word(value), path.without_items());
    format!("json: cannot unmarshal {found} into Go struct field {within}.{field} of type {wanted}")
}

fn read_quantity(value: &mut Value) -> Result<(), String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        _ => return Err(QUANTITY.to_owned()),
    };
    // The commonest quantities are canonical already: whole numbers without a suffix, as counts of
    // devices are, and the empty text that Go reads as nothing.
    if text.bytes().all(|b| b.is_ascii_digit())
        && text.len() <= 3
        && !text.is_empty()
        && !text.starts_with('0')
    {
        *value = Value::String(text);
        return Ok(());
    }
    let quantity: Quantity = text.parse().map_err(|_| QUANTITY.to_owned())?;
    *value = Value::String(quantity.to_string());
    Ok(())
}

fn read_time(value: &mut Value, micro: bool) -> Result<(), String> {
    let Value::String(text) = value else {
        return Err(format!("json: cannot unmarshal {} into Go value of type string", type_word(value)));
    };
    let canonical = if micro { text.len() == 27 } else { text.len() == 20 };
    let when: jiff::Timestamp = match text.parse() {
        Ok(when) => when,
        Err(_) => {
            let layout = "2006-01-02T15:04:05Z07:00";
            return Err(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""));
        }
    };
    if canonical && text.ends_with('Z') {
        return Ok(());
    }
    let format = if micro { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    *value = Value::String(when.strftime(format).to_string());
    Ok(())
}
