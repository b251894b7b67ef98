//! A restart at every phase.

use expect_test::expect;

use super::script::check;

#[test]
fn while_members_are_missing() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto commit bind
        gang train queue=cq pods=2 gpu=1
        gang next queue=cq pods=1 gpu=1
        members train 1
        restart
        show
        members train
        restart
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto commit bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            gang next queue=cq pods=1 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            members train 1
            restart
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            show
              a: (train) (train)
              next: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              train: committed, 0 running
            members train
              bind train-0 to a
              bind train-1 to a
              settled train
            restart
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            show
              a: train-0 train-1
              next: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn before_the_commit_is_known() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto members bind
        gang train queue=cq pods=2 gpu=1
        restart
        commit train
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto members bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            restart
              admit train; mainx2 [default] a*2
            commit train
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn half_bound() {
    check(
        "
        node a gpu=1
        node b gpu=1
        queue cq gpu=2
        auto commit members
        gang train queue=cq pods=2 gpu=1
        seen train-0 node=a
        restart
        show
        auto all
        seen train-1 node=b
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            queue cq gpu=2
            auto commit members
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
            seen train-0 node=a
            restart
              bind train-1 to b
            show
              a: train-0
              b: (train)
              train: committed, 1 running
            auto all
            seen train-1 node=b
              settled train
            show
              a: train-0
              b: train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn while_it_is_undone() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto members bind
        gang train queue=cq pods=2 gpu=1
        commit train
        off train
        restart
        undone train
        ready train
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto members bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            commit train
              bind train-0 to a
              bind train-1 to a
              settled train
            off train
              undo train after its start: Off(Deactivated)
            restart
              undo train: Interrupted
            undone train
              pending train: The workload is deactivated
            ready train
              pending train: pausing before it is tried again
        "#]],
    );
}

#[test]
fn after_members_were_lost() {
    check(
        "
        node a gpu=1
        node b gpu=1
        queue cq gpu=4
        gang train queue=cq pods=2 gpu=1
        fail train-0
        node a gpu=1 cordoned
        restart
        node c gpu=1
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
            fail train-0
            node a gpu=1 cordoned
            restart
            node c gpu=1
            members train
              place train; mainx2 [default] b*1 c*1
              bind train-2 to c
              settled train
            show
              a cordoned: 
              b: train-1
              c: train-2
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn admitted_by_status_only() {
    check(
        "
        queue cq gpu=4 policy=quota
        auto commit members
        gang one queue=cq pods=3 gpu=1
        gang two queue=cq pods=2 gpu=1
        restart
        usage
        show
        ",
        expect![[r#"
            queue cq gpu=4 policy=quota
            auto commit members
            gang one queue=cq pods=3 gpu=1
              admit one; mainx3 [default]
            gang two queue=cq pods=2 gpu=1
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            restart
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 3
            show
              one: committed, 0 running
              two: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
        "#]],
    );
}

#[test]
fn pinned_places_are_kept() {
    check(
        "
        topology hosts kubernetes.io/hostname
        flavor tas topology=hosts
        node a gpu=2 @kubernetes.io/hostname=a
        queue cq gpu@tas=4 policy=topology
        auto commit members
        gang one queue=cq pods=2 gpu=1
        gang two queue=cq pods=2 gpu=1
        seen one-0 node=a
        restart
        show
        ",
        expect![[r#"
            topology hosts kubernetes.io/hostname
            flavor tas topology=hosts
            node a gpu=2 @kubernetes.io/hostname=a
            queue cq gpu@tas=4 policy=topology
            auto commit members
            gang one queue=cq pods=2 gpu=1
              admit one; mainx2 [tas] a*2
            gang two queue=cq pods=2 gpu=1
              pending two: couldn't assign flavors to pod set main: topology "hosts" doesn't allow to fit any of 2 pod(s). Total nodes: 1; excluded: resource "example.com/gpu": 1; 0/1 nodes are available: 1 Insufficient example.com/gpu
            seen one-0 node=a
            restart
              pending two: couldn't assign flavors to pod set main: topology "hosts" doesn't allow to fit any of 2 pod(s). Total nodes: 1; excluded: resource "example.com/gpu": 1; 0/1 nodes are available: 1 Insufficient example.com/gpu
            show
              a: one-0 (one)
              one: committed, 1 running
              two: pending: couldn't assign flavors to pod set main: topology "hosts" doesn't allow to fit any of 2 pod(s). Total nodes: 1; excluded: resource "example.com/gpu": 1; 0/1 nodes are available: 1 Insufficient example.com/gpu
        "#]],
    );
}

#[test]
fn bound_pods_without_a_plan_are_an_implied_commit() {
    check(
        "
        node a gpu=1
        node b gpu=1
        node c gpu=1
        queue cq gpu=4
        gang train queue=cq pods=2 gpu=1
        planlost train
        auto
        gone train-1
        planlost train
        restart
        commit train
        auto all
        members train
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            node c gpu=1
            queue cq gpu=4
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            planlost train
              place train; mainx2 [default] a*1 b*1
              settled train
            auto
            gone train-1
            planlost train
              place train; mainx2 [default] a*1 b*1
            restart
              place train; mainx2 [default] a*1
            commit train
            auto all
            members train
              place train; mainx2 [default] a*1 b*1
              bind train-2 to b
              settled train
            show
              a: train-0
              b: train-2
              c: 
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn without_bound_pods_an_admitted_gang_is_decided_again_within_its_quota() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto commit
        gang train queue=cq pods=2 gpu=1
        gang next queue=cq pods=2 gpu=1
        auto
        planlost train
        restart
        commit train
        auto all
        members train
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto commit
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            auto
            planlost train
              place train; mainx2 [default] a*2
            restart
              place train; mainx2 [default] a*2
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            commit train
            auto all
            members train
              bind train-0 to a
              bind train-1 to a
              settled train
            show
              a: train-0 train-1
              next: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn or_leaves() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        auto commit
        gang train queue=cq pods=2 gpu=1
        auto
        planlost train
        node a gpu=1
        restart
        undone train
        wait 1s
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            auto commit
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            auto
            planlost train
              place train; mainx2 [default] a*2
            node a gpu=1
            restart
              undo train: Orphaned
            undone train
              pending train: pausing before it is tried again
            wait 1s
              pending train: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
        "#]],
    );
}

#[test]
fn bound_pods_of_a_gang_without_a_queue() {
    check(
        "
        node a gpu=2
        gang pair pods=2 gpu=1
        planlost pair
        restart
        show
        ",
        expect![[r#"
            node a gpu=2
            gang pair pods=2 gpu=1
              admit pair; mainx2 a*2
              bind pair-0 to a
              bind pair-1 to a
              settled pair
            planlost pair
              place pair; mainx2 a*2
              settled pair
            restart
            show
              a: pair-0 pair-1
              pair: committed, 2 running
        "#]],
    );
}

#[test]
fn a_gang_that_is_gone_while_the_engine_was_away() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        gang next queue=cq pods=2 gpu=1
        end train
        restart
        usage
        gone train-0
        gone train-1
        usage
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            end train
            restart
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            usage
              cq: 1 pending, 0 reserving, 0 admitted; gpu@default 2
            gone train-0
            gone train-1
              admit next; mainx2 [default] a*2
              bind next-0 to a
              bind next-1 to a
              settled next
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 2
        "#]],
    );
}
