//! A run that is steered from outside: admission that does not work yet, and a stop.

use expect_test::expect;
use soroi_control::{Config, Reins};
use tokio::sync::watch;

use crate::story::{CLUSTER, job, play_on};

#[test]
fn nothing_is_released_before_its_pods_would_get_our_scheduler() {
    play_on(Config::default(), Default::default(), |mut story| async move {
        story.crash().await;
        let (works, admission) = watch::channel(false);
        story.start_steered(Reins { admission, ..Reins::default() });
        story.apply(CLUSTER).await;
        story.create(&job("train", 2)).await;
        story.wait(10).await;
        story.see(expect![[r#"
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (waiting until Soroi's admission policy is known to be in force); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
        works.send_replace(true);
        story.wait(5).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            job       train        released     active 2 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            plan      job-train-…  Settled      2 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 2
        "#]]).await;
    });
}

#[test]
fn a_queue_whose_pods_others_bind_does_not_need_admission() {
    play_on(Config::default(), Default::default(), |mut story| async move {
        story.crash().await;
        let (_works, admission) = watch::channel(false);
        story.start_steered(Reins { admission, ..Reins::default() });
        story.apply(CLUSTER).await;
        let queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue";
        let annotations = serde_json::json!({ "soroi.dev/placement": "QuotaOnly" });
        story.create(&job("train", 2)).await;
        story.wait(5).await;
        story.patch(queue, &serde_json::json!({ "metadata": { "annotations": annotations } })).await;
        story.wait(5).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            job       train        released     active 2 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            queue     gpu-queue    pending 0 admitted 1 gpu 2
        "#]]).await;
    });
}

#[test]
fn a_stop_ends_the_run_with_nothing_under_way() {
    play_on(Config::default(), Default::default(), |mut story| async move {
        story.crash().await;
        let (halt, stop) = watch::channel(false);
        story.start_steered(Reins { stop, ..Reins::default() });
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        halt.send_replace(true);
        story.ends().await;
        story.start();
        story.wait(10).await;
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
    });
}
