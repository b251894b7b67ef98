//! What intake makes of Jobs.

use expect_test::{Expect, expect};

use super::*;
use crate::intake::tests::yaml;

/// As the API server and the Job controller of 1.36 leave a suspended Job.
pub(crate) const SUSPENDED: &str = r#"
apiVersion: batch/v1
kind: Job
metadata:
  annotations: {}
  creationTimestamp: "2026-11-29T21:44:34Z"
  labels: {kueue.x-k8s.io/queue-name: team-a}
  name: train
  namespace: default
  uid: 1b2c
spec:
  backoffLimit: 0
  completionMode: NonIndexed
  completions: 4
  manualSelector: false
  parallelism: 4
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: 1b2c}}
  suspend: true
  template:
    metadata:
      annotations: {kueue.x-k8s.io/podset-required-topology: cloud.provider.com/topology-rack}
      labels:
        batch.kubernetes.io/controller-uid: 1b2c
        batch.kubernetes.io/job-name: train
        controller-uid: 1b2c
        job-name: train
    spec:
      containers:
      - image: registry.k8s.io/pause:3.9
        name: trainer
        resources:
          limits: {example.com/gpu: "1"}
          requests: {cpu: 500m, example.com/gpu: "1", memory: 128Mi}
      restartPolicy: Never
      schedulerName: default-scheduler
status:
  conditions: [{type: Suspended, status: "True", reason: JobSuspended}]
"#;

fn check(text: &str, expected: Expect) {
    let line = job(&yaml(text)).map_or_else(
        |invalid| invalid.to_string(),
        |f| {
            if let Some(invalid) = f.invalid {
                return invalid.to_string();
            }
            format!(
                "queue={:?} group={:?} scheduler={} pods={} left={} mutable={} ready={} {:?} finished={:?}",
                f.queue,
                f.group,
                f.scheduler,
                f.pods(),
                f.pods_left(),
                f.template_mutable(),
                f.pods_ready(),
                f.topology,
                f.finished,
            )
            .replace("Some(", "(")
        },
    );
    expected.assert_eq(&line);
}

#[test]
fn a_suspended_job_waits_to_be_released() {
    check(
        SUSPENDED,
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=4 left=4 mutable=true ready=false TopologyRequest { wish: Required("cloud.provider.com/topology-rack"), slices: [], group: None } finished=None"#
        ]],
    );
}

#[test]
fn a_template_may_change_only_when_both_sides_are_suspended_and_no_pod_is_active() {
    let mutable = |from: &str, to: &str| job(&yaml(&SUSPENDED.replace(from, to))).unwrap().template_mutable();
    assert!(mutable("", ""));
    assert!(!mutable("suspend: true", "suspend: false"));
    assert!(!mutable("status: \"True\"", "status: \"False\""));
    assert!(!mutable("\nstatus:", "\nstatus:\n  active: 1"));
    assert!(mutable("\nstatus:", "\nstatus:\n  active: 0"));
}

#[test]
fn a_job_that_another_controller_runs_is_not_ours_to_start() {
    let queue = |line: &str| {
        let text = SUSPENDED.replace("  suspend: true\n", &format!("  suspend: true\n{line}"));
        job(&yaml(&text)).unwrap().queue
    };
    assert_eq!(queue("").as_deref(), Some("team-a"));
    assert_eq!(queue("  managedBy: kubernetes.io/job-controller\n").as_deref(), Some("team-a"));
    assert_eq!(queue("  managedBy: example.com/other\n"), None);
}

#[test]
fn what_is_done_for_good_is_not_asked_for_again() {
    let left = |parallelism: &str, status: &str| {
        let text = SUSPENDED.replace("parallelism: 4", parallelism).replace("\nstatus:", status);
        job(&yaml(&text)).unwrap().pods_left()
    };
    assert_eq!(left("parallelism: 3", "\nstatus:"), 3);
    assert_eq!(left("parallelism: 3", "\nstatus:\n  succeeded: 1"), 3);
    assert_eq!(left("parallelism: 3", "\nstatus:\n  succeeded: 2"), 2);
    assert_eq!(left("parallelism: 3", "\nstatus:\n  succeeded: 1\n  failedIndexes: 1,3"), 1);
    assert_eq!(left("parallelism: 3", "\nstatus:\n  succeeded: 9"), 0);
}

#[test]
fn a_work_queue_runs_as_many_as_it_may() {
    check(
        &SUSPENDED.replace("  completions: 4\n", ""),
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=4 left=4 mutable=true ready=false TopologyRequest { wish: Required("cloud.provider.com/topology-rack"), slices: [], group: None } finished=None"#
        ]],
    );
    let draining = SUSPENDED
        .replace("  completions: 4\n", "")
        .replace("\nstatus:", "\nstatus:\n  succeeded: 1\n  active: 2");
    assert_eq!(job(&yaml(&draining)).unwrap().pods_left(), 2);
    // Neither given: the API server sets both to 1.
    check(
        &SUSPENDED.replace("  completions: 4\n", "").replace("  parallelism: 4\n", ""),
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=1 left=1 mutable=true ready=false TopologyRequest { wish: Required("cloud.provider.com/topology-rack"), slices: [], group: None } finished=None"#
        ]],
    );
}

#[test]
fn an_ended_job_says_how() {
    let ended = |kind: &str| {
        let condition = format!(
            "conditions: [{{type: {kind}, status: 'True', reason: r, message: Reached expected number of \
             succeeded pods, lastTransitionTime: '2026-11-29T21:50:00Z'}}]\n"
        );
        SUSPENDED
            .replace("conditions: [{type: Suspended, status: \"True\", reason: JobSuspended}]\n", &condition)
    };
    check(
        &ended("Complete"),
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=4 left=4 mutable=false ready=false TopologyRequest { wish: Required("cloud.provider.com/topology-rack"), slices: [], group: None } finished=(Finished { succeeded: true, message: "Reached expected number of succeeded pods", at: 1795989000000 })"#
        ]],
    );
    check(
        &ended("Failed"),
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=4 left=4 mutable=false ready=false TopologyRequest { wish: Required("cloud.provider.com/topology-rack"), slices: [], group: None } finished=(Finished { succeeded: false, message: "Reached expected number of succeeded pods", at: 1795989000000 })"#
        ]],
    );
}

#[test]
fn what_cannot_be_honoured_is_refused_by_its_name() {
    let topology = "kueue.x-k8s.io/podset-required-topology: cloud.provider.com/topology-rack";
    let with = |annotations: &str| SUSPENDED.replace(topology, annotations);
    check(
        &with("kueue.x-k8s.io/podset-slice-size: '2'"),
        expect![
            "spec.template.metadata.annotations[kueue.x-k8s.io/podset-slice-size]: must not be given without the slices' level"
        ],
    );
    check(
        &with(&format!("{topology}, kueue.x-k8s.io/podset-preferred-topology: x")),
        expect!["spec.template.metadata.annotations: must not contain more than one topology request"],
    );
    check(
        &with("kueue.x-k8s.io/podset-unconstrained-topology: 'true'"),
        expect![[
            r#"queue=("team-a") group=None scheduler=default-scheduler pods=4 left=4 mutable=true ready=false TopologyRequest { wish: Unconstrained, slices: [], group: None } finished=None"#
        ]],
    );
    check(
        &SUSPENDED.replace("parallelism: 4", "parallelism: -4"),
        expect!["spec.parallelism: -4 must not be negative"],
    );
    let few = "annotations: {kueue.x-k8s.io/job-min-parallelism: some}";
    check(
        &SUSPENDED.replace("annotations: {}", few),
        expect![[r#"metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: "some" is no whole number"#]],
    );
}

#[test]
fn the_digest_ignores_what_tells_jobs_apart_and_nothing_else() {
    let digest = |text: &str| job(&yaml(text)).unwrap().template_digest;
    let other_uid = SUSPENDED.replace("1b2c", "3d4e");
    assert_eq!(digest(SUSPENDED), digest(&other_uid));
    assert_ne!(digest(SUSPENDED), digest(&SUSPENDED.replace("500m", "501m")));
    assert_ne!(digest(SUSPENDED), digest(&SUSPENDED.replace("topology-rack", "topology-block")));
}

#[test]
fn indexes_are_counted_as_the_job_controller_writes_them() {
    for (text, count) in [("", 0), ("1", 1), ("0,3-5,7", 5), ("5-3", 0), ("a,2", 1)] {
        assert_eq!(count_indexes(text), count, "{text}");
    }
}

#[test]
fn the_facts_of_a_job_stay_small() {
    assert!(size_of::<JobFacts>() <= 512, "{}", size_of::<JobFacts>());
}

/// A leader and its workers are two pod sets of one Workload. A Job with a queue has a Workload of its own, so it
/// can be neither, also where its pods join a PodGroup; without one its pods are the group's.
#[test]
fn a_job_with_a_queue_shares_its_domain_with_nobody() {
    let job_in = |queue: bool, group: bool| {
        let group = if group { "scheduling.k8s.io/group-name: ring, " } else { "" };
        let annotations = format!("annotations: {{{group}kueue.x-k8s.io/podset-group-name: pair, kueue");
        let text = SUSPENDED.replace("annotations: {kueue", &annotations);
        let text = if queue { text } else { text.replace("{kueue.x-k8s.io/queue-name: team-a}", "{}") };
        let invalid = job(&yaml(&text)).unwrap().invalid;
        invalid.map_or_else(|| "fine".to_owned(), |invalid| invalid.to_string())
    };
    let refused = "spec.template.metadata.annotations[kueue.x-k8s.io/podset-group-name]: a group has exactly 2 pod \
                   sets, and a Job has 1";
    assert_eq!(job_in(true, true), refused);
    assert_eq!(job_in(true, false), refused);
    assert_eq!(job_in(false, false), refused);
    assert_eq!(job_in(false, true), "fine");
}
