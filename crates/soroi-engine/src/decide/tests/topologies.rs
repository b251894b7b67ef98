//! Stories of topologies: several at once, domains of equal names, levels that are missing, and constraints that
//! nobody can meet.

use std::collections::BTreeMap;
use std::sync::Arc;

use expect_test::expect;

use super::board::Board;
use super::script::{check, run};
use crate::event::{
    Expression, Gang, NodeSelectorTerm, Operator, PodSet, PodsReady, Readiness, Shape, TopologyRequest, Who,
};

/// Each flavor has a topology of its own. The first has no racks at all, so that whoever asks for one goes past it;
/// whoever asks for a zone goes there first, and on to the other where it is full.
#[test]
fn flavors_lie_in_different_topologies() {
    check(
        "
        topology zones zone kubernetes.io/hostname
        topology racks zone rack
        node o1 gpu=2 @kind=old @zone=z1 @kubernetes.io/hostname=o1
        node o2 gpu=2 @kind=old @zone=z2 @kubernetes.io/hostname=o2
        node n1 gpu=2 @kind=new @zone=z1 @rack=r1
        node n2 gpu=2 @kind=new @zone=z1 @rack=r1
        node n3 gpu=2 @kind=new @zone=z1 @rack=r2
        flavor old @kind=old topology=zones
        flavor new @kind=new topology=racks
        queue main gpu@old=4 gpu@new=6
        gang racked pods=3 gpu=1 queue=main required=rack
        gang zoned pods=2 gpu=1 queue=main required=zone
        gang wide pods=3 gpu=1 queue=main required=zone
        gang deep pods=1 gpu=1 queue=main required=row
        show
        ",
        expect![[r#"
            topology zones zone kubernetes.io/hostname
            topology racks zone rack
            node o1 gpu=2 @kind=old @zone=z1 @kubernetes.io/hostname=o1
            node o2 gpu=2 @kind=old @zone=z2 @kubernetes.io/hostname=o2
            node n1 gpu=2 @kind=new @zone=z1 @rack=r1
            node n2 gpu=2 @kind=new @zone=z1 @rack=r1
            node n3 gpu=2 @kind=new @zone=z1 @rack=r2
            flavor old @kind=old topology=zones
            flavor new @kind=new topology=racks
            queue main gpu@old=4 gpu@new=6
            gang racked pods=3 gpu=1 queue=main required=rack
              admit racked; mainx3 [new] n1*2 n2*1
              bind racked-0 to n1
              bind racked-1 to n1
              bind racked-2 to n2
              settled racked
            gang zoned pods=2 gpu=1 queue=main required=zone
              admit zoned; mainx2 [old] o1*2
              bind zoned-0 to o1
              bind zoned-1 to o1
              settled zoned
            gang wide pods=3 gpu=1 queue=main required=zone
              admit wide; mainx3 [new] n2*1 n3*2
              bind wide-0 to n2
              bind wide-1 to n3
              bind wide-2 to n3
              settled wide
            gang deep pods=1 gpu=1 queue=main required=row
              pending deep: couldn't assign flavors to pod set main: Flavor "new" does not contain the requested level "row", Flavor "old" does not contain the requested level "row"
            show
              n1: racked-0 racked-1
              n2: racked-2 wide-0
              n3: wide-1 wide-2
              o1: zoned-0 zoned-1
              o2: 
              deep: pending: couldn't assign flavors to pod set main: Flavor "new" does not contain the requested level "row", Flavor "old" does not contain the requested level "row"
              racked: committed, 3 running
              wide: committed, 3 running
              zoned: committed, 2 running
        "#]],
    );
}

/// A rack `r1` in each of two blocks: four places in racks of that name, and no rack of four.
#[test]
fn racks_of_the_same_name_are_not_one_rack() {
    check(
        "
        topology racks block rack
        node a gpu=2 @block=b1 @rack=r1
        node b gpu=2 @block=b2 @rack=r1
        flavor default topology=racks
        queue main gpu=9
        gang four pods=4 gpu=1 queue=main required=rack
        gang two pods=2 gpu=1 queue=main required=rack
        show
        ",
        expect![[r#"
            topology racks block rack
            node a gpu=2 @block=b1 @rack=r1
            node b gpu=2 @block=b2 @rack=r1
            flavor default topology=racks
            queue main gpu=9
            gang four pods=4 gpu=1 queue=main required=rack
              pending four: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 4 pod(s). Total nodes: 2; excluded: topologyDomain: 1; for one more, 0/2 nodes are available: 1 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is r1; even on empty nodes only 2 would ever fit
            gang two pods=2 gpu=1 queue=main required=rack
              admit two; mainx2 [default] a*2
              bind two-0 to a
              bind two-1 to a
              settled two
            show
              a: two-0 two-1
              b: 
              four: pending: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 4 pod(s). Total nodes: 2; excluded: topologyDomain: 1; for one more, 0/2 nodes are available: 1 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is r1; even on empty nodes only 2 would ever fit
              two: committed, 2 running
        "#]],
    );
}

/// Two nodes say the same host name: as domains they are two, and nobody gets more than one of them has.
#[test]
fn two_nodes_of_one_host_name_are_two_domains() {
    check(
        "
        topology hosts kubernetes.io/hostname
        node a gpu=2 @kubernetes.io/hostname=same
        node b gpu=2 @kubernetes.io/hostname=same
        flavor default topology=hosts
        queue main gpu=9
        gang three pods=3 gpu=1 queue=main required=kubernetes.io/hostname
        gang two pods=2 gpu=1 queue=main required=kubernetes.io/hostname
        show
        ",
        expect![[r#"
            topology hosts kubernetes.io/hostname
            node a gpu=2 @kubernetes.io/hostname=same
            node b gpu=2 @kubernetes.io/hostname=same
            flavor default topology=hosts
            queue main gpu=9
            gang three pods=3 gpu=1 queue=main required=kubernetes.io/hostname
              pending three: couldn't assign flavors to pod set main: topology "hosts" allows to fit only 2 out of 3 pod(s). Total nodes: 2; excluded: topologyDomain: 1; for one more, 0/2 nodes are available: 1 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is same; even on empty nodes only 2 would ever fit
            gang two pods=2 gpu=1 queue=main required=kubernetes.io/hostname
              admit two; mainx2 [default] a*2
              bind two-0 to a
              bind two-1 to a
              settled two
            show
              a: two-0 two-1
              b: 
              three: pending: couldn't assign flavors to pod set main: topology "hosts" allows to fit only 2 out of 3 pod(s). Total nodes: 2; excluded: topologyDomain: 1; for one more, 0/2 nodes are available: 1 node(s) were outside of the topology domain, 1 Insufficient example.com/gpu; the closest domain is same; even on empty nodes only 2 would ever fit
              two: committed, 2 running
        "#]],
    );
}

/// Labels are missing on some nodes, and a level that is there on none.
#[test]
fn nodes_without_a_label_are_outside() {
    check(
        "
        topology racks block rack
        node a gpu=2 @block=b1 @rack=r1
        node b gpu=2 @block=b1
        node c gpu=2
        flavor default topology=racks
        queue main gpu=9
        gang three pods=3 gpu=1 queue=main required=block
        topology racks block row
        ",
        expect![[r#"
            topology racks block rack
            node a gpu=2 @block=b1 @rack=r1
            node b gpu=2 @block=b1
            node c gpu=2
            flavor default topology=racks
            queue main gpu=9
            gang three pods=3 gpu=1 queue=main required=block
              pending three: couldn't assign flavors to pod set main: topology "racks" allows to fit only 2 out of 3 pod(s). Total nodes: 3; excluded: label "block": 1, label "rack": 1; for one more, 0/3 nodes are available: 1 node(s) had no label block, 1 node(s) had no label rack, 1 Insufficient example.com/gpu; even on empty nodes only 2 would ever fit
            topology racks block row
              pending three: couldn't assign flavors to pod set main: topology "racks" doesn't allow to fit any of 3 pod(s). Total nodes: 3; excluded: label "block": 1, label "row": 2; 0/3 nodes are available: 1 node(s) had no label block, 2 node(s) had no label row; no node has label row
        "#]],
    );
}

/// A topology without levels is one domain, of which nothing can be required.
#[test]
fn a_topology_without_levels_has_nothing_to_require() {
    check(
        "
        topology none
        node a gpu=2
        flavor default topology=none
        queue main gpu=9
        gang racked pods=2 gpu=1 queue=main required=rack
        gang any pods=2 gpu=1 queue=main
        ",
        expect![[r#"
            topology none
            node a gpu=2
            flavor default topology=none
            queue main gpu=9
            gang racked pods=2 gpu=1 queue=main required=rack
              pending racked: couldn't assign flavors to pod set main: Flavor "default" does not contain the requested level "rack"
            gang any pods=2 gpu=1 queue=main
              admit any; mainx2 [default] a*2
              bind any-0 to a
              bind any-1 to a
              settled any
        "#]],
    );
}

/// Hundreds of terms that nothing matches, and constraints that contradict each other: a reason, and no more work
/// than there are nodes.
#[test]
fn what_nobody_can_meet_is_said_at_once() {
    let mut board = Board::new();
    run(
        &mut board,
        "
        node a gpu=2 @zone=z1
        node b gpu=2 @zone=z2
        queue main gpu=9
        ",
    );
    let term = |at: usize| NodeSelectorTerm {
        labels: vec![Expression { key: "zone".into(), op: Operator::In(vec![format!("no-{at}").into()]) }],
        fields: Vec::new(),
    };
    let contradiction = NodeSelectorTerm {
        labels: vec![
            Expression { key: "zone".into(), op: Operator::Exists },
            Expression { key: "zone".into(), op: Operator::DoesNotExist },
        ],
        fields: Vec::new(),
    };
    board.log = "the gangs come\n".into();
    for (name, terms) in [("many", (0..500).map(term).collect()), ("torn", vec![contradiction])] {
        let shape = Shape {
            requests: BTreeMap::from([("example.com/gpu".into(), 1)]),
            node_affinity: Some(terms),
            ..Shape::default()
        };
        board.tell_gang(gang(name, shape));
        board.settle();
    }
    expect![[r#"
        the gangs come
          pending many: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector
          pending torn: couldn't assign flavors to pod set main: nodes of flavor default don't allow to fit any of 2 pod(s): 0/2 nodes are available: 2 node(s) didn't match Pod's node affinity/selector
    "#]].assert_eq(&board.log);
}

fn gang(name: &str, shape: Shape) -> Gang {
    Gang {
        id: name.into(),
        namespace: "ns".into(),
        name: name.into(),
        owners: vec![format!("owner-{name}").into()],
        local_queue: Some("main".into()),
        volcano_queue: None,
        priority: 0,
        queued_at: 0,
        pod_sets: vec![PodSet {
            name: "main".into(),
            role: None,
            count: 2,
            least: None,
            shape: Arc::new(shape),
            charged: None,
            topology: TopologyRequest::NONE,
            who: Arc::new(Who::default()),
        }],
        minima: None,
        readiness: Readiness::Ready,
        checks: Default::default(),
        policy: None,
        not_before: 0,
        foreign_scheduler: None,
        admitted: None,
        pods_ready: PodsReady::default(),
    }
}
