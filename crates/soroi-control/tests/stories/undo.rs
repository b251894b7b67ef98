//! Admissions that cannot be carried out, and gangs that lose members.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use expect_test::expect;
use serde_json::json;
use soroi_apiserver::{Admission, AdmissionRequest, AdmissionResponse, Operation};
use soroi_control::Config;
use soroi_embedded::Options;

use crate::story::{CLUSTER, Story, calm, job, play, play_on};

/// Refuses all but one pod of the Job `train`, as a ResourceQuota does, while it is on.
struct Quota(Arc<AtomicBool>);

impl Admission for Quota {
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse {
        let pod = request.resource == "pods" && request.subresource.is_empty();
        let job = request.object.map(|object| &object["metadata"]["labels"]["job-name"]);
        let hit = job.is_some_and(|job| job == "train") && request.operation == Operation::Create;
        if pod && hit && self.0.load(Ordering::Relaxed) {
            return AdmissionResponse::forbid("exceeded quota: pods");
        }
        AdmissionResponse::allow()
    }
}

#[test]
fn a_gang_whose_pods_cannot_be_created_gives_everything_back() {
    let quota = Arc::new(AtomicBool::new(true));
    let options = Options { admission: vec![Arc::new(Quota(Arc::clone(&quota)))], ..Options::default() };
    play_on(Config::default(), options, |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        story.create(&job("small", 2)).await;
        story.wait(50).await;
        story.see(expect![[r#"
            job       small        suspended    active 0 succeeded 0
            job       train        released     active 0 succeeded 0
            workload  job-small-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not PodsReady (Not all pods are ready or succeeded)
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); not PodsReady (Not all pods are ready or succeeded)
            plan      job-train-…  Committed    4 pods
            queue     gpu-queue    pending 1 admitted 1 gpu 4
        "#]]).await;
        story.wait(20).await;
        story.see(expect![[r#"
            pod       small-…      worker1      Running
            pod       small-…      worker1      Running
            job       small        released     active 2 succeeded 0
            job       train        suspended    active 0 succeeded 0
            workload  job-small-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded)
            plan      job-small-…  Settled      2 pods
            queue     gpu-queue    pending 1 admitted 1 gpu 2
        "#]]).await;
        quota.store(false, Ordering::Relaxed);
        story.delete("/apis/batch/v1/namespaces/default/jobs/small").await;
        story.wait(120).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
        expect![[r#"
            Normal  Admitted: Admitted by ClusterQueue gpu-queue, wait time since reservation was 0s (x2)
            Normal  QuotaReserved: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 0s
            Warning AdmissionUndone: Exceeded the PodsReady timeout default/job-train-…: 0 of 4 pods exist
            Warning Pending: pausing before it is tried again
            Warning Pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
            Normal  QuotaReserved: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 75s
        "#]].assert_eq(&story.events("Workload", "job-train-…").await);
    });
}

#[test]
fn a_template_is_restored_exactly() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let spec = json!({ "spec": { "nodeLabels": { "pool": "gpu" }, "tolerations": [
            { "key": "gpu", "operator": "Exists", "effect": "NoSchedule" },
        ]}});
        for node in ["worker1", "worker2"] {
            story
                .patch(
                    &format!("/api/v1/nodes/{node}"),
                    &json!({ "metadata": { "labels": { "pool": "gpu" } } }),
                )
                .await;
        }
        story.patch("/apis/kueue.x-k8s.io/v1beta2/resourceflavors/default-flavor", &spec).await;
        story.create(&job("train", 4)).await;
        story.wait(1).await;
        story.wait(5).await;
        let path = "/apis/batch/v1/jobs";
        let shown = |template: &serde_json::Value| {
            let spec = &template["spec"];
            let parts = json!([template["metadata"], spec["nodeSelector"], spec["tolerations"]]);
            calm(&format!("{parts:#}"))
        };
        let released = story.list(path).await.remove(0)["spec"]["template"].clone();
        expect![[r#"
            [
              {
                "annotations": {
                  "kueue.x-k8s.io/workload": "job-train-…"
                },
                "labels": {
                  "batch.kubernetes.io/controller-uid": "…",
                  "batch.kubernetes.io/job-name": "train",
                  "controller-uid": "…",
                  "job-name": "train",
                  "kueue.x-k8s.io/cluster-queue-name": "gpu-queue",
                  "kueue.x-k8s.io/local-queue-name": "team-a",
                  "kueue.x-k8s.io/podset": "main",
                  "soroi.dev/gang": "…"
                }
              },
              {
                "pool": "gpu"
              },
              [
                {
                  "effect": "NoSchedule",
                  "key": "gpu",
                  "operator": "Exists"
                }
              ]
            ]"#]]
        .assert_eq(&shown(&released));
        let workload = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await.remove(0);
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        let off = json!({ "spec": { "active": false } });
        story.patch(&format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{name}"), &off).await;
        story.wait(60).await;
        let restored = story.list(path).await.remove(0)["spec"]["template"].clone();
        expect![[r#"
            [
              {
                "labels": {
                  "batch.kubernetes.io/controller-uid": "…",
                  "batch.kubernetes.io/job-name": "train",
                  "controller-uid": "…",
                  "job-name": "train"
                }
              },
              null,
              null
            ]"#]]
        .assert_eq(&shown(&restored));
    });
}

#[test]
fn a_lost_member_is_replaced_on_another_node() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(&CLUSTER[..CLUSTER.find("---").unwrap()].replace("worker1", "worker3")).await;
        let mut train = job("train", 4);
        train["spec"]["backoffLimit"] = json!(6);
        story.create(&train).await;
        story.wait(5).await;
        let pod = story.list("/api/v1/pods").await.remove(0);
        let (name, node) =
            (pod["metadata"]["name"].as_str().unwrap(), pod["spec"]["nodeName"].as_str().unwrap());
        story.patch(&format!("/api/v1/nodes/{node}"), &json!({ "spec": { "unschedulable": true } })).await;
        story.delete(&format!("/api/v1/namespaces/default/pods/{name}")).await;
        story.wait(30).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            pod       train-…      worker3      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}

const QUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue";

/// The article's cluster, whose queue asks for an admission check that nobody answers.
async fn ask_for_check(story: &Story) {
    story
        .create(&json!({
            "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck",
            "metadata": { "name": "budget" }, "spec": { "controllerName": "example.com/budget" },
        }))
        .await;
    let active = json!({ "status": { "conditions": [{
        "type": "Active", "status": "True", "reason": "Active", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }]}});
    story.patch("/apis/kueue.x-k8s.io/v1beta2/admissionchecks/budget/status", &active).await;
    story.apply(CLUSTER).await;
    let checks =
        json!({ "spec": { "admissionChecksStrategy": { "admissionChecks": [{ "name": "budget" }] } } });
    story.patch(QUEUE, &checks).await;
}

#[test]
fn admission_checks_hold_quota_until_they_are_ready() {
    play(Config::default(), |mut story| async move {
        ask_for_check(&story).await;
        story.create(&job("train", 4)).await;
        story.wait(100).await;
        story
            .see(expect![[r#"
                job       train        suspended    active 0 succeeded 0
                workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); not PodsReady (Not all pods are ready or succeeded)
                queue     gpu-queue    pending 0 admitted 0 gpu 0
            "#]])
            .await;
        let workload = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await.remove(0);
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        let ready = json!({ "status": { "admissionChecks": [{
            "name": "budget", "state": "Ready", "message": "", "lastTransitionTime": "2026-01-01T00:01:40Z",
        }]}});
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{name}/status");
        story.patch(&path, &ready).await;
        story.wait(10).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}

#[test]
fn a_check_that_is_not_asked_for_any_more_holds_nobody_back() {
    play(Config::default(), |mut story| async move {
        ask_for_check(&story).await;
        story.create(&job("train", 4)).await;
        story.wait(10).await;
        story
            .see(expect![[r#"
                job       train        suspended    active 0 succeeded 0
                workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); not PodsReady (Not all pods are ready or succeeded)
                queue     gpu-queue    pending 0 admitted 0 gpu 0
            "#]])
            .await;
        story.patch(QUEUE, &json!({ "spec": { "admissionChecksStrategy": null } })).await;
        story.wait(10).await;
        story
            .see(expect![[r#"
                pod       train-…      worker1      Running
                pod       train-…      worker1      Running
                pod       train-…      worker2      Running
                pod       train-…      worker2      Running
                job       train        released     active 4 succeeded 0
                workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
                plan      job-train-…  Settled      4 pods
                queue     gpu-queue    pending 0 admitted 1 gpu 4
            "#]])
            .await;
    });
}
