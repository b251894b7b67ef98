//! From admission to start: members come, fit or not, and are bound.

use expect_test::expect;

use super::board::{Auto, Board};
use super::script::{check, run};
use crate::decision::Settings;
use crate::reason::Reason;

#[test]
fn nothing_is_bound_before_all_members_are_there() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        auto commit bind
        gang train queue=cq pods=3 gpu=1
        members train 2
        show
        members train 1
        show
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            auto commit bind
            gang train queue=cq pods=3 gpu=1
              admit train; mainx3 [default] a*3
            members train 2
            show
              a: (train) (train) (train)
              train: committed, 0 running
            members train 1
              bind train-0 to a
              bind train-1 to a
              bind train-2 to a
              settled train
            show
              a: train-0 train-1 train-2
              train: committed, 3 running
        "#]],
    );
}

#[test]
fn nothing_is_bound_before_the_commit() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        auto members bind
        gang train queue=cq pods=2 gpu=1
        members train
        show
        commit train
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            auto members bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            members train
            show
              a: (train) (train)
              train: assumed, 0 running
            commit train
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn members_that_do_not_appear_in_time_undo_the_gang_which_pauses() {
    check(
        "
        node a gpu=4
        queue cq gpu=4
        auto commit bind
        gang train queue=cq pods=2 gpu=1
        members train 1
        wait 30s
        wait 29s
        show
        wait 2s
        wait 60s
        wait 3s
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=4
            auto commit bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            members train 1
            wait 30s
            wait 29s
            show
              a: (train) (train)
              train: committed, 0 running
            wait 2s
              undo train: StartTimeout(Lack { role: None, have: 1, need: 2 })
              pending train: pausing before it is tried again
              admit train; mainx2 [default] a*2
            wait 60s
              undo train: StartTimeout(Lack { role: None, have: 0, need: 2 })
              pending train: pausing before it is tried again
            wait 3s
              admit train; mainx2 [default] a*2
        "#]],
    );
}

#[test]
fn a_sidecar_that_still_fits() {
    check(
        "
        node a gpu=2 cpu=4000
        queue cq gpu=4 cpu=8000
        inject train cpu=500
        gang train queue=cq workers:2:gpu=1 cpu=0
        show
        ",
        expect![[r#"
            node a gpu=2 cpu=4000
            queue cq gpu=4 cpu=8000
            inject train cpu=500
            gang train queue=cq workers:2:gpu=1 cpu=0
              admit train; workersx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            show
              a: train-0 train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_sidecar_that_does_not_fit_there_but_elsewhere() {
    check(
        "
        node a gpu=2 cpu=2000
        node b gpu=2 cpu=2600
        node c gpu=2 cpu=2600
        queue cq gpu=8 cpu=20000
        inject train cpu=300
        gang train queue=cq workers:2:cpu=1000
        show
        ",
        expect![[r#"
            node a gpu=2 cpu=2000
            node b gpu=2 cpu=2600
            node c gpu=2 cpu=2600
            queue cq gpu=8 cpu=20000
            inject train cpu=300
            gang train queue=cq workers:2:cpu=1000
              admit train; workersx2 [default] a*2
              place train; workersx2 [default] b*2
              bind train-0 to b
              bind train-1 to b
              settled train
            show
              a: 
              b: train-0 train-1
              c: 
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_sidecar_that_fits_once_but_not_twice() {
    check(
        "
        node a cpu=2500
        node b cpu=1300
        queue cq cpu=20000
        inject train cpu=300
        gang train queue=cq workers:2:cpu=1000
        show
        ",
        expect![[r#"
            node a cpu=2500
            node b cpu=1300
            queue cq cpu=20000
            inject train cpu=300
            gang train queue=cq workers:2:cpu=1000
              admit train; workersx2 [default] a*2
              place train; workersx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
            show
              a: train-0
              b: train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_sidecar_that_fits_nowhere_is_learnt() {
    check(
        "
        node a gpu=2 cpu=2000
        queue cq gpu=8 cpu=20000
        inject train cpu=300
        gang train queue=cq workers:2:cpu=1000
        wait 1s
        node b gpu=2 cpu=1300
        show
        ",
        expect![[r#"
            node a gpu=2 cpu=2000
            queue cq gpu=8 cpu=20000
            inject train cpu=300
            gang train queue=cq workers:2:cpu=1000
              admit train; workersx2 [default] a*2
              undo train: PlacesLost
              pending train: pausing before it is tried again
            wait 1s
              pending train: couldn't assign flavors to pod set workers: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient cpu; even on empty nodes only 1 would ever fit
            node b gpu=2 cpu=1300
              admit train; workersx2 [default] a*1 b*1
              bind train-2 to a
              bind train-3 to b
              settled train
            show
              a: train-2
              b: train-3
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_place_lost_before_the_bind() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=4
        auto commit bind
        gang train queue=cq pods=2 gpu=1
        node a gpu=2 cordoned
        node b gpu=2
        members train
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=4
            auto commit bind
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            node a gpu=2 cordoned
            node b gpu=2
            members train
              place train; mainx2 [default] b*2
              bind train-0 to b
              bind train-1 to b
              settled train
            show
              a cordoned: 
              b: train-0 train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_refused_bind_is_tried_again() {
    check(
        "
        node a gpu=2
        queue cq gpu=4
        auto commit members
        gang train queue=cq pods=2 gpu=1
        unbound train-0
        seen train-1 node=a
        wait 1s
        bound train-0
        seen train-0 node=a
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=4
            auto commit members
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
            unbound train-0
            seen train-1 node=a
            wait 1s
              bind train-0 to a
            bound train-0
              settled train
            seen train-0 node=a
            show
              a: train-0 train-1
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_bind_that_is_lost_gives_its_place_to_the_replacement() {
    check(
        "
        node a gpu=2
        queue cq gpu=4
        auto commit
        gang train queue=cq pods=2 gpu=1
        members train
        bound train-1
        unbound train-0 lost
        seen train-1 node=a
        gone train-0
        members train
        bound train-2
        show
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=4
            auto commit
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            members train
              bind train-0 to a
              bind train-1 to a
            bound train-1
            unbound train-0 lost
            seen train-1 node=a
            gone train-0
            members train
              bind train-2 to a
            bound train-2
              settled train
            show
              a: train-1 (train)
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn bound_elsewhere_the_pod_counts_where_it_is() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=4
        auto commit
        gang train queue=cq pods=2 gpu=1
        members train
        seen train-0 node=b
        bound train-1
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=4
            auto commit
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
            members train
              bind train-0 to a
              bind train-1 to a
            seen train-0 node=b
            bound train-1
              settled train
            show
              a: (train)
              b: train-0
              train: committed, 2 running
        "#]],
    );
}

#[test]
fn a_gang_that_never_starts_pauses_longer_each_time() {
    let mut board = Board::with(Settings::default());
    board.auto = Auto { members: false, ..Auto::ALL };
    run(&mut board, "node a gpu=2\nqueue cq gpu=2\ngang train queue=cq pods=2 gpu=1");
    let mut pauses = Vec::new();
    for _ in 0..8 {
        run(&mut board, "wait 60s");
        let Some(Reason::BackingOff { until }) = board.engine.reason(&"train".into()) else {
            panic!("it pauses after its members did not come: {}", board.log)
        };
        pauses.push(until - board.now);
        board.wait(until - board.now);
    }
    assert_eq!(pauses, [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]);
    // Once it was whole it begins anew.
    run(&mut board, "members train\nfail train-0\nwait 60s");
    let Some(Reason::BackingOff { until }) = board.engine.reason(&"train".into()) else {
        panic!("it pauses after its member was not replaced: {}", board.log)
    };
    assert_eq!(until - board.now, 1_000);
}
