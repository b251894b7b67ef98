//! Members that were bound before anything said that they are a gang.

use expect_test::expect;

use super::script::check;

#[test]
fn half_a_gang_is_completed_before_a_newer_one_starts() {
    check(
        "
        node a gpu=1
        node b gpu=1
        queue cq gpu=2
        pod old-0 of=old node=a gpu=1
        pod old-1 of=old gpu=1
        gang old queue=cq pods=2 gpu=1
        gang new queue=cq pods=1 gpu=1
        commit old
        show
        ",
        expect![[r#"
            node a gpu=1
            node b gpu=1
            queue cq gpu=2
            pod old-0 of=old node=a gpu=1
            pod old-1 of=old gpu=1
            gang old queue=cq pods=2 gpu=1
              place old; mainx2 [default] a*1
              place old; mainx2 [default] a*1 b*1
              bind old-1 to b
              settled old
            gang new queue=cq pods=1 gpu=1
              pending new: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
            commit old
            show
              a: old-0
              b: old-1
              new: pending: couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default, 1 more needed
              old: committed, 2 running
        "#]],
    );
}

#[test]
fn what_its_nodes_say_decides_who_pays() {
    check(
        "
        flavor spot @zone=x
        flavor main @zone=y
        node a gpu=2 @zone=y
        queue cq gpu@spot=2 gpu@main=2
        pod old-0 of=old node=a gpu=1
        pod old-1 of=old gpu=1
        gang old queue=cq pods=2 gpu=1
        usage
        ",
        expect![[r#"
            flavor spot @zone=x
            flavor main @zone=y
            node a gpu=2 @zone=y
            queue cq gpu@spot=2 gpu@main=2
            pod old-0 of=old node=a gpu=1
            pod old-1 of=old gpu=1
            gang old queue=cq pods=2 gpu=1
              place old; mainx2 [main] a*1
              place old; mainx2 [main] a*2
              bind old-1 to a
              settled old
            usage
              cq: 0 pending, 1 reserving, 1 admitted; gpu@spot 0 gpu@main 2
        "#]],
    );
}

#[test]
fn half_a_gang_that_cannot_be_completed_leaves() {
    check(
        "
        node a gpu=1
        queue cq gpu=2
        pod old-0 of=old node=a gpu=1
        pod old-1 of=old gpu=1
        gang old queue=cq pods=2 gpu=1
        commit old
        wait 70s
        show
        ",
        expect![[r#"
            node a gpu=1
            queue cq gpu=2
            pod old-0 of=old node=a gpu=1
            pod old-1 of=old gpu=1
            gang old queue=cq pods=2 gpu=1
              place old; mainx2 [default] a*1
              pending old: couldn't place pod set main: nodes don't allow to fit any of 1 pod(s): 0/1 nodes are available: 1 Insufficient example.com/gpu
            commit old
            wait 70s
              undo old: RecoveryTimeout(Lack { role: None, have: 1, need: 2 })
              pending old: pausing before it is tried again
              pending old: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
            show
              a: 
              old: pending: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s); for one more, 0/1 nodes are available: 1 Insufficient example.com/gpu; even on empty nodes only 1 would ever fit
        "#]],
    );
}

/// Objects of different kinds are heard of in any order: a group that is made again at once may seem to have
/// a pod that was bound for the one before.
#[test]
fn what_a_pod_of_the_group_before_seemed_to_hold_is_given_back_with_it() {
    check(
        "
        node a gpu=4
        pod ring-0 of=ring node=a gpu=1
        gang ring worker:1:gpu=1 min=3
        commit ring
        gone ring-0
        change ring count=3
        wait 2s
        show
        ",
        expect![[r#"
            node a gpu=4
            pod ring-0 of=ring node=a gpu=1
            gang ring worker:1:gpu=1 min=3
              settled ring
            commit ring
            gone ring-0
              undo ring: Orphaned
              pending ring: waiting for pods of the group: 1 of 3 exist
            change ring count=3
              pending ring: pausing before it is tried again
            wait 2s
              admit ring; workerx3 a*3
              bind ring-0 to a
              bind ring-1 to a
              bind ring-2 to a
              settled ring
            show
              a: ring-0 ring-1 ring-2
              ring: committed, 3 running
        "#]],
    );
}
