//! PodGroups: pods that exist and wait, until all of them have a place.

use expect_test::expect;
use serde_json::json;
use soroi_control::Config;

use crate::story::{CLUSTER, HOG, group, job, member, play};

#[test]
fn a_group_is_bound_as_a_whole() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story.create(&group("train", 4)).await;
        for index in 0..4 {
            story.create(&member("train", index)).await;
        }
        story.wait(10).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       train-0      -            Pending
            pod       train-1      -            Pending
            pod       train-2      -            Pending
            pod       train-3      -            Pending
            podgroup  train        Pending      Unschedulable: 1/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. Origin reason is train-3: 0/2 nodes are unavailable: 2 Insufficient example.com/gpu.
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(2).await;
        story
            .see(expect![[r#"
            pod       train-0      worker1      Running
            pod       train-1      worker1      Running
            pod       train-2      worker2      Running
            pod       train-3      worker2      Running
            podgroup  train        Running      Scheduled:
            plan      train        Settled      4 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
        expect![[r#"
            Warning Unschedulable: 4/4 tasks in gang unschedulable: pod group is not ready, 4 Pending, 4 minAvailable; Pending: 1 Unschedulable, 3 Schedulable. Origin reason is train-3: 0/2 nodes are unavailable: 2 Insufficient example.com/gpu.
            Warning Unschedulable: Not enough valid tasks for gang-scheduling, valid: 1, min: 4
            Normal  Scheduled: pod group is ready
        "#]].assert_eq(&story.events("PodGroup", "train").await);
    });
}

#[test]
fn a_pod_beyond_the_minimum_waits_without_harm_to_its_group() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&group("train", 4)).await;
        for index in 0..4 {
            story.create(&member("train", index)).await;
        }
        story.wait(3).await;
        story.create(&member("train", 4)).await;
        story.wait(3).await;
        story
            .see(expect![[r#"
            pod       train-0      worker1      Running
            pod       train-1      worker1      Running
            pod       train-2      worker2      Running
            pod       train-3      worker2      Running
            pod       train-4      -            Pending
            podgroup  train        Running      Scheduled:
            plan      train        Settled      4 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
        story.delete("/api/v1/namespaces/default/pods/train-4").await;
        story.wait(3).await;
        story
            .see(expect![[r#"
            pod       train-0      worker1      Running
            pod       train-1      worker1      Running
            pod       train-2      worker2      Running
            pod       train-3      worker2      Running
            podgroup  train        Running      Scheduled:
            plan      train        Settled      4 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
    });
}

#[test]
fn a_group_waits_for_its_members() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&group("train", 3)).await;
        for index in 0..2 {
            story.create(&member("train", index)).await;
        }
        story.wait(3).await;
        story.see(expect![[r#"
            pod       train-0      -            Pending
            pod       train-1      -            Pending
            podgroup  train        Pending      Unschedulable: Not enough valid tasks for gang-scheduling, valid: 2, min: 3
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        story.create(&member("train", 2)).await;
        story.wait(3).await;
        story
            .see(expect![[r#"
            pod       train-0      worker1      Running
            pod       train-1      worker1      Running
            pod       train-2      worker2      Running
            podgroup  train        Running      Scheduled:
            plan      train        Settled      3 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
    });
}

#[test]
fn a_group_with_a_queue_name_has_one_workload() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        let mut train = group("train", 3);
        train["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "team-a" });
        story.create(&train).await;
        for index in 0..3 {
            story.create(&member("train", index)).await;
        }
        story.wait(3).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       train-0      worker1      Running
            pod       train-1      worker2      Running
            pod       train-2      worker2      Running
            workload  podgroup-train-… QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            podgroup  train        Running      Scheduled:
            plan      train        Settled      3 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 3
        "#]]).await;
        for index in 0..3 {
            story.delete(&format!("/api/v1/namespaces/default/pods/train-{index}")).await;
        }
        story.wait(3).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            workload  podgroup-train-… not QuotaReserved (The group has no pods that could run); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded)
            podgroup  train        Pending      Unschedulable: Not enough valid tasks for gang-scheduling, valid: 0, min: 3
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
    });
}

#[test]
fn jobs_that_name_one_group_start_together() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story.create(&group("both", 4)).await;
        for name in ["left", "right"] {
            let mut one = job(name, 2);
            one["spec"]["template"]["metadata"] =
                json!({ "annotations": { "scheduling.k8s.io/group-name": "both" } });
            story.create(&one).await;
        }
        story.wait(5).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            job       left         suspended    active 0 succeeded 0
            job       right        suspended    active 0 succeeded 0
            workload  job-left-…   not QuotaReserved (couldn't assign flavors to pod set main-…: nodes of flavor default-flavor allow to fit only 1 out of 2 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu); not PodsReady (Not all pods are ready or succeeded)
            workload  job-right-…  not QuotaReserved (couldn't assign flavors to pod set main-…: nodes of flavor default-flavor allow to fit only 1 out of 2 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu); not PodsReady (Not all pods are ready or succeeded)
            podgroup  both         Pending      Unschedulable: 4/0 tasks in gang unschedulable: pod group is not ready, 4 minAvailable. Origin reason is: couldn't assign flavors to pod set main-…: nodes of flavor default-flavor allow to fit only 1 out of 2 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            queue     gpu-queue    pending 2 admitted 0 gpu 0
        "#]]).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(5).await;
        story.see(expect![[r#"
            pod       left-…       worker1      Running
            pod       left-…       worker1      Running
            pod       right-…      worker2      Running
            pod       right-…      worker2      Running
            job       left         released     active 2 succeeded 0
            job       right        released     active 2 succeeded 0
            workload  job-left-…   QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            workload  job-right-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            podgroup  both         Running      Scheduled:
            plan      both         Settled      4 pods
            queue     gpu-queue    pending 0 admitted 2 gpu 4
        "#]]).await;
    });
}

#[test]
fn a_pod_of_volcano_without_a_group_gets_one() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let mut pod = member("lone", 0);
        pod["metadata"]["annotations"] = json!({});
        story.create(&pod).await;
        let mut pod = member("ours", 0);
        pod["metadata"]["annotations"] = json!({});
        pod["spec"]["schedulerName"] = "soroi".into();
        story.create(&pod).await;
        story.wait(3).await;
        story
            .see(expect![[r#"
            pod       lone-0       worker1      Running
            pod       ours-0       worker1      Running
            podgroup  podgroup-… Running      Scheduled:
            plan      podgroup-…   Settled      1 pods
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
    });
}

#[test]
fn a_first_start_does_not_complain_of_queues_that_it_makes_itself() {
    play(Config::default(), |mut story| async move {
        story.crash().await;
        story.apply(CLUSTER).await;
        story.create(&group("train", 2)).await;
        for index in 0..2 {
            story.create(&member("train", index)).await;
        }
        story.start();
        story.wait(3).await;
        expect![[r#"
            Normal  Scheduled: pod group is ready
        "#]]
        .assert_eq(&story.events("PodGroup", "train").await);
    });
}
