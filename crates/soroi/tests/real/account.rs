//! Soroi under its own account: what `soroi manifests` installs is enough, and nothing is forbidden.

use serde_json::{Value, json};

use crate::board::{holds, text};
use crate::installed::{manifests, webhooks};
use crate::plane::{Plane, hog, job, pause};
use crate::product::{Product, SHORT};

fn group(name: &str, members: u32) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minMember": members },
    })
}

/// `keys`: the group, and the LocalQueue that pays, if any.
fn member(name: &str, group: Option<&str>, queue: Option<&str>) -> Value {
    let scheduler = if group.is_some() { "soroi" } else { "volcano" };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": {}, "annotations": {} },
        "spec": { "schedulerName": scheduler, "containers": [{
            "name": "main", "image": "trainer",
            "resources": {
                "requests": { "cpu": "10m", "memory": "1Mi" }, "limits": { "example.com/gpu": "1" },
            },
        }] },
    });
    if let Some(group) = group {
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group.into();
    }
    if let Some(queue) = queue {
        pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue.into();
    }
    pod
}

fn bound(plane: &Plane) -> usize {
    plane.list("pods").iter().filter(|pod| !text(&pod["spec"]["nodeName"]).is_empty()).count()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn what_is_installed_is_enough_and_nothing_is_forbidden() {
    let plane = Plane::up("account");
    let settings =
        format!("{SHORT}{}timeouts: {{start: 2s}}\nundoBackoff: {{min: 30s, max: 60s}}\n", webhooks(""));
    plane.install(&manifests(&plane, &settings, &[]));
    let before = plane.forbidden();
    let product = Product::under_account(&plane, "soroi", &settings, &plane.account());
    plane.wait(30, "admission works", || product.said().contains("admission works"));
    plane.apply(include_str!("queues.yaml"));

    // A Job waits for the hog, starts as a whole, is switched off and leaves.
    plane.create(&hog("worker1"));
    plane.create(&job("train", "team-a", 4, "1h"));
    let pending = || {
        plane.list("workloads").iter().any(|one| text(&one["status"]["conditions"][0]["reason"]) == "Pending")
    };
    plane.wait(20, "it waits", pending);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.wait(20, "the gang runs", || bound(&plane) == 4 && plane.list("gangplans").len() == 1);
    let workload = text(&plane.list("workloads")[0]["metadata"]["name"]).to_owned();
    plane.kubectl(&["patch", "workload", &workload, "--type=merge", "-p", r#"{"spec":{"active":false}}"#]);
    let left = || plane.list("gangplans").is_empty() && plane.list("jobs")[0]["spec"]["suspend"] == true;
    plane.wait(20, "it has left", left);
    plane.kubectl(&["delete", "job", "train"]);
    // Garbage collection learns of new kinds every 30 s.
    plane.wait(60, "its Workload is gone", || plane.list("workloads").is_empty());

    // A group that pays in a queue, and one that does not; a pod of Volcano's for which a group is made.
    plane.create(&group("paid", 2));
    for name in ["paid-0", "paid-1"] {
        plane.create(&member(name, Some("paid"), Some("team-a")));
    }
    plane.wait(20, "the paid group runs", || bound(&plane) == 2);
    plane.create(&group("free", 1));
    plane.create(&member("free-0", Some("free"), None));
    plane.create(&member("alone", None, None));
    plane.wait(20, "all run", || bound(&plane) == 4);
    assert!(plane.list("podgroups").len() == 3);
    // One of the paid group's pods goes and is not replaced: the rest is taken back.
    plane.kubectl(&["delete", "pod", "paid-0"]);
    plane.kubectl(&["delete", "podgroup", "--all"]);
    plane.kubectl(&["delete", "pods", "--all"]);
    plane.wait(30, "nothing is left", || {
        plane.list("gangplans").is_empty() && plane.list("workloads").is_empty()
    });

    // A gang that does not come about: half of its pods are refused.
    plane.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {pods: '2'}}}");
    plane.create(&job("half", "team-b", 4, "1h"));
    let undone = || {
        plane.list("jobs").iter().any(|job| holds(job, "Suspended"))
            && product.said().contains("StartTimeout")
    };
    plane.wait(30, "it was released", || plane.list("gangplans").len() == 1);
    plane.wait(30, "it was taken back", || plane.list("gangplans").is_empty() && undone());
    plane.kubectl(&["delete", "job", "half"]);

    // What was used can be taken away.
    for kind in ["localqueue", "clusterqueue", "resourceflavor", "topology"] {
        plane.kubectl(&["delete", kind, "--all", "--timeout=30s"]);
    }
    pause(1_000);
    assert_eq!(plane.forbidden(), before, "{}", product.said());
    let all = manifests(&plane, &settings, &[]);
    let removed = plane.try_kubectl(&["delete", "--timeout=60s", "-f", "-"], Some(&all));
    removed.unwrap_or_else(|error| panic!("{error}"));
}
