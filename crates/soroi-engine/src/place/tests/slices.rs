//! Pods in slices, and pod sets that share a domain.

use expect_test::expect;

use super::check;

/// Two blocks of two racks; rack r1 of both has the same name.
const FLOOR: &str = "
    topology t block rack host
    node a1 gpu=3 block=b1 rack=r1
    node a2 gpu=2 block=b1 rack=r1
    node b1 gpu=3 block=b1 rack=r2
    node c1 gpu=4 block=b2 rack=r1
    node c2 gpu=4 block=b2 rack=r1
";

fn on_floor(lines: &str, expected: expect_test::Expect) {
    check(&format!("{FLOOR}\n{lines}"), expected);
}

#[test]
fn a_slice_is_in_one_domain() {
    // Block b1 has 8 free GPUs, and room for 3 slices: its racks take 2 and 1.
    on_floor(
        "pods m 6 gpu=1 topology=t required=block slice=rack:2",
        expect![[r#"
        m  a1×3 a2×1 b1×2
    "#]],
    );
    on_floor(
        "pods m 8 gpu=1 topology=t required=block slice=rack:2",
        expect![[r#"
        m  c1×4 c2×4
    "#]],
    );
    on_floor(
        "pods m 12 gpu=1 topology=t slice=rack:4",
        expect![[r#"
        m  a1×3 a2×1 c1×4 c2×4
    "#]],
    );
    on_floor(
        "pods m 16 gpu=1 topology=t slice=rack:4",
        expect![[r#"
        m  12 of 16 fit; 5 nodes
    "#]],
    );
    on_floor(
        "pods m 4 gpu=1 topology=t slice=host:2",
        expect![[r#"
        m  a1×2 a2×2
    "#]],
    );
    on_floor(
        "pods m 8 gpu=1 topology=t preferred=block slice=rack:4",
        expect![[r#"
        m  c1×4 c2×4
    "#]],
    );
    on_floor(
        "pods m 12 gpu=1 topology=t preferred=block slice=rack:4",
        expect![[r#"
        m  a1×3 a2×1 c1×4 c2×4
    "#]],
    );
}

#[test]
fn layers_of_slices_are_nested() {
    on_floor(
        "pods m 6 gpu=1 topology=t slice=block:6 slice=rack:2",
        expect![[r#"
        m  a1×3 a2×1 b1×2
    "#]],
    );
    on_floor(
        "pods m 12 gpu=1 topology=t slice=block:6 slice=rack:2 slice=host:2",
        expect![[r#"
        m  a1×2 a2×2 b1×2 c1×4 c2×2
    "#]],
    );
    on_floor(
        "pods m 8 gpu=1 topology=t slice=block:8 slice=rack:4 slice=host:2",
        expect![[r#"
        m  c1×4 c2×4
    "#]],
    );
}

#[test]
fn a_rest_is_a_smaller_slice() {
    on_floor(
        "pods m 7 gpu=1 topology=t slice=rack:4",
        expect![[r#"
        m  c1×4 c2×3
    "#]],
    );
    on_floor(
        "pods m 1 gpu=1 topology=t slice=rack:4",
        expect![[r#"
        m  a1×1
    "#]],
    );
}

#[test]
fn what_makes_no_sense_fits_nowhere() {
    // The slice is larger than what all pods share, does not divide the other, has no such level.
    on_floor(
        "pods m 4 gpu=1 topology=t required=rack slice=block:2",
        expect![[r#"
        m  0 of 4 fit; 5 nodes, 5 Topology
    "#]],
    );
    on_floor(
        "pods m 4 gpu=1 topology=t slice=rack:4 slice=block:2",
        expect![[r#"
        m  0 of 4 fit; 5 nodes, 5 Topology
    "#]],
    );
    on_floor(
        "pods m 4 gpu=1 topology=t slice=block:4 slice=rack:3",
        expect![[r#"
        m  0 of 4 fit; 5 nodes, 5 Topology
    "#]],
    );
    on_floor(
        "pods m 4 gpu=1 topology=t slice=row:4",
        expect![[r#"
        m  0 of 4 fit; 5 nodes, 5 Topology
    "#]],
    );
    on_floor(
        "pods m 4 gpu=1 topology=t slice=rack:4294967295",
        expect![[r#"
        m  0 of 4294967295 fit; 5 nodes; not proven
    "#]],
    );
    on_floor(
        "pods m 4294967295 gpu=1 topology=t slice=rack:4294967294",
        expect![[r#"
        m  0 of 4294967295 fit; 5 nodes
    "#]],
    );
}

#[test]
fn a_lost_member_is_replaced_in_its_slice() {
    let slices = "topology=t slice=rack:4";
    on_floor(
        &format!("pods m 1 gpu=1 {slices} bound=a1:3 bound=c1:4"),
        expect![[r#"
        m  a2×1
    "#]],
    );
    // There is no room in its rack, and others do not do.
    on_floor(
        &format!("use a2 gpu=2\nuse a1 gpu=3\npods m 1 gpu=1 {slices} bound=a1:3 bound=c1:4"),
        expect![[r#"
        m  0 of 1 fit in r1; 5 nodes, 3 Topology, 2 short of gpu
    "#]],
    );
    // Two slices lack members; both replacements may come at once, or one after the other.
    on_floor(
        &format!("pods m 3 gpu=1 {slices} bound=a1:2 bound=c1:3"),
        expect![[r#"
        m  a2×2 c1×1
    "#]],
    );
    on_floor(
        &format!("use c1 gpu=4\nuse c2 gpu=4\npods m 1 gpu=1 {slices} bound=a1:2 bound=c1:3"),
        expect![[r#"
        m  a2×1
    "#]],
    );
    // A whole slice was lost, and the rest is there.
    on_floor(
        &format!("pods m 4 gpu=1 {slices} bound=c1:4"),
        expect![[r#"
        m  c1×4
    "#]],
    );
    // Within the inner slice first, then within the outer one.
    on_floor(
        "pods m 3 gpu=1 topology=t slice=block:4 slice=host:2 bound=a1:1",
        expect![[r#"
        m  a1×1 b1×2
    "#]],
    );
}

#[test]
fn a_leader_and_its_workers_share_a_domain() {
    let (leader, workers) =
        ("pods leader 1 gpu=2 topology=t group=g", "pods workers 6 gpu=1 topology=t group=g");
    on_floor(
        &format!("{leader} required=block\n{workers} required=block"),
        expect![[r#"
        leader  b1×1
        workers  a1×3 a2×2 b1×1
    "#]],
    );
    on_floor(
        &format!("{leader} required=rack\n{workers} required=rack"),
        expect![[r#"
        leader  c2×1
        workers  c1×4 c2×2
    "#]],
    );
    on_floor(
        &format!("use c1 gpu=2\n{leader} required=rack\n{workers} required=rack"),
        expect![[r#"
        workers  6 of 6 fit in r1; 5 nodes, 3 Topology
        leader  1 of 1 fit in r1; 5 nodes, 3 Topology
    "#]],
    );
    on_floor(
        &format!("use c1 gpu=2\n{leader} preferred=rack\n{workers} preferred=rack"),
        expect![[r#"
        leader  b1×1
        workers  a1×3 a2×2 b1×1
    "#]],
    );
    // A leader that comes again goes where the workers are.
    on_floor(
        &format!("{leader} required=block bound=b1:2"),
        expect![[r#"
        leader  b1×1
    "#]],
    );
}

#[test]
fn topologies_that_make_no_sense_do_no_harm() {
    // Without levels, with one level twice, and with the nodes above their racks.
    check(
        "topology e\nnode a gpu=2\npods m 2 gpu=1 topology=e",
        expect![[r#"
        m  a×2
    "#]],
    );
    check(
        "topology e\nnode a gpu=2\npods m 2 gpu=1 topology=e required=rack",
        expect![[r#"
        m  0 of 2 fit; 1 nodes, 1 Topology
    "#]],
    );
    let twice = "topology d rack rack host\nnode a gpu=2 rack=r1\nnode b gpu=2 rack=r2";
    check(
        &format!("{twice}\npods m 2 gpu=1 topology=d required=rack"),
        expect![[r#"
        m  a×2
    "#]],
    );
    check(
        &format!("{twice}\npods m 4 gpu=1 topology=d slice=rack:2 slice=rack:2"),
        expect![[r#"
        m  0 of 4 fit; 2 nodes, 2 Topology
    "#]],
    );
    let turned = "topology u host rack\nnode a gpu=2 rack=r1\nnode b gpu=2 rack=r1";
    check(
        &format!("{turned}\npods m 3 gpu=1 topology=u required=rack"),
        expect![[r#"
        m  2 of 3 fit in r1; 2 nodes, 1 Topology
    "#]],
    );
    // Two nodes that say they are the same host are two domains all the same.
    let same = "topology t rack host\nnode a gpu=1 rack=r1 host=x\nnode b gpu=1 rack=r1 host=x";
    check(
        &format!("{same}\npods m 2 gpu=1 topology=t required=host"),
        expect![[r#"
        m  1 of 2 fit in x; 2 nodes, 1 Topology
    "#]],
    );
    check(
        &format!("{same}\npods m 2 gpu=1 topology=t slice=host:2"),
        expect![[r#"
        m  0 of 2 fit; 2 nodes
    "#]],
    );
    // A node without the label of a level is outside.
    let missing = "topology t rack host\nnode a gpu=4\nnode b gpu=1 rack=r1";
    check(
        &format!("{missing}\npods m 2 gpu=1 topology=t slice=host:2"),
        expect![[r#"
            m  0 of 2 fit; 2 nodes, 1 NoLevel { label: "rack" }
        "#]],
    );
}
