//! Stories of budgets and evictions.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::Parts;
use crate::story::{Story, tell};
use crate::write::{Outcome, Request};

const PARTS: Parts = Parts { kubelets: true, disruptions: true, jobs: true, ..Parts::NONE };
const BUDGETS: &str = "/apis/policy/v1/namespaces/default/poddisruptionbudgets";

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(PARTS, story));
}

async fn budget(story: &Story, name: &str, spec: Value) {
    let object = json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": { "name": name }, "spec": spec,
    });
    story.create(BUDGETS, object).await;
    story.seconds(1).await;
}

async fn web(story: &Story, name: &str) {
    let labels = json!({ "metadata": { "labels": { "app": "web" } }, "spec": { "nodeName": "w1" } });
    story.pod(name, "cpu=1", labels).await;
}

/// What an eviction comes to.
async fn evict(story: &Story, name: &str) -> String {
    let eviction = json!({ "apiVersion": "policy/v1", "kind": "Eviction", "metadata": { "name": name } });
    let path = format!("/api/v1/namespaces/default/pods/{name}/eviction");
    match story.try_send(Request::post(path, eviction)).await {
        Outcome::Done(_) => format!("{name} is evicted\n"),
        Outcome::Refused { code, message } => format!("{name}: {code} {message}\n"),
        other => format!("{name}: {other:?}\n"),
    }
}

/// The counts of a budget: those that may go, those that are well, of how many that must be, of how
/// many; and its condition.
async fn counts(story: &Story, name: &str) -> String {
    let status = story.get(&format!("{BUDGETS}/{name}")).await["status"].take();
    let count = |what: &str| status[what].clone();
    let condition = &status["conditions"][0];
    format!(
        "{name}: {} may go, {} well, {} must be, of {}; {} {} {}\n",
        count("disruptionsAllowed"),
        count("currentHealthy"),
        count("desiredHealthy"),
        count("expectedPods"),
        condition["status"].as_str().unwrap_or("-"),
        condition["reason"].as_str().unwrap_or("-"),
        condition["message"].as_str().unwrap_or("-"),
    )
}

#[test]
fn a_budget_lets_go_who_can_be_spared_and_no_more() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=8").await;
            budget(
                &story,
                "web",
                json!({ "minAvailable": 2, "selector": { "matchLabels": { "app": "web" } } }),
            )
            .await;
            let mut told = counts(&story, "web").await;
            for name in ["a", "b", "c"] {
                web(&story, name).await;
            }
            story.seconds(2).await;
            told += &counts(&story, "web").await;
            told += &evict(&story, "a").await;
            told += &evict(&story, "b").await;
            story.seconds(40).await;
            told += &counts(&story, "web").await;
            web(&story, "d").await;
            story.seconds(2).await;
            told += &counts(&story, "web").await;
            told += &evict(&story, "b").await;
            told
        },
        expect![[r#"
            web: 0 may go, 0 well, 2 must be, of 0; False InsufficientPods 
            web: 1 may go, 3 well, 2 must be, of 3; True SufficientPods 
            a is evicted
            b: 429 Cannot evict pod as it would violate the pod's disruption budget.
            web: 0 may go, 2 well, 2 must be, of 2; False InsufficientPods 
            web: 1 may go, 3 well, 2 must be, of 3; True SufficientPods 
            b is evicted
        "#]],
    );
}

#[test]
fn a_granted_eviction_counts_until_the_pod_is_gone_or_two_minutes_have_passed() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=8").await;
            for name in ["a", "b"] {
                web(&story, name).await;
            }
            budget(
                &story,
                "web",
                json!({ "minAvailable": 1, "selector": { "matchLabels": { "app": "web" } } }),
            )
            .await;
            let granted = json!({ "status": { "disruptionsAllowed": 0, "disruptedPods": { "a": "2023-11-14T22:13:21Z" } } });
            story.patch(&format!("{BUDGETS}/web/status"), granted).await;
            story.seconds(60).await;
            let mut told = counts(&story, "web").await;
            story.seconds(70).await;
            told += &counts(&story, "web").await;
            told + &story.events().await
        },
        expect![[r#"
            web: 0 may go, 1 well, 1 must be, of 2; False InsufficientPods 
            web: 1 may go, 2 well, 1 must be, of 2; True SufficientPods 
            Warning NotDeleted a: Pod was expected by PDB default/default to be deleted but it wasn't (x1)
        "#]],
    );
}

#[test]
fn where_a_scale_is_needed_it_is_said_that_there_is_none() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=8").await;
            web(&story, "alone").await;
            let job = json!({
                "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "train" },
                "spec": { "template": {
                    "metadata": { "labels": { "app": "train" } },
                    "spec": { "restartPolicy": "Never", "nodeName": "w1", "containers": [{ "name": "m", "image": "i" }] },
                } },
            });
            story.create("/apis/batch/v1/namespaces/default/jobs", job).await;
            story.seconds(5).await;
            let selects =
                |app: &str| json!({ "maxUnavailable": "50%", "selector": { "matchLabels": { "app": app } } });
            budget(&story, "alone", selects("web")).await;
            budget(&story, "train", selects("train")).await;
            let pods = story.get("/api/v1/namespaces/default/pods?labelSelector=app=train").await;
            let name = pods["items"][0]["metadata"]["name"].as_str().unwrap().to_owned();
            let refused = evict(&story, &name).await.replace(&name, "train-*");
            counts(&story, "alone").await + &counts(&story, "train").await + &refused
        },
        expect![[r#"
            alone: 0 may go, 1 well, 0 must be, of 0; False InsufficientPods 
            train: 0 may go, 0 well, 0 must be, of 0; False SyncFailed jobs.batch does not implement the scale subresource
            train-*: 429 Cannot evict pod as it would violate the pod's disruption budget.
        "#]],
    );
}
