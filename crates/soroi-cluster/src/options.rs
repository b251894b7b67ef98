//! How is the cluster to be? Which parts run, and how fast they are.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::annotation::Kubelet;

/// Which parts of a cluster run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Kubelets of all nodes.
    pub kubelets: bool,
    /// The Job controller, with the TTL of finished Jobs.
    pub jobs: bool,
    /// The garbage collector.
    pub garbage: bool,
    /// Node taints, eviction from tainted nodes, pods of lost nodes.
    pub lifecycle: bool,
    /// A scheduler that places pods one by one.
    pub scheduler: bool,
    /// The `default` ServiceAccount of every namespace.
    pub accounts: bool,
    /// What PodDisruptionBudgets allow.
    pub disruptions: bool,
}

impl Parts {
    /// Everything.
    pub const ALL: Self = Self {
        kubelets: true,
        jobs: true,
        garbage: true,
        lifecycle: true,
        scheduler: true,
        accounts: true,
        disruptions: true,
    };
    /// Nothing; to name the wanted parts beside it.
    pub const NONE: Self = Self {
        kubelets: false,
        jobs: false,
        garbage: false,
        lifecycle: false,
        scheduler: false,
        accounts: false,
        disruptions: false,
    };
}

/// How a cluster is simulated.
#[derive(Clone, Debug)]
pub struct Options {
    /// Spreads retries; the same seed gives the same run.
    pub seed: u64,
    /// Which parts run.
    pub parts: Parts,
    /// From a pod's arrival on its node to its containers running.
    pub start_latency: Duration,
    /// How often a node's lease is renewed. Must stay below `node_grace`.
    pub heartbeat: Duration,
    /// How long a node may be silent before it is given up: 50 s as in Kubernetes 1.36
    /// (`nodeMonitorGracePeriod`; 40 s before 1.32).
    pub node_grace: Duration,
    /// How long a node may be gone before its pods are collected: 40 s as in Kubernetes.
    pub orphan_grace: Duration,
    /// How long changes of pods are gathered before their Job is looked at: 1 s as in Kubernetes
    /// (`SyncJobBatchPeriod`).
    pub job_batch: Duration,
    /// How the kubelets of these nodes are, unless the node's annotation says it.
    pub kubelets: BTreeMap<String, Kubelet>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            parts: Parts::ALL,
            start_latency: Duration::from_millis(5),
            heartbeat: Duration::from_secs(20),
            node_grace: Duration::from_secs(50),
            orphan_grace: Duration::from_secs(40),
            job_batch: Duration::from_secs(1),
            kubelets: BTreeMap::new(),
        }
    }
}

impl Options {
    /// For a real control plane, which has all the rest.
    pub fn kubelets_only() -> Self {
        Self { parts: Parts { kubelets: true, ..Parts::NONE }, ..Self::default() }
    }
}
