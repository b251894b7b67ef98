//! The status of a Workload: what it got, and how it goes.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Toleration;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::topology_assignment::TopologyAssignment;
use crate::Quantities;
use crate::schema::{self, rule};
use crate::text_enum::text_enum;

/// What a Workload got, and how it goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "!has(self.clusterName) || !has(self.nominatedClusterNames) || self.nominatedClusterNames.size() == 0",
        "clusterName and nominatedClusterNames exclude each other",
    ),
    rule(
        "!has(self.clusterName) || (has(oldSelf.clusterName) ? self.clusterName == oldSelf.clusterName : !has(oldSelf.nominatedClusterNames) || self.clusterName in oldSelf.nominatedClusterNames)",
        "clusterName is set once, to one of nominatedClusterNames",
    ),
]))]
pub struct WorkloadStatus {
    /// What it got. Unset while it waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission: Option<Admission>,
    /// How it goes: QuotaReserved, Admitted, PodsReady, Evicted, Finished and others.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// When it is tried again after an eviction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_state: Option<RequeueState>,
    /// Pods that have ended and whose quota is free again. Counts only rise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub reclaimable_pods: Vec<ReclaimablePod>,
    /// The answers of the admission checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckState>,
    /// What it asks for while it waits, per pod set and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resource_requests: Vec<PodSetRequest>,
    /// For how many seconds it was admitted in earlier admissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accumulated_past_execution_time_seconds: Option<i32>,
    /// How often it was evicted, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduling_stats: Option<SchedulingStats>,
    /// Clusters that may take it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "nominated_clusters")]
    pub nominated_cluster_names: Vec<String>,
    /// The cluster that took it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub cluster_name: Option<String>,
    /// Nodes that it is placed on and that have failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub unhealthy_nodes: Vec<UnhealthyNode>,
    /// Where its preemption gates stand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub preemption_gates: Vec<PreemptionGateState>,
}

fn nominated_clusters(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::strings(20, 256)
}

/// What a Workload got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Admission {
    /// The ClusterQueue that pays.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(schema_with = "schema::name")]
    pub cluster_queue: String,
    /// What each pod set got.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_set_assignments: Vec<PodSetAssignment>,
}

/// What a pod set got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetAssignment {
    /// The pod set.
    #[serde(default = "main")]
    #[schemars(schema_with = "schema::pod_set_name_main")]
    pub name: String,
    /// The flavor that pays for each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map")]
    pub flavors: BTreeMap<String, String>,
    /// What is paid for each resource, for all pods together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub resource_usage: Quantities,
    /// How many pods may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,
    /// The topology domains that the pods go to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_assignment: Option<TopologyAssignment>,
    /// Whether the domains are still to be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 7))]
    pub delayed_topology_request: Option<DelayedTopologyRequest>,
}

fn main() -> String {
    "main".to_owned()
}

text_enum! {
    /// Whether topology domains are still to be chosen.
    DelayedTopologyRequest {
        /// They are.
        Pending = "Pending",
        /// They were chosen.
        Ready = "Ready",
    }
}

/// When a Workload is tried again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequeueState {
    /// How often it was put back.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub count: Option<i32>,
    /// Not before this moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub requeue_at: Option<Time>,
}

/// Ended pods of a pod set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReclaimablePod {
    /// The pod set.
    #[schemars(schema_with = "schema::pod_set_name")]
    pub name: String,
    /// How many of its pods have ended.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// The answer of an admission check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckState {
    /// The check.
    #[schemars(length(min = 1, max = 316))]
    pub name: String,
    /// The answer.
    pub state: CheckState,
    /// When the answer last changed.
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Time,
    /// The answer for people.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// What the pods get in addition when they start. Frozen once the check is Ready.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 18), extend("x-kubernetes-list-type" = "atomic"))]
    pub pod_set_updates: Vec<PodSetUpdate>,
    /// After how many seconds the workload is tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub requeue_after_seconds: Option<i32>,
    /// How often it was tried again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub retry_count: Option<i32>,
}

text_enum! {
    /// The answer of an admission check.
    CheckState {
        /// Not known yet.
        Pending = "Pending",
        /// It may start.
        Ready = "Ready",
        /// Give the quota back and try again.
        Retry = "Retry",
        /// It must never start.
        Rejected = "Rejected",
    }
}

/// What the pods of a pod set get in addition when they start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetUpdate {
    /// The pod set.
    #[schemars(schema_with = "schema::pod_set_name")]
    pub name: String,
    /// Labels.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map")]
    pub labels: BTreeMap<String, String>,
    /// Annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map")]
    pub annotations: BTreeMap<String, String>,
    /// Node labels to select.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map")]
    pub node_selector: BTreeMap<String, String>,
    /// Tolerations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::tolerations")]
    pub tolerations: Vec<Toleration>,
}

/// What a pod set asks for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetRequest {
    /// The pod set.
    #[schemars(schema_with = "schema::pod_set_name")]
    pub name: String,
    /// What all of its pods ask for together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub resources: Quantities,
}

/// Numbers about the past of a Workload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SchedulingStats {
    /// Evictions by reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256))]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["reason", "underlyingCause"],
    ))]
    pub evictions: Vec<WorkloadEviction>,
}

/// Evictions for one reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadEviction {
    /// The reason of the Evicted condition.
    #[schemars(length(max = 316))]
    pub reason: String,
    /// What was behind it; empty if nothing else.
    #[schemars(length(max = 316))]
    pub underlying_cause: String,
    /// How often.
    #[schemars(range(min = 0))]
    pub count: i32,
}

/// A node that has failed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnhealthyNode {
    /// Its name.
    #[schemars(length(max = 63))]
    pub name: String,
}

/// Where a preemption gate stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionGateState {
    /// The gate.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Open or closed.
    pub position: PreemptionGatePosition,
    /// When that last changed.
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Time,
}

text_enum! {
    /// Where a preemption gate stands.
    PreemptionGatePosition {
        /// The workload must not preempt.
        Closed = "Closed",
        /// It may.
        Open = "Open",
    }
}
