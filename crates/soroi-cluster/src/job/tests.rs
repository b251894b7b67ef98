//! Stories of Jobs, on a cluster with kubelets, and a scheduler that is a line of the story.

use expect_test::{Expect, expect};
use serde_json::{Value, json};

use crate::Parts;
use crate::story::{Story, tell};

const PARTS: Parts = Parts { jobs: true, kubelets: true, ..Parts::NONE };
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";

fn check<F: Future<Output = String>>(story: impl FnOnce(Story) -> F, expected: Expect) {
    expected.assert_eq(&tell(PARTS, story));
}

/// Creates a Job whose pods are bound to `w1` as they are made and run as annotated.
async fn job(story: &Story, name: &str, spec: Value, annotations: Value) {
    let mut spec = spec;
    spec["template"] = json!({
        "metadata": { "annotations": annotations },
        "spec": {
            "nodeName": "w1",
            "restartPolicy": "Never",
            "containers": [{ "name": "main", "image": "app" }],
        },
    });
    let object = json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": { "name": name, "namespace": "default" },
        "spec": spec,
    });
    story.create(JOBS, object).await;
}

/// A Job's counters and conditions, in one line.
async fn status(story: &Story, name: &str) -> String {
    let status = story.get(&format!("{JOBS}/{name}")).await["status"].take();
    let mut words = Vec::new();
    for field in
        ["active", "ready", "terminating", "succeeded", "failed", "completedIndexes", "failedIndexes"]
    {
        match &status[field] {
            Value::Null => {}
            Value::String(text) => words.push(format!("{field}={text}")),
            number => words.push(format!("{field}={number}")),
        }
    }
    for field in ["startTime", "completionTime"] {
        words.extend(status[field].as_str().map(|_| field.to_owned()));
    }
    let noted = &status["uncountedTerminatedPods"];
    words.extend((noted != &json!({}) && !noted.is_null()).then(|| format!("noted={noted}")));
    for condition in status["conditions"].as_array().into_iter().flatten() {
        let text = |field: &str| condition[field].as_str().unwrap_or_default();
        words.push(format!("{}={}({})", text("type"), text("status"), text("reason")));
    }
    words.join(" ") + "\n"
}

/// Pods without the random ends of their names, in the order of what is left.
async fn pods(story: &Story) -> String {
    let pods = story.pods().await;
    let cut = |line: &str| match line.split_once(' ') {
        Some((name, rest)) => format!("{}* {rest}\n", name.trim_end_matches(|c: char| c != '-')),
        None => format!("{line}\n"),
    };
    let mut lines: Vec<String> = pods.lines().map(cut).collect();
    lines.sort();
    lines.concat()
}

#[test]
fn a_job_runs_to_completion() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({ "parallelism": 2, "completions": 3 });
            job(&story, "train", spec, json!({ "soroi.dev/run-for": "10s" })).await;
            let mut told = String::new();
            for seconds in [1, 2, 10, 2, 10, 2] {
                story.seconds(seconds).await;
                told += &status(&story, "train").await;
            }
            let pod = story.get("/api/v1/namespaces/default/pods").await["items"][0].take();
            let name = pod["metadata"]["name"].as_str().unwrap();
            told += &pods(&story).await;
            let events = story.events().await.replace(name, "train-*");
            let events: String = events
                .lines()
                .filter(|line| !line.contains("pod: train-") || line.contains('*'))
                .collect::<Vec<_>>()
                .join("\n");
            told + &format!("{}\n{events}\n", pod["metadata"]["finalizers"])
        },
        expect![[r#"
            active=2 ready=2 terminating=0 startTime
            active=2 ready=2 terminating=0 startTime
            active=1 ready=1 terminating=0 succeeded=2 startTime
            active=1 ready=1 terminating=0 succeeded=2 startTime
            ready=0 terminating=0 succeeded=3 startTime completionTime SuccessCriteriaMet=True(CompletionsReached) Complete=True(CompletionsReached)
            ready=0 terminating=0 succeeded=3 startTime completionTime SuccessCriteriaMet=True(CompletionsReached) Complete=True(CompletionsReached)
            train-* w1 Succeeded
            train-* w1 Succeeded
            train-* w1 Succeeded
            []
            Normal SuccessfulCreate train: Created pod: train-* (x1)
            Normal Completed train: Job completed (x1)
        "#]],
    );
}

#[test]
fn an_indexed_job_names_its_pods() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({ "parallelism": 2, "completions": 4, "completionMode": "Indexed" });
            job(&story, "ring", spec, json!({ "soroi.dev/run-for": "10s" })).await;
            story.seconds(3).await;
            let mut told = pods(&story).await + &status(&story, "ring").await;
            let pod = story.get("/api/v1/namespaces/default/pods").await["items"][1].take();
            let meta = &pod["metadata"];
            let index = "batch.kubernetes.io/job-completion-index";
            let owner = meta["ownerReferences"][0]["name"].as_str().unwrap();
            told += &format!(
                "index {} {} hostname {} job {} owner {owner} env {}\n",
                meta["annotations"][index],
                meta["labels"][index],
                pod["spec"]["hostname"],
                meta["labels"]["batch.kubernetes.io/job-name"],
                pod["spec"]["containers"][0]["env"][0]["name"],
            );
            story.seconds(10).await;
            told += &status(&story, "ring").await;
            story.seconds(15).await;
            told + &status(&story, "ring").await
        },
        expect![[r#"
            ring-0-* w1 Running ready
            ring-1-* w1 Running ready
            active=2 ready=2 terminating=0 startTime
            index "1" "1" hostname "ring-1" job "ring" owner ring env "JOB_COMPLETION_INDEX"
            active=2 ready=2 terminating=0 succeeded=2 completedIndexes=0,1 startTime
            ready=0 terminating=0 succeeded=4 completedIndexes=0-3 startTime completionTime SuccessCriteriaMet=True(CompletionsReached) Complete=True(CompletionsReached)
        "#]],
    );
}

#[test]
fn suspension_takes_pods_away_and_counts_nothing() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({ "parallelism": 2, "completions": 2, "backoffLimit": 0, "suspend": true });
            job(&story, "train", spec, json!({})).await;
            story.seconds(2).await;
            let mut told = status(&story, "train").await + &pods(&story).await;
            for suspend in [false, true, false] {
                let path = format!("{JOBS}/train");
                story.patch(&path, json!({ "spec": { "suspend": suspend } })).await;
                story.seconds(3).await;
                told +=
                    &format!("suspend {suspend}\n{}{}", status(&story, "train").await, pods(&story).await);
            }
            told
        },
        expect![[r#"
            ready=0 terminating=0 Suspended=True(JobSuspended)
            * pods
            suspend false
            active=2 ready=2 terminating=0 startTime Suspended=False(JobResumed)
            train-* w1 Running ready
            train-* w1 Running ready
            suspend true
            ready=0 terminating=0 Suspended=True(JobSuspended)
            * pods
            suspend false
            active=2 ready=2 terminating=0 startTime Suspended=False(JobResumed)
            train-* w1 Running ready
            train-* w1 Running ready
        "#]],
    );
}

#[test]
fn failed_pods_are_replaced_after_growing_waits_until_the_limit() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let annotations = json!({ "soroi.dev/run-for": "1s", "soroi.dev/exit-code": "1" });
            job(&story, "bad", json!({ "backoffLimit": 2 }), annotations).await;
            let mut told = String::new();
            let mut last = String::new();
            for second in 0..60 {
                let now = format!("{}{}", status(&story, "bad").await, pods(&story).await);
                if now != last {
                    told += &format!("{second}s\n{now}");
                    last = now;
                }
                story.seconds(1).await;
            }
            told
        },
        expect![[r#"
            0s
            active=1 ready=0 terminating=0 startTime
            bad-* w1 Pending
            1s
            active=1 ready=1 terminating=0 startTime
            bad-* w1 Running ready
            2s
            ready=0 terminating=0 failed=1 startTime
            bad-* w1 Failed
            11s
            active=1 ready=0 terminating=0 failed=1 startTime
            bad-* w1 Failed
            bad-* w1 Pending
            12s
            active=1 ready=1 terminating=0 failed=1 startTime
            bad-* w1 Failed
            bad-* w1 Running ready
            13s
            ready=0 terminating=0 failed=2 startTime
            bad-* w1 Failed
            bad-* w1 Failed
            32s
            active=1 ready=0 terminating=0 failed=2 startTime
            bad-* w1 Failed
            bad-* w1 Failed
            bad-* w1 Pending
            33s
            active=1 ready=1 terminating=0 failed=2 startTime
            bad-* w1 Failed
            bad-* w1 Failed
            bad-* w1 Running ready
            34s
            ready=0 terminating=0 failed=3 startTime FailureTarget=True(BackoffLimitExceeded) Failed=True(BackoffLimitExceeded)
            bad-* w1 Failed
            bad-* w1 Failed
            bad-* w1 Failed
        "#]],
    );
}

#[test]
fn a_deleted_pod_counts_at_once_or_when_it_has_ended() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let slow = json!({ "soroi.dev/stop-after": "30s" });
            job(&story, "eager", json!({}), slow.clone()).await;
            job(&story, "patient", json!({ "podReplacementPolicy": "Failed" }), slow).await;
            story.seconds(2).await;
            let list = story.get("/api/v1/namespaces/default/pods").await;
            for pod in list["items"].as_array().unwrap() {
                let name = pod["metadata"]["name"].as_str().unwrap();
                story.delete(&format!("/api/v1/namespaces/default/pods/{name}")).await;
            }
            let mut told = String::new();
            for seconds in [2, 15, 15, 12] {
                story.seconds(seconds).await;
                told += &format!("after {seconds}s\neager {}", status(&story, "eager").await);
                told += &format!("patient {}{}", status(&story, "patient").await, pods(&story).await);
            }
            told
        },
        expect![[r#"
            after 2s
            eager ready=0 terminating=1 failed=1 startTime
            patient ready=0 terminating=1 startTime
            eager-* w1 Running ready terminating
            patient-* w1 Running ready terminating
            after 15s
            eager active=1 ready=1 terminating=1 failed=1 startTime
            patient ready=0 terminating=1 startTime
            eager-* w1 Running ready
            eager-* w1 Running ready terminating
            patient-* w1 Running ready terminating
            after 15s
            eager active=1 ready=1 terminating=0 failed=1 startTime
            patient ready=0 terminating=0 failed=1 startTime
            eager-* w1 Running ready
            after 12s
            eager active=1 ready=1 terminating=0 failed=1 startTime
            patient active=1 ready=1 terminating=0 failed=1 startTime
            eager-* w1 Running ready
            patient-* w1 Running ready
        "#]],
    );
}

#[test]
fn any_lost_pod_fails_a_job_without_retries() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            job(
                &story,
                "strict",
                json!({ "parallelism": 3, "completions": 3, "backoffLimit": 0 }),
                json!({}),
            )
            .await;
            story.seconds(2).await;
            let list = story.get("/api/v1/namespaces/default/pods").await;
            let name = list["items"][0]["metadata"]["name"].as_str().unwrap();
            story.delete(&format!("/api/v1/namespaces/default/pods/{name}")).await;
            story.seconds(4).await;
            status(&story, "strict").await + &pods(&story).await
        },
        expect![[r#"
            ready=0 terminating=0 failed=3 startTime FailureTarget=True(BackoffLimitExceeded) Failed=True(BackoffLimitExceeded)
            * pods
        "#]],
    );
}

#[test]
fn deadlines_and_time_to_live_are_kept() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({ "activeDeadlineSeconds": 20, "ttlSecondsAfterFinished": 60 });
            job(&story, "slow", spec, json!({})).await;
            let done = json!({ "soroi.dev/run-for": "1s" });
            job(&story, "quick", json!({ "ttlSecondsAfterFinished": 5 }), done).await;
            let mut told = String::new();
            story.seconds(23).await;
            told += &status(&story, "slow").await;
            told += &format!(
                "quick there: {}\n",
                story.get(&format!("{JOBS}/quick")).await["metadata"]["deletionTimestamp"].is_null()
            );
            story.seconds(60).await;
            told + &format!(
                "slow there: {}\n",
                story.get(&format!("{JOBS}/slow")).await["metadata"]["deletionTimestamp"].is_null()
            )
        },
        expect![[r#"
            ready=0 terminating=0 failed=1 startTime FailureTarget=True(DeadlineExceeded) Failed=True(DeadlineExceeded)
            quick there: false
            slow there: false
        "#]],
    );
}

#[test]
fn a_large_job_is_made_in_batches_of_500() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4 pods=2000").await;
            story.seconds(1).await;
            job(&story, "wide", json!({ "parallelism": 1200, "completions": 1200 }), json!({})).await;
            let mut told = String::new();
            for _ in 0..6 {
                story.millis(700).await;
                told += &status(&story, "wide").await;
            }
            told
        },
        expect![[r#"
            active=500 ready=0 terminating=0 startTime
            active=1000 ready=500 terminating=0 startTime
            active=1200 ready=1000 terminating=0 startTime
            active=1200 ready=1000 terminating=0 startTime
            active=1200 ready=1200 terminating=0 startTime
            active=1200 ready=1200 terminating=0 startTime
        "#]],
    );
}

#[test]
fn failures_are_counted_by_index() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({
                "parallelism": 3, "completions": 3, "completionMode": "Indexed",
                "backoffLimitPerIndex": 1, "maxFailedIndexes": 2,
            });
            job(&story, "each", spec, json!({})).await;
            story.seconds(2).await;
            let mut told = String::new();
            for phase in ["Failed", "Failed", "Succeeded"] {
                let list = story.get("/api/v1/namespaces/default/pods").await;
                for pod in list["items"].as_array().unwrap() {
                    let index = &pod["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"];
                    let name = pod["metadata"]["name"].as_str().unwrap();
                    let wanted = index == "0" || phase == "Succeeded";
                    if wanted && pod["status"]["phase"] == "Running" {
                        let path = format!("/api/v1/namespaces/default/pods/{name}/status");
                        story.patch(&path, json!({ "status": { "phase": phase } })).await;
                    }
                }
                story.seconds(13).await;
                told += &format!("{phase}: {}{}", status(&story, "each").await, pods(&story).await);
            }
            told
        },
        expect![[r#"
            Failed: active=3 ready=3 terminating=0 failed=1 failedIndexes= startTime
            each-0-* w1 Failed ready
            each-0-* w1 Running ready
            each-1-* w1 Running ready
            each-2-* w1 Running ready
            Failed: active=2 ready=2 terminating=0 failed=2 failedIndexes=0 startTime
            each-0-* w1 Failed ready
            each-0-* w1 Failed ready
            each-1-* w1 Running ready
            each-2-* w1 Running ready
            Succeeded: ready=0 terminating=0 succeeded=2 failed=2 completedIndexes=1,2 failedIndexes=0 startTime FailureTarget=True(FailedIndexes) Failed=True(FailedIndexes)
            each-0-* w1 Failed ready
            each-0-* w1 Failed ready
            each-1-* w1 Succeeded ready
            each-2-* w1 Succeeded ready
        "#]],
    );
}

#[test]
fn policies_decide_what_a_failure_and_a_success_mean() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let fail = json!({ "rules": [{ "action": "FailJob", "onExitCodes": { "operator": "In", "values": [42] } }] });
            let exit = |code: &str| json!({ "soroi.dev/run-for": "1s", "soroi.dev/exit-code": code });
            job(&story, "fatal", json!({ "podFailurePolicy": fail }), exit("42")).await;
            let ignore = json!({ "rules": [{ "action": "Ignore", "onExitCodes": { "operator": "NotIn", "values": [42] } }] });
            job(&story, "ignored", json!({ "backoffLimit": 0, "podFailurePolicy": ignore }), exit("1")).await;
            let leader = json!({ "rules": [{ "succeededIndexes": "0" }] });
            let spec = json!({ "parallelism": 1, "completions": 3, "completionMode": "Indexed", "successPolicy": leader });
            job(&story, "led", spec, exit("0")).await;
            story.seconds(5).await;
            let mut told = String::new();
            for name in ["fatal", "ignored", "led"] {
                told += &format!("{name}: {}", status(&story, name).await);
            }
            told
        },
        expect![[r#"
            fatal: ready=0 terminating=0 failed=1 startTime FailureTarget=True(PodFailurePolicy) Failed=True(PodFailurePolicy)
            ignored: ready=0 terminating=0 startTime
            led: ready=0 terminating=0 succeeded=1 completedIndexes=0 startTime completionTime SuccessCriteriaMet=True(SuccessPolicy) Complete=True(SuccessPolicy)
        "#]],
    );
}

#[test]
fn jobs_of_other_controllers_are_left_alone() {
    check(
        async |story: Story| {
            job(&story, "foreign", json!({ "managedBy": "example.com/multikueue" }), json!({})).await;
            story.seconds(5).await;
            status(&story, "foreign").await + &pods(&story).await
        },
        expect![[r#"

            * pods
        "#]],
    );
}

#[test]
fn shrinking_a_job_takes_the_pods_that_are_too_many() {
    check(
        async |story: Story| {
            story.node("w1", "cpu=4").await;
            story.seconds(1).await;
            let spec = json!({ "parallelism": 3, "completions": 9, "completionMode": "Indexed" });
            job(&story, "elastic", spec, json!({})).await;
            story.seconds(3).await;
            story.patch(&format!("{JOBS}/elastic"), json!({ "spec": { "parallelism": 1 } })).await;
            story.seconds(3).await;
            status(&story, "elastic").await + &pods(&story).await
        },
        expect![[r#"
            active=1 ready=1 terminating=0 startTime
            elastic-0-* w1 Running ready
        "#]],
    );
}
