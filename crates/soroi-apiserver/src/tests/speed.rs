//! How fast? Measured on demand: `cargo test --release -p soroi-apiserver speed -- --ignored --nocapture`.

use std::time::Instant;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, PostParams, WatchParams};
use serde_json::{Value, json};

use super::run;
use crate::Options;

const PODS: usize = 10_000;

#[test]
#[ignore = "a measurement, to be run in release"]
fn creates_and_binds_with_one_watcher() {
    run(Options::default(), async |world| {
        let pods: Api<Pod> = Api::default_namespaced(world.client.clone());
        let mut watch = pods.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
        let pod = |i: usize| -> Pod {
            serde_json::from_value(json!({
                "metadata": {"name": format!("p{i}"), "labels": {"job": "x"}},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "1", "example.com/gpu": "1"}}}]},
            }))
            .unwrap()
        };
        #[expect(clippy::disallowed_methods, reason = "it measures the machine")]
        let now = Instant::now;
        let write = async {
            let started = now();
            for i in 0..PODS {
                pods.create(&PostParams::default(), &pod(i)).await.unwrap();
            }
            let created = started.elapsed();
            let started = now();
            for i in 0..PODS {
                let name = format!("p{i}");
                let binding = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": "n1"}});
                let _: Value = pods
                    .create_subresource("binding", &name, &PostParams::default(), &binding)
                    .await
                    .unwrap();
            }
            (created, started.elapsed())
        };
        let read = async {
            for _ in 0..2 * PODS {
                watch.next().await.unwrap().unwrap();
            }
        };
        let ((created, bound), ()) = futures::join!(write, read);
        let started = now();
        let listed = pods.list(&Default::default()).await.unwrap().items.len();
        let all = started.elapsed();
        let rate = |n: usize, span: std::time::Duration| n as f64 / span.as_secs_f64();
        println!(
            "creates {:.0}/s, binds {:.0}/s, both seen by a watcher; a list of {listed} in {all:?}",
            rate(PODS, created),
            rate(PODS, bound),
        );
    });
}
