//! Requests that nobody should send: any path, query, header and body. Nothing panics or hangs, every
//! answer is one, and what is kept stays within bounds.

use http::Request;
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};
use soroi_clock::Clock;
use tower::Service as _;

use crate::{ApiServer, Options};

/// Parts of paths: what is served, and what is not.
fn segment() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "api", "apis", "v1", "batch", "apps", "namespaces", "default", "pods", "jobs", "nodes", "deployments",
            "configmaps", "a", "b", "status", "scale", "binding", "eviction", "resize", "log", "finalize", "openapi",
            "v3", "authorization.k8s.io", "selfsubjectaccessreviews", "events.k8s.io", "events",
        ]).prop_map(str::to_owned),
        1 => "[a-zA-Z0-9%._-]{0,6}",
    ]
}

/// Paths, most of them to something.
fn path() -> impl Strategy<Value = String> {
    let near = prop::sample::select(vec![
        "/api/v1/namespaces/default/pods",
        "/api/v1/namespaces/default/pods/a",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/namespaces/default/pods/a/status",
        "/api/v1/namespaces/default/pods/a/binding",
        "/api/v1/nodes",
        "/api/v1/namespaces/default/pods/a/eviction",
        "/api/v1/namespaces/default/pods/a/resize",
        "/api/v1/nodes/a",
        "/apis/batch/v1/namespaces/default/jobs",
        "/apis/batch/v1/namespaces/default/jobs/a",
        "/api/v1/namespaces/a",
        "/apis/apps/v1/namespaces/default/deployments/a/scale",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ])
    .prop_map(str::to_owned);
    let far = prop::collection::vec(segment(), 0..7).prop_map(|parts| format!("/{}", parts.join("/")));
    prop_oneof![2 => near, 1 => far]
}

fn query() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "limit",
        "continue",
        "resourceVersion",
        "resourceVersionMatch",
        "labelSelector",
        "fieldSelector",
        "dryRun",
        "force",
        "fieldManager",
        "fieldValidation",
        "includeObject",
        "propagationPolicy",
        "gracePeriodSeconds",
    ]);
    let value = prop_oneof![
        prop::sample::select(vec![
            "",
            "1",
            "0",
            "All",
            "Strict",
            "true",
            "Exact",
            "a=b",
            "metadata.name=a",
            "Object",
            "Orphan"
        ])
        .prop_map(str::to_owned),
        "[a-z0-9%=,()!.-]{0,8}",
    ];
    prop::collection::vec((key, value), 0..4)
        .prop_map(|pairs| pairs.iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("&"))
}

/// JSON of any shape, with the keys that the server looks at.
fn value() -> impl Strategy<Value = Value> {
    let key = prop_oneof![
        8 => prop::sample::select(vec![
            "metadata", "spec", "status", "kind", "apiVersion", "name", "namespace", "labels", "annotations", "finalizers",
            "containers", "template", "resources", "limits", "cpu", "conditions", "type", "target", "selector", "replicas",
            "op", "path", "value", "from", "$patch", "$retainKeys", "$setElementOrder/containers", "managedFields", "data",
            "generateName", "uid", "resourceVersion", "ownerReferences", "parallelism", "suspend", "versions", "names",
        ]).prop_map(str::to_owned),
        1 => "[a-z/$~]{0,4}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        prop::sample::select(vec![
            "a",
            "",
            "add",
            "replace",
            "remove",
            "copy",
            "move",
            "merge",
            "delete",
            "/metadata/name",
            "/spec",
            "1e9999",
            "-1",
            "9Ei"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key.clone(), inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    // Most bodies name an object, so that more than the first check is reached.
    let named = value().prop_map(|mut value| {
        if value.is_object() {
            value["metadata"] = json!({ "name": "a" });
        }
        value.to_string().into_bytes()
    });
    prop_oneof![
        3 => named,
        2 => value().prop_map(|value| value.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..60),
        1 => "[a-z:{}\\[\\]&*! \n-]{0,40}".prop_map(String::into_bytes),
    ]
}

fn request() -> impl Strategy<Value = (&'static str, String, &'static str, Vec<u8>)> {
    let method =
        prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "OPTIONS"]);
    let media = prop::sample::select(vec![
        "application/json",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/yaml",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "",
    ]);
    (method, path(), query(), media, body())
        .prop_map(|(method, path, query, media, body)| (method, format!("{path}?{query}"), media, body))
}

/// A server with a few objects to go for.
async fn server() -> ApiServer {
    let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
    let server = ApiServer::new(clock, Options { history: 20, ..Options::default() });
    let pod = json!({"metadata": {"name": "a", "labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let mut of_job = template.clone();
    of_job["spec"]["restartPolicy"] = "Never".into();
    for (path, object) in [
        ("/api/v1/namespaces/default/pods", pod),
        ("/api/v1/namespaces/default/configmaps", json!({"metadata": {"name": "a"}, "data": {"a": "b"}})),
        ("/api/v1/nodes", json!({"metadata": {"name": "a"}})),
        (
            "/apis/batch/v1/namespaces/default/jobs",
            json!({"metadata": {"name": "a"}, "spec": {"template": of_job}}),
        ),
        (
            "/apis/apps/v1/namespaces/default/deployments",
            json!({"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}),
        ),
    ] {
        let code = send(&server, "POST", path, "application/json", object.to_string().into_bytes()).await;
        assert_eq!(code, Some(201), "{path}");
    }
    server
}

/// The answer's code; none for what HTTP itself does not let through.
async fn send(server: &ApiServer, method: &str, path: &str, media: &str, body: Vec<u8>) -> Option<u16> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", media)
        .body(Full::<bytes::Bytes>::from(body))
        .ok()?;
    let response = server.service().call(request).await.unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    if code >= 400 {
        let status: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((&status["kind"], &status["code"]), (&json!("Status"), &json!(code)), "{method} {path}");
        assert_ne!(code, 502, "{method} {path}");
    }
    Some(code)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn no_request_breaks_the_server(requests in prop::collection::vec(request(), 1..12)) {
        soroi_clock::simulated_runtime().unwrap().block_on(async {
            let server = server().await;
            for (method, path, media, body) in requests {
                send(&server, method, &path, media, body).await;
            }
            let code = send(&server, "GET", "/api/v1/namespaces", "", Vec::new()).await;
            assert_eq!(code, Some(200), "it still answers");
        });
    }
}
