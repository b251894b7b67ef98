//! Bindings, conditions and gates.

use expect_test::expect;
use serde_json::Value;

use super::super::workload::tests::picture;
use super::*;
use crate::intake::tests::yaml;
use crate::intake::{Schedulers, pod};

fn facts(status: &str) -> (PodFacts, Value) {
    let object: k8s_openapi::api::core::v1::Pod = yaml(&format!(
        "
        metadata: {{name: p, namespace: ns, uid: u}}
        spec:
          containers: []
          nodeSelector: {{rack: r1}}
          schedulingGates: [{{name: kueue.x-k8s.io/topology}}, {{name: other}}]
        status: {status}
        "
    ));
    (pod(&object, &Schedulers::default()).unwrap(), json!(object))
}

#[test]
fn a_binding_names_the_pod_by_uid_and_says_who_bound_it() {
    let (facts, _) = facts("{}");
    let bound = call::Binding { pod: facts.pod.uid.clone(), node: "worker-1".into(), epoch: 7 };
    expect![[r#"
        {
          "apiVersion": "v1",
          "kind": "Binding",
          "metadata": {
            "annotations": {
              "soroi.dev/leader-epoch": "7"
            },
            "name": "p",
            "namespace": "ns",
            "uid": "u"
          },
          "target": {
            "apiVersion": "v1",
            "kind": "Node",
            "name": "worker-1"
          }
        }"#]]
    .assert_eq(&picture(binding(&facts.pod.namespace, &facts.pod.name, &bound)));
}

#[test]
fn why_a_pod_waits_is_told_once_and_its_time_does_not_move() {
    let now: Timestamp = "2026-11-29T21:45:00Z".parse().unwrap();
    let mut told = Vec::new();
    for status in [
        "{}",
        "{conditions: [{type: PodReadyToStartContainers, status: 'False'}]}",
        "{conditions: [{type: PodScheduled, status: 'True'}]}",
        "{conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: old, \
          lastTransitionTime: '2026-11-29T21:00:00Z'}]}",
    ] {
        let (facts, mut object) = facts(status);
        let patch = unschedulable(&facts, "Unschedulable", "0/3 nodes are unavailable.", now).unwrap();
        json_patch::patch(&mut object, &patch).unwrap();
        told.push(object["status"]["conditions"].to_string());
        let again = pod(&serde_json::from_value(object).unwrap(), &Schedulers::default()).unwrap();
        assert_eq!(unschedulable(&again, "Unschedulable", "0/3 nodes are unavailable.", now), None);
    }
    expect![[r#"
        [{"lastProbeTime":null,"lastTransitionTime":"2026-11-29T21:45:00Z","message":"0/3 nodes are unavailable.","reason":"Unschedulable","status":"False","type":"PodScheduled"}]
        [{"status":"False","type":"PodReadyToStartContainers"},{"lastProbeTime":null,"lastTransitionTime":"2026-11-29T21:45:00Z","message":"0/3 nodes are unavailable.","reason":"Unschedulable","status":"False","type":"PodScheduled"}]
        [{"lastProbeTime":null,"lastTransitionTime":"2026-11-29T21:45:00Z","message":"0/3 nodes are unavailable.","reason":"Unschedulable","status":"False","type":"PodScheduled"},{"status":"True","type":"PodScheduled"}]
        [{"lastTransitionTime":"2026-11-29T21:00:00Z","message":"0/3 nodes are unavailable.","reason":"Unschedulable","status":"False","type":"PodScheduled"}]"#]].assert_eq(&told.join("\n"));
}

#[test]
fn a_pod_that_leaves_the_topology_gate_is_pinned_to_its_domain() {
    let (facts, mut object) = facts("{}");
    let domain = Labels::from([("kubernetes.io/hostname".into(), "worker-1".into())]);
    json_patch::patch(&mut object, &ungate(&facts, &domain).unwrap()).unwrap();
    expect![[r#"{"containers":[],"nodeSelector":{"kubernetes.io/hostname":"worker-1","rack":"r1"},"schedulingGates":[{"name":"other"}]}"#]].assert_eq(&object["spec"].to_string());
    let free = pod(&serde_json::from_value(object).unwrap(), &Schedulers::default()).unwrap();
    assert_eq!(ungate(&free, &domain), None);
}

#[test]
fn a_pod_is_tied_to_the_group_that_was_made_for_it() {
    let (facts, _) = facts("{}");
    expect![[r#"{"metadata":{"annotations":{"scheduling.k8s.io/group-name":"podgroup-1"},"uid":"u"}}"#]]
        .assert_eq(&join_group(&facts.pod, "podgroup-1").to_string());
}
