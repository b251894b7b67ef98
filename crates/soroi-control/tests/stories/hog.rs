//! The hog: a pod that nobody queues takes a GPU, and a gang of four waits with nothing held.

use expect_test::expect;
use serde_json::json;
use soroi_control::Config;

use crate::story::{CLUSTER, HOG, job, play};

#[test]
fn a_group_waits_as_a_whole_and_is_bound_as_a_whole() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story
            .create(&json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
                "metadata": { "name": "train", "namespace": "default" },
                "spec": { "minMember": 4 },
            }))
            .await;
        for index in 0..4 {
            let mut pod = job("train", 4)["spec"]["template"].clone();
            pod["apiVersion"] = "v1".into();
            pod["kind"] = "Pod".into();
            pod["metadata"] = json!({
                "name": format!("train-{index}"), "namespace": "default",
                "annotations": { "scheduling.k8s.io/group-name": "train" },
            });
            pod["spec"]["schedulerName"] = "volcano".into();
            story.create(&pod).await;
        }
        story.wait(10).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       train-0      -            Pending
            pod       train-1      -            Pending
            pod       train-2      -            Pending
            pod       train-3      -            Pending
            podgroup  train        Pending      Unschedulable: 4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable. Origin reason is: Queue default doesn't exist
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(2).await;
        story.see(expect![[r#"
            pod       train-0      -            Pending
            pod       train-1      -            Pending
            pod       train-2      -            Pending
            pod       train-3      -            Pending
            podgroup  train        Pending      Unschedulable: 4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 4 Unschedulable. Origin reason is: Queue default doesn't exist
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
    });
}

#[test]
fn a_job_waits_without_pods_and_starts_as_a_whole() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story.create(&job("train", 4)).await;
        story.wait(10).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: nodes allow to fit only 3 out of 4 pod(s), in flavor default-flavor)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(2).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}
