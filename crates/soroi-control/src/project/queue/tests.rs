//! Queue statuses, compared by eye with what Kueue 0.18.1 wrote.

use expect_test::expect;
use soroi_engine::decision::FlavorUsage as Usage;

use super::super::workload::tests::picture;
use super::*;

fn usage(flavor: &str, resource: &str, total: i64, borrowed: i64) -> Usage {
    Usage { flavor: flavor.into(), resource: resource.into(), total, borrowed }
}

fn now() -> Timestamp {
    "2026-11-29T21:44:26Z".parse().unwrap()
}

#[test]
fn a_cluster_queue_shows_usage_by_flavor_and_resource() {
    let account = decision::ClusterQueueStatus {
        share: None,
        name: "gpu-queue".into(),
        inactive: None,
        pending: 2,
        reserving: 2,
        admitted: 1,
        usage: vec![
            usage("spot", "memory", 512 << 20, 0),
            usage("spot", "cpu", 2500, 500),
            usage("on-demand", "example.com/gpu", 0, 0),
        ],
        // One of the two waits for admission checks.
        admitted_usage: vec![
            usage("spot", "memory", 256 << 20, 0),
            usage("spot", "cpu", 1500, 0),
            usage("on-demand", "example.com/gpu", 0, 0),
        ],
    };
    let status = cluster_queue(&account, None, 3, now());
    expect![[r#"
        {
          "admittedWorkloads": 1,
          "conditions": [
            {
              "lastTransitionTime": "2026-11-29T21:44:26Z",
              "message": "Can admit new workloads",
              "observedGeneration": 3,
              "reason": "Ready",
              "status": "True",
              "type": "Active"
            }
          ],
          "flavorsReservation": [
            {
              "name": "spot",
              "resources": [
                {
                  "borrowed": "500m",
                  "name": "cpu",
                  "total": "2500m"
                },
                {
                  "borrowed": "0",
                  "name": "memory",
                  "total": "512Mi"
                }
              ]
            },
            {
              "name": "on-demand",
              "resources": [
                {
                  "borrowed": "0",
                  "name": "example.com/gpu",
                  "total": "0"
                }
              ]
            }
          ],
          "flavorsUsage": [
            {
              "name": "spot",
              "resources": [
                {
                  "borrowed": "0",
                  "name": "cpu",
                  "total": "1500m"
                },
                {
                  "borrowed": "0",
                  "name": "memory",
                  "total": "256Mi"
                }
              ]
            },
            {
              "name": "on-demand",
              "resources": [
                {
                  "borrowed": "0",
                  "name": "example.com/gpu",
                  "total": "0"
                }
              ]
            }
          ],
          "pendingWorkloads": 2,
          "reservingWorkloads": 2
        }"#]]
    .assert_eq(&picture(&status));
    let later = now() + jiff::SignedDuration::from_secs(9);
    assert_eq!(cluster_queue(&account, Some(&status), 3, later), status);
}

#[test]
fn a_local_queue_shows_its_share() {
    let account = decision::LocalQueueStatus {
        namespace: "default".into(),
        name: "team-a".into(),
        inactive: None,
        pending: 1,
        reserving: 0,
        admitted: 0,
        usage: vec![usage("tas-flavor", "example.com/gpu", 0, 0), usage("tas-flavor", "cpu", 0, 0)],
        admitted_usage: vec![usage("tas-flavor", "example.com/gpu", 0, 0), usage("tas-flavor", "cpu", 0, 0)],
    };
    expect![[r#"
        {
          "admittedWorkloads": 0,
          "conditions": [
            {
              "lastTransitionTime": "2026-11-29T21:44:26Z",
              "message": "Can submit new workloads to localQueue",
              "observedGeneration": 1,
              "reason": "Ready",
              "status": "True",
              "type": "Active"
            }
          ],
          "flavorsReservation": [
            {
              "name": "tas-flavor",
              "resources": [
                {
                  "name": "cpu",
                  "total": "0"
                },
                {
                  "name": "example.com/gpu",
                  "total": "0"
                }
              ]
            }
          ],
          "flavorsUsage": [
            {
              "name": "tas-flavor",
              "resources": [
                {
                  "name": "cpu",
                  "total": "0"
                },
                {
                  "name": "example.com/gpu",
                  "total": "0"
                }
              ]
            }
          ],
          "pendingWorkloads": 1,
          "reservingWorkloads": 0
        }"#]]
    .assert_eq(&picture(local_queue(&account, None, 1, now())));
}

#[test]
fn a_queue_that_does_not_admit_says_why() {
    let names = |names: &[&str]| names.iter().map(|name| Name::from(*name)).collect::<Vec<_>>();
    let all = [
        QueueInactive::Terminating,
        QueueInactive::Stopped,
        QueueInactive::FlavorNotFound(names(&["spot", "on-demand"])),
        QueueInactive::TopologyNotFound("racks".into()),
        QueueInactive::CheckNotFound(names(&["prov"])),
        QueueInactive::CheckInactive(names(&["prov"])),
        QueueInactive::CohortCycle("root".into()),
        QueueInactive::ClusterQueueMissing,
        QueueInactive::ClusterQueueInactive,
        QueueInactive::Invalid("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: \"x\"".into()),
    ];
    let lines = all.iter().map(|inactive| {
        let (cluster, local) = (cluster_queue_inactive(inactive), local_queue_inactive(inactive));
        format!("{}: {}\n  {}: {}", cluster.0, cluster.1, local.0, local.1)
    });
    expect![[r#"
        Terminating: Can't admit new workloads; clusterQueue is terminating
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        Stopped: Can't admit new workloads: is stopped.
          Stopped: LocalQueue is stopped
        FlavorNotFound: Can't admit new workloads: references missing ResourceFlavor(s): spot,on-demand.
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        TopologyNotFound: Can't admit new workloads: there is no Topology "racks".
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        AdmissionCheckNotFound: Can't admit new workloads: references missing AdmissionCheck(s): prov.
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        AdmissionCheckInactive: Can't admit new workloads: references inactive AdmissionCheck(s): prov.
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        CohortCycle: Can't admit new workloads: its cohorts form a cycle through "root".
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        Unknown: Can't admit new workloads.
          ClusterQueueDoesNotExist: Can't submit new workloads to clusterQueue
        Unknown: Can't admit new workloads.
          ClusterQueueIsInactive: Can't submit new workloads to clusterQueue
        Misconfigured: Can't admit new workloads: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: "x".
          Misconfigured: Can't submit new workloads to localQueue: spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: "x"."#]].assert_eq(&lines.collect::<Vec<_>>().join("\n"));
}
