//! What of a real pod was not expected, row by row.

use super::*;
use crate::event::{Labels, PodPhase, Toleration, TolerationMatch};

fn toleration(key: &str) -> Toleration {
    Toleration { key: Some(key.into()), matches: TolerationMatch::Exists, effect: None }
}

fn shape(cpu: i64, labels: &[&str], tolerations: &[&str]) -> Arc<Shape> {
    Arc::new(Shape {
        requests: [("cpu".into(), cpu)].into(),
        node_selector: labels.iter().map(|key| ((*key).into(), "yes".into())).collect(),
        node_affinity: None,
        tolerations: tolerations.iter().map(|key| toleration(key)).collect(),
        ..Shape::default()
    })
}

#[test]
fn what_its_flavor_added_is_not_the_pods_own() {
    let set = SeatSet {
        name: "main".into(),
        topology: None,
        node_labels: Labels::from([("red".into(), "yes".into())]),
        tolerations: vec![toleration("spot")],
        role: None,
        shape: None,
        kinds: Default::default(),
        seats: Vec::new(),
    };
    let plain = || shape(1, &[], &[]);
    let rows = [
        (plain(), plain(), None),
        (plain(), shape(1, &["red"], &["spot"]), None),
        // A sidecar, with and without what the flavor adds.
        (plain(), shape(2, &[], &[]), Some(shape(2, &[], &[]))),
        (plain(), shape(2, &["red"], &["spot"]), Some(shape(2, &[], &[]))),
        // What somebody else added is learnt.
        (plain(), shape(1, &["red", "fast"], &["spot", "dear"]), Some(shape(1, &["fast"], &["dear"]))),
        // What the template says itself stays.
        (shape(1, &["red"], &["spot"]), shape(2, &["red"], &["spot"]), Some(shape(2, &["red"], &["spot"]))),
        (shape(1, &["red"], &[]), shape(1, &["red"], &["spot"]), None),
        // Less than expected is another shape too.
        (shape(2, &["fast"], &[]), plain(), Some(plain())),
    ];
    for (at, (expected, real, learnt)) in rows.into_iter().enumerate() {
        let pod = Pod {
            uid: "p".into(),
            namespace: "ns".into(),
            name: "p".into(),
            node: None,
            shape: real,
            who: Arc::default(),
            owner: None,
            pod_set: None,
            role: None,
            index: None,
            phase: PodPhase::Pending,
            terminating: false,
            bindable: true,
        };
        assert_eq!(differs(&set, &expected, &pod), learnt, "row {at}");
    }
}
