//! What `among` promises, as tests.

use expect_test::{Expect, expect};

use crate::place::board::Board;

mod oracle;
mod packing;
mod preferences;
mod volumes;

fn check(text: &str, expected: Expect) {
    expected.assert_eq(&Board::new(text).draw());
}

#[test]
fn ports_of_a_node_are_taken_once() {
    let nodes = "
        node a gpu=8
        node b gpu=8
        node c gpu=8
        use a port=80
        use b port=81
    ";
    check(
        &format!("{nodes} pods m 2 gpu=1 port=80"),
        expect![[r#"
        m  b×1 c×1
    "#]],
    );
    check(
        &format!("{nodes} pods m 3 gpu=1 port=80"),
        expect![[r#"
            m  2 of 3 fit; 3 nodes, 3 Ports
        "#]],
    );
    // Two ports of two pod sets: each wants a node of its own from its likes only.
    check(
        &format!("{nodes} pods m 2 gpu=1 port=80\n pods n 2 gpu=1 port=81"),
        expect![[r#"
        m  b×1 c×1
        n  a×1 c×1
    "#]],
    );
}

#[test]
fn one_of_a_kind_in_each_domain() {
    let zones = "
        node a1 gpu=8 zone=a
        node a2 gpu=8 zone=a
        node b1 gpu=8 zone=b
        node c1 gpu=8
    ";
    check(
        &format!("{zones} pods m 3 gpu=1 is=m apart=host:m"),
        expect![[r#"
        m  a1×1 a2×1 b1×1
    "#]],
    );
    check(
        &format!("{zones} pods m 5 gpu=1 is=m apart=host:m"),
        expect![[r#"
            m  4 of 5 fit; 4 nodes, 4 PodAntiAffinity
        "#]],
    );
    // A node without the label is in nobody's domain.
    check(
        &format!("{zones} pods m 4 gpu=1 is=m apart=zone:m"),
        expect![[r#"
        m  a1×1 b1×1 c1×2
    "#]],
    );
    check(
        &format!("{zones} use a1 is=x apart=zone:m\n pods m 9 gpu=1 is=m"),
        expect![[r#"
        m  b1×8 c1×1
    "#]],
    );
    check(
        &format!("{zones} use a1 is=m\n pods m 17 gpu=1 apart=zone:m"),
        expect![[r#"
            m  16 of 17 fit; 4 nodes, 2 short of gpu, 2 PodAntiAffinity
        "#]],
    );
}

#[test]
fn together_where_others_are_or_with_each_other() {
    let zones = "
        node a1 gpu=2 zone=a
        node a2 gpu=2 zone=a
        node b1 gpu=4 zone=b
        node b2 gpu=2 zone=b
        node c1 gpu=8
    ";
    // The first one needs nobody; the others follow it.
    check(
        &format!("{zones} pods m 6 gpu=1 is=m near=zone:m"),
        expect![[r#"
        m  b1×4 b2×2
    "#]],
    );
    check(
        &format!("{zones} pods m 7 gpu=1 is=m near=zone:m"),
        expect![[r#"
        m  6 of 7 fit; 5 nodes, 2 short of gpu, 3 PodAffinity
    "#]],
    );
    check(
        &format!("{zones} use a1 is=m\n pods m 4 gpu=1 is=m near=zone:m"),
        expect![[r#"
        m  a1×2 a2×2
    "#]],
    );
    // Nobody is there, and it is not itself whom it wants.
    check(
        &format!("{zones} pods m 1 gpu=1 is=m near=zone:db"),
        expect![[r#"
        m  0 of 1 fit; 5 nodes, 5 PodAffinity
    "#]],
    );
    // The leader follows its workers, wherever they are: it cannot be first.
    check(
        &format!("{zones} pods lead 1 gpu=1 is=l near=zone:w\n pods work 2 gpu=2 is=w"),
        expect![[r#"
        lead  b2×1
        work  b1×2
    "#]],
    );
}

#[test]
fn evenly_over_domains() {
    let zones = "
        node a1 gpu=8 zone=a
        node b1 gpu=1 zone=b
        node c1 gpu=8 zone=c
    ";
    check(
        &format!("{zones} pods m 3 gpu=1 is=m spread=zone:m:1"),
        expect![[r#"
        m  a1×1 b1×1 c1×1
    "#]],
    );
    // b is full after one, so that a and c may have one more each.
    check(
        &format!("{zones} pods m 5 gpu=1 is=m spread=zone:m:1"),
        expect![[r#"
        m  a1×2 b1×1 c1×2
    "#]],
    );
    check(
        &format!("{zones} pods m 6 gpu=1 is=m spread=zone:m:1"),
        expect![[r#"
        m  5 of 6 fit; 3 nodes, 1 short of gpu, 2 Spread
    "#]],
    );
    check(
        &format!("{zones} pods m 6 gpu=1 is=m spread=zone:m:2"),
        expect![[r#"
        m  a1×3 b1×1 c1×2
    "#]],
    );
    // With fewer domains than asked for, the emptiest counts as empty.
    check(
        &format!("{zones} pods m 4 gpu=1 is=m spread=zone:m:1:4"),
        expect![[r#"
        m  3 of 4 fit; 3 nodes, 3 Spread
    "#]],
    );
    // Nodes that the selector excludes do not count, unless they are to.
    check(
        &format!("{zones} pods m 2 gpu=1 is=m zone=a spread=zone:m:1"),
        expect![[r#"
        m  a1×2
    "#]],
    );
    check(
        &format!("{zones} pods m 2 gpu=1 is=m zone=a spread=zone:m:1:1:all"),
        expect![[r#"
        m  1 of 2 fit; 3 nodes, 2 Selector, 1 Spread
    "#]],
    );
    check(
        "node a gpu=4\n pods m 1 gpu=1 is=m spread=zone:m:1",
        expect![[r#"
        m  0 of 1 fit; 1 nodes, 1 SpreadLabel
    "#]],
    );
}

/// The leader needs the only node with room for it, which the workers would take first.
#[test]
fn one_per_node_and_a_leader_among_them() {
    check(
        "
        topology t block host
        node a gpu=8 cpu=1 block=x
        node b gpu=8 cpu=9 block=x
        node c gpu=8 cpu=1 block=x
        node d gpu=8 cpu=9 block=y
        pods lead 1 gpu=8 cpu=4 is=g apart=host:g topology=t required=block group=g
        pods work 2 gpu=8 cpu=1 is=g apart=host:g topology=t required=block group=g
    ",
        expect![[r#"
            lead  b×1
            work  a×1 c×1
        "#]],
    );
}

/// Slices are placed by room alone; places that do not suit are not taken.
#[test]
fn slices_take_no_place_that_does_not_suit() {
    let racks = "
        topology t rack host
        node a gpu=8 rack=r1
        node b gpu=8 rack=r1
        node c gpu=8 rack=r2
    ";
    check(
        &format!("{racks} pods m 2 gpu=1 is=m near=rack:m topology=t slice=rack:2"),
        expect![[r#"
        m  c×2
    "#]],
    );
    check(
        &format!("{racks} use c is=x apart=rack:m\n pods m 2 gpu=4 is=m topology=t slice=rack:2"),
        expect![[r#"
            m  0 of 2 fit; 3 nodes, 1 ExistingAntiAffinity; not proven
        "#]],
    );
}

#[test]
fn as_many_as_fit_when_not_all_must() {
    check(
        "node a gpu=8\n node b gpu=8\n pods m 4 gpu=1 is=m apart=host:m\n min 2",
        expect![[r#"
        m  a×1 b×1
    "#]],
    );
}
