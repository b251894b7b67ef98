//! Values of custom kinds against their schema.
//!
//! Sentences of Kubernetes 1.36 (`kube-openapi/pkg/validation` and
//! `apiextensions-apiserver/pkg/apiserver/validation`).

use serde_json::Value;

use super::path::Path;
use super::{Additional, Kind, Limits, ListType, Node, NodeIx, Schema};
use crate::status::FieldError;

impl Schema {
    /// Collects what is wrong at and below a node. A value equal to the one that it replaces is
    /// not looked at.
    pub(super) fn validate_node(
        &self,
        ix: NodeIx,
        value: &Value,
        old: Option<&Value>,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        if old == Some(value) {
            return;
        }
        let node = &self.nodes[ix];
        if value.is_null() && node.nullable {
            return;
        }
        if !check_type(node, value, path, errors) {
            return;
        }
        check_limits(&node.limits, value, path, errors);
        self.check_branches(node, value, path, errors);
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    if matches!(path, Path::Root)
                        && matches!(name.as_str(), "apiVersion" | "kind" | "metadata")
                    {
                        continue;
                    }
                    let before = old.and_then(|o| o.get(name));
                    match (node.properties.get(name), node.additional) {
                        (Some(ix), _) => self.validate_node(*ix, inner, before, &path.field(name), errors),
                        (None, Additional::Schema(ix)) => {
                            self.validate_node(ix, inner, before, &path.key(name), errors);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(items) => {
                self.check_list(node, items, path, errors);
                if let Some(ix) = node.items {
                    for (at, item) in items.iter().enumerate() {
                        let before = self.old_item(node, item, old);
                        self.validate_node(ix, item, before, &path.item(at), errors);
                    }
                }
            }
            _ => {}
        }
    }

    fn check_list(&self, node: &Node, items: &[Value], path: &Path<'_>, errors: &mut Vec<FieldError>) {
        let mut seen: Vec<Vec<Option<&Value>>> = Vec::with_capacity(items.len());
        for (at, item) in items.iter().enumerate() {
            let keys: Vec<Option<&Value>> = match &node.list {
                ListType::Atomic => return,
                ListType::Set => vec![Some(item)],
                ListType::Map(keys) => keys.iter().map(|k| self.key_of(node, item, k)).collect(),
            };
            if seen.contains(&keys) {
                let shown = match &node.list {
                    ListType::Map(names) => {
                        let pairs = names.iter().zip(&keys);
                        pairs.map(|(n, v)| (n.clone(), v.cloned().unwrap_or_default())).collect()
                    }
                    _ => item.clone(),
                };
                errors.push(FieldError::duplicate(&path.item(at).to_string(), shown));
            }
            seen.push(keys);
        }
    }

    fn fits(&self, ix: NodeIx, value: &Value, path: &Path<'_>) -> bool {
        let mut errors = Vec::new();
        self.validate_node(ix, value, None, path, &mut errors);
        errors.is_empty()
    }

    fn check_branches(&self, node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
        // Kubernetes names no field for these, but the path in the sentence.
        let refuse = |why: String| FieldError::invalid("<nil>", "", why);
        for ix in &node.all_of {
            self.validate_node(*ix, value, None, path, errors);
        }
        if !node.any_of.is_empty() && !node.any_of.iter().any(|ix| self.fits(*ix, value, path)) {
            errors.push(refuse(format!("{:?} must validate at least one schema (anyOf)", path.to_string())));
        }
        if !node.one_of.is_empty() {
            let found = node.one_of.iter().filter(|ix| self.fits(**ix, value, path)).count();
            if found != 1 {
                let what = if found == 0 {
                    "Found none valid".into()
                } else {
                    format!("Found {found} valid alternatives")
                };
                let path = path.to_string();
                errors
                    .push(refuse(format!("{path:?} must validate one and only one schema (oneOf). {what}")));
            }
        }
        if node.not.is_some_and(|ix| self.fits(ix, value, path)) {
            errors.push(refuse(format!("{:?} must not validate the schema (not)", path.to_string())));
        }
    }
}

fn check_type(node: &Node, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) -> bool {
    let fits = if node.int_or_string {
        value.is_string() || Kind::Integer.admits(value)
    } else {
        // A branch without a type, or free content.
        node.kind.admits(value) && !(value.is_null() && node.kind != Kind::Any)
    };
    if !fits {
        let wanted = if node.int_or_string { "integer,string" } else { node.kind.word() };
        let found = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(n) if n.is_f64() => "number",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        let field = path.to_string();
        let why = format!("{field} in body must be of type {wanted}: {found:?}");
        errors.push(FieldError::type_invalid(&field, found, why));
    }
    fits
}

fn check_limits(limits: &Limits, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    if !limits.options.is_empty() && !limits.options.contains(value) {
        let shown: Vec<String> =
            limits.options.iter().map(|o| o.as_str().map_or_else(|| o.to_string(), str::to_owned)).collect();
        let shown: Vec<&str> = shown.iter().map(String::as_str).collect();
        errors.push(FieldError::not_supported(&path.to_string(), value.clone(), &shown));
    }
    match value {
        Value::Number(number) => check_number(limits, number.as_f64().unwrap_or(0.0), value, path, errors),
        Value::String(text) => check_text(limits, text, path, errors),
        Value::Array(items) => {
            let count = items.len();
            check_count(limits.min_items, limits.max_items, "items", count, value, path, errors);
            if limits.unique_items && items.iter().enumerate().any(|(i, a)| items[..i].contains(a)) {
                let why = format!("{path} in body shouldn't contain duplicates");
                errors.push(FieldError::invalid(&path.to_string(), value.clone(), why));
            }
        }
        Value::Object(fields) => {
            let count = fields.len();
            check_count(
                limits.min_properties,
                limits.max_properties,
                "properties",
                count,
                value,
                path,
                errors,
            );
            for name in &limits.required {
                if !fields.contains_key(name) {
                    errors.push(FieldError::required(&path.field(name).to_string(), ""));
                }
            }
        }
        _ => {}
    }
}

fn check_number(limits: &Limits, number: f64, value: &Value, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let mut refuse = |why: String| {
        errors.push(FieldError::invalid(
            &path.to_string(),
            value.clone(),
            format!("{path} in body should be {why}"),
        ));
    };
    if let Some(max) = limits.maximum {
        if limits.exclusive_maximum && number >= max {
            refuse(format!("less than {max}"));
        } else if number > max {
            refuse(format!("less than or equal to {max}"));
        }
    }
    if let Some(min) = limits.minimum {
        if limits.exclusive_minimum && number <= min {
            refuse(format!("greater than {min}"));
        } else if number < min {
            refuse(format!("greater than or equal to {min}"));
        }
    }
    if let Some(step) = limits.multiple_of
        && step > 0.0
        && (number / step).fract() != 0.0
    {
        refuse(format!("a multiple of {step}"));
    }
}

fn check_text(limits: &Limits, text: &str, path: &Path<'_>, errors: &mut Vec<FieldError>) {
    let refuse = |why: String| FieldError::invalid(&path.to_string(), text, why);
    let length = || text.chars().count() as u64;
    if let Some(max) = limits.max_length
        && text.len() as u64 > max
        && length() > max
    {
        errors.push(FieldError::too_long(&path.to_string(), max));
    }
    if let Some(min) = limits.min_length
        && length() < min
    {
        errors.push(refuse(format!("{path} in body should be at least {min} chars long")));
    }
    if let Some(pattern) = &limits.pattern
        && !pattern.is_match(text)
    {
        errors.push(refuse(format!("{path} in body should match '{pattern}'")));
    }
    let malformed = match limits.format.as_str() {
        "date-time" => text.parse::<jiff::Timestamp>().is_err(),
        "date" => text.parse::<jiff::civil::Date>().is_err(),
        _ => false,
    };
    if malformed {
        let format = &limits.format;
        let why = format!("{path} in body must be of type {format}: {text:?}");
        errors.push(FieldError::type_invalid(&path.to_string(), text, why));
    }
}

fn check_count(
    min: Option<u64>,
    max: Option<u64>,
    what: &str,
    count: usize,
    value: &Value,
    path: &Path<'_>,
    errors: &mut Vec<FieldError>,
) {
    if let Some(max) = max
        && count as u64 > max
    {
        errors.push(FieldError::too_many(&path.to_string(), count, max));
    }
    if let Some(min) = min
        && (count as u64) < min
    {
        let why = format!("{path} in body should have at least {min} {what}");
        errors.push(FieldError::invalid(&path.to_string(), value.clone(), why));
    }
}
