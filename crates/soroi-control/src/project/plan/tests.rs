//! Plans, there and back again.

use expect_test::expect;
use proptest::prelude::*;
use soroi_engine::decision::{TopologyDomain, TopologyPlaces};
use soroi_engine::event::{Name, Policy};

use super::super::workload::tests::picture;
use super::*;
use crate::intake;

fn of(owners: &[Name]) -> PlanOf<'_> {
    PlanOf {
        gang: GangRef {
            kind: "Workload".into(),
            namespace: "default".into(),
            name: "job-train-12345".into(),
            uid: "wl-uid".into(),
        },
        api_version: "kueue.x-k8s.io/v1beta2",
        owners,
        leader_epoch: 7,
        local_queue: Some("team-a"),
        volcano_queue: None,
        min_members: Some(4),
        shapes: BTreeMap::from([("main".into(), "5ac4f1b0".into())]),
        victims: &[],
    }
}

fn now() -> Timestamp {
    "2026-11-29T21:44:42.5Z".parse().unwrap()
}

fn admission() -> Admission {
    Admission {
        gang: "wl-uid".into(),
        policy: Policy::Unified,
        cluster_queue: Some("gpu-queue".into()),
        pod_sets: vec![PodSetAdmission {
            name: "main".into(),
            count: 4,
            flavors: [("cpu".into(), "spot".into())].into(),
            usage: [("cpu".into(), 2000)].into(),
            nodes: vec![("worker-1".into(), 2), ("worker-2".into(), 2)],
            topology: None,
        }],
    }
}

#[test]
fn a_plan_is_named_after_its_gang_and_says_all_that_a_restart_needs() {
    let owners = ["job-uid".into()];
    let plan = plan(&of(&owners), &admission(), event::PlanPhase::Committed, now());
    expect![[r#"
        {
          "apiVersion": "soroi.dev/v1alpha1",
          "kind": "GangPlan",
          "metadata": {
            "finalizers": [
              "soroi.dev/plan"
            ],
            "name": "wl-uid",
            "namespace": "default",
            "ownerReferences": [
              {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "blockOwnerDeletion": false,
                "controller": true,
                "kind": "Workload",
                "name": "job-train-12345",
                "uid": "wl-uid"
              }
            ]
          },
          "spec": {
            "clusterQueue": "gpu-queue",
            "gang": {
              "kind": "Workload",
              "name": "job-train-12345",
              "namespace": "default",
              "uid": "wl-uid"
            },
            "leaderEpoch": 7,
            "localQueue": "team-a",
            "minMembers": 4,
            "owners": [
              "job-uid"
            ],
            "podSets": [
              {
                "count": 4,
                "flavors": {
                  "cpu": "spot"
                },
                "name": "main",
                "nodes": [
                  {
                    "pods": 2,
                    "prefix": "worker-",
                    "roots": [
                      "1",
                      "2"
                    ]
                  }
                ],
                "shape": "5ac4f1b0",
                "usage": {
                  "cpu": "2"
                }
              }
            ],
            "pods": 4,
            "policy": "Unified"
          },
          "status": {
            "phase": "Committed",
            "progressedAt": "2026-11-29T21:44:42.500000Z"
          }
        }"#]]
    .assert_eq(&picture(&plan));
}

fn name() -> impl Strategy<Value = Name> {
    "[a-z]{1,3}-[0-9]{1,3}(\\.[a-z]{2})?".prop_map(|name| Name::from(name.as_str()))
}

fn pod_set() -> impl Strategy<Value = PodSetAdmission> {
    let nodes = prop::collection::btree_map(name(), 1..5_u32, 0..40);
    let domains = prop::collection::btree_map(prop::collection::vec(name(), 2), 1..9_u32, 1..20);
    let topology = prop::option::of(domains.prop_map(|domains| TopologyPlaces {
        levels: vec!["rack".into(), "kubernetes.io/hostname".into()],
        domains: domains.into_iter().map(|(values, count)| TopologyDomain { values, count }).collect(),
    }));
    let flavors = prop::collection::btree_map(name(), name(), 0..3);
    let usage = prop::collection::btree_map(name(), 0..i64::MAX, 0..3);
    (name(), 0..9_u32, flavors, usage, nodes, topology).prop_map(
        |(name, count, flavors, usage, nodes, topology)| PodSetAdmission {
            name,
            count,
            flavors,
            usage,
            nodes: nodes.into_iter().collect(),
            topology,
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_into_a_plan_is_read_out_of_it(
        pod_sets in prop::collection::vec(pod_set(), 0..4),
        policy in prop::sample::select(vec![Policy::Unified, Policy::TopologyOnly, Policy::QuotaOnly]),
        queue in prop::option::of(name()),
    ) {
        let admission = Admission { gang: "wl-uid".into(), policy, cluster_queue: queue, pod_sets };
        let owners: Vec<Name> = vec!["job-uid".into(), "podgroup:a/b".into()];
        let written = plan(&of(&owners), &admission, event::PlanPhase::Settled, now());
        // Through JSON, as the API server keeps it.
        let read: GangPlan = serde_json::from_value(serde_json::json!(written)).unwrap();
        let facts = intake::plan(&read).unwrap();
        let progressed_at = now().as_millisecond();
        let phase = event::PlanPhase::Settled;
        prop_assert_eq!(
            facts.plan,
            event::Plan { gang: "wl-uid".into(), owners, phase, admission, progressed_at, victims: Vec::new() }
        );
    }
}

#[test]
fn a_plan_that_was_tampered_with_is_told_by_its_field() {
    let tampered = |change: fn(&mut PlannedPodSet)| {
        let mut plan = plan(&of(&[]), &admission(), event::PlanPhase::Committed, now());
        change(&mut plan.spec.pod_sets[0]);
        intake::plan(&plan).unwrap_err().to_string()
    };
    expect!["spec.podSets[0].nodes: nodes[0]: needs pods, or one entry of podsEach per root"]
        .assert_eq(&tampered(|set| set.nodes[0].pods = None));
    expect!["spec.podSets[0].count: must not be negative"].assert_eq(&tampered(|set| set.count = -1));
    let many = expect!["spec.podSets: 2147483647 pods are more than the 150000 that a gang may have"];
    many.assert_eq(&tampered(|set| set.count = i32::MAX));
    many.assert_eq(&tampered(|set| {
        set.nodes.truncate(1);
        set.nodes[0].roots.truncate(1);
        set.nodes[0].pods = Some(i32::MAX);
    }));
    expect![[r#"spec.podSets[0].usage[cpu]: quantity "much": expected a number at position 0"#]]
        .assert_eq(&tampered(|set| drop(set.usage.insert("cpu".into(), "much".into()))));
}

#[test]
fn plans_and_workloads_have_room_for_all_pod_sets_that_a_gang_may_have() {
    assert_eq!(soroi_api::labels::kueue::POD_SETS_MAX, soroi_engine::PAID_POD_SETS_MAX);
    let crds = serde_json::json!(soroi_api::crds::all());
    let plans =
        crds.as_array().unwrap().iter().find(|crd| crd["spec"]["names"]["kind"] == "GangPlan").unwrap();
    let pod_sets = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/podSets/maxItems";
    assert_eq!(plans.pointer(pod_sets), Some(&soroi_engine::POD_SETS_MAX.into()));
}
