//! The admission policies, as the real API server evaluates them.

use expect_test::expect;
use serde_json::{Value, json};

use crate::plane::{Plane, job};
use crate::product::{Product, SHORT};

/// What the API server would store, without storing it.
fn dry_run(plane: &Plane, object: &Value) -> Value {
    let arguments = ["create", "--dry-run=server", "-o", "json", "-f", "-"];
    let stored = plane.try_kubectl(&arguments, Some(&object.to_string())).unwrap();
    serde_json::from_str(&stored).unwrap()
}

/// What our own webhook makes of an object, in a namespace with a default queue or without.
fn webhook(object: &Value, default_queue: bool) -> Value {
    let (group, kind) = if object["kind"] == "Job" { ("batch", "Job") } else { ("", "Pod") };
    let review = soroi_webhook::Review {
        operation: soroi_webhook::Operation::Create,
        group,
        version: "v1",
        kind,
        subresource: "",
        namespace: "default",
        name: "x",
        object: Some(object),
        old_object: None,
        user: "admin",
        dry_run: true,
        default_queue,
    };
    soroi_webhook::default(&review).unwrap_or_else(|| object.clone())
}

fn with(mut object: Value, path: &str, value: Value) -> Value {
    let (parent, key) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[key] = value;
    object
}

fn pod(label: bool) -> Value {
    let labels = if label { json!({ "soroi.dev/gang": "some" }) } else { json!({}) };
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "x", "namespace": "default", "labels": labels },
        "spec": { "containers": [{ "name": "main", "image": "x" }] },
    })
}

fn owner(api_version: &str, kind: &str, controller: bool) -> Value {
    json!([{ "apiVersion": api_version, "kind": kind, "name": "o", "uid": "u", "controller": controller }])
}

/// Jobs that name no queue, where there is one for them.
fn in_a_namespace_with_a_default_queue(plane: &Plane) -> String {
    plane.kubectl(&["create", "namespace", "queued"]);
    let queue = json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": { "name": "default", "namespace": "queued" }, "spec": { "clusterQueue": "some" },
    });
    plane.create(&queue);
    let unlabelled = || {
        let moved = with(job("x", "team-a", 1, "1s"), "/metadata/namespace", json!("queued"));
        with(moved, "/metadata/labels", json!({ "app": "kept" }))
    };
    let queue = |job: &Value| job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"].clone();
    plane.wait(20, "the default queue is given", || queue(&dry_run(plane, &unlabelled())) == "default");
    let jobs = [
        ("without a queue", unlabelled()),
        ("without labels", with(unlabelled(), "/metadata/labels", json!({}))),
        ("suspended already", with(unlabelled(), "/spec/suspend", json!(true))),
        (
            "with an empty queue",
            with(unlabelled(), "/metadata/labels", json!({ "kueue.x-k8s.io/queue-name": "" })),
        ),
        (
            "with a queue",
            with(unlabelled(), "/metadata/labels", json!({ "kueue.x-k8s.io/queue-name": "own" })),
        ),
        ("run by another controller", with(unlabelled(), "/spec/managedBy", json!("example.com/other"))),
        ("owned by a job", with(unlabelled(), "/metadata/ownerReferences", owner("batch/v1", "Job", true))),
    ];
    let mut told = String::new();
    for (name, job) in jobs {
        let (real, ours) = (dry_run(plane, &job), webhook(&job, true));
        assert_eq!(queue(&real), queue(&ours), "{name}");
        assert_eq!(real["spec"]["suspend"] == true, ours["spec"]["suspend"] == true, "{name}");
        assert_eq!(real["metadata"]["labels"]["app"], job["metadata"]["labels"]["app"], "{name}");
        let suspended = if real["spec"]["suspend"] == true { "suspended" } else { "runs" };
        let queue = queue(&real);
        told.push_str(&format!("default: {name}: {}, {suspended}\n", queue.as_str().unwrap_or("none")));
    }
    told
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn policies_do_what_the_webhook_does() {
    let plane = Plane::up("admission");
    let product = Product::start(&plane, "soroi", SHORT);
    plane.wait(20, "admission works", || product.get("/metrics").contains("soroi_admission_works 1"));
    let managed = || job("x", "team-a", 1, "1s");
    // The policy for Jobs is another object, and may come into force a moment later.
    plane.wait(20, "Jobs are suspended", || dry_run(&plane, &managed())["spec"]["suspend"] == true);
    // Nothing but the policies answers now.
    product.kill();
    let unlabelled = with(managed(), "/metadata/labels", json!({}));
    let jobs = [
        ("a managed job", managed()),
        ("suspended already", with(managed(), "/spec/suspend", json!(true))),
        ("not suspended, as written", with(managed(), "/spec/suspend", json!(false))),
        ("without a queue", unlabelled),
        (
            "with an empty queue",
            with(managed(), "/metadata/labels", json!({ "kueue.x-k8s.io/queue-name": "" })),
        ),
        (
            "run by Kubernetes' own controller",
            with(managed(), "/spec/managedBy", json!("kubernetes.io/job-controller")),
        ),
        ("run by another controller", with(managed(), "/spec/managedBy", json!("kueue.x-k8s.io/multikueue"))),
        ("owned by a job", with(managed(), "/metadata/ownerReferences", owner("batch/v1", "Job", true))),
        (
            "owned by a group",
            with(
                managed(),
                "/metadata/ownerReferences",
                owner("scheduling.volcano.sh/v1beta1", "PodGroup", true),
            ),
        ),
        (
            "owned by something else",
            with(managed(), "/metadata/ownerReferences", owner("apps/v1", "Deployment", true)),
        ),
        (
            "owned, not controlled, by a job",
            with(managed(), "/metadata/ownerReferences", owner("batch/v1", "Job", false)),
        ),
    ];
    let mut told = String::new();
    for (name, job) in jobs {
        let (real, ours) = (dry_run(&plane, &job), webhook(&job, false));
        assert_eq!(real["spec"]["suspend"] == true, ours["spec"]["suspend"] == true, "{name}");
        told.push_str(&format!(
            "{name}: {}\n",
            if real["spec"]["suspend"] == true { "suspended" } else { "runs" }
        ));
    }
    told.push_str(&in_a_namespace_with_a_default_queue(&plane));
    let gate = json!([{ "name": "kueue.x-k8s.io/topology" }]);
    let other_gate = json!([{ "name": "example.com/gate" }]);
    let pods = [
        ("a released pod", pod(true)),
        ("without the label", pod(false)),
        ("names the default scheduler", with(pod(true), "/spec/schedulerName", json!("default-scheduler"))),
        ("names another scheduler", with(pod(true), "/spec/schedulerName", json!("mine"))),
        ("pinned to a domain", with(pod(true), "/spec/schedulingGates", gate)),
        ("gated otherwise", with(pod(true), "/spec/schedulingGates", other_gate)),
    ];
    for (name, pod) in pods {
        let (real, ours) = (dry_run(&plane, &pod), webhook(&pod, false));
        let scheduler =
            |pod: &Value| pod["spec"]["schedulerName"].as_str().unwrap_or("default-scheduler").to_owned();
        assert_eq!(scheduler(&real), scheduler(&ours), "{name}");
        told.push_str(&format!("{name}: {}\n", scheduler(&real)));
    }
    expect![[r#"
        a managed job: suspended
        suspended already: suspended
        not suspended, as written: suspended
        without a queue: runs
        with an empty queue: runs
        run by Kubernetes' own controller: suspended
        run by another controller: runs
        owned by a job: runs
        owned by a group: runs
        owned by something else: suspended
        owned, not controlled, by a job: suspended
        default: without a queue: default, suspended
        default: without labels: default, suspended
        default: suspended already: default, suspended
        default: with an empty queue: default, suspended
        default: with a queue: own, suspended
        default: run by another controller: none, runs
        default: owned by a job: none, runs
        a released pod: soroi
        without the label: default-scheduler
        names the default scheduler: soroi
        names another scheduler: mine
        pinned to a domain: default-scheduler
        gated otherwise: soroi
    "#]]
    .assert_eq(&told);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn nothing_is_released_while_the_policy_is_not_in_force() {
    let plane = Plane::up("admission-lost");
    let product = Product::start(&plane, "soroi", SHORT);
    plane.apply(include_str!("queues.yaml"));
    plane.kubectl(&["label", "clusterqueue", "topology-queue", "shown=no"]);
    plane.wait(20, "admission works", || product.get("/metrics").contains("soroi_admission_works 1"));
    let binding = "mutatingadmissionpolicybinding/pods.soroi.dev";
    let saved = plane.kubectl(&["get", binding, "-o", "yaml"]);
    plane.kubectl(&["delete", binding]);
    plane.wait(20, "the loss is seen", || product.get("/metrics").contains("soroi_admission_works 0"));
    plane.create(&job("train", "team-a", 2, "1h"));
    plane.see(
        20,
        &expect![[r#"
        job       train        suspended    active 0 succeeded 0
        workload  job-train    waiting until Soroi's admission policy is known to be in force
        queue     gpu-queue    pending 1 admitted 0 gpu 0
    "#]],
    );
    plane.stays(2);
    let lines = saved.lines().filter(|line| !line.contains("resourceVersion") && !line.contains("uid:"));
    plane.apply(&lines.collect::<Vec<_>>().join("\n"));
    plane.see(
        20,
        &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        job       train        released     active 2 succeeded 0
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      2 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 2
    "#]],
    );
}
