//! Slices and groups of pod sets, from the wait for places to the lost member.

use expect_test::expect;

use super::script::check;

const FLOOR: &str = "
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
        node b gpu=1 @rack=r2 @kubernetes.io/hostname=b
        node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
        node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
        topology racks rack kubernetes.io/hostname
        flavor f topology=racks
        queue cq gpu@f=20
";

#[test]
fn members_of_a_slice_are_neighbours_by_their_index() {
    check(
        &format!("{FLOOR}\n        gang ring queue=cq pods=4 gpu=1 slice=rack:2"),
        expect![[r#"
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r2 @kubernetes.io/hostname=b
            node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
            node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            queue cq gpu@f=20
            gang ring queue=cq pods=4 gpu=1 slice=rack:2
              admit ring; mainx4 [f] a*1 b*1 c*1 d*1
              bind ring-0 to a
              bind ring-1 to c
              bind ring-2 to b
              bind ring-3 to d
              settled ring
        "#]],
    );
}

#[test]
fn the_reason_counts_slices() {
    check(
        &format!(
            "{FLOOR}
        gang wide queue=cq pods=6 gpu=1 slice=rack:3
        gang odd queue=cq pods=4 gpu=1 required=rack slice=row:2
        gang upside queue=cq pods=4 gpu=1 required=kubernetes.io/hostname slice=rack:2
        "
        ),
        expect![[r#"
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r2 @kubernetes.io/hostname=b
            node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
            node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            queue cq gpu@f=20
            gang wide queue=cq pods=6 gpu=1 slice=rack:3
              pending wide: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 2 slice(s); none would ever fit, even on empty nodes
            gang odd queue=cq pods=4 gpu=1 required=rack slice=row:2
              pending odd: couldn't assign flavors to pod set main: Flavor "f" does not contain the requested level "row"
            gang upside queue=cq pods=4 gpu=1 required=kubernetes.io/hostname slice=rack:2
              pending upside: couldn't assign flavors to pod set main: podset slice topology rack is above the podset topology kubernetes.io/hostname in flavor f
        "#]],
    );
}

#[test]
fn a_leader_and_its_workers_start_in_one_rack_or_not_at_all() {
    check(
        &format!(
            "{FLOOR}
        gang pair queue=cq lead:1:gpu=1 work:1:gpu=1 required=rack together=g
        gang three queue=cq lead:1:gpu=1 work:2:gpu=1 required=rack together=g
        "
        ),
        expect![[r#"
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r2 @kubernetes.io/hostname=b
            node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
            node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            queue cq gpu@f=20
            gang pair queue=cq lead:1:gpu=1 work:1:gpu=1 required=rack together=g
              admit pair; leadx1 [f] a*1; workx1 [f] c*1
              bind pair-lead-0 to a
              bind pair-work-1 to c
              settled pair
            gang three queue=cq lead:1:gpu=1 work:2:gpu=1 required=rack together=g
              pending three: couldn't assign flavors to pod set lead: topology "racks" allows to fit only 1 out of 1 pod(s). Total nodes: 4; excluded: resource "example.com/gpu": 2; 2/4 nodes are available: 2 Insufficient example.com/gpu; the closest domain is r2; couldn't assign flavors to pod set work: topology "racks" allows to fit only 2 out of 2 pod(s). Total nodes: 4; excluded: resource "example.com/gpu": 2; 2/4 nodes are available: 2 Insufficient example.com/gpu; the closest domain is r2
        "#]],
    );
}
