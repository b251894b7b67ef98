//! Beside kube-scheduler: pods that nobody queues come and go on the same nodes while gangs start.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::board::{holds, name, text};
use crate::plane::{Plane, job, pause};
use crate::product::Product;

const NODES: usize = 4;
const GPUS_PER_NODE: usize = 8;
/// A steady stream, so that some pod is placed at whatever moment a gang starts; together with the
/// gangs they want more GPUs than there are. Three thousand pods in all.
const WAVES: usize = 250;
const PODS_PER_WAVE: usize = 12;
const GANGS: usize = 30;
const MEMBERS: usize = 8;
/// How long a gang may be seen below its minimum: until a refused member may be made anew (10 s, the
/// Job controller's pause) and a while on a slow machine.
const PARTLY_MAX: Duration = Duration::from_secs(30);

fn nodes() -> String {
    let nodes = (1..=NODES).map(|at| {
        let amount =
            json!({ "cpu": "32", "memory": "64Gi", "pods": "110", "example.com/gpu": GPUS_PER_NODE.to_string() });
        let host = format!("worker{at}");
        json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": host, "labels": { "kubernetes.io/hostname": host } },
            "status": { "capacity": amount, "allocatable": amount },
        })
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": nodes.collect::<Vec<Value>>() }).to_string()
}

/// Pods that kube-scheduler places, each with a GPU for a second or two.
fn wave(at: usize) -> Value {
    let pods = (0..PODS_PER_WAVE).map(|pod| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": format!("crowd-{at}-{pod}"), "namespace": "default",
                "labels": { "crowd": at.to_string() },
                "annotations": { "soroi.dev/run-for": format!("{}s", 1 + pod % 2) },
            },
            "spec": { "restartPolicy": "Never", "containers": [{
                "name": "main", "image": "crowd", "resources": { "limits": { "example.com/gpu": "1" } },
            }] },
        })
    });
    json!({ "apiVersion": "v1", "kind": "List", "items": pods.collect::<Vec<Value>>() })
}

/// A few more come, and of those that have run not all are kept.
fn come_and_go(plane: &Plane, at: usize) {
    plane.create(&wave(at));
    if at % 20 == 19 {
        let ran =
            ["delete", "pods", "--selector=crowd", "--field-selector=status.phase=Succeeded", "--wait=false"];
        plane.kubectl(&ran);
    }
}

/// Every third one fails as a whole when it loses a member.
fn racer(at: usize) -> Value {
    let mut job = job(&format!("gang-{at}"), "team-a", u32::try_from(MEMBERS).unwrap(), "3s");
    if at.is_multiple_of(3) {
        job["spec"]["backoffLimit"] = 0.into();
    }
    job
}

/// How long each gang has been seen with some of its members, but not all.
#[derive(Default)]
struct Partly {
    since: BTreeMap<String, Instant>,
    longest: Duration,
}

impl Partly {
    fn look(&mut self, plane: &Plane) {
        let mut members: BTreeMap<String, usize> = BTreeMap::new();
        for pod in plane.list("pods") {
            let job = text(&pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]).to_owned();
            let counts = !pod["spec"]["nodeName"].is_null() && text(&pod["status"]["phase"]) != "Failed";
            if !job.is_empty() && counts {
                *members.entry(job).or_default() += 1;
            }
        }
        self.since.retain(|job, _| members.get(job).is_some_and(|count| *count < MEMBERS));
        for (job, _) in members.into_iter().filter(|(_, count)| *count < MEMBERS) {
            let since = *self.since.entry(job).or_insert_with(Instant::now);
            self.longest = self.longest.max(since.elapsed());
        }
    }
}

/// What kubelets refused, by the scheduler that had sent it there.
fn refused(plane: &Plane) -> BTreeMap<String, usize> {
    let mut refused = BTreeMap::new();
    for pod in plane.list("pods") {
        if text(&pod["status"]["reason"]).starts_with("OutOf") {
            *refused.entry(text(&pod["spec"]["schedulerName"]).to_owned()).or_default() += 1;
        }
    }
    refused
}

/// Lines of the metrics that count binds which the API server did not take.
fn binds_not_taken(product: &Product) -> Vec<String> {
    let metrics = product.get("/metrics");
    let lines = metrics.lines().filter(|line| line.contains("soroi_requests_total") && line.contains("bind"));
    lines.map(str::to_owned).collect()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn gangs_start_whole_in_a_crowd_of_single_pods() {
    let plane = Plane::bare("race", &[]);
    plane.apply(&nodes());
    plane.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=30s"]);
    let product = Product::start(&plane, "soroi", "");
    let quota = NODES * GPUS_PER_NODE;
    let queues = include_str!("queues.yaml");
    plane.apply(&queues.replace("nominalQuota: 4}", &format!("nominalQuota: {quota}}}")));
    let mut partly = Partly::default();
    std::thread::scope(|scope| {
        let crowd = scope.spawn(|| (0..WAVES).for_each(|at| come_and_go(&plane, at)));
        for at in 0..GANGS {
            plane.create(&racer(at));
            let began = Instant::now();
            while began.elapsed() < Duration::from_millis(2_000) {
                partly.look(&plane);
                pause(50);
            }
        }
        while !crowd.is_finished() {
            partly.look(&plane);
            pause(50);
        }
    });
    println!("in the crowd: kubelets refused {:?}; binds: {:?}", refused(&plane), binds_not_taken(&product));
    plane.wait(120, "every gang has ended", || {
        partly.look(&plane);
        let ended = |job: &Value| holds(job, "Complete") || holds(job, "Failed");
        plane.list("jobs").iter().filter(|job| ended(job)).count() == GANGS
    });
    println!("afterwards: kubelets refused {:?}; binds: {:?}", refused(&plane), binds_not_taken(&product));
    println!("a gang was seen partly there for {:?} at most", partly.longest);
    assert!(partly.longest < PARTLY_MAX, "a gang was partly there for {:?}", partly.longest);
    for job in plane.list("jobs") {
        let (done, failed) = (&job["status"]["succeeded"], &job["status"]["failed"]);
        println!("{}: succeeded {done} failed {failed}", name(&job));
        // Whole, or failed because its own budget allowed no loss.
        assert!(holds(&job, "Complete") || job["spec"]["backoffLimit"] == 0, "{job:#}");
        assert!(!holds(&job, "Complete") || *done == MEMBERS, "{job:#}");
    }
    plane.wait(10, "all is given back", || {
        let queues = plane.list("clusterqueues");
        let queue = queues.iter().find(|queue| name(queue) == "gpu-queue").unwrap();
        let resources = queue["status"]["flavorsReservation"][0]["resources"].as_array().cloned();
        let empty = resources.unwrap_or_default().iter().all(|one| one["total"] == "0");
        empty && plane.list("gangplans").is_empty()
    });
    assert!(!product.said().contains("panicked"), "see {}", product.log.display());
}
