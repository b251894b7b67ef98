//! Sets of fields, as `managedFields` writes them (`structured-merge-diff`'s `FieldsV1`).

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::object::Fields;
use crate::schema::{ListShape, Shape};

/// One step from a value to a part of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Step {
    /// A field of an object, or a key of a map.
    Field(String),
    /// The item of a keyed list with these key fields, as canonical JSON.
    Key(String),
    /// The item of a set with this value, as JSON.
    Value(String),
}

impl Step {
    fn name(&self) -> String {
        match self {
            Self::Field(name) => format!("f:{name}"),
            Self::Key(json) => format!("k:{json}"),
            Self::Value(json) => format!("v:{json}"),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name.split_once(':')? {
            ("f", name) => Some(Self::Field(name.to_owned())),
            ("k", json) => Some(Self::Key(json.to_owned())),
            ("v", json) => Some(Self::Value(json.to_owned())),
            _ => None,
        }
    }
}

/// A set of fields, each by its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FieldSet {
    paths: BTreeSet<Vec<Step>>,
}

/// Deeper values count as one field each.
const DEPTH_MAX: usize = 64;

impl FieldSet {
    /// The fields of a configuration.
    pub(super) fn of(shape: Shape<'_>, value: &Value) -> Self {
        let mut set = Self::default();
        collect(shape, value, &mut Vec::new(), &mut set.paths);
        set
    }

    /// Reads `fieldsV1`.
    pub(super) fn parse(value: &Value) -> Self {
        let mut set = Self::default();
        if let Value::Object(fields) = value {
            parse_below(fields, &mut Vec::new(), &mut set.paths);
        }
        set
    }

    /// The set as `fieldsV1`.
    pub(super) fn to_value(&self) -> Value {
        let mut root = Map::new();
        for path in &self.paths {
            let mut here = &mut root;
            for step in path {
                let next = here.entry(step.name()).or_insert_with(|| Value::Object(Map::new()));
                here = crate::object::fields_mut(next);
            }
            // A field that has fields of its own in the set says so with a dot; the others are
            // empty objects.
            let parent = self.paths.range(path.clone()..).nth(1).is_some_and(|next| next.starts_with(path));
            if parent {
                here.insert(".".into(), Value::Object(Map::new()));
            }
        }
        Value::Object(root)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Vec<Step>> {
        self.paths.iter()
    }

    pub(super) fn contains(&self, path: &[Step]) -> bool {
        self.paths.contains(path)
    }

    /// Is the field, or one below it, in the set?
    pub(super) fn reaches(&self, path: &[Step]) -> bool {
        self.paths.range(path.to_vec()..).next().is_some_and(|found| found.starts_with(path))
    }

    pub(super) fn remove(&mut self, path: &[Step]) {
        self.paths.remove(path);
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&[Step]) -> bool) {
        self.paths.retain(|path| keep(path));
    }
}

fn collect(shape: Shape<'_>, value: &Value, path: &mut Vec<Step>, paths: &mut BTreeSet<Vec<Step>>) {
    match value {
        _ if path.len() > DEPTH_MAX => {
            paths.insert(path.clone());
        }
        Value::Object(fields) if !fields.is_empty() && !shape.is_atomic_map() => {
            for (name, inner) in fields {
                path.push(Step::Field(name.clone()));
                collect(shape.field(name), inner, path, paths);
                path.pop();
            }
        }
        Value::Array(items) if !items.is_empty() && shape.list() != ListShape::Atomic => {
            for item in items {
                let step = step_of(shape, item);
                let keyed = matches!(step, Step::Key(_));
                path.push(step);
                paths.insert(path.clone());
                if keyed {
                    collect(shape.item(), item, path, paths);
                }
                path.pop();
            }
        }
        _ => {
            paths.insert(path.clone());
        }
    }
}

fn parse_below(fields: &Fields, path: &mut Vec<Step>, paths: &mut BTreeSet<Vec<Step>>) {
    if path.len() > DEPTH_MAX {
        return;
    }
    for (name, below) in fields {
        if name == "." {
            paths.insert(path.clone());
            continue;
        }
        let Some(step) = Step::parse(name) else { continue };
        path.push(step);
        match below {
            Value::Object(below) if !below.is_empty() => parse_below(below, path, paths),
            _ => {
                paths.insert(path.clone());
            }
        }
        path.pop();
    }
}

/// The step to an item of a keyed list or a set.
pub(super) fn step_of(shape: Shape<'_>, item: &Value) -> Step {
    match shape.list() {
        ListShape::Map(keys) => {
            let pairs = keys.iter().filter_map(|key| {
                let value = item.get(*key).cloned().or_else(|| shape.key_default(key))?;
                Some(((*key).to_owned(), value))
            });
            Step::Key(Value::Object(pairs.collect()).to_string())
        }
        _ => Step::Value(item.to_string()),
    }
}

/// The value at a path.
pub(super) fn get<'a>(shape: Shape<'_>, value: &'a Value, path: &[Step]) -> Option<&'a Value> {
    let Some((step, rest)) = path.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => get(shape.field(name), value.get(name)?, rest),
        item => get(shape.item(), value.as_array()?.iter().find(|i| step_of(shape, i) == *item)?, rest),
    }
}

/// Takes the value at a path away.
pub(super) fn remove(shape: Shape<'_>, value: &mut Value, path: &[Step]) {
    match path {
        [] => {}
        [Step::Field(name)] => {
            if let Value::Object(fields) = value {
                fields.remove(name);
            }
        }
        [item] => {
            if let Value::Array(items) = value {
                items.retain(|i| step_of(shape, i) != *item);
            }
        }
        [Step::Field(name), rest @ ..] => {
            if let Some(inner) = value.get_mut(name) {
                remove(shape.field(name), inner, rest);
                // What was only the way to the field goes with it.
                let hollow = matches!(inner, Value::Object(f) if f.is_empty())
                    || matches!(inner, Value::Array(i) if i.is_empty());
                if hollow && let Value::Object(fields) = value {
                    fields.remove(name);
                }
            }
        }
        [item, rest @ ..] => {
            let items = value.as_array_mut().into_iter().flatten();
            for inner in items.filter(|i| step_of(shape, i) == *item) {
                remove(shape.item(), inner, rest);
            }
        }
    }
}

/// `.spec.containers[name="a"].image`.
pub(super) fn shown(path: &[Step]) -> String {
    let mut text = String::new();
    for step in path {
        match step {
            Step::Field(name) => text.push_str(&format!(".{name}")),
            Step::Value(json) => text.push_str(&format!("[={json}]")),
            Step::Key(json) => {
                let keys: Map<String, Value> = serde_json::from_str(json).unwrap_or_default();
                let pairs: Vec<String> = keys.iter().map(|(k, v)| format!("{k}={v}")).collect();
                text.push_str(&format!("[{}]", pairs.join(",")));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn field_sets_are_written_as_kubernetes_writes_them() {
        let schema = crate::builtin::schema("", "Pod").unwrap();
        let shape = Shape::root(Some(&schema));
        let value = json!({
            "metadata": {"labels": {"a": "b"}, "finalizers": ["x/y"]},
            "spec": {
                "containers": [{"name": "c", "ports": [{"containerPort": 80}]}],
                "nodeSelector": {"k": "v"},
            },
        });
        let set = FieldSet::of(shape, &value);
        let expected = json!({
            "f:metadata": {"f:labels": {"f:a": {}}, "f:finalizers": {"v:\"x/y\"": {}}},
            "f:spec": {
                "f:containers": {"k:{\"name\":\"c\"}": {
                    ".": {},
                    "f:name": {},
                    "f:ports": {"k:{\"containerPort\":80,\"protocol\":\"TCP\"}": {".": {}, "f:containerPort": {}}},
                }},
                "f:nodeSelector": {},
            },
        });
        assert_eq!(set.to_value(), expected);
        assert_eq!(FieldSet::parse(&expected), set);
        let shown: Vec<String> = set.paths().map(|p| shown(p)).collect();
        assert!(
            shown.contains(
                &".spec.containers[name=\"c\"].ports[containerPort=80,protocol=\"TCP\"]".to_owned()
            )
        );
    }
}
