//! What `place` promises, as tests.

use expect_test::{Expect, expect};

use super::board::Board;

mod oracle;
mod slices;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&Board::new(text).draw());
}

#[test]
fn fewest_nodes_then_the_one_with_least_to_spare() {
    check(
        "
        node a gpu=8
        node b gpu=4
        node c gpu=8
        use c gpu=3
        pods m 4 gpu=1
    ",
        expect![[r#"
        m  b×4
    "#]],
    );
    check(
        "
        node a gpu=8
        node b gpu=4
        node c gpu=8
        use c gpu=3
        pods m 10 gpu=1
    ",
        expect![[r#"
        m  a×8 b×2
    "#]],
    );
}

#[test]
fn the_whole_gang_or_nothing() {
    check(
        "
        node a gpu=2
        node b gpu=2
        use a gpu=1
        pods train 4 gpu=1
    ",
        expect![[r#"
        train  3 of 4 fit; 2 nodes
    "#]],
    );
}

#[test]
fn every_reason_has_its_count() {
    check(
        "
        node a gpu=2 cordoned
        node b gpu=2 notready
        node c gpu=2 taint=k=v:NoSchedule
        node d gpu=2 taint=k=v:PreferNoSchedule zone=z2
        node e gpu=2 zone=z1
        node f gpu=2 zone=z1 pods=0
        node g gpu=1 cpu=1 zone=z1
        pods train 4 gpu=2 cpu=2 zone=z1
    ",
        expect![[r#"
            train  0 of 4 fit; 7 nodes, 7 short of cpu, 1 short of gpu, 1 TooManyPods
        "#]],
    );
}

#[test]
fn a_required_domain_is_one_domain() {
    let islands = "
        topology t rack host
        node a1 gpu=8 rack=r1
        node a2 gpu=8 rack=r1
        node a3 gpu=8 rack=r1
        node b1 gpu=8 rack=r2
        node b2 gpu=8 rack=r2
        node c  gpu=8
    ";
    check(
        &format!("{islands} pods m 2 gpu=8 topology=t required=rack"),
        expect![[r#"
        m  b1×1 b2×1
    "#]],
    );
    check(
        &format!("{islands} pods m 3 gpu=8 topology=t required=rack"),
        expect![[r#"
        m  a1×1 a2×1 a3×1
    "#]],
    );
    check(
        &format!("{islands} pods m 4 gpu=8 topology=t required=rack"),
        expect![[r#"
            m  3 of 4 fit in r1; 6 nodes, 2 Topology, 1 NoLevel { label: "rack" }
        "#]],
    );
    check(
        &format!("{islands} pods m 6 gpu=8 topology=t"),
        expect![[r#"
            m  5 of 6 fit; 6 nodes, 1 NoLevel { label: "rack" }
        "#]],
    );
    check(
        &format!("{islands} pods m 9 gpu=1 topology=t required=host"),
        expect![[r#"
            m  8 of 9 fit in a1; 6 nodes, 4 Topology, 1 NoLevel { label: "rack" }
        "#]],
    );
    check(
        &format!("{islands} pods m 1 gpu=1 topology=t required=block"),
        expect![[r#"
            m  0 of 1 fit; 6 nodes, 5 Topology, 1 NoLevel { label: "rack" }
        "#]],
    );
    check(
        &format!("{islands} pods m 1 gpu=1 required=rack"),
        expect![[r#"
        m  0 of 1 fit; 6 nodes, 6 Topology
    "#]],
    );
}

#[test]
fn a_preferred_domain_falls_back_narrowly() {
    // Case 34: B runs in the smallest domain that holds it, block b1, on two racks.
    let blocks = "
        topology t block rack host
        node r1-1 gpu=4 block=b1 rack=r1
        node r1-2 gpu=4 block=b1 rack=r1
        node r2-1 gpu=4 block=b1 rack=r2
        node r2-2 gpu=4 block=b1 rack=r2
        node r4-1 gpu=4 block=b2 rack=r4
    ";
    check(
        &format!("{blocks} pods a 2 gpu=4 topology=t preferred=rack"),
        expect![[r#"
        a  r1-1×1 r1-2×1
    "#]],
    );
    check(
        &format!("{blocks} pods b 3 gpu=4 topology=t preferred=rack"),
        expect![[r#"
        b  r1-1×1 r1-2×1 r2-1×1
    "#]],
    );
    check(
        &format!("{blocks} pods c 5 gpu=4 topology=t preferred=rack"),
        expect![[r#"
        c  r1-1×1 r1-2×1 r2-1×1 r2-2×1 r4-1×1
    "#]],
    );
    check(
        &format!("{blocks} pods d 6 gpu=4 topology=t preferred=rack"),
        expect![[r#"
        d  5 of 6 fit; 5 nodes
    "#]],
    );
}

/// What competes for the same nodes gives way to a preference if it can do elsewhere as well.
#[test]
fn a_preferred_domain_is_found_among_competitors() {
    check(
        "
        topology t block rack
        node a gpu=1 cpu=4 pods=2 block=b0 rack=r1
        node b gpu=1 cpu=2 pods=1 block=b0 rack=r0
        node c gpu=2 cpu=4 pods=2 block=b0 rack=r1
        node d gpu=1 cpu=1 pods=1 block=b0 rack=r0
        node e gpu=1 cpu=1 pods=1 block=b0 rack=r0
        node f gpu=1 cpu=2 pods=1 block=b0 rack=r0
        use a gpu=1
        pods m0 3 gpu=1
        pods m1 2 cpu=2 topology=t preferred=rack
    ",
        expect![[r#"
            m0  c×2 d×1
            m1  b×1 f×1
        "#]],
    );
}

#[test]
fn domains_are_whole_paths_not_prefixes_of_names() {
    // Case 36: block and host name coincide, rack-1 is a prefix of rack-10.
    let lookalikes = "
        topology t block rack host
        node n1 gpu=4 block=n2 rack=rack-1
        node n2 gpu=4 block=n2 rack=rack-1
        node n3 gpu=4 block=n2 rack=rack-1 cordoned
        node n4 gpu=4 block=n2 rack=rack-10
    ";
    check(
        &format!("{lookalikes} pods pair 2 gpu=4 topology=t required=rack"),
        expect![[r#"
        pair  n1×1 n2×1
    "#]],
    );
    let repair = "
        gone n1
        node n3 gpu=4 block=n2 rack=rack-1
        use n2 gpu=4
        pods pair 1 gpu=4 topology=t required=rack bound=n2:1
    ";
    check(
        &format!("{lookalikes} {repair}"),
        expect![[r#"
        pair  n3×1
    "#]],
    );
    // The same leaf name under two parents is two domains.
    check(
        "
        topology t block rack
        node a gpu=1 block=b1 rack=r
        node b gpu=1 block=b2 rack=r
        pods m 2 gpu=1 topology=t required=rack
    ",
        expect![[r#"
        m  1 of 2 fit in r; 2 nodes, 1 Topology
    "#]],
    );
}

#[test]
fn members_with_different_affinity_leave_room_for_each_other() {
    // Case 26: m1 must leave n3 to m2.
    let zones = "
        node n1 cpu=4 zone=a
        node n2 cpu=4 zone=b
        node n3 cpu=16 zone=b
    ";
    check(
        &format!(
            "{zones}
        pods m0 1 cpu=3 zone=a
        pods m1 1 cpu=3 zone=b
        pods m2 1 cpu=14
    "
        ),
        expect![[r#"
        m0  n1×1
        m1  n2×1
        m2  n3×1
    "#]],
    );
    // A chain: each prefers the node that only the next can use.
    check(
        "
        node a cpu=4 zone=a
        node b cpu=3 zone=b
        node c cpu=2 zone=c
        node d cpu=1 zone=d
        pods m0 1 cpu=1 zones=a,b
        pods m1 1 cpu=1 zones=b,c
        pods m2 1 cpu=1 zones=c,d
        pods m3 1 cpu=4 zones=a
    ",
        expect![[r#"
        m0  b×1
        m1  c×1
        m2  d×1
        m3  a×1
    "#]],
    );
}

#[test]
fn leader_and_workers_share_a_rack_that_suits_both() {
    // Case 24: r1 has more to offer, but no fast disk for the leader.
    let racks = "
        topology t rack host
        node a1 cpu=16 rack=r1
        node a2 cpu=16 rack=r1
        node b1 cpu=8 rack=r2 disk=fast
        node b2 cpu=8 rack=r2
        node b3 cpu=8 rack=r2
    ";
    let gang = "
        pods leader 1 cpu=2 disk=fast topology=t required=rack group=g
        pods worker 4 cpu=4 topology=t required=rack group=g
    ";
    check(
        &format!("{racks} {gang}"),
        expect![[r#"
        leader  b1×1
        worker  b1×1 b2×1 b3×2
    "#]],
    );
    check(
        &format!("{racks} node b1 cpu=8 rack=r2\n {gang}"),
        expect![[r#"
        leader  0 of 1 fit; 5 nodes, 5 Selector
    "#]],
    );
    check(
        &format!("{racks} use b2 cpu=8\n use b3 cpu=1\n {gang}"),
        expect![[r#"
            leader  0 of 1 fit in r1; 5 nodes, 4 Selector, 1 Topology
        "#]],
    );
}

#[test]
fn roles_share_pod_slots() {
    // Case 05: two slots each on two nodes.
    let slots = "
        node n1 pods=2
        node n2 pods=2
    ";
    check(
        &format!("{slots} pods a 2 \n pods b 3"),
        expect![[r#"
            b  2 of 3 fit; 2 nodes
        "#]],
    );
    check(
        &format!("{slots} pods a 2 \n pods b 2"),
        expect![[r#"
        a  n1×2
        b  n2×2
    "#]],
    );
}

#[test]
fn at_least_so_many() {
    let half = "
        node a gpu=2
        node b gpu=3
    ";
    check(
        &format!("{half} pods m 8 gpu=1\n min 4"),
        expect![[r#"
        m  a×2 b×3
    "#]],
    );
    check(
        &format!("{half} pods m 8 gpu=1\n min 6"),
        expect![[r#"
        m  5 of 8 fit; 2 nodes
    "#]],
    );
    check(
        &format!("{half} pods big 2 gpu=3\n pods small 4 gpu=1\n min 3"),
        expect![[r#"
        big  
        small  a×1 b×3
    "#]],
    );
    check(
        &format!("{half} pods gone 2 gpu=9\n pods small 4 gpu=1\n min 4"),
        expect![[r#"
        gone  
        small  a×1 b×3
    "#]],
    );
}

#[test]
fn nothing_to_place_is_placed() {
    check(
        "
        topology t rack
        pods m 0 gpu=1 topology=t required=rack
    ",
        expect![[r#"
            m  
        "#]],
    );
}

#[test]
fn repair_stays_in_the_domain_of_those_that_stayed() {
    let racks = "
        topology t block rack host
        node a1 gpu=4 block=b1 rack=r1
        node a2 gpu=4 block=b1 rack=r1
        node a3 gpu=4 block=b1 rack=r2
        node b1 gpu=4 block=b2 rack=r3
        node b2 gpu=4 block=b2 rack=r3
        use a1 gpu=4
    ";
    check(
        &format!("{racks} pods m 4 gpu=1 topology=t required=rack bound=a1:4"),
        expect![[r#"
        m  a2×4
    "#]],
    );
    check(
        &format!("{racks} pods m 8 gpu=1 topology=t required=rack bound=a1:4"),
        expect![[r#"
        m  4 of 8 fit in r1; 5 nodes, 3 Topology, 1 short of gpu
    "#]],
    );
    check(
        &format!("{racks} pods m 8 gpu=1 topology=t preferred=rack bound=a1:4"),
        expect![[r#"
        m  a2×4 a3×4
    "#]],
    );
    check(
        &format!("{racks} pods m 9 gpu=1 topology=t preferred=rack bound=a1:4"),
        expect![[r#"
        m  a2×4 a3×4 b1×1
    "#]],
    );
    // What they were required to have in common is lost: nothing new can mend that.
    check(
        &format!("{racks} pods m 1 gpu=1 topology=t required=rack bound=a1:4 bound=b1:1"),
        expect![[r#"
        m  0 of 1 fit; 5 nodes, 4 Topology, 1 short of gpu
    "#]],
    );
    check(
        &format!("{racks} pods m 1 gpu=1 topology=t required=host bound=a1:4"),
        expect![[r#"
        m  0 of 1 fit in a1; 5 nodes, 4 Topology, 1 short of gpu
    "#]],
    );
    check(
        &format!("{racks} pods m 1 gpu=1 topology=t required=host bound=a2:1"),
        expect![[r#"
        m  a2×1
    "#]],
    );
}

#[test]
fn tight_packings_are_found() {
    // Every node must take one of 3 and one of 5.
    let nodes: String = (0..10).map(|ix| format!("node n{ix} gpu=8\n")).collect();
    check(
        &format!("{nodes} pods three 10 gpu=3\n pods five 10 gpu=5"),
        expect![[r#"
        three  n0×1 n1×1 n2×1 n3×1 n4×1 n5×1 n6×1 n7×1 n8×1 n9×1
        five  n0×1 n1×1 n2×1 n3×1 n4×1 n5×1 n6×1 n7×1 n8×1 n9×1
    "#]],
    );
    check(
        &format!("{nodes} pods three 11 gpu=3\n pods five 10 gpu=5"),
        expect![[r#"
        five  5 of 10 fit; 10 nodes, 5 short of gpu
    "#]],
    );
    // Two of the amounts decide: 5+3 on one node, 4+4 on the other.
    check(
        "
        node a gpu=9 cpu=9
        node b gpu=8 cpu=6
        pods m5 1 gpu=5 cpu=2
        pods m4 2 gpu=4 cpu=3
        pods m3 1 gpu=3 cpu=3
    ",
        expect![[r#"
        m5  a×1
        m4  b×2
        m3  a×1
    "#]],
    );
}

/// A perfect matching of 60 pods and 60 nodes that share few possibilities.
#[test]
fn pods_placed_already_make_way() {
    let nodes: String = (0..60).map(|ix| format!("node n{ix:02} pods=1 zone=z{ix}\n")).collect();
    let pods: String = (0..60u32)
        .map(|ix| {
            let zones: Vec<String> =
                [ix, ix * 7 + 3, ix * ix + 1].iter().map(|z| format!("z{}", z % 60)).collect();
            format!("pods m{ix} 1 zones={}\n", zones.join(","))
        })
        .collect();
    let placed = Board::new(&format!("{nodes}{pods}")).place().unwrap();
    assert_eq!(placed.pod_sets.len(), 60);
    let twice = format!("{nodes}{pods}").replace("zone=z59", "zone=z58");
    let problems = Board::new(&twice).place().unwrap_err();
    assert!(problems[0].1.unproven || problems[0].1.fitting == 0, "{problems:?}");
}

/// More shapes than indexes are kept for.
#[test]
fn gangs_of_very_many_shapes() {
    let nodes: String = (0..10).map(|ix| format!("node n{ix} gpu=4 mem=1000\n")).collect();
    let pods: String = (0..40).map(|ix| format!("pods m{ix:02} 1 gpu=1 mem={}\n", 200 + ix)).collect();
    let mut board = Board::new(&format!("{nodes}{pods}"));
    let placement = board.place().unwrap();
    assert!(placement.pod_sets.iter().all(|places| places.nodes.len() == 1));
    for (more, expected) in [
        ("pods late 1 gpu=1", "late  0 of 1 fit; 10 nodes\n"),
        ("pods large 1 gpu=5", "large  0 of 1 fit; 10 nodes, 10 short of gpu\n"),
        ("pods lost 1 topology=t", "lost  0 of 1 fit; 10 nodes, 10 Topology\n"),
        ("pods nowhere 1 gpu=1 required=rack", "nowhere  0 of 1 fit; 10 nodes, 10 Topology\n"),
    ] {
        assert_eq!(Board::new(&format!("{nodes}{pods}{more}")).draw(), expected);
    }
}

#[test]
fn nodes_that_must_not_be_used() {
    check(
        "
        node a gpu=2
        node b gpu=3
        pods m 2 gpu=1
        without a
    ",
        expect![[r#"
        m  b×2
    "#]],
    );
}

#[test]
fn flavors_narrow_the_nodes_down() {
    check(
        "
        node a gpu=2 pool=x
        node b gpu=3 pool=y
        node c gpu=3
        pods m 4 gpu=1 flavor=pool:y
    ",
        expect![[r#"
        m  3 of 4 fit; 1 nodes
    "#]],
    );
}

#[test]
fn pinned_domains_are_kept() {
    let racks = "
        topology t rack host
        topology u rack
        node a1 gpu=4 rack=r1
        node a2 gpu=4 rack=r1
        node b1 gpu=4 rack=r2
    ";
    check(
        &format!("{racks} pods m 0 gpu=1 topology=t pinned=a2:2 pinned=b1:1"),
        expect![[r#"
        m  a2×2 b1×1
    "#]],
    );
    check(
        &format!("{racks} pods m 0 gpu=1 topology=t pinned=r1/a2:2"),
        expect![[r#"
        m  a2×2
    "#]],
    );
    check(
        &format!("{racks} pods m 0 gpu=1 topology=t pinned=r2/a2:2"),
        expect![[r#"
        m  0 of 2 fit; 3 nodes
    "#]],
    );
    check(
        &format!("{racks} pods m 0 gpu=1 topology=u pinned=r1:6 pinned=r2:1"),
        expect![[r#"
        m  a1×4 a2×2 b1×1
    "#]],
    );
    check(
        &format!("{racks} pods m 0 gpu=1 topology=u pinned=r1:6 pinned=r2:5"),
        expect![[r#"
        m  10 of 11 fit; 3 nodes
    "#]],
    );
    check(
        &format!("{racks} pods m 0 gpu=1 topology=u pinned=r2:3\n pods n 3 gpu=2"),
        expect![[r#"
        m  b1×3
        n  a1×2 a2×1
    "#]],
    );
}

#[test]
fn absurd_amounts_never_fit_and_never_overflow() {
    check(
        "
        node a gpu=9223372036854775807
        use a gpu=9223372036854775807
        use a gpu=9223372036854775807
        pods m 1 gpu=1
    ",
        expect![[r#"
        m  0 of 1 fit; 1 nodes, 1 short of gpu
    "#]],
    );
    check(
        "
        node a gpu=9223372036854775807
        pods m 2 gpu=9223372036854775807
        pods n 1 gpu=1
    ",
        expect![[r#"
        m  1 of 2 fit; 1 nodes
    "#]],
    );
    check(
        "
        node a gpu=9223372036854775807 pods=9223372036854775807
        pods m 4294967295 gpu=1
        pods n 4294967295 gpu=2
    ",
        expect![[r#"
        m  a×4294967295
        n  a×4294967295
    "#]],
    );
}
