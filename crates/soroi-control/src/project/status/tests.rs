//! A Workload's life in conditions, compared by eye with what Kueue 0.18.1 wrote.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::json;
use soroi_engine::decision::TopologyDomain as Domain;
use soroi_engine::event::{Policy, Shape, TopologyRequest};
use soroi_engine::minima::Lack;

use super::super::workload::tests::picture;
use super::*;

fn at(seconds: i64) -> Moment {
    in_words_of(Dialect::default(), seconds)
}

fn in_words_of(dialect: Dialect, seconds: i64) -> Moment {
    At { now: Timestamp::from_second(1_795_988_674 + seconds).unwrap(), dialect }.of(1)
}

fn pod_sets() -> Vec<PodSet> {
    let requests = [("cpu", 500), ("example.com/gpu", 1), ("memory", 128 << 20)];
    let requests = requests.into_iter().map(|(name, each)| (Arc::from(name), each)).collect();
    let shape = Arc::new(Shape { requests, ..Shape::default() });
    vec![PodSet {
        name: "main".into(),
        role: None,
        count: 4,
        least: None,
        shape,
        charged: None,
        topology: TopologyRequest::NONE,
        who: Arc::default(),
    }]
}

fn admission() -> decision::Admission {
    let usage = [("cpu", 2000), ("example.com/gpu", 4), ("memory", 512 << 20)];
    let flavors = usage.iter().map(|(name, _)| (Arc::from(*name), Arc::from("tas-flavor"))).collect();
    let domain = |name: &str| Domain { values: vec![name.into()], count: 2 };
    decision::Admission {
        gang: "wl".into(),
        policy: Policy::TopologyOnly,
        cluster_queue: Some("gpu-queue".into()),
        pod_sets: vec![PodSetAdmission {
            name: "main".into(),
            count: 4,
            flavors,
            usage: usage.into_iter().map(|(name, amount)| (Arc::from(name), amount)).collect(),
            nodes: Vec::new(),
            topology: Some(TopologyPlaces {
                levels: vec!["kubernetes.io/hostname".into()],
                domains: vec![domain("kueue-volcano-test-worker"), domain("kueue-volcano-test-worker2")],
            }),
        }],
    }
}

/// Conditions in lines: type, status, reason, message, seconds since the story began.
fn lines(status: &WorkloadStatus) -> String {
    let start = at(0).now;
    let line = |c: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition| {
        let seconds = c.last_transition_time.0.duration_since(start).as_secs();
        format!("{seconds:<3} {}={} {}: {}", c.type_, c.status, c.reason, c.message)
    };
    status.conditions.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn check(status: &WorkloadStatus, expected: Expect) {
    expected.assert_eq(&lines(status));
}

const TOO_FEW: &str = "couldn't assign flavors to pod set main: topology \"gpu-topology\" allows to fit only \
                       3 out of 4 pod(s)";

#[test]
fn a_waiting_workload_says_why_and_what_it_asks_for() {
    let mut status = WorkloadStatus::default();
    pending(&mut status, word::PENDING, TOO_FEW, &pod_sets(), at(0));
    expect![[r#"
        {
          "conditions": [
            {
              "lastTransitionTime": "2026-11-29T21:44:34Z",
              "message": "couldn't assign flavors to pod set main: topology \"gpu-topology\" allows to fit only 3 out of 4 pod(s)",
              "observedGeneration": 1,
              "reason": "Pending",
              "status": "False",
              "type": "QuotaReserved"
            }
          ],
          "resourceRequests": [
            {
              "name": "main",
              "resources": {
                "cpu": "2",
                "example.com/gpu": "4",
                "memory": "512Mi"
              }
            }
          ]
        }"#]].assert_eq(&picture(&status));
}

#[test]
fn an_admitted_workload_shows_what_it_got() {
    let mut status = WorkloadStatus::default();
    pending(&mut status, word::PENDING, TOO_FEW, &pod_sets(), at(0));
    let before = status.clone();
    reserve(&mut status, &admission(), at(8));
    let patch = super::super::status_patch(Some("420"), Some(&before), &status).unwrap();
    expect![[r#"
        {
          "metadata": {
            "resourceVersion": "420"
          },
          "status": {
            "admission": {
              "clusterQueue": "gpu-queue",
              "podSetAssignments": [
                {
                  "count": 4,
                  "flavors": {
                    "cpu": "tas-flavor",
                    "example.com/gpu": "tas-flavor",
                    "memory": "tas-flavor"
                  },
                  "name": "main",
                  "resourceUsage": {
                    "cpu": "2",
                    "example.com/gpu": "4",
                    "memory": "512Mi"
                  },
                  "topologyAssignment": {
                    "levels": [
                      "kubernetes.io/hostname"
                    ],
                    "slices": [
                      {
                        "domainCount": 2,
                        "podCounts": {
                          "universal": 2
                        },
                        "valuesPerLevel": [
                          {
                            "individual": {
                              "prefix": "kueue-volcano-test-worker",
                              "roots": [
                                "",
                                "2"
                              ]
                            }
                          }
                        ]
                      }
                    ]
                  }
                }
              ]
            },
            "conditions": [
              {
                "lastTransitionTime": "2026-11-29T21:44:42Z",
                "message": "Quota reserved in ClusterQueue gpu-queue",
                "observedGeneration": 1,
                "reason": "QuotaReserved",
                "status": "True",
                "type": "QuotaReserved"
              },
              {
                "lastTransitionTime": "2026-11-29T21:44:42Z",
                "message": "The workload is admitted",
                "observedGeneration": 1,
                "reason": "Admitted",
                "status": "True",
                "type": "Admitted"
              }
            ],
            "resourceRequests": null
          }
        }"#]]
    .assert_eq(&picture(patch));
    // Writing the same again is no write.
    let again = status.clone();
    reserve(&mut status, &admission(), at(9));
    assert_eq!(super::super::status_patch(None, Some(&again), &status), None);
}

#[test]
fn a_life_with_an_eviction_reads_as_in_kueue() {
    let mut status = WorkloadStatus::default();
    reserve(&mut status, &admission(), at(0));
    pods_ready(&mut status, false, at(0));
    pods_ready(&mut status, true, at(3));
    pods_ready(&mut status, false, at(10));
    check(
        &status,
        expect![[r#"
            0   QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue gpu-queue
            0   Admitted=True Admitted: The workload is admitted
            10  PodsReady=False WaitForRecovery: At least one pod has failed, waiting for recovery"#]],
    );
    evict(&mut status, word::NODE_FAILURES, "a node is gone", at(70));
    give_back(&mut status, at(75));
    check(
        &status,
        expect![[r#"
            75  QuotaReserved=False Pending: a node is gone
            75  Admitted=False NoReservation: The workload has no reservation
            10  PodsReady=False WaitForStart: Not all pods are ready or succeeded
            70  Evicted=True NodeFailures: a node is gone
            75  Requeued=True NodeFailures: a node is gone"#]],
    );
    reserve(&mut status, &admission(), at(80));
    pods_ready(&mut status, true, at(85));
    finish(&mut status, true, "Reached expected number of succeeded pods", at(100));
    check(
        &status,
        expect![[r#"
            80  QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue gpu-queue
            80  Admitted=True Admitted: The workload is admitted
            85  PodsReady=True Started: All pods reached readiness and the workload is running
            80  Evicted=False QuotaReserved: Previously: a node is gone
            75  Requeued=True NodeFailures: a node is gone
            100 Finished=True Succeeded: Reached expected number of succeeded pods"#]],
    );
    expect![[r#"
        {
          "past": 75,
          "stats": {
            "evictions": [
              {
                "count": 1,
                "reason": "NodeFailures",
                "underlyingCause": ""
              }
            ]
          }
        }"#]]
    .assert_eq(&picture(json!({
        "past": status.accumulated_past_execution_time_seconds, "stats": status.scheduling_stats,
    })));
}

#[test]
fn after_a_time_out_a_workload_pauses_until_it_is_requeued() {
    let mut status = WorkloadStatus::default();
    reserve(&mut status, &admission(), at(0));
    let (reason, message) =
        undo_words(&UndoReason::RecoveryTimeout(Lack { role: None, have: 3, need: 4 }), "ns", "wl");
    evict(&mut status, reason, &message, at(60));
    give_back(&mut status, at(61));
    requeue(&mut status, word::BACKOFF_FINISHED, at(121));
    check(
        &status,
        expect![[r#"
            61  QuotaReserved=False Pending: Exceeded the PodsReady timeout ns/wl: 3 of 4 pods are bound
            61  Admitted=False NoReservation: The workload has no reservation
            60  Evicted=True PodsReadyTimeout: Exceeded the PodsReady timeout ns/wl: 3 of 4 pods are bound
            121 Requeued=True BackoffFinished: The workload backoff was finished"#]],
    );
}

#[test]
fn an_undo_before_the_start_is_no_eviction() {
    let mut status = WorkloadStatus::default();
    reserve(&mut status, &admission(), at(0));
    undo(&mut status, "3 of 4 pods exist", at(60));
    check(
        &status,
        expect![[r#"
            60  QuotaReserved=False Pending: 3 of 4 pods exist
            60  Admitted=False NoReservation: The workload has no reservation"#]],
    );
    assert_eq!(status.admission, None);
}

#[test]
fn checks_hold_a_workload_back_and_start_anew_after_an_eviction() {
    let check_state = |state: CheckState| AdmissionCheckState {
        name: "prov".into(),
        state,
        last_transition_time: Time(at(0).now),
        message: "asked".into(),
        pod_set_updates: Vec::new(),
        requeue_after_seconds: None,
        retry_count: None,
    };
    let mut status =
        WorkloadStatus { admission_checks: vec![check_state(CheckState::Pending)], ..Default::default() };
    reserve(&mut status, &admission(), at(0));
    check(&status, expect!["0   QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue gpu-queue"]);
    status.admission_checks = vec![check_state(CheckState::Ready)];
    sync_admitted(&mut status, at(5));
    check(
        &status,
        expect![[r#"
            0   QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue gpu-queue
            5   Admitted=True Admitted: The workload is admitted"#]],
    );
    evict(&mut status, word::PREEMPTED, "for another", at(10));
    expect![[r#"
        [
          {
            "lastTransitionTime": "2026-11-29T21:44:44Z",
            "message": "Reset to Pending after eviction. Previously: Ready",
            "name": "prov",
            "state": "Pending"
          }
        ]"#]]
    .assert_eq(&picture(&status.admission_checks));
}

#[test]
fn who_is_put_back_pauses_for_twice_as_long_each_time() {
    let rules = Requeuing { to_the_back: true, limit: None, base_secs: 60, max_secs: 300 };
    let mut status = WorkloadStatus::default();
    let mut said = String::new();
    for _ in 0..5 {
        put_back(&mut status, &rules, at(0));
        let state = status.requeue_state.as_mut().unwrap();
        let until = state.requeue_at.take().unwrap();
        let pause = until.0.duration_since(at(0).now).as_secs();
        said += &format!("{}: {pause} s\n", state.count.unwrap());
    }
    expect![[r#"
        1: 60 s
        2: 120 s
        3: 240 s
        4: 300 s
        5: 300 s
    "#]]
    .assert_eq(&said);
    // Whoever else had it wait for longer is heard.
    let later = Time(at(4_000).now);
    status.requeue_state.as_mut().unwrap().requeue_at = Some(later.clone());
    put_back(&mut status, &rules, at(0));
    assert_eq!(status.requeue_state.as_ref().unwrap().requeue_at, Some(later));
    // Deactivated, it begins anew.
    let (reason, message) = deactivation(PUT_BACK_TOO_OFTEN);
    evict(&mut status, &reason, &message, at(1));
    assert_eq!(status.requeue_state, None);
    let evictions = status.scheduling_stats.unwrap().evictions;
    expect![[r#"[WorkloadEviction { reason: "Deactivated", underlying_cause: "RequeuingLimitExceeded", count: 1 }]"#]].assert_eq(&format!("{evictions:?}"));
}

#[test]
fn who_ends_while_it_waits_waits_for_nothing_any_more() {
    let mut status = WorkloadStatus::default();
    pending(&mut status, word::PENDING, "insufficient quota", &pod_sets(), at(0));
    finish(&mut status, false, "All pods of the group have ended", at(9));
    check(
        &status,
        expect![[r#"
            0   QuotaReserved=False Failed: All pods of the group have ended
            9   Finished=True Failed: All pods of the group have ended"#]],
    );
}

fn with_check(state: CheckState, requeue_after_seconds: Option<i32>) -> WorkloadStatus {
    let mut status = WorkloadStatus::default();
    reserve(&mut status, &admission(), at(0));
    status.admission_checks = vec![AdmissionCheckState {
        name: "budget".into(),
        state,
        last_transition_time: Time(at(5).now),
        message: "revoked".into(),
        pod_set_updates: Vec::new(),
        requeue_after_seconds,
        retry_count: None,
    }];
    status
}

/// Kueue 0.18: the pause counts from when the check said so, and the check starts anew.
#[test]
fn a_check_that_says_retry_has_the_workload_pause() {
    let mut status = with_check(CheckState::Retry, Some(60));
    evict(&mut status, word::ADMISSION_CHECK, "Evicted due to AdmissionCheck", at(7));
    let pause = status.requeue_state.as_ref().and_then(|state| state.requeue_at.clone());
    assert_eq!(pause, Some(Time(at(65).now)));
    let check = &status.admission_checks[0];
    assert_eq!((check.state, check.retry_count), (CheckState::Pending, Some(1)));
    assert_eq!(check.message, "Reset to Pending after eviction. Previously: Retry");
    give_back(&mut status, at(8));
    let requeued = conditions::get(&status.conditions, condition::REQUEUED).unwrap();
    assert_eq!((requeued.status.as_str(), requeued.reason.as_str()), ("False", "AdmissionCheck"));

    let mut at_once = with_check(CheckState::Retry, None);
    evict(&mut at_once, word::ADMISSION_CHECK, "Evicted due to AdmissionCheck", at(7));
    assert_eq!(at_once.requeue_state, None);
}

#[test]
fn who_is_rejected_says_by_which_checks() {
    let status = with_check(CheckState::Rejected, None);
    assert_eq!(rejection(&status), "Admission check(s): budget, were rejected");
}

#[test]
fn in_the_words_of_0_19() {
    let at = |seconds| in_words_of(Dialect::Kueue019, seconds);
    let mut status = with_check(CheckState::Ready, None);
    sync_admitted(&mut status, at(1));
    status.admission_checks[0].state = CheckState::Pending;
    sync_admitted(&mut status, at(2));
    check(
        &status,
        expect![[r#"
        0   QuotaReserved=True QuotaReserved: Quota reserved in ClusterQueue gpu-queue
        2   Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready"#]],
    );
    evict(&mut status, word::PREEMPTED, "for another", at(3));
    give_back(&mut status, at(4));
    check(
        &status,
        expect![[r#"
        4   QuotaReserved=False PendingEvaluation: for another
        2   Admitted=False UnsatisfiedAdmissionChecks: The workload has not all checks ready
        3   Evicted=True Preempted: for another
        4   Requeued=True Preempted: for another"#]],
    );
}
