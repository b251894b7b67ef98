//! Quota alone, as Kueue decides it: who stays, who waits, and for whom.

use expect_test::expect;

use super::script::check;

#[test]
fn gangs_of_a_stopped_queue_are_nobodys_victims() {
    check(
        "
        queue a cohort=team gpu=2 policy=quota reclaim=any
        queue b cohort=team gpu=2 policy=quota
        gang b1 queue=b pods=4 gpu=1
        queue b cohort=team gpu=2 policy=quota hold
        gang a1 queue=a pods=2 gpu=1
        # As soon as the queue goes on, its gangs may be asked to leave.
        queue b cohort=team gpu=2 policy=quota
        ",
        expect![[r#"
            queue a cohort=team gpu=2 policy=quota reclaim=any
            queue b cohort=team gpu=2 policy=quota
            gang b1 queue=b pods=4 gpu=1
              admit b1; mainx4 [default]
            queue b cohort=team gpu=2 policy=quota hold
            gang a1 queue=a pods=2 gpu=1
              pending a1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            queue b cohort=team gpu=2 policy=quota
              hold a1; mainx2 [default]; until these leave: b1 (Reclaim)
              pending a1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
              evict b1 for a1: Reclaim, /team/b for /team/a
              admit a1; mainx2 [default]
              pending b1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
        "#]],
    );
}

#[test]
fn the_others_of_a_queue_wait_while_victims_leave_for_its_first() {
    check(
        "
        queue q gpu=4 policy=quota within=lower
        gang one queue=q pods=2 gpu=1
        gang two queue=q pods=2 gpu=1
        auto members bind
        gang high queue=q pods=3 gpu=1 prio=5
        hold high
        undone one
        # What one left is high's, and nobody else of the queue is asked yet.
        gang small queue=q pods=1 gpu=1 prio=1
        undone two
        ",
        expect![[r#"
            queue q gpu=4 policy=quota within=lower
            gang one queue=q pods=2 gpu=1
              admit one; mainx2 [default]
            gang two queue=q pods=2 gpu=1
              admit two; mainx2 [default]
            auto members bind
            gang high queue=q pods=3 gpu=1 prio=5
              hold high; mainx3 [default]; until these leave: one (WithinQueue), two (WithinQueue)
              pending high: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 3 more needed. Pending the preemption of 2 workload(s)
            hold high
              evict one for high: WithinQueue, /q for /q
              evict two for high: WithinQueue, /q for /q
            undone one
              pending one: waiting behind ns/high of its ClusterQueue, for which others are leaving
            gang small queue=q pods=1 gpu=1 prio=1
              pending small: waiting behind ns/high of its ClusterQueue, for which others are leaving
            undone two
              admit high; mainx3 [default]
              admit small; mainx1 [default]
              pending one: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
        "#]],
    );
}

#[test]
fn nobody_is_asked_to_leave_for_a_gang_that_others_were_promised_the_quota_of() {
    check(
        "
        queue a cohort=team gpu=4 policy=quota reclaim=any within=lower
        queue b cohort=team gpu=2 policy=quota within=lower
        queue c cohort=team gpu=0 policy=quota
        gang b1 queue=b pods=2 gpu=1
        gang a1 queue=a pods=1 gpu=1
        gang c1 queue=c pods=2 gpu=1
        auto members bind
        gang a2 queue=a pods=3 gpu=1 prio=5
        hold a2
        # There is room for one now, which a2 was promised: b1 stays.
        gang b2 queue=b pods=1 gpu=1 prio=5
        undone c1
        ",
        expect![[r#"
            queue a cohort=team gpu=4 policy=quota reclaim=any within=lower
            queue b cohort=team gpu=2 policy=quota within=lower
            queue c cohort=team gpu=0 policy=quota
            gang b1 queue=b pods=2 gpu=1
              admit b1; mainx2 [default]
            gang a1 queue=a pods=1 gpu=1
              admit a1; mainx1 [default]
            gang c1 queue=c pods=2 gpu=1
              admit c1; mainx2 [default]
            auto members bind
            gang a2 queue=a pods=3 gpu=1 prio=5
              hold a2; mainx3 [default]; until these leave: c1 (Reclaim)
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed. Pending the preemption of 1 workload(s)
            hold a2
              evict c1 for a2: Reclaim, /team/c for /team/a
            gang b2 queue=b pods=1 gpu=1 prio=5
              pending b2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            undone c1
              admit a2; mainx3 [default]
              hold b2; mainx1 [default]; until these leave: b1 (WithinQueue)
              pending b2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)
              pending c1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
        "#]],
    );
}

#[test]
fn a_strict_head_that_waits_keeps_its_own_part_of_the_quota_from_those_who_borrow() {
    check(
        "
        queue a cohort=team gpu=4 policy=quota within=lower strict
        queue b cohort=team gpu=0 policy=quota
        gang a1 queue=a pods=1 gpu=1 prio=5
        gang b1 queue=b pods=2 gpu=1 prio=1
        gang a2 queue=a pods=2 gpu=1
        # One is free, and a's own: nobody could be evicted for a2 if b2 had taken that too.
        gang b2 queue=b pods=1 gpu=1 prio=9
        off a2
        ",
        expect![[r#"
            queue a cohort=team gpu=4 policy=quota within=lower strict
            queue b cohort=team gpu=0 policy=quota
            gang a1 queue=a pods=1 gpu=1 prio=5
              admit a1; mainx1 [default]
            gang b1 queue=b pods=2 gpu=1 prio=1
              admit b1; mainx2 [default]
            gang a2 queue=a pods=2 gpu=1
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang b2 queue=b pods=1 gpu=1 prio=9
              pending b2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            off a2
              admit b2; mainx1 [default]
              pending a2: The workload is deactivated
        "#]],
    );
}

#[test]
fn what_is_free_goes_to_those_who_are_decided_before_a_strict_head_that_waits() {
    check(
        "
        queue a cohort=team gpu=2 policy=quota within=lower strict
        queue b cohort=team gpu=2 policy=quota
        gang a1 queue=a pods=2 gpu=1
        gang b1 queue=b pods=1 gpu=1
        gang a2 queue=a pods=2 gpu=1
        # It need not borrow, a2 would have to.
        gang b2 queue=b pods=1 gpu=1
        ",
        expect![[r#"
            queue a cohort=team gpu=2 policy=quota within=lower strict
            queue b cohort=team gpu=2 policy=quota
            gang a1 queue=a pods=2 gpu=1
              admit a1; mainx2 [default]
            gang b1 queue=b pods=1 gpu=1
              admit b1; mainx1 [default]
            gang a2 queue=a pods=2 gpu=1
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang b2 queue=b pods=1 gpu=1
              admit b2; mainx1 [default]
        "#]],
    );
}

#[test]
fn a_strict_head_keeps_nothing_whose_queue_may_have_anybody_evicted_who_borrows() {
    check(
        "
        queue a cohort=team gpu=4 policy=quota within=lower reclaim=any strict
        queue b cohort=team gpu=0 policy=quota
        gang a1 queue=a pods=3 gpu=1 prio=5
        gang a2 queue=a pods=2 gpu=1
        gang b1 queue=b pods=1 gpu=1
        ",
        expect![[r#"
            queue a cohort=team gpu=4 policy=quota within=lower reclaim=any strict
            queue b cohort=team gpu=0 policy=quota
            gang a1 queue=a pods=3 gpu=1 prio=5
              admit a1; mainx3 [default]
            gang a2 queue=a pods=2 gpu=1
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang b1 queue=b pods=1 gpu=1
              admit b1; mainx1 [default]
        "#]],
    );
}

#[test]
fn whoever_may_preempt_is_asked_again_when_one_could_leave_who_came_later() {
    check(
        "
        queue q gpu=4 policy=quota within=lower
        gang one queue=q pods=1 gpu=1 prio=9
        gang two queue=q pods=2 gpu=1 prio=9
        # Nobody could leave for it.
        gang mid queue=q pods=2 gpu=1 prio=5
        gang low queue=q pods=1 gpu=1 prio=2
        # What one leaves is not enough, but with what low could leave.
        end one
        ",
        expect![[r#"
            queue q gpu=4 policy=quota within=lower
            gang one queue=q pods=1 gpu=1 prio=9
              admit one; mainx1 [default]
            gang two queue=q pods=2 gpu=1 prio=9
              admit two; mainx2 [default]
            gang mid queue=q pods=2 gpu=1 prio=5
              pending mid: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang low queue=q pods=1 gpu=1 prio=2
              admit low; mainx1 [default]
            end one
              hold mid; mainx2 [default]; until these leave: low (WithinQueue)
              pending mid: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)
              evict low for mid: WithinQueue, /q for /q
              admit mid; mainx2 [default]
              pending low: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
        "#]],
    );
}

#[test]
fn a_flavor_of_which_one_resource_fits_far_away_is_still_had_by_preemption() {
    check(
        "
        queue a cohort=team gpu=4 cpu=1 policy=quota within=lower trynext ratherpreempt
        queue b cohort=team gpu=0 cpu=9 policy=quota
        gang a1 queue=a pods=4 gpu=1 cpu=1
        # There is CPU to borrow; its GPU is the queue's own, and a1 has it.
        gang a2 queue=a pods=1 gpu=1 cpu=1 prio=6
        ",
        expect![[r#"
            queue a cohort=team gpu=4 cpu=1 policy=quota within=lower trynext ratherpreempt
            queue b cohort=team gpu=0 cpu=9 policy=quota
            gang a1 queue=a pods=4 gpu=1 cpu=1
              admit a1; mainx4 [default]
            gang a2 queue=a pods=1 gpu=1 cpu=1 prio=6
              hold a2; mainx1 [default]; until these leave: a1 (WithinQueue)
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed. Pending the preemption of 1 workload(s)
              evict a1 for a2: WithinQueue, /team/a for /team/a
              admit a2; mainx1 [default]
              pending a1: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
        "#]],
    );
}
