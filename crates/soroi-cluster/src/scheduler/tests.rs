//! Stories of pods that look for a node.

use expect_test::{Expect, expect};
use serde_json::json;

use crate::Parts;
use crate::story::{Story, tell};

const PARTS: Parts = Parts { kubelets: true, lifecycle: true, scheduler: true, ..Parts::NONE };

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(PARTS, story));
}

#[test]
fn pods_spread_over_nodes_and_those_that_find_none_say_why() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4 memory=8Gi example.com/gpu=2").await;
            story.node("w2", "cpu=4 memory=8Gi example.com/gpu=2").await;
            story.node("w3", "cpu=4 memory=8Gi").await;
            story.patch("/api/v1/nodes/w3", json!({ "spec": { "unschedulable": true } })).await;
            story.seconds(1).await;
            for name in ["a", "b", "c", "d", "e"] {
                story.pod(name, "example.com/gpu=1", json!({})).await;
            }
            story.seconds(3).await;
            let mut told = story.pods().await;
            let waiting = story.get("/api/v1/namespaces/default/pods/e").await;
            let conditions = waiting["status"]["conditions"].as_array().unwrap();
            for condition in conditions {
                told += &format!(
                    "{} {} {} {}\n",
                    condition["type"], condition["status"], condition["reason"], condition["message"]
                );
            }
            told + &story.events().await
        },
        expect![[r#"
            a w1 Running ready
            b w2 Running ready
            c w1 Running ready
            d w2 Running ready
            e - Pending
            "PodScheduled" "False" "Unschedulable" "0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient example.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod."
            Normal Scheduled a: Successfully assigned default/a to w1 (x1)
            Normal Scheduled b: Successfully assigned default/b to w2 (x1)
            Normal Scheduled c: Successfully assigned default/c to w1 (x1)
            Normal Scheduled d: Successfully assigned default/d to w2 (x1)
            Warning FailedScheduling e: 0/3 nodes are available: 1 node(s) were unschedulable, 2 Insufficient example.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod. (x1)
        "#]],
    );
}

#[test]
fn a_waiting_pod_is_placed_when_room_appears() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=2").await;
            story.seconds(1).await;
            story
                .pod(
                    "first",
                    "cpu=2",
                    json!({ "metadata": { "annotations": { "soroi.dev/run-for": "30s" } } }),
                )
                .await;
            story.pod("second", "cpu=2", json!({})).await;
            story.pod("third", "cpu=2", json!({})).await;
            story.seconds(29).await;
            let mut told = story.pods().await;
            story.seconds(13).await;
            told += &format!("an end\n{}", story.pods().await);
            story.node("w2", "cpu=2").await;
            story.seconds(11).await;
            told += &format!("a new node\n{}", story.pods().await);
            told
        },
        expect![[r#"
            first w1 Running ready
            second - Pending
            third - Pending
            an end
            first w1 Succeeded
            second w1 Running ready
            third - Pending
            a new node
            first w1 Succeeded
            second w1 Running ready
            third w2 Running ready
        "#]],
    );
}

#[test]
fn priority_goes_first_and_gates_are_respected() {
    check(
        async |story: Story| {
            for (name, value) in [("low", 1), ("high", 100)] {
                let class = json!({ "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
                                    "metadata": { "name": name }, "value": value });
                story.create("/apis/scheduling.k8s.io/v1/priorityclasses", class).await;
                story.pod(name, "cpu=2", json!({ "spec": { "priorityClassName": name } })).await;
            }
            story
                .pod(
                    "gated",
                    "cpu=1",
                    json!({ "spec": { "schedulingGates": [{ "name": "example.com/wait" }] } }),
                )
                .await;
            story.pod("other", "cpu=1", json!({ "spec": { "schedulerName": "soroi" } })).await;
            story.seconds(2).await;
            story.node("w1", "cpu=3").await;
            story.seconds(12).await;
            let mut told = story.pods().await;
            story
                .patch("/api/v1/namespaces/default/pods/gated", json!({ "spec": { "schedulingGates": [] } }))
                .await;
            story.seconds(2).await;
            told += "ungated\n";
            told + &story.pods().await
        },
        expect![[r#"
            gated - Pending
            high w1 Running ready
            low - Pending
            other - Pending
            ungated
            gated w1 Running ready
            high w1 Running ready
            low - Pending
            other - Pending
        "#]],
    );
}

#[test]
fn selectors_affinity_taints_ports_and_slots_are_respected() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4 pods=2").await;
            story.node("w2", "cpu=4").await;
            story.node("w3", "cpu=4").await;
            story.seconds(1).await;
            story.patch("/api/v1/nodes/w1", json!({ "metadata": { "labels": { "zone": "a" } } })).await;
            let taint = json!([{ "key": "team", "value": "x", "effect": "NoSchedule" }]);
            story.patch("/api/v1/nodes/w2", json!({ "spec": { "taints": taint } })).await;
            story.seconds(1).await;
            let zone_a = json!({ "spec": { "nodeSelector": { "zone": "a" } } });
            for name in ["slot-1", "slot-2", "slot-3"] {
                story.pod(name, "cpu=100m", zone_a.clone()).await;
            }
            let tolerant = json!({ "spec": { "tolerations": [{ "key": "team", "operator": "Exists" }],
                                             "nodeSelector": { "kubernetes.io/hostname": "w2" } } });
            story.pod("tolerant", "cpu=1", tolerant).await;
            let port = json!({ "spec": { "hostNetwork": true, "containers": [{ "name": "main", "image": "app", "ports": [{ "containerPort": 80, "hostPort": 80 }] }] } });
            story.pod("web-1", "", port.clone()).await;
            story.pod("web-2", "", port).await;
            let prefer = json!({ "spec": {
                "tolerations": [{ "key": "team", "operator": "Exists" }],
                "affinity": { "nodeAffinity": { "preferredDuringSchedulingIgnoredDuringExecution": [
                    { "weight": 100, "preference": { "matchExpressions": [{ "key": "kubernetes.io/hostname", "operator": "In", "values": ["w2"] }] } }
                ] } },
            } });
            story.pod("prefers-w2", "cpu=1", prefer).await;
            story.seconds(2).await;
            let events = story.events().await;
            let failed: Vec<_> = events.lines().filter(|line| line.contains("Failed")).collect();
            story.pods().await + &failed.join("\n") + "\n"
        },
        expect![[r#"
            prefers-w2 w2 Running ready
            slot-1 w1 Running ready
            slot-2 w1 Running ready
            slot-3 - Pending
            tolerant w2 Running ready
            web-1 w3 Running ready
            web-2 - Pending
            Warning FailedScheduling slot-3: 0/3 nodes are available: 1 Too many pods, 1 node(s) didn't match Pod's node affinity/selector, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, 2 Preemption is not helpful for scheduling. (x1)
            Warning FailedScheduling web-2: 0/3 nodes are available: 1 Too many pods, 1 node(s) didn't have free ports for the requested pod ports, 1 node(s) had untolerated taint(s). no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod. (x1)
        "#]],
    );
}

#[test]
fn what_it_has_assumed_is_not_given_away_twice() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=40").await;
            story.node("w2", "cpu=40").await;
            story.seconds(1).await;
            for number in 0..100 {
                story.pod(&format!("p{number:02}"), "cpu=1", json!({})).await;
            }
            story.seconds(5).await;
            let pods = story.pods().await;
            let count = |text: &str| pods.lines().filter(|line| line.contains(text)).count();
            format!(
                "w1 {} w2 {} running {} refused {} waiting {}\n",
                count(" w1 "),
                count(" w2 "),
                count("Running"),
                count("OutOf"),
                count(" - ")
            )
        },
        expect![[r#"
            w1 40 w2 40 running 80 refused 0 waiting 20
        "#]],
    );
}
