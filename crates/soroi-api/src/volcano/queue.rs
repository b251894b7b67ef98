//! Queue: a share of the cluster in Volcano's tree of queues.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantities;
use crate::schema::{self, SUBDOMAIN};
use crate::text_enum::text_enum;

/// What a Queue may use.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "scheduling.volcano.sh",
    version = "v1beta1",
    kind = "Queue",
    status = "QueueStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "q",
    shortname = "queue-v1beta1",
    category = "soroi",
    doc = "Queue is a share of the cluster in a tree of queues.",
    printcolumn(name = "PARENT", type_ = "string", json_path = ".spec.parent")
)]
#[serde(rename_all = "camelCase")]
pub struct QueueSpec {
    /// Its weight among its siblings.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65535), extend("default" = 1))]
    pub weight: Option<i32>,
    /// The most that it may use, per resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub capability: Option<Quantities>,
    /// Whether others may take back what it uses above its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reclaimable: Option<bool>,
    /// Other clusters that serve it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extend_clusters: Vec<ExtendCluster>,
    /// What is kept for it alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guarantee: Option<Guarantee>,
    /// On which groups of nodes its pods run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub affinity: Option<QueueAffinity>,
    /// A label for people and other tools.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// The queue above it; `root` if none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), extend("pattern" = SUBDOMAIN))]
    pub parent: Option<String>,
    /// What it owns, per resource; more can be taken back from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub deserved: Option<Quantities>,
    /// Larger goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub priority: Option<i32>,
    /// What happens when the first job does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = DequeueStrategy::Traverse))]
    pub dequeue_strategy: Option<DequeueStrategy>,
}

impl QueueSpec {
    /// The name of the queue above it, if it says one.
    pub fn parent(&self) -> Option<&str> {
        self.parent.as_deref().filter(|parent| !parent.is_empty())
    }
}

text_enum! {
    /// What happens when the first job of a queue does not fit.
    #[derive(Default)]
    DequeueStrategy {
        /// It blocks the others.
        Fifo = "fifo",
        /// Others may pass.
        #[default]
        Traverse = "traverse",
    }
}

/// Another cluster that serves a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExtendCluster {
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weight: Option<i32>,
    /// What it has, per resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub capacity: Option<Quantities>,
}

/// What is kept for a queue alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Guarantee {
    /// Per resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub resource: Option<Quantities>,
}

/// On which groups of nodes the pods of a queue run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueAffinity {
    /// Groups to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_affinity: Option<NodeGroupAffinity>,
    /// Groups to avoid.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_group_anti_affinity: Option<NodeGroupAffinity>,
}

/// Groups of nodes, by the value of the label `volcano.sh/nodegroup-name`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeGroupAffinity {
    /// It must be so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub required_during_scheduling_ignored_during_execution: Vec<String>,
    /// It should be so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preferred_during_scheduling_ignored_during_execution: Vec<String>,
}

/// What a Queue uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueStatus {
    /// Whether it takes new jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<QueueState>,
    /// PodGroups in phase Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown: Option<i32>,
    /// PodGroups in phase Pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending: Option<i32>,
    /// PodGroups in phase Running.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running: Option<i32>,
    /// PodGroups in phase Inqueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inqueue: Option<i32>,
    /// PodGroups in phase Completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completed: Option<i32>,
    /// Nodes set aside for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// What it uses, per resource.
    #[serde(default)]
    #[schemars(schema_with = "schema::quantities")]
    pub allocated: Quantities,
}

text_enum! {
    /// Whether a queue takes new jobs.
    QueueState {
        /// It does.
        Open = "Open",
        /// It does not, and has none.
        Closed = "Closed",
        /// It does not, and has some left.
        Closing = "Closing",
        /// Nobody has said yet.
        Unknown = "Unknown",
    }
}

/// Nodes set aside for a queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Reservation {
    /// Their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<String>,
    /// What they have, per resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub resource: Option<Quantities>,
}
