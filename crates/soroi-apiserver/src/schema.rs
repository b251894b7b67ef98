//! Which fields may an object have, and which values? Schemas of built-in and custom kinds.
//!
//! A schema is compiled once into a flat list of nodes. Built-in kinds take theirs from
//! k8s-openapi's types and are read as Go reads them: unknown fields and nulls are dropped,
//! a wrong type is a decoding error. Custom kinds take theirs from the CRD and are pruned,
//! defaulted and validated as structural schemas. Must never know storage or HTTP.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::status::FieldError;

mod cel;
mod compile;
mod defaults;
pub(crate) mod path;
mod prune;
mod shape;
mod typed;
mod validate;

pub(crate) use compile::compile_builtin;
use path::Path;
pub(crate) use shape::{ListShape, Shape};

/// Index of a node in its schema.
type NodeIx = usize;

/// The schema of one kind.
#[derive(Debug)]
pub(crate) struct Schema {
    nodes: Vec<Node>,
    root: NodeIx,
    custom: bool,
}

/// What one place in an object may hold.
#[derive(Debug, Default)]
struct Node {
    /// Name of the type that it comes from, for decoding errors of built-in kinds.
    name: String,
    kind: Kind,
    nullable: bool,
    /// A whole number or a text.
    int_or_string: bool,
    special: Special,
    /// Fields that the schema does not name are kept.
    preserve_unknown: bool,
    /// The value is a whole object with apiVersion, kind and metadata.
    embedded: bool,
    properties: BTreeMap<String, NodeIx>,
    additional: Additional,
    items: Option<NodeIx>,
    default: Option<Value>,
    list: ListType,
    /// The map is owned as a whole.
    atomic_map: bool,
    limits: Limits,
    all_of: Vec<NodeIx>,
    any_of: Vec<NodeIx>,
    one_of: Vec<NodeIx>,
    not: Option<NodeIx>,
    rules: cel::Rules,
    /// Is there a default here or below?
    has_defaults: bool,
    /// Is there a CEL rule here or below?
    has_rules: bool,
}

/// The JSON type of a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Any,
    Object,
    Array,
    String,
    Integer,
    Number,
    Boolean,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Any => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }

    fn admits(self, value: &Value) -> bool {
        match self {
            Self::Any => true,
            Self::Object => value.is_object(),
            Self::Array => value.is_array(),
            Self::String => value.is_string(),
            Self::Integer => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|f| f.fract() == 0.0)
            }
            Self::Number => value.is_number(),
            Self::Boolean => value.is_boolean(),
        }
    }
}

/// Values of built-in kinds that have a canonical form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Special {
    #[default]
    None,
    Quantity,
    Time,
    MicroTime,
}

/// What may stand beside the named properties.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Additional {
    #[default]
    Nothing,
    Anything,
    Schema(NodeIx),
}

/// How the items of a list are told apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum ListType {
    #[default]
    Atomic,
    Set,
    Map(Vec<String>),
}

/// Bounds on a value.
#[derive(Debug, Default)]
struct Limits {
    required: Vec<String>,
    options: Vec<Value>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    exclusive_minimum: bool,
    exclusive_maximum: bool,
    multiple_of: Option<f64>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    pattern: Option<regex::Regex>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    min_properties: Option<u64>,
    max_properties: Option<u64>,
    unique_items: bool,
    format: String,
}

/// Most compiled schemas that are remembered: several times what a big cluster has.
const COMPILED_MAX: usize = 1_000;

impl Schema {
    /// The schema of a CRD's version. Compiling its rules is the dearest thing that this server
    /// does, so equal schemas are compiled once in a process, however many servers it has.
    ///
    /// # Errors
    /// What is wrong with the schema itself, by path inside it.
    pub(crate) fn of_custom(schema: &Value) -> Result<Arc<Self>, Vec<FieldError>> {
        static COMPILED: Mutex<BTreeMap<String, Arc<Schema>>> = Mutex::new(BTreeMap::new());
        let text = schema.to_string();
        let known = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(&text) {
            return Ok(found.clone());
        }
        let compiled = Arc::new(compile::compile_custom(schema)?);
        let mut known = known();
        if known.len() >= COMPILED_MAX {
            known.clear();
        }
        known.insert(text, compiled.clone());
        Ok(compiled)
    }

    /// Takes what the schema does not know out of an object and brings values into canonical form.
    /// Gives the paths of the unknown fields.
    ///
    /// # Errors
    /// What Go's decoder would say of a value of the wrong type (built-in kinds, and `metadata`).
    pub(crate) fn settle(&self, object: &mut Value) -> Result<Vec<String>, String> {
        let mut unknown = Vec::new();
        if self.custom {
            self.prune(self.root, object, &Path::Root, true, &mut unknown)?;
        } else {
            self.read_typed(self.root, object, &Path::Root, "", &mut unknown)?;
        }
        Ok(unknown)
    }

    /// Puts the defaults of the schema where nothing is.
    pub(crate) fn fill_defaults(&self, object: &mut Value) {
        if self.custom {
            self.default_node(self.root, object);
        }
    }

    /// What is wrong with an object of a custom kind, given the one that it replaces: what has not
    /// changed is not held against it (Kubernetes' ratcheting), but transition rules apply.
    pub(crate) fn validate(&self, object: &Value, old: Option<&Value>) -> Vec<FieldError> {
        let mut errors = Vec::new();
        if self.custom {
            self.validate_node(self.root, object, old, &Path::Root, &mut errors);
            if !self.nodes[self.root].has_rules {
                return errors;
            }
            // Rules may rely on types and bounds, so they are asked only where these hold.
            if errors.iter().any(|e| e.kind.blocks_rules()) {
                let why = "some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";
                errors.push(FieldError::invalid("<nil>", Value::Null, why));
            } else {
                self.check_rules(self.root, object, old, false, &Path::Root, &mut errors);
            }
        }
        errors
    }

    /// The old item that a new item of a list replaces: the one with the same keys.
    fn old_item<'a>(&self, node: &Node, item: &Value, old: Option<&'a Value>) -> Option<&'a Value> {
        let ListType::Map(keys) = &node.list else { return None };
        old?.as_array()?
            .iter()
            .find(|o| keys.iter().all(|k| self.key_of(node, o, k) == self.key_of(node, item, k)))
    }

    /// A key field of an item of a keyed list, or its default.
    fn key_of<'a>(&'a self, node: &Node, item: &'a Value, key: &str) -> Option<&'a Value> {
        let default = || {
            let field = self.nodes[node.items?].properties.get(key)?;
            self.nodes[*field].default.as_ref()
        };
        item.get(key).or_else(default)
    }
}

#[cfg(test)]
mod tests;
