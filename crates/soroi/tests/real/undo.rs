//! An admission that cannot be carried out is taken back.

use expect_test::expect;

use crate::plane::{Plane, job};
use crate::product::{Product, SHORT};

const QUOTA: &str = "
apiVersion: v1
kind: ResourceQuota
metadata: {name: few, namespace: default}
spec: {hard: {pods: '2'}}
";

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_gang_whose_members_do_not_appear_is_suspended_and_gives_its_quota_back() {
    let plane = Plane::up("undo");
    let settings = format!("{SHORT}timeouts: {{start: 2s}}\nundoBackoff: {{min: 30s, max: 60s}}\n");
    let product = Product::start(&plane, "soroi", &settings);
    plane.apply(include_str!("queues.yaml"));
    plane.kubectl(&["label", "clusterqueue", "topology-queue", "shown=no"]);
    plane.apply(QUOTA);
    let before = job("train", "team-a", 4, "1h");
    plane.create(&before);
    // Two of its pods are made, the others are refused by the namespace's quota.
    plane.wait(20, "it was released", || plane.list("gangplans").len() == 1);
    plane.see(
        30,
        &expect![[r#"
        job       train        suspended    active 0 succeeded 0
        workload  job-train    pausing before it is tried again
        queue     gpu-queue    pending 1 admitted 0 gpu 0
    "#]],
    );
    let template = plane.kubectl(&["get", "job", "train", "-o", "jsonpath={.spec.template.metadata}"]);
    assert!(!template.contains("soroi.dev/gang"), "the template is as its user wrote it: {template}");
    plane.kubectl(&["delete", "resourcequota", "few"]);
    plane.see(
        90,
        &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    // Suspending an admitted Job by hand is no way out: it is resumed, as Kueue does. The switch is
    // `spec.active` of its Workload.
    plane.kubectl(&["patch", "job", "train", "--type=merge", "-p", r#"{"spec":{"suspend":true}}"#]);
    plane.see(
        30,
        &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    drop(product);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn a_workload_that_is_switched_off_leaves() {
    let plane = Plane::up("deactivated");
    let _product = Product::start(&plane, "soroi", SHORT);
    plane.apply(include_str!("queues.yaml"));
    plane.kubectl(&["label", "clusterqueue", "topology-queue", "shown=no"]);
    plane.create(&job("train", "team-a", 4, "1h"));
    plane.see(
        20,
        &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    let workload = plane.list("workloads")[0]["metadata"]["name"].as_str().unwrap().to_owned();
    let switch = |on: bool| format!(r#"{{"spec":{{"active":{on}}}}}"#);
    plane.kubectl(&["patch", "workload", &workload, "--type=merge", "-p", &switch(false)]);
    plane.see(
        20,
        &expect![[r#"
        job       train        suspended    active 0 succeeded 0
        workload  job-train    Evicted      The workload is deactivated
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]],
    );
    plane.kubectl(&["patch", "workload", &workload, "--type=merge", "-p", &switch(true)]);
    plane.see(
        20,
        &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
}
