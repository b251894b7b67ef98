//! The hog: a pod that nobody queues takes a GPU, and a gang of four waits with nothing held.

use expect_test::expect;
use soroi_control::Config;
use soroi_testkit::wire::{Trouble, Wire};

use crate::story::{CLUSTER, HOG, calm, job, play};

#[test]
fn a_job_waits_without_pods_and_starts_as_a_whole() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        story.apply(HOG).await;
        story.create(&job("train", 4)).await;
        story.create(&job("small", 2)).await;
        story.wait(10).await;
        story.see(expect![[r#"
            pod       gpu-hog      worker1      Running
            pod       small-…      worker2      Running
            pod       small-…      worker2      Running
            job       small        released     active 2 succeeded 0
            job       train        suspended    active 0 succeeded 0
            workload  job-small-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed); not PodsReady (Not all pods are ready or succeeded)
            plan      job-small-…  Settled      2 pods
            queue     gpu-queue    pending 1 admitted 1 gpu 2
        "#]]).await;
        expect![[r#"
            Warning Pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
            Warning Pending: couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
        "#]].assert_eq(&story.events("Workload", "job-train-…").await);
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.delete("/apis/batch/v1/namespaces/default/jobs/small").await;
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
        expect![[r#"
            Warning Pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
            Warning Pending: couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            Normal  Admitted: Admitted by ClusterQueue gpu-queue, wait time since reservation was 0s
            Normal  QuotaReserved: Quota reserved in ClusterQueue gpu-queue, wait time since queued was 10s
        "#]].assert_eq(&story.events("Workload", "job-train-…").await);
        expect![[r#"
            Normal  CreatedWorkload: Created Workload: default/job-train-…
            Normal  Suspended: Job suspended
            Normal  Resumed: Job resumed
            Normal  Started: Admitted by clusterQueue gpu-queue
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
            Normal  SuccessfulCreate: Created pod: train-…
        "#]]
        .assert_eq(&story.events("Job", "train").await);
    });
}

#[test]
fn between_the_hogs_end_and_the_last_bind_is_nothing_that_could_wait() {
    play(Config::default(), |mut story| async move {
        story.crash().await;
        story.apply(CLUSTER).await;
        let wire = Wire::new(story.clock.clone(), Trouble::None);
        story.start_on(&wire);
        story.apply(HOG).await;
        story.create(&job("train", 4)).await;
        story.wait(10).await;
        let before = wire.writes();
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(5).await;
        let log = wire.log();
        let writes: Vec<&str> =
            log.iter().map(String::as_str).filter(|line| !line.starts_with("GET")).collect();
        let since = writes.len() - usize::try_from(wire.writes() - before).unwrap();
        expect![[r#"
            POST /apis/soroi.dev/v1alpha1/namespaces/default/gangplans: 201 Carried
            PATCH /apis/batch/v1/namespaces/default/jobs/train: 200 Carried
            PATCH /apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/job-train-…/status: 200 Carried
            POST /api/v1/namespaces/default/pods/train-…/binding: 201 Carried
            POST /api/v1/namespaces/default/pods/train-…/binding: 201 Carried
            POST /api/v1/namespaces/default/pods/train-…/binding: 201 Carried
            POST /api/v1/namespaces/default/pods/train-…/binding: 201 Carried
            PATCH /apis/soroi.dev/v1alpha1/namespaces/default/gangplans/…: 200 Carried
            PATCH /apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue/status: 200 Carried
            PATCH /apis/kueue.x-k8s.io/v1beta2/namespaces/default/localqueues/team-a/status: 200 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            POST /apis/events.k8s.io/v1/namespaces/default/events: 201 Carried
            PATCH /apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/job-train-…/status: 200 Carried"#]].assert_eq(&calm(&writes[since..].join("\n")));
    });
}
