//! Stories of owners and their dependents.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::Parts;
use crate::story::{Story, tell};
use crate::write::Request;

const PARTS: Parts = Parts { garbage: true, kubelets: true, jobs: true, ..Parts::NONE };
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(PARTS, story));
}

/// Creates a ConfigMap with these owners (and finalizers); its reference as an owner.
async fn map(story: &Story, name: &str, owners: &[&Value], finalizers: &[&str]) -> Value {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": { "name": name, "ownerReferences": owners, "finalizers": finalizers },
    });
    let made = story.create(MAPS, object).await;
    json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": made["metadata"]["uid"], "blockOwnerDeletion": true })
}

async fn delete(story: &Story, name: &str, policy: &str) {
    story.send(Request::delete(format!("{MAPS}/{name}"), json!({ "propagationPolicy": policy }))).await;
}

/// Names with owners, and whether they are on their way out.
async fn maps(story: &Story) -> String {
    let list = story.get(MAPS).await;
    let line = |map: &Value| {
        let owners = map["metadata"]["ownerReferences"].as_array().cloned().unwrap_or_default();
        let owners: Vec<_> =
            owners.iter().map(|owner| owner["name"].as_str().unwrap_or("").to_owned()).collect();
        let leaving = if map["metadata"]["deletionTimestamp"].is_string() { " terminating" } else { "" };
        format!("{} of [{}]{leaving}\n", map["metadata"]["name"].as_str().unwrap_or(""), owners.join(" "))
    };
    list["items"].as_array().unwrap().iter().map(line).collect::<String>() + "--\n"
}

#[test]
fn dependents_follow_their_owners_one_after_the_other() {
    check(
        async |story: Story| {
            let top = map(&story, "top", &[], &[]).await;
            let other = map(&story, "other", &[], &[]).await;
            let middle = map(&story, "middle", &[&top], &[]).await;
            map(&story, "leaf", &[&middle], &[]).await;
            map(&story, "shared", &[&top, &other], &[]).await;
            story.seconds(1).await;
            let mut told = maps(&story).await;
            delete(&story, "top", "Background").await;
            story.seconds(1).await;
            told += &maps(&story).await;
            told
        },
        expect![[r#"
            leaf of [middle]
            middle of [top]
            other of []
            shared of [top other]
            top of []
            --
            other of []
            shared of [other]
            --
        "#]],
    );
}

#[test]
fn a_foreground_deletion_waits_for_blocking_dependents() {
    check(
        async |story: Story| {
            let top = map(&story, "top", &[], &[]).await;
            let middle = map(&story, "middle", &[&top], &[]).await;
            map(&story, "leaf", &[&middle], &["example.com/wait"]).await;
            story.seconds(1).await;
            delete(&story, "top", "Foreground").await;
            story.seconds(1).await;
            let mut told = maps(&story).await;
            story.patch(&format!("{MAPS}/leaf"), json!({ "metadata": { "finalizers": null } })).await;
            story.seconds(1).await;
            told += &maps(&story).await;
            told
        },
        expect![[r#"
            leaf of [middle] terminating
            middle of [top] terminating
            top of [] terminating
            --
            --
        "#]],
    );
}

#[test]
fn an_orphaning_deletion_sets_dependents_free() {
    check(
        async |story: Story| {
            let top = map(&story, "top", &[], &[]).await;
            map(&story, "a", &[&top], &[]).await;
            map(&story, "b", &[&top], &[]).await;
            story.seconds(1).await;
            delete(&story, "top", "Orphan").await;
            story.seconds(1).await;
            maps(&story).await
        },
        expect![[r#"
            a of []
            b of []
            --
        "#]],
    );
}

#[test]
fn an_owner_that_never_was_takes_its_dependents_away() {
    check(
        async |story: Story| {
            let never = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "u-1" });
            map(&story, "lost", &[&never], &[]).await;
            let alien = json!({ "apiVersion": "example.com/v1", "kind": "Alien", "name": "a", "uid": "u-2" });
            map(&story, "of-unknown-kind", &[&alien], &[]).await;
            // The same name, and not the same object.
            map(&story, "twin", &[], &[]).await;
            let old_twin = json!({ "apiVersion": "v1", "kind": "ConfigMap", "name": "twin", "uid": "u-3" });
            map(&story, "of-old-twin", &[&old_twin], &[]).await;
            story.seconds(1).await;
            maps(&story).await
        },
        expect![[r#"
            of-unknown-kind of [a]
            twin of []
            --
        "#]],
    );
}

#[test]
fn a_deleted_job_takes_its_pods_along() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            let template = json!({ "spec": { "nodeName": "w1", "restartPolicy": "Never",
                                             "containers": [{ "name": "main", "image": "app" }] } });
            let jobs = "/apis/batch/v1/namespaces/default/jobs";
            let mut told = String::new();
            for policy in ["Background", "Foreground"] {
                let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "train" },
                                  "spec": { "parallelism": 2, "completions": 2, "template": template } });
                story.create(jobs, job).await;
                story.seconds(3).await;
                told += &format!("{} running\n", story.pods().await.matches("Running").count());
                story
                    .send(Request::delete(format!("{jobs}/train"), json!({ "propagationPolicy": policy })))
                    .await;
                story.seconds(5).await;
                told += &format!(
                    "{policy}: {}job there: {}\n",
                    story.pods().await,
                    story.exists(&format!("{jobs}/train")).await
                );
            }
            told
        },
        expect![[r#"
            2 running
            Background: no pods
            job there: false
            2 running
            Foreground: no pods
            job there: false
        "#]],
    );
}

#[test]
fn custom_resources_are_followed_as_soon_as_they_are_served() {
    check(
        async |story: Story| {
            story.seconds(1).await;
            let definition = json!({
                "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                "metadata": { "name": "widgets.example.com" },
                "spec": {
                    "group": "example.com", "scope": "Namespaced",
                    "names": { "kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList" },
                    "versions": [{ "name": "v1", "served": true, "storage": true,
                                   "schema": { "openAPIV3Schema": { "type": "object" } } }],
                },
            });
            story.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition).await;
            story.seconds(1).await;
            let widgets = "/apis/example.com/v1/namespaces/default/widgets";
            let widget =
                json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": "w" } });
            let widget = story.create(widgets, widget).await;
            let owner = json!({ "apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": widget["metadata"]["uid"] });
            map(&story, "of-widget", &[&owner], &[]).await;
            story.seconds(1).await;
            let mut told = maps(&story).await;
            story.delete(&format!("{widgets}/w")).await;
            story.seconds(1).await;
            told += &maps(&story).await;
            told
        },
        expect![[r#"
            of-widget of [w]
            --
            --
        "#]],
    );
}
