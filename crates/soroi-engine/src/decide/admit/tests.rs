//! Who is cut when not all can start, and what an admission takes, row by row.

use std::sync::Arc;

use super::*;
use crate::decide::wanted::StartSet;
use crate::event::{Policy, Shape, TopologyRequest};

fn start(counts: &[u32]) -> Start {
    let shape = Arc::new(Shape::default());
    let set = |(at, count): (usize, &u32)| StartSet {
        name: format!("set-{at}").into(),
        role: None,
        count: *count,
        least: None,
        shape: shape.clone(),
        placed: shape.clone(),
        topology: TopologyRequest::NONE,
        who: None,
    };
    Start {
        packing: Default::default(),
        policy: Policy::Unified,
        cluster_queue: None,
        volcano_queue: None,
        sets: counts.iter().enumerate().map(set).collect(),
        minima: Minima::of(1),
        checks: Default::default(),
        lingering: None,
        rank: None,
    }
}

#[test]
fn the_last_pod_sets_are_cut_first() {
    let rows: [(&[u32], u32, &[u32]); 6] = [
        (&[1, 4], 5, &[1, 4]),
        (&[1, 4], 3, &[1, 2]),
        (&[3, 4], 2, &[2, 0]),
        (&[1, 4], 0, &[0, 0]),
        (&[2, 2], 9, &[2, 2]),
        (&[], 3, &[]),
    ];
    for (counts, members, expected) in rows {
        assert_eq!(cut(&start(counts), members), expected, "{members} of {counts:?}");
    }
}

#[test]
fn a_part_pays_its_part() {
    let rows = [
        (8, 4, 4, 8),
        (8, 1, 4, 2),
        (8, 0, 4, 0),
        (8, 9, 4, 8),
        (0, 1, 4, 0),
        (0, 0, 0, 0),
        // Cut off to what can be said at all: a part of it still is less than the whole.
        (Amount::MAX, 3, 4, Amount::MAX / 4 * 3),
    ];
    for (amount, paid, all, expected) in rows {
        assert_eq!(share(amount, paid, all), expected, "{paid} of {all} pods, {amount} for all");
    }
}

#[test]
fn an_admission_is_charged_by_flavor_in_one_tree_and_by_resource_in_the_other() {
    let set = |name: &str, flavor: &str, count, cpu, gpu| PodSetAdmission {
        name: name.into(),
        count,
        flavors: BTreeMap::from([("gpu".into(), flavor.into())]),
        usage: BTreeMap::from([("cpu".into(), cpu), ("gpu".into(), gpu)]),
        nodes: Vec::new(),
        topology: None,
    };
    let admission = Admission {
        gang: "g".into(),
        policy: Policy::Unified,
        cluster_queue: Some("cq".into()),
        pod_sets: vec![
            set("a", "red", 2, 10, 4),
            set("b", "red", 4, 8, 4),
            set("c", "blue", 1, 1, Amount::MAX),
        ],
    };
    let charge = charge_of(&admission, &[2, 1, 1], Some("vq".into()));
    let (queue, by_flavor) = charge.kueue.expect("it has a ClusterQueue");
    let shown: Vec<String> = by_flavor
        .iter()
        .map(|(what, amount)| format!("{}@{}={amount}", what.resource, what.flavor))
        .collect();
    // Nobody charges the cpu: it has no flavor.
    assert_eq!((&*queue, shown.join(" ")), ("cq", format!("gpu@blue={} gpu@red=5", Amount::MAX)));
    let (queue, by_resource) = charge.volcano.expect("it has a Volcano Queue");
    let shown: Vec<String> = by_resource.iter().map(|(name, amount)| format!("{name}={amount}")).collect();
    assert_eq!((&*queue, shown.join(" ")), ("vq", format!("cpu=13 gpu={}", Amount::MAX)));
    let none = charge_of(&Admission { cluster_queue: None, ..admission }, &[2, 1, 1], None);
    assert!(none.kueue.is_none() && none.volcano.is_none());
}
