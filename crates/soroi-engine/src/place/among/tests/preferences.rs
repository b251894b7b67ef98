//! What pods would like, as pictures.

use expect_test::expect;

use super::check;

#[test]
fn nodes_that_would_rather_be_left_alone_are_taken_last() {
    let nodes = "
        node a gpu=2 taint=k=v:PreferNoSchedule
        node b gpu=4
        node c gpu=8
    ";
    check(
        &format!("{nodes} pods m 2 gpu=1"),
        expect![[r#"
        m  b×2
    "#]],
    );
    check(
        &format!("{nodes} pods m 2 gpu=1 tolerate=k"),
        expect![[r#"
        m  a×2
    "#]],
    );
    check(
        &format!("{nodes} pods m 13 gpu=1"),
        expect![[r#"
        m  a×1 b×4 c×8
    "#]],
    );
}

#[test]
fn nodes_that_pods_would_like_come_first() {
    let nodes = "
        node a gpu=2 zone=z1
        node b gpu=4 zone=z2
        node c gpu=8 zone=z2 disk=ssd
        node d gpu=8
    ";
    check(
        &format!("{nodes} pods m 2 gpu=1 likes=zone:z2:1"),
        expect![[r#"
        m  b×2
    "#]],
    );
    check(
        &format!("{nodes} pods m 2 gpu=1 likes=zone:z2:1 likes=disk:ssd:1"),
        expect![[r#"
        m  c×2
    "#]],
    );
    check(
        &format!("{nodes} pods m 10 gpu=1 likes=zone:z2:1 likes=disk:ssd:100"),
        expect![[r#"
        m  a×2 c×8
    "#]],
    );
    check(
        &format!("{nodes} pods m 14 gpu=1 likes=zone:z2:1"),
        expect![[r#"
        m  b×4 c×8 d×2
    "#]],
    );
    // Nothing is liked better: as if nobody had asked.
    check(
        &format!("{nodes} pods m 2 gpu=1 likes=zone:z9:1"),
        expect![[r#"
        m  a×2
    "#]],
    );
}

#[test]
fn what_must_be_comes_before_what_pods_would_like() {
    let racks = "
        topology t rack host
        node a1 gpu=4 rack=a
        node a2 gpu=4 rack=a taint=k=v:PreferNoSchedule
        node b1 gpu=4 rack=b
        node b2 gpu=2 rack=b disk=ssd
        node c1 gpu=8 rack=c
    ";
    // One rack must do, or is preferred; which one, and where in it, may be liked.
    check(
        &format!("{racks} pods m 6 gpu=1 topology=t required=rack likes=disk:ssd:1"),
        expect![[r#"
        m  b1×4 b2×2
    "#]],
    );
    check(
        &format!("{racks} pods m 7 gpu=1 topology=t required=rack likes=disk:ssd:1"),
        expect![[r#"
        m  c1×7
    "#]],
    );
    check(
        &format!("{racks} pods m 7 gpu=1 topology=t preferred=rack likes=disk:ssd:1"),
        expect![[r#"
        m  c1×7
    "#]],
    );
    check(
        &format!("{racks} pods m 9 gpu=1 topology=t preferred=rack likes=disk:ssd:1"),
        expect![[r#"
        m  a1×4 b1×3 b2×2
    "#]],
    );
    check(
        &format!("{racks} pods m 2 gpu=1 is=m apart=host:m topology=t required=rack"),
        expect![[r#"
        m  b1×1 b2×1
    "#]],
    );
}

#[test]
fn pods_that_would_like_to_be_near_others_or_not() {
    let zones = "
        node a1 gpu=2 zone=a
        node a2 gpu=2 zone=a
        node b1 gpu=4 zone=b
        node b2 gpu=4 zone=b
        node c1 gpu=3 zone=c
    ";
    check(
        &format!("{zones} use b2 is=x\n pods m 2 gpu=1 fond=zone:x:10"),
        expect![[r#"
        m  b1×2
    "#]],
    );
    check(
        &format!("{zones} use a1 is=x\n pods m 2 gpu=1 shy=zone:x:10"),
        expect![[r#"
        m  c1×2
    "#]],
    );
    // One on each node, as far as that goes.
    check(
        &format!("{zones} pods m 4 gpu=1 is=m shy=host:m:100"),
        expect![[r#"
        m  a1×1 b1×1 b2×1 c1×1
    "#]],
    );
    check(
        &format!("{zones} pods m 7 gpu=1 is=m shy=host:m:100"),
        expect![[r#"
        m  a1×1 a2×1 b1×2 b2×1 c1×2
    "#]],
    );
    // All in one zone, although a smaller one would do for some.
    check(
        &format!("{zones} pods m 7 gpu=1 is=m fond=zone:m:100"),
        expect![[r#"
        m  b1×4 b2×3
    "#]],
    );
    check(
        &format!("{zones} pods m 5 gpu=2 is=m fond=zone:m:100"),
        expect![[r#"
        m  a1×1 b1×2 b2×2
    "#]],
    );
}

#[test]
fn pods_that_should_be_spread_are_as_far_as_there_is_room() {
    let zones = "
        node a1 gpu=2 zone=a
        node a2 gpu=2 zone=a
        node b1 gpu=4 zone=b
        node c1 gpu=1 zone=c
    ";
    check(
        &format!("{zones} pods m 3 gpu=1 is=m even=zone:m:1"),
        expect![[r#"
        m  a1×1 b1×1 c1×1
    "#]],
    );
    check(
        &format!("{zones} pods m 7 gpu=1 is=m even=zone:m:1"),
        expect![[r#"
        m  a1×2 a2×1 b1×3 c1×1
    "#]],
    );
    check(
        &format!("{zones} use a1 is=m\n use a1 is=m\n pods m 2 gpu=1 is=m even=zone:m:1"),
        expect![[r#"
        m  b1×1 c1×1
    "#]],
    );
}

#[test]
fn a_gang_fits_whatever_it_would_like() {
    // The one node that takes the large pod is the one that the small ones would like.
    let nodes = "
        node a gpu=4 disk=ssd
        node b gpu=2
        node c gpu=2
    ";
    check(
        &format!("{nodes} pods s 4 gpu=1 likes=disk:ssd:100\n pods l 1 gpu=4"),
        expect![[r#"
        s  b×2 c×2
        l  a×1
    "#]],
    );
    check(
        &format!("{nodes} pods s 2 gpu=1 likes=disk:ssd:100\n pods t 2 gpu=1"),
        expect![[r#"
        s  a×2
        t  c×2
    "#]],
    );
}
