//! What `schema` promises, as tests.

use serde_json::json;

use super::*;

fn said(schema: &Schema, object: Value, old: Option<Value>) -> Vec<String> {
    let mut object = object;
    let unknown = schema.settle(&mut object).unwrap();
    schema.fill_defaults(&mut object);
    let unknown = unknown.into_iter().map(|u| format!("unknown {u}"));
    unknown.chain(schema.validate(&object, old.as_ref()).iter().map(FieldError::to_string)).collect()
}

fn queue() -> std::sync::Arc<Schema> {
    Schema::of_custom(&json!({
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {
            "type": "object",
            "required": ["queue"],
            "x-kubernetes-validations": [
                {"rule": "self.queue == oldSelf.queue", "message": "queue is immutable"},
                {"rule": "!has(self.max) || self.count <= self.max", "messageExpression": "'count ' + string(self.count) + ' is above max'"},
            ],
            "properties": {
                "queue": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]*$"},
                "count": {"type": "integer", "default": 1, "minimum": 0, "maximum": 10},
                "max": {"type": "integer"},
                "policy": {"type": "string", "enum": ["A", "B"], "default": "A"},
                "amount": {"x-kubernetes-int-or-string": true},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}, "maxProperties": 2},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "sets": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["name"],
                    "items": {
                        "type": "object",
                        "required": ["name"],
                        "properties": {
                            "name": {"type": "string"},
                            "size": {"type": "integer", "default": 1, "x-kubernetes-validations": [
                                {"rule": "self >= oldSelf", "message": "may only grow"},
                            ]},
                        },
                    },
                },
            },
        }},
    }))
    .unwrap()
}

#[test]
fn custom_objects_are_held_against_their_schema() {
    let schema = queue();
    let cases: Vec<(Value, &[&str])> = vec![
        (json!({"spec": {"queue": "a"}}), &[]),
        (json!({}), &["spec: Required value", BLOCKED]),
        (json!({"spec": {}}), &["spec.queue: Required value", BLOCKED]),
        (json!({"spec": {"queue": "a", "foo": {"bar": 1}}}), &["unknown spec.foo"]),
        (
            json!({"spec": {"queue": 3}}),
            &[
                r#"spec.queue: Invalid value: "integer": spec.queue in body must be of type string: "integer""#,
                BLOCKED,
            ],
        ),
        (
            json!({"spec": {"queue": ""}}),
            &[r#"spec.queue: Invalid value: "": spec.queue in body should be at least 1 chars long"#],
        ),
        (
            json!({"spec": {"queue": "abcdef"}}),
            &["spec.queue: Too long: may not be more than 5 bytes", BLOCKED],
        ),
        (
            json!({"spec": {"queue": "A"}}),
            &[r#"spec.queue: Invalid value: "A": spec.queue in body should match '^[a-z]*$'"#],
        ),
        (
            json!({"spec": {"queue": "a", "count": 11}}),
            &["spec.count: Invalid value: 11: spec.count in body should be less than or equal to 10"],
        ),
        (
            json!({"spec": {"queue": "a", "count": -1}}),
            &["spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0"],
        ),
        (
            json!({"spec": {"queue": "a", "max": 2, "count": 3}}),
            &["spec: Invalid value: count 3 is above max"],
        ),
        (
            json!({"spec": {"queue": "a", "policy": "C"}}),
            &[r#"spec.policy: Unsupported value: "C": supported values: "A", "B""#, BLOCKED],
        ),
        (json!({"spec": {"queue": "a", "policy": null, "max": null}}), &[]),
        (json!({"spec": {"queue": null}}), &["spec.queue: Required value", BLOCKED]),
        (json!({"spec": {"queue": "a", "amount": "1Gi", "free": {"any": [1]}}}), &[]),
        (
            json!({"spec": {"queue": "a", "amount": true}}),
            &[
                r#"spec.amount: Invalid value: "boolean": spec.amount in body must be of type integer,string: "boolean""#,
                BLOCKED,
            ],
        ),
        (
            json!({"spec": {"queue": "a", "labels": {"a": "1", "b": 2}}}),
            &[
                r#"spec.labels.b: Invalid value: "integer": spec.labels.b in body must be of type string: "integer""#,
                BLOCKED,
            ],
        ),
        (
            json!({"spec": {"queue": "a", "sets": [{"name": "x"}, {"name": "x"}]}}),
            &[r#"spec.sets[1]: Duplicate value: {"name":"x"}"#],
        ),
        (
            json!({"spec": {"queue": "a", "sets": [{"size": 2}]}}),
            &["spec.sets[0].name: Required value", BLOCKED],
        ),
    ];
    for (object, expected) in cases {
        assert_eq!(said(&schema, object.clone(), None), expected, "{object}");
    }
}

const BLOCKED: &str = "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation";

#[test]
fn transitions_compare_with_the_old_object() {
    let schema = queue();
    let old = json!({"spec": {"queue": "a", "count": 1, "policy": "A", "sets": [{"name": "x", "size": 2}, {"name": "y", "size": 1}]}});
    let cases: Vec<(Value, &[&str])> = vec![
        (old.clone(), &[]),
        (json!({"spec": {"queue": "b"}}), &["spec: Invalid value: queue is immutable"]),
        (json!({"spec": {"queue": "a", "sets": [{"name": "y", "size": 3}, {"name": "x", "size": 2}]}}), &[]),
        (
            json!({"spec": {"queue": "a", "sets": [{"name": "x", "size": 1}]}}),
            &["spec.sets[0].size: Invalid value: 1: may only grow"],
        ),
        (json!({"spec": {"queue": "a", "sets": [{"name": "new", "size": 0}]}}), &[]),
    ];
    for (object, expected) in cases {
        assert_eq!(said(&schema, object.clone(), Some(old.clone())), expected, "{object}");
    }
}

#[test]
fn what_was_wrong_before_is_not_held_against_an_update() {
    let schema = queue();
    let old = json!({"spec": {"queue": "ABC", "count": 1, "policy": "A"}});
    let mut new = old.clone();
    new["spec"]["count"] = 2.into();
    assert_eq!(said(&schema, new, Some(old)), Vec::<String>::new());
}

#[test]
fn defaults_reach_into_lists() {
    let mut object = json!({"spec": {"queue": "a", "sets": [{"name": "x"}, {"name": "y", "size": 4}]}});
    queue().fill_defaults(&mut object);
    assert_eq!(
        object,
        json!({"spec": {"queue": "a", "count": 1, "policy": "A", "sets": [{"name": "x", "size": 1}, {"name": "y", "size": 4}]}})
    );
}

#[test]
fn broken_schemas_are_refused() {
    let said = |schema: Value| -> Vec<String> {
        Schema::of_custom(&schema)
            .unwrap_err()
            .iter()
            .map(|e| e.to_string().lines().next().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        said(json!({"type": "object", "properties": {"a": {}}})),
        ["properties[a].type: Required value: must not be empty for specified object fields"]
    );
    assert_eq!(said(json!({"properties": {}})), [r#"type: Invalid value: "": must be object at the root"#]);
    let rule = json!({"type": "object", "x-kubernetes-validations": [{"rule": "self.a >="}]});
    assert!(
        said(rule)[0].starts_with(
            r#"x-kubernetes-validations[0].rule: Invalid value: "self.a >=": compilation failed"#
        )
    );
    let pattern = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "("}}});
    assert!(said(pattern)[0].starts_with("properties[a].pattern: Invalid value"));
}

#[test]
fn built_in_objects_are_read_as_go_reads_them() {
    let schema = crate::builtin::schema("", "Pod").unwrap();
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "a", "creationTimestamp": null, "labels": {"a": "b"}, "nonsense": 1},
        "spec": {
            "nodeName": null,
            "containers": [{"name": "c", "image": "i", "foo": 1, "resources": {"requests": {"cpu": 1.5, "memory": "1024Mi", "example.com/gpu": 2}}}],
        },
        "status": {"startTime": "2026-01-01T00:00:00.5Z"},
    });
    assert_eq!(schema.settle(&mut pod).unwrap(), ["metadata.nonsense", "spec.containers[0].foo"]);
    assert_eq!(
        pod,
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "1500m", "memory": "1Gi", "example.com/gpu": "2"}}}]},
            "status": {"startTime": "2026-01-01T00:00:00Z"},
        })
    );
    let wrong = [
        (
            json!({"spec": {"containers": "x"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type []v1.Item",
        ),
        (
            json!({"spec": {"priority": "x"}}),
            "json: cannot unmarshal string into Go struct field PodSpec.spec.priority of type int32",
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            "json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels.a of type string",
        ),
        (
            json!({"spec": {"overhead": {"cpu": "1x"}}}),
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
        ),
    ];
    for (mut object, why) in wrong {
        assert_eq!(schema.settle(&mut object).unwrap_err(), why);
    }
}
