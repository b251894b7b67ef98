//! Plans of any size are written in little space and read back whole.

use expect_test::expect;
use proptest::prelude::*;

use super::*;

fn round_trip(nodes: &[(String, u32)]) -> Vec<(String, u32)> {
    let groups = NodeGroup::compress(nodes.iter().map(|(name, pods)| (name.as_str(), *pods)));
    PlannedPodSet { nodes: groups, ..Default::default() }.nodes().unwrap()
}

#[test]
fn similar_names_are_written_once() {
    let picture = |nodes: &[(&str, u32)]| {
        serde_json::to_string(&NodeGroup::compress(nodes.iter().copied())).unwrap().replace("},{", "}\n{")
            + "\n"
    };
    let mut board = picture(&[("worker2", 2), ("worker", 2)]);
    board += &picture(&[("worker", 1), ("worker2", 3), ("worker2", 1), ("worker3", 0)]);
    board += &picture(&[("one", 1)]);
    let pools: Vec<String> = (0..12)
        .map(|ix| {
            format!("gke-train-{}-{ix:02}.internal", if ix < 6 { "a100-pool-1b2c" } else { "h100-pool-9f8e" })
        })
        .collect();
    board += &picture(&pools.iter().map(|name| (name.as_str(), 8)).collect::<Vec<_>>());
    expect![[r#"
        [{"prefix":"worker","roots":["","2"],"pods":2}]
        [{"prefix":"worker","roots":["","2"],"podsEach":[1,4]}]
        [{"prefix":"one","roots":[""],"pods":1}]
        [{"prefix":"gke-train-a100-pool-1b2c-0","roots":["0","1","2","3","4","5"],"suffix":".internal","pods":8}
        {"prefix":"gke-train-h100-pool-9f8e-","roots":["06","07","08","09","10","11"],"suffix":".internal","pods":8}]
    "#]].assert_eq(&board);
}

#[test]
fn ten_thousand_nodes_stay_far_below_what_etcd_takes() {
    let bytes = |name: fn(usize) -> String, pods: fn(usize) -> u32| {
        let nodes: Vec<(String, u32)> = (0..10_000).map(|ix| (name(ix), pods(ix))).collect();
        let mut sorted = nodes.clone();
        sorted.sort();
        assert_eq!(round_trip(&nodes), sorted);
        let groups = NodeGroup::compress(nodes.iter().map(|(name, pods)| (name.as_str(), *pods)));
        serde_json::to_vec(&groups).unwrap().len()
    };
    let numbered = bytes(|ix| format!("worker-{ix:05}"), |_| 8);
    let addresses = bytes(
        |ix| format!("ip-10-{}-{}-{}.eu-central-1.compute.internal", ix % 4, ix / 250 % 40, ix % 250),
        |ix| 1 + u32::try_from(ix % 7).unwrap(),
    );
    // Nothing in common: 63 characters each.
    let unlike = bytes(
        |ix| format!("{:016x}", ix.wrapping_mul(0x9E37_79B9_7F4A_7C15)).repeat(4)[..63].to_owned(),
        |_| 1,
    );
    assert!(numbered < 90 * 1024, "{numbered} bytes");
    assert!(addresses < 160 * 1024, "{addresses} bytes");
    assert!(unlike < 700 * 1024, "{unlike} bytes");
}

#[test]
fn a_group_that_contradicts_itself_is_named() {
    let bad = NodeGroup { roots: vec!["a".into(), "b".into()], pods_each: vec![1], ..Default::default() };
    let good = NodeGroup { roots: vec!["a".into()], pods: Some(1), ..Default::default() };
    let set = PlannedPodSet { nodes: vec![good, bad], ..Default::default() };
    assert_eq!(
        set.nodes().unwrap_err().to_string(),
        "nodes[1]: needs pods, or one entry of podsEach per root"
    );
}

proptest! {
    #[test]
    fn any_nodes_come_back_sorted(
        nodes in prop::collection::btree_map("[a-c]{0,3}(-[0-9]{1,3}){0,2}(\\.[a-b]{1,3})?|\\PC{0,6}", 1_u32..5, 0..60)
    ) {
        let nodes: Vec<(String, u32)> = nodes.into_iter().collect();
        prop_assert_eq!(round_trip(&nodes), nodes);
    }
}
