//! Bad days: the leader, the API server and etcd fail in the middle of a gang. Nobody helps.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::board::{holds, text};
use crate::parts::Watch;
use crate::plane::{Plane, hog, job, pause};
use crate::product::Product;
use crate::restart::{bound, gang};

/// What of the leader's is over before another one may lead, and the second that it needs then.
const fn recovery(lease: u64, request: u64) -> Duration {
    Duration::from_secs(lease + request + 1)
}

/// Members of a gang that a leader is met with while it binds them.
const PODS: usize = 40;

/// A lease of 15 s and a request time-out of 5 s. The few writes at once make it possible to meet a
/// leader while it binds.
const DEFAULTS: &str = "requests: {inFlight: 6}";

/// A short lease, to tell a story several times.
const SHORT: &str = "
leaderElection: {leaseDuration: 2s, renewEvery: 400ms}
requests: {timeout: 1s, inFlight: 6}
";

/// Node by uid of all pods, the unbound ones too; none of them on its way out.
fn pods(plane: &Plane) -> BTreeMap<String, String> {
    let pods = plane.list("pods");
    assert!(pods.iter().all(|pod| pod["metadata"]["deletionTimestamp"].is_null()), "a pod is deleted");
    pods.iter()
        .map(|pod| (text(&pod["metadata"]["uid"]).to_owned(), text(&pod["spec"]["nodeName"]).to_owned()))
        .collect()
}

/// Kills the leader when so many pods of a new gang are bound: how many were, and how long it took
/// the other one to bind the rest. All pods before belong to whole gangs.
fn kill_while_binding(plane: &Plane, watch: &mut Watch, first: Product, at: usize) -> (usize, Duration) {
    let others = pods(plane).len();
    plane.create(&gang(&format!("gang-{at}"), u32::try_from(PODS).unwrap()));
    watch.bound(others + at);
    first.kill();
    let killed = Instant::now();
    let before = pods(plane);
    let met = before.values().filter(|node| !node.is_empty()).count() - others;
    watch.bound(others + PODS);
    let took = killed.elapsed();
    let after = pods(plane);
    assert!(before.keys().eq(after.keys()), "a pod was lost or made anew");
    let kept = before.iter().all(|(uid, node)| node.is_empty() || after[uid] == *node);
    assert!(kept, "a bound pod has another node");
    (met, took)
}

/// Jobs are deleted, and nothing of them stays.
fn leaves_nothing(plane: &Plane) {
    plane.kubectl(&["delete", "jobs", "--all", "--wait=false"]);
    plane.wait(90, "nothing of the gangs is left", || {
        ["pods", "workloads", "gangplans", "jobs"].iter().all(|kind| plane.list(kind).is_empty())
    });
    plane.wait(10, "no quota is held", || {
        let queues = plane.list("clusterqueues");
        let used = |queue: &Value| {
            let resources = queue["status"]["flavorsReservation"][0]["resources"].as_array().cloned();
            resources.unwrap_or_default().iter().any(|one| one["total"] != "0")
        };
        queues.iter().all(|queue| !used(queue))
    });
}

/// All is settled: every plan, every Workload.
fn settled(plane: &Plane) -> bool {
    let plans = plane.list("gangplans");
    let workloads = plane.list("workloads");
    plans.iter().all(|plan| plan["status"]["phase"] == "Settled")
        && workloads.iter().all(|workload| holds(workload, "Admitted"))
        && plans.len() == workloads.len()
}

/// Kills one leader after the other, each while it binds a gang. The clocks of the replicas are wrong
/// by so many seconds in turn.
fn other_replica_finishes(story: &str, settings: &str, limit: Duration, kills: &[usize], wrong: &[i64]) {
    let plane = Plane::up(story);
    let start = |at: usize| {
        let name = format!("replica-{at}");
        match wrong[at % wrong.len()] {
            0 => Product::start(&plane, &name, settings),
            secs => Product::with_wrong_clock(&plane, &name, settings, secs),
        }
    };
    let (mut first, mut second) = (start(0), start(1));
    plane.apply(include_str!("queues.yaml"));
    let mut watch = plane.watch_pods();
    let mut told = Vec::new();
    for (round, at) in kills.iter().enumerate() {
        assert!(first.leads() && !second.leads());
        let (met, took) = kill_while_binding(&plane, &mut watch, first, *at);
        assert!(took < limit, "killed with {met} of {PODS} bound; the rest took {took:?}");
        plane.wait(10, "all is settled", || settled(&plane));
        let jobs = plane.list("jobs");
        assert!(jobs.iter().all(|job| job["status"]["failed"].is_null()), "{jobs:#?}");
        told.push((met, took));
        first = second;
        second = start(round + 2);
    }
    leaves_nothing(&plane);
    eprintln!("{story}: pods bound when the leader was killed, and the time until all were: {told:?}");
    assert!(told.iter().any(|(met, _)| (1..PODS).contains(met)), "never met while binding: {told:?}");
}

/// With the defaults, a lease of 15 s and a request time-out of 5 s: all is bound 21 s after the
/// leader was killed, at the latest.
#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn the_other_replica_finishes_what_a_killed_leader_began() {
    other_replica_finishes("bad-leader", DEFAULTS, recovery(15, 5), &[10], &[0]);
}

/// With a lease of 2 s and a request time-out of 1 s: after 4 s, and two more where many control
/// planes share a machine.
fn soon() -> Duration {
    recovery(2, 1) + Duration::from_secs(2)
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_short_lease_makes_that_quick() {
    other_replica_finishes("bad-leaders", SHORT, soon(), &[1, 10, 20], &[0]);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_clock_that_is_ten_minutes_wrong_delays_nothing() {
    let clocks = [0, 600, -600];
    other_replica_finishes("bad-clocks", SHORT, soon(), &[1, 10, 20], &clocks);
}

/// A machine that stops and goes on: the leader comes back after another one took over, with writes
/// that were on their way when it stopped.
#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_leader_that_wakes_up_late_does_no_harm() {
    let plane = Plane::up("bad-sleep");
    let mut first = Product::start(&plane, "first", SHORT);
    let mut second = Product::start(&plane, "second", SHORT);
    plane.apply(include_str!("queues.yaml"));
    let mut watch = plane.watch_pods();
    for at in [1, 10, 20] {
        assert!(first.leads() && !second.leads());
        let others = pods(&plane).len();
        plane.create(&gang(&format!("gang-{at}"), u32::try_from(PODS).unwrap()));
        watch.bound(others + at);
        first.signal("-STOP");
        let stopped = Instant::now();
        watch.bound(others + PODS);
        println!("asleep with {at} or more of {PODS} bound; whole after {:?}", stopped.elapsed());
        plane.wait(20, "all is settled", || settled(&plane) && second.leads());
        let before = pods(&plane);
        first.signal("-CONT");
        pause(3_000);
        assert_eq!(pods(&plane), before, "a pod was lost, made anew or bound elsewhere");
        assert!(first.ended().is_none() && !first.leads() && second.leads());
        std::mem::swap(&mut first, &mut second);
    }
    leaves_nothing(&plane);
}

/// The most GPUs that pods on one node have, finished ones aside.
fn gpus_on_a_node(plane: &Plane) -> u32 {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for pod in plane.list("pods") {
        let gpus = text(&pod["spec"]["containers"][0]["resources"]["limits"]["example.com/gpu"]).parse();
        let ended = matches!(text(&pod["status"]["phase"]), "Succeeded" | "Failed");
        if !pod["spec"]["nodeName"].is_null() && !ended {
            *used.entry(text(&pod["spec"]["nodeName"]).to_owned()).or_default() += gpus.unwrap_or(0);
        }
    }
    used.into_values().max().unwrap_or(0)
}

/// While one gang waits for the hog's GPU and another one is being bound, something happens to the
/// control plane. Afterwards all is as if it had not.
fn outlives(story: &str, settings: &str, outage: impl FnOnce(&Plane)) {
    let plane = Plane::up(story);
    let mut replicas =
        [Product::start(&plane, "first", settings), Product::start(&plane, "second", settings)];
    plane.apply(include_str!("queues.yaml"));
    plane.create(&hog("worker1"));
    plane.create(&job("train", "team-a", 4, "1h"));
    plane.wait(20, "the first gang waits", || plane.list("workloads").len() == 1);
    let mut watch = plane.watch_pods();
    plane.create(&gang("large", u32::try_from(PODS).unwrap()));
    // The hog is the first.
    watch.bound(10);
    let began = Instant::now();
    outage(&plane);
    let over = Instant::now();
    plane.wait(90, "the large gang is whole", || bound(&plane).len() == PODS + 1);
    eprintln!("{story}: out for {:?}, whole {:?} after that", over - began, over.elapsed());
    plane.wait(20, "one plan is settled", || {
        let plans = plane.list("gangplans");
        plans.len() == 1 && plans[0]["status"]["phase"] == "Settled"
    });
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.wait(30, "the gang that waited runs", || bound(&plane).len() == PODS + 4);
    assert_eq!(gpus_on_a_node(&plane), 2);
    plane.wait(10, "all is settled", || settled(&plane));
    let jobs = plane.list("jobs");
    assert!(jobs.iter().all(|job| job["status"]["failed"].is_null()), "{jobs:#?}");
    assert!(replicas.iter_mut().all(|replica| replica.ended().is_none()), "a replica has ended");
    assert_eq!(replicas.iter().filter(|replica| replica.leads()).count(), 1);
    leaves_nothing(&plane);
    for replica in replicas {
        assert!(!replica.said().contains("panicked"), "see {}", replica.log.display());
    }
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn an_api_server_that_is_killed_and_comes_back_is_lived_through() {
    outlives("bad-api-server", SHORT, |plane| {
        let how = plane.kill_part("kube-apiserver");
        pause(4_000);
        plane.start_part("kube-apiserver", &how);
        plane.answers();
    });
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn etcd_may_be_silent_for_twenty_seconds() {
    outlives("bad-etcd", DEFAULTS, |plane| {
        plane.signal("etcd", "-STOP");
        pause(20_000);
        plane.signal("etcd", "-CONT");
        plane.answers();
    });
}
