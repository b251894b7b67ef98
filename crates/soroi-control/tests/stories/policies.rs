//! The hog's story under the other policies.

use expect_test::{Expect, expect};
use serde_json::json;
use soroi_control::Config;
use soroi_engine::decision::Settings;
use soroi_engine::event::Policy;

use crate::story::{CLUSTER, HOG, job, play};

fn under(policy: Policy, with_hog: Expect, without: Expect) {
    let settings = Settings { placement: policy, ..Settings::default() };
    play(Config { settings, ..Config::default() }, |mut story| async move {
        story.apply(CLUSTER).await;
        if policy == Policy::TopologyOnly {
            story
                .create(&json!({
                    "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology",
                    "metadata": { "name": "hosts" },
                    "spec": { "levels": [{ "nodeLabel": "kubernetes.io/hostname" }] },
                }))
                .await;
            for node in ["worker1", "worker2"] {
                let labels = json!({ "metadata": { "labels": { "pool": "gpu" } } });
                story.patch(&format!("/api/v1/nodes/{node}"), &labels).await;
            }
            let spec = json!({ "spec": { "topologyName": "hosts", "nodeLabels": { "pool": "gpu" } } });
            story.patch("/apis/kueue.x-k8s.io/v1beta2/resourceflavors/default-flavor", &spec).await;
        }
        story.apply(HOG).await;
        story.wait(1).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        story.create(&job("small", 2)).await;
        story.wait(10).await;
        story.see(with_hog).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.delete("/apis/batch/v1/namespaces/default/jobs/small").await;
        story.wait(10).await;
        story.see(without).await;
    });
}

#[test]
fn quota_only_burns_three_gpus() {
    under(
        Policy::QuotaOnly,
        expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       train-…      -            Pending
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       small        suspended    active 0 succeeded 0
            job       train        released     active 4 succeeded 0
            workload  job-small-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not PodsReady (Not all pods are ready or succeeded)
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 1 gpu 4
        "#]],
        expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]],
    );
}

#[test]
fn after_admission_holds_quota_for_pods_that_wait() {
    under(
        Policy::AfterAdmission,
        expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       train-…      -            Pending
            pod       train-…      -            Pending
            pod       train-…      -            Pending
            pod       train-…      -            Pending
            job       small        suspended    active 0 succeeded 0
            job       train        released     active 4 succeeded 0
            workload  job-small-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not PodsReady (Not all pods are ready or succeeded)
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 1 gpu 4
        "#]],
        expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]],
    );
}

#[test]
fn topology_only_waits_and_pins() {
    under(
        Policy::TopologyOnly,
        expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       small-…      worker2      Running
            pod       small-…      worker2      Running
            job       small        released     active 2 succeeded 0
            job       train        suspended    active 0 succeeded 0
            workload  job-small-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 1 gpu 2
        "#]],
        expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]],
    );
}
