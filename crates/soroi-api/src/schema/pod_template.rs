//! A pod template, as far as it decides when and where pods start.
//!
//! What Soroi reads of a template is described, so that the API server refuses what could not be read
//! and names the field. All else goes through as it is: described in full a template would make one CRD
//! of half a megabyte, it would drop fields that a newer Kubernetes knows and we do not, and it would
//! have to follow every release of Kubernetes. What is wrong there is found when the Workload is read.

use schemars::{Schema, SchemaGenerator, json_schema};
use serde_json::{Value, json};

use super::{quantities, string_map, tolerations};

/// A whole pod template.
pub(crate) fn pod_template(generator: &mut SchemaGenerator) -> Schema {
    let schema = open(
        "What its pods look like.",
        json!({
            "metadata": open("Labels and annotations of the pods.", json!({
                "labels": explained(string_map(generator).to_value(), "Labels of the pods."),
                "annotations": explained(string_map(generator).to_value(), "Annotations of the pods."),
            })),
            "spec": spec(generator),
        }),
    );
    Schema::try_from(schema).unwrap_or_else(|_| json_schema!({"type": "object"}))
}

fn spec(generator: &mut SchemaGenerator) -> Value {
    let word = |meaning: &str| json!({"type": "string", "description": meaning});
    let resources = |generator: &mut SchemaGenerator, of: &str| {
        let list = |generator: &mut SchemaGenerator, meaning: &str| {
            explained(quantities(generator).to_value(), meaning)
        };
        let amounts = json!({
            "requests": list(generator, "What is kept for it."),
            "limits": list(generator, "What it may use at most."),
        });
        open(&format!("What {of} needs of its node."), amounts)
    };
    let container = open(
        "A container.",
        json!({
            "name": word("Its name."),
            "restartPolicy": word("Always makes an init container one that runs beside the others."),
            "resources": resources(generator, "the container"),
        }),
    );
    let containers = |meaning: &str| {
        let mut container = container.clone();
        container["required"] = json!(["name"]);
        json!({"type": "array", "items": container, "description": meaning})
    };
    open(
        "What each pod is made of, and where it may run.",
        json!({
            "containers": containers("What runs in the pod."),
            "initContainers": containers("What runs before that, one after the other."),
            "resources": resources(generator, "the pod as a whole"),
            "overhead": explained(quantities(generator).to_value(), "What the pod itself costs."),
            "nodeSelector": explained(string_map(generator).to_value(), "Labels that its node must have."),
            "affinity": affinity(),
            "tolerations": explained(open_tolerations(generator), "Taints of nodes that it tolerates."),
            "schedulingGates": {
                "type": "array", "description": "Gates that must be open before it is scheduled.",
                "items": open("A gate.", json!({ "name": word("Its name.") })),
            },
            "schedulerName": word("Who is to schedule it."),
            "priorityClassName": word("The class that its priority comes from."),
            "priority": {"type": "integer", "format": "int32", "description": "Its priority."},
            "runtimeClassName": word("The class that says how it is run."),
            "restartPolicy": word("Whether containers that end are started again."),
        }),
    )
}

/// The tolerations of a flavor without their bounds and rules: a template was judged where it came from,
/// and a later Kubernetes may know more operators.
fn open_tolerations(generator: &mut SchemaGenerator) -> Value {
    let mut schema = tolerations(generator).to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("maxItems");
        schema.remove("x-kubernetes-validations");
    }
    schema["items"]["x-kubernetes-preserve-unknown-fields"] = true.into();
    schema
}

fn affinity() -> Value {
    let expressions = |of: &str| {
        json!({
            "type": "array", "description": format!("Requirements of {of} that must all hold."),
            "items": {
                "type": "object", "required": ["key", "operator"],
                "properties": {
                    "key": {"type": "string", "description": "What is looked at."},
                    "operator": {
                        "type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"],
                        "description": "How it is compared.",
                    },
                    "values": {
                        "type": "array", "items": {"type": "string"},
                        "description": "With what it is compared.",
                    },
                },
            },
        })
    };
    let terms = json!({
        "type": "array", "description": "A node must meet one of these.",
        "items": {
            "type": "object",
            "properties": {
                "matchExpressions": expressions("labels"),
                "matchFields": expressions("fields"),
            },
        },
    });
    open(
        "Which nodes and which neighbours it wants.",
        json!({
            "nodeAffinity": open("Which nodes it wants.", json!({
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "type": "object", "required": ["nodeSelectorTerms"],
                    "properties": { "nodeSelectorTerms": terms },
                    "description": "Nodes that are none of these are out of the question.",
                },
            })),
        }),
    )
}

/// An object of which some fields are described, and that may have others.
fn open(meaning: &str, properties: Value) -> Value {
    json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "description": meaning, "properties": properties,
    })
}

fn explained(mut schema: Value, meaning: &str) -> Value {
    schema["description"] = meaning.into();
    schema
}
