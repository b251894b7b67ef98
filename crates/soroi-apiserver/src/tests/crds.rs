//! What `crds` promises, as tests.

use expect_test::expect;
use serde_json::{Value, json};

use super::{check, check_with, run};
use crate::Options;

/// A queue of jobs, with most of what a CRD can say.
pub(crate) fn queues() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "queues.example.com"},
        "spec": {
            "group": "example.com",
            "scope": "Namespaced",
            "names": {"plural": "queues", "singular": "queue", "kind": "Queue", "shortNames": ["q"], "categories": ["all"]},
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"},
                },
                "selectableFields": [{"jsonPath": ".status.admission.clusterQueue"}],
                "schema": {"openAPIV3Schema": {
                    "type": "object",
                    "properties": {
                        "spec": {
                            "type": "object",
                            "properties": {
                                "replicas": {"type": "integer", "default": 1, "minimum": 0},
                                "target": {"type": "string", "x-kubernetes-validations": [
                                    {"rule": "self == oldSelf", "message": "target is immutable"},
                                ]},
                                "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                            },
                            "x-kubernetes-validations": [
                                {"rule": "!has(self.target) || self.target != 'bad'", "message": "target may not be bad", "fieldPath": ".target", "reason": "FieldValueForbidden"},
                            ],
                        },
                        "status": {"type": "object", "properties": {
                            "replicas": {"type": "integer"},
                            "selector": {"type": "string"},
                            "admission": {"type": "object", "properties": {"clusterQueue": {"type": "string"}}},
                        }},
                    },
                }},
            }],
        },
    })
}

fn with_queues() -> Options {
    Options { crds: vec![queues()], ..Options::default() }
}

#[test]
fn a_definition_is_established_and_serves() {
    run(Options::default(), async |world| {
        let mut told = world.tell("GET queues").await;
        let (code, crd, _) = world.send("POST", "customresourcedefinitions", &queues().to_string()).await;
        assert_eq!(code, 201, "{crd}");
        told.push_str(
            &world
                .tell(
                    "
            GET customresourcedefinitions/queues.example.com | .status.conditions .status.storedVersions .spec.names
            GET queues
            POST queues {metadata: {name: a}}
            DELETE customresourcedefinitions/queues.example.com
            GET queues
            ",
                )
                .await,
        );
        let mut broken = queues();
        broken["spec"]["names"]["plural"] = "queuez".into();
        broken["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"] = "".into();
        let (code, refused, _) = world.send("POST", "customresourcedefinitions", &broken.to_string()).await;
        told.push_str(&format!("{code} {}\n", refused["message"].as_str().unwrap()));
        expect![[r#"
            GET queues
                404 NotFound the server could not find the requested resource
            GET customresourcedefinitions/queues.example.com | .status.conditions .status.storedVersions .spec.names
                200 CustomResourceDefinition queues.example.com [{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"no conflicts found","reason":"NoConflicts","status":"True","type":"NamesAccepted"},{"lastTransitionTime":"2026-01-01T00:00:00Z","message":"the initial names have been accepted","reason":"InitialNamesAccepted","status":"True","type":"Established"}] ["v1"] {"categories":["all"],"kind":"Queue","listKind":"QueueList","plural":"queues","shortNames":["q"],"singular":"queue"}
            GET queues
                200 QueueList []
            POST queues {metadata: {name: a}}
                201 Queue a
            DELETE customresourcedefinitions/queues.example.com
                200 Success
            GET queues
                404 NotFound the server could not find the requested resource
            422 CustomResourceDefinition.apiextensions.k8s.io "queues.example.com" is invalid: [metadata.name: Invalid value: "queues.example.com": must be spec.names.plural+"."+spec.group, spec.versions[0].schema.openAPIV3Schema.properties[spec].type: Required value: must not be empty for specified object fields]
        "#]].assert_eq(&told);
    });
}

#[test]
fn custom_objects_follow_their_schema() {
    check_with(
        with_queues(),
        "
        POST queues {apiVersion: example.com/v1, kind: Queue, metadata: {name: a}, spec: {target: x, extra: {any: [1]}, foo: 1}, status: {replicas: 3}} | .spec .status .metadata.generation
        POST queues?fieldValidation=Strict {metadata: {name: b, colour: red}, spec: {foo: 1}}
        POST queues {metadata: {name: b}, spec: {target: bad}}
        POST queues {metadata: {name: b}, spec: {replicas: many}}
        POST queues {metadata: {name: b}, spec: {replicas: -1}} | .details
        POST queues {apiVersion: example.com/v2, kind: Queue, metadata: {name: b}}
        POST queues {metadata: {name: b, labels: {a: 1}}}
        PUT queues/a {metadata: {name: a}, spec: {target: x}}
        PATCH:merge queues/a {spec: {target: other}}
        PATCH:merge queues/a {spec: {replicas: 2}, status: {replicas: 9}} | .spec .status .metadata.generation
        PATCH:merge queues/a {metadata: {annotations: {b: c}}} | .metadata.generation
        PATCH:strategic queues/a {spec: {replicas: 2}}
        PATCH:merge queues/a/status {status: {replicas: 2, selector: a=b, admission: {clusterQueue: main}}, spec: {replicas: 7}, metadata: {labels: {never: seen}}} | .status .spec.replicas .metadata.labels .metadata.generation
        GET queues/a/scale | .spec .status
        PATCH:merge queues/a/scale {spec: {replicas: 5}} | .spec .metadata.resourceVersion
        PATCH:merge queues/a/scale {spec: {replicas: -5}}
        PUT queues/a/scale {metadata: {name: a, resourceVersion: '1'}, spec: {replicas: 1}}
        GET queues?fieldSelector=status.admission.clusterQueue%3Dmain
        GET queues?fieldSelector=status.admission.clusterQueue%3Dother
        GET queues?fieldSelector=spec.target%3Dx
        PATCH:apply queues/b?fieldManager=m {apiVersion: example.com/v1, kind: Queue, metadata: {name: b}, spec: {replicas: 2}} | .metadata.managedFields.0.fieldsV1
        PATCH:apply queues/b/status?fieldManager=m {apiVersion: example.com/v1, kind: Queue, metadata: {name: b}, status: {replicas: 2}} | .status .metadata.managedFields.1.subresource
        ",
        expect![[r#"
            POST queues {apiVersion: example.com/v1, kind: Queue, metadata: {name: a}, spec: {target: x, extra: {any: [1]}, foo: 1}, status: {replicas: 3}} | .spec .status .metadata.generation
                201 Queue a {"extra":{"any":[1]},"replicas":1,"target":"x"} null 1
                299 - "unknown field \"spec.foo\""
            POST queues?fieldValidation=Strict {metadata: {name: b, colour: red}, spec: {foo: 1}}
                400 BadRequest Queue in version "v1" cannot be handled as a Queue: strict decoding error: unknown field "metadata.colour", unknown field "spec.foo"
            POST queues {metadata: {name: b}, spec: {target: bad}}
                422 Invalid Queue.example.com "b" is invalid: spec.target: Forbidden: target may not be bad
            POST queues {metadata: {name: b}, spec: {replicas: many}}
                422 Invalid Queue.example.com "b" is invalid: [spec.replicas: Invalid value: "string": spec.replicas in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]
            POST queues {metadata: {name: b}, spec: {replicas: -1}} | .details
                422 Invalid Queue.example.com "b" is invalid: spec.replicas: Invalid value: -1: spec.replicas in body should be greater than or equal to 0 {"causes":[{"field":"spec.replicas","message":"Invalid value: -1: spec.replicas in body should be greater than or equal to 0","reason":"FieldValueInvalid"}],"group":"example.com","kind":"Queue","name":"b"}
            POST queues {apiVersion: example.com/v2, kind: Queue, metadata: {name: b}}
                400 BadRequest the API version in the data (example.com/v2) does not match the expected API version (example.com/v1)
            POST queues {metadata: {name: b, labels: {a: 1}}}
                400 BadRequest Queue in version "v1" cannot be handled as a Queue: json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels.a of type string
            PUT queues/a {metadata: {name: a}, spec: {target: x}}
                422 Invalid Queue.example.com "a" is invalid: metadata.resourceVersion: Invalid value: 0x0: must be specified for an update
            PATCH:merge queues/a {spec: {target: other}}
                422 Invalid Queue.example.com "a" is invalid: spec.target: Invalid value: "other": target is immutable
            PATCH:merge queues/a {spec: {replicas: 2}, status: {replicas: 9}} | .spec .status .metadata.generation
                200 Queue a {"extra":{"any":[1]},"replicas":2,"target":"x"} null 2
            PATCH:merge queues/a {metadata: {annotations: {b: c}}} | .metadata.generation
                200 Queue a 2
            PATCH:strategic queues/a {spec: {replicas: 2}}
                415 UnsupportedMediaType the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml
            PATCH:merge queues/a/status {status: {replicas: 2, selector: a=b, admission: {clusterQueue: main}}, spec: {replicas: 7}, metadata: {labels: {never: seen}}} | .status .spec.replicas .metadata.labels .metadata.generation
                200 Queue a {"admission":{"clusterQueue":"main"},"replicas":2,"selector":"a=b"} 2 null 2
            GET queues/a/scale | .spec .status
                200 Scale a {"replicas":2} {"replicas":2,"selector":"a=b"}
            PATCH:merge queues/a/scale {spec: {replicas: 5}} | .spec .metadata.resourceVersion
                200 Scale a {"replicas":5} "13"
            PATCH:merge queues/a/scale {spec: {replicas: -5}}
                422 Invalid Scale.autoscaling "a" is invalid: spec.replicas: Invalid value: -5: must be greater than or equal to 0
            PUT queues/a/scale {metadata: {name: a, resourceVersion: '1'}, spec: {replicas: 1}}
                409 Conflict Operation cannot be fulfilled on queues.example.com "a": the object has been modified; please apply your changes to the latest version and try again
            GET queues?fieldSelector=status.admission.clusterQueue%3Dmain
                200 QueueList [a]
            GET queues?fieldSelector=status.admission.clusterQueue%3Dother
                200 QueueList []
            GET queues?fieldSelector=spec.target%3Dx
                400 BadRequest field label not supported: spec.target
            PATCH:apply queues/b?fieldManager=m {apiVersion: example.com/v1, kind: Queue, metadata: {name: b}, spec: {replicas: 2}} | .metadata.managedFields.0.fieldsV1
                201 Queue b {"f:spec":{"f:replicas":{}}}
            PATCH:apply queues/b/status?fieldManager=m {apiVersion: example.com/v1, kind: Queue, metadata: {name: b}, status: {replicas: 2}} | .status .metadata.managedFields.1.subresource
                200 Queue b {"replicas":2} "status"
        "#]],
    );
}

#[test]
fn deployments_scale() {
    check(
        "
        POST deployments {metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}} | .spec.replicas
        GET deployments/d/scale | .spec .status
        PATCH:merge deployments/d/scale {spec: {replicas: 3}} | .spec
        GET deployments/d | .spec.replicas .metadata.generation
        GET jobs/x/scale
        ",
        expect![[r#"
            POST deployments {metadata: {name: d}, spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}} | .spec.replicas
                201 Deployment d 1
                299 - "nobody makes pods for a Deployment in this cluster, it is only stored: use a Job, or pods"
            GET deployments/d/scale | .spec .status
                200 Scale d {"replicas":1} {"replicas":0,"selector":"a=b"}
            PATCH:merge deployments/d/scale {spec: {replicas: 3}} | .spec
                200 Scale d {"replicas":3}
            GET deployments/d | .spec.replicas .metadata.generation
                200 Deployment d 3 2
            GET jobs/x/scale
                404 NotFound the server could not find the requested resource
        "#]],
    );
}
