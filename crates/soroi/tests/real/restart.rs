//! `kill -9` at any moment, and a start afterwards.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::board::{holds, name, text};
use crate::plane::{Plane, job, pause};
use crate::product::{Product, SHORT};

/// Node by uid, for the pods that have one.
pub fn bound(plane: &Plane) -> BTreeMap<String, String> {
    let pods = plane.list("pods");
    let bound = pods.iter().filter(|pod| !pod["spec"]["nodeName"].is_null());
    bound
        .map(|pod| (text(&pod["metadata"]["uid"]).to_owned(), text(&pod["spec"]["nodeName"]).to_owned()))
        .collect()
}

/// A gang of 60 pods that need no GPU: long enough on its way to be met anywhere.
fn large(name: &str) -> Value {
    gang(name, 60)
}

/// A gang of pods that need no GPU.
pub fn gang(name: &str, pods: u32) -> Value {
    let mut job = job(name, "team-a", pods, "1h");
    job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"] = json!({});
    job
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_gang_is_finished_whenever_its_leader_is_killed() {
    let plane = Plane::up("restart");
    let mut product = Product::start(&plane, "soroi", SHORT);
    plane.apply(include_str!("queues.yaml"));
    let mut met = Vec::new();
    for (round, millis) in [0, 60, 120, 200, 300, 450, 700, 1200].into_iter().enumerate() {
        let gang = format!("gang-{round}");
        plane.create(&large(&gang));
        pause(millis);
        product.kill();
        let before = bound(&plane);
        met.push(before.len());
        product = Product::start(&plane, "soroi", SHORT);
        plane.wait(30, "all pods of the gang are bound", || bound(&plane).len() == 60);
        let after = bound(&plane);
        assert!(before.iter().all(|(uid, node)| after.get(uid) == Some(node)), "a bound pod was lost");
        plane.wait(10, "the plan is settled", || {
            let plans = plane.list("gangplans");
            plans.len() == 1 && plans.iter().all(|plan| plan["status"]["phase"] == "Settled")
        });
        let workloads = plane.list("workloads");
        assert!(workloads.len() == 1 && holds(&workloads[0], "Admitted"), "{workloads:#?}");
        plane.kubectl(&["delete", "job", &gang]);
        // kube-controller-manager collects objects of a new definition only once it knows of it; it
        // looks every 30 s.
        plane.wait(60, "nothing of the gang is left", || {
            ["pods", "workloads", "gangplans", "jobs"].iter().all(|kind| plane.list(kind).is_empty())
        });
        plane.wait(10, "no quota is held", || {
            let queues = plane.list("clusterqueues");
            let queue = queues.iter().find(|queue| name(queue) == "gpu-queue").unwrap();
            let resources = queue["status"]["flavorsReservation"][0]["resources"].as_array().cloned();
            resources.unwrap_or_default().iter().all(|one| one["total"] == "0")
        });
    }
    println!("pods bound when the leader was killed: {met:?}");
}
