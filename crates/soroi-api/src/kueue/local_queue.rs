//! LocalQueue: a namespace's door to a ClusterQueue.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quota::{FairSharing, StopPolicy};
use crate::schema;
use crate::{Quantities, Quantity};

/// Where a LocalQueue leads.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "LocalQueue",
    namespaced,
    status = "LocalQueueStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "queue",
    shortname = "queues",
    shortname = "lq",
    category = "soroi",
    doc = "LocalQueue is the door of a namespace to a ClusterQueue.",
    printcolumn(
        name = "ClusterQueue",
        type_ = "string",
        json_path = ".spec.clusterQueue",
        description = "The ClusterQueue behind it"
    ),
    printcolumn(
        name = "Pending Workloads",
        type_ = "integer",
        json_path = ".status.pendingWorkloads",
        description = "Workloads that wait"
    ),
    printcolumn(
        name = "Admitted Workloads",
        type_ = "integer",
        json_path = ".status.admittedWorkloads",
        description = "Workloads that are admitted and not finished"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueSpec {
    /// The ClusterQueue behind it. Immutable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name_immutable")]
    pub cluster_queue: Option<String>,
    /// Whether it admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = StopPolicy::None))]
    pub stop_policy: Option<StopPolicy>,
    /// Its weight against other LocalQueues of the ClusterQueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

impl LocalQueueSpec {
    /// The stop policy in force.
    pub fn stop_policy(&self) -> StopPolicy {
        self.stop_policy.unwrap_or_default()
    }
}

/// What went through a LocalQueue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueStatus {
    /// Whether it admits (type Active), and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What its workloads with quota hold, per flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<LocalQueueFlavorUsage>,
    /// What its admitted workloads hold, per flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<LocalQueueFlavorUsage>,
    /// Workloads that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_workloads: Option<i32>,
    /// Workloads that hold quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserving_workloads: Option<i32>,
    /// Workloads that are admitted and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_workloads: Option<i32>,
    /// What it used before, where that decides the order.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<LocalQueueFairSharingStatus>,
}

/// Usage of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueFlavorUsage {
    /// The name of the ResourceFlavor.
    #[schemars(schema_with = "schema::name")]
    pub name: String,
    /// Usage per resource.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<LocalQueueResourceUsage>,
}

/// Usage of one resource in one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueResourceUsage {
    /// The resource.
    #[schemars(schema_with = "schema::resource_name")]
    pub name: String,
    /// How much is in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub total: Option<Quantity>,
}

/// What a LocalQueue used before.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocalQueueFairSharingStatus {
    /// Its decayed usage relative to its weight, in thousandths.
    pub weighted_share: i64,
    /// The numbers behind it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_fair_sharing_status: Option<AdmissionFairSharingStatus>,
}

/// Usage that fades with time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionFairSharingStatus {
    /// Per resource, faded.
    #[schemars(schema_with = "schema::quantities")]
    pub consumed_resources: Quantities,
    /// When it was last brought up to date.
    #[schemars(schema_with = "schema::time")]
    pub last_update: Time,
}
