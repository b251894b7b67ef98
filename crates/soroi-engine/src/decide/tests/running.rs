//! After the start: members are lost and replaced, end, and leave.

use expect_test::expect;

use super::script::check;

#[test]
fn a_lost_member_is_replaced_in_its_place() {
    check(
        "
        node a gpu=1
        node b gpu=1
        queue cq gpu=4
        gang train queue=cq pods=2 gpu=1
        gang next queue=cq pods=1 gpu=1
        fail train-0
        show
        members train
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            queue cq gpu=4
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            gang next queue=cq pods=1 gpu=1
              pending next: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu
            fail train-0
            show
              a: (train)
              b: train-1
              next: pending: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu
              train: committed, 1 running
            members train
              bind train-2 to a
              settled train
            show
              a: train-2
              b: train-1
              next: pending: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_terminating_member_keeps_its_node_and_quota_is_not_charged_twice() {
    check(
        "
        node a gpu=1
        node b gpu=1
        node c gpu=1
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        terminate train-0
        show
        members train
        usage
        gone train-0
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            node c gpu=1
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            terminate train-0
            show
              a: train-0
              b: train-1
              c: 
              train: committed, 1 running
            members train
              place train; mainx2 [default] b*1 c*1
              bind train-2 to c
              settled train
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 2
            gone train-0
            show
              a: 
              b: train-1
              c: train-2
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_cordoned_node_keeps_its_pods_and_gets_no_replacement() {
    check(
        "
        node a gpu=2
        node b gpu=2
        node c gpu=2
        queue cq gpu=8
        gang train queue=cq pods=4 gpu=1
        node b gpu=2 cordoned
        gone train-3
        members train
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            node c gpu=2
            queue cq gpu=8
            gang train queue=cq pods=4 gpu=1
              admit train; mainx4 [default] a*2 b*2
              bind train-0 to a
              bind train-1 to a
              bind train-2 to b
              bind train-3 to b
              settled train
            node b gpu=2 cordoned
            gone train-3
            members train
              place train; mainx4 [default] a*2 b*1 c*1
              bind train-4 to c
              settled train
            show
              a: train-0 train-1
              b cordoned: train-2
              c: train-4
              train: committed, 4 running
        "#]],
    );
}

#[test]
fn a_replacement_stays_in_the_required_domain_or_waits_until_it_is_too_late() {
    check(
        "
        topology racks rack kubernetes.io/hostname
        flavor f topology=racks
        node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
        node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
        node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
        node d gpu=9 @rack=r2 @kubernetes.io/hostname=d
        queue cq gpu@f=100
        gang train queue=cq pods=2 gpu=1 required=rack
        nodegone a
        gone train-0
        members train
        nodegone c
        node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
        gone train-2
        members train
        wait 59s
        wait 1s
        show
        ",
        expect![[r#"
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            node a gpu=1 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
            node c gpu=1 @rack=r1 @kubernetes.io/hostname=c
            node d gpu=9 @rack=r2 @kubernetes.io/hostname=d
            queue cq gpu@f=100
            gang train queue=cq pods=2 gpu=1 required=rack
              admit train; mainx2 [f] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            nodegone a
            gone train-0
            members train
              place train; mainx2 [f] b*1 c*1
              bind train-2 to c
              settled train
            nodegone c
            node b gpu=1 @rack=r1 @kubernetes.io/hostname=b
            gone train-2
            members train
              pending train: couldn't place pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: topologyDomain: 1, resource "example.com/gpu": 1; 0/2 nodes are available: 1 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is r1
            wait 59s
            wait 1s
              undo train after its start: RecoveryTimeout(Lack { role: None, have: 1, need: 2 })
              pending train: pausing before it is tried again
            show
              b: 
              d: 
              train: pending: pausing before it is tried again
        "#]],
    );
}

#[test]
fn finished_members_give_their_quota_back() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        gang train queue=cq pods=4 gpu=1
        gang next queue=cq pods=2 gpu=1
        done train-0
        done train-1
        usage
        count train 2
        usage
        show
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            gang train queue=cq pods=4 gpu=1
              admit train; mainx4 [default] a*4
              bind train-0 to a
              bind train-1 to a
              bind train-2 to a
              bind train-3 to a
              settled train
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            done train-0
            done train-1
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 4
            count train 2
              admit next; mainx2 [default] a*2
              bind next-0 to a
              bind next-1 to a
              settled next
            usage
              cq: 0 pending, 2 reserving, 2 admitted; gpu@default 4
            show
              a: next-0 next-1 train-2 train-3
              next: committed, 2 running
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_finished_member_that_is_replaced_keeps_its_seat() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        done train-0
        members train
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            done train-0
            members train
              bind train-2 to a
            show
              a: train-1 train-2
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn switched_off_it_leaves_and_comes_back() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        off train
        ready train
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            off train
              undo train after its start: Off(Deactivated)
              pending train: The workload is deactivated
            ready train
              admit train; mainx2 [default] a*2
              bind train-2 to a
              bind train-3 to a
              settled train
        "#]],
    );
}

#[test]
fn quota_stays_until_the_last_bound_pod_is_gone() {
    check(
        "
        node a gpu=4
        queue cq gpu=2
        auto members bind
        gang train queue=cq pods=2 gpu=1
        commit train
        gang next queue=cq pods=2 gpu=1
        end train
        usage
        terminate train-0
        gone train-0
        usage
        done train-1
        usage
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=2
            auto members bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            commit train
              bind train-0 to a
              bind train-1 to a
              settled train
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            end train
            usage
              cq: 1 pending, 0 reserving, 0 admitted; gpu@default 2
            terminate train-0
            gone train-0
            usage
            done train-1
              admit next; mainx2 [default] a*2
            usage
              cq: 0 pending, 1 reserving, 0 admitted; gpu@default 2
        "#]],
    );
}

#[test]
fn on_a_dead_node_quota_is_released_after_a_while_and_capacity_is_not() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        gang next queue=cq pods=2 gpu=1
        node a gpu=2 notready
        node b gpu=2 notready
        end train
        wait 299s
        usage
        node b gpu=2
        wait 1s
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            node a gpu=2 notready
            node b gpu=2 notready
            end train
            wait 299s
            usage
              cq: 1 pending, 0 reserving, 0 admitted; gpu@default 2
            node b gpu=2
            wait 1s
              admit next; mainx2 [default] b*2
              bind next-0 to b
              bind next-1 to b
              settled next
            show
              a not ready: train-0 train-1
              b: next-0 next-1
              next: committed, 2 running
        "#]],
    );
}

#[test]
fn not_written_it_is_decided_again_after_a_pause() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto members bind
        gang train queue=cq pods=2 gpu=1
        uncommit train
        wait 999ms
        wait 1ms
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto members bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            uncommit train
              pending train: pausing before it is tried again
            wait 999ms
            wait 1ms
              admit train; mainx2 [default] a*2
        "#]],
    );
}

#[test]
fn a_deactivated_queue_keeps_what_runs() {
    check(
        "
        node a gpu=2
        flavor f
        queue cq gpu@f=2
        gang train queue=cq pods=1 gpu=1
        flavorgone f
        gang next queue=cq pods=1 gpu=1
        usage
        fail train-0
        members train
        flavor f
        ",
        expect![[r#"
            node a gpu=2
            flavor f
            queue cq gpu@f=2
            gang train queue=cq pods=1 gpu=1
              admit train; mainx1 [f] a*1
              bind train-0 to a
              settled train
            flavorgone f
            gang next queue=cq pods=1 gpu=1
              pending next: ClusterQueue cq is inactive: it references missing ResourceFlavor(s): f
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@f 1 inactive: FlavorNotFound(["f"])
            fail train-0
            members train
              bind train-1 to a
              settled train
            flavor f
              admit next; mainx1 [f] a*1
              bind next-0 to a
              settled next
        "#]],
    );
}

#[test]
fn an_elastic_gang_uses_what_it_gets_and_survives_down_to_its_minimum() {
    check(
        "
        node a gpu=3
        node b gpu=1
        gang elastic pods=4 min=2 gpu=1
        nodegone b
        gone elastic-3
        members elastic
        wait 300s
        show
        node c gpu=1
        show
        ",
        expect![[r#"
            node a gpu=3
            node b gpu=1
            gang elastic pods=4 min=2 gpu=1
              admit elastic; mainx4 a*3 b*1
              bind elastic-0 to a
              bind elastic-1 to a
              bind elastic-2 to a
              bind elastic-3 to b
              settled elastic
            nodegone b
            gone elastic-3
            members elastic
              pending elastic: couldn't place pod set main: nodes don't allow to fit any of 1 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            wait 300s
            show
              a: elastic-0 elastic-1 elastic-2
              elastic: committed, 3 running
            node c gpu=1
              place elastic; mainx4 a*3 c*1
              bind elastic-4 to c
              settled elastic
            show
              a: elastic-0 elastic-1 elastic-2
              c: elastic-4
              elastic: committed, 4 running
        "#]],
    );
}

#[test]
fn an_elastic_gang_grows_when_there_is_room_and_quota() {
    check(
        "
        node a gpu=2
        queue cq gpu=4
        gang elastic queue=cq pods=5 min=2 gpu=1
        node b gpu=1
        usage
        node c gpu=5
        usage
        queue cq gpu=5
        usage
        show
        restart
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=4
            gang elastic queue=cq pods=5 min=2 gpu=1
              admit elastic; mainx2 [default] a*2
              bind elastic-0 to a
              bind elastic-1 to a
              settled elastic
              pending elastic: couldn't place pod set main: nodes don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            node b gpu=1
              place elastic; mainx3 [default] a*2 b*1
              bind elastic-2 to b
              pending elastic: couldn't place pod set main: nodes don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu
              settled elastic
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 3
            node c gpu=5
              place elastic; mainx4 [default] a*2 b*1 c*1
              bind elastic-3 to c
              pending elastic: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              settled elastic
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 4
            queue cq gpu=5
              place elastic; mainx5 [default] a*2 b*1 c*2
              bind elastic-4 to c
              settled elastic
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 5
            show
              a: elastic-0 elastic-1
              b: elastic-2
              c: elastic-3 elastic-4
              elastic: committed, 5 running
            restart
            show
              a: elastic-0 elastic-1
              b: elastic-2
              c: elastic-3 elastic-4
              elastic: committed, 5 running
        "#]],
    );
}

#[test]
fn after_admission_repair_waits_for_room() {
    check(
        "
        node a gpu=1
        node b gpu=1
        queue cq gpu=8 policy=after
        gang train queue=cq pods=2 gpu=1
        node b gpu=1 cordoned
        gone train-1
        members train
        wait 10s
        node c gpu=1
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            queue cq gpu=8 policy=after
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default]
              place train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            node b gpu=1 cordoned
            gone train-1
            members train
              pending train: couldn't place pod set main: nodes don't allow to fit any of 1 pod(s): 0/2 nodes are available: 1 node(s) were unschedulable, 1 Insufficient example.com/gpu
            wait 10s
            node c gpu=1
              place train; mainx2 [default] a*1 c*1
              bind train-2 to c
              settled train
            show
              a: train-0
              b cordoned: 
              c: train-2
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_plan_that_was_removed_by_force_is_written_again() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        planlost train
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            planlost train
              place train; mainx2 [default] a*2
              settled train
            show
              a: train-0 train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn the_end_of_an_earlier_plan_is_no_loss_of_the_next_one() {
    check(
        "
        node a gpu=2
        queue q gpu=2
        gang g queue=q pods=2 gpu=1
        off g
        undone g
        ready g
        show
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2
            gang g queue=q pods=2 gpu=1
              admit g; mainx2 [default] a*2
              bind g-0 to a
              bind g-1 to a
              settled g
            off g
              undo g after its start: Off(Deactivated)
              pending g: The workload is deactivated
            undone g
            ready g
              admit g; mainx2 [default] a*2
              bind g-2 to a
              bind g-3 to a
              settled g
            show
              a: g-2 g-3
              g: committed, 2 running
        "#]],
    );
}

#[test]
fn a_gang_that_still_holds_quota_of_its_last_admission_waits_for_places() {
    // Its own quota would do, its own pods are still in the way: that is an answer, not a riddle.
    check(
        "
        node a gpu=2
        queue q gpu=2
        auto bind
        gang g queue=q pods=2 gpu=1
        commit g
        members g
        off g
        terminate g-0
        terminate g-1
        takenback g
        ready g
        gone g-0
        gone g-1
        show
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2
            auto bind
            gang g queue=q pods=2 gpu=1
              admit g; mainx2 [default] a*2
            commit g
            members g
              bind g-0 to a
              bind g-1 to a
              settled g
            off g
              undo g after its start: Off(Deactivated)
            terminate g-0
            terminate g-1
            takenback g
              pending g: The workload is deactivated
            ready g
              pending g: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            gone g-0
            gone g-1
              admit g; mainx2 [default] a*2
            show
              a: (g) (g)
              g: assumed, 0 running
        "#]],
    );
}
