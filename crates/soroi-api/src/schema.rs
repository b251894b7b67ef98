//! Building blocks of the CRDs' schemas: patterns, bounds and rules that several kinds share.
//!
//! Knows OpenAPI v3 as Kubernetes' structural schemas restrict it. Must never know what a field means.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

mod pod_template;

pub(crate) use pod_template::pod_template;

/// RFC 1123 label: names of pod sets and the like.
pub(crate) const LABEL: &str = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$";
/// RFC 1123 subdomain: names of objects.
pub(crate) const SUBDOMAIN: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// A label's key with its optional prefix.
pub(crate) const LABEL_KEY: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$";
/// A quantity. Stricter than Kubernetes' published pattern in one point: an exponent is a whole
/// number, since the API server's own parser refuses all others.
const QUANTITY: &str = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";
/// A quantity that is not negative.
const QUANTITY_UNSIGNED: &str = r"^\+?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$";
/// Longest quantity that the schemas accept, so that the API server can bound what its rules cost.
const QUANTITY_LEN_MAX: u32 = 64;
/// Longest name of a resource: a label key.
const RESOURCE_LEN_MAX: u32 = 317;

/// A CEL rule with the message that a user sees when it is broken.
pub(crate) fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// The name of an object.
pub(crate) fn name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 253, "pattern": SUBDOMAIN})
}

/// The name of an object that must not be empty.
pub(crate) fn name_required(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "minLength": 1, "maxLength": 253, "pattern": SUBDOMAIN})
}

/// A reference to an object whose name was set once and stays.
pub(crate) fn name_immutable(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string", "maxLength": 253, "pattern": SUBDOMAIN,
        "x-kubernetes-validations": [rule("self == oldSelf", "field is immutable")],
    })
}

/// A set of object names.
pub(crate) fn name_set(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 64, "items": name(generator), "x-kubernetes-list-type": "set",
    })
}

/// The name of a pod set.
pub(crate) fn pod_set_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 63, "pattern": LABEL})
}

/// The name of a pod set where there is a usual one.
pub(crate) fn pod_set_name_main(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": 63, "pattern": LABEL, "default": "main"})
}

/// The name of a resource, such as `cpu` or `example.com/gpu`.
pub(crate) fn resource_name(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "maxLength": RESOURCE_LEN_MAX})
}

/// Resources that the same flavors serve.
pub(crate) fn covered_resources(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "minItems": 1, "maxItems": 64, "items": resource_name(generator),
        "x-kubernetes-list-type": "atomic",
    })
}

/// Strings, each at most `length` long, in an atomic list of at most `most`.
pub(crate) fn strings(most: u32, length: u32) -> Schema {
    json_schema!({
        "type": "array", "maxItems": most, "items": {"type": "string", "maxLength": length},
        "x-kubernetes-list-type": "atomic",
    })
}

/// A quantity of any sign.
pub(crate) fn quantity(_: &mut SchemaGenerator) -> Schema {
    quantity_like(QUANTITY)
}

/// A quantity of at least zero.
pub(crate) fn quantity_unsigned(_: &mut SchemaGenerator) -> Schema {
    let mut schema = quantity_like(QUANTITY_UNSIGNED);
    schema.insert("minimum".into(), 0.into());
    schema
}

/// A fair sharing weight: a quantity of at least zero, one if not given.
pub(crate) fn weight(generator: &mut SchemaGenerator) -> Schema {
    let mut schema = quantity_unsigned(generator);
    schema.insert("default".into(), 1.into());
    schema
}

fn quantity_like(pattern: &str) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": true,
        "maxLength": QUANTITY_LEN_MAX,
        "pattern": pattern,
    })
}

/// A quantity per resource.
pub(crate) fn quantities(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": quantity(generator)})
}

/// A string per key.
pub(crate) fn string_map(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "string"}})
}

/// A few labels of nodes.
pub(crate) fn node_labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "maxProperties": 8, "additionalProperties": {"type": "string"},
        "x-kubernetes-map-type": "atomic",
    })
}

/// A point in time.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// Conditions as `meta/v1` defines them, one per type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 16,
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "type": {"type": "string", "maxLength": 316, "pattern": LABEL_KEY,
                    "description": "What the condition is about."},
                "status": {"type": "string", "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds."},
                "reason": {"type": "string", "minLength": 1, "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why, in one word."},
                "message": {"type": "string", "maxLength": 32768, "description": "Why, for people."},
                "lastTransitionTime": {"type": "string", "format": "date-time",
                    "description": "When the status last changed."},
                "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0,
                    "description": "The metadata.generation that this was said of."},
            },
        },
    })
}

/// A label selector.
pub(crate) fn label_selector(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object", "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchLabels": {"type": "object", "additionalProperties": {"type": "string"},
                "description": "Labels that must have these values."},
            "matchExpressions": {
                "type": "array", "x-kubernetes-list-type": "atomic",
                "description": "Requirements that must all hold.",
                "items": {
                    "type": "object", "required": ["key", "operator"],
                    "properties": {
                        "key": {"type": "string", "description": "The label's key."},
                        "operator": {"type": "string", "description": "In, NotIn, Exists or DoesNotExist."},
                        "values": {"type": "array", "items": {"type": "string"},
                            "x-kubernetes-list-type": "atomic",
                            "description": "Values for In and NotIn; empty for the others."},
                    },
                },
            },
        },
    })
}

/// Taints of nodes.
pub(crate) fn taints(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 8, "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object", "required": ["effect", "key"],
            "properties": {
                "key": {"type": "string", "maxLength": 317, "description": "The taint's key."},
                "value": {"type": "string", "maxLength": 63, "description": "The taint's value."},
                "effect": {"type": "string", "maxLength": 32,
                    "description": "NoSchedule, PreferNoSchedule or NoExecute."},
                "timeAdded": {"type": "string", "format": "date-time",
                    "description": "When it was added."},
            },
        },
        "x-kubernetes-validations": [rule(
            "self.all(t, t.effect in ['NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
            "effect of a taint must be NoSchedule, PreferNoSchedule or NoExecute",
        )],
    })
}

/// Tolerations of pods, under the rules of `core/v1`.
pub(crate) fn tolerations(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array", "maxItems": 8, "x-kubernetes-list-type": "atomic",
        "items": {
            "type": "object",
            "properties": {
                "key": {"type": "string", "maxLength": 317,
                    "description": "The taint's key; empty with operator Exists tolerates all."},
                "operator": {"type": "string", "maxLength": 16, "description": "Exists or Equal."},
                "value": {"type": "string", "maxLength": 63, "description": "The taint's value."},
                "effect": {"type": "string", "maxLength": 32,
                    "description": "The taint's effect; empty means all."},
                "tolerationSeconds": {"type": "integer", "format": "int64",
                    "description": "How long a NoExecute taint is tolerated."},
            },
        },
        "x-kubernetes-validations": [
            rule("self.all(t, !has(t.operator) || t.operator in ['', 'Equal', 'Exists'])",
                "operator of a toleration must be Exists or Equal"),
            rule("self.all(t, !has(t.operator) || t.operator != 'Exists' || !has(t.value) || t.value == '')",
                "a toleration with operator Exists has no value"),
            rule("self.all(t, (has(t.key) && t.key != '') || (has(t.operator) && t.operator == 'Exists'))",
                "a toleration without key needs operator Exists"),
            rule("self.all(t, !has(t.effect) || t.effect in ['', 'NoSchedule', 'PreferNoSchedule', 'NoExecute'])",
                "effect of a toleration must be NoSchedule, PreferNoSchedule or NoExecute"),
            rule("self.all(t, !has(t.tolerationSeconds) || (has(t.effect) && t.effect == 'NoExecute'))",
                "tolerationSeconds needs effect NoExecute"),
        ],
    })
}
