//! Gangs that others have to agree to: they hold quota and no nodes until all admission checks are passed.

use expect_test::expect;

use super::script::check;

#[test]
fn admission_checks_are_waited_for() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1 at=1
        end train
        gone train-0
        gone train-1
        queue cq gpu=2 hold
        gang next queue=cq pods=2 gpu=1
        checks next
        queue cq gpu=2
        ready next
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1 at=1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            end train
            gone train-0
            gone train-1
            queue cq gpu=2 hold
            gang next queue=cq pods=2 gpu=1
              pending next: ClusterQueue cq is inactive
            checks next
            queue cq gpu=2
              pending next: waiting for admission checks
            ready next
              admit next; mainx2 [default] a*2
              bind next-0 to a
              bind next-1 to a
              settled next
        "#]],
    );
}

/// Quota alone while checks are pending; others may have the nodes. Places when all are passed, at once.
#[test]
fn a_gang_with_pending_checks_holds_quota_and_no_nodes() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        queue other gpu=2
        gang train queue=cq pods=2 gpu=1 checks=all
        gang next queue=cq pods=1 gpu=1
        gang guest queue=other pods=2 gpu=1
        usage
        end guest
        gone guest-0
        gone guest-1
        ready train
        usage
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            queue other gpu=2
            gang train queue=cq pods=2 gpu=1 checks=all
              admit train; mainx2 [default]
            gang next queue=cq pods=1 gpu=1
              pending next: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang guest queue=other pods=2 gpu=1
              admit guest; mainx2 [default] a*2
              bind guest-0 to a
              bind guest-1 to a
              settled guest
            usage
              cq: 1 pending, 1 reserving, 0 admitted; gpu@default 2
              other: 0 pending, 1 reserving, 1 admitted; gpu@default 2
            end guest
            gone guest-0
            gone guest-1
            ready train
              place train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 2
              other: 0 pending, 0 reserving, 0 admitted; gpu@default 0
        "#]],
    );
}

/// Where nothing is free when the checks are passed, quota goes back, and it is decided as everybody is.
#[test]
fn a_gang_without_places_after_its_checks_gives_its_quota_back() {
    check(
        "
        node a gpu=2
        queue cq gpu=4
        gang train queue=cq pods=2 gpu=1 checks=all
        gang guest queue=cq pods=2 gpu=1
        ready train
        end guest
        gone guest-0
        gone guest-1
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=4
            gang train queue=cq pods=2 gpu=1 checks=all
              admit train; mainx2 [default]
            gang guest queue=cq pods=2 gpu=1
              admit guest; mainx2 [default] a*2
              bind guest-0 to a
              bind guest-1 to a
              settled guest
            ready train
              undo train: NoPlaceAfterChecks
              pending train: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            end guest
            gone guest-0
            gone guest-1
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn checks_of_a_flavor_are_for_those_who_get_it() {
    check(
        "
        node a gpu=2 @pool=one
        node b gpu=2 @pool=two
        flavor one @pool=one
        flavor two @pool=two
        queue cq gpu@one=2 gpu@two=2
        gang train queue=cq pods=2 gpu=1 checks=two
        gang next queue=cq pods=2 gpu=1 checks=two
        ",
        expect![[r#"
            node a gpu=2 @pool=one
            node b gpu=2 @pool=two
            flavor one @pool=one
            flavor two @pool=two
            queue cq gpu@one=2 gpu@two=2
            gang train queue=cq pods=2 gpu=1 checks=two
              admit train; mainx2 [one] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
            gang next queue=cq pods=2 gpu=1 checks=two
              admit next; mainx2 [two]
        "#]],
    );
}

#[test]
fn a_check_that_says_retry_has_the_gang_leave() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1 checks=all
        retry train
        undone train
        ready train
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1 checks=all
              admit train; mainx2 [default]
            retry train
              undo train after its start: Off(CheckRetry("check a says so"))
              pending train: check a says so
            undone train
            ready train
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn after_a_restart_pending_checks_are_waited_for() {
    check(
        "
        node a gpu=2
        queue cq gpu=2
        gang train queue=cq pods=2 gpu=1 checks=all
        restart
        wait 120s
        ready train
        ",
        expect![[r#"
            node a gpu=2
            queue cq gpu=2
            gang train queue=cq pods=2 gpu=1 checks=all
              admit train; mainx2 [default]
            restart
            wait 120s
            ready train
              place train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}
