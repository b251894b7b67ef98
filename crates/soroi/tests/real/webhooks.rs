//! Admission and conversion over HTTPS, and what goes on while nobody answers.

use expect_test::expect;
use serde_json::{Value, json};

use crate::board::text;
use crate::installed::{manifests, webhooks, webhooks_of_a_service};
use crate::plane::{Plane, job, pause};
use crate::product::{Product, SHORT};

const OLD_QUEUE: &str = "
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: old}
spec: {cohort: all, admissionChecks: [sample], flavorFungibility: {whenCanBorrow: Borrow}}
";
const NEW_QUEUE: &str = "
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: new}
spec: {cohortName: all}
";

/// A Job that asks for no queue.
fn plain() -> Value {
    let mut job = job("plain", "-", 1, "1h");
    job["metadata"]["labels"] = json!({});
    job["spec"]["template"]["spec"]["containers"][0]["resources"] = json!({});
    job
}

fn pod(name: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": name, "namespace": "default" },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
    })
}

/// What kubectl says of something that must be refused.
fn refused(plane: &Plane, arguments: &[&str], input: Option<&str>) -> String {
    plane.try_kubectl(arguments, input).expect_err("it must be refused")
}

fn spec(plane: &Plane, version: &str, name: &str) -> String {
    let kind = format!("clusterqueues.{version}.kueue.x-k8s.io");
    let read = plane.kubectl(&["get", &kind, name, "-o", "json"]);
    let mut read: Value = serde_json::from_str(&read).unwrap();
    let spec = read["spec"].as_object_mut().unwrap();
    spec.retain(|field, _| field != "preemption");
    format!("{} {}\n", text(&read["apiVersion"]), read["spec"])
}

fn suspended(plane: &Plane, name: &str) -> bool {
    plane.kubectl(&["get", "job", name, "-o", "jsonpath={.spec.suspend}"]) == "true"
}

/// What must go on while Soroi is down, whoever gives Jobs their defaults (case 55 of those that the
/// project started from: a Kueue that was down blocked all Jobs).
fn unmanaged_goes_on(plane: &Plane) {
    plane.create(&plain());
    plane.create(&pod("unmanaged"));
    plane.wait(20, "they run", || {
        let pods = plane.list("pods");
        let runs = |pod: &&Value| pod["status"]["phase"] == "Running";
        let ours = |pod: &&Value| {
            text(&pod["metadata"]["name"]).starts_with("plain") || pod["metadata"]["name"] == "unmanaged"
        };
        pods.iter().filter(ours).filter(runs).count() == 2
    });
    plane.apply(NEW_QUEUE);
    plane.kubectl(&["annotate", "clusterqueue", "new", "seen=yes"]);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn fields_are_judged_and_old_clients_are_served() {
    let plane = Plane::up("webhooks");
    let settings = format!("{SHORT}{}", webhooks(", certificateLifetime: 15s"));
    plane.install(&manifests(&plane, &settings, &[]));
    let account = plane.account();
    let product = Product::under_account(&plane, "soroi", &settings, &account);
    plane.wait(30, "admission works", || product.said().contains("admission works"));
    plane.apply(include_str!("queues.yaml"));

    // v1beta1 both ways.
    plane.apply(OLD_QUEUE);
    plane.apply(NEW_QUEUE);
    let mut told = String::new();
    for (version, name) in [("v1beta2", "old"), ("v1beta1", "old"), ("v1beta1", "new")] {
        told += &spec(&plane, version, name);
    }
    let patch = r#"{"spec":{"cohort":"other"}}"#;
    plane.kubectl(&["patch", "clusterqueues.v1beta1.kueue.x-k8s.io", "new", "--type=merge", "-p", patch]);
    told += &spec(&plane, "v1beta2", "new");
    expect![[r#"
        kueue.x-k8s.io/v1beta2 {"admissionChecksStrategy":{"admissionChecks":[{"name":"sample"}]},"cohortName":"all","flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"},"queueingStrategy":"BestEffortFIFO","stopPolicy":"None"}
        kueue.x-k8s.io/v1beta1 {"admissionChecksStrategy":{"admissionChecks":[{"name":"sample"}]},"cohort":"all","flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"},"queueingStrategy":"BestEffortFIFO","stopPolicy":"None"}
        kueue.x-k8s.io/v1beta1 {"cohort":"all","flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"},"queueingStrategy":"BestEffortFIFO","stopPolicy":"None"}
        kueue.x-k8s.io/v1beta2 {"cohortName":"other","flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"TryNextFlavor"},"queueingStrategy":"BestEffortFIFO","stopPolicy":"None"}
    "#]].assert_eq(&told);
    plane.kubectl(&["delete", "clusterqueue", "old", "new"]);

    // What neither schema nor policy says.
    plane.create(&job("train", "team-a", 1, "1h"));
    plane.wait(20, "it runs", || !suspended(&plane, "train"));
    let mut told =
        refused(&plane, &["label", "job", "train", "kueue.x-k8s.io/queue-name=b", "--overwrite"], None);
    told += "\n";
    let mut bad = job("bad", "team-a", 2, "1h");
    bad["metadata"]["annotations"] = json!({ "kueue.x-k8s.io/job-min-parallelism": "9" });
    told += &refused(&plane, &["create", "-f", "-"], Some(&bad.to_string()));
    told += "\n";
    told += &refused(&plane, &["delete", "queues.scheduling.volcano.sh", "default"], None);
    told += "\n";
    let mut member = pod("member");
    member["metadata"]["annotations"] = json!({ "scheduling.k8s.io/group-name": "nobody" });
    plane.create(&member);
    let move_it = ["annotate", "pod", "member", "scheduling.k8s.io/group-name=other", "--overwrite"];
    told += &refused(&plane, &move_it, None);
    plane.kubectl(&["annotate", "pod", "member", "note=harmless"]);
    plane.kubectl(&["delete", "pod", "member", "--now"]);
    expect![[r#"
        The request is invalid: metadata.labels[kueue.x-k8s.io/queue-name]: Forbidden: is immutable while the job is not suspended
        The request is invalid: metadata.annotations[kueue.x-k8s.io/job-min-parallelism]: Invalid value: "9": must be a number from 1 to 1, less than the parallelism
        Error from server (Forbidden): admission webhook "kinds.soroi.dev" denied the request: queues.scheduling.volcano.sh "default" is forbidden: this queue cannot be deleted
        The request is invalid: metadata.annotations[scheduling.k8s.io/group-name]: Forbidden: is immutable"#]].assert_eq(&told);

    // Certificates are renewed while it runs; each time the API server is told first.
    plane.wait(40, "the certificate is renewed", || {
        product.said().matches("certificate was renewed").count() > 2
    });
    refused(&plane, &["label", "job", "train", "kueue.x-k8s.io/queue-name=b", "--overwrite"], None);

    drop(product);
    unmanaged_goes_on(&plane);
    plane.create(&job("waits", "team-a", 1, "1h"));
    assert!(suspended(&plane, "waits"), "the policy does it");
    let said = refused(&plane, &["apply", "-f", "-"], Some(OLD_QUEUE));
    assert!(said.contains("conversion webhook"), "{said}");

    // Back after the certificate has expired.
    pause(16_000);
    let product = Product::under_account(&plane, "soroi", &settings, &account);
    plane.wait(30, "it is renewed", || product.said().matches("certificate was renewed").count() > 3);
    plane.wait(30, "the job that waited runs", || !suspended(&plane, "waits"));
    plane.wait(30, "fields are judged again", || {
        plane
            .try_kubectl(
                &["label", "job", "train", "kueue.x-k8s.io/queue-name=b", "--overwrite", "--dry-run=server"],
                None,
            )
            .is_err()
    });
    plane.apply(OLD_QUEUE);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn without_policies_webhooks_give_the_defaults_through_their_service() {
    let plane = Plane::up("webhook-defaults");
    let through = webhooks_of_a_service();
    let settings = through.as_ref().map_or_else(|| webhooks(""), |(settings, ..)| settings.clone());
    let settings = format!("{SHORT}{settings}");
    plane.install(&manifests(&plane, &settings, &["--defaults", "webhooks"]));
    match through {
        Some((_, address, port)) => plane.endpoint(address, port),
        None => println!("this machine has no address but loopback: the Service is left out"),
    }
    assert_eq!(plane.list("mutatingadmissionpolicies"), Vec::<Value>::new());
    let product = Product::under_account(&plane, "soroi", &settings, &plane.account());
    plane.wait(30, "admission works", || product.said().contains("admission works"));
    plane.apply(include_str!("queues.yaml"));
    plane.create(&job("train", "team-a", 4, "1h"));
    plane.wait(30, "its pods run", || {
        let ours =
            |pod: &&Value| pod["spec"]["schedulerName"] == "soroi" && pod["status"]["phase"] == "Running";
        plane.list("pods").iter().filter(ours).count() == 4
    });
    drop(product);
    unmanaged_goes_on(&plane);
    let said = refused(&plane, &["create", "-f", "-"], Some(&job("late", "team-a", 1, "1h").to_string()));
    assert!(said.contains("jobs.soroi.dev"), "{said}");
}
