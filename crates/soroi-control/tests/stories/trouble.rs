//! Bad days: crashes after every single write, lost replies, conflicts.

use std::pin::Pin;

use expect_test::{Expect, expect};
use serde_json::json;
use soroi_control::Config;
use soroi_testkit::wire::{Trouble, Wire};

use crate::story::{CLUSTER, HOG, Story, group, job, member, play};

type Acts = for<'a> fn(&'a mut Story) -> Pin<Box<dyn Future<Output = ()> + 'a>>;

/// A gang that waits for the hog, runs and ends.
fn runs_and_ends(story: &mut Story) -> Pin<Box<dyn Future<Output = ()> + '_>> {
    Box::pin(async move {
        story.apply(HOG).await;
        let mut train = job("train", 4);
        train["spec"]["template"]["metadata"] = json!({ "annotations": { "soroi.dev/run-for": "20s" } });
        story.create(&train).await;
        story.wait(2).await;
        story.delete("/api/v1/namespaces/default/pods/gpu-hog").await;
        story.wait(10).await;
    })
}

/// A gang that runs and is switched off by its user.
fn is_switched_off(story: &mut Story) -> Pin<Box<dyn Future<Output = ()> + '_>> {
    Box::pin(async move {
        story.create(&job("train", 4)).await;
        story.wait(3).await;
        let Some(workload) = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await.pop() else { return };
        let name = workload["metadata"]["name"].as_str().unwrap();
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads/{name}");
        story.patch(&path, &json!({ "spec": { "active": false } })).await;
        story.wait(5).await;
    })
}

/// A group whose pods have a queue-name, on a cluster that has room.
fn is_a_group(story: &mut Story) -> Pin<Box<dyn Future<Output = ()> + '_>> {
    Box::pin(async move {
        let mut train = group("train", 3);
        train["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "team-a" });
        story.create(&train).await;
        for index in 0..3 {
            let mut pod = member("train", index);
            pod["metadata"]["annotations"]["soroi.dev/run-for"] = json!("20s");
            story.create(&pod).await;
        }
        story.wait(5).await;
    })
}

/// Plays the acts once for every write of the product, with a crash right after it, and lets what
/// is left be finished by the product's next life.
fn crash_everywhere(acts: Acts, expected: Expect) {
    let mut writes = 1;
    let mut first = None;
    let mut at = 0;
    while at < writes {
        at += 1;
        let (seen, board) = (std::cell::Cell::new(0), std::cell::RefCell::new(String::new()));
        play(Config::default(), |mut story| {
            let (seen, board) = (&seen, &board);
            async move {
                story.crash().await;
                story.apply(CLUSTER).await;
                let wire = Wire::new(story.clock.clone(), Trouble::CrashAfterWrite(at));
                story.start_on(&wire);
                acts(&mut story).await;
                // Whether or not the crash has come by now.
                story.crash().await;
                seen.set(wire.writes());
                story.start();
                story.wait(60).await;
                *board.borrow_mut() = story.board().await;
            }
        });
        writes = writes.max(seen.get()).min(60);
        // Whether members had started by the crash is no matter of what is left.
        let board: String =
            board.into_inner().lines().map(|line| format!("{}\n", first_condition(line))).collect();
        assert_eq!(*first.get_or_insert_with(|| board.clone()), board, "crash after write {at}");
    }
    expected.assert_eq(&first.unwrap_or_default());
}

fn first_condition(line: &str) -> &str {
    line.split_once("; ").map_or(line, |(first, _)| first)
}

#[test]
fn a_crash_after_any_write_of_a_run_changes_nothing_in_the_end() {
    crash_everywhere(
        runs_and_ends,
        expect![[r#"
        pod       train-…      worker1      Succeeded
        pod       train-…      worker1      Succeeded
        pod       train-…      worker2      Succeeded
        pod       train-…      worker2      Succeeded
        job       train        released     active 0 succeeded 4
        workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue)
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]],
    );
}

#[test]
fn a_crash_after_any_write_of_an_eviction_changes_nothing_in_the_end() {
    crash_everywhere(
        is_switched_off,
        expect![[r#"
        job       train        suspended    active 0 succeeded 0
        workload  job-train-…  not QuotaReserved (The workload is deactivated)
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]],
    );
}

#[test]
fn a_crash_after_any_write_for_a_group_changes_nothing_in_the_end() {
    crash_everywhere(
        is_a_group,
        expect![[r#"
        pod       train-0      worker1      Succeeded
        pod       train-1      worker1      Succeeded
        pod       train-2      worker2      Succeeded
        workload  podgroup-train-… QuotaReserved (Quota reserved in ClusterQueue gpu-queue)
        podgroup  train        Completed    Scheduled:
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]],
    );
}

#[test]
fn conflicts_and_lost_replies_change_nothing_in_the_end() {
    for seed in 0..6 {
        play(Config::default(), |mut story| async move {
            story.crash().await;
            story.apply(CLUSTER).await;
            let wire = Wire::new(story.clock.clone(), Trouble::Seed(seed));
            story.start_on(&wire);
            runs_and_ends(&mut story).await;
            story.wait(200).await;
            let board = story.board().await;
            assert!(board.contains("Finished"), "seed {seed}:\n{board}");
            assert!(!board.contains("plan "), "seed {seed}:\n{board}");
        });
    }
}

#[test]
fn a_job_that_cannot_be_released_says_why() {
    play(Config::default(), |mut story| async move {
        story.apply(CLUSTER).await;
        let mut train = job("train", 4);
        // As much as an object may carry: what a release adds is too much.
        let most = 256 * 1024 - "note".len();
        train["spec"]["template"]["metadata"] = json!({ "annotations": { "note": "x".repeat(most) } });
        story.create(&train).await;
        story.wait(30).await;
        story.see(expect![[r#"
            job       train        suspended    active 0 succeeded 0
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); not PodsReady (Not all pods are ready or succeeded)
            plan      job-train-…  Committed    4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
        expect![[r#"
            Normal  Suspended: Job suspended
            Normal  CreatedWorkload: Created Workload: default/job-train-…
            Warning FailedToStart: Job.batch "train" is invalid: spec.template.annotations: Too long: may not be more than 262144 bytes (x11)
        "#]].assert_eq(&story.events("Job", "train").await);
    });
}

/// A leader that slept between its check and its send wakes up: its decision arrives under its successor.
#[test]
fn the_decision_of_a_former_leader_that_arrives_late_is_taken_back() {
    play(Config { epoch: 7, ..Config::default() }, |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&job("train", 4)).await;
        story.wait(5).await;
        story.create(&job("late", 4)).await;
        story.wait(5).await;
        let plans = "/apis/soroi.dev/v1alpha1/namespaces/default/gangplans";
        let workloads = story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await;
        let of_late = |workload: &&serde_json::Value| {
            workload["metadata"]["name"].as_str().unwrap().starts_with("job-late")
        };
        let waiting = &workloads.iter().find(of_late).unwrap()["metadata"];
        let mut plan = story.list(plans).await.pop().unwrap();
        let uid = &waiting["uid"];
        plan["metadata"] = json!({
            "name": uid, "namespace": "default", "finalizers": plan["metadata"]["finalizers"],
        });
        plan["spec"]["leaderEpoch"] = json!(6);
        plan["spec"]["gang"]["name"] = waiting["name"].clone();
        plan["spec"]["gang"]["uid"] = uid.clone();
        plan["spec"]["owners"] = json!([]);
        plan["apiVersion"] = json!("soroi.dev/v1alpha1");
        plan["kind"] = json!("GangPlan");
        plan.as_object_mut().unwrap().remove("status");
        story.create(&plan).await;
        story.wait(5).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            pod       train-…      worker2      Running
            job       late         suspended    active 0 succeeded 0
            job       train        released     active 4 succeeded 0
            workload  job-late-…   not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 4 more needed); not PodsReady (Not all pods are ready or succeeded)
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            plan      job-train-…  Settled      4 pods
            queue     gpu-queue    pending 1 admitted 1 gpu 4
        "#]]).await;
        story.delete("/apis/batch/v1/namespaces/default/jobs/train").await;
        story.wait(10).await;
        story.see(expect![[r#"
            pod       late-…       worker1      Running
            pod       late-…       worker1      Running
            pod       late-…       worker2      Running
            pod       late-…       worker2      Running
            job       late         released     active 4 succeeded 0
            workload  job-late-…   QuotaReserved (Quota reserved in ClusterQueue gpu-queue); PodsReady (All pods reached readiness and the workload is running); Admitted (The workload is admitted)
            plan      job-late-…   Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]]).await;
    });
}
