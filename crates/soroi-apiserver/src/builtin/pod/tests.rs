//! What `pod` promises, as tests.

use serde_json::json;

use super::qos;

#[test]
fn quality_of_service_follows_from_requests_and_limits() {
    let pod = |containers: serde_json::Value| json!({"spec": {"containers": containers}});
    let c = |requests: serde_json::Value, limits: serde_json::Value| json!({"resources": {"requests": requests, "limits": limits}});
    let full = json!({"cpu": "1", "memory": "1Gi"});
    let cases = [
        (pod(json!([{}])), "BestEffort"),
        (pod(json!([c(full.clone(), full.clone())])), "Guaranteed"),
        (pod(json!([c(json!({"cpu": "1000m", "memory": "1024Mi"}), full.clone())])), "Guaranteed"),
        (pod(json!([c(full.clone(), full.clone()), {}])), "Burstable"),
        (pod(json!([c(json!({"cpu": "1"}), json!({}))])), "Burstable"),
        (pod(json!([c(json!({"example.com/gpu": "1"}), json!({"example.com/gpu": "1"}))])), "BestEffort"),
        (pod(json!([c(json!({"cpu": "0"}), json!({"cpu": "0"}))])), "BestEffort"),
        (
            json!({"spec": {"resources": {"requests": full.clone(), "limits": full}, "containers": [{}]}}),
            "Guaranteed",
        ),
    ];
    for (pod, class) in cases {
        assert_eq!(qos::class(&pod), class, "{pod}");
    }
}
