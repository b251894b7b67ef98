//! What holds whatever is asked.

use std::collections::BTreeMap;

use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full};
use proptest::prelude::*;
use serde_json::{Value, json};
use tower::ServiceExt;

use super::watching::Watch;
use super::{World, run};
use crate::Options;

/// One thing that a client does.
#[derive(Clone, Debug)]
enum Act {
    Create(char, bool),
    Select(char, bool),
    Delete(char),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let name = prop::sample::select(vec!['a', 'b', 'c']);
    let act = prop_oneof![
        (name.clone(), any::<bool>()).prop_map(|(n, s)| Act::Create(n, s)),
        (name.clone(), any::<bool>()).prop_map(|(n, s)| Act::Select(n, s)),
        name.prop_map(Act::Delete),
    ];
    prop::collection::vec(act, 1..25)
}

async fn carry_out(world: &World, act: &Act) {
    let label = |selected: bool| if selected { "x" } else { "z" };
    match act {
        Act::Create(name, selected) => {
            let body = format!("{{metadata: {{name: {name}, labels: {{t: {}}}}}}}", label(*selected));
            world.send("POST", "configmaps", &body).await;
        }
        Act::Select(name, selected) => {
            let body = format!("{{metadata: {{labels: {{t: {}}}}}}}", label(*selected));
            world.send("PATCH:merge", &format!("configmaps/{name}"), &body).await;
        }
        Act::Delete(name) => {
            world.send("DELETE", &format!("configmaps/{name}"), "").await;
        }
    }
}

/// Names and revisions, as a list shows them.
type Seen = BTreeMap<String, String>;

async fn list(world: &World, query: &str) -> (u16, Seen, String) {
    let (code, list, _) = world.send("GET", &format!("configmaps?{query}"), "").await;
    let text = |v: &Value, k: &str| v["metadata"][k].as_str().unwrap_or("").to_owned();
    let items = list["items"].as_array().into_iter().flatten();
    let seen = items.map(|i| (text(i, "name"), text(i, "resourceVersion"))).collect();
    (code, seen, text(&list, "resourceVersion"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// A client that lists, watches, and lists anew when it is told to, knows what there is.
    #[test]
    fn who_lists_and_watches_knows_what_there_is(acts in acts(), history in 1..6usize, pauses in 1..6usize) {
        run(Options { history, ..Options::default() }, async |world| {
            const SELECTED: &str = "labelSelector=t%3Dx";
            let (_, mut known, revision) = list(&world, SELECTED).await;
            let path = |revision: &str| format!("configmaps?watch=true&{SELECTED}&resourceVersion={revision}");
            let mut watch = Watch::start(&world, &path(&revision)).await;
            for group in acts.chunks(pauses) {
                for act in group {
                    carry_out(&world, act).await;
                }
                let (events, ended) = watch.events(&world).await;
                let mut lost = ended;
                for event in events {
                    let name = event["object"]["metadata"]["name"].as_str().unwrap_or("").to_owned();
                    let revision = event["object"]["metadata"]["resourceVersion"].as_str().unwrap_or("").to_owned();
                    match event["type"].as_str().unwrap() {
                        "ADDED" => assert!(known.insert(name, revision).is_none(), "added twice"),
                        "MODIFIED" => assert!(known.insert(name, revision).is_some(), "changed unseen"),
                        "DELETED" => assert!(known.remove(&name).is_some(), "deleted unseen"),
                        _ => lost = true,
                    }
                }
                if lost {
                    let (_, fresh, revision) = list(&world, SELECTED).await;
                    known = fresh;
                    watch = Watch::start(&world, &path(&revision)).await;
                }
                assert_eq!(known, list(&world, SELECTED).await.1);
            }
        });
    }

    /// A list of the past is what a list was then, or is said to have expired.
    #[test]
    fn a_list_of_the_past_is_what_it_was(acts in acts(), history in 1..40usize) {
        run(Options { history, ..Options::default() }, async |world| {
            let mut then = Vec::new();
            for act in &acts {
                carry_out(&world, act).await;
                then.push(list(&world, "").await);
            }
            for (_, seen, revision) in then {
                let (code, again, _) = list(&world, &format!("resourceVersion={revision}&resourceVersionMatch=Exact")).await;
                match code {
                    200 => assert_eq!(again, seen),
                    code => assert_eq!(code, 410),
                }
            }
        });
    }

    /// Whatever comes in, an answer goes out, and errors are Status objects.
    #[test]
    fn every_request_is_answered(
        method in prop::sample::select(vec!["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"]),
        path in prop::collection::vec(prop::sample::select(vec![
            "api", "apis", "v1", "batch", "namespaces", "default", "pods", "jobs", "p", "binding", "status", "scale",
            "eviction", "resize", "queues", "example.com", "events", "%zz", "a b", "watch",
        ]), 0..7),
        query in "[a-zA-Z0-9=&%.!,]{0,40}",
        media in prop::sample::select(vec![
            "application/json", "application/json-patch+json", "application/merge-patch+json",
            "application/strategic-merge-patch+json", "application/apply-patch+yaml", "application/yaml", "text/odd",
        ]),
        body in body(),
    ) {
        let path = format!("/{}?{query}", path.join("/").replace(' ', "%20"));
        prop_assume!(!query.contains("watch"));
        let options = Options { crds: vec![super::crds::queues()], ..Options::default() };
        run(options, async |world| {
            world.tell("
                POST pods {metadata: {name: p}, spec: {containers: [{name: c, image: i}]}}
                POST queues {metadata: {name: p}}
            ").await;
            let request = Request::builder()
                .method(method)
                .uri(&path)
                .header("content-type", media)
                .body(Full::new(bytes::Bytes::from(body)))
                .unwrap();
            let response = world.server.service().oneshot(request).await.unwrap();
            let code = response.status();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            if code >= StatusCode::BAD_REQUEST {
                let status: Value = serde_json::from_slice(&bytes).unwrap();
                assert_eq!(status["kind"], "Status");
                assert_eq!(status["code"], code.as_u16());
            }
        });
    }
}

/// Bodies: objects that are nearly right, patches, and noise.
fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just(Value::Null),
        Just(json!("p")),
        Just(json!("v1")),
        Just(json!("Pod")),
        Just(json!(-1)),
        Just(json!("/spec")),
        Just(json!("add")),
        Just(json!("copy")),
        Just(json!(true)),
        Just(json!("1Gi")),
        Just(json!(1e300)),
    ];
    let key = prop::sample::select(vec![
        "apiVersion",
        "kind",
        "metadata",
        "name",
        "namespace",
        "spec",
        "containers",
        "status",
        "target",
        "labels",
        "finalizers",
        "op",
        "path",
        "from",
        "value",
        "replicas",
        "managedFields",
        "resources",
        "requests",
        "template",
        "$patch",
        "ownerReferences",
        "deleteOptions",
    ]);
    let object = leaf.prop_recursive(4, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|pairs| pairs.into_iter().map(|(k, v)| (k.to_owned(), v)).collect()),
        ]
    });
    prop_oneof![4 => object.prop_map(|v| v.to_string()), 1 => "\\PC{0,40}"]
}
