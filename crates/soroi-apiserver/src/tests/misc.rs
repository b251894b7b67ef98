//! What `misc` promises, as tests.

use expect_test::expect;

use super::{check, check_with, run};
use crate::Options;

#[test]
fn nodes_begin_tainted() {
    check(
        "
        POST nodes {metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 4096Mi}}} | .spec.taints .status
        POST nodes {metadata: {name: m}, spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: a, effect: Never}, {key: b, effect: NoExecute}, {key: b, effect: NoExecute}]}}
        PATCH:strategic nodes/n1 {spec: {unschedulable: true, taints: null}} | .spec
        GET nodes?fieldSelector=spec.unschedulable%3Dtrue
        GET nodes?fieldSelector=spec.unschedulable%3Dfalse
        PATCH:strategic nodes/n1/status {status: {conditions: [{type: Ready, status: 'True'}]}, metadata: {labels: {a: b}}} | .status.conditions .metadata.labels
        PUT leases/l {metadata: {name: l}}
        POST leases {metadata: {name: l}, spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.5Z'}} | .spec
        ",
        expect![[r#"
            POST nodes {metadata: {name: n1}, status: {capacity: {cpu: 4, memory: 4096Mi}}} | .spec.taints .status
                201 Node n1 [{"effect":"NoSchedule","key":"node.kubernetes.io/not-ready"}] {"allocatable":{"cpu":"4","memory":"4Gi"},"capacity":{"cpu":"4","memory":"4Gi"}}
            POST nodes {metadata: {name: m}, spec: {taints: [{key: node.kubernetes.io/not-ready, effect: NoSchedule}, {key: a, effect: Never}, {key: b, effect: NoExecute}, {key: b, effect: NoExecute}]}}
                422 Invalid Node "m" is invalid: [spec.taints[1].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute", spec.taints[3]: Duplicate value: {"effect":"NoExecute","key":"b"}]
            PATCH:strategic nodes/n1 {spec: {unschedulable: true, taints: null}} | .spec
                200 Node n1 {"unschedulable":true}
            GET nodes?fieldSelector=spec.unschedulable%3Dtrue
                200 NodeList [n1]
            GET nodes?fieldSelector=spec.unschedulable%3Dfalse
                200 NodeList []
            PATCH:strategic nodes/n1/status {status: {conditions: [{type: Ready, status: 'True'}]}, metadata: {labels: {a: b}}} | .status.conditions .metadata.labels
                200 Node n1 [{"status":"True","type":"Ready"}] {"a":"b"}
            PUT leases/l {metadata: {name: l}}
                404 NotFound leases.coordination.k8s.io "l" not found
            POST leases {metadata: {name: l}, spec: {holderIdentity: me, leaseDurationSeconds: 15, renewTime: '2026-01-01T00:00:00.5Z'}} | .spec
                201 Lease l {"holderIdentity":"me","leaseDurationSeconds":15,"renewTime":"2026-01-01T00:00:00.500000Z"}
        "#]],
    );
}

#[test]
fn the_server_describes_itself() {
    check(
        "
        GET /version | .minor .gitVersion
        GET /readyz
        GET /healthz
        GET /api | .versions
        GET /apis/batch | .versions
        GET /apis/batch/v1 | .resources.0.name .resources.0.kind .resources.0.verbs .resources.1.name
        GET /apis/nothing
        GET /api/v1 | .resources.0.name
        POST /api {}
        PUT pods {}
        DELETE /api/v1/pods
        GET pods/a/log
        GET /api/v1/pods/a
        GET /
        ",
        expect![[r#"
            GET /version | .minor .gitVersion
                200 {"buildDate":"1970-01-01T00:00:00Z","compiler":"rustc","gitCommit":"","gitTreeState":"clean","gitVersion":"v1.36.1+soroi-0.1.0","goVersion":"","major":"1","minor":"36","platform":"linux/amd64"} "36" "v1.36.1+soroi-0.1.0"
            GET /readyz
                200 "ok"
            GET /healthz
                200 "ok"
            GET /api | .versions
                200 APIVersions ["v1"]
            GET /apis/batch | .versions
                200 APIGroup [{"groupVersion":"batch/v1","version":"v1"}]
            GET /apis/batch/v1 | .resources.0.name .resources.0.kind .resources.0.verbs .resources.1.name
                200 APIResourceList "jobs" "Job" ["create","delete","deletecollection","get","list","patch","update","watch"] "jobs/status"
            GET /apis/nothing
                404 NotFound the server could not find the requested resource
            GET /api/v1 | .resources.0.name
                200 APIResourceList "configmaps"
            POST /api {}
                404 NotFound the server could not find the requested resource
            PUT pods {}
                405 MethodNotAllowed the server does not allow this method on the requested resource
            DELETE /api/v1/pods
                405 MethodNotAllowed the server does not allow this method on the requested resource
            GET pods/a/log
                501 NotImplemented pods of this cluster are simulated, no process runs in them, so there is no log: what they do is in their status (kubectl describe pod)
            GET /api/v1/pods/a
                404 NotFound the server could not find the requested resource
            GET /
                404 NotFound the server could not find the requested resource
        "#]],
    );
}

#[test]
fn bodies_are_bounded_and_must_be_understood() {
    run(Options { body_bytes_max: 100, ..Options::default() }, async |world| {
        let long = format!("{{metadata: {{name: a}}, data: {{k: {}}}}}", "v".repeat(200));
        let (code, value, _) = world.send("POST", "configmaps", &long).await;
        assert_eq!((code, value["reason"].as_str()), (413, Some("RequestEntityTooLarge")));
        let cbor = http::Request::post("/api/v1/namespaces")
            .header("content-type", "application/cbor")
            .body(kube::client::Body::from(vec![1, 2, 3]))
            .unwrap();
        assert_eq!(world.client.send(cbor).await.unwrap().status().as_u16(), 415);
        let yaml = http::Request::post("/api/v1/namespaces/default/configmaps")
            .header("content-type", "application/yaml")
            .body(kube::client::Body::from(b"metadata:\n  name: from-yaml\n".to_vec()))
            .unwrap();
        assert_eq!(world.client.send(yaml).await.unwrap().status().as_u16(), 201);
    });
}

#[test]
fn equal_seeds_give_equal_servers() {
    let story = "
        POST configmaps {metadata: {generateName: a-}} | .metadata.name .metadata.uid
        POST configmaps {metadata: {generateName: a-}} | .metadata.name .metadata.uid
    ";
    let tell = |seed| {
        let mut told = String::new();
        run(Options { seed, ..Options::default() }, async |world| told = world.tell(story).await);
        told
    };
    assert_eq!(tell(7), tell(7));
    assert_ne!(tell(7), tell(8));
}

#[test]
fn a_crd_that_the_api_refuses_is_left_out() {
    let broken = serde_json::json!({"metadata": {"name": "x"}, "spec": {}});
    check_with(
        Options { crds: vec![broken], ..Options::default() },
        "GET customresourcedefinitions",
        expect![[r#"
            GET customresourcedefinitions
                200 CustomResourceDefinitionList []
        "#]],
    );
}
