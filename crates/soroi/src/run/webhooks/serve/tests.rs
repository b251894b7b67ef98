//! Requests as they come over the wire, within bounds and beyond.

use axum::http::Request;
use expect_test::expect;
use serde_json::json;
use tower::ServiceExt as _;

use super::*;

fn cluster() -> soroi_embedded::Embedded {
    soroi_embedded::Embedded::new(Clock::real(), soroi_embedded::Options::default())
}

async fn post_to(path: &str, body: impl Into<Body>) -> String {
    post_by(cluster().client(), path, body).await
}

async fn post_by(client: kube::Client, path: &str, body: impl Into<Body>) -> String {
    let router = router(client, Clock::real(), Arc::new(Metrics::default()));
    let request = Request::post(path).body(body.into()).unwrap();
    let response = router.oneshot(request).await.unwrap();
    let status = response.status();
    let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    format!("{} {}\n", status.as_u16(), String::from_utf8(body.to_vec()).unwrap().trim())
}

#[tokio::test]
async fn what_is_asked_is_answered() {
    let review = json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "u", "operation": "CREATE", "kind": { "group": "", "version": "v1", "kind": "Pod" },
            "object": { "metadata": { "labels": { "soroi.dev/gang": "g" } }, "spec": {} },
        },
    });
    let conversion = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
        "request": { "uid": "u", "desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": [] },
    });
    let mut told = post_to("/default", review.to_string()).await;
    told += &post_to("/validate", review.to_string()).await;
    told += &post_to("/convert", conversion.to_string()).await;
    told += &post_to("/convert", review.to_string()).await;
    told += &post_to("/validate", "{").await;
    told += &post_to("/elsewhere", "").await;
    expect![[r#"
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL3NwZWMvc2NoZWR1bGVyTmFtZSIsInZhbHVlIjoic29yb2kifV0=","patchType":"JSONPatch","uid":"u"}}
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u"}}
        200 {"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview","response":{"convertedObjects":[],"result":{"status":"Success"},"uid":"u"}}
        400 the body is no apiextensions.k8s.io/v1 ConversionReview
        400 the body is no JSON
        404 
    "#]].assert_eq(&told);
}

#[tokio::test]
async fn a_body_has_its_bounds() {
    let long = "x".repeat(ADMISSION_BYTES_MAX + 1);
    let mut told = post_to("/validate", long.clone()).await;
    // The same is not too long for a list of objects.
    told += &post_to("/convert", long).await;
    expect![[r#"
        413 the body is too large or broken off
        400 the body is no JSON
    "#]]
    .assert_eq(&told);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let never = Body::from_stream(futures::stream::pending::<Result<Vec<u8>, std::io::Error>>());
    expect![[r#"
        408 the body took too long
    "#]]
    .assert_eq(&post_to("/default", never).await);
}

#[tokio::test]
async fn whether_a_namespace_has_a_default_queue_is_looked_up() {
    let cluster = cluster();
    let path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues";
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": { "name": "default" }, "spec": { "clusterQueue": "main" },
    });
    apply::send(&cluster.client(), "POST", path, "application/json", &queue).await.unwrap();
    let review = |namespace: &str| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "u", "operation": "CREATE", "namespace": namespace,
                "kind": { "group": "batch", "version": "v1", "kind": "Job" },
                "object": { "metadata": { "labels": {} }, "spec": { "suspend": true } },
            },
        })
        .to_string()
    };
    let mut told = String::new();
    for namespace in ["default", "kube-system", "../../nodes", ""] {
        told += &post_by(cluster.client(), "/default", review(namespace)).await;
    }
    expect![[r#"
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"patch":"W3sib3AiOiJhZGQiLCJwYXRoIjoiL21ldGFkYXRhL2xhYmVscy9rdWV1ZS54LWs4cy5pb34xcXVldWUtbmFtZSIsInZhbHVlIjoiZGVmYXVsdCJ9XQ==","patchType":"JSONPatch","uid":"u"}}
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u"}}
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u"}}
        200 {"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"allowed":true,"uid":"u"}}
    "#]].assert_eq(&told);
    let broken = kube::Client::new(
        tower::service_fn(|_: Request<kube::client::Body>| async {
            Err::<axum::http::Response<Body>, _>(std::io::Error::other("no API server"))
        }),
        "default",
    );
    expect![[r#"
        503 the default queue could not be looked up
    "#]]
    .assert_eq(&post_by(broken, "/default", review("default")).await);
}
