//! Reviews as the API server sends them.

use expect_test::expect;

use super::*;

fn request(operation: &str, kind: &Value, object: &Value, old: &Value) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "705ab4f5", "operation": operation, "kind": kind, "name": "train",
            "namespace": "default", "object": object, "oldObject": old,
            "userInfo": { "username": "someone" },
        },
    })
}

fn job() -> (Value, Value) {
    let kind = json!({ "group": "batch", "version": "v1", "kind": "Job" });
    let labels = json!({ "kueue.x-k8s.io/queue-name": "team-a" });
    (kind, json!({ "metadata": { "name": "train", "labels": labels }, "spec": { "parallelism": 2 } }))
}

#[test]
fn what_a_job_lacks_is_a_patch() {
    let (kind, job) = job();
    let answer = admission(Step::Default, &request("CREATE", &kind, &job, &Value::Null), false).unwrap();
    assert_eq!(answer["response"]["uid"], "705ab4f5");
    assert_eq!(answer["response"]["patchType"], "JSONPatch");
    let ByteString(patch) = serde_json::from_value(answer["response"]["patch"].clone()).unwrap();
    expect![[r#"[{"op":"add","path":"/spec/suspend","value":true}]"#]]
        .assert_eq(&String::from_utf8(patch).unwrap());
    let unlabelled = json!({ "metadata": {}, "spec": {} });
    let answer =
        admission(Step::Default, &request("CREATE", &kind, &unlabelled, &Value::Null), false).unwrap();
    assert_eq!(answer["response"], json!({ "uid": "705ab4f5", "allowed": true }));
}

#[test]
fn a_refusal_names_the_field() {
    let (kind, old) = job();
    let mut new = old.clone();
    new["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = "other".into();
    let answer = admission(Step::Validate, &request("UPDATE", &kind, &new, &old), false).unwrap();
    expect![[r#"
        {
          "allowed": false,
          "status": {
            "code": 422,
            "details": {
              "causes": [
                {
                  "field": "metadata.labels[kueue.x-k8s.io/queue-name]",
                  "message": "Forbidden: is immutable while the job is not suspended",
                  "reason": "FieldValueForbidden"
                }
              ]
            },
            "message": "Job.batch \"train\" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable while the job is not suspended",
            "reason": "Invalid"
          },
          "uid": "705ab4f5"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&answer["response"]).unwrap());
}

#[test]
fn what_is_no_review_is_not_answered() {
    for body in [
        json!(null),
        json!([]),
        json!({ "apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview" }),
    ] {
        admission(Step::Default, &body, false).unwrap_err();
        conversion(&body).unwrap_err();
    }
    let (kind, job) = job();
    admission(Step::Validate, &request("CONNECT", &kind, &job, &Value::Null), false).unwrap_err();
    admission(Step::Validate, &request("CREATE", &json!({}), &job, &Value::Null), false).unwrap_err();
    conversion(&json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview" })).unwrap_err();
}

#[test]
fn objects_are_converted_together_or_not_at_all() {
    let review = |objects: &[Value]| {
        conversion(&json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "request": { "uid": "a1", "desiredAPIVersion": "kueue.x-k8s.io/v1beta1", "objects": objects },
        }))
        .unwrap()["response"]
            .clone()
    };
    let queue = json!({ "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "spec": { "cohortName": "all" } });
    let strange = json!({ "apiVersion": "kueue.x-k8s.io/v1alpha1", "kind": "Cohort" });
    let mut told = format!("{}\n", review(std::slice::from_ref(&queue)));
    told += &format!("{}\n", review(&[queue, strange]));
    expect![[r#"
        {"convertedObjects":[{"apiVersion":"kueue.x-k8s.io/v1beta1","kind":"ClusterQueue","spec":{"cohort":"all"}}],"result":{"status":"Success"},"uid":"a1"}
        {"convertedObjects":[],"result":{"message":"Cohort of \"kueue.x-k8s.io/v1alpha1\" cannot be converted to \"kueue.x-k8s.io/v1beta1\"","status":"Failure"},"uid":"a1"}
    "#]]
    .assert_eq(&told);
}
