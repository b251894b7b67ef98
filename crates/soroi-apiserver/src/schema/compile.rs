//! From JSON schemas to nodes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{Additional, Kind, Limits, ListType, Node, NodeIx, Schema, Special, cel};
use crate::object;
use crate::status::FieldError;

/// Deeper schemas than this are refused: every walk over an object recurses along its schema.
const DEPTH_MAX: usize = 64;

/// Compiles the schema that schemars makes for a built-in kind.
pub(crate) fn compile_builtin(schema: &Value) -> Schema {
    let mut compiler = Compiler {
        definitions: schema.get("$defs").or_else(|| schema.get("definitions")),
        ..Compiler::default()
    };
    let root = compiler.node(schema, "", 0);
    let title = object::text(schema, &["title"]);
    compiler.nodes[root].name = title.rsplit('.').next().unwrap_or("").to_owned();
    compiler.finish(root, false)
}

/// Compiles the schema of a custom kind.
pub(super) fn compile_custom(schema: &Value) -> Result<Schema, Vec<FieldError>> {
    let mut compiler = Compiler { custom: true, ..Compiler::default() };
    if object::text(schema, &["type"]) != "object" {
        let shown = object::text(schema, &["type"]);
        compiler.errors.push(FieldError::invalid("type", shown, "must be object at the root"));
    }
    let root = compiler.node(schema, "", 0);
    if compiler.errors.is_empty() { Ok(compiler.finish(root, true)) } else { Err(compiler.errors) }
}

#[derive(Default)]
struct Compiler<'a> {
    definitions: Option<&'a Value>,
    custom: bool,
    nodes: Vec<Node>,
    /// Nodes of named definitions, which may refer to themselves.
    named: BTreeMap<&'a str, NodeIx>,
    errors: Vec<FieldError>,
}

impl<'a> Compiler<'a> {
    fn node(&mut self, schema: &'a Value, path: &str, depth: usize) -> NodeIx {
        if let Some(name) = reference(schema)
            && !self.custom
        {
            return self.definition(name);
        }
        let ix = self.nodes.len();
        self.nodes.push(Node::default());
        self.fill(ix, schema, path, depth);
        ix
    }

    fn definition(&mut self, name: &'a str) -> NodeIx {
        if let Some(ix) = self.named.get(name) {
            return *ix;
        }
        let ix = self.nodes.len();
        self.nodes.push(Node::default());
        self.named.insert(name, ix);
        if let Some(schema) = self.definitions.and_then(|d| d.get(name)) {
            self.fill(ix, schema, "", 0);
        }
        let node = &mut self.nodes[ix];
        if FREE.contains(&name.rsplit('.').next().unwrap_or(name)) {
            *node = Node::default();
        }
        node.name = name.rsplit('.').next().unwrap_or(name).to_owned();
        node.special = match name {
            "io.k8s.apimachinery.pkg.api.resource.Quantity" => Special::Quantity,
            "io.k8s.apimachinery.pkg.apis.meta.v1.Time" => Special::Time,
            "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime" => Special::MicroTime,
            _ => Special::None,
        };
        ix
    }

    fn fill(&mut self, ix: NodeIx, schema: &'a Value, path: &str, depth: usize) {
        if depth > DEPTH_MAX {
            self.errors.push(FieldError::too_many(path, depth, DEPTH_MAX as u64));
            return;
        }
        let kind = kind(schema);
        let flag = |key| object::flag(schema, &[key]);
        let mut node = Node {
            kind,
            nullable: flag("nullable"),
            int_or_string: flag("x-kubernetes-int-or-string"),
            preserve_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            embedded: flag("x-kubernetes-embedded-resource"),
            default: schema.get("default").cloned(),
            list: list_type(schema),
            atomic_map: object::text(schema, &["x-kubernetes-map-type"]) == "atomic",
            limits: self.limits(schema, path),
            rules: self.rules(schema, path),
            ..Node::default()
        };
        if self.custom {
            self.check_structure(schema, &node, path);
        }
        let deeper = depth + 1;
        for (name, property) in object::map(schema, &["properties"]).into_iter().flatten() {
            let at = format!("{}properties[{name}]", dotted(path));
            node.properties.insert(name.clone(), self.node(property, &at, deeper));
        }
        node.additional = match schema.get("additionalProperties") {
            Some(Value::Bool(true)) => Additional::Anything,
            Some(value @ Value::Object(_)) => {
                let at = format!("{}additionalProperties", dotted(path));
                Additional::Schema(self.node(value, &at, deeper))
            }
            _ => Additional::Nothing,
        };
        if let Some(items) = object::at(schema, &["items"]) {
            node.items = Some(self.node(items, &format!("{}items", dotted(path)), deeper));
        }
        let several = |key: &str, compiler: &mut Self| -> Vec<NodeIx> {
            let list = object::list(schema, &[key]).iter().enumerate();
            list.map(|(i, s)| compiler.branch(s, &format!("{}{key}[{i}]", dotted(path)), deeper)).collect()
        };
        node.all_of = several("allOf", self);
        node.any_of = several("anyOf", self);
        node.one_of = several("oneOf", self);
        node.not =
            object::at(schema, &["not"]).map(|not| self.branch(not, &format!("{}not", dotted(path)), deeper));
        self.nodes[ix] = node;
    }

    /// A branch of `allOf` and the like, which need not say its type.
    fn branch(&mut self, schema: &'a Value, path: &str, depth: usize) -> NodeIx {
        let errors = self.errors.len();
        let ix = self.node(schema, path, depth);
        let why = MUST_HAVE_TYPE;
        let mut at = 0;
        self.errors.retain(|e| {
            at += 1;
            at <= errors || e.detail != why
        });
        ix
    }

    fn check_structure(&mut self, schema: &Value, node: &Node, path: &str) {
        if schema.get("$ref").is_some() {
            self.errors.push(FieldError::forbidden(&format!("{}$ref", dotted(path)), "must not be set"));
        }
        let untyped = node.kind == Kind::Any && !node.int_or_string && !node.preserve_unknown;
        if untyped && !path.is_empty() {
            self.errors.push(FieldError::required(&format!("{}type", dotted(path)), MUST_HAVE_TYPE));
        }
        if node.kind == Kind::Array && schema.get("items").is_none() {
            self.errors.push(FieldError::required(&format!("{}items", dotted(path)), "must be specified"));
        }
        if let ListType::Map(keys) = &node.list
            && keys.is_empty()
        {
            let at = format!("{}x-kubernetes-list-map-keys", dotted(path));
            self.errors.push(FieldError::required(&at, "must not be empty if x-kubernetes-list-type is map"));
        }
    }

    fn limits(&mut self, schema: &Value, path: &str) -> Limits {
        let whole = |key| schema.get(key).and_then(Value::as_u64);
        let real = |key| schema.get(key).and_then(Value::as_f64);
        let texts = |key: &str| -> Vec<String> {
            object::list(schema, &[key]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let pattern = object::at(schema, &["pattern"]).and_then(Value::as_str).and_then(|text| {
            regex::Regex::new(text)
                .map_err(|e| {
                    let why = format!("must be a valid regular expression, but isn't: {e}");
                    self.errors.push(FieldError::invalid(&format!("{}pattern", dotted(path)), text, why));
                })
                .ok()
        });
        Limits {
            required: texts("required"),
            options: object::list(schema, &["enum"]).to_vec(),
            minimum: real("minimum"),
            maximum: real("maximum"),
            exclusive_minimum: object::flag(schema, &["exclusiveMinimum"]),
            exclusive_maximum: object::flag(schema, &["exclusiveMaximum"]),
            multiple_of: real("multipleOf"),
            min_length: whole("minLength"),
            max_length: whole("maxLength"),
            pattern,
            min_items: whole("minItems"),
            max_items: whole("maxItems"),
            min_properties: whole("minProperties"),
            max_properties: whole("maxProperties"),
            unique_items: object::flag(schema, &["uniqueItems"]),
            format: object::text(schema, &["format"]).to_owned(),
        }
    }

    fn rules(&mut self, schema: &Value, path: &str) -> cel::Rules {
        let mut rules = cel::Rules::default();
        for (at, rule) in object::list(schema, &["x-kubernetes-validations"]).iter().enumerate() {
            match cel::Rule::compile(rule) {
                Ok(rule) => rules.push(rule),
                Err((field, why)) => {
                    let at = format!("{}x-kubernetes-validations[{at}].{field}", dotted(path));
                    let shown = object::text(rule, &[field]);
                    self.errors.push(FieldError::invalid(&at, shown, format!("compilation failed: {why}")));
                }
            }
        }
        rules
    }

    fn finish(self, root: NodeIx, custom: bool) -> Schema {
        let mut nodes = self.nodes;
        // Flags rise from children to parents; definitions may be circular, so until nothing moves.
        loop {
            let mut moved = false;
            for ix in 0..nodes.len() {
                let below: Vec<NodeIx> = children(&nodes[ix]).collect();
                let defaults = nodes[ix].default.is_some() || below.iter().any(|c| nodes[*c].has_defaults);
                let rules = !nodes[ix].rules.is_empty() || below.iter().any(|c| nodes[*c].has_rules);
                moved |= defaults != nodes[ix].has_defaults || rules != nodes[ix].has_rules;
                nodes[ix].has_defaults = defaults;
                nodes[ix].has_rules = rules;
            }
            if !moved {
                return Schema { nodes, root, custom };
            }
        }
    }
}

/// Types of Kubernetes that hold any JSON, whatever k8s-openapi says of their type.
const FREE: &[&str] = &[
    "FieldsV1",
    "JSON",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
    "RawExtension",
];

const MUST_HAVE_TYPE: &str = "must not be empty for specified object fields";

fn children(node: &Node) -> impl Iterator<Item = NodeIx> {
    let additional = match node.additional {
        Additional::Schema(ix) => Some(ix),
        _ => None,
    };
    node.properties.values().copied().chain(node.items).chain(additional).chain(node.all_of.iter().copied())
}

/// The definition that a schema refers to, directly or as the only branch of an `allOf`.
fn reference(schema: &Value) -> Option<&str> {
    let direct = schema.get("$ref").and_then(Value::as_str);
    let text = direct.or_else(|| match object::list(schema, &["allOf"]) {
        [only] => only.get("$ref").and_then(Value::as_str),
        _ => None,
    })?;
    text.rsplit('/').next()
}

fn kind(schema: &Value) -> Kind {
    match object::text(schema, &["type"]) {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => Kind::Any,
    }
}

fn list_type(schema: &Value) -> ListType {
    match object::text(schema, &["x-kubernetes-list-type"]) {
        "set" => ListType::Set,
        "map" => {
            let keys = object::list(schema, &["x-kubernetes-list-map-keys"]);
            ListType::Map(keys.iter().filter_map(Value::as_str).map(str::to_owned).collect())
        }
        _ => ListType::Atomic,
    }
}

fn dotted(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("{path}.") }
}
