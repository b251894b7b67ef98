//! CEL rules of custom kinds (`x-kubernetes-validations`).
//!
//! Expressions are evaluated by kube-cel. The walk is our own: items of keyed lists are compared
//! with the old item of the same key, items of other lists with none, and what has not changed is
//! only asked about its transitions, all as Kubernetes 1.36 does
//! (`apiextensions-apiserver/pkg/apiserver/schema/cel/validation.go`).

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock};

use kube_cel::KubeCelExt;
use kube_cel::cel::objects::{Key, Map};
use kube_cel::cel::{Context, ExecutionError, Program, Value as Cel};
use serde_json::Value;

use super::path::Path;
use super::{Additional, Kind, Node, NodeIx, Schema};
use crate::object;
use crate::status::FieldError;

mod needs;

use needs::{Needs, WHOLE};

/// The rules of a node.
#[derive(Debug, Default)]
pub(super) struct Rules {
    all: Vec<Rule>,
    /// What they look at of the value, and of the one before.
    this: Needs,
    before: Needs,
}

impl Rules {
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn push(&mut self, rule: Rule) {
        for program in std::iter::once(&rule.program).chain(&rule.message_program) {
            self.this.add(&program.expression().expr, "self");
            self.before.add(&program.expression().expr, "oldSelf");
        }
        self.all.push(rule);
    }
}

/// One compiled rule.
pub(super) struct Rule {
    program: Program,
    text: String,
    message: String,
    message_program: Option<Program>,
    reason: String,
    /// Where below the node the error belongs.
    field: Option<String>,
    /// Does it compare with the old value?
    transition: bool,
    optional_old: bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Rule").field(&self.text).finish()
    }
}

impl Rule {
    /// Compiles a rule of a schema.
    ///
    /// # Errors
    /// The field of the rule that does not compile, and why.
    pub(super) fn compile(rule: &Value) -> Result<Self, (&'static str, String)> {
        let text = object::text(rule, &["rule"]);
        let program = Program::compile(text).map_err(|e| ("rule", e.to_string()))?;
        let message_program = match object::text(rule, &["messageExpression"]) {
            "" => None,
            text => Some(Program::compile(text).map_err(|e| ("messageExpression", e.to_string()))?),
        };
        let field = object::text(rule, &["fieldPath"]);
        let transition = program.references().has_variable("oldSelf");
        Ok(Self {
            program,
            text: text.to_owned(),
            message: object::text(rule, &["message"]).trim().to_owned(),
            message_program,
            reason: object::text(rule, &["reason"]).to_owned(),
            field: (!field.is_empty()).then(|| field.trim_start_matches('.').to_owned()),
            transition,
            optional_old: object::flag(rule, &["optionalOldSelf"]),
        })
    }

    /// Evaluates the rule; gives what is wrong.
    fn check(&self, scope: &Context<'_>, kind: Kind, value: &Value, path: &Path<'_>) -> Option<FieldError> {
        let field = match &self.field {
            Some(below) => match path {
                Path::Root => below.clone(),
                _ => format!("{path}.{below}"),
            },
            None => path.to_string(),
        };
        let shown = || (!matches!(kind, Kind::Object | Kind::Array)).then(|| value.clone());
        match self.program.execute(scope) {
            Ok(Cel::Bool(true)) => None,
            Ok(Cel::Bool(false)) => {
                let error = match self.reason.as_str() {
                    "FieldValueRequired" => FieldError::required(&field, self.say(scope)),
                    "FieldValueForbidden" => FieldError::forbidden(&field, self.say(scope)),
                    "FieldValueDuplicate" => FieldError::duplicate(&field, shown().unwrap_or_default()),
                    _ => FieldError::rule(&field, shown(), self.say(scope)),
                };
                Some(error)
            }
            Ok(_) => {
                Some(FieldError::rule(&field, shown(), format!("rule {:?} gives no truth value", self.text)))
            }
            Err(error) => {
                let why = match error {
                    ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
                    other => other.to_string(),
                };
                let rule = if self.message.is_empty() { &self.text } else { &self.message };
                Some(FieldError::rule(&field, shown(), format!("{why} evaluating rule: {rule}")))
            }
        }
    }

    fn say(&self, scope: &Context<'_>) -> String {
        if let Some(program) = &self.message_program
            && let Ok(Cel::String(text)) = program.execute(scope)
            && !text.trim().is_empty()
        {
            return text.trim().to_owned();
        }
        if self.message.is_empty() { format!("failed rule: {}", self.text) } else { self.message.clone() }
    }
}

thread_local! {
    /// Kubernetes' functions, registered once per thread: a context cannot be shared.
    static FUNCTIONS: Context<'static> = Context::default().with_all();
}

/// The calls by which values are converted, compiled once: to parse one takes longer than all that it does.
static CALLS: LazyLock<BTreeMap<&str, Program>> = LazyLock::new(|| {
    let calls = ["timestamp(self)", "duration(self)", "base64.decode(self)", OF_OLD, NONE];
    calls.into_iter().filter_map(|call| Some((call, Program::compile(call).ok()?))).collect()
});
const OF_OLD: &str = "optional.of(oldSelf)";
const NONE: &str = "optional.none()";

/// What one of them gives.
fn called(call: &str, scope: &Context<'_>) -> Option<Cel> {
    CALLS.get(call)?.execute(scope).ok()
}

impl Schema {
    /// Asks the rules at and below a node. `unchanged` says that an ancestor is as it was.
    pub(super) fn check_rules(
        &self,
        ix: NodeIx,
        value: &Value,
        old: Option<&Value>,
        unchanged: bool,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let node = &self.nodes[ix];
        if !node.has_rules || value.is_null() {
            return;
        }
        let unchanged = unchanged || old == Some(value);
        self.check_node(node, value, old, unchanged, path, errors);
        for branch in &node.all_of {
            self.check_rules(*branch, value, old, unchanged, path, errors);
        }
        match value {
            Value::Object(fields) => {
                for (name, inner) in fields {
                    let before = old.and_then(|o| o.get(name));
                    match (node.properties.get(name), node.additional) {
                        (Some(ix), _) => {
                            self.check_rules(*ix, inner, before, unchanged, &path.field(name), errors)
                        }
                        (None, Additional::Schema(ix)) => {
                            self.check_rules(ix, inner, before, unchanged, &path.key(name), errors);
                        }
                        _ => {}
                    }
                }
            }
            Value::Array(items) => {
                let Some(ix) = node.items else { return };
                for (at, item) in items.iter().enumerate() {
                    let before = self.old_item(node, item, old);
                    self.check_rules(ix, item, before, unchanged, &path.item(at), errors);
                }
            }
            _ => {}
        }
    }

    fn check_node(
        &self,
        node: &Node,
        value: &Value,
        old: Option<&Value>,
        unchanged: bool,
        path: &Path<'_>,
        errors: &mut Vec<FieldError>,
    ) {
        let old = old.filter(|o| !o.is_null());
        let applies = |rule: &&Rule| {
            let has_old = old.is_some() || rule.optional_old;
            if rule.transition { has_old } else { !unchanged }
        };
        let rules: Vec<&Rule> = node.rules.all.iter().filter(applies).collect();
        if rules.is_empty() {
            return;
        }
        let this = self.to_cel(node, value, &node.rules.this);
        let before = old.map(|o| self.to_cel(node, o, &node.rules.before));
        FUNCTIONS.with(|functions| {
            let mut scope = functions.new_inner_scope();
            scope.add_variable_from_value("self", this);
            let known = before.is_some();
            scope.add_variable_from_value("oldSelf", before.unwrap_or(Cel::Null));
            for rule in rules {
                if rule.optional_old {
                    // Such rules see an optional: `oldSelf.hasValue()`, `oldSelf.value()`.
                    let mut inner = scope.new_inner_scope();
                    let call = if known { OF_OLD } else { NONE };
                    let wrapped = called(call, &scope);
                    inner.add_variable_from_value("oldSelf", wrapped.unwrap_or(Cel::Null));
                    errors.extend(rule.check(&inner, node.kind, value, path));
                } else {
                    errors.extend(rule.check(&scope, node.kind, value, path));
                }
            }
        });
    }

    /// A JSON value as CEL sees it through its schema, as far as it is looked at.
    fn to_cel(&self, node: &Node, value: &Value, needs: &Needs) -> Cel {
        match value {
            Value::String(text) => text_to_cel(node, text),
            Value::Array(items) => {
                let of_each = match &needs.items {
                    Some(of_each) if !needs.whole => of_each,
                    // It is asked for as something else than a list.
                    None if !needs.whole && needs.fields.is_empty() => return Cel::List(Arc::default()),
                    _ => &WHOLE,
                };
                let inner = node.items.map(|ix| &self.nodes[ix]);
                let convert =
                    |item| inner.map_or_else(|| free_to_cel(item), |n| self.to_cel(n, item, of_each));
                Cel::List(Arc::new(items.iter().map(convert).collect()))
            }
            Value::Object(fields) => {
                let is_map = node.properties.is_empty() && node.additional != Additional::Nothing;
                // Who walks over the keys looks at all.
                let whole = needs.whole || needs.items.is_some();
                let mut map = HashMap::with_capacity(if whole { fields.len() } else { needs.fields.len() });
                for (name, inner) in fields {
                    // Keys of maps are data, names of fields are identifiers.
                    let key = if is_map { Cow::Borrowed(name.as_str()) } else { escape(name) };
                    let looked_at = if whole { Some(&WHOLE) } else { needs.fields.get(&*key) };
                    let Some(needs) = looked_at else { continue };
                    let child = match (node.properties.get(name), node.additional) {
                        (Some(ix), _) => Some(*ix),
                        (None, Additional::Schema(ix)) => Some(ix),
                        _ => None,
                    };
                    let convert = |ix: NodeIx| self.to_cel(&self.nodes[ix], inner, needs);
                    let converted = child.map_or_else(|| free_to_cel(inner), convert);
                    map.insert(Key::String(Arc::new(key.into_owned())), converted);
                }
                Cel::Map(Map { map: Arc::new(map) })
            }
            Value::Number(number) if node.kind == Kind::Number && !node.int_or_string => {
                Cel::Float(number.as_f64().unwrap_or(f64::NAN))
            }
            other => free_to_cel(other),
        }
    }
}

/// A JSON value without a schema.
fn free_to_cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Number(n) => match (n.as_i64(), n.as_u64()) {
            (Some(i), _) => Cel::Int(i),
            (None, Some(u)) => Cel::UInt(u),
            _ => Cel::Float(n.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(s) => Cel::String(Arc::new(s.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(free_to_cel).collect())),
        Value::Object(fields) => {
            let map =
                fields.iter().map(|(k, v)| (Key::String(Arc::new(escape(k).into_owned())), free_to_cel(v)));
            Cel::Map(Map { map: Arc::new(map.collect()) })
        }
    }
}

/// Texts of the formats that CEL has types for.
fn text_to_cel(node: &Node, text: &str) -> Cel {
    let plain = Cel::String(Arc::new(text.to_owned()));
    let call = match node.limits.format.as_str() {
        _ if node.int_or_string => return plain,
        "date-time" => "timestamp(self)",
        "duration" => "duration(self)",
        "byte" => "base64.decode(self)",
        _ => return plain,
    };
    FUNCTIONS.with(|functions| {
        let mut scope = functions.new_inner_scope();
        scope.add_variable_from_value("self", plain.clone());
        called(call, &scope).unwrap_or(plain)
    })
}

/// Words that cannot be field names in CEL.
const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// A field's name as CEL rules spell it.
fn escape(name: &str) -> Cow<'_, str> {
    if RESERVED.contains(&name) {
        return Cow::Owned(format!("__{name}__"));
    }
    if !name.contains(['.', '-', '/']) && !name.contains("__") {
        return Cow::Borrowed(name);
    }
    let escaped = name.replace("__", "__underscores__").replace('.', "__dot__");
    Cow::Owned(escaped.replace('-', "__dash__").replace('/', "__slash__"))
}
