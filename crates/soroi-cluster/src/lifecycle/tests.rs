//! Stories of nodes that fall silent, are cordoned, tainted or deleted.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::Parts;
use crate::story::{Story, tell};

const PARTS: Parts = Parts { kubelets: true, lifecycle: true, ..Parts::NONE };

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(PARTS, story));
}

fn on(node: &str, tolerations: serde_json::Value) -> serde_json::Value {
    json!({ "spec": { "nodeName": node, "tolerations": tolerations } })
}

async fn kubelet(story: &Story, node: &str, how: &str) {
    let patch = json!({ "metadata": { "annotations": { "soroi.dev/kubelet": how } } });
    story.patch(&format!("/api/v1/nodes/{node}"), patch).await;
}

#[test]
fn a_silent_node_is_given_up_and_its_pods_are_evicted_when_their_patience_ends() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.node("w2", "cpu=4").await;
            story.seconds(1).await;
            let patient = |seconds: i64| {
                json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists",
                         "effect": "NoExecute", "tolerationSeconds": seconds }])
            };
            story.pod("patient", "cpu=1", on("w1", patient(300))).await;
            story.pod("hasty", "cpu=1", on("w1", patient(5))).await;
            let stoic = json!([{ "operator": "Exists" }]);
            story.pod("stoic", "cpu=1", on("w1", stoic)).await;
            story.pod("elsewhere", "cpu=1", on("w2", json!([]))).await;
            story.seconds(5).await;
            kubelet(&story, "w1", "unreachable").await;
            let mut told = String::new();
            for seconds in [30, 30, 10, 300] {
                story.seconds(seconds).await;
                told += &format!("after {seconds}s\n{}{}", story.nodes().await, story.pods().await);
            }
            kubelet(&story, "w1", "alive").await;
            story.seconds(2).await;
            told += &format!("back\n{}{}", story.nodes().await, story.pods().await);
            told + &story.events().await
        },
        expect![[r#"
            after 30s
            w1 Ready=True
            w2 Ready=True
            elsewhere w2 Running ready
            hasty w1 Running ready
            patient w1 Running ready
            stoic w1 Running ready
            after 30s
            w1 Ready=Unknown node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute
            w2 Ready=True
            elsewhere w2 Running ready
            hasty w1 Running terminating
            patient w1 Running
            stoic w1 Running
            after 10s
            w1 Ready=Unknown node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute
            w2 Ready=True
            elsewhere w2 Running ready
            hasty w1 Running terminating
            patient w1 Running
            stoic w1 Running
            after 300s
            w1 Ready=Unknown node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute
            w2 Ready=True
            elsewhere w2 Running ready
            hasty w1 Running terminating
            patient w1 Running terminating
            stoic w1 Running
            back
            w1 Ready=True
            w2 Ready=True
            elsewhere w2 Running ready
            stoic w1 Running ready
            Normal NodeNotReady w1: Node w1 status is now: NodeNotReady (x1)
            Normal TaintManagerEviction hasty: Marking for deletion Pod default/hasty (x1)
            Normal TaintManagerEviction patient: Marking for deletion Pod default/patient (x1)
        "#]],
    );
}

#[test]
fn a_short_silence_changes_nothing() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            story.pod("a", "cpu=1", on("w1", json!([]))).await;
            story.seconds(60).await;
            kubelet(&story, "w1", "blinking/25s").await;
            let before = story.get("/api/v1/nodes/w1").await["metadata"]["resourceVersion"].take();
            story.seconds(600).await;
            let after = story.get("/api/v1/nodes/w1").await["metadata"]["resourceVersion"].take();
            format!("{}{}untouched: {}\n", story.nodes().await, story.pods().await, before == after)
        },
        expect![[r#"
            w1 Ready=True
            a w1 Running ready
            untouched: true
        "#]],
    );
}

#[test]
fn a_node_that_never_speaks_is_unknown_after_a_minute() {
    expect![[r#"
        w1 Ready=- node.kubernetes.io/not-ready:NoSchedule
        w1 Ready=Unknown node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute
    "#]]
    .assert_eq(&tell(Parts { lifecycle: true, ..Parts::NONE }, async |story: Story| {
        story.node("w1", "cpu=4").await;
        story.seconds(50).await;
        let before = story.nodes().await;
        story.seconds(15).await;
        before + &story.nodes().await
    }));
}

#[test]
fn a_cordon_is_a_taint_and_other_taints_stay() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            story.pod("a", "cpu=1", on("w1", json!([]))).await;
            let taints = json!([{ "key": "team", "value": "a", "effect": "NoSchedule" }]);
            story
                .patch("/api/v1/nodes/w1", json!({ "spec": { "unschedulable": true, "taints": taints } }))
                .await;
            story.seconds(1).await;
            let mut told = story.nodes().await + &story.pods().await;
            story.patch("/api/v1/nodes/w1", json!({ "spec": { "unschedulable": null } })).await;
            story.seconds(1).await;
            told += &story.nodes().await;
            told
        },
        expect![[r#"
            w1 Ready=True team:NoSchedule node.kubernetes.io/unschedulable:NoSchedule
            a w1 Running ready
            w1 Ready=True team:NoSchedule
        "#]],
    );
}

#[test]
fn pods_that_do_not_tolerate_a_taint_are_evicted_at_once() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            story.pod("a", "cpu=1", on("w1", json!([]))).await;
            story.pod("b", "cpu=1", on("w1", json!([{ "key": "maintenance", "operator": "Exists" }]))).await;
            let slow = json!({ "metadata": { "finalizers": ["example.com/tracking"] }, "spec": { "nodeName": "w1" } });
            story.pod("c", "cpu=1", slow).await;
            story.seconds(1).await;
            let taints = json!([{ "key": "maintenance", "effect": "NoExecute" }]);
            story.patch("/api/v1/nodes/w1", json!({ "spec": { "taints": taints } })).await;
            story.seconds(1).await;
            let pod = story.get("/api/v1/namespaces/default/pods/c").await;
            let conditions = pod["status"]["conditions"].as_array().unwrap();
            let target = conditions.iter().find(|condition| condition["type"] == "DisruptionTarget").unwrap();
            format!("{}{}\n", story.pods().await, target["reason"])
        },
        expect![[r#"
            b w1 Running ready
            c w1 Failed terminating
            "DeletionByTaintManager"
        "#]],
    );
}

#[test]
fn pods_of_a_deleted_node_are_collected() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            story.pod("a", "cpu=1", on("w1", json!([]))).await;
            let tracked = json!({ "metadata": { "finalizers": ["example.com/tracking"] }, "spec": { "nodeName": "w1" } });
            story.pod("b", "cpu=1", tracked).await;
            story.seconds(1).await;
            story.delete("/api/v1/nodes/w1").await;
            story.seconds(30).await;
            let before = story.pods().await;
            story.seconds(15).await;
            before + "later\n" + &story.pods().await
        },
        expect![[r#"
            a w1 Running ready
            b w1 Running ready
            later
            b w1 Failed ready terminating
        "#]],
    );
}

#[test]
fn a_condition_set_by_hand_taints_the_node_and_a_blip_evicts_nobody() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let patient = json!([{ "key": "node.kubernetes.io/unreachable", "operator": "Exists",
                                   "effect": "NoExecute", "tolerationSeconds": 300 }]);
            story.pod("a", "cpu=1", on("w1", patient)).await;
            story.seconds(1).await;
            let ready = |status: &str| json!({ "status": { "conditions": [{ "type": "Ready", "status": status, "reason": "SetByCase" }] } });
            story.patch("/api/v1/nodes/w1/status", ready("Unknown")).await;
            story.seconds(100).await;
            let mut told = story.nodes().await + &story.pods().await;
            story.patch("/api/v1/nodes/w1/status", ready("True")).await;
            story.seconds(300).await;
            told += &(story.nodes().await + &story.pods().await);
            told
        },
        expect![[r#"
            w1 Ready=Unknown node.kubernetes.io/unreachable:NoSchedule node.kubernetes.io/unreachable:NoExecute
            a w1 Running ready
            w1 Ready=True
            a w1 Running ready
        "#]],
    );
}
