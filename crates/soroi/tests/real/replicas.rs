//! Several replicas, and rivals.

use std::time::Duration;

use serde_json::json;

use crate::board::{holds, text};
use crate::plane::{Plane, job, pause};
use crate::product::{Product, SHORT};

fn epoch(plane: &Plane) -> i64 {
    let lease = plane.kubectl(&[
        "get",
        "lease",
        "soroi",
        "-n",
        "soroi-system",
        "-o",
        "jsonpath={.spec.leaseTransitions}",
    ]);
    lease.parse().unwrap()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn one_of_two_leads_and_the_other_takes_over() {
    let plane = Plane::up("replicas");
    let first = Product::start(&plane, "first", SHORT);
    let second = Product::start(&plane, "second", SHORT);
    assert!(first.leads() && !second.leads());
    assert!(second.get("/readyz").contains("200 OK"), "a follower is ready");
    plane.apply(include_str!("queues.yaml"));
    plane.create(&job("one", "team-a", 2, "1h"));
    plane.wait(20, "the first one is admitted", || {
        plane.list("workloads").iter().any(|one| holds(one, "Admitted"))
    });
    assert_eq!(epoch(&plane), 1);

    first.kill();
    let took = plane.wait(20, "the second leads", || second.leads());
    // Lease and request time-out, and a second to read the cluster.
    assert!(took < Duration::from_secs(2 + 1 + 1), "taking over took {took:?}");
    assert_eq!(epoch(&plane), 2);
    plane.create(&job("two", "team-a", 2, "1h"));
    plane.wait(20, "the second one is admitted", || {
        plane.list("workloads").iter().filter(|one| holds(one, "Admitted")).count() == 2
    });
    let plans = plane.list("gangplans");
    let mut epochs: Vec<i64> = plans.iter().filter_map(|plan| plan["spec"]["leaderEpoch"].as_i64()).collect();
    epochs.sort_unstable();
    assert_eq!(epochs, [1, 2]);

    // Who is asked to end gives the lease back.
    let third = Product::start(&plane, "third", SHORT);
    let (status, took) = second.terminate();
    assert!(status.success() && took < Duration::from_secs(3), "{status} after {took:?}");
    let took = plane.wait(20, "the third leads", || third.leads());
    assert!(took < Duration::from_secs(2), "taking over took {took:?}");
    assert_eq!(epoch(&plane), 3);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn soroi_does_not_run_beside_kueue() {
    let plane = Plane::up("rivals");
    plane.kubectl(&["create", "namespace", "kueue-system"]);
    let lease = |renewed: &str| {
        json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": { "name": "c1f6bfd2.kueue.x-k8s.io", "namespace": "kueue-system" },
            "spec": { "holderIdentity": "kueue_1", "leaseDurationSeconds": 15, "renewTime": renewed },
        })
    };
    let now = || {
        let now = plane.kubectl(&["create", "configmap", "now", "--dry-run=server", "-o", "json"]);
        let now: serde_json::Value = serde_json::from_str(&now).unwrap();
        text(&now["metadata"]["creationTimestamp"]).replace('Z', ".000000Z")
    };
    plane.create(&lease(&now()));
    let (said, status) = Product::refused(&plane, "soroi", "");
    assert!(!status.success());
    assert!(said.contains("it holds the lease kueue-system/c1f6bfd2.kueue.x-k8s.io"), "{said}");

    // One that was left behind does not hold it up for longer than it would have lasted.
    plane.apply(&lease("2020-01-01T00:00:00.000000Z").to_string());
    let product = Product::start(&plane, "soroi", SHORT);
    assert!(product.leads());
    // Kueue comes back: Soroi goes.
    plane.apply(&lease(&now()).to_string());
    plane.wait(20, "Soroi ends", || product.get("/healthz").is_empty());
    pause(100);
    let said = std::fs::read_to_string(&product.log).unwrap();
    assert!(said.contains("it holds the lease kueue-system/c1f6bfd2.kueue.x-k8s.io"), "{said}");
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_mistake_in_the_configuration_is_named() {
    let plane = Plane::up("configuration");
    let (said, status) = Product::refused(&plane, "soroi", "timeouts: {recovry: 5s}");
    assert!(!status.success());
    assert!(said.contains("timeouts.recovry: unknown field `recovry`, expected one of"), "{said}");
}
