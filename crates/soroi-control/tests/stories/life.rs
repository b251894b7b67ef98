//! From creation to the end, and what users do in between.

use expect_test::expect;
use serde_json::json;
use soroi_control::Config;
use soroi_embedded::Options;

use crate::story::{CLUSTER, HOG, job, play, play_on};

const TRAIN: &str = "/apis/batch/v1/namespaces/default/jobs/train";

#[test]
fn a_finished_job_leaves_nothing() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let mut train = job("train", 4);
        train["spec"]["template"]["metadata"] = json!({ "annotations": { "soroi.dev/run-for": "30s" } });
        story.create(&train).await;
        story.wait(5).await;
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
        story.wait(60).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Succeeded
            pod       train-…      worker1      Succeeded
            pod       train-…      worker2      Succeeded
            pod       train-…      worker2      Succeeded
            job       train        released     active 0 succeeded 4
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running); Finished (Reached expected number of succeeded pods)
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        expect![[r#"
            Normal  CreatedWorkload: Created Workload: default/job-train-…
            Normal  Resumed: Job resumed
            Normal  Started: Admitted by clusterQueue gpu-queue
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  Suspended: Job suspended
            Normal  Completed: Job completed
            Normal  FinishedWorkload: Workload 'default/job-train-…' is declared finished
        "#]]
        .assert_eq(&story.events("Job", "train").await);
    });
}

#[test]
fn the_workload_of_a_deleted_job_does_not_wait_for_a_garbage_collector() {
    let mut options = Options::default();
    options.cluster.parts.garbage = false;
    play_on(Config::default(), options, |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.create(&job("next", 4)).await;
        story.wait(5).await;
        story.delete(TRAIN).await;
        story.delete("/apis/batch/v1/namespaces/default/jobs/next").await;
        story.wait(5).await;
        // Its pods are the garbage collector's, and hold the quota until they are gone.
        story
            .see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 4
        "#]])
            .await;
    });
}

#[test]
fn a_deleted_job_leaves_nothing() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        story.delete(TRAIN).await;
        story.wait(40).await;
        story
            .see(expect![[r#"
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
    });
}

#[test]
fn a_deleted_workload_stops_its_job_and_comes_again() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        let workload = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await.remove(0);
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        story.delete(&format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{name}")).await;
        story.wait(60).await;
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

#[test]
fn a_waiting_job_that_is_resumed_by_hand_is_suspended_again() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        story.patch(TRAIN, &json!({ "spec": { "suspend": false } })).await;
        story.wait(40).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
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
fn a_job_that_is_created_running_waits_like_others() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        let mut train = job("train", 4);
        train["spec"]["suspend"] = json!(false);
        story.create(&train).await;
        story.wait(10).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
    });
}

#[test]
fn a_workload_that_is_switched_off_leaves_and_comes_back() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        let workload = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await.remove(0);
        let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{name}");
        story.patch(&path, &json!({ "spec": { "active": false } })).await;
        story.wait(60).await;
        story.see(expect![[r#"
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (The workload is deactivated); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded); Evicted (The workload is deactivated); not Requeued (The workload is deactivated)
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        story.patch(&path, &json!({ "spec": { "active": true } })).await;
        story.wait(60).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       train        released     active 4 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running); not Evicted (Previously: The workload is deactivated); Requeued (The workload was reactivated)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
        expect![[r#"
            Normal  Admitted: Admitted by ClusterQueue gpu-queue, wait time since reservation was 0s (x2)
            Normal  QuotaReserved: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 0s
            Normal  EvictedDueToDeactivated: The workload is deactivated
            Warning Pending: The workload is deactivated
            Normal  QuotaReserved: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 65s
        "#]]
        .assert_eq(&story.events("Workload", "job-train-…").await);
    });
}

#[test]
fn a_job_that_changes_while_it_waits_is_understood_anew() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 5)).await;
        story.wait(5).await;
        story.see(expect![[r#"
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default-flavor, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)); not PodsReady (Not all pods are ready or succeeded)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
        story.patch(TRAIN, &json!({ "spec": { "parallelism": 4 } })).await;
        story.wait(5).await;
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
fn a_missing_queue_is_named() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let mut train = job("train", 4);
        train["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "nobody" });
        story.create(&train).await;
        story.wait(5).await;
        story
            .see(expect![[r#"
                job       train        suspended    active 0 succeeded 0
                workload  job-train-…  not QuotaReserved (LocalQueue nobody doesn't exist); not PodsReady (Not all pods are ready or succeeded)
                queue     gpu-queue    pending 0 admitted 0 gpu 0
            "#]])
            .await;
    });
}

#[test]
fn a_workload_without_a_job_is_admitted_by_its_status() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let template = job("train", 4)["spec"]["template"].clone();
        story
            .create(&json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
                "metadata": { "name": "alone", "namespace": "default" },
                "spec": { "queueName": "team-a", "podSets": [{ "name": "main", "count": 4, "template": template }] },
            }))
            .await;
        story.wait(5).await;
        story.see(expect![[r#"
            workload  alone        QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted)
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
        let queue = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue";
        story.patch(queue, &json!({ "spec": { "stopPolicy": "HoldAndDrain" } })).await;
        story.wait(5).await;
        story.see(expect![[r#"
            workload  alone        not QuotaReserved (ClusterQueue gpu-queue is inactive); not Admitted (The workload has no reservation); Evicted (The ClusterQueue is stopped); not Requeued (The ClusterQueue is stopped)
            queue     gpu-queue    pending 1 admitted 0 gpu 0
        "#]]).await;
    });
}
