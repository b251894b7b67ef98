//! Which of the places that do, by the packing that is set.

use expect_test::expect;

use super::check;

#[test]
fn by_best_fit_by_what_is_left_and_by_what_can_be_used() {
    let nodes = "
        node a gpu=8 cpu=8
        node b gpu=8 cpu=8
        node c gpu=4 cpu=64
        use b gpu=2 cpu=2
    ";
    check(
        &format!("{nodes} pods m 4 gpu=1 cpu=1"),
        expect![[r#"
        m  c×4
    "#]],
    );
    check(
        &format!("{nodes} packing Spread\n pods m 4 gpu=1 cpu=1"),
        expect![[r#"
        m  a×3 b×1
    "#]],
    );
    check(
        &format!("{nodes} packing Spread\n pods m 8 gpu=1 cpu=1"),
        expect![[r#"
        m  a×5 b×2 c×1
    "#]],
    );
    check(
        &format!("{nodes} packing Fragmentation\n pods m 4 gpu=1 cpu=1"),
        expect![[r#"
        m  b×4
    "#]],
    );
}

/// Pods that need processors only go where these are of no use to devices.
#[test]
fn processors_beside_devices_are_left_to_those_who_need_both() {
    let nodes = "
        node a gpu=4 cpu=4
        node b cpu=8
        node c gpu=1 cpu=16
        use a gpu=1 cpu=1
        use a gpu=1 cpu=1
    ";
    check(
        &format!("{nodes} pods m 2 cpu=1"),
        expect![[r#"
        m  a×2
    "#]],
    );
    check(
        &format!("{nodes} packing Fragmentation\n pods m 2 cpu=1"),
        expect![[r#"
        m  b×2
    "#]],
    );
    check(
        &format!("{nodes} packing Fragmentation\n pods m 12 cpu=1"),
        expect![[r#"
        m  b×8 c×4
    "#]],
    );
    check(
        &format!("{nodes} packing Spread\n pods m 3 cpu=1"),
        expect![[r#"
        m  c×3
    "#]],
    );
}

#[test]
fn what_must_be_and_what_is_liked_come_first() {
    let racks = "
        topology t rack host
        node a1 gpu=4 rack=a
        node a2 gpu=4 rack=a
        node b1 gpu=8 rack=b
        node b2 gpu=8 rack=b taint=k=v:PreferNoSchedule
        node c1 gpu=4 rack=c
        packing Spread
    ";
    check(
        &format!("{racks} pods m 4 gpu=1 topology=t required=rack"),
        expect![[r#"
        m  b1×4
    "#]],
    );
    check(
        &format!("{racks} pods m 4 gpu=1 topology=t required=host"),
        expect![[r#"
        m  b1×4
    "#]],
    );
    check(
        &format!("{racks} pods m 4 gpu=1 topology=t"),
        expect![[r#"
        m  b1×4
    "#]],
    );
    check(
        &format!("{racks} pods m 4 gpu=1 is=m near=rack:m"),
        expect![[r#"
        m  b1×4
    "#]],
    );
    check(
        &format!("{racks} pods m 2 gpu=1 slice=rack:2 topology=t"),
        expect![[r#"
        m  c1×2
    "#]],
    );
}
