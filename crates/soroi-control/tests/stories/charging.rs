//! What pods charge to quota need not be what they ask for, and what is over need not stay.

use std::collections::BTreeMap;

use expect_test::expect;
use serde_json::{Value, json};
use soroi_control::Config;
use soroi_control::config::Retention;
use soroi_control::intake::charge::{Charging, Transformation};
use soroi_engine::decision::Settings;

use crate::story::{CLUSTER, Story, group, job, member, play};

const QUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue";
const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads";

/// The article's cluster, with a queue that names only this resource.
async fn cluster(story: &Story, resource: &str, quota: &str) {
    story.apply(CLUSTER).await;
    let quota = json!([{ "name": resource, "nominalQuota": quota }]);
    let flavors = json!([{ "name": "default-flavor", "resources": quota }]);
    let groups = json!([{ "coveredResources": [resource], "flavors": flavors }]);
    story.patch(QUEUE, &json!({ "spec": { "resourceGroups": groups } })).await;
}

/// What Workloads say that they ask for and got.
async fn charges(story: &Story) -> String {
    let mut text = String::new();
    for workload in story.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await {
        let status = &workload["status"];
        let name = workload["metadata"]["ownerReferences"][0]["name"].as_str().unwrap();
        text += name;
        for set in status["resourceRequests"].as_array().into_iter().flatten() {
            text += &format!(" asks {}", set["resources"]);
        }
        for set in status["admission"]["podSetAssignments"].as_array().into_iter().flatten() {
            text += &format!(" pays {} by {}", set["resourceUsage"], set["flavors"]);
        }
        text.push('\n');
    }
    text
}

fn credits_for_gpus() -> Charging {
    let credits = Transformation {
        retain: false,
        outputs: BTreeMap::from([("example.com/credits".into(), "2".parse().unwrap())]),
        multiply_by: None,
    };
    let transformed = BTreeMap::from([("example.com/gpu".into(), credits)]);
    Charging { excluded: vec!["cpu".into(), "memory".into()], transformed }
}

/// Seven credits, two for each GPU: three GPUs may be in use, though there are four.
#[test]
fn a_gang_pays_in_what_its_gpus_are_counted_as() {
    let config = Config { charging: credits_for_gpus(), ..Config::default() };
    play(config, |mut story| async move {
        cluster(&story, "example.com/credits", "7").await;
        story.create(&job("train", 3)).await;
        story.wait(2).await;
        story.create(&job("more", 1)).await;
        story.wait(5).await;
        story.see(expect![[r#"
            pod       train-…      worker1      Running
            pod       train-…      worker1      Running
            pod       train-…      worker2      Running
            job       more         suspended    active 0 succeeded 0
            job       train        released     active 3 succeeded 0
            workload  job-more-…   not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/credits in flavor default-flavor, 1 more needed); not PodsReady (Not all pods are ready or succeeded)
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            plan      job-train-…  Settled      3 pods
            queue     gpu-queue    pending 1 admitted 1 gpu -
        "#]]).await;
        expect![[r#"
            more asks {"example.com/credits":"2"}
            train pays {"example.com/credits":"6"} by {"example.com/credits":"default-flavor"}
        "#]]
        .assert_eq(&charges(&story).await);
        // Whoever comes after a restart finds the same.
        story.crash().await;
        story.start();
        story.wait(5).await;
        story.create(&job("another", 1)).await;
        story.wait(5).await;
        expect![[r#"
            another asks {"example.com/credits":"2"}
            more asks {"example.com/credits":"2"}
            train pays {"example.com/credits":"6"} by {"example.com/credits":"default-flavor"}
        "#]]
        .assert_eq(&charges(&story).await);
        story.delete("/apis/batch/v1/namespaces/default/jobs/train?propagationPolicy=Background").await;
        story.wait(20).await;
        expect![[r#"
            another pays {"example.com/credits":"2"} by {"example.com/credits":"default-flavor"}
            more pays {"example.com/credits":"2"} by {"example.com/credits":"default-flavor"}
        "#]]
        .assert_eq(&charges(&story).await);
    });
}

#[test]
fn pods_of_a_group_pay_the_same_way() {
    let config = Config { charging: credits_for_gpus(), ..Config::default() };
    play(config, |mut story| async move {
        cluster(&story, "example.com/credits", "4").await;
        let mut pair = group("pair", 2);
        pair["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "team-a" });
        story.create(&pair).await;
        for index in 0..2 {
            story.create(&member("pair", index)).await;
        }
        // Nobody pays for these.
        story.create(&group("free", 2)).await;
        for index in 0..2 {
            story.create(&member("free", index)).await;
        }
        story.wait(5).await;
        story.see(expect![[r#"
            pod       free-0       worker2      Running
            pod       free-1       worker2      Running
            pod       pair-0       worker1      Running
            pod       pair-1       worker1      Running
            workload  podgroup-pair-… QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
            podgroup  free         Running      Scheduled:
            podgroup  pair         Running      Scheduled:
            plan      pair         Settled      2 pods
            plan      free         Settled      2 pods
            queue     gpu-queue    pending 0 admitted 1 gpu -
        "#]]).await;
        expect![[r#"
            pair pays {"example.com/credits":"4"} by {"example.com/credits":"default-flavor"}
        "#]]
        .assert_eq(&charges(&story).await);
    });
}

/// The queue names GPUs alone, and processors and memory need no quota.
#[test]
fn what_a_queue_does_not_name_needs_no_quota() {
    for ignore_undeclared in [false, true] {
        let settings = Settings { ignore_undeclared, ..Settings::default() };
        play(Config { settings, ..Config::default() }, move |mut story| async move {
            cluster(&story, "example.com/gpu", "3").await;
            story.create(&job("train", 2)).await;
            story.wait(2).await;
            story.create(&job("more", 2)).await;
            story.wait(5).await;
            let expected = match ignore_undeclared {
                false => expect![[r#"
                    job       more         suspended    active 0 succeeded 0
                    job       train        suspended    active 0 succeeded 0
                    workload  job-more-…   not QuotaReserved (couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue, resource memory unavailable in ClusterQueue); not PodsReady (Not all pods are ready or succeeded)
                    workload  job-train-…  not QuotaReserved (couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue, resource memory unavailable in ClusterQueue); not PodsReady (Not all pods are ready or succeeded)
                    queue     gpu-queue    pending 2 admitted 0 gpu 0
                "#]],
                true => expect![[r#"
                    pod       train-…      worker1      Running
                    pod       train-…      worker1      Running
                    job       more         suspended    active 0 succeeded 0
                    job       train        released     active 2 succeeded 0
                    workload  job-more-…   not QuotaReserved (couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 1 more needed); not PodsReady (Not all pods are ready or succeeded)
                    workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running)
                    plan      job-train-…  Settled      2 pods
                    queue     gpu-queue    pending 1 admitted 1 gpu 2
                "#]],
            };
            story.see(expected).await;
        });
    }
}

fn ends_after(mut job: Value, span: &str) -> Value {
    job["spec"]["template"]["metadata"]["annotations"]["soroi.dev/run-for"] = span.into();
    job
}

#[test]
fn a_workload_that_ended_stays_for_as_long_as_is_configured() {
    let retention = Retention { after_finished: Some(60_000), after_deactivated: None };
    play(Config { retention, ..Config::default() }, |mut story| async move {
        story.apply(CLUSTER).await;
        story.create(&ends_after(job("train", 2), "5s")).await;
        let mut pair = group("pair", 2);
        pair["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": "team-a" });
        story.create(&pair).await;
        for index in 0..2 {
            let mut pod = member("pair", index);
            pod["metadata"]["annotations"]["soroi.dev/run-for"] = "5s".into();
            story.create(&pod).await;
        }
        story.wait(40).await;
        story.see(expect![[r#"
            pod       pair-0       worker2      Succeeded
            pod       pair-1       worker2      Succeeded
            pod       train-…      worker1      Succeeded
            pod       train-…      worker1      Succeeded
            job       train        released     active 0 succeeded 2
            workload  job-train-…  QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running); Finished (Reached expected number of succeeded pods)
            workload  podgroup-pair-… QuotaReserved (Quota reserved in ClusterQueue gpu-queue); Admitted (The workload is admitted); PodsReady (All pods reached readiness and the workload is running); Finished (All pods of the group have ended)
            podgroup  pair         Completed    Scheduled:
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        // A restart in between does not let it stay longer, and nobody makes it again.
        story.crash().await;
        story.start();
        story.wait(40).await;
        story
            .see(expect![[r#"
            pod       pair-0       worker2      Succeeded
            pod       pair-1       worker2      Succeeded
            pod       train-…      worker1      Succeeded
            pod       train-…      worker1      Succeeded
            job       train        released     active 0 succeeded 2
            podgroup  pair         Completed    Scheduled:
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
        story.wait(100).await;
        story
            .see(expect![[r#"
            pod       pair-0       worker2      Succeeded
            pod       pair-1       worker2      Succeeded
            pod       train-…      worker1      Succeeded
            pod       train-…      worker1      Succeeded
            job       train        released     active 0 succeeded 2
            podgroup  pair         Completed    Scheduled:
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]])
            .await;
    });
}

#[test]
fn who_ran_too_long_goes_with_its_job_when_its_time_is_over() {
    let retention = Retention { after_finished: None, after_deactivated: Some(60_000) };
    play(Config { retention, ..Config::default() }, |mut story| async move {
        story.apply(CLUSTER).await;
        let mut long = job("long", 2);
        long["metadata"]["labels"]["kueue.x-k8s.io/max-exec-time-seconds"] = "5".into();
        story.create(&long).await;
        let mut off = job("off", 2);
        off["metadata"]["name"] = "off".into();
        story.create(&off).await;
        story.wait(10).await;
        // What its user switches off stays.
        let name = story.list(WORKLOADS).await.into_iter().find_map(|workload| {
            let name = workload["metadata"]["name"].as_str().unwrap().to_owned();
            name.contains("off").then_some(name)
        });
        story.patch(&format!("{WORKLOADS}/{}", name.unwrap()), &json!({ "spec": { "active": false } })).await;
        story.wait(10).await;
        story.see(expect![[r#"
            job       long         suspended    active 0 succeeded 0
            job       off          suspended    active 0 succeeded 0
            workload  job-long-…   not QuotaReserved (The workload is deactivated); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded); DeactivationTarget (exceeding the maximum execution time); Evicted (The workload is deactivated due to exceeding the maximum execution time); not Requeued (The workload is deactivated due to exceeding the maximum execution time)
            workload  job-off-…    not QuotaReserved (The workload is deactivated); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded); Evicted (The workload is deactivated); not Requeued (The workload is deactivated)
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
        story.wait(60).await;
        story.see(expect![[r#"
            job       off          suspended    active 0 succeeded 0
            workload  job-off-…    not QuotaReserved (The workload is deactivated); not Admitted (The workload has no reservation); not PodsReady (Not all pods are ready or succeeded); Evicted (The workload is deactivated); not Requeued (The workload is deactivated)
            queue     gpu-queue    pending 0 admitted 0 gpu 0
        "#]]).await;
    });
}
