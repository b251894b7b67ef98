//! What becomes of objects of which something cannot be read or understood: never nothing.

use std::sync::Arc;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use soroi_engine::event::Event;

use super::*;
use crate::config::Config;
use crate::intake::Schedulers;
use crate::parsed::{self, Context};

fn world() -> World {
    let context = Context {
        charging: Default::default(),
        schedulers: Schedulers::default(),
        defaults: Default::default(),
        shared: Default::default(),
    };
    World::new(Arc::new(context), &Config::default())
}

/// Takes in an object as the API server would tell of it.
fn take(world: &mut World, kind: Kind, name: &str, version: u32, spec: Value) {
    let object = json!({
        "metadata": { "name": name, "uid": format!("{name}-uid"), "resourceVersion": version.to_string() },
        "spec": spec,
    });
    let parsed = parsed::read(kind, &object.to_string(), &world.context).unwrap();
    world.take(kind, soroi_watch::Change::Set(parsed));
}

/// What the engine hears of queues, and what people hear.
fn check(world: &mut World, expected: Expect) {
    let mut told = String::new();
    for event in world.take_events() {
        told += &match event {
            Event::ClusterQueue(queue) => match queue.inactive {
                None => format!("queue {} is well\n", queue.name),
                Some(QueueInactive::Invalid(text)) => format!("queue {} stops: {text}\n", queue.name),
                Some(other) => format!("queue {} stops: {other:?}\n", queue.name),
            },
            Event::Flavor(flavor) => format!("flavor {}\n", flavor.name),
            Event::FlavorGone(name) => format!("no flavor {name}\n"),
            Event::Topology(topology) => format!("topology {}\n", topology.name),
            Event::TopologyGone(name) => format!("no topology {name}\n"),
            Event::Cohort(cohort) => {
                format!("cohort {} below {:?}, {} groups\n", cohort.name, cohort.parent, cohort.groups.len())
            }
            Event::VolcanoQueue(queue) => format!("queue {}: {:?}\n", queue.name, queue.invalid),
            Event::LocalQueue(queue) => format!("local queue {}: {:?}\n", queue.name, queue.stop),
            other => format!("{other:?}\n"),
        };
    }
    for complaint in world.take_complaints() {
        told += &format!("{} {}: {}\n", complaint.kind.named().1, complaint.meta.name, complaint.invalid);
    }
    expected.assert_eq(&told);
}

fn queue_of(flavor: &str) -> Value {
    let quota = json!([{ "name": "cpu", "nominalQuota": "4" }]);
    let flavors = json!([{ "name": flavor, "resources": quota }]);
    json!({ "resourceGroups": [{ "coveredResources": ["cpu"], "flavors": flavors }] })
}

#[test]
fn a_queue_of_a_broken_flavor_or_topology_stops_and_names_the_field() {
    let mut world = world();
    let levels = json!({ "levels": [{ "nodeLabel": "rack" }] });
    take(&mut world, Kind::Topology, "racks", 1, levels.clone());
    take(&mut world, Kind::Flavor, "main", 2, json!({ "topologyName": "racks" }));
    take(&mut world, Kind::ClusterQueue, "q", 3, queue_of("main"));
    check(
        &mut world,
        expect![[r#"
        topology racks
        flavor main
        queue q is well
    "#]],
    );
    take(&mut world, Kind::Flavor, "main", 4, json!({ "nodeTaints": [{ "key": "a", "effect": "Never" }] }));
    check(
        &mut world,
        expect![[r#"
        no flavor main
        queue q stops: ResourceFlavor "main": spec.nodeTaints[0].effect: unknown effect "Never"
        ResourceFlavor main: spec.nodeTaints[0].effect: unknown effect "Never"
    "#]],
    );
    take(&mut world, Kind::Flavor, "main", 5, json!({ "topologyName": "racks", "tolerations": "all" }));
    check(
        &mut world,
        expect![[r#"
        no flavor main
        queue q stops: ResourceFlavor "main": spec.tolerations: invalid type: string "all", expected a sequence
        ResourceFlavor main: spec.tolerations: invalid type: string "all", expected a sequence
    "#]],
    );
    take(&mut world, Kind::Flavor, "main", 6, json!({ "topologyName": "racks" }));
    check(
        &mut world,
        expect![[r#"
        flavor main
        queue q is well
    "#]],
    );
    take(&mut world, Kind::Topology, "racks", 7, json!({ "levels": "all" }));
    check(
        &mut world,
        expect![[r#"
        no topology racks
        queue q stops: Topology "racks": spec.levels: invalid type: string "all", expected a sequence
        Topology racks: spec.levels: invalid type: string "all", expected a sequence
    "#]],
    );
    // The same again is not said again.
    take(&mut world, Kind::Topology, "racks", 8, json!({ "levels": "all" }));
    check(
        &mut world,
        expect![[r#"
        no topology racks
    "#]],
    );
    take(&mut world, Kind::Topology, "racks", 9, levels);
    check(
        &mut world,
        expect![[r#"
        topology racks
        queue q is well
    "#]],
    );
}

#[test]
fn what_cannot_be_read_of_a_queue_gives_no_quota_away() {
    let mut world = world();
    let mut spec = queue_of("main");
    take(&mut world, Kind::ClusterQueue, "q", 1, spec.clone());
    spec["preemption"] = json!("yes");
    take(&mut world, Kind::ClusterQueue, "q", 2, spec.clone());
    spec["resourceGroups"][0]["flavors"][0]["resources"][0]["nominalQuota"] = json!([4]);
    take(&mut world, Kind::ClusterQueue, "q", 3, spec);
    check(
        &mut world,
        expect![[r#"
        queue q is well
        queue q stops: spec.preemption: invalid type: string "yes", expected struct ClusterQueuePreemption
        queue q stops: spec.preemption: invalid type: string "yes", expected struct ClusterQueuePreemption
    "#]],
    );
    take(&mut world, Kind::Cohort, "all", 4, json!({ "parentName": "root", "resourceGroups": [1] }));
    take(
        &mut world,
        Kind::Cohort,
        "some",
        5,
        json!({ "parentName": "root", "fairSharing": { "weight": "x" } }),
    );
    take(&mut world, Kind::LocalQueue, "door", 6, json!({ "clusterQueue": "q", "stopPolicy": "Perhaps" }));
    take(&mut world, Kind::VolcanoQueue, "v", 7, json!({ "capability": { "cpu": "many" } }));
    take(&mut world, Kind::VolcanoQueue, "v", 8, json!({ "capability": [], "parent": "u" }));
    check(
        &mut world,
        expect![[r#"
        cohort all below Some("root"), 0 groups
        cohort some below Some("root"), 0 groups
        local queue door: Hold
        queue v: Some("spec.capability[cpu]: quantity \"many\": expected a number at position 0")
        queue v: Some("spec.capability: invalid type: sequence, expected a map")
        Cohort all: spec.resourceGroups[0]: invalid type: integer `1`, expected struct ResourceGroup
        Cohort some: spec.fairSharing.weight: quantity "x": expected a number at position 0
        LocalQueue door: spec.stopPolicy: unknown variant `Perhaps`, expected one of `None`, `Hold`, `HoldAndDrain`
        Queue v: spec.capability[cpu]: quantity "many": expected a number at position 0
        Queue v: spec.capability: invalid type: sequence, expected a map
    "#]],
    );
}

#[test]
fn an_admission_check_that_cannot_be_read_is_not_active() {
    let mut world = world();
    let mut spec = queue_of("main");
    spec["admissionChecksStrategy"] = json!({ "admissionChecks": [{ "name": "budget" }] });
    take(&mut world, Kind::ClusterQueue, "q", 1, spec);
    take(&mut world, Kind::AdmissionCheck, "budget", 2, json!({ "controllerName": ["x"] }));
    check(
        &mut world,
        expect![[r#"
        queue q stops: CheckNotFound(["budget"])
        queue q stops: CheckInactive(["budget"])
        AdmissionCheck budget: spec.controllerName: invalid type: sequence, expected a string
    "#]],
    );
}

#[test]
fn workloads_and_groups_that_cannot_be_read_wait() {
    let mut world = world();
    let template = json!({ "spec": { "containers": "what" } });
    let sets = json!([{ "name": "main", "count": 3, "template": template }]);
    take(&mut world, Kind::Workload, "w", 1, json!({ "queueName": "main", "podSets": sets }));
    take(&mut world, Kind::PodGroup, "g", 2, json!({ "minMember": 2, "minTaskMember": "all" }));
    let workload = world.workloads.get(&("".into(), "w".into())).unwrap();
    let group = world.groups.get(&("".into(), "g".into())).unwrap();
    let facts = &workload.facts.facts;
    let told =
        format!("{} pods, {:?}\n", facts.pod_sets[0].count, facts.invalid.as_ref().map(Invalid::reason));
    let told = told + &format!("{:?}\n", group.facts.facts.invalid.as_ref().map(Invalid::reason));
    expect![[r#"
        3 pods, Some("spec.podSets[0].template.spec.containers: invalid type: string \"what\", expected a sequence")
        Some("spec.minTaskMember: invalid type: string \"all\", expected a map")
    "#]].assert_eq(&told);
}

#[test]
fn a_pod_counts_on_its_node_also_when_nobody_knows_where_it_may_be() {
    let mut world = world();
    let terms = json!([{ "matchExpressions": [{ "key": "gen", "operator": "Gt", "values": ["old"] }] }]);
    let required =
        json!({ "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": terms } });
    let container = json!({ "name": "main", "resources": { "requests": { "cpu": "2" } } });
    let spec = json!({
        "nodeName": "w1", "affinity": { "nodeAffinity": required }, "containers": [container],
    });
    take(&mut world, Kind::Pod, "p", 1, spec);
    let events = world.take_events();
    let [Event::Pod(pod)] = &events[..] else { panic!("{events:?}") };
    assert_eq!((pod.node.as_deref(), pod.shape.requests.get("cpu")), (Some("w1"), Some(&2_000)));
    assert_eq!(pod.shape.node_affinity, Some(Vec::new()));
}
