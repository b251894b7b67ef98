//! Each rule of what is written, and of time, is broken once. Knows objects as JSON; never a stage.

use std::time::Duration;

use http::Method;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use soroi_watch::Change;

use super::*;
use crate::wire::sight::Sender;

const LIMITS: Limits = Limits {
    placement: Placement::Unified,
    recovery: Duration::from_secs(65),
    patience: Duration::ZERO,
    slack: Duration::ZERO,
    stale: true,
    one_gets_ready: false,
    astray: Duration::ZERO,
};

/// What is told of a world, second by second.
struct Story {
    world: World,
    now: Timestamp,
}

impl Story {
    fn new() -> Self {
        let mut story = Self { world: World::new(Timestamp::UNIX_EPOCH), now: Timestamp::UNIX_EPOCH };
        story.sees("", What::Began);
        for kind in [kind::NODE, kind::POD, kind::JOB, kind::WORKLOAD, kind::CLUSTER_QUEUE] {
            story.sees(&kind.path(None), What::Listed);
        }
        for kind in [kind::POD_GROUP, kind::GANG_PLAN] {
            story.sees(&kind.path(None), What::Listed);
        }
        story
    }

    fn sees(&mut self, path: &str, what: What) {
        let sight = Sight { sender: Sender { who: "", number: 1 }, path: path.to_owned(), what };
        on_sight(&mut self.world, &sight, self.now, &LIMITS);
    }

    fn writes(&mut self, method: Method, path: &str, body: Value) {
        self.sees(path, What::Wrote { method, body });
    }

    fn set(&mut self, kind: Kind, object: Value) {
        let changed = self.world.change(kind, Change::Set(object), self.now);
        on_change(&mut self.world, &changed, self.now, &LIMITS);
    }

    fn gone(&mut self, kind: Kind, object: Value) {
        let changed = self.world.change(kind, Change::Gone(object), self.now);
        on_change(&mut self.world, &changed, self.now, &LIMITS);
    }

    fn passes(&mut self, secs: i64) {
        self.now += SignedDuration::from_secs(secs);
        over_time(&mut self.world, self.now, &LIMITS);
    }

    /// A Job of this many pods of which so many exist, and its plan on node `a`.
    fn gang(&mut self, pods: usize, exist: usize) {
        self.set(kind::JOB, job(pods));
        self.set(kind::GANG_PLAN, plan());
        self.set(kind::NODE, node());
        (0..exist).for_each(|at| self.set(kind::POD, pod(at, false)));
    }

    fn violations(&self) -> String {
        self.world.violations.join("\n")
    }
}

fn named(name: &str) -> Value {
    json!({"name": name, "namespace": "default", "uid": format!("uid-{name}")})
}

fn job(pods: usize) -> Value {
    let mut metadata = named("g");
    metadata["labels"] = json!({"kueue.x-k8s.io/queue-name": "main"});
    json!({"metadata": metadata, "spec": {"parallelism": pods, "suspend": false, "template": {}}})
}

fn plan() -> Value {
    json!({
        "metadata": named("plan"),
        "spec": {"gang": {"name": "w"}, "owners": ["uid-g"], "podSets": [{"nodes": [{"roots": ["a"]}]}]},
        "status": {"phase": "Committed"},
    })
}

fn node() -> Value {
    let ready = json!([{"type": "Ready", "status": "True"}]);
    json!({"metadata": {"name": "a"}, "status": {"allocatable": {"pods": "110"}, "conditions": ready}})
}

fn pod(at: usize, bound: bool) -> Value {
    let mut metadata = named(&format!("g-{at}"));
    metadata["ownerReferences"] = json!([{"kind": "Job", "name": "g", "uid": "uid-g"}]);
    let spec = if bound { json!({"nodeName": "a", "containers": []}) } else { json!({"containers": []}) };
    json!({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}})
}

const BINDING: &str = "/api/v1/namespaces/default/pods/g-0/binding";

fn to(node: &str) -> Value {
    json!({"target": {"name": node}})
}

#[test]
fn a_gang_is_begun_when_all_its_members_exist_and_where_its_plan_says() {
    let begun = |pods, exist, node| {
        let mut story = Story::new();
        story.gang(pods, exist);
        story.writes(Method::POST, BINDING, to(node));
        story.violations()
    };
    assert_eq!(begun(2, 2, "a"), "");
    assert_eq!(begun(3, 2, "a"), "gang g was begun with 2 of 3 members there");
    assert_eq!(begun(2, 2, "b"), "pod g-0 was bound to b, of which its plan knows nothing");
    let mut story = Story::new();
    story.gang(2, 2);
    story.gone(kind::GANG_PLAN, plan());
    story.writes(Method::POST, BINDING, to("a"));
    assert_eq!(story.violations(), "pod g-0 was bound and no plan says so");
}

#[test]
fn pods_of_a_job_that_goes_on_are_not_deleted() {
    let pod = "/api/v1/namespaces/default/pods/g-0";
    let mut story = Story::new();
    story.gang(1, 1);
    story.writes(Method::DELETE, pod, Value::Null);
    assert_eq!(story.violations(), "pod g-0 of a Job that goes on was deleted");
    let mut story = Story::new();
    story.gang(1, 1);
    let mut failed = job(1);
    failed["status"] = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    story.set(kind::JOB, failed);
    story.writes(Method::POST, &format!("{pod}/eviction"), Value::Null);
    assert_eq!(story.violations(), "");
}

#[test]
fn nothing_is_written_before_everything_was_read() {
    let mut story = Story::new();
    story.gang(1, 1);
    story.sees("", What::Crashed);
    story.sees("", What::Began);
    story.writes(Method::POST, BINDING, to("a"));
    assert_eq!(story.violations(), format!("POST {BINDING} was sent before everything was read"));
}

#[test]
fn a_job_is_released_under_a_plan() {
    let path = "/apis/batch/v1/namespaces/default/jobs/g";
    let mut story = Story::new();
    story.gang(1, 0);
    story.writes(Method::PATCH, path, json!({"spec": {"suspend": false}}));
    assert_eq!(story.violations(), "");
    // An undo began while the request was on its way.
    let mut undoing = plan();
    undoing["status"]["phase"] = json!("Undoing");
    story.set(kind::GANG_PLAN, undoing);
    story.passes(4);
    story.writes(Method::PATCH, path, json!({"spec": {"suspend": false}}));
    assert_eq!(story.violations(), "");
    story.passes(1);
    story.writes(Method::PATCH, path, json!({"spec": {"suspend": false}}));
    assert_eq!(story.violations(), "job g was released and no plan says so");
    let mut story = Story::new();
    story.gang(1, 0);
    story.gone(kind::GANG_PLAN, plan());
    story.writes(Method::PATCH, path, json!({"spec": {"suspend": false}}));
    assert_eq!(story.violations(), "job g was released and no plan says so");
}

#[test]
fn a_plan_stands_while_pods_of_it_are_on_nodes() {
    let mut story = Story::new();
    story.gang(1, 1);
    story.set(kind::POD, pod(0, true));
    story.gone(kind::GANG_PLAN, plan());
    assert_eq!(story.violations(), "the plan of w is gone and its pod g-0 runs");
}

#[test]
fn a_gang_between_nothing_and_whole_has_time_from_what_met_it_last() {
    let rests = |disturbed: bool| {
        let mut story = Story::new();
        story.gang(2, 2);
        story.set(kind::POD, pod(0, true));
        story.passes(14);
        if disturbed {
            story.sees("/api/v1/namespaces/default/pods/g-1/binding", What::Hindered);
        }
        story.passes(2);
        story.violations()
    };
    assert_eq!(rests(false), "gang g rests at 1 of 2 members");
    assert_eq!(rests(true), "");
}

#[test]
fn a_lease_is_taken_over_when_it_was_waited_out() {
    let lease = |holder: &str, term: i64| json!({"metadata": {"name": "soroi"}, "spec": {"holderIdentity": holder, "leaseTransitions": term}});
    let taken = |after: i64, holder: &str| {
        let mut story = Story::new();
        story.set(kind::LEASE, lease(holder, 1));
        story.now += SignedDuration::from_secs(after);
        story.set(kind::LEASE, lease("b_1", 2));
        story.violations()
    };
    assert_eq!(taken(20, "a_1"), "");
    assert_eq!(taken(0, ""), "");
    assert_eq!(taken(10, "a_1"), "b_1 took the lease over 10.0 s after a_1 had renewed it");
}

#[test]
fn nobody_is_put_onto_a_node_that_has_long_been_shut() {
    let bound_after = |secs: i64, shut: bool| {
        let mut story = Story::new();
        story.gang(1, 1);
        let mut node = node();
        node["spec"] = json!({"unschedulable": shut});
        story.set(kind::NODE, node);
        story.passes(secs);
        story.set(kind::POD, pod(0, true));
        story.violations()
    };
    assert_eq!(bound_after(29, true), "");
    assert_eq!(bound_after(31, true), "pod g-0 was bound to a, which has been shut for long");
    assert_eq!(bound_after(31, false), "");
}

#[test]
fn members_that_must_share_a_domain_are_not_put_apart() {
    const RACK: &str = "topology.example.com/rack";
    let bound = |racks: [&str; 2], moved: bool| {
        let mut story = Story::new();
        story.set(kind::JOB, job(2));
        story.set(kind::GANG_PLAN, plan());
        for (at, (name, rack)) in ["a", "b"].into_iter().zip(racks).enumerate() {
            let mut on = node();
            on["metadata"] = json!({"name": name, "labels": {RACK: if moved { "elsewhere" } else { rack }}});
            story.set(kind::NODE, on.clone());
            on["metadata"]["labels"][RACK] = json!(rack);
            story.set(kind::NODE, on);
            let mut pod = pod(at, true);
            pod["metadata"]["annotations"] = json!({"kueue.x-k8s.io/podset-required-topology": RACK});
            pod["spec"]["nodeName"] = json!(name);
            story.set(kind::POD, pod);
        }
        story.violations()
    };
    assert_eq!(bound(["r1", "r1"], false), "");
    let apart = format!(r#"pod g-1 must share a {RACK} with its gang, which is in {{"r1", "r2"}}"#);
    assert_eq!(bound(["r1", "r2"], false), apart);
    assert_eq!(bound(["r1", "r2"], true), "");
}

/// A Workload in the queue `main`.
fn workload(name: &str, priority: i64, preempted: bool) -> Value {
    let evicted = json!([{"type": "Evicted", "status": "True", "reason": "Preempted"}]);
    let conditions = if preempted { evicted } else { json!([]) };
    json!({
        "metadata": named(name), "spec": {"queueName": "main", "priority": priority},
        "status": {"conditions": conditions, "admission": {"clusterQueue": "main"}},
    })
}

/// What the gang `high` keeps while `low` leaves.
fn hold() -> Value {
    json!({
        "metadata": named("hold"),
        "spec": {
            "gang": {"name": "high", "uid": "uid-high"}, "clusterQueue": "main",
            "victims": [{"name": "low", "uid": "uid-low"}],
        },
        "status": {"phase": "Holding"},
    })
}

fn preempting(rule: &str, low: i64, high: i64) -> Story {
    let mut story = Story::new();
    let preemption = json!({"withinClusterQueue": rule});
    story.set(kind::CLUSTER_QUEUE, json!({"metadata": {"name": "main"}, "spec": {"preemption": preemption}}));
    story.set(kind::WORKLOAD, workload("low", low, false));
    story.set(kind::WORKLOAD, workload("high", high, false));
    story
}

#[test]
fn a_victim_leaves_for_somebody_whom_a_plan_names_and_whose_queue_may() {
    let told = |rule: &str, high: i64, planned: bool| {
        let mut story = preempting(rule, 0, high);
        if planned {
            story.set(kind::GANG_PLAN, hold());
        }
        story.set(kind::WORKLOAD, workload("low", 0, true));
        story.violations()
    };
    assert_eq!(told("LowerPriority", 1, true), "");
    assert_eq!(told("LowerPriority", 1, false), "low was evicted for another, and no plan says for whom");
    let wrong = |rule: &str| {
        format!("low of main (priority 0) was evicted for high of main (priority 0), whose queue says {rule}")
    };
    assert_eq!(told("LowerPriority", 0, true), wrong("LowerPriority"));
    assert_eq!(told("LowerOrNewerEqualPriority", 0, true), "");
    assert_eq!(told("Never", 0, true), wrong("Never"));
}

#[test]
fn who_has_had_others_evicted_starts_when_they_are_gone() {
    let ends = |starts: bool, disturbed: bool| {
        let mut story = preempting("LowerPriority", 0, 1);
        story.world.lull(true);
        story.set(kind::GANG_PLAN, hold());
        story.set(kind::WORKLOAD, workload("low", 0, true));
        story.now += SignedDuration::from_secs(1);
        if disturbed {
            story.world.last_deed = Some(story.now);
        }
        let mut committed = hold();
        committed["status"]["phase"] = json!("Committed");
        match starts {
            true => story.set(kind::GANG_PLAN, committed),
            false => story.gone(kind::GANG_PLAN, hold()),
        }
        story.violations()
    };
    assert_eq!(ends(true, false), "");
    assert_eq!(ends(false, false), "low left for high, which did not start");
    assert_eq!(ends(false, true), "");
}
