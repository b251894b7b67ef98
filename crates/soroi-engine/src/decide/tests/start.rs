//! Gangs start: whole or not at all.

use expect_test::expect;

use super::script::check;

#[test]
fn a_gang_waits_rather_than_starting_half_and_starts_when_the_hog_is_gone() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=4
        pod hog node=a gpu=1
        gang train queue=cq pods=4 gpu=1
        gang small queue=cq pods=2 gpu=1
        show
        usage
        end small
        gone small-0
        gone small-1
        gone hog
        show
        usage
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=4
            pod hog node=a gpu=1
            gang train queue=cq pods=4 gpu=1
              pending train: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            gang small queue=cq pods=2 gpu=1
              admit small; mainx2 [default] b*2
              pending train: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
              bind small-0 to b
              bind small-1 to b
              settled small
            show
              a: hog
              b: small-0 small-1
              small: committed, 2 running
              train: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 2 more needed
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 2
            end small
            gone small-0
            gone small-1
              pending train: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            gone hog
              admit train; mainx4 [default] a*2 b*2
              bind train-0 to a
              bind train-1 to a
              bind train-2 to b
              bind train-3 to b
              settled train
            show
              a: train-0 train-1
              b: train-2 train-3
              train: committed, 4 running
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 4
        "#]],
    );
}

#[test]
fn two_gangs_that_would_deadlock_each_other_run_one_after_the_other() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue one gpu=4
        queue two gpu=4
        gang first queue=one pods=3 gpu=1
        gang second queue=two pods=3 gpu=1
        show
        end first
        gone first-0
        gone first-1
        gone first-2
        show
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue one gpu=4
            queue two gpu=4
            gang first queue=one pods=3 gpu=1
              admit first; mainx3 [default] a*2 b*1
              bind first-0 to a
              bind first-1 to a
              bind first-2 to b
              settled first
            gang second queue=two pods=3 gpu=1
              pending second: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 3 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            show
              a: first-0 first-1
              b: first-2
              first: committed, 3 running
              second: pending: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 3 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            end first
            gone first-0
            gone first-1
              admit second; mainx3 [default] a*2 b*1
              bind second-0 to a
              bind second-1 to a
              bind second-2 to b
              settled second
            gone first-2
            show
              a: second-0 second-1
              b: second-2
              second: committed, 3 running
        "#]],
    );
}

#[test]
fn a_label_change_wakes_who_needs_it() {
    check(
        "
        node a gpu=2 @kind=old
        flavor new @kind=new
        queue cq gpu@new=4
        gang train queue=cq pods=2 gpu=1
        node a gpu=2 @kind=new
        ",
        expect![[r#"
            node a gpu=2 @kind=old
            flavor new @kind=new
            queue cq gpu@new=4
            gang train queue=cq pods=2 gpu=1
              pending train: couldn't assign flavors to pod set main: nodes of flavor new don't allow to fit any of 2 pod(s); none would ever fit, even on empty nodes
            node a gpu=2 @kind=new
              admit train; mainx2 [new] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn a_change_of_quota_wakes_who_needs_it() {
    check(
        "
        node a gpu=4
        queue cq gpu=1
        gang train queue=cq pods=2 gpu=1
        queue cq gpu=2
        ",
        expect![[r#"
            node a gpu=4
            queue cq gpu=1
            gang train queue=cq pods=2 gpu=1
              pending train: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (2) > maximum capacity (1)
            queue cq gpu=2
              admit train; mainx2 [default] a*2
              bind train-0 to a
              bind train-1 to a
              settled train
        "#]],
    );
}

#[test]
fn a_small_gang_passes_a_large_one_but_not_in_a_strict_queue() {
    check(
        "
        node a gpu=4
        queue loose gpu=2
        queue firm gpu=2 strict
        gang big queue=loose pods=3 gpu=1
        gang small queue=loose pods=1 gpu=1
        gang large queue=firm pods=3 gpu=1
        gang little queue=firm pods=1 gpu=1
        gang tiny queue=firm pods=1 gpu=1
        show
        end large
        show
        ",
        expect![[r#"
            node a gpu=4
            queue loose gpu=2
            queue firm gpu=2 strict
            gang big queue=loose pods=3 gpu=1
              pending big: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
            gang small queue=loose pods=1 gpu=1
              admit small; mainx1 [default] a*1
              bind small-0 to a
              settled small
            gang large queue=firm pods=3 gpu=1
              pending large: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
            gang little queue=firm pods=1 gpu=1
              pending little: waiting behind ns/large, the head of its StrictFIFO ClusterQueue
            gang tiny queue=firm pods=1 gpu=1
              pending tiny: waiting behind ns/large, the head of its StrictFIFO ClusterQueue
            show
              a: small-0
              big: pending: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
              large: pending: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
              little: pending: waiting behind ns/large, the head of its StrictFIFO ClusterQueue
              small: committed, 1 running
              tiny: pending: waiting behind ns/large, the head of its StrictFIFO ClusterQueue
            end large
              admit little; mainx1 [default] a*1
              admit tiny; mainx1 [default] a*1
              bind little-0 to a
              bind tiny-0 to a
              settled little
              settled tiny
            show
              a: little-0 small-0 tiny-0
              big: pending: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (3) > maximum capacity (2)
              little: committed, 1 running
              small: committed, 1 running
              tiny: committed, 1 running
        "#]],
    );
}

#[test]
fn whoever_becomes_first_of_a_strict_queue_is_told_its_own_reason() {
    check(
        "
        node a gpu=1
        queue cq gpu=9 strict
        gang next queue=cq pods=2 gpu=1
        gang vip queue=cq pods=3 gpu=1 prio=1
        end vip
        ",
        expect![[r#"
            node a gpu=1
            queue cq gpu=9 strict
            gang next queue=cq pods=2 gpu=1
              pending next: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
            gang vip queue=cq pods=3 gpu=1 prio=1
              pending next: waiting behind ns/vip, the head of its StrictFIFO ClusterQueue
              pending vip: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 3 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
            end vip
              pending next: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
        "#]],
    );
}

#[test]
fn numbers_are_renewed_after_a_while() {
    check(
        "
        node a gpu=3
        queue cq gpu=9
        gang big queue=cq pods=4 gpu=1
        pod hog node=a gpu=1
        wait 4s
        wait 1s
        wait 60s
        ",
        expect![[r#"
            node a gpu=3
            queue cq gpu=9
            gang big queue=cq pods=4 gpu=1
              pending big: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 3 out of 4 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 3 would ever fit
            pod hog node=a gpu=1
            wait 4s
            wait 1s
              pending big: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 2 out of 4 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 3 would ever fit
            wait 60s
        "#]],
    );
}

#[test]
fn priority_then_time_then_name() {
    check(
        "
        node a gpu=1
        queue cq gpu=1
        gang running queue=cq pods=1 gpu=1
        gang late queue=cq pods=1 gpu=1 at=9
        gang early queue=cq pods=1 gpu=1 at=5
        gang vip queue=cq pods=1 gpu=1 at=20 prio=10
        end running
        gone running-0
        end vip
        gone vip-0
        end early
        gone early-0
        ",
        expect![[r#"
            node a gpu=1
            queue cq gpu=1
            gang running queue=cq pods=1 gpu=1
              admit running; mainx1 [default] a*1
              bind running-0 to a
              settled running
            gang late queue=cq pods=1 gpu=1 at=9
              pending late: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang early queue=cq pods=1 gpu=1 at=5
              pending early: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            gang vip queue=cq pods=1 gpu=1 at=20 prio=10
              pending vip: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            end running
            gone running-0
              admit vip; mainx1 [default] a*1
              bind vip-0 to a
              settled vip
            end vip
            gone vip-0
              admit early; mainx1 [default] a*1
              bind early-0 to a
              settled early
            end early
            gone early-0
              admit late; mainx1 [default] a*1
              bind late-0 to a
              settled late
        "#]],
    );
}

#[test]
fn a_flavor_with_quota_and_without_places_is_passed_over() {
    check(
        "
        node a gpu=1 @kind=red
        node b gpu=4 @kind=blue
        flavor red @kind=red
        flavor blue @kind=blue
        queue cq gpu@red=8 gpu@blue=8
        gang train queue=cq pods=2 gpu=1
        gang more queue=cq pods=4 gpu=1
        ",
        expect![[r#"
            node a gpu=1 @kind=red
            node b gpu=4 @kind=blue
            flavor red @kind=red
            flavor blue @kind=blue
            queue cq gpu@red=8 gpu@blue=8
            gang train queue=cq pods=2 gpu=1
              admit train; mainx2 [blue] b*2
              bind train-0 to b
              bind train-1 to b
              settled train
            gang more queue=cq pods=4 gpu=1
              pending more: couldn't assign flavors to pod set main: nodes of flavor blue allow to fit only 2 out of 4 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu, nodes of flavor red allow to fit only 1 out of 4 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
        "#]],
    );
}

#[test]
fn a_flavor_must_suit_the_pods() {
    check(
        "
        node a gpu=4 @kind=red !spot=yes
        node b gpu=4 @kind=blue
        flavor red @kind=red !spot=yes
        flavor blue @kind=blue
        queue cq gpu@red=8 gpu@blue=1
        gang plain queue=cq pods=2 gpu=1
        gang tolerant queue=cq pods=2 gpu=1 ~spot
        gang picky queue=cq pods=1 gpu=1 @kind=blue ~spot
        ",
        expect![[r#"
            node a gpu=4 @kind=red !spot=yes
            node b gpu=4 @kind=blue
            flavor red @kind=red !spot=yes
            flavor blue @kind=blue
            queue cq gpu@red=8 gpu@blue=1
            gang plain queue=cq pods=2 gpu=1
              pending plain: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor blue, previously considered podsets requests (0) + current podset request (2) > maximum capacity (1), untolerated taint {spot yes NoSchedule <nil>} in flavor red
            gang tolerant queue=cq pods=2 gpu=1 ~spot
              admit tolerant; mainx2 [red] a*2
              bind tolerant-0 to a
              bind tolerant-1 to a
              settled tolerant
            gang picky queue=cq pods=1 gpu=1 @kind=blue ~spot
              admit picky; mainx1 [blue] b*1
              bind picky-0 to b
              settled picky
        "#]],
    );
}

#[test]
fn pod_sets_of_different_shapes_start_together() {
    check(
        "
        node a gpu=2 cpu=1000
        node b gpu=2 cpu=4000
        queue cq gpu=4 cpu=8000
        gang mixed queue=cq launcher:1:cpu=3000 workers:4:gpu=1
        gang more queue=cq launcher:1:cpu=3000 workers:1:gpu=1
        show
        ",
        expect![[r#"
            node a gpu=2 cpu=1000
            node b gpu=2 cpu=4000
            queue cq gpu=4 cpu=8000
            gang mixed queue=cq launcher:1:cpu=3000 workers:4:gpu=1
              admit mixed; launcherx1 [default] b*1; workersx4 [default] a*2 b*2
              bind mixed-launcher-0 to b
              bind mixed-workers-1 to a
              bind mixed-workers-2 to a
              bind mixed-workers-3 to b
              bind mixed-workers-4 to b
              settled mixed
            gang more queue=cq launcher:1:cpu=3000 workers:1:gpu=1
              pending more: couldn't assign flavors to pod set launcher: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient cpu; couldn't assign flavors to pod set workers: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            show
              a: mixed-workers-1 mixed-workers-2
              b: mixed-launcher-0 mixed-workers-3 mixed-workers-4
              mixed: committed, 5 running
              more: pending: couldn't assign flavors to pod set launcher: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient cpu; couldn't assign flavors to pod set workers: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
        "#]],
    );
}

#[test]
fn a_gang_that_is_too_large_for_ever_is_told_so() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=100
        pod hog node=a gpu=1
        gang wide queue=cq pods=5 gpu=1
        gang fat queue=cq pods=1 gpu=3
        gang rich queue=cq pods=101 gpu=1
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=100
            pod hog node=a gpu=1
            gang wide queue=cq pods=5 gpu=1
              pending wide: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 3 out of 5 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu; even on empty nodes only 4 would ever fit
            gang fat queue=cq pods=1 gpu=3
              pending fat: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 Insufficient example.com/gpu; none would ever fit, even on empty nodes
            gang rich queue=cq pods=101 gpu=1
              pending rich: couldn't assign flavors to pod set main: insufficient quota for example.com/gpu in flavor default, previously considered podsets requests (0) + current podset request (101) > maximum capacity (100)
        "#]],
    );
}

#[test]
fn within_a_required_domain_or_not_at_all() {
    check(
        "
        topology racks rack kubernetes.io/hostname
        flavor f topology=racks
        node a gpu=2 @rack=r1 @kubernetes.io/hostname=a
        node b gpu=2 @rack=r1 @kubernetes.io/hostname=b
        node c gpu=2 @rack=r2 @kubernetes.io/hostname=c
        pod hog node=a gpu=1
        queue cq gpu@f=100
        gang tight queue=cq pods=4 gpu=1 required=rack
        gang three queue=cq pods=3 gpu=1 required=rack
        gone hog
        end three
        gone three-0
        gone three-1
        gone three-2
        ",
        expect![[r#"
            topology racks rack kubernetes.io/hostname
            flavor f topology=racks
            node a gpu=2 @rack=r1 @kubernetes.io/hostname=a
            node b gpu=2 @rack=r1 @kubernetes.io/hostname=b
            node c gpu=2 @rack=r2 @kubernetes.io/hostname=c
            pod hog node=a gpu=1
            queue cq gpu@f=100
            gang tight queue=cq pods=4 gpu=1 required=rack
              pending tight: couldn't assign flavors to pod set main: topology "racks" allows to fit only 3 out of 4 pod(s). Total nodes: 3; excluded: topologyDomain: 1; for one more, 0/3 nodes are available: 1 node(s) were outside of the topology domain, 2 Insufficient example.com/gpu; the closest domain is r1
            gang three queue=cq pods=3 gpu=1 required=rack
              admit three; mainx3 [f] a*1 b*2
              bind three-0 to a
              bind three-1 to b
              bind three-2 to b
              settled three
            gone hog
            end three
            gone three-0
            gone three-1
            gone three-2
              admit tight; mainx4 [f] a*2 b*2
              bind tight-0 to a
              bind tight-1 to a
              bind tight-2 to b
              bind tight-3 to b
              settled tight
        "#]],
    );
}

#[test]
fn topology_only_pins_where_the_flavor_names_a_topology() {
    check(
        "
        topology hosts kubernetes.io/hostname
        flavor tas topology=hosts @tas=yes
        flavor plain @tas=no
        node a gpu=1 @tas=yes @kubernetes.io/hostname=a
        queue cq gpu@tas=1 gpu@plain=4 policy=topology
        auto commit members
        gang pinned queue=cq pods=1 gpu=1
        gang free queue=cq pods=4 gpu=1
        seen pinned-0 node=a
        usage
        show
        ",
        expect![[r#"
            topology hosts kubernetes.io/hostname
            flavor tas topology=hosts @tas=yes
            flavor plain @tas=no
            node a gpu=1 @tas=yes @kubernetes.io/hostname=a
            queue cq gpu@tas=1 gpu@plain=4 policy=topology
            auto commit members
            gang pinned queue=cq pods=1 gpu=1
              admit pinned; mainx1 [tas] a*1
            gang free queue=cq pods=4 gpu=1
              admit free; mainx4 [plain]
            seen pinned-0 node=a
            usage
              cq: 0 pending, 2 reserving, 2 admitted; gpu@tas 1 gpu@plain 4
            show
              a: pinned-0
              free: committed, 0 running
              pinned: committed, 1 running
        "#]],
    );
}

#[test]
fn quota_alone() {
    check(
        "
        queue cq gpu=4 policy=quota
        auto commit members
        gang one queue=cq pods=4 gpu=1
        gang two queue=cq pods=1 gpu=1
        usage
        end one
        usage
        ",
        expect![[r#"
            queue cq gpu=4 policy=quota
            auto commit members
            gang one queue=cq pods=4 gpu=1
              admit one; mainx4 [default]
            gang two queue=cq pods=1 gpu=1
              pending two: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            usage
              cq: 1 pending, 1 reserving, 1 admitted; gpu@default 4
            end one
              admit two; mainx1 [default]
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 1
        "#]],
    );
}

#[test]
fn quota_first_then_places() {
    check(
        "
        node a gpu=2
        node b gpu=2
        queue cq gpu=8 policy=after
        pod hog node=a gpu=1
        gang train queue=cq pods=4 gpu=1
        usage
        gang small queue=cq pods=2 gpu=1
        gone hog
        end small
        gone small-0
        gone small-1
        ",
        expect![[r#"
            node a gpu=2
            node b gpu=2
            queue cq gpu=8 policy=after
            pod hog node=a gpu=1
            gang train queue=cq pods=4 gpu=1
              admit train; mainx4 [default]
              pending train: couldn't place pod set main: nodes allow to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 4
            gang small queue=cq pods=2 gpu=1
              admit small; mainx2 [default]
              place small; mainx2 [default] b*2
              bind small-0 to b
              bind small-1 to b
              settled small
            gone hog
            end small
            gone small-0
            gone small-1
              place train; mainx4 [default] a*2 b*2
              bind train-0 to a
              bind train-1 to a
              bind train-2 to b
              bind train-3 to b
              settled train
        "#]],
    );
}

#[test]
fn without_a_queue_places_are_enough() {
    check(
        "
        node a gpu=2
        gang single pods=1 gpu=1
        gang pair pods=2 gpu=1
        end single
        gone single-0
        ",
        expect![[r#"
            node a gpu=2
            gang single pods=1 gpu=1
              admit single; mainx1 a*1
              bind single-0 to a
              settled single
            gang pair pods=2 gpu=1
              pending pair: couldn't place pod set main: nodes allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu
            end single
            gone single-0
              admit pair; mainx2 a*2
              bind pair-0 to a
              bind pair-1 to a
              settled pair
        "#]],
    );
}

#[test]
fn a_volcano_queue_is_a_ceiling_at_every_level() {
    check(
        "
        node a gpu=8
        vqueue root
        vqueue team parent=root gpu=3
        vqueue dev parent=team gpu=2
        gang one vqueue=dev pods=2 gpu=1
        gang two vqueue=dev pods=1 gpu=1
        gang three vqueue=team pods=1 gpu=1
        gang four vqueue=team pods=1 gpu=1
        gang lost vqueue=nowhere pods=1 gpu=1
        end one
        gone one-0
        gone one-1
        ",
        expect![[r#"
            node a gpu=8
            vqueue root
            vqueue team parent=root gpu=3
            vqueue dev parent=team gpu=2
            gang one vqueue=dev pods=2 gpu=1
              admit one; mainx2 a*2
              bind one-0 to a
              bind one-1 to a
              settled one
            gang two vqueue=dev pods=1 gpu=1
              pending two: insufficient capability for example.com/gpu in Queue dev, 1 more needed
            gang three vqueue=team pods=1 gpu=1
              admit three; mainx1 a*1
              bind three-0 to a
              settled three
            gang four vqueue=team pods=1 gpu=1
              pending four: insufficient capability for example.com/gpu in Queue team, 1 more needed
            gang lost vqueue=nowhere pods=1 gpu=1
              pending lost: Queue nowhere doesn't exist
            end one
            gone one-0
            gone one-1
              admit two; mainx1 a*1
              admit four; mainx1 a*1
              bind four-0 to a
              bind two-0 to a
              settled four
              settled two
        "#]],
    );
}

#[test]
fn a_seat_in_both_trees_needs_room_in_both() {
    check(
        "
        node a gpu=8
        vqueue dev gpu=1
        queue cq gpu=4
        gang both queue=cq vqueue=dev pods=2 gpu=1
        vqueue dev gpu=2
        usage
        ",
        expect![[r#"
            node a gpu=8
            vqueue dev gpu=1
            queue cq gpu=4
            gang both queue=cq vqueue=dev pods=2 gpu=1
              pending both: insufficient capability for example.com/gpu in Queue dev, 1 more needed
            vqueue dev gpu=2
              admit both; mainx2 [default] a*2
              bind both-0 to a
              bind both-1 to a
              settled both
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@default 2
        "#]],
    );
}

#[test]
fn as_many_as_fit_but_not_fewer_than_the_minimum() {
    check(
        "
        node a gpu=3
        gang elastic pods=5 min=3 gpu=1
        gang other pods=5 min=4 gpu=1
        ",
        expect![[r#"
            node a gpu=3
            gang elastic pods=5 min=3 gpu=1
              admit elastic; mainx3 a*3
              bind elastic-0 to a
              bind elastic-1 to a
              bind elastic-2 to a
              settled elastic
              pending elastic: couldn't place pod set main: nodes don't allow to fit any of 2 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            gang other pods=5 min=4 gpu=1
              pending other: couldn't place pod set main: nodes don't allow to fit any of 4 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 3 would ever fit
        "#]],
    );
}
