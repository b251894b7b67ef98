//! What `admission` promises, as tests.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use serde_json::{Value, json};

use super::{World, run};
use crate::{Admission, AdmissionPhase, AdmissionRequest, AdmissionResponse, FieldError, Operation, Options};

/// Labels new objects, refuses those that ask for it, and writes down what it was asked.
#[derive(Default)]
struct Hook {
    asked: Mutex<Vec<String>>,
}

impl Admission for Hook {
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse {
        if request.resource == "namespaces" || request.resource == "priorityclasses" {
            return AdmissionResponse::allow();
        }
        self.asked.lock().unwrap().push(format!(
            "{:?} {:?} {} {}/{} {} by {} old={} dry={}",
            request.phase,
            request.operation,
            request.kind,
            request.resource,
            request.subresource,
            request.name,
            request.user.name,
            request.old_object.is_some(),
            request.dry_run,
        ));
        let object = request.object.cloned().unwrap_or_default();
        if request.operation == Operation::Delete && request.name == "kept" {
            return AdmissionResponse::forbid("kept objects stay");
        }
        if object["data"]["wrong"].is_string() {
            let error = FieldError::invalid("data.wrong", object["data"]["wrong"].clone(), "may not be");
            return AdmissionResponse::invalid(request, vec![error]);
        }
        if request.phase == AdmissionPhase::Mutating && request.operation == Operation::Create {
            let mut object = object;
            object["metadata"]["labels"] = json!({"seen": "yes"});
            return AdmissionResponse::Allowed { object: Some(object), warnings: vec!["labelled".into()] };
        }
        // In the second phase a replacement is not heeded.
        AdmissionResponse::replace(Value::Null)
    }
}

#[test]
fn hooks_change_and_refuse() {
    let hook = Arc::new(Hook::default());
    let options = Options { admission: vec![hook.clone()], ..Options::default() };
    run(options, async |world: World| {
        let mut told = world
            .tell(
                "
            POST configmaps {metadata: {name: kept}} | .metadata.labels
            POST configmaps?dryRun=All {metadata: {generateName: b-}} | .metadata.labels
            POST configmaps {metadata: {name: w}, data: {wrong: thing}} | .details
            PATCH:merge configmaps/kept {data: {wrong: thing}}
            DELETE configmaps/kept
            POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
            POST pods/p/binding {metadata: {name: p}, target: {name: n1}}
            ",
            )
            .await;
        let request = http::Request::delete("/api/v1/namespaces/default/configmaps/kept")
            .header("impersonate-user", "alice")
            .body(kube::client::Body::empty())
            .unwrap();
        assert_eq!(world.client.send(request).await.unwrap().status().as_u16(), 403);
        told.push_str(&hook.asked.lock().unwrap().join("\n"));
        told.push('\n');
        expect![[r#"
            POST configmaps {metadata: {name: kept}} | .metadata.labels
                201 ConfigMap kept {"seen":"yes"}
                299 - "labelled"
            POST configmaps?dryRun=All {metadata: {generateName: b-}} | .metadata.labels
                201 ConfigMap b-4bvfk {"seen":"yes"}
                299 - "labelled"
            POST configmaps {metadata: {name: w}, data: {wrong: thing}} | .details
                422 Invalid ConfigMap "w" is invalid: data.wrong: Invalid value: "thing": may not be {"causes":[{"field":"data.wrong","message":"Invalid value: \"thing\": may not be","reason":"FieldValueInvalid"}],"kind":"ConfigMap","name":"w"}
            PATCH:merge configmaps/kept {data: {wrong: thing}}
                422 Invalid ConfigMap "kept" is invalid: data.wrong: Invalid value: "thing": may not be
            DELETE configmaps/kept
                403 Forbidden kept objects stay
            POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
                201 Pod p
                299 - "labelled"
            POST pods/p/binding {metadata: {name: p}, target: {name: n1}}
                201 Success
            Mutating Create ConfigMap configmaps/ kept by kubernetes-admin old=false dry=false
            Validating Create ConfigMap configmaps/ kept by kubernetes-admin old=false dry=false
            Mutating Create ConfigMap configmaps/  by kubernetes-admin old=false dry=true
            Validating Create ConfigMap configmaps/ b-4bvfk by kubernetes-admin old=false dry=true
            Mutating Create ConfigMap configmaps/ w by kubernetes-admin old=false dry=false
            Mutating Update ConfigMap configmaps/ kept by kubernetes-admin old=true dry=false
            Validating Delete ConfigMap configmaps/ kept by kubernetes-admin old=true dry=false
            Mutating Create Pod pods/ p by kubernetes-admin old=false dry=false
            Validating Create Pod pods/ p by kubernetes-admin old=false dry=false
            Validating Create Binding pods/binding p by kubernetes-admin old=false dry=false
            Validating Delete ConfigMap configmaps/ kept by alice old=true dry=false
        "#]].assert_eq(&told);
    });
}
