//! What volumes allow, as pictures.

use expect_test::expect;

use super::check;
use crate::place::board::Board;

const NODES: &str = "
    node a gpu=8 zone=z1 topology.kubernetes.io/zone=z1
    node b gpu=8 zone=z2 topology.kubernetes.io/zone=z2
    node c gpu=8
";

#[test]
fn where_the_volume_is_reached() {
    let claims = "
        claim near of=near
        volume near on=zone:z2
        claim zoned of=zoned
        volume zoned in=z1,z3
    ";
    check(
        &format!("{NODES} {claims} pods m 8 gpu=1 claim=near"),
        expect![[r#"
        m  b×8
    "#]],
    );
    check(
        &format!("{NODES} {claims} pods m 9 gpu=1 claim=near"),
        expect![[r#"
        m  8 of 9 fit; 3 nodes, 2 VolumeAffinity
    "#]],
    );
    // A node that says nothing of zones is in all of them.
    check(
        &format!("{NODES} {claims} pods m 9 gpu=1 claim=zoned"),
        expect![[r#"
        m  a×8 c×1
    "#]],
    );
    check(
        &format!("{NODES} {claims} pods m 1 gpu=1 claim=zoned claim=near"),
        expect![[r#"
        m  0 of 1 fit; 3 nodes, 2 VolumeAffinity, 1 VolumeZone
    "#]],
    );
}

#[test]
fn claims_without_a_volume() {
    let claims = "
        claim none of=-
        claim lost of=gone
    ";
    for name in ["none", "lost", "unheard-of"] {
        let told = Board::new(&format!("{NODES} {claims} pods m 1 gpu=1 claim={name}")).draw();
        assert!(told.starts_with("m  0 of 1 fit; 3 nodes, 3 Claim"), "{told}");
    }
}

/// What a claim leads to is looked at anew when the claim, or its volume, changes.
#[test]
fn a_claim_that_is_bound_later() {
    let mut board = Board::new(&format!("{NODES} claim c of=-\n pods m 1 gpu=1 claim=c"));
    let mut told = String::new();
    for line in [
        "claim c of=v",
        "volume v on=zone:z2",
        "volume v on=zone:z1",
        "claim c of=w",
        "volume w",
        "claim c of=-",
    ] {
        board.line(line);
        told += &format!("{line}\n    {}", board.draw());
    }
    expect![[r#"
        claim c of=v
            m  0 of 1 fit; 3 nodes, 3 Claim { claim: "c", problem: NoVolume }
        volume v on=zone:z2
            m  b×1
        volume v on=zone:z1
            m  a×1
        claim c of=w
            m  0 of 1 fit; 3 nodes, 3 Claim { claim: "c", problem: NoVolume }
        volume w
            m  a×1
        claim c of=-
            m  0 of 1 fit; 3 nodes, 3 Claim { claim: "c", problem: Unbound }
    "#]]
    .assert_eq(&told);
}

#[test]
fn one_pod_at_a_time() {
    let claims = "
        claim c of=v once
        volume v
    ";
    check(
        &format!("{NODES} {claims} pods m 1 gpu=1 claim=c"),
        expect![[r#"
        m  a×1
    "#]],
    );
    check(
        &format!("{NODES} {claims} pods m 2 gpu=1 claim=c"),
        expect![[r#"
        m  1 of 2 fit; 3 nodes, 3 VolumeInUse
    "#]],
    );
    check(
        &format!("{NODES} {claims} use b claim=c\n pods m 1 gpu=1 claim=c"),
        expect![[r#"
        m  0 of 1 fit; 3 nodes, 3 VolumeInUse
    "#]],
    );
    // Who is on a node that is gone is gone with it.
    check(
        &format!("{NODES} {claims} use b claim=c\n gone b\n pods m 1 gpu=1 claim=c"),
        expect![[r#"
        m  a×1
    "#]],
    );
}

#[test]
fn as_many_as_the_driver_attaches() {
    let claims = "
        attach a fast=1
        attach b fast=2 slow=0
        claim c1 of=v1
        claim c2 of=v2
        claim c3 of=v3
        claim same of=v3-again
        volume v1 csi=fast:h1
        volume v2 csi=fast:h2
        volume v3 csi=fast:h3
        volume v3-again csi=fast:h3
    ";
    let two = "
        node a gpu=8
        node b gpu=8
    ";
    // Three volumes have room on two nodes, and a volume of several pods is attached once.
    check(
        &format!(
            "{two} {claims} pods m 2 gpu=4 claim=c1\n pods n 1 gpu=1 claim=c2\n pods o 1 gpu=1 claim=c3"
        ),
        expect![[r#"
            m  a×2
            n  b×1
            o  b×1
        "#]],
    );
    check(
        &format!("{two} {claims} use a claim=c1\n use b claim=c1\n use b claim=c2\n pods m 1 gpu=1 claim=c3"),
        expect![[r#"
            m  0 of 1 fit; 2 nodes, 2 VolumeLimit
        "#]],
    );
    // The same volume by another name.
    check(
        &format!(
            "{two} {claims} use b claim=c3\n use b claim=c2\n use a claim=c1\n pods m 3 gpu=1 claim=same"
        ),
        expect![[r#"
            m  b×3
        "#]],
    );
    // Of a driver that says nothing, as many as one likes.
    check(
        &format!(
            "{two} {claims} claim other of=v4\n volume v4 csi=free:h4\n use a claim=c1\n pods m 9 gpu=1 claim=other"
        ),
        expect![[r#"
            m  a×8 b×1
        "#]],
    );
}
