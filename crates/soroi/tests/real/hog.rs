//! The hog: a pod that nobody queues takes a GPU, and a gang of four waits. Once for each policy.

use expect_test::expect;
use serde_json::{Value, json};

use crate::plane::{Plane, hog, job};
use crate::product::Product;

/// Third worker for what comes after the hog.
const THIRD: &str = "
apiVersion: v1
kind: Node
metadata: {name: worker3, labels: {kubernetes.io/hostname: worker3, kubernetes.io/os: linux}}
status:
  capacity: {cpu: '8', memory: 32Gi, pods: '110', example.com/gpu: '2'}
  allocatable: {cpu: '8', memory: 32Gi, pods: '110', example.com/gpu: '2'}
";

/// Starts everything and plays until the second job runs and the first has said why it waits.
fn begin(name: &str, placement: &str, queue: &str) -> (Plane, Product) {
    let plane = Plane::up(name);
    let product = Product::start(&plane, "soroi", &format!("placement: {placement}"));
    plane.apply(include_str!("queues.yaml"));
    let other = if queue == "team-a" { "topology-queue" } else { "gpu-queue" };
    plane.kubectl(&["label", "clusterqueue", other, "shown=no"]);
    plane.create(&hog("worker1"));
    plane.kubectl(&["wait", "--for=condition=Ready", "pod/hog", "--timeout=10s"]);
    plane.create(&job("train", queue, 4, "1h"));
    plane.wait(20, "the first job is looked at", || !plane.list("workloads").is_empty());
    (plane, product)
}

/// One of the gang's nodes is cordoned, and a pod there deleted.
fn lose_a_pod(plane: &Plane) {
    plane.apply(THIRD);
    plane.kubectl(&["wait", "--for=condition=Ready", "node/worker3", "--timeout=10s"]);
    plane.kubectl(&["cordon", "worker2"]);
    let pods = plane.list("pods");
    let lost = |pod: &&Value| {
        pod["spec"]["nodeName"] == "worker2"
            && pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == "train"
    };
    let there = pods.iter().find(lost).unwrap();
    plane.kubectl(&["delete", "pod", there["metadata"]["name"].as_str().unwrap()]);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn unified_holds_nothing_until_all_fit() {
    let (plane, product) = begin("unified", "Unified", "team-a");
    plane.see(20, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        job       train        suspended    active 0 succeeded 0
        workload  job-train    couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/3 nodes are available: 3 Insufficient example.com/gpu
        queue     gpu-queue    pending 1 admitted 0 gpu 0
    "#]]);
    plane.create(&job("second", "team-a", 2, "10s"));
    plane.see(9, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       second       worker2      Running      soroi
        pod       second       worker2      Running      soroi
        job       second       released     active 2 succeeded 0
        job       train        suspended    active 0 succeeded 0
        workload  job-second   QuotaReserved Admitted
        workload  job-train    couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        plan      job-second   Settled      2 pods
        queue     gpu-queue    pending 1 admitted 1 gpu 2
    "#]]);
    plane.see(30, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       second       worker2      Succeeded    soroi
        pod       second       worker2      Succeeded    soroi
        job       second       released     active 0 succeeded 2 Complete
        job       train        suspended    active 0 succeeded 0
        workload  job-second   QuotaReserved Admitted Finished
        workload  job-train    couldn't assign flavors to pod set main: nodes of flavor default-flavor allow to fit only 3 out of 4 pod(s); for one more, 0/3 nodes are available: 3 Insufficient example.com/gpu
        queue     gpu-queue    pending 1 admitted 0 gpu 0
    "#]]);
    plane.stays(3);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.see(
        10,
        &expect![[r#"
        pod       second       worker2      Succeeded    soroi
        pod       second       worker2      Succeeded    soroi
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       second       released     active 0 succeeded 2 Complete
        job       train        released     active 4 succeeded 0
        workload  job-second   QuotaReserved Admitted Finished
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    lose_a_pod(&plane);
    plane.see(
        30,
        &expect![[r#"
            pod       second       worker2      Succeeded    soroi
            pod       second       worker2      Succeeded    soroi
            pod       train        worker1      Running      soroi
            pod       train        worker1      Running      soroi
            pod       train        worker2      Running      soroi
            pod       train        worker3      Running      soroi
            job       second       released     active 0 succeeded 2 Complete
            job       train        released     active 4 succeeded 0
            workload  job-second   QuotaReserved Admitted Finished
            workload  job-train    QuotaReserved Admitted
            plan      job-train    Settled      4 pods
            queue     gpu-queue    pending 0 admitted 1 gpu 4
        "#]],
    );
    // Jobs that are deleted leave nothing behind.
    plane.kubectl(&["delete", "jobs", "--all"]);
    plane.see(
        20,
        &expect![[r#"
        queue     gpu-queue    pending 0 admitted 0 gpu 0
    "#]],
    );
    let metrics = product.get("/metrics");
    for line in [
        "soroi_leader 1",
        "soroi_admission_works 1",
        "kueue_quota_reserved_workloads_total{cluster_queue=\"gpu-queue\"} 2",
        "kueue_pending_workloads{cluster_queue=\"gpu-queue\",status=\"active\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is missing in:\n{metrics}");
    }
    let (status, _) = product.terminate();
    assert!(status.success());
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn quota_only_starts_three_of_four() {
    let (plane, _product) = begin("quota-only", "QuotaOnly", "team-a");
    plane.see(
        20,
        &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       train        -            Pending      default-scheduler
        pod       train        worker1      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    plane.create(&job("second", "team-a", 2, "10s"));
    plane.see(20, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       train        -            Pending      default-scheduler
        pod       train        worker1      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        job       second       suspended    active 0 succeeded 0
        job       train        released     active 4 succeeded 0
        workload  job-second   couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        workload  job-train    QuotaReserved Admitted
        queue     gpu-queue    pending 1 admitted 1 gpu 4
    "#]]);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.see(30, &expect![[r#"
        pod       train        worker1      Running      default-scheduler
        pod       train        worker1      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        job       second       suspended    active 0 succeeded 0
        job       train        released     active 4 succeeded 0
        workload  job-second   couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        workload  job-train    QuotaReserved Admitted
        queue     gpu-queue    pending 1 admitted 1 gpu 4
    "#]]);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn topology_only_pins_pods_that_another_scheduler_binds() {
    let (plane, _product) = begin("topology-only", "TopologyOnly", "team-b");
    plane.see(20, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        job       train        suspended    active 0 succeeded 0
        workload  job-train    couldn't assign flavors to pod set main: topology "hosts" allows to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
        queue     topology-queue pending 1 admitted 0 gpu 0
    "#]]);
    plane.create(&job("second", "team-b", 2, "10s"));
    plane.see(9, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       second       worker2      Running      default-scheduler
        pod       second       worker2      Running      default-scheduler
        job       second       released     active 2 succeeded 0
        job       train        suspended    active 0 succeeded 0
        workload  job-second   QuotaReserved Admitted
        workload  job-train    couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor topology-flavor, 2 more needed
        queue     topology-queue pending 1 admitted 1 gpu 2
    "#]]);
    plane.see(30, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       second       worker2      Succeeded    default-scheduler
        pod       second       worker2      Succeeded    default-scheduler
        job       second       released     active 0 succeeded 2 Complete
        job       train        suspended    active 0 succeeded 0
        workload  job-second   QuotaReserved Admitted Finished
        workload  job-train    couldn't assign flavors to pod set main: topology "hosts" allows to fit only 3 out of 4 pod(s); for one more, 0/2 nodes are available: 2 Insufficient example.com/gpu
        queue     topology-queue pending 1 admitted 0 gpu 0
    "#]]);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.see(
        20,
        &expect![[r#"
        pod       second       worker2      Succeeded    default-scheduler
        pod       second       worker2      Succeeded    default-scheduler
        pod       train        worker1      Running      default-scheduler
        pod       train        worker1      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        pod       train        worker2      Running      default-scheduler
        job       second       released     active 0 succeeded 2 Complete
        job       train        released     active 4 succeeded 0
        workload  job-second   QuotaReserved Admitted Finished
        workload  job-train    QuotaReserved Admitted
        queue     topology-queue pending 0 admitted 1 gpu 4
    "#]],
    );
    lose_a_pod(&plane);
    plane.see(
        30,
        &expect![[r#"
            pod       second       worker2      Succeeded    default-scheduler
            pod       second       worker2      Succeeded    default-scheduler
            pod       train        -            Pending      default-scheduler
            pod       train        worker1      Running      default-scheduler
            pod       train        worker1      Running      default-scheduler
            pod       train        worker2      Running      default-scheduler
            job       second       released     active 0 succeeded 2 Complete
            job       train        released     active 4 succeeded 0
            workload  job-second   QuotaReserved Admitted Finished
            workload  job-train    QuotaReserved Admitted
            queue     topology-queue pending 0 admitted 1 gpu 4
        "#]],
    );
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn after_admission_places_all_pods_of_an_admitted_gang_at_once() {
    let (plane, _product) = begin("after-admission", "AfterAdmission", "team-a");
    plane.see(
        20,
        &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        job       train        released     active 4 succeeded 0
        workload  job-train    QuotaReserved Admitted
        queue     gpu-queue    pending 0 admitted 1 gpu 4
    "#]],
    );
    let pods = plane.list("pods");
    let waiting: Vec<_> = pods
        .iter()
        .filter(|pod| pod["spec"]["nodeName"].is_null())
        .map(|pod| pod["status"]["conditions"][0].clone())
        .collect();
    assert_eq!(waiting.len(), 4);
    for condition in waiting {
        assert_eq!(
            (&condition["type"], &condition["status"], &condition["reason"]),
            (&json!("PodScheduled"), &json!("False"), &json!("Unschedulable"))
        );
    }
    plane.create(&job("second", "team-a", 2, "10s"));
    plane.see(9, &expect![[r#"
        pod       hog          worker1      Running      default-scheduler
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        pod       train        -            Pending      soroi
        job       second       suspended    active 0 succeeded 0
        job       train        released     active 4 succeeded 0
        workload  job-second   couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        workload  job-train    QuotaReserved Admitted
        queue     gpu-queue    pending 1 admitted 1 gpu 4
    "#]]);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.see(10, &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker2      Running      soroi
        job       second       suspended    active 0 succeeded 0
        job       train        released     active 4 succeeded 0
        workload  job-second   couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 1 admitted 1 gpu 4
    "#]]);
    lose_a_pod(&plane);
    plane.see(30, &expect![[r#"
        pod       train        worker1      Running      soroi
        pod       train        worker1      Running      soroi
        pod       train        worker2      Running      soroi
        pod       train        worker3      Running      soroi
        job       second       suspended    active 0 succeeded 0
        job       train        released     active 4 succeeded 0
        workload  job-second   couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor default-flavor, 2 more needed
        workload  job-train    QuotaReserved Admitted
        plan      job-train    Settled      4 pods
        queue     gpu-queue    pending 1 admitted 1 gpu 4
    "#]]);
}
