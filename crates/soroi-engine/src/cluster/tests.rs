//! What `cluster` promises, as tests.

use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::ranks::Ranks;
use super::{Cluster, Occupant};
use crate::event::{Name, Shape};
use crate::fit::Ask;
use crate::place::board::node;
use crate::place::{PlaceRequest, PodSetRequest, Shortage, place};

fn pod(name: &str) -> Occupant {
    Occupant::Pod(name.into())
}

fn gpus(gpu: i64) -> Arc<Shape> {
    Arc::new(Shape { requests: [("gpu".into(), gpu)].into(), ..Shape::default() })
}

fn room(cluster: &mut Cluster, gpu: i64) -> u64 {
    cluster.capacity(&Ask::plain(&gpus(gpu)), None, &[])
}

fn gpu_node(name: &str, gpu: &str) -> crate::event::Node {
    node(&[name, gpu])
}

#[test]
fn an_occupant_counts_once_wherever_it_goes() {
    let mut cluster = Cluster::default();
    cluster.upsert_node(&gpu_node("a", "gpu=4"));
    cluster.upsert_node(&gpu_node("b", "gpu=4"));
    cluster.charge(pod("p"), &"a".into(), &gpus(3));
    cluster.charge(pod("p"), &"a".into(), &gpus(3));
    assert_eq!(room(&mut cluster, 1), 5);
    cluster.charge(pod("p"), &"b".into(), &gpus(3));
    assert_eq!(cluster.node_of(&pod("p")), Some(&"b".into()));
    assert_eq!(room(&mut cluster, 4), 1);
    cluster.charge(pod("p"), &"b".into(), &gpus(1));
    assert_eq!(room(&mut cluster, 1), 7);
    assert!(cluster.uncharge(&pod("p")));
    assert!(!cluster.uncharge(&pod("p")));
    assert_eq!(room(&mut cluster, 4), 2);
    assert_eq!(cluster.discrepancies(), Vec::<String>::new());
}

#[test]
fn a_charge_may_come_before_its_node_and_outlive_it() {
    let mut cluster = Cluster::default();
    cluster.charge(pod("early"), &"a".into(), &gpus(3));
    assert_eq!((cluster.node_count(), room(&mut cluster, 1)), (0, 0));
    cluster.upsert_node(&gpu_node("a", "gpu=4"));
    assert_eq!(room(&mut cluster, 1), 1);
    assert!(cluster.remove_node(&"a".into()));
    assert!(!cluster.remove_node(&"a".into()));
    assert_eq!(room(&mut cluster, 1), 0);
    cluster.upsert_node(&gpu_node("a", "gpu=4"));
    assert_eq!(room(&mut cluster, 1), 1);
}

#[test]
fn an_overfull_node_takes_nothing_until_enough_left() {
    let mut cluster = Cluster::default();
    cluster.upsert_node(&gpu_node("a", "gpu=8"));
    cluster.charge(pod("p"), &"a".into(), &gpus(3));
    cluster.charge(pod("q"), &"a".into(), &gpus(3));
    cluster.upsert_node(&gpu_node("a", "gpu=4"));
    assert_eq!(room(&mut cluster, 1), 0);
    // A pod that asks for none of what is short fits all the same.
    assert_eq!(room(&mut cluster, 0), 108);
    cluster.uncharge(&pod("p"));
    assert_eq!(room(&mut cluster, 1), 1);
}

#[test]
fn huge_requests_leave_exactly_what_they_took() {
    let mut cluster = Cluster::default();
    cluster.upsert_node(&gpu_node("a", "gpu=9223372036854775807"));
    for name in ["p", "q", "r"] {
        cluster.charge(pod(name), &"a".into(), &gpus(i64::MAX));
    }
    assert_eq!(room(&mut cluster, 1), 0);
    cluster.charge(pod("s"), &"a".into(), &gpus(7));
    for name in ["p", "q", "r"] {
        cluster.uncharge(&pod(name));
    }
    assert_eq!(room(&mut cluster, i64::MAX - 7), 1);
    assert_eq!(room(&mut cluster, i64::MAX - 6), 0);
}

#[test]
fn the_same_node_again_is_no_change() {
    let mut cluster = Cluster::default();
    assert!(cluster.upsert_node(&gpu_node("a", "gpu=4")));
    let before = cluster.gains_end();
    assert!(!cluster.upsert_node(&gpu_node("a", "gpu=4")));
    assert!(cluster.gains_since(before).is_empty());
}

#[test]
fn tries_nest() {
    let mut cluster = Cluster::default();
    cluster.upsert_node(&gpu_node("a", "gpu=4"));
    let outer = cluster.savepoint();
    cluster.charge(pod("p"), &"a".into(), &gpus(1));
    let inner = cluster.savepoint();
    cluster.charge(pod("q"), &"a".into(), &gpus(1));
    cluster.commit(inner);
    let inner = cluster.savepoint();
    cluster.uncharge(&pod("p"));
    cluster.charge(pod("r"), &"nowhere".into(), &gpus(1));
    cluster.rollback(inner);
    assert_eq!(room(&mut cluster, 1), 2);
    cluster.rollback(outer);
    assert_eq!(room(&mut cluster, 1), 4);
    assert_eq!(cluster.node_of(&pod("q")), None);
    assert_eq!(cluster.discrepancies(), Vec::<String>::new());
}

#[test]
fn ranks_sort_like_keys_also_when_they_run_out() {
    let mut ranks = Ranks::default();
    let mut renumbered = 0;
    // Always between the last two: halves the gap each time.
    let mut key = String::from("m");
    for _ in 0..100 {
        renumbered += u32::from(ranks.insert(key.clone()).is_none());
        key.push('a');
        renumbered += u32::from(ranks.insert(format!("{key}z")).is_none());
    }
    assert!(renumbered > 0);
    let mut keys = vec!["m".to_owned()];
    let mut prefix = String::from("m");
    for _ in 0..100 {
        prefix.push('a');
        keys.push(format!("{prefix}z"));
    }
    keys.extend((1..100).map(|n| format!("m{}", "a".repeat(n))));
    keys.sort();
    let mut by_rank = keys.clone();
    by_rank.sort_by_key(|key| ranks.get(key).unwrap());
    assert_eq!(by_rank, keys);
}

/// Something that can happen to a cluster.
#[derive(Clone, Debug)]
enum Step {
    Node { name: u8, gpu: i64, rack: u8, cordoned: bool },
    Gone { name: u8 },
    Charge { pod: u8, node: u8, gpu: i64 },
    Uncharge { pod: u8 },
    Ask { gpu: i64, rack: bool },
    Topology { levels: u8 },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        2 => (0..5u8, 0..6i64, 0..3u8, prop::bool::weighted(0.2))
            .prop_map(|(name, gpu, rack, cordoned)| Step::Node { name, gpu, rack, cordoned }),
        1 => (0..5u8).prop_map(|name| Step::Gone { name }),
        4 => (0..8u8, 0..6u8, 0..4i64).prop_map(|(pod, node, gpu)| Step::Charge { pod, node, gpu }),
        2 => (0..8u8).prop_map(|pod| Step::Uncharge { pod }),
        2 => (0..3i64, any::<bool>()).prop_map(|(gpu, rack)| Step::Ask { gpu, rack }),
        1 => (0..3u8).prop_map(|levels| Step::Topology { levels }),
    ];
    prop::collection::vec(step, 0..40)
}

fn request(gpu: i64, count: u32, rack: bool) -> PlaceRequest {
    let required = crate::event::TopologyRequest::required("rack".into());
    let pod_set = PodSetRequest {
        name: "m".into(),
        count,
        ask: Ask::plain(&gpus(gpu)),
        topology: rack.then(|| "t".into()),
        request: if rack { required } else { Default::default() },
        ..PodSetRequest::default()
    };
    PlaceRequest { pod_sets: vec![pod_set], ..PlaceRequest::default() }
}

fn take(cluster: &mut Cluster, step: &Step) {
    let letter = |n: &u8| Name::from(char::from(b'a' + n).to_string());
    match step {
        Step::Node { name, gpu, rack, cordoned } => {
            let mut words = vec![letter(name).to_string(), format!("gpu={gpu}")];
            // Rack 0 is no rack: the label is missing.
            if *rack > 0 {
                words.push(format!("rack=r{rack}"));
            }
            if *cordoned {
                words.push("cordoned".to_owned());
            }
            cluster.upsert_node(&node(&words.iter().map(String::as_str).collect::<Vec<_>>()));
        }
        Step::Gone { name } => _ = cluster.remove_node(&letter(name)),
        Step::Charge { pod: name, node, gpu } => {
            cluster.charge(pod(&letter(name)), &letter(node), &gpus(*gpu));
        }
        Step::Uncharge { pod: name } => _ = cluster.uncharge(&pod(&letter(name))),
        Step::Ask { gpu, rack } => _ = place(cluster, &request(*gpu, 3, *rack)),
        Step::Topology { levels } => {
            let levels: &[Name] = &["rack".into(), "kubernetes.io/hostname".into()][..usize::from(*levels)];
            cluster.upsert_topology(&"t".into(), levels);
        }
    }
}

fn only_charges(steps: Vec<Step>) -> Vec<Step> {
    let facts = |step: &Step| matches!(step, Step::Node { .. } | Step::Gone { .. } | Step::Topology { .. });
    steps.into_iter().filter(|step| !facts(step)).collect()
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(256) })]

    #[test]
    fn what_is_kept_equals_what_is_recomputed(steps in steps()) {
        let mut cluster = Cluster::default();
        for step in &steps {
            take(&mut cluster, step);
            prop_assert_eq!(cluster.discrepancies(), Vec::<String>::new());
        }
    }

    #[test]
    fn what_is_tried_out_leaves_no_trace(before in steps(), tried in steps(), after in steps()) {
        let mut cluster = Cluster::default();
        before.iter().for_each(|step| take(&mut cluster, step));
        let mut untouched = cluster.clone();
        let savepoint = cluster.savepoint();
        only_charges(tried).iter().for_each(|step| take(&mut cluster, step));
        cluster.rollback(savepoint);
        prop_assert_eq!(cluster.discrepancies(), Vec::<String>::new());
        prop_assert_eq!(cluster.nodes_by_name(), untouched.nodes_by_name());
        for step in after {
            take(&mut cluster, &step);
            take(&mut untouched, &step);
            let request = request(1, 2, true);
            prop_assert_eq!(place(&mut cluster, &request), place(&mut untouched, &request));
        }
    }

    #[test]
    fn a_shortage_ends_when_there_is_room_and_not_before(
        steps in steps(), gpu in 0..4i64, count in 1..12u32, rack in any::<bool>(),
    ) {
        let mut cluster = Cluster::default();
        cluster.upsert_topology(&"t".into(), &["rack".into()]);
        let request = request(gpu, count, rack);
        let mut shortage: Option<Shortage> = None;
        let mut seen = cluster.gains_end();
        for step in &steps {
            take(&mut cluster, step);
            let fits = place(&mut cluster.clone(), &request).is_ok();
            if let Some(shortage) = &mut shortage {
                let gains = cluster.gains_since(seen);
                prop_assert_eq!(shortage.ended(&mut cluster, &gains), fits, "after {:?}", step);
            }
            seen = cluster.gains_end();
            shortage = if fits { None } else { shortage.or_else(|| Some(Shortage::new(&mut cluster, request.clone()))) };
        }
    }
}
