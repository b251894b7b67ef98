//! What `explain` promises, as tests.

use expect_test::expect;

use super::*;
use crate::event::Policy;
use crate::reason::{Coarser, Full, Hints};

/// One line per text, so that the wording can be read as a whole.
#[test]
fn wording() {
    let place = |topology: Option<&str>, fitting| PlaceProblem {
        topology: topology.map(Into::into),
        asked: 4,
        fitting,
        nodes: 3,
        ..PlaceProblem::default()
    };
    let excluded = [
        (NodeProblem::NotReady, 1),
        (NodeProblem::Unschedulable, 1),
        (NodeProblem::Taint { key: "spot".into(), value: "yes".into() }, 1),
        (NodeProblem::Selector, 2),
        (NodeProblem::Topology, 1),
        (NodeProblem::Insufficient { resource: "cpu".into() }, 3),
        (NodeProblem::TooManyPods, 1),
    ];
    let all = |topology, fitting| PlaceProblem {
        nodes: 12,
        out: 9,
        excluded: excluded.clone().into(),
        ..place(topology, fitting)
    };
    let spot = Taint { key: "spot".into(), value: "yes".into(), effect: TaintEffect::NoSchedule };
    let flavor = |problems| Reason::NoFlavor(vec![("main".into(), problems)]);
    let short = |flavor: &str, resource: &str, short| FlavorProblem::Short {
        flavor: flavor.into(),
        resource: resource.into(),
        short,
    };
    let reasons = [
        flavor(vec![FlavorProblem::NoPlace { flavor: "f".into(), problem: place(Some("gpu-topology"), 3) }]),
        flavor(vec![FlavorProblem::NoPlace { flavor: "f".into(), problem: all(Some("gpu-topology"), 0) }]),
        flavor(vec![FlavorProblem::NoPlace { flavor: "f".into(), problem: place(None, 3) }]),
        flavor(vec![FlavorProblem::NoPlace { flavor: "f".into(), problem: all(None, 0) }]),
        flavor(vec![FlavorProblem::NoPlace {
            flavor: "f".into(),
            problem: PlaceProblem {
                full: Box::new(Full {
                    nodes: 2,
                    lacks: [(NodeProblem::Insufficient { resource: "cpu".into() }, 2)].into(),
                }),
                ..all(None, 3)
            },
        }]),
        flavor(vec![FlavorProblem::NoPlace {
            flavor: "f".into(),
            problem: PlaceProblem {
                nodes: 3,
                out: 1,
                excluded: [(NodeProblem::Topology, 1)].into(),
                closest: Some("r1".into()),
                hints: Box::new(Hints {
                    coarser: vec![Coarser { level: "block".into(), domain: "b1".into(), fitting: 9 }],
                    unlabelled: vec!["disk=ssd".into(), "zone".into()],
                }),
                fitting_if_empty: Some(3),
                unproven: true,
                ..place(Some("t"), 3)
            },
        }]),
        flavor(vec![short("f2", "memory", 2 << 30), short("f1", "cpu", 1500)]),
        flavor(vec![
            FlavorProblem::UntoleratedTaint { flavor: "f1".into(), taint: spot },
            FlavorProblem::ExceedsMaximum {
                flavor: "f2".into(),
                resource: "cpu".into(),
                previous: 0,
                request: 5000,
                maximum: 4000,
            },
            FlavorProblem::AffinityMismatch { flavor: "f3".into() },
        ]),
        flavor(vec![FlavorProblem::ResourceNotCovered { resource: "cpu".into() }]),
        flavor(vec![FlavorProblem::NoTopologyLevel { flavor: "f".into(), level: None }]),
        flavor(vec![FlavorProblem::NoTopologyLevel { flavor: "f".into(), level: Some("rack".into()) }]),
        Reason::NoPlace(vec![("main".into(), PlaceProblem { fitting_if_empty: Some(0), ..place(None, 0) })]),
        Reason::NamespaceMismatch,
        Reason::Queue(QueueProblem::LocalQueueMissing("lq".into())),
        Reason::Queue(QueueProblem::ClusterQueueInactive("cq".into(), QueueInactive::Stopped)),
        Reason::Queue(QueueProblem::ClusterQueueInactive(
            "cq".into(),
            QueueInactive::FlavorNotFound(vec!["a".into(), "b".into()]),
        )),
        Reason::BehindStrictHead { head: ("ns".into(), "first".into()) },
        Reason::BehindPreemptor { head: ("ns".into(), "first".into()) },
        Reason::VolcanoQueue {
            queue: "q".into(),
            problem: VolcanoProblem::OverCapability { resource: "cpu".into(), short: 500 },
        },
        Reason::VolcanoQueue {
            queue: "q".into(),
            problem: VolcanoProblem::Guaranteed { resource: "cpu".into(), short: 500 },
        },
        Reason::ForeignScheduler { scheduler: "mine".into(), policy: Policy::Unified },
        Reason::NotAdmittedWith { pod_set: "main-2".into() },
        Reason::NotYet(NotYet::MembersMissing(Lack { role: None, have: 2, need: 4 })),
        Reason::Off(Off::Deactivated),
    ];
    let texts: Vec<String> = reasons.iter().map(ToString::to_string).collect();
    expect![[r#"
        couldn't assign flavors to pod set main: topology "gpu-topology" allows to fit only 3 out of 4 pod(s)
        couldn't assign flavors to pod set main: topology "gpu-topology" doesn't allow to fit any of 4 pod(s). Total nodes: 12; excluded: notReady: 1, unschedulable: 1, taint "spot=yes": 1, nodeSelector: 2, topologyDomain: 1, resource "cpu": 3, resource "pods": 1; 3/12 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable, 1 node(s) had untolerated taint {spot: yes}, 2 node(s) didn't match Pod's node affinity/selector, 1 node(s) were outside of the topology domain, 3 Insufficient cpu, 1 Too many pods
        couldn't assign flavors to pod set main: nodes of flavor f allow to fit only 3 out of 4 pod(s)
        couldn't assign flavors to pod set main: nodes of flavor f don't allow to fit any of 4 pod(s): 3/12 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable, 1 node(s) had untolerated taint {spot: yes}, 2 node(s) didn't match Pod's node affinity/selector, 1 node(s) were outside of the topology domain, 3 Insufficient cpu, 1 Too many pods
        couldn't assign flavors to pod set main: nodes of flavor f allow to fit only 3 out of 4 pod(s); for one more, 1/12 nodes are available: 1 node(s) were not ready, 1 node(s) were unschedulable, 1 node(s) had untolerated taint {spot: yes}, 2 node(s) didn't match Pod's node affinity/selector, 1 node(s) were outside of the topology domain, 5 Insufficient cpu, 1 Too many pods
        couldn't assign flavors to pod set main: topology "t" allows to fit only 3 out of 4 pod(s). Total nodes: 3; excluded: topologyDomain: 1; 2/3 nodes are available: 1 node(s) were outside of the topology domain; the closest domain is r1; one domain of block takes 9 (b1); no node has label disk=ssd, zone; even on empty nodes only 3 would ever fit; the search was cut short
        couldn't assign flavors to pod set main: insufficient unused quota for cpu in flavor f1, 1500m more needed, insufficient unused quota for memory in flavor f2, 2Gi more needed
        couldn't assign flavors to pod set main: flavor f3 doesn't match node affinity, insufficient quota for cpu in flavor f2, previously considered podsets requests (0) + current podset request (5) > maximum capacity (4), untolerated taint {spot yes NoSchedule <nil>} in flavor f1
        couldn't assign flavors to pod set main: resource cpu unavailable in ClusterQueue
        couldn't assign flavors to pod set main: Flavor "f" does not support TopologyAwareScheduling
        couldn't assign flavors to pod set main: Flavor "f" does not contain the requested level "rack"
        couldn't place pod set main: nodes don't allow to fit any of 4 pod(s); none would ever fit, even on empty nodes
        Workload namespace doesn't match ClusterQueue selector
        LocalQueue lq doesn't exist
        ClusterQueue cq is inactive
        ClusterQueue cq is inactive: it references missing ResourceFlavor(s): a,b
        waiting behind ns/first, the head of its StrictFIFO ClusterQueue
        waiting behind ns/first of its ClusterQueue, for which others are leaving
        insufficient capability for cpu in Queue q, 500m more needed
        insufficient cpu beside what is guaranteed to other Queues than q, 500m more needed
        pods name the scheduler mine, but placement policy Unified needs Soroi's
        the group was admitted without pod set main-2: its pods start with the group's next admission
        waiting for pods of the group: 2 of 4 exist
        The workload is deactivated"#]].assert_eq(&texts.join("\n"));
}

#[test]
fn numbers_are_not_kinds() {
    let short = |flavor: &str, short| {
        let problem = FlavorProblem::Short { flavor: flavor.into(), resource: "cpu".into(), short };
        Reason::NoFlavor(vec![("main".into(), vec![problem])])
    };
    assert!(short("f", 1).same_kind(&short("f", 2)));
    assert!(!short("f", 1).same_kind(&short("g", 1)));
    let place = |fitting, most| {
        let problem = PlaceProblem { asked: 4, fitting, fitting_if_empty: most, ..PlaceProblem::default() };
        Reason::NoPlace(vec![("main".into(), problem)])
    };
    assert!(place(1, Some(9)).same_kind(&place(3, None)));
    assert!(!place(1, Some(9)).same_kind(&place(1, Some(3))), "never is another kind than not now");
}
