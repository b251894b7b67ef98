//! Preemption: who leaves for whom, and what is kept meanwhile.

use expect_test::expect;

use super::script::check;

#[test]
fn a_gang_of_higher_priority_takes_quota_and_places_of_a_lower_one() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue q gpu=4 within=lower
        gang low queue=q pods=4 gpu=1
        gang high queue=q pods=2 gpu=2 prio=5
        usage
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue q gpu=4 within=lower
            gang low queue=q pods=4 gpu=1
              admit low; mainx4 [default] a*2 b*2
              bind low-0 to a
              bind low-1 to a
              bind low-2 to b
              bind low-3 to b
              settled low
            gang high queue=q pods=2 gpu=2 prio=5
              hold high; mainx2 [default] a*1 b*1; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 4 more needed. Pending the preemption of 1 workload(s)
              evict low for high: WithinQueue, /q for /q
              admit high; mainx2 [default] a*1 b*1
              pending low: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 4 more needed
              bind high-0 to a
              bind high-1 to b
              settled high
            usage
              q: 1 pending, 1 reserving, 1 admitted; gpu@default 4
        "#]],
    );
}

#[test]
fn nobody_is_evicted_before_the_hold_is_written_and_nothing_is_given_away_meanwhile() {
    check(
        "
        node a gpu=4
        queue q gpu=4 within=lower
        gang low queue=q pods=4 gpu=1
        auto members bind
        gang high queue=q pods=2 gpu=1 prio=5
        # Nobody else gets what low will leave.
        gang small queue=q pods=1 gpu=1 prio=5
        usage
        hold high
        undone low
        usage
        ",
        expect![[r#"
            node a gpu=4
            queue q gpu=4 within=lower
            gang low queue=q pods=4 gpu=1
              admit low; mainx4 [default] a*4
              bind low-0 to a
              bind low-1 to a
              bind low-2 to a
              bind low-3 to a
              settled low
            auto members bind
            gang high queue=q pods=2 gpu=1 prio=5
              hold high; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            gang small queue=q pods=1 gpu=1 prio=5
              pending small: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            usage
              q: 2 pending, 1 reserving, 1 admitted; gpu@default 4
            hold high
              evict low for high: WithinQueue, /q for /q
            undone low
              admit high; mainx2 [default] a*2
              admit small; mainx1 [default] a*1
              pending low: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 3 more needed
            usage
              q: 1 pending, 2 reserving, 0 admitted; gpu@default 3
        "#]],
    );
}

#[test]
fn victims_leave_at_different_times_and_a_restart_changes_nothing() {
    check(
        "
        node a gpu=4
        queue q gpu=4 within=lower
        gang one queue=q pods=2 gpu=1
        gang two queue=q pods=2 gpu=1
        auto members bind
        gang high queue=q pods=4 gpu=1 prio=5
        hold high
        terminate one-0
        terminate one-1
        takenback one
        gone one-1
        restart
        gang other queue=q pods=1 gpu=1 prio=5
        gone one-0
        undone two
        ",
        expect![[r#"
            node a gpu=4
            queue q gpu=4 within=lower
            gang one queue=q pods=2 gpu=1
              admit one; mainx2 [default] a*2
              bind one-0 to a
              bind one-1 to a
              settled one
            gang two queue=q pods=2 gpu=1
              admit two; mainx2 [default] a*2
              bind two-0 to a
              bind two-1 to a
              settled two
            auto members bind
            gang high queue=q pods=4 gpu=1 prio=5
              hold high; mainx4 [default] a*4; until these leave: one (WithinQueue), two (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 4 more needed. Pending the preemption of 2 workload(s)
            hold high
              evict one for high: WithinQueue, /q for /q
              evict two for high: WithinQueue, /q for /q
            terminate one-0
            terminate one-1
            takenback one
              pending one: waiting for its own pods to end after a preemption
            gone one-1
            restart
              undo two: Interrupted
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
              pending one: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            gang other queue=q pods=1 gpu=1 prio=5
              pending other: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gone one-0
            undone two
              admit high; mainx4 [default] a*4
              pending two: pausing before it is tried again
        "#]],
    );
}

#[test]
fn nobody_goes_for_a_gang_that_would_not_fit_then() {
    check(
        "
        node a gpu=2
        node b gpu=2
        pod hog node=a gpu=1
        queue q gpu=9 within=lower
        gang low queue=q pods=3 gpu=1
        gang high queue=q pods=2 gpu=2 prio=5
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            pod hog node=a gpu=1
            queue q gpu=9 within=lower
            gang low queue=q pods=3 gpu=1
              admit low; mainx3 [default] a*1 b*2
              bind low-0 to a
              bind low-1 to b
              bind low-2 to b
              settled low
            gang high queue=q pods=2 gpu=2 prio=5
              pending high: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu
        "#]],
    );
}

#[test]
fn places_alone_are_reason_enough() {
    check(
        "
        node a gpu=2 @rack=r1
        node b gpu=2 @rack=r2
        topology racks rack
        flavor default topology=racks
        queue q gpu=9 within=lower
        gang left queue=q pods=2 gpu=1
        gang right queue=q pods=1 gpu=1
        # The rack with one gang of one pod is cheaper than that with one of two.
        gang high queue=q pods=2 gpu=1 prio=5 required=rack
        ",
        expect![[r#"
            node a gpu=2 @rack=r1
            node b gpu=2 @rack=r2
            topology racks rack
            flavor default topology=racks
            queue q gpu=9 within=lower
            gang left queue=q pods=2 gpu=1
              admit left; mainx2 [default] a*2
              bind left-0 to a
              bind left-1 to a
              settled left
            gang right queue=q pods=1 gpu=1
              admit right; mainx1 [default] b*1
              bind right-0 to b
              settled right
            gang high queue=q pods=2 gpu=1 prio=5 required=rack
              hold high; mainx2 [default] b*2; until these leave: right (WithinQueue)
              pending high: couldn't assign flavors to pod set main: topology "racks" allows to fit only 1 out of 2 pod(s). Total nodes: 2; excluded: resource "example.com/gpu": 1; for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu; the closest domain is r2. Pending the preemption of 1 workload(s)
              evict right for high: WithinQueue, /q for /q
              admit high; mainx2 [default] b*2
              pending right: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 1 pod(s). Total nodes: 2; excluded: resource "example.com/gpu": 2; 0/2 nodes are available: 2 Insufficient example.com/gpu
              bind high-0 to b
              bind high-1 to b
              settled high
        "#]],
    );
}

#[test]
fn what_is_lent_is_reclaimed() {
    check(
        "
        node a gpu=8
        queue a cohort=team gpu=4 reclaim=any
        queue b cohort=team gpu=4
        gang b1 queue=b pods=4 gpu=1 prio=9
        gang b2 queue=b pods=2 gpu=1 prio=9
        gang a1 queue=a pods=3 gpu=1
        usage
        ",
        expect![[r#"
            node a gpu=8
            queue a cohort=team gpu=4 reclaim=any
            queue b cohort=team gpu=4
            gang b1 queue=b pods=4 gpu=1 prio=9
              admit b1; mainx4 [default] a*4
              bind b1-0 to a
              bind b1-1 to a
              bind b1-2 to a
              bind b1-3 to a
              settled b1
            gang b2 queue=b pods=2 gpu=1 prio=9
              admit b2; mainx2 [default] a*2
              bind b2-0 to a
              bind b2-1 to a
              settled b2
            gang a1 queue=a pods=3 gpu=1
              hold a1; mainx3 [default] a*3; until these leave: b2 (Reclaim)
              pending a1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)
              evict b2 for a1: Reclaim, /team/b for /team/a
              admit a1; mainx3 [default] a*3
              pending b2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              bind a1-0 to a
              bind a1-1 to a
              bind a1-2 to a
              settled a1
            usage
              a: 0 pending, 1 reserving, 1 admitted; gpu@default 3
              b: 1 pending, 1 reserving, 1 admitted; gpu@default 4
        "#]],
    );
}

#[test]
fn who_was_evicted_by_another_does_not_evict_that_one_while_it_borrows() {
    // Kueue's livelock: big borrows and evicts b1, b1 takes back what is its queue's, and so on.
    check(
        "
        node a gpu=9
        queue a cohort=team gpu=2 reclaim=lower whileborrowing=8
        queue b cohort=team gpu=2 reclaim=any
        gang b1 queue=b pods=2 gpu=1
        gang b2 queue=b pods=1 gpu=1 prio=9
        gang big queue=a pods=3 gpu=1 prio=9
        wait 5s
        ",
        expect![[r#"
            node a gpu=9
            queue a cohort=team gpu=2 reclaim=lower whileborrowing=8
            queue b cohort=team gpu=2 reclaim=any
            gang b1 queue=b pods=2 gpu=1
              admit b1; mainx2 [default] a*2
              bind b1-0 to a
              bind b1-1 to a
              settled b1
            gang b2 queue=b pods=1 gpu=1 prio=9
              admit b2; mainx1 [default] a*1
              bind b2-0 to a
              settled b2
            gang big queue=a pods=3 gpu=1 prio=9
              hold big; mainx3 [default] a*3; until these leave: b1 (ReclaimWhileBorrowing)
              pending big: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
              evict b1 for big: ReclaimWhileBorrowing, /team/b for /team/a
              admit big; mainx3 [default] a*3
              pending b1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              bind big-0 to a
              bind big-1 to a
              bind big-2 to a
              settled big
            wait 5s
        "#]],
    );
}

#[test]
fn a_hold_ends_when_the_gang_is_switched_off() {
    check(
        "
        node a gpu=2
        queue q gpu=2 within=lower
        gang low queue=q pods=2 gpu=1
        auto members bind
        gang high queue=q pods=2 gpu=1 prio=5
        off high
        usage
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2 within=lower
            gang low queue=q pods=2 gpu=1
              admit low; mainx2 [default] a*2
              bind low-0 to a
              bind low-1 to a
              settled low
            auto members bind
            gang high queue=q pods=2 gpu=1 prio=5
              hold high; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            off high
              hold no more for high
              pending high: The workload is deactivated
            usage
              q: 0 pending, 1 reserving, 1 admitted; gpu@default 2
        "#]],
    );
}

#[test]
fn whoever_gives_victims_up_leaves_them_to_others_with_the_same_need() {
    check(
        "
        node a gpu=2
        queue q gpu=8 within=lower
        gang low queue=q pods=2 gpu=1
        auto members bind
        gang high queue=q pods=2 gpu=1 prio=5
        gang next queue=q pods=2 gpu=1 prio=5
        off high
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=8 within=lower
            gang low queue=q pods=2 gpu=1
              admit low; mainx2 [default] a*2
              bind low-0 to a
              bind low-1 to a
              settled low
            auto members bind
            gang high queue=q pods=2 gpu=1 prio=5
              hold high; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu. Pending the preemption of 1 workload(s)
            gang next queue=q pods=2 gpu=1 prio=5
              pending next: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            off high
              hold no more for high
              hold next; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: The workload is deactivated
              pending next: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu. Pending the preemption of 1 workload(s)
        "#]],
    );
}

#[test]
fn a_commit_that_is_refused_evicts_nobody() {
    check(
        "
        node a gpu=2
        queue q gpu=2 within=lower
        gang low queue=q pods=2 gpu=1
        auto members bind
        gang high queue=q pods=2 gpu=1 prio=5
        uncommit high
        end high
        usage
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2 within=lower
            gang low queue=q pods=2 gpu=1
              admit low; mainx2 [default] a*2
              bind low-0 to a
              bind low-1 to a
              settled low
            auto members bind
            gang high queue=q pods=2 gpu=1 prio=5
              hold high; mainx2 [default] a*2; until these leave: low (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            uncommit high
              pending high: pausing before it is tried again
            end high
            usage
              q: 0 pending, 1 reserving, 1 admitted; gpu@default 2
        "#]],
    );
}

#[test]
fn a_gang_that_becomes_less_important_makes_room() {
    check(
        "
        node a gpu=2
        queue q gpu=2 within=lower
        gang one queue=q pods=2 gpu=1 prio=5
        gang two queue=q pods=2 gpu=1 prio=5
        prio one 1
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2 within=lower
            gang one queue=q pods=2 gpu=1 prio=5
              admit one; mainx2 [default] a*2
              bind one-0 to a
              bind one-1 to a
              settled one
            gang two queue=q pods=2 gpu=1 prio=5
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            prio one 1
              hold two; mainx2 [default] a*2; until these leave: one (WithinQueue)
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
              evict one for two: WithinQueue, /q for /q
              admit two; mainx2 [default] a*2
              pending one: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              bind two-0 to a
              bind two-1 to a
              settled two
        "#]],
    );
}

#[test]
fn of_equal_priority_the_older_takes_from_the_newer() {
    check(
        "
        node a gpu=2
        queue q gpu=2 within=newer
        gang newer queue=q pods=2 gpu=1 at=9
        gang older queue=q pods=1 gpu=1 at=3
        ",
        expect![[r#"
            node a gpu=2
            queue q gpu=2 within=newer
            gang newer queue=q pods=2 gpu=1 at=9
              admit newer; mainx2 [default] a*2
              bind newer-0 to a
              bind newer-1 to a
              settled newer
            gang older queue=q pods=1 gpu=1 at=3
              hold older; mainx1 [default] a*1; until these leave: newer (WithinQueue)
              pending older: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)
              evict newer for older: WithinQueue, /q for /q
              admit older; mainx1 [default] a*1
              pending newer: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              bind older-0 to a
              settled older
        "#]],
    );
}

/// Before it grew, it did not borrow, and nobody could ask it to.
#[test]
fn a_gang_that_grew_into_what_is_lent_is_asked_to_leave() {
    check(
        "
        node a gpu=2
        queue lender gpu=2 cohort=all reclaim=any whileborrowing=1
        queue borrower gpu=2 cohort=all
        gang elastic queue=borrower pods=4 min=2 gpu=1
        gang owner queue=lender pods=4 gpu=1 prio=5
        node b gpu=2
        ",
        expect![[r#"
            node a gpu=2
            queue lender gpu=2 cohort=all reclaim=any whileborrowing=1
            queue borrower gpu=2 cohort=all
            gang elastic queue=borrower pods=4 min=2 gpu=1
              admit elastic; mainx2 [default] a*2
              bind elastic-0 to a
              bind elastic-1 to a
              settled elastic
              pending elastic: couldn't place pod set main: nodes don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            gang owner queue=lender pods=4 gpu=1 prio=5
              pending owner: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            node b gpu=2
              place elastic; mainx4 [default] a*2 b*2
              hold owner; mainx4 [default] a*2 b*2; until these leave: elastic (ReclaimWhileBorrowing)
              pending owner: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 4 more needed. Pending the preemption of 1 workload(s)
              bind elastic-2 to b
              bind elastic-3 to b
              evict elastic for owner: ReclaimWhileBorrowing, /all/borrower for /all/lender
              admit owner; mainx4 [default] a*2 b*2
              pending elastic: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              bind owner-0 to a
              bind owner-1 to a
              bind owner-2 to b
              bind owner-3 to b
              settled owner
        "#]],
    );
}
