//! Stories of a whole cluster, and what must hold of any.

use std::sync::{Arc, Mutex};

use expect_test::expect;
use jiff::Timestamp;
use serde_json::{Value, json};
use soroi_apiserver::ApiServer;
use soroi_clock::Clock;
use soroi_watch::SplitMix64;
use tower::ServiceExt as _;

use crate::story::{Story, tell, tell_to};
use crate::{Options, Parts};

const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

async fn job(story: &Story, name: &str, spec: Value, annotations: Value) {
    let mut spec = spec;
    spec["template"] = json!({
        "metadata": { "annotations": annotations },
        "spec": {
            "restartPolicy": "Never",
            "tolerations": [{ "key": "node.kubernetes.io/unreachable", "operator": "Exists",
                              "effect": "NoExecute", "tolerationSeconds": 5 }],
            "containers": [{ "name": "main", "image": "app", "resources": { "requests": { "cpu": "1" } } }],
        },
    });
    let object =
        json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": name }, "spec": spec });
    story.create(JOBS, object).await;
}

/// How many pods are where and how.
fn count(pods: &str) -> String {
    let mut counts = std::collections::BTreeMap::new();
    for line in pods.lines() {
        *counts.entry(line.split_once(' ').map_or(line, |(_, rest)| rest).to_owned()).or_insert(0) += 1;
    }
    counts.into_iter().map(|(kind, count)| format!("{count} x {kind}\n")).collect()
}

async fn a_node_is_lost(story: Story) -> String {
    for node in ["w1", "w2", "w3"] {
        story.node(node, "cpu=4").await;
    }
    story.seconds(1).await;
    job(
        &story,
        "train",
        json!({ "parallelism": 8, "completions": 8 }),
        json!({ "soroi.dev/run-for": "200s" }),
    )
    .await;
    story.seconds(5).await;
    let mut told = count(&story.pods().await);
    let dead = json!({ "metadata": { "annotations": { "soroi.dev/kubelet": "dead" } } });
    story.patch("/api/v1/nodes/w1", dead).await;
    story.seconds(100).await;
    told += &format!("w1 is dead\n{}", count(&story.pods().await));
    story.delete("/api/v1/nodes/w1").await;
    story.seconds(60).await;
    told += &format!("w1 is deleted\n{}", count(&story.pods().await));
    story.seconds(200).await;
    let status = story.get(&format!("{JOBS}/train")).await["status"].take();
    let last = status["conditions"].as_array().and_then(|all| all.last()).cloned().unwrap_or_default();
    told + &format!("succeeded {} failed {} {}\n", status["succeeded"], status["failed"], last["type"])
}

#[test]
fn a_job_survives_the_loss_of_a_node() {
    expect![[r#"
        3 x w1 Running ready
        3 x w2 Running ready
        2 x w3 Running ready
        w1 is dead
        3 x w1 Running terminating
        4 x w2 Running ready
        4 x w3 Running ready
        w1 is deleted
        4 x w2 Running ready
        4 x w3 Running ready
        succeeded 8 failed 3 "Complete"
    "#]]
    .assert_eq(&tell(Parts::ALL, a_node_is_lost));
}

#[test]
fn the_same_seed_gives_the_same_objects_byte_for_byte() {
    let run = |seed| {
        let options = Options { seed, ..Options::default() };
        let log = Arc::new(Mutex::new(String::new()));
        tell_to(options, hindrance(seed, log.clone()), a_node_is_lost);
        let log = log.lock().unwrap().clone();
        (log.lines().count(), log)
    };
    let (requests, first) = run(3);
    assert!(requests > 300, "{requests} requests");
    assert_eq!(first, run(3).1);
    assert_ne!(first, run(4).1);
}

/// Whatever is refused, lost or answered too late: in the end it is all the same.
#[test]
fn a_bad_connection_changes_nothing_in_the_end() {
    for seed in 0..6 {
        let log = Arc::new(Mutex::new(String::new()));
        let told =
            tell_to(Options { seed, ..Options::default() }, hindrance(seed, log), async |story: Story| {
                for node in ["w1", "w2"] {
                    story.node(node, "cpu=4").await;
                }
                job(
                    &story,
                    "train",
                    json!({ "parallelism": 6, "completions": 12 }),
                    json!({ "soroi.dev/run-for": "30s" }),
                )
                .await;
                job(&story, "gone", json!({ "parallelism": 2, "completions": 2 }), json!({})).await;
                story.seconds(60).await;
                story.delete(&format!("{JOBS}/gone")).await;
                story.seconds(900).await;
                let status = story.get(&format!("{JOBS}/train")).await["status"].take();
                let complete =
                    status["conditions"].as_array().unwrap().iter().any(|c| c["type"] == "Complete");
                let pods = story.get("/api/v1/namespaces/default/pods").await;
                let pods = pods["items"].as_array().unwrap();
                let held = |pod: &&Value| {
                    pod["metadata"]["finalizers"].as_array().is_some_and(|list| !list.is_empty())
                };
                let held = pods.iter().filter(held).count();
                let ended = pods.iter().filter(|pod| pod["status"]["phase"] == "Succeeded").count();
                format!(
                    "complete {complete} succeeded {} failed {} held {held} ended {ended} of {}",
                    status["succeeded"],
                    status["failed"],
                    pods.len()
                )
            });
        // A lost answer to a creation may have made a pod too many, which is then deleted again.
        assert!(told.starts_with("complete true succeeded 12 failed null held 0"), "seed {seed}: {told}");
    }
}

/// A connection on which every tenth request is refused, or carried out without an answer; it
/// notes every request and its time.
fn hindrance(seed: u64, log: Arc<Mutex<String>>) -> impl FnOnce(&ApiServer, Clock) -> kube::Client {
    move |server: &ApiServer, clock: Clock| {
        let (service, random) = (server.service(), Mutex::new(SplitMix64::new(seed)));
        let hindered = tower::service_fn(move |request: http::Request<kube::client::Body>| {
            let line = format!("{} {} {}\n", clock.now_millis(), request.method(), request.uri());
            log.lock().unwrap().push_str(&line);
            let fate = random.lock().unwrap().below(20);
            let service = service.clone();
            async move {
                if fate == 0 {
                    return Err(Box::<dyn std::error::Error + Send + Sync>::from("connection refused"));
                }
                let answer = service.oneshot(request).await?;
                if fate == 1 { Err("connection reset".into()) } else { Ok(answer) }
            }
        });
        kube::Client::new(hindered, "default")
    }
}

#[test]
fn a_cluster_that_is_dropped_does_nothing_more() {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let server = ApiServer::new(clock.clone(), soroi_apiserver::Options::default());
        let log = Arc::new(Mutex::new(String::new()));
        let client = hindrance(0, log.clone())(&server, clock.clone());
        let cluster = crate::run(client, clock.clone(), Options::default());
        clock.timeout(std::time::Duration::from_secs(5), cluster).await.unwrap_err();
        let before = log.lock().unwrap().len();
        clock.sleep(std::time::Duration::from_secs(3600)).await;
        assert!(before > 0);
        assert_eq!(log.lock().unwrap().len(), before);
    });
}

#[test]
fn a_cluster_that_is_restarted_goes_on_where_it_was() {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
        let server = ApiServer::new(clock.clone(), soroi_apiserver::Options::default());
        let client = kube::Client::new(server.service(), "default");
        let story = Story::of(client.clone(), clock.clone());
        for node in ["w1", "w2"] {
            story.node(node, "cpu=2").await;
        }
        job(
            &story,
            "train",
            json!({ "parallelism": 4, "completions": 8 }),
            json!({ "soroi.dev/run-for": "30s" }),
        )
        .await;
        // Crashed every 700 ms: between any two writes, sooner or later.
        for _ in 0..100 {
            let cluster = crate::run(client.clone(), clock.clone(), Options::default());
            clock.timeout(std::time::Duration::from_millis(700), cluster).await.unwrap_err();
        }
        let status = story.get(&format!("{JOBS}/train")).await["status"].take();
        let told = format!(
            "active {} succeeded {} failed {}",
            status["active"], status["succeeded"], status["failed"]
        );
        assert_eq!(told, "active null succeeded 8 failed null", "{}", story.pods().await);
    });
}
