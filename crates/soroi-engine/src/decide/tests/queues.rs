//! Doors to quota: borrowing, lending, stopping, and what is wrong on the way.

use expect_test::expect;

use super::script::check;

#[test]
fn borrowing_and_lending() {
    check(
        "
        node a gpu=100
        queue a cohort=team gpu=4
        queue b cohort=team gpu=4,lend:1
        queue c cohort=team gpu=4,borrow:1
        gang a1 queue=a pods=5 gpu=1
        gang a2 queue=a pods=5 gpu=1
        gang c1 queue=c pods=6 gpu=1
        gang c2 queue=c pods=5 gpu=1
        gang b1 queue=b pods=4 gpu=1
        usage
        ",
        expect![[r#"
            node a gpu=100
            queue a cohort=team gpu=4
            queue b cohort=team gpu=4,lend:1
            queue c cohort=team gpu=4,borrow:1
            gang a1 queue=a pods=5 gpu=1
              admit a1; mainx5 [default] a*5
              bind a1-0 to a
              bind a1-1 to a
              bind a1-2 to a
              bind a1-3 to a
              bind a1-4 to a
              settled a1
            gang a2 queue=a pods=5 gpu=1
              pending a2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang c1 queue=c pods=6 gpu=1
              pending c1: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (6) > maximum capacity (5)
            gang c2 queue=c pods=5 gpu=1
              pending c2: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang b1 queue=b pods=4 gpu=1
              admit b1; mainx4 [default] a*4
              bind b1-0 to a
              bind b1-1 to a
              bind b1-2 to a
              bind b1-3 to a
              settled b1
            usage
              a: 1 pending, 1 reserving, 1 admitted; gpu@default 5 (1 borrowed)
              b: 0 pending, 1 reserving, 1 admitted; gpu@default 4
              c: 2 pending, 0 reserving, 0 admitted; gpu@default 0
        "#]],
    );
}

#[test]
fn those_who_need_not_borrow_go_first() {
    check(
        "
        queue a cohort=team gpu=2
        queue b cohort=team gpu=2
        gang vip queue=a pods=4 gpu=1 prio=100
        gang own queue=b pods=2 gpu=1
        node n gpu=100
        ",
        expect![[r#"
            queue a cohort=team gpu=2
            queue b cohort=team gpu=2
            gang vip queue=a pods=4 gpu=1 prio=100
              pending vip: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 4 pod(s); none would ever fit, even on empty nodes
            gang own queue=b pods=2 gpu=1
              pending own: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s); none would ever fit, even on empty nodes
            node n gpu=100
              admit own; mainx2 [default] n*2
              pending vip: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              bind own-0 to n
              bind own-1 to n
              settled own
        "#]],
    );
}

#[test]
fn a_hierarchy_of_cohorts() {
    check(
        "
        node n gpu=100
        cohort root gpu=2
        cohort left parent=root
        cohort right parent=root gpu=3,lend:1
        queue a cohort=left gpu=1
        queue b cohort=right gpu=1
        gang a1 queue=a pods=5 gpu=1
        gang a2 queue=a pods=6 gpu=1
        gang b1 queue=b pods=2 gpu=1
        gang b2 queue=b pods=1 gpu=1
        usage
        ",
        expect![[r#"
            node n gpu=100
            cohort root gpu=2
            cohort left parent=root
            cohort right parent=root gpu=3,lend:1
            queue a cohort=left gpu=1
            queue b cohort=right gpu=1
            gang a1 queue=a pods=5 gpu=1
              pending a1: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4)
            gang a2 queue=a pods=6 gpu=1
              pending a2: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (6) > maximum capacity (4)
            gang b1 queue=b pods=2 gpu=1
              admit b1; mainx2 [default] n*2
              bind b1-0 to n
              bind b1-1 to n
              settled b1
            gang b2 queue=b pods=1 gpu=1
              admit b2; mainx1 [default] n*1
              bind b2-0 to n
              settled b2
            usage
              a: 2 pending, 0 reserving, 0 admitted; gpu@default 0
              b: 0 pending, 2 reserving, 2 admitted; gpu@default 3 (2 borrowed)
        "#]],
    );
}

#[test]
fn a_cycle_of_cohorts_stops_its_members_and_nobody_else() {
    check(
        "
        node n gpu=100
        cohort x parent=y
        cohort y parent=x
        queue in cohort=x gpu=4
        queue out gpu=4
        gang one queue=in pods=1 gpu=1
        gang two queue=out pods=1 gpu=1
        cohort y
        usage
        ",
        expect![[r#"
            node n gpu=100
            cohort x parent=y
            cohort y parent=x
            queue in cohort=x gpu=4
            queue out gpu=4
            gang one queue=in pods=1 gpu=1
              pending one: ClusterQueue in is inactive: its cohorts form a cycle through x
            gang two queue=out pods=1 gpu=1
              admit two; mainx1 [default] n*1
              bind two-0 to n
              settled two
            cohort y
              admit one; mainx1 [default] n*1
              bind one-0 to n
              settled one
            usage
              in: 0 pending, 1 reserving, 1 admitted; gpu@default 1
              out: 0 pending, 1 reserving, 1 admitted; gpu@default 1
        "#]],
    );
}

#[test]
fn fungibility() {
    check(
        "
        node n gpu=100
        flavor one
        flavor two
        queue first cohort=team gpu@one=1 gpu@two=1
        queue next cohort=team gpu@one=1 gpu@two=3 trynext
        queue bank cohort=team gpu@one=9 gpu@two=9
        gang borrows queue=first pods=2 gpu=1
        gang moves queue=next pods=2 gpu=1
        ",
        expect![[r#"
            node n gpu=100
            flavor one
            flavor two
            queue first cohort=team gpu@one=1 gpu@two=1
            queue next cohort=team gpu@one=1 gpu@two=3 trynext
            queue bank cohort=team gpu@one=9 gpu@two=9
            gang borrows queue=first pods=2 gpu=1
              admit borrows; mainx2 [one] n*2
              bind borrows-0 to n
              bind borrows-1 to n
              settled borrows
            gang moves queue=next pods=2 gpu=1
              admit moves; mainx2 [two] n*2
              bind moves-0 to n
              bind moves-1 to n
              settled moves
        "#]],
    );
}

#[test]
fn quota_cut_below_use() {
    check(
        "
        node n gpu=100
        queue cq gpu=4
        gang one queue=cq pods=4 gpu=1
        queue cq gpu=2
        usage
        gang two queue=cq pods=1 gpu=1
        end one
        gone one-0
        gone one-1
        gone one-2
        gone one-3
        usage
        ",
        expect![[r#"
            node n gpu=100
            queue cq gpu=4
            gang one queue=cq pods=4 gpu=1
              admit one; mainx4 [default] n*4
              bind one-0 to n
              bind one-1 to n
              bind one-2 to n
              bind one-3 to n
              settled one
            queue cq gpu=2
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 4
            gang two queue=cq pods=1 gpu=1
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            end one
            gone one-0
            gone one-1
            gone one-2
            gone one-3
              admit two; mainx1 [default] n*1
              bind two-0 to n
              settled two
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 1
        "#]],
    );
}

#[test]
fn nothing_is_missing_in_silence() {
    check(
        "
        node n gpu=4
        gang nodoor queue=q pods=1 gpu=1
        door q queue=cq
        queue cq gpu@ghost=4
        flavor ghost topology=t
        topology t kubernetes.io/hostname
        node n gpu=4 @kubernetes.io/hostname=n
        gang uncovered queue=q pods=1 cpu=5
        usage
        ",
        expect![[r#"
            node n gpu=4
            gang nodoor queue=q pods=1 gpu=1
              pending nodoor: LocalQueue q doesn't exist
            door q queue=cq
              pending nodoor: ClusterQueue cq doesn't exist
            queue cq gpu@ghost=4
              pending nodoor: ClusterQueue cq is inactive: it references missing ResourceFlavor(s): ghost
            flavor ghost topology=t
              pending nodoor: ClusterQueue cq is inactive: there is no Topology t
            topology t kubernetes.io/hostname
              pending nodoor: couldn't assign flavors to pod set main: topology "t" doesn't allow to fit any of 1 pod(s). Total nodes: 1; excluded: label "kubernetes.io/hostname": 1; 0/1 nodes are available: 1 node(s) had no label kubernetes.io/hostname; no node has label kubernetes.io/hostname; none would ever fit, even on empty nodes
            node n gpu=4 @kubernetes.io/hostname=n
              admit nodoor; mainx1 [ghost] n*1
              bind nodoor-0 to n
              settled nodoor
            gang uncovered queue=q pods=1 cpu=5
              pending uncovered: couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@ghost 1
        "#]],
    );
}

#[test]
fn a_namespace_must_match_and_never_blocks_a_strict_queue() {
    check(
        "
        node n gpu=4
        queue cq gpu=4 strict selects=team
        namespace other @team=x
        gang first queue=cq pods=1 gpu=1
        door cq queue=cq
        namespace ns @team=x
        ",
        expect![[r#"
            node n gpu=4
            queue cq gpu=4 strict selects=team
            namespace other @team=x
            gang first queue=cq pods=1 gpu=1
              pending first: Workload namespace doesn't match ClusterQueue selector
            door cq queue=cq
            namespace ns @team=x
              admit first; mainx1 [default] n*1
              bind first-0 to n
              settled first
        "#]],
    );
}

#[test]
fn hold_and_drain() {
    check(
        "
        node n gpu=8
        queue cq gpu=4
        queue dq gpu=4
        gang one queue=cq pods=1 gpu=1
        gang two queue=dq pods=1 gpu=1
        queue cq gpu=4 hold
        queue dq gpu=4 drain
        gang late queue=cq pods=1 gpu=1
        usage
        queue cq gpu=4
        queue dq gpu=4
        door dq queue=dq drain
        ",
        expect![[r#"
            node n gpu=8
            queue cq gpu=4
            queue dq gpu=4
            gang one queue=cq pods=1 gpu=1
              admit one; mainx1 [default] n*1
              bind one-0 to n
              settled one
            gang two queue=dq pods=1 gpu=1
              admit two; mainx1 [default] n*1
              bind two-0 to n
              settled two
            queue cq gpu=4 hold
            queue dq gpu=4 drain
              undo two after its start: ClusterQueueStopped
              pending two: ClusterQueue dq is inactive
            gang late queue=cq pods=1 gpu=1
              pending late: ClusterQueue cq is inactive
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 1 inactive: Stopped
              dq: 1 pending, 0 reserving, 0 admitted; gpu@default 0 inactive: Stopped
            queue cq gpu=4
              admit late; mainx1 [default] n*1
              bind late-0 to n
              settled late
            queue dq gpu=4
              admit two; mainx1 [default] n*1
              bind two-1 to n
              settled two
            door dq queue=dq drain
              undo two after its start: LocalQueueStopped
              pending two: LocalQueue dq is inactive
        "#]],
    );
}

#[test]
fn pods_as_a_resource() {
    check(
        "
        node n gpu=8
        queue cq pods=3,borrow:0 gpu=8
        gang one queue=cq pods=2 gpu=1
        gang two queue=cq pods=2 gpu=1
        usage
        ",
        expect![[r#"
            node n gpu=8
            queue cq pods=3,borrow:0 gpu=8
            gang one queue=cq pods=2 gpu=1
              admit one; mainx2 [default] n*2
              bind one-0 to n
              bind one-1 to n
              settled one
            gang two queue=cq pods=2 gpu=1
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for pods in flavor default, 1 more needed
            usage
              cq: 1 pending, 1 reserving, 1 admitted; pods@default 2 gpu@default 2
        "#]],
    );
}

#[test]
fn a_gang_that_was_sent_back_is_considered_from_its_time_on() {
    check(
        "
        node n gpu=8
        queue cq gpu=8 strict
        gang one queue=cq pods=2 gpu=1 from=5000
        gang two queue=cq pods=2 gpu=1
        wait 4s
        wait 1s
        ",
        expect![[r#"
            node n gpu=8
            queue cq gpu=8 strict
            gang one queue=cq pods=2 gpu=1 from=5000
              pending one: pausing before it is tried again
            gang two queue=cq pods=2 gpu=1
              admit two; mainx2 [default] n*2
              bind two-0 to n
              bind two-1 to n
              settled two
            wait 4s
            wait 1s
              admit one; mainx2 [default] n*2
              bind one-0 to n
              bind one-1 to n
              settled one
        "#]],
    );
}

#[test]
fn a_foreign_scheduler_cannot_be_served() {
    check(
        "
        node n gpu=8
        queue cq gpu=8
        queue qq gpu=8 policy=quota
        gang one queue=cq pods=2 gpu=1 scheduler=mine
        gang two queue=qq pods=2 gpu=1 scheduler=mine
        ",
        expect![[r#"
            node n gpu=8
            queue cq gpu=8
            queue qq gpu=8 policy=quota
            gang one queue=cq pods=2 gpu=1 scheduler=mine
              pending one: pods name the scheduler mine, but placement policy Unified needs Soroi's
            gang two queue=qq pods=2 gpu=1 scheduler=mine
              admit two; mainx2 [default]
        "#]],
    );
}

#[test]
fn each_door_counts_its_own_gangs() {
    check(
        "
        node n gpu=8
        queue cq gpu=4
        door left queue=cq
        door right queue=cq
        doors
        gang one queue=left pods=3 gpu=1
        gang two queue=right pods=2 gpu=1
        gang three queue=right pods=1 gpu=1
        doors
        usage
        off one
        doors
        door right queue=cq hold
        gang four queue=right pods=1 gpu=1
        doors
        queue cq gpu=4 hold
        doors
        queuegone cq
        doors
        doorgone left
        doors
        ",
        expect![[r#"
            node n gpu=8
            queue cq gpu=4
            door left queue=cq
            door right queue=cq
            doors
              cq: 0 pending, 0 reserving, 0 admitted; gpu@default 0
              left: 0 pending, 0 reserving, 0 admitted; gpu@default 0
              right: 0 pending, 0 reserving, 0 admitted; gpu@default 0
            gang one queue=left pods=3 gpu=1
              admit one; mainx3 [default] n*3
              bind one-0 to n
              bind one-1 to n
              bind one-2 to n
              settled one
            gang two queue=right pods=2 gpu=1
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang three queue=right pods=1 gpu=1
              admit three; mainx1 [default] n*1
              bind three-0 to n
              settled three
            doors
              left: 0 pending, 1 reserving, 1 admitted; gpu@default 3
              right: 1 pending, 1 reserving, 1 admitted; gpu@default 1
            usage
              cq: 1 pending, 2 reserving, 2 admitted; gpu@default 4
            off one
              undo one after its start: Off(Deactivated)
              admit two; mainx2 [default] n*2
              pending one: The workload is deactivated
              bind two-0 to n
              bind two-1 to n
              settled two
            doors
              left: 0 pending, 0 reserving, 0 admitted; gpu@default 0
              right: 0 pending, 2 reserving, 2 admitted; gpu@default 3
            door right queue=cq hold
            gang four queue=right pods=1 gpu=1
              pending four: LocalQueue right is inactive
            doors
              right: 0 pending, 2 reserving, 2 admitted; gpu@default 3 inactive: Stopped
            queue cq gpu=4 hold
            doors
              cq: 0 pending, 0 reserving, 0 admitted; gpu@default 0 inactive: ClusterQueueInactive
              left: 0 pending, 0 reserving, 0 admitted; gpu@default 0 inactive: ClusterQueueInactive
            queuegone cq
            doors
              cq: 0 pending, 0 reserving, 0 admitted; inactive: ClusterQueueMissing
              left: 0 pending, 0 reserving, 0 admitted; inactive: ClusterQueueMissing
              right: 0 pending, 2 reserving, 2 admitted; inactive: Stopped
            doorgone left
            doors
        "#]],
    );
}
