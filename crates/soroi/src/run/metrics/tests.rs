//! What is scraped.

use expect_test::expect;
use soroi_engine::decision::{Admission, FlavorUsage};
use soroi_engine::event::Policy;
use soroi_engine::reason::UndoReason;

use super::*;

fn status(total: i64) -> ClusterQueueStatus {
    let usage = |resource: &str, total| FlavorUsage {
        flavor: "default".into(),
        resource: resource.into(),
        total,
        borrowed: 0,
    };
    ClusterQueueStatus {
        share: None,
        name: "gpu-queue".into(),
        inactive: None,
        pending: 3,
        reserving: 2,
        admitted: 1,
        usage: vec![usage("cpu", 1500), usage("example.com/gpu", total)],
        admitted_usage: vec![usage("cpu", 500), usage("example.com/gpu", total)],
    }
}

/// The lines with values, without the parts that hold for every run.
fn lines(metrics: &Metrics) -> String {
    let text = metrics.text();
    let mut lines: Vec<&str> =
        text.lines().filter(|line| !line.starts_with('#') && !line.contains("_bucket{")).collect();
    lines.sort_unstable();
    lines.join("\n")
}

#[test]
fn kueues_names_stand_for_what_they_mean_in_kueue() {
    let metrics = Metrics::default();
    metrics.leads(7);
    metrics.admission_works(true);
    metrics.cycle(20);
    metrics.cluster_queue(&status(4));
    let admission = Admission {
        gang: "g".into(),
        policy: Policy::Unified,
        cluster_queue: Some("gpu-queue".into()),
        pod_sets: vec![],
    };
    metrics.decided(&Decision::Admit(admission));
    metrics.decided(&Decision::Undo { gang: "g".into(), reason: UndoReason::PlacesLost, started: true });
    metrics.answered("bind", "done");
    expect![[r#"
        kueue_admitted_active_workloads{cluster_queue="gpu-queue"} 1
        kueue_cluster_queue_resource_usage{cluster_queue="gpu-queue",flavor="default",resource="cpu"} 0.5
        kueue_cluster_queue_resource_usage{cluster_queue="gpu-queue",flavor="default",resource="example.com/gpu"} 4.0
        kueue_cluster_queue_status{cluster_queue="gpu-queue",status="active"} 1
        kueue_cluster_queue_status{cluster_queue="gpu-queue",status="pending"} 0
        kueue_evicted_workloads_total{cluster_queue="gpu-queue",reason="NodeFailures"} 1
        kueue_pending_workloads{cluster_queue="gpu-queue",status="active"} 3
        kueue_pending_workloads{cluster_queue="gpu-queue",status="inadmissible"} 0
        kueue_quota_reserved_workloads_total{cluster_queue="gpu-queue"} 1
        kueue_reserving_active_workloads{cluster_queue="gpu-queue"} 2
        soroi_admission_works 1
        soroi_build_info{version="0.1.0"} 1
        soroi_deciding_seconds_count 1
        soroi_deciding_seconds_sum 0.02
        soroi_decisions_total{decision="admit"} 1
        soroi_decisions_total{decision="undo"} 1
        soroi_leader 1
        soroi_leader_epoch 7
        soroi_requests_total{call="bind",answer="done"} 1"#]].assert_eq(&lines(&metrics));
}

#[test]
fn what_is_gone_is_not_shown() {
    let metrics = Metrics::default();
    let queues = |metrics: &Metrics| {
        let lines = lines(metrics);
        lines.lines().filter(|line| line.contains("gpu-queue")).count()
    };
    metrics.cluster_queue(&status(4));
    let mut fewer = status(4);
    fewer.admitted_usage.truncate(1);
    let before = queues(&metrics);
    metrics.cluster_queue(&fewer);
    assert_eq!(queues(&metrics), before - 1);
    metrics.cluster_queue_gone(&"gpu-queue".into());
    assert_eq!(queues(&metrics), 0);
    metrics.cluster_queue(&status(4));
    metrics.follows();
    assert_eq!(queues(&metrics), 0);
}
