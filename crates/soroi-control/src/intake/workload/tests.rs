//! What intake makes of Workloads as Kueue 0.18.1 leaves them.

use expect_test::{Expect, expect};

use super::*;
use crate::intake::tests::{shape_line, yaml};

const ADMITTED: &str = r#"
apiVersion: kueue.x-k8s.io/v1beta2
kind: Workload
metadata:
  creationTimestamp: "2026-11-29T21:44:34Z"
  generation: 1
  name: job-train-ddc9f
  namespace: default
  ownerReferences: [{apiVersion: batch/v1, controller: true, kind: Job, name: train, uid: job-uid}]
  uid: wl-uid
spec:
  active: true
  podSets:
  - count: 4
    name: main
    template:
      spec:
        containers:
        - {image: i, name: c, resources: {limits: {example.com/gpu: "1"}, requests: {cpu: 500m}}}
    topologyRequest: {required: rack}
  priority: 5
  queueName: team-a
status:
  admission:
    clusterQueue: gpu-queue
    podSetAssignments:
    - count: 4
      flavors: {cpu: tas, example.com/gpu: tas}
      name: main
      resourceUsage: {cpu: "2", example.com/gpu: "4"}
      topologyAssignment:
        levels: [kubernetes.io/hostname]
        slices:
        - domainCount: 2
          podCounts: {universal: 2}
          valuesPerLevel: [{individual: {prefix: worker, roots: ["", "2"]}}]
  conditions:
  - {type: QuotaReserved, status: "True", reason: QuotaReserved, message: m, lastTransitionTime: "2026-11-29T21:44:42Z"}
  - {type: Admitted, status: "True", reason: Admitted, message: m, lastTransitionTime: "2026-11-29T21:44:42Z"}
"#;

fn read(text: &str) -> WorkloadFacts {
    workload(&yaml(text), &Defaults::default()).unwrap()
}

#[test]
fn an_admitted_workload_is_read_with_what_it_holds() {
    let facts = read(ADMITTED);
    assert_eq!(facts.owner.as_ref().map(|owner| &*owner.uid), Some("job-uid"));
    assert_eq!((facts.priority, facts.is_admitted), (5, true));
    expect!["cpu=500 example.com/gpu=1 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"].assert_eq(&shape_line(&facts.pod_sets[0].shape));
    expect![[r#"
        Some(
            Admitted {
                cluster_queue: "gpu-queue",
                reserved_at: 1795988682000,
                leaving: false,
                pod_sets: [
                    (
                        "main",
                        4,
                        {
                            "cpu": "tas",
                            "example.com/gpu": "tas",
                        },
                    ),
                ],
                topology: {
                    "main": TopologyPlaces {
                        levels: [
                            "kubernetes.io/hostname",
                        ],
                        domains: [
                            TopologyDomain {
                                values: [
                                    "worker",
                                ],
                                count: 2,
                            },
                            TopologyDomain {
                                values: [
                                    "worker2",
                                ],
                                count: 2,
                            },
                        ],
                    },
                },
            },
        )
    "#]]
    .assert_debug_eq(&facts.admitted);
    assert_eq!(facts.invalid, None);
}

#[test]
fn without_the_condition_nothing_is_held() {
    let facts =
        read(&ADMITTED.replace("QuotaReserved, status: \"True\"", "QuotaReserved, status: \"False\""));
    assert_eq!(facts.admitted, None);
}

#[test]
fn an_eviction_that_costs_the_place_moves_the_time_stamp() {
    let evicted = |reason: &str| {
        let condition = format!(
            "  - {{type: Evicted, status: 'True', reason: {reason}, message: m, lastTransitionTime: '2026-11-29T22:00:00Z'}}\n"
        );
        let facts = read(&format!("{ADMITTED}{condition}"));
        let after = |at: Option<Millis>| at.map(|at| (at - facts.created_at) / 1000);
        [after(facts.sent_back_at(true)), after(facts.sent_back_at(false))]
    };
    assert_eq!(evicted("PodsReadyTimeout"), [Some(926), None]);
    assert_eq!(evicted("AdmissionCheck"), [Some(926), Some(926)]);
    assert_eq!(evicted("NodeFailures"), [None, None]);
    assert_eq!(evicted("Preempted"), [None, None]);
}

fn check_invalid(from: &str, to: &str, expected: Expect) {
    assert!(ADMITTED.contains(from), "{from}");
    let facts = read(&ADMITTED.replace(from, to));
    // It still is a gang: the pod sets are there.
    assert_eq!(facts.pod_sets.len(), 1);
    expected.assert_eq(&facts.invalid.map_or_else(String::new, |invalid| invalid.to_string()));
}

#[test]
fn a_workload_that_cannot_be_understood_still_is_one_and_says_which_field() {
    check_invalid(
        "cpu: 500m",
        "cpu: some",
        expect![[
            r#"spec.podSets[0].template.spec.containers[0].resources.requests[cpu]: quantity "some": expected a number at position 0"#
        ]],
    );
    check_invalid(
        "count: 4\n    name",
        "count: -4\n    name",
        expect!["spec.podSets[0].count: must not be negative"],
    );
    check_invalid(
        "count: 4\n    name",
        "count: 2147483647\n    name",
        expect!["spec.podSets: 2147483647 pods are more than the 150000 that a gang may have"],
    );
    check_invalid(
        "{required: rack}",
        "{required: rack, preferred: rack}",
        expect!["spec.podSets[0].topologyRequest: must not contain more than one topology request"],
    );
    check_invalid(
        "{required: rack}",
        "{podSetSliceSize: 2}",
        expect![[r#"
            spec.podSets[0].topologyRequest.podSetSliceSize: must not be given without the slices' level"#]],
    );
    check_invalid(
        "universal: 2",
        "individual: [2]",
        expect![
            "status.admission.podSetAssignments[0].topologyAssignment: topologyAssignment.slices[0]: podCounts has fewer entries than domainCount"
        ],
    );
    let empty = read("{metadata: {name: w, uid: u}, spec: {}}");
    expect!["spec.podSets: is empty"].assert_eq(&empty.invalid.unwrap().to_string());
}

#[test]
fn a_workload_has_the_digest_of_its_jobs_template() {
    let job = yaml(crate::intake::job::tests::SUSPENDED);
    let made = crate::project::workload::of_job(&job, &Defaults::default()).unwrap();
    // As the API server gives it back.
    let mut stored = serde_json::json!(made);
    stored["metadata"]["uid"] = "u".into();
    let facts = workload(&serde_json::from_value(stored).unwrap(), &Defaults::default()).unwrap();
    assert_eq!(facts.template_digests, [crate::intake::job(&job).unwrap().template_digest]);
}

#[test]
fn a_workload_that_lost_its_owner_is_told_from_one_that_never_had_any() {
    let with = |meta: &str| {
        read(&format!(
            "{{apiVersion: kueue.x-k8s.io/v1beta2, kind: Workload, metadata: {{name: a, uid: u, {meta}}}, spec: {{podSets: []}}}}"
        ))
    };
    let owner = "ownerReferences: [{apiVersion: batch/v1, controller: true, kind: Job, name: train, uid: j}]";
    let label = "labels: {kueue.x-k8s.io/job-uid: j}";
    assert!(with(label).orphaned);
    assert!(!with(&format!("{label}, {owner}")).orphaned);
    assert!(!with("labels: {app: mine}").orphaned);
}
