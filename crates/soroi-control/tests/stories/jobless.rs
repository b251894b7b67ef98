//! Workloads whose jobs somebody else plays.

use expect_test::expect;
use serde_json::{Value, json};
use soroi_control::Config;

use crate::story::{CLUSTER, play};

const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads";

fn workload(name: &str, pods: u32, owned: bool) -> Value {
    let container =
        json!({ "name": "c", "image": "none", "resources": { "requests": { "example.com/gpu": "1" } } });
    let template = json!({ "spec": { "restartPolicy": "Never", "containers": [container] } });
    let owner = json!({
        "apiVersion": "example.com/v1", "kind": "Train", "name": name, "uid": format!("uid-{name}"),
        "controller": true,
    });
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": name, "namespace": "default",
            "ownerReferences": if owned { vec![owner] } else { Vec::new() },
        },
        "spec": {
            "queueName": "team-a", "podSets": [{ "name": "main", "count": pods, "template": template }],
        },
    })
}

#[test]
fn who_stops_its_own_pods_gives_quota_back_itself() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&workload("owned", 4, true)).await;
        story.wait(2).await;
        story.create(&workload("next", 4, false)).await;
        story.wait(2).await;
        let off = json!({ "spec": { "active": false } });
        story.patch(&format!("{WORKLOADS}/owned"), &off).await;
        story.wait(10).await;
        // Its pods may still run: their quota is nobody else's.
        story.see(expect![[r#"
            workload  next         not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 4 more needed)
            workload  owned        QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); Evicted (The workload is deactivated)
            queue     gpu-queue    pending 1 admitted 1 gpu 4
        "#]]).await;
        let reserved = json!({
            "type": "QuotaReserved", "status": "False", "reason": "Pending", "message": "its pods are gone",
            "lastTransitionTime": "2026-01-01T00:00:15Z",
        });
        let given_back = json!({ "status": { "admission": null, "conditions": [reserved] } });
        story.patch(&format!("{WORKLOADS}/owned/status"), &given_back).await;
        story.wait(2).await;
        story.see(expect![[r#"
            workload  next         QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted)
            workload  owned        not QuotaReserved (The workload is deactivated); Evicted (The workload is deactivated)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}

#[test]
fn who_is_deactivated_while_it_waits_is_evicted() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&workload("runs", 4, false)).await;
        story.wait(2).await;
        story.create(&workload("waits", 4, false)).await;
        story.wait(2).await;
        story.patch(&format!("{WORKLOADS}/waits"), &json!({ "spec": { "active": false } })).await;
        story.wait(2).await;
        story.see(expect![[r#"
            workload  runs         QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted)
            workload  waits        not QuotaReserved (The workload is deactivated); Evicted (The workload is deactivated)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
        story.patch(&format!("{WORKLOADS}/waits"), &json!({ "spec": { "active": true } })).await;
        story.delete(&format!("{WORKLOADS}/runs")).await;
        story.wait(2).await;
        story.see(expect![[r#"
            workload  waits        QuotaReserved (Quota reserved in ClusterQueue gpu-queue); not Evicted (Previously: The workload is deactivated); Admitted (The workload is admitted)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}
