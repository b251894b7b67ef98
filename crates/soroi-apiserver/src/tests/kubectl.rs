//! What kubectl asks for beside objects: tables, discovery, schemas, rights.

use expect_test::expect;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::Request;

use super::{check, run};
use crate::Options;

#[test]
fn lists_and_objects_come_as_tables() {
    check(
        "
        POST configmaps {metadata: {name: a, labels: {x: y}}, data: {k: v}}
        GET:table configmaps/a | .columnDefinitions.0 .rows.0.cells .rows.0.object .metadata
        GET:table configmaps?includeObject=None | .rows
        GET:table configmaps?includeObject=Object | .rows.0.object.data
        GET:table configmaps?includeObject=All
        GET:table configmaps?labelSelector=x%3Dz | .rows .metadata
        GET:table configmaps/nothing
        GET:metadata configmaps/a | .metadata.name .data
        GET:table events.events.k8s.io
        ",
        expect![[r#"
            POST configmaps {metadata: {name: a, labels: {x: y}}, data: {k: v}}
                400 BadRequest ConfigMap in version "v1" cannot be handled as a ConfigMap: json: cannot unmarshal bool into Go struct field ObjectMeta.metadata.labels.x of type string
            GET:table configmaps/a | .columnDefinitions.0 .rows.0.cells .rows.0.object .metadata
                404 NotFound configmaps "a" not found null null null {}
            GET:table configmaps?includeObject=None | .rows
                200 Table []
            GET:table configmaps?includeObject=Object | .rows.0.object.data
                200 Table null
            GET:table configmaps?includeObject=All
                400 BadRequest Unable to convert to Table as requested: includeObject: Invalid value: "All": must be 'Metadata', 'Object', 'None', or empty
            GET:table configmaps?labelSelector=x%3Dz | .rows .metadata
                200 Table [] {"resourceVersion":"7"}
            GET:table configmaps/nothing
                404 NotFound configmaps "nothing" not found
            GET:metadata configmaps/a | .metadata.name .data
                404 NotFound configmaps "a" not found null null
            GET:table events.events.k8s.io
                404 NotFound the server could not find the requested resource
        "#]],
    );
}

#[test]
fn a_watch_of_tables_shows_rows() {
    run(Options::default(), async |world| {
        world.send("POST", "configmaps", "{metadata: {name: a}, data: {k: v}}").await;
        let request = Request::get(
            "/api/v1/namespaces/default/configmaps?watch=1&resourceVersion=0&includeObject=None",
        )
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())
        .unwrap();
        let mut lines = world.client.request_stream(request).await.unwrap().lines();
        world.send("DELETE", "configmaps/a", "").await;
        let mut seen = String::new();
        for _ in 0..2 {
            let line: serde_json::Value =
                serde_json::from_str(&lines.next().await.unwrap().unwrap()).unwrap();
            seen.push_str(&format!(
                "{} {} {}\n",
                line["type"], line["object"]["kind"], line["object"]["rows"]
            ));
        }
        expect![[r#"
            "ADDED" "Table" [{"cells":["a",1,"0s"],"object":null}]
            "DELETED" "Table" [{"cells":["a",1,"0s"],"object":null}]
        "#]]
        .assert_eq(&seen);
    });
}

#[test]
fn discovery_comes_whole_or_in_parts() {
    check(
        "
        GET:aggregated /api | .items.0.versions.0.version .items.0.versions.0.resources.5
        GET:aggregated /apis | .items.0.metadata.name .items.2.versions.0.resources.0
        GET /api | .versions
        GET /openapi/v3/apis/nothing/v1
        GET /openapi/v2
        ",
        expect![[r#"
            GET:aggregated /api | .items.0.versions.0.version .items.0.versions.0.resources.5
                200 APIGroupDiscoveryList [?] "v1" {"resource":"persistentvolumeclaims","responseKind":{"group":"","kind":"PersistentVolumeClaim","version":"v1"},"scope":"Namespaced","shortNames":["pvc"],"singularResource":"persistentvolumeclaim","subresources":[{"responseKind":{"group":"","kind":"PersistentVolumeClaim","version":"v1"},"subresource":"status","verbs":["get","patch","update"]}],"verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}
            GET:aggregated /apis | .items.0.metadata.name .items.2.versions.0.resources.0
                200 APIGroupDiscoveryList [apiextensions.k8s.io apps batch coordination.k8s.io events.k8s.io node.k8s.io policy rbac.authorization.k8s.io scheduling.k8s.io storage.k8s.io] "apiextensions.k8s.io" {"categories":["all"],"resource":"jobs","responseKind":{"group":"batch","kind":"Job","version":"v1"},"scope":"Namespaced","singularResource":"job","subresources":[{"responseKind":{"group":"batch","kind":"Job","version":"v1"},"subresource":"status","verbs":["get","patch","update"]}],"verbs":["create","delete","deletecollection","get","list","patch","update","watch"]}
            GET /api | .versions
                200 APIVersions ["v1"]
            GET /openapi/v3/apis/nothing/v1
                404 NotFound the server could not find the requested resource
            GET /openapi/v2
                404 NotFound the server could not find the requested resource
        "#]],
    );
}

#[test]
fn schemas_lead_from_one_to_the_next() {
    run(Options::default(), async |world| {
        let (_, index, _) = world.send("GET", "/openapi/v3", "").await;
        let url = index["paths"]["apis/batch/v1"]["serverRelativeURL"].as_str().unwrap();
        let (code, document, _) = world.send("GET", url, "").await;
        assert_eq!(code, 200);
        let job = &document["components"]["schemas"]["io.k8s.api.batch.v1.Job"];
        expect![[r##"{"allOf":[{"$ref":"#/components/schemas/io.k8s.api.batch.v1.JobSpec"}],"description":"Specification of the desired behavior of a job. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#spec-and-status"} [{"group":"batch","kind":"Job","version":"v1"}]"##]]
            .assert_eq(&format!("{} {}", job["properties"]["spec"], job["x-kubernetes-group-version-kind"]));
        assert!(document["components"]["schemas"]["io.k8s.api.batch.v1.JobSpec"].is_object());
        let patch = &document["paths"]["/apis/batch/v1/namespaces/{namespace}/jobs/{name}"]["patch"];
        assert_eq!(patch["x-kubernetes-group-version-kind"]["kind"], "Job");
        let parameters = patch["parameters"].as_array().unwrap();
        assert!(parameters.iter().any(|parameter| parameter["name"] == "fieldValidation"));
        let references: Vec<&str> = references(&document);
        let dangling = |name: &&&str| document["components"]["schemas"].get(**name).is_none();
        assert_eq!(references.iter().find(dangling), None, "every reference leads somewhere");
    });
}

/// The names that a document refers to.
fn references(value: &serde_json::Value) -> Vec<&str> {
    match value {
        serde_json::Value::Object(fields) => {
            let own = fields.get("$ref").and_then(|v| v.as_str());
            let own = own.map(|r| r.strip_prefix("#/components/schemas/").expect("a component"));
            own.into_iter().chain(fields.values().flat_map(references)).collect()
        }
        serde_json::Value::Array(items) => items.iter().flat_map(references).collect(),
        _ => Vec::new(),
    }
}

#[test]
fn questions_about_rights_are_answered_with_yes() {
    check(
        "
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {spec: {resourceAttributes: {verb: create, resource: pods}}} | .status .spec
        POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews {spec: {namespace: default}} | .status
        POST /apis/authentication.k8s.io/v1/selfsubjectreviews {} | .status
        POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {kind: Pod}
        GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews
        POST /apis/authorization.k8s.io/v1/nothings {}
        ",
        expect![[r#"
            POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {spec: {resourceAttributes: {verb: create, resource: pods}}} | .status .spec
                201 SelfSubjectAccessReview {"allowed":true,"reason":"everybody who reaches this server may do everything"} {"resourceAttributes":{"resource":"pods","verb":"create"}}
            POST /apis/authorization.k8s.io/v1/selfsubjectrulesreviews {spec: {namespace: default}} | .status
                201 SelfSubjectRulesReview {"incomplete":false,"nonResourceRules":[{"nonResourceURLs":["*"],"verbs":["*"]}],"resourceRules":[{"apiGroups":["*"],"resources":["*"],"verbs":["*"]}]}
            POST /apis/authentication.k8s.io/v1/selfsubjectreviews {} | .status
                201 SelfSubjectReview {"userInfo":{"groups":["system:masters","system:authenticated"],"username":"kubernetes-admin"}}
            POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews {kind: Pod}
                400 BadRequest the body is no SelfSubjectAccessReview
            GET /apis/authorization.k8s.io/v1/selfsubjectaccessreviews
                405 MethodNotAllowed the server does not allow this method on the requested resource
            POST /apis/authorization.k8s.io/v1/nothings {}
                404 NotFound the server could not find the requested resource
        "#]],
    );
}

#[test]
fn what_needs_a_process_is_refused() {
    check(
        "
        POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
        GET pods/a/log
        POST pods/a/exec {}
        ",
        expect![[r#"
            POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}}
                201 Pod a
            GET pods/a/log
                501 NotImplemented pods of this cluster are simulated, no process runs in them, so there is no log: what they do is in their status (kubectl describe pod)
            POST pods/a/exec {}
                501 NotImplemented pods of this cluster are simulated, no process runs in them, so there is no exec: what they do is in their status (kubectl describe pod)
        "#]],
    );
}
