//! Gangs whose pods mind others: when they wait, and what wakes them.

use expect_test::expect;

use super::script::check;

#[test]
fn a_gang_of_one_pod_per_node_waits_for_another_node() {
    check(
        "
        node a gpu=8 @name=a
        queue q gpu=32
        gang train queue=q pods=2 gpu=1 is=t apart=name:t
        node b gpu=8 @name=b
        ",
        expect![[r#"
            node a gpu=8 @name=a
            queue q gpu=32
            gang train queue=q pods=2 gpu=1 is=t apart=name:t
              pending train: couldn't assign flavors to pod set main: nodes of flavor default allow to fit only 1 out of 2 pod(s): 0/1 nodes are available: 1 node(s) didn't match pod anti-affinity rules
            node b gpu=8 @name=b
              admit train; mainx2 [default] a*1 b*1
              bind train-0 to a
              bind train-1 to b
              settled train
        "#]],
    );
}

#[test]
fn whoever_comes_or_goes_may_be_whom_it_waits_for() {
    check(
        "
        node a gpu=8 @zone=a
        node b gpu=8 @zone=b
        queue q gpu=32
        gang near queue=q pods=2 gpu=1 near=zone:db
        pod db node=b is=db
        pod loner node=a gpu=1 is=loner apart=zone:web
        pod rival node=b gpu=1 apart=zone:web
        gang web queue=q pods=2 gpu=1 is=web
        gone loner
        ",
        expect![[r#"
            node a gpu=8 @zone=a
            node b gpu=8 @zone=b
            queue q gpu=32
            gang near queue=q pods=2 gpu=1 near=zone:db
              pending near: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 node(s) didn't match pod affinity rules
            pod db node=b is=db
              admit near; mainx2 [default] b*2
              bind near-0 to b
              bind near-1 to b
              settled near
            pod loner node=a gpu=1 is=loner apart=zone:web
            pod rival node=b gpu=1 apart=zone:web
            gang web queue=q pods=2 gpu=1 is=web
              pending web: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules
            gone loner
              admit web; mainx2 [default] a*2
              bind web-0 to a
              bind web-1 to a
              settled web
        "#]],
    );
}

#[test]
fn ports_are_kept_for_those_that_were_promised_them() {
    check(
        "
        node a gpu=8
        node b gpu=8
        queue q gpu=32
        gang one queue=q pods=2 gpu=1 port=80
        gang two queue=q pods=1 gpu=1 port=80
        gang other queue=q pods=1 gpu=1 port=81
        gone one-1
        ",
        expect![[r#"
            node a gpu=8
            node b gpu=8
            queue q gpu=32
            gang one queue=q pods=2 gpu=1 port=80
              admit one; mainx2 [default] a*1 b*1
              bind one-0 to a
              bind one-1 to b
              settled one
            gang two queue=q pods=1 gpu=1 port=80
              pending two: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 1 pod(s): 0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports
            gang other queue=q pods=1 gpu=1 port=81
              admit other; mainx1 [default] a*1
              bind other-0 to a
              settled other
            gone one-1
        "#]],
    );
}

/// Somebody else's pod that minds takes the domain between the decision and the bind.
#[test]
fn before_it_is_bound_a_pod_is_asked_again_whether_others_mind() {
    check(
        "
        node a gpu=8 @zone=a
        node b gpu=8 @zone=b
        queue q gpu=32
        auto none
        gang web queue=q pods=1 gpu=1 is=web
        pod rival node=a gpu=1 apart=zone:web
        auto all
        commit web
        members web
        ",
        expect![[r#"
            node a gpu=8 @zone=a
            node b gpu=8 @zone=b
            queue q gpu=32
            auto none
            gang web queue=q pods=1 gpu=1 is=web
              admit web; mainx1 [default] a*1
            pod rival node=a gpu=1 apart=zone:web
            auto all
            commit web
              place web; mainx1 [default] b*1
              bind web-0 to b
              settled web
            members web
        "#]],
    );
}
