//! Stories of nodes and of the pods that are bound to them.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::story::{Story, tell};
use crate::{Options, Parts};

const KUBELETS: Parts = Parts { kubelets: true, ..Parts::NONE };

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(KUBELETS, story));
}

/// A pod that somebody has bound to `node`, with these annotations.
async fn bound(story: &Story, name: &str, node: &str, requests: &str, annotations: serde_json::Value) {
    let extra = json!({ "metadata": { "annotations": annotations }, "spec": { "nodeName": node } });
    story.pod(name, requests, extra).await;
}

#[test]
fn a_new_node_becomes_ready_and_keeps_its_lease() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4 example.com/gpu=2").await;
            story.seconds(100).await;
            let node = story.get("/api/v1/nodes/w1").await;
            let lease = story.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/w1").await;
            format!("{}{}\n{}\n", story.nodes().await, node["status"]["allocatable"], lease["spec"])
        },
        expect![[r#"
            w1 Ready=True node.kubernetes.io/not-ready:NoSchedule
            {"cpu":"4","example.com/gpu":"2","pods":"110"}
            {"holderIdentity":"w1","leaseDurationSeconds":80,"renewTime":"2023-11-14T22:15:00.000000Z"}
        "#]],
    );
}

#[test]
fn a_node_that_another_kubelet_serves_is_left_alone() {
    check(
        async |story: Story| {
            for (name, heard) in [("copied", "2023-11-14T21:00:00Z"), ("served", "2023-11-14T22:13:00Z")] {
                let node = json!({
                    "apiVersion": "v1", "kind": "Node", "metadata": { "name": name },
                    "status": {
                        "allocatable": { "cpu": "4", "pods": "110" },
                        "conditions": [{ "type": "Ready", "status": "True", "lastHeartbeatTime": heard }],
                        "nodeInfo": { "kubeletVersion": "v1.36.1" },
                    },
                });
                story.create("/api/v1/nodes", node).await;
                bound(&story, name, name, "cpu=1", json!({})).await;
            }
            story.seconds(30).await;
            story.pods().await
        },
        expect![[r#"
            copied copied Running ready
            served served Pending
        "#]],
    );
}

#[test]
fn pods_start_run_for_their_time_and_end() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            bound(&story, "forever", "w1", "cpu=1", json!({})).await;
            bound(&story, "good", "w1", "cpu=1", json!({ "soroi.dev/run-for": "30s" })).await;
            let bad = json!({ "soroi.dev/run-for": "10s", "soroi.dev/exit-code": "3" });
            bound(&story, "bad", "w1", "cpu=1", bad).await;
            bound(&story, "late", "w1", "cpu=1", json!({ "soroi.dev/ready-after": "20s" })).await;
            let mut told = story.pods().await;
            for seconds in [1, 10, 10, 10] {
                story.seconds(seconds).await;
                told += &format!("after {seconds}s\n{}", story.pods().await);
            }
            let bad = story.get("/api/v1/namespaces/default/pods/bad").await;
            told + &format!("{}\n", bad["status"]["containerStatuses"][0]["state"])
        },
        expect![[r#"
            bad w1 Pending
            forever w1 Pending
            good w1 Pending
            late w1 Pending
            after 1s
            bad w1 Running ready
            forever w1 Running ready
            good w1 Running ready
            late w1 Running
            after 10s
            bad w1 Failed
            forever w1 Running ready
            good w1 Running ready
            late w1 Running
            after 10s
            bad w1 Failed
            forever w1 Running ready
            good w1 Running ready
            late w1 Running ready
            after 10s
            bad w1 Failed
            forever w1 Running ready
            good w1 Succeeded
            late w1 Running ready
            {"terminated":{"exitCode":3,"finishedAt":"2023-11-14T22:13:31Z","reason":"Error","startedAt":"2023-11-14T22:13:21Z"}}
        "#]],
    );
}

#[test]
fn a_pod_that_does_not_fit_is_refused_on_arrival() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4 example.com/gpu=2 pods=4").await;
            story.seconds(1).await;
            bound(&story, "a", "w1", "example.com/gpu=2", json!({})).await;
            bound(&story, "gpu", "w1", "example.com/gpu=1", json!({})).await;
            bound(&story, "cpu", "w1", "cpu=4100m", json!({})).await;
            bound(&story, "other", "w1", "example.com/tpu=1", json!({})).await;
            let picky = json!({ "spec": { "nodeName": "w1", "nodeSelector": { "zone": "a" } } });
            story.pod("picky", "cpu=1", picky).await;
            for name in ["s1", "s2", "s3", "s4"] {
                bound(&story, name, "w1", "cpu=1m", json!({})).await;
            }
            story.seconds(1).await;
            let gpu = story.get("/api/v1/namespaces/default/pods/gpu").await;
            format!("{}{}\n{}", story.pods().await, gpu["status"]["message"], story.events().await)
        },
        expect![[r#"
            a w1 Running ready
            cpu w1 Failed OutOfcpu
            gpu w1 Failed OutOfexample.com/gpu
            other w1 Failed OutOfexample.com/tpu
            picky w1 Failed NodeAffinity
            s1 w1 Running ready
            s2 w1 Running ready
            s3 w1 Running ready
            s4 w1 Failed OutOfpods
            "Pod was rejected: Node didn't have enough resource: example.com/gpu, requested: 1, used: 2, capacity: 2"
            Warning OutOfexample.com/gpu gpu: Node didn't have enough resource: example.com/gpu, requested: 1, used: 2, capacity: 2 (x1)
            Warning OutOfcpu cpu: Node didn't have enough resource: cpu, requested: 4100, used: 0, capacity: 4000 (x1)
            Warning OutOfexample.com/tpu other: Node didn't have enough resource: example.com/tpu, requested: 1, used: 0, capacity: 0 (x1)
            Warning NodeAffinity picky: Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector (x1)
            Warning OutOfpods s4: Node didn't have enough resource: pods, requested: 1, used: 4, capacity: 4 (x1)
        "#]],
    );
}

#[test]
fn what_a_pod_held_is_free_when_it_has_ended_or_gone() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=2").await;
            story.seconds(1).await;
            bound(&story, "a", "w1", "cpu=2", json!({ "soroi.dev/run-for": "5s" })).await;
            story.seconds(6).await;
            bound(&story, "b", "w1", "cpu=2", json!({})).await;
            story.seconds(1).await;
            story.delete("/api/v1/namespaces/default/pods/b").await;
            story.seconds(1).await;
            bound(&story, "c", "w1", "cpu=2", json!({})).await;
            story.seconds(1).await;
            story.pods().await
        },
        expect![[r#"
            a w1 Succeeded
            c w1 Running ready
        "#]],
    );
}

#[test]
fn deleted_pods_go_at_once_or_slowly_as_told() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            bound(&story, "quick", "w1", "cpu=1", json!({})).await;
            bound(&story, "slow", "w1", "cpu=1", json!({ "soroi.dev/stop-after": "60s" })).await;
            let finalizer =
                |name: &str| json!({ "metadata": { "finalizers": [name] }, "spec": { "nodeName": "w1" } });
            story.pod("tracked", "cpu=1", finalizer("example.com/tracking")).await;
            story.pod("stuck", "cpu=1", finalizer("example.com/slow-exit")).await;
            story.seconds(1).await;
            for name in ["quick", "slow", "tracked", "stuck"] {
                story.delete(&format!("/api/v1/namespaces/default/pods/{name}")).await;
            }
            story.seconds(1).await;
            let mut told = story.pods().await;
            story.seconds(60).await;
            for name in ["tracked", "stuck"] {
                let path = format!("/api/v1/namespaces/default/pods/{name}");
                story.patch(&path, json!({ "metadata": { "finalizers": null } })).await;
            }
            story.seconds(1).await;
            told += "later\n";
            told + &story.pods().await
        },
        expect![[r#"
            slow w1 Running ready terminating
            stuck w1 Running ready terminating
            tracked w1 Failed terminating
            later
            no pods
        "#]],
    );
}

#[test]
fn crashing_containers_restart_with_growing_waits() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let restarting = |policy: &str, exit: &str| {
                json!({
                    "metadata": { "annotations": { "soroi.dev/run-for": "1s", "soroi.dev/exit-code": exit } },
                    "spec": { "nodeName": "w1", "restartPolicy": policy },
                })
            };
            story.pod("always", "cpu=1", restarting("Always", "0")).await;
            story.pod("on-failure", "cpu=1", restarting("OnFailure", "1")).await;
            story.pod("on-success", "cpu=1", restarting("OnFailure", "0")).await;
            let mut told = String::new();
            for seconds in [2, 5, 8, 22, 60] {
                story.seconds(seconds).await;
                told += &format!("after {seconds}s\n{}", story.pods().await);
            }
            told
        },
        expect![[r#"
            after 2s
            always w1 Running ready restarts=1
            on-failure w1 Running ready restarts=1
            on-success w1 Succeeded
            after 5s
            always w1 Running restarts=1
            on-failure w1 Running restarts=1
            on-success w1 Succeeded
            after 8s
            always w1 Running restarts=2
            on-failure w1 Running restarts=2
            on-success w1 Succeeded
            after 22s
            always w1 Running restarts=3
            on-failure w1 Running restarts=3
            on-success w1 Succeeded
            after 60s
            always w1 Running restarts=4
            on-failure w1 Running restarts=4
            on-success w1 Succeeded
        "#]],
    );
}

#[test]
fn a_dead_node_says_nothing_and_its_containers_are_gone_when_it_is_back() {
    check(
        async |story: Story| {
            for name in ["cut", "dead"] {
                story.node(name, "cpu=4").await;
                story.seconds(1).await;
                bound(&story, &format!("{name}-job"), name, "cpu=1", json!({ "soroi.dev/run-for": "60s" }))
                    .await;
                let service = json!({ "spec": { "nodeName": name, "restartPolicy": "Always" } });
                story.pod(&format!("{name}-service"), "cpu=1", service).await;
            }
            story.seconds(1).await;
            let tell_kubelet = |name: &str, value: &str| {
                let patch = json!({ "metadata": { "annotations": { "soroi.dev/kubelet": value } } });
                (format!("/api/v1/nodes/{name}"), patch)
            };
            for (path, patch) in [tell_kubelet("cut", "unreachable"), tell_kubelet("dead", "dead")] {
                story.patch(&path, patch).await;
            }
            story.seconds(100).await;
            bound(&story, "newcomer", "dead", "cpu=1", json!({})).await;
            story.delete("/api/v1/namespaces/default/pods/cut-service").await;
            story.seconds(1).await;
            let mut told = story.pods().await;
            for (path, patch) in [tell_kubelet("cut", "alive"), tell_kubelet("dead", "alive")] {
                story.patch(&path, patch).await;
            }
            story.seconds(1).await;
            told += "back\n";
            told + &story.pods().await
        },
        expect![[r#"
            cut-job cut Running ready
            cut-service cut Running ready terminating
            dead-job dead Running ready
            dead-service dead Running ready
            newcomer dead Pending
            back
            cut-job cut Succeeded
            dead-job dead Failed
            dead-service dead Running ready restarts=1
            newcomer dead Running ready
        "#]],
    );
}

#[test]
fn a_condition_that_somebody_else_has_set_stays() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let ready = json!({ "type": "Ready", "status": "Unknown", "reason": "SetByCase", "message": "" });
            story.patch("/api/v1/nodes/w1/status", json!({ "status": { "conditions": [ready] } })).await;
            story.seconds(100).await;
            story.nodes().await
        },
        expect![[r#"
            w1 Ready=Unknown node.kubernetes.io/not-ready:NoSchedule
        "#]],
    );
}

#[test]
fn an_annotation_that_cannot_be_read_is_named() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            bound(&story, "odd", "w1", "cpu=1", json!({ "soroi.dev/run-for": "a while" })).await;
            story.seconds(1).await;
            story.pods().await + &story.events().await
        },
        expect![[r#"
            odd w1 Running ready
            Warning InvalidAnnotation odd: annotation soroi.dev/run-for is not understood and left out (x1)
        "#]],
    );
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let options = Options { seed, parts: KUBELETS, ..Options::default() };
        crate::story::tell_with(options, async |story: Story| {
            for node in ["w1", "w2"] {
                story.node(node, "cpu=4").await;
            }
            story.seconds(1).await;
            for number in 0..20 {
                let node = if number % 3 == 0 { "w1" } else { "w2" };
                bound(&story, &format!("p{number}"), node, "cpu=1", json!({ "soroi.dev/run-for": "3s" }))
                    .await;
            }
            story.seconds(5).await;
            story.get("/api/v1/pods").await.to_string() + &story.get("/api/v1/nodes").await.to_string()
        })
    };
    assert_eq!(run(1), run(1));
}
