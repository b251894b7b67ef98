//! Who is counted: groups that lose members, members that ended well, seats whose members are lost.

use expect_test::expect;

use super::script::check;

#[test]
fn a_group_that_lost_a_member_keeps_its_place_and_leaves_when_nobody_comes() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang group queue=cq pods=2 min=2 gpu=1
        gang next queue=cq pods=1 gpu=1
        fail group-1
        count group 1
        wait 59s
        show
        usage
        count group 2
        members group
        show
        fail group-0
        count group 1
        wait 60s
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang group queue=cq pods=2 min=2 gpu=1
              admit group; mainx2 [default] a*2
              bind group-0 to a
              bind group-1 to a
              settled group
            gang next queue=cq pods=1 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            fail group-1
            count group 1
            wait 59s
            show
              a: group-0 (group)
              group: committed, 1 running
              next: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 2
            count group 2
            members group
              bind group-2 to a
              settled group
            show
              a: group-0 group-2
              group: committed, 2 running
              next: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            fail group-0
            count group 1
            wait 60s
              undo group after its start: RecoveryTimeout(Lack { role: None, have: 1, need: 2 })
              admit next; mainx1 [default] a*1
              pending group: waiting for pods of the group: 1 of 2 exist
              bind next-0 to a
              settled next
        "#]],
    );
}

#[test]
fn a_member_that_ended_well_is_out_of_the_counts() {
    check(
        "
        node a gpu=2
        gang group pods=2 min=2 gpu=1
        done group-1
        change group count=1 min=1
        wait 100s
        show
        restart
        show
        ",
        expect![[r#"
            node a gpu=2
            gang group pods=2 min=2 gpu=1
              admit group; mainx2 a*2
              bind group-0 to a
              bind group-1 to a
              settled group
            done group-1
            change group count=1 min=1
            wait 100s
            show
              a: group-0
              group: committed, 1 running
            restart
              settled group
            show
              a: group-0
              group: committed, 1 running
        "#]],
    );
}

#[test]
fn what_ended_in_an_earlier_run_is_no_member_of_the_next() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        gang train queue=cq pods=2 gpu=1
        done train-0
        off train
        count train 1
        auto commit
        pod train-9 of=train set=main node=a gpu=1
        done train-9
        ready train
        show
        members train
        show
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            done train-0
            off train
              undo train after its start: Off(Deactivated)
              pending train: The workload is deactivated
            count train 1
            auto commit
            pod train-9 of=train set=main node=a gpu=1
            done train-9
            ready train
              admit train; mainx1 [default] a*1
            show
              a: (train)
              train: committed, 0 running
            members train
              bind train-2 to a
            show
              a: (train)
              train: committed, 0 running
        "#]],
    );
}

#[test]
fn what_ended_before_a_restart_takes_no_seat() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        auto commit
        gang train queue=cq pods=3 gpu=1
        pod train-9 of=train set=main node=a gpu=1
        done train-9
        members train 2
        show
        restart
        show
        members train
        show
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            auto commit
            gang train queue=cq pods=3 gpu=1
              admit train; mainx3 [default] a*3
            pod train-9 of=train set=main node=a gpu=1
            done train-9
            members train 2
              bind train-0 to a
              bind train-1 to a
            show
              a: (train) (train)
              train: committed, 1 running
            restart
            show
              a: (train) (train) (train)
              train: committed, 0 running
            members train
              bind train-0 to a
              bind train-1 to a
              bind train-2 to a
            show
              a: (train) (train) (train)
              train: committed, 0 running
        "#]],
    );
}

#[test]
fn a_pod_set_that_lost_all_members_is_not_held_in_their_domain() {
    check(
        "
        topology racks rack kubernetes.io/hostname
        flavor f topology=racks
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
        node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
        node c cpu=1 @rack=r1 @kubernetes.io/hostname=c
        queue cq gpu@f=9 cpu@f=9
        gang train queue=cq lead:1:cpu=1 workers:2:gpu=1 required=rack
        node d gpu=2 @rack=r2 @kubernetes.io/hostname=d
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a cordoned
        node b gpu=1 @rack=r1 @kubernetes.io/hostname=b cordoned
        gone train-workers-1
        gone train-workers-2
        members train 1
        show
        ",
        expect![[r#"
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
            node c cpu=1 @rack=r1 @kubernetes.io/hostname=c
            queue cq gpu@f=9 cpu@f=9
            gang train queue=cq lead:1:cpu=1 workers:2:gpu=1 required=rack
              admit train; leadx1 [f] c*1; workersx2 [f] a*1 b*1
              bind train-lead-0 to c
              bind train-workers-1 to a
              bind train-workers-2 to b
              settled train
            node d gpu=2 @rack=r2 @kubernetes.io/hostname=d
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a cordoned
            node b gpu=1 @rack=r1 @kubernetes.io/hostname=b cordoned
            gone train-workers-1
            gone train-workers-2
            members train 1
              place train; leadx1 [f] c*1; workersx2 [f] d*2
              bind train-workers-3 to d
              bind train-workers-4 to d
              settled train
            show
              a cordoned: 
              b cordoned: 
              c: train-lead-0
              d: train-workers-3 train-workers-4
              train: committed, 3 running
        "#]],
    );
}

#[test]
fn a_pod_set_that_moves_to_another_domain_leaves_nobody_behind() {
    check(
        "
        topology racks rack kubernetes.io/hostname
        flavor f topology=racks
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
        node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
        node c cpu=1 @rack=r1 @kubernetes.io/hostname=c
        queue cq gpu@f=9 cpu@f=9
        gang train queue=cq lead:1:cpu=1 workers:2:gpu=1 required=rack
        node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a cordoned
        gone train-workers-1
        gone train-workers-2
        members train 1
        show
        node e gpu=1 @rack=r2 @kubernetes.io/hostname=e
        show
        ",
        expect![[r#"
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
            node c cpu=1 @rack=r1 @kubernetes.io/hostname=c
            queue cq gpu@f=9 cpu@f=9
            gang train queue=cq lead:1:cpu=1 workers:2:gpu=1 required=rack
              admit train; leadx1 [f] c*1; workersx2 [f] a*1 b*1
              bind train-lead-0 to c
              bind train-workers-1 to a
              bind train-workers-2 to b
              settled train
            node d gpu=1 @rack=r2 @kubernetes.io/hostname=d
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a cordoned
            gone train-workers-1
            gone train-workers-2
            members train 1
              pending train: couldn't place pod set workers: topology "racks" allows to fit only 1 out of 2 pod(s). Total nodes: 4; excluded: unschedulable: 1, topologyDomain: 1, resource "example.com/gpu": 1; for one more, 0/4 nodes are available: 1 node(s) were unschedulable, 1 node(s) were outside of the topology domain, 2 Insufficient example.com/gpu; the closest domain is r1
            show
              a cordoned: 
              b: 
              c: train-lead-0
              d: 
              train: committed, 1 running
            node e gpu=1 @rack=r2 @kubernetes.io/hostname=e
              place train; leadx1 [f] c*1; workersx2 [f] d*1 e*1
              bind train-workers-3 to d
              bind train-workers-4 to e
              settled train
            show
              a cordoned: 
              b: 
              c: train-lead-0
              d: train-workers-3
              e: train-workers-4
              train: committed, 3 running
        "#]],
    );
}
