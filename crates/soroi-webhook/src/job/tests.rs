//! Jobs: a table of requests and answers.

use expect_test::expect;
use serde_json::{Value, json};

use crate::tests::{picture, review};
use crate::{Operation, Review, admit};

fn job(labels: Value, annotations: Value, spec: Value) -> Value {
    json!({"metadata": {"name": "train", "labels": labels, "annotations": annotations}, "spec": spec})
}

fn queued(spec: Value) -> Value {
    job(json!({"kueue.x-k8s.io/queue-name": "team-a"}), json!({}), spec)
}

fn created(job: &Value) -> String {
    picture(admit(&Review { object: Some(job), ..review(Operation::Create, "batch", "Job") }))
}

fn updated(old: &Value, new: &Value) -> String {
    let request = review(Operation::Update, "batch", "Job");
    picture(admit(&Review { object: Some(new), old_object: Some(old), ..request }))
}

#[test]
fn managed_jobs_are_created_suspended() {
    let owned = |api_version: &str, kind: &str, controller: bool| {
        let mut job = queued(json!({}));
        job["metadata"]["ownerReferences"] = json!([{"apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": controller}]);
        job
    };
    for (job, suspended) in [
        (queued(json!({})), true),
        (queued(json!({"suspend": false})), true),
        (queued(json!({"managedBy": "kubernetes.io/job-controller"})), true),
        (owned("batch/v1", "CronJob", true), true),
        (owned("batch/v1", "Job", false), true),
        (queued(json!({"suspend": true})), false),
        (queued(json!({"managedBy": "kueue.x-k8s.io/multikueue"})), false),
        (owned("batch/v1", "Job", true), false),
        (owned("scheduling.volcano.sh/v1beta1", "PodGroup", true), false),
        (job(json!({}), json!({}), json!({})), false),
        (job(json!({"kueue.x-k8s.io/queue-name": ""}), json!({}), json!({})), false),
    ] {
        let expected = if suspended { "completed\n" } else { "as it is\n" };
        assert_eq!(created(&job), expected, "{job}");
    }
}

#[test]
fn a_running_job_keeps_its_queue() {
    let in_queue = |queue: &str, suspend: bool| {
        job(json!({"kueue.x-k8s.io/queue-name": queue}), json!({}), json!({"suspend": suspend}))
    };
    let without = job(json!({}), json!({}), json!({"suspend": false}));
    let mut board = updated(&in_queue("a", true), &in_queue("b", true));
    board += &updated(&in_queue("a", false), &in_queue("b", true));
    board += &updated(&in_queue("a", false), &in_queue("b", false));
    board += &updated(&in_queue("a", false), &without);
    board += &updated(&without, &in_queue("a", false));
    board += &updated(&in_queue("a", true), &in_queue("a", false));
    expect![[r#"
        as it is
        as it is
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable while the job is not suspended
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable while the job is not suspended
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable while the job is not suspended
        as it is
    "#]].assert_eq(&board);
}

#[test]
fn labels_and_annotations_must_mean_something() {
    let labelled = |key: &str, value: &str| {
        job(json!({"kueue.x-k8s.io/queue-name": "a", key: value}), json!({}), json!({"suspend": true}))
    };
    let minimum = |minimum: &str, parallelism: i32| {
        job(
            json!({"kueue.x-k8s.io/queue-name": "a"}),
            json!({"kueue.x-k8s.io/job-min-parallelism": minimum}),
            json!({"suspend": true, "parallelism": parallelism}),
        )
    };
    let mut board = String::new();
    for job in [
        labelled("kueue.x-k8s.io/queue-name", "Team_A"),
        labelled("kueue.x-k8s.io/priority-class", "High"),
        labelled("kueue.x-k8s.io/max-exec-time-seconds", "0"),
        labelled("kueue.x-k8s.io/max-exec-time-seconds", "60"),
        minimum("2", 4),
        minimum("4", 4),
        minimum("0", 4),
        minimum("two", 4),
        minimum("1", 1),
    ] {
        board += &created(&job);
    }
    expect![[r#"
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Invalid value: "Team_A": must consist of lower case letters, digits, '-' and '.', and begin and end with a letter or digit (at most 253 characters)
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/priority-class]: Invalid value: "High": must consist of lower case letters, digits, '-' and '.', and begin and end with a letter or digit (at most 253 characters)
        422 Invalid: Job.batch "train" is invalid: metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: Invalid value: "0": must be a number of seconds of at least 1
        as it is
        as it is
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "4": must be a number from 1 to 3, less than the parallelism
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "0": must be a number from 1 to 3, less than the parallelism
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "two": must be a number from 1 to 3, less than the parallelism
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "1": needs a parallelism of at least 2
    "#]].assert_eq(&board);
}

#[test]
fn completions_that_follow_are_those_of_an_indexed_job() {
    let follows = |text: &str, spec: Value| {
        job(
            json!({"kueue.x-k8s.io/queue-name": "a"}),
            json!({"kueue.x-k8s.io/job-completions-equal-parallelism": text}),
            spec,
        )
    };
    let indexed = |completions: i32| json!({"suspend": true, "parallelism": 4, "completions": completions, "completionMode": "Indexed"});
    let mut board = created(&follows("true", indexed(4)));
    board += &created(&follows("true", indexed(5)));
    board += &created(&follows("true", json!({"suspend": true, "parallelism": 4, "completions": 4})));
    board += &created(&follows("false", json!({"suspend": true, "parallelism": 4})));
    board += &created(&follows("perhaps", indexed(4)));
    expect![[r#"
        as it is
        422 Invalid: Job.batch "train" is invalid: spec.completions: Invalid value: 5: must equal the parallelism with metadata.annotations[kueue.x-k8s.io/job-completions-equal-parallelism]
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-completions-equal-parallelism]: Invalid value: "true": must not be true for a job that is not Indexed
        as it is
        422 Invalid: Job.batch "train" is invalid: metadata.annotations[kueue.x-k8s.io/job-completions-equal-parallelism]: Invalid value: "perhaps": must be true or false
    "#]].assert_eq(&board);
}

#[test]
fn a_job_with_a_minimum_keeps_its_parallelism_while_it_runs() {
    let with = |suspend: bool, parallelism: i32| {
        job(
            json!({"kueue.x-k8s.io/queue-name": "a"}),
            json!({"kueue.x-k8s.io/job-min-parallelism": "1"}),
            json!({"suspend": suspend, "parallelism": parallelism}),
        )
    };
    // The release itself: fewer pods, and go.
    let mut board = updated(&with(true, 4), &with(false, 3));
    board += &updated(&with(false, 3), &with(false, 4));
    // As few as it said would do.
    board += &updated(&with(true, 4), &with(false, 1));
    board += &updated(&with(false, 1), &with(true, 1));
    board += &updated(&with(true, 1), &with(true, 4));
    // The way back.
    board += &updated(&with(false, 3), &with(true, 3));
    board += &updated(&with(true, 3), &with(true, 4));
    expect![[r#"
        as it is
        422 Invalid: Job.batch "train" is invalid: spec.parallelism: Forbidden: is immutable while the job is not suspended and has kueue.x-k8s.io/job-min-parallelism
        as it is
        as it is
        as it is
        as it is
        as it is
    "#]].assert_eq(&board);
}

#[test]
fn one_topology_wish_spelt_well() {
    let wishing = |wishes: Value| {
        let annotations: serde_json::Map<String, Value> = wishes
            .as_object()
            .unwrap()
            .iter()
            .map(|(key, value)| (format!("kueue.x-k8s.io/podset-{key}"), value.clone()))
            .collect();
        queued(
            json!({"suspend": true, "parallelism": 8, "template": {"metadata": {"annotations": annotations}}}),
        )
    };
    let mut board = String::new();
    for wishes in [
        json!({"required-topology": "cloud.provider.com/topology-rack"}),
        json!({"unconstrained-topology": "true"}),
        json!({"required-topology": "rack", "preferred-topology": "rack"}),
        json!({"required-topology": "a rack"}),
        json!({"preferred-topology": ""}),
        json!({"unconstrained-topology": "yes"}),
        json!({"slice-required-topology": "rack", "slice-size": "2"}),
        json!({"slice-required-topology": "rack"}),
        json!({"slice-size": "2"}),
        json!({"slice-required-topology": "rack", "slice-size": "none"}),
        json!({"slice-required-topology": "rack", "slice-size": "9"}),
        json!({"group-name": "pair"}),
        json!({"group-name": "7", "required-topology": "rack", "slice-size": "2", "slice-required-topology": "rack"}),
        json!({"slice-required-topology-constraints": r#"[{"topology":"block","size":4},{"topology":"rack","size":2}]"#}),
        json!({"slice-required-topology-constraints": r#"[{"topology":"block","size":4},{"topology":"rack","size":3}]"#}),
        json!({"slice-required-topology-constraints": r#"[{"topology":"rack","size":0},{"topology":"rack","size":"x"}]"#}),
        json!({"slice-required-topology-constraints": "[]"}),
        json!({"slice-required-topology-constraints": "rack", "slice-size": "2"}),
    ] {
        board += &created(&wishing(wishes));
    }
    expect![[r#"
        as it is
        as it is
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]: Forbidden: must not be used together with kueue.x-k8s.io/podset-required-topology
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-required-topology]: Invalid value: "a rack": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-preferred-topology]: Invalid value: "": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-unconstrained-topology]: Unsupported value: "yes": supported values: "true", "false"
        as it is
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Required value: must be given with kueue.x-k8s.io/podset-slice-required-topology
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Forbidden: must not be given without kueue.x-k8s.io/podset-slice-required-topology
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Invalid value: "none": must be a number of pods of at least 1
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Invalid value: "9": must not be greater than the number of pods, 8
        422 Invalid: Job.batch "train" is invalid: [spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Invalid value: "pair": a group has exactly 2 pod sets, and a Job has 1, spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Forbidden: must not be used without kueue.x-k8s.io/podset-required-topology or kueue.x-k8s.io/podset-preferred-topology]
        422 Invalid: Job.batch "train" is invalid: [spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Invalid value: "7": a group has exactly 2 pod sets, and a Job has 1, spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Forbidden: must not be used together with kueue.x-k8s.io/podset-slice-required-topology, spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Forbidden: must not be used together with kueue.x-k8s.io/podset-slice-size, spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: Invalid value: "7": must not be a number]
        as it is
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][1].size: Invalid value: 3: must evenly divide the parent layer size 4
        422 Invalid: Job.batch "train" is invalid: [spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][0].size: Invalid value: 0: must be a number of pods of at least 1, spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][1].topology: Duplicate value: "rack", spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints][1].size: Invalid value: "x": must be a number of pods of at least 1]
        422 Invalid: Job.batch "train" is invalid: spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: Invalid value: "[]": must have 1 to 3 layers
        422 Invalid: Job.batch "train" is invalid: [spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: Forbidden: must not be given without kueue.x-k8s.io/podset-slice-required-topology, spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: Forbidden: must not be used together with kueue.x-k8s.io/podset-slice-size, spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-required-topology-constraints]: Invalid value: "rack": must be a JSON array of layers, each with topology and size]
    "#]].assert_eq(&board);
}

#[test]
fn a_job_under_a_foreign_controller_is_not_ours_to_judge() {
    let foreign = |queue: &str| {
        let spec = json!({"suspend": false, "managedBy": "example.com/controller"});
        job(json!({"kueue.x-k8s.io/queue-name": queue}), json!({}), spec)
    };
    assert_eq!(updated(&foreign("a"), &foreign("B!")), "as it is\n");
}

#[test]
fn the_status_of_a_job_with_an_old_fault_can_still_be_written() {
    let broken = queued(json!({"suspend": false, "template": {"metadata": {"annotations":
        {"kueue.x-k8s.io/podset-unconstrained-topology": "yes"}}}}));
    let mut running = broken.clone();
    running["status"] = json!({"active": 1});
    let request = review(Operation::Update, "batch", "Job");
    let request =
        Review { object: Some(&running), old_object: Some(&broken), subresource: "status", ..request };
    assert_eq!(picture(admit(&request)), "as it is\n");
}

#[test]
fn a_job_without_a_queue_gets_the_default_one_where_there_is_one() {
    let default = |job: &Value, default_queue: bool| {
        let request =
            Review { object: Some(job), default_queue, ..review(Operation::Create, "batch", "Job") };
        crate::default(&request).map_or_else(|| "as it is".to_owned(), |job| job.to_string())
    };
    let mut told = String::new();
    for (name, job) in [
        ("plain", json!({"metadata": {"labels": {"app": "a"}}, "spec": {"suspend": false}})),
        ("no labels", json!({"metadata": {}, "spec": {}})),
        ("labels that are none", json!({"metadata": {"labels": [1]}, "spec": {}})),
        ("no metadata", json!({"spec": {}})),
        ("run by others", json!({"metadata": {}, "spec": {"managedBy": "example.com/other"}})),
        ("with a queue", json!({"metadata": {"labels": {"kueue.x-k8s.io/queue-name": "own"}}, "spec": {}})),
        (
            "owned",
            json!({"metadata": {"ownerReferences": [
                {"apiVersion": "batch/v1", "kind": "Job", "controller": true}
            ]}, "spec": {}}),
        ),
    ] {
        told += &format!("{name}: {}; without: {}\n", default(&job, true), default(&job, false));
    }
    expect![[r#"
        plain: {"metadata":{"labels":{"app":"a","kueue.x-k8s.io/queue-name":"default"}},"spec":{"suspend":true}}; without: as it is
        no labels: {"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"default"}},"spec":{"suspend":true}}; without: as it is
        labels that are none: as it is; without: as it is
        no metadata: {"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"default"}},"spec":{"suspend":true}}; without: as it is
        run by others: as it is; without: as it is
        with a queue: {"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"own"}},"spec":{"suspend":true}}; without: {"metadata":{"labels":{"kueue.x-k8s.io/queue-name":"own"}},"spec":{"suspend":true}}
        owned: as it is; without: as it is
    "#]].assert_eq(&told);
}

#[test]
fn a_job_may_start_with_fewer_pods_than_a_slice_has() {
    let with = |suspend: bool, parallelism: i32| {
        let annotations = json!({
            "kueue.x-k8s.io/podset-slice-required-topology": "cloud.provider.com/topology-rack",
            "kueue.x-k8s.io/podset-slice-size": "3",
        });
        let template = json!({"metadata": {"annotations": annotations}});
        job(
            json!({"kueue.x-k8s.io/queue-name": "a"}),
            json!({"kueue.x-k8s.io/job-min-parallelism": "2"}),
            json!({"suspend": suspend, "parallelism": parallelism, "template": template}),
        )
    };
    let mut board = created(&with(true, 4));
    board += &updated(&with(true, 4), &with(false, 2));
    board += &updated(&with(false, 2), &with(true, 2));
    board += &updated(&with(true, 2), &with(true, 4));
    assert_eq!(board, "as it is\n".repeat(4));
}
