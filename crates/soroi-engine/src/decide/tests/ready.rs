//! Pods that are bound, and not ready: whom does that keep waiting, and for how long?

use expect_test::{Expect, expect};

use super::board::Board;
use super::script::{check, run};
use crate::decision::Settings;

/// As [`check`], where nobody starts while others get ready.
#[track_caller]
fn check_in_turn(story: &str, expected: Expect) {
    let mut board = Board::with(Settings { block_admission: true, ..Settings::default() });
    run(&mut board, story);
    expected.assert_eq(&board.log);
}

#[test]
fn a_gang_whose_pods_do_not_get_ready_in_time_leaves_as_one_that_has_started() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1
        podsready train due=300000
        wait 299s
        wait 1s
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            podsready train due=300000
            wait 299s
            wait 1s
              undo train after its start: NotReady
              admit train; mainx2 [default] a*2
              bind train-2 to a
              bind train-3 to a
              settled train
        "#]],
    );
}

#[test]
fn it_leaves_whoever_binds_its_pods() {
    check(
        "
        node a gpu=2
        queue cq gpu=2 policy=quota
        gang train queue=cq pods=2 gpu=1
        podsready train due=300000
        wait 100s
        podsready train due=400000
        wait 200s
        podsready train shown
        wait 400s
        podsready train due=800000
        wait 100s
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2 policy=quota
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [default]
            podsready train due=300000
            wait 100s
            podsready train due=400000
            wait 200s
            podsready train shown
            wait 400s
            podsready train due=800000
            wait 100s
              undo train after its start: NotReady
              admit train; mainx2 [default]
        "#]],
    );
}

#[test]
fn where_it_is_configured_nobody_starts_before_all_others_are_ready() {
    check_in_turn(
        "
        node a gpu=8
        queue one gpu=4
        queue two gpu=4
        gang first queue=one pods=2 gpu=1
        gang second queue=two pods=2 gpu=1
        gang third queue=one pods=1 gpu=1
        # Who needs no quota does not wait.
        gang free pods=1 gpu=1
        show
        podsready first shown
        podsready second shown
        # Ready no more: again nobody may start.
        podsready first
        gang fourth queue=one pods=1 gpu=1
        podsready third shown
        # Gone, it is not waited for either.
        end first
        ",
        expect![[r#"
            node a gpu=8
            queue one gpu=4
            queue two gpu=4
            gang first queue=one pods=2 gpu=1
              admit first; mainx2 [default] a*2
              bind first-0 to a
              bind first-1 to a
              settled first
            gang second queue=two pods=2 gpu=1
              pending second: waiting for all admitted workloads to be in PodsReady condition
            gang third queue=one pods=1 gpu=1
              pending third: waiting for all admitted workloads to be in PodsReady condition
            gang free pods=1 gpu=1
              admit free; mainx1 a*1
              bind free-0 to a
              settled free
            show
              a: first-0 first-1 free-0
              first: committed, 2 running
              free: committed, 1 running
              second: pending: waiting for all admitted workloads to be in PodsReady condition
              third: pending: waiting for all admitted workloads to be in PodsReady condition
            podsready first shown
              admit second; mainx2 [default] a*2
              bind second-0 to a
              bind second-1 to a
              settled second
            podsready second shown
              admit third; mainx1 [default] a*1
              bind third-0 to a
              settled third
            podsready first
            gang fourth queue=one pods=1 gpu=1
              pending fourth: waiting for all admitted workloads to be in PodsReady condition
            podsready third shown
            end first
              admit fourth; mainx1 [default] a*1
              bind fourth-0 to a
              settled fourth
        "#]],
    );
}

#[test]
fn who_lacks_room_keeps_that_reason_and_starts_when_it_is_his_turn() {
    check_in_turn(
        "
        node a gpu=2
        queue one gpu=2
        gang first queue=one pods=2 gpu=1
        podsready first shown
        gang second queue=one pods=2 gpu=1
        podsready first
        gang third queue=one pods=1 gpu=1
        end first
        gone first-0
        gone first-1
        restart
        podsready second shown
        end second
        gone second-0
        gone second-1
        ",
        expect![[r#"
            node a gpu=2
            queue one gpu=2
            gang first queue=one pods=2 gpu=1
              admit first; mainx2 [default] a*2
              bind first-0 to a
              bind first-1 to a
              settled first
            podsready first shown
            gang second queue=one pods=2 gpu=1
              pending second: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            podsready first
            gang third queue=one pods=1 gpu=1
              pending third: waiting for all admitted workloads to be in PodsReady condition
            end first
              pending third: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gone first-0
            gone first-1
              admit second; mainx2 [default] a*2
              pending third: waiting for all admitted workloads to be in PodsReady condition
              bind second-0 to a
              bind second-1 to a
              settled second
            restart
              pending third: waiting for all admitted workloads to be in PodsReady condition
            podsready second shown
              pending third: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            end second
            gone second-0
            gone second-1
              admit third; mainx1 [default] a*1
              bind third-0 to a
              settled third
        "#]],
    );
}

#[test]
fn a_preemptor_keeps_what_its_victims_left_until_it_is_its_turn() {
    check_in_turn(
        "
        node a gpu=2
        node b gpu=2
        queue one gpu=2 within=lower
        queue two gpu=2
        gang low queue=one pods=2 gpu=1
        podsready low shown
        gang other queue=two pods=2 gpu=1
        podsready other shown
        auto members bind
        gang high queue=one pods=2 gpu=1 prio=1
        podsready other
        hold high
        undone low
        show
        podsready other shown
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue one gpu=2 within=lower
            queue two gpu=2
            gang low queue=one pods=2 gpu=1
              admit low; mainx2 [default] a*2
              bind low-0 to a
              bind low-1 to a
              settled low
            podsready low shown
            gang other queue=two pods=2 gpu=1
              admit other; mainx2 [default] b*2
              bind other-0 to b
              bind other-1 to b
              settled other
            podsready other shown
            auto members bind
            gang high queue=one pods=2 gpu=1 prio=1
              hold high; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            podsready other
            hold high
              evict low for high: WithinQueue, /one for /one
            undone low
              pending low: waiting for all admitted workloads to be in PodsReady condition
            show
              a: 
              b: other-0 other-1
              high: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
              low: pending: waiting for all admitted workloads to be in PodsReady condition
              other: committed, 2 running
            podsready other shown
              admit high; mainx2 [default] a*2
            show
              a: (high) (high)
              b: other-0 other-1
              high: assumed, 0 running
              low: pending: waiting for all admitted workloads to be in PodsReady condition
              other: committed, 2 running
        "#]],
    );
}
