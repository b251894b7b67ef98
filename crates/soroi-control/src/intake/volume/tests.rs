//! Claims, volumes and limits as a cluster leaves them.

use expect_test::expect;
use soroi_engine::event::Unserved;

use super::*;
use crate::intake::tests::yaml;

#[test]
fn a_pod_names_each_claim_once() {
    let spec: PodSpec = yaml(
        "
        containers: []
        volumes:
        - {name: z, persistentVolumeClaim: {claimName: z}}
        - {name: cache, emptyDir: {}}
        - {name: a, persistentVolumeClaim: {claimName: a, readOnly: true}}
        - {name: again, persistentVolumeClaim: {claimName: z}}
        ",
    );
    let (keys, own) = claims(&spec, &"ns".into());
    let keys: Vec<&str> = keys.iter().map(|key| &*key.name).collect();
    assert_eq!((keys, own), (vec!["a", "z"], None));
    let spec: PodSpec = yaml("{containers: [], volumes: [{name: own, ephemeral: {}}]}");
    assert_eq!(claims(&spec, &"ns".into()).1, Some(Unserved::OwnVolumes));
}

/// A volume name alone is half a bond: whoever binds writes the annotation last.
#[test]
fn a_claim_is_bound_when_both_sides_say_so() {
    let bound = "annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: v}";
    let state = |text: &str| claim(&yaml(&format!("{{metadata: {{name: c, namespace: ns, {text}}}"))).state;
    assert_eq!(state(bound), ClaimState::Bound);
    assert_eq!(state("}, spec: {volumeName: v}"), ClaimState::Unbound);
    assert_eq!(
        state("annotations: {pv.kubernetes.io/bind-completed: 'yes'}}, spec: {volumeName: ''}"),
        ClaimState::Unbound
    );
    assert_eq!(state(&format!("{bound}, status: {{phase: Lost}}")), ClaimState::Lost);
    assert_eq!(state(&format!("deletionTimestamp: 2026-01-01T00:00:00Z, {bound}")), ClaimState::Leaving);
    assert!(claim(&yaml("{metadata: {}, spec: {accessModes: [ReadWriteOncePod]}}")).alone);
    assert!(!claim(&yaml("{metadata: {}, spec: {accessModes: [ReadWriteOnce]}}")).alone);
}

#[test]
fn a_volume_says_where_it_is() {
    let told = volume(&yaml(
        "
        metadata: {name: v, labels: {topology.kubernetes.io/zone: z1__z2, app: x}}
        spec:
          csi: {driver: fast, volumeHandle: h}
          nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: host, operator: In, values: [a]}]}]}}
        ",
    ));
    expect![[r#"Volume { name: "v", node_affinity: Some([NodeSelectorTerm { labels: [Expression { key: "host", op: In(["a"]) }], fields: [] }]), zones: {"topology.kubernetes.io/zone": {"z1", "z2"}}, attached: Some(Attached { driver: "fast", handle: "h" }) }"#]].assert_eq(&format!("{:?}", told.unwrap()));
    let wrong = volume(&yaml(
        "{metadata: {name: v}, spec: {nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Near}]}]}}}}",
    ));
    expect![[r#"spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0].operator: unknown operator "Near""#]].assert_eq(&wrong.unwrap_err().to_string());
}

#[test]
fn drivers_that_say_nothing_have_no_limit() {
    let limits = volume_limits(&yaml(
        "
        metadata: {name: n}
        spec:
          drivers:
          - {name: fast, nodeID: n, allocatable: {count: 3}}
          - {name: none, nodeID: n, allocatable: {count: -1}}
          - {name: slow, nodeID: n, allocatable: {}}
          - {name: odd, nodeID: n}
        ",
    ));
    assert_eq!(limits, BTreeMap::from([("fast".into(), 3), ("none".into(), 0)]));
}
