//! When are pods late, by what their Workload shows?

use std::sync::Arc;

use expect_test::expect;
use serde_json::{Value, json};

use super::*;
use crate::config::{Config, Requeuing};
use crate::intake::Schedulers;
use crate::kind::Kind;
use crate::parsed::{self, Context};
use crate::world::root::Root;

/// Half a minute to start, ten seconds to recover.
fn rules() -> WaitForPodsReady {
    let requeuing = Requeuing { to_the_back: true, limit: Some(2), base_secs: 60, max_secs: 3_600 };
    WaitForPodsReady { timeout: 30_000, recovery_timeout: Some(10_000), requeuing }
}

fn world(rules: Option<WaitForPodsReady>, status: &Value) -> World {
    let context = Context {
        charging: Default::default(),
        schedulers: Schedulers::default(),
        defaults: Default::default(),
        shared: Default::default(),
    };
    let mut world =
        World::new(Arc::new(context), &Config { wait_for_pods_ready: rules, ..Config::default() });
    let container = json!({ "name": "main", "resources": { "requests": { "cpu": "1" } } });
    let set = json!({ "name": "main", "count": 2, "template": { "spec": { "containers": [container] } } });
    let workload = json!({
        "metadata": {
            "name": "w", "namespace": "ns", "uid": "w-uid", "resourceVersion": "1",
            "creationTimestamp": "2026-11-30T12:00:00Z",
        },
        "spec": { "queueName": "q", "podSets": [set] },
        "status": status,
    });
    let parsed = parsed::read(Kind::Workload, &workload.to_string(), &world.context).unwrap();
    world.take(Kind::Workload, soroi_watch::Change::Set(parsed));
    world
}

fn condition_at(second: u32, kind: &str, status: &str, reason: &str) -> Value {
    let time = format!("2026-11-30T12:00:{second:02}Z");
    json!({ "type": kind, "status": status, "reason": reason, "message": "", "lastTransitionTime": time })
}

/// What the engine is told, with times in seconds after the creation.
fn told(rules: Option<WaitForPodsReady>, conditions: &[Value]) -> String {
    let world = world(rules, &json!({ "conditions": conditions }));
    let gang = world.gang_of(&Root::Workload("ns".into(), "w".into())).unwrap().gang;
    let after = |at: Millis| (at - world.workloads.iter().next().unwrap().facts.facts.created_at) / 1000;
    let due = gang.pods_ready.due.map_or("-".to_owned(), |due| after(due).to_string());
    format!("shown {:<5}  due {due:<3} queued {}\n", gang.pods_ready.shown, after(gang.queued_at))
}

#[test]
fn the_time_of_the_start_counts_from_the_admission_and_that_of_the_recovery_from_the_loss() {
    let admitted = || condition_at(5, "Admitted", "True", "Admitted");
    let ready = |second, status, reason| condition_at(second, "PodsReady", status, reason);
    let evicted = |reason| condition_at(40, "Evicted", "True", reason);
    let no_recovery = || Some(WaitForPodsReady { recovery_timeout: None, ..rules() });
    let keeps_place = || {
        let mut rules = rules();
        rules.requeuing.to_the_back = false;
        Some(rules)
    };
    let pages = [
        ("waits", Some(rules()), vec![]),
        ("starts", Some(rules()), vec![admitted(), ready(1, "False", "WaitForStart")]),
        ("starts, and nobody says more", Some(rules()), vec![admitted()]),
        ("ready", Some(rules()), vec![admitted(), ready(9, "True", "Started")]),
        ("lost one", Some(rules()), vec![admitted(), ready(20, "False", "WaitForRecovery")]),
        ("lost one, no matter", no_recovery(), vec![admitted(), ready(20, "False", "WaitForRecovery")]),
        ("evicted", Some(rules()), vec![admitted(), evicted("PodsReadyTimeout")]),
        ("evicted, keeps its place", keeps_place(), vec![admitted(), evicted("PodsReadyTimeout")]),
        ("evicted otherwise", Some(rules()), vec![admitted(), evicted("Preempted")]),
        ("not configured", None, vec![admitted(), ready(1, "False", "WaitForStart")]),
    ];
    let lines = pages.map(|(name, rules, shown)| format!("{name:<30} {}", told(rules, &shown)));
    expect![[r#"
        waits                          shown false  due -   queued 0
        starts                         shown false  due 35  queued 0
        starts, and nobody says more   shown false  due 35  queued 0
        ready                          shown true   due -   queued 0
        lost one                       shown false  due 30  queued 0
        lost one, no matter            shown false  due -   queued 0
        evicted                        shown false  due -   queued 40
        evicted, keeps its place       shown false  due -   queued 0
        evicted otherwise              shown false  due -   queued 0
        not configured                 shown false  due -   queued 0
    "#]]
    .assert_eq(&lines.concat());
}

#[test]
fn whoever_was_put_back_as_often_as_it_may_is_not_put_back_once_more() {
    let may = |limit: Option<u32>, status: Value| {
        let mut rules = rules();
        rules.requeuing.limit = limit;
        let world = world(Some(rules), &status);
        let composed = world.gang_of(&Root::Workload("ns".into(), "w".into())).unwrap();
        !world.is_put_back_too_often(&composed.parts)
    };
    let times = |count: i32| json!({ "requeueState": { "count": count } });
    assert!(may(Some(2), json!({})) && may(Some(2), times(1)) && !may(Some(2), times(2)));
    assert!(!may(Some(0), json!({})));
    assert!(may(None, times(99)));
}
