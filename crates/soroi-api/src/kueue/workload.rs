//! Workload: what must start together, and what it needs.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::workload_status::WorkloadStatus;
use crate::schema::{self, rule};
use crate::text_enum::text_enum;

/// What a Workload needs.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Workload",
    namespaced,
    status = "WorkloadStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "kwl",
    shortname = "kueueworkload",
    shortname = "kueueworkloads",
    category = "soroi",
    selectable = ".status.admission.clusterQueue",
    doc = "Workload is a job as the queues see it: pods that start together, and what they need.",
    validation = Rule::new("!has(self.status) || !has(self.status.admission) || !has(self.status.admission.podSetAssignments) || self.status.admission.podSetAssignments.size() <= self.spec.podSets.size()")
        .message("status.admission.podSetAssignments must have at most one entry per pod set"),
    validation = Rule::new("!has(self.status) || !has(self.status.reclaimablePods) || self.status.reclaimablePods.all(r, self.spec.podSets.exists(p, p.name == r.name && r.count <= p.count))")
        .message("status.reclaimablePods must name pod sets, with at most their counts"),
    validation = Rule::new("!(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')) || (has(oldSelf.spec.queueName) == has(self.spec.queueName) && (!has(self.spec.queueName) || self.spec.queueName == oldSelf.spec.queueName))")
        .message("spec.queueName is immutable while quota is reserved"),
    validation = Rule::new("!(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'QuotaReserved' && c.status == 'True')) || (has(oldSelf.spec.priorityClassRef) == has(self.spec.priorityClassRef) && (!has(self.spec.priorityClassRef) || (self.spec.priorityClassRef.group == oldSelf.spec.priorityClassRef.group && self.spec.priorityClassRef.kind == oldSelf.spec.priorityClassRef.kind && (self.spec.priorityClassRef.group != 'scheduling.k8s.io' || self.spec.priorityClassRef.name == oldSelf.spec.priorityClassRef.name))))")
        .message("spec.priorityClassRef is immutable while quota is reserved, except for the name of a WorkloadPriorityClass"),
    validation = Rule::new("!(has(oldSelf.status) && has(oldSelf.status.conditions) && oldSelf.status.conditions.exists(c, c.type == 'Admitted' && c.status == 'True')) || (has(oldSelf.spec.maximumExecutionTimeSeconds) == has(self.spec.maximumExecutionTimeSeconds) && (!has(self.spec.maximumExecutionTimeSeconds) || self.spec.maximumExecutionTimeSeconds == oldSelf.spec.maximumExecutionTimeSeconds))")
        .message("spec.maximumExecutionTimeSeconds is immutable while the workload is admitted"),
    printcolumn(name = "Queue", type_ = "string", json_path = ".spec.queueName",
        description = "The LocalQueue that it waits in"),
    printcolumn(name = "Reserved in", type_ = "string", json_path = ".status.admission.clusterQueue",
        description = "The ClusterQueue that its quota is from"),
    printcolumn(name = "Admitted", type_ = "string",
        json_path = ".status.conditions[?(@.type=='Admitted')].status", description = "Whether it may run"),
    printcolumn(name = "Finished", type_ = "string",
        json_path = ".status.conditions[?(@.type=='Finished')].status", description = "Whether it has ended"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp",
        description = "When it was created")
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!has(self.priorityClassRef) || has(self.priority)",
    "priorityClassRef needs priority",
)]))]
pub struct WorkloadSpec {
    /// Pods by kind: all of them start together. At most one pod set may have a minCount.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(min = 1, max = 18))]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"],
        "x-kubernetes-validations" = [rule(
            "self.filter(p, has(p.minCount)).size() <= 1",
            "at most one pod set may have a minCount",
        )],
    ))]
    pub pod_sets: Vec<PodSet>,
    /// The LocalQueue, in the same namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub queue_name: Option<String>,
    /// The class that the priority comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_ref: Option<PriorityClassRef>,
    /// The priority; larger goes first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Whether it may run. False evicts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = true))]
    pub active: Option<bool>,
    /// How long it may be admitted, in seconds, summed over all admissions.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub maximum_execution_time_seconds: Option<i32>,
    /// Gates that must be open before it may preempt. Gates can be added, never removed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    #[schemars(extend(
        "x-kubernetes-list-type" = "map",
        "x-kubernetes-list-map-keys" = ["name"],
        "x-kubernetes-validations" = [rule(
            "oldSelf.all(o, self.exists(n, n.name == o.name))",
            "preemption gates can only be added",
        )],
    ))]
    pub preemption_gates: Vec<PreemptionGate>,
}

impl WorkloadSpec {
    /// Whether it may run.
    pub fn is_active(&self) -> bool {
        self.active.unwrap_or(true)
    }
}

/// Pods of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!has(self.minCount) || !has(self.count) || self.minCount <= self.count",
    "minCount must be at most count",
)]))]
pub struct PodSet {
    /// Its name.
    #[serde(default = "main")]
    #[schemars(schema_with = "schema::pod_set_name_main")]
    pub name: String,
    /// What its pods look like.
    #[schemars(schema_with = "schema::pod_template")]
    pub template: PodTemplateSpec,
    /// How many pods it has.
    #[serde(default = "one")]
    #[schemars(range(min = 0))]
    pub count: i32,
    /// With how few pods it is still worth starting. Without it, with all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub min_count: Option<i32>,
    /// Where the pods must be relative to each other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_request: Option<PodSetTopologyRequest>,
}

fn main() -> String {
    "main".to_owned()
}

fn one() -> i32 {
    1
}

/// Where the pods of a pod set must be relative to each other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodSetTopologyRequest {
    /// All within one domain of this level, or not at all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub required: Option<String>,
    /// Within one domain of this level if possible, else as near as possible.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub preferred: Option<String>,
    /// Anywhere within the topology.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unconstrained: Option<bool>,
    /// The label that holds a pod's index within the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub pod_index_label: Option<String>,
    /// The label that holds the index of a replicated job within a group of jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 317))]
    pub sub_group_index_label: Option<String>,
    /// How many replicated jobs the group has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sub_group_count: Option<i32>,
    /// Pod sets with the same group name are placed together, in one flavor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub pod_set_group_name: Option<String>,
    /// Each slice of podSetSliceSize pods within one domain of this level.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub pod_set_slice_required_topology: Option<String>,
    /// Pods per slice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_set_slice_size: Option<i32>,
    /// Nested slices, coarsest first.
    #[serde(
        default,
        rename = "podsetSliceRequiredTopologyConstraints",
        skip_serializing_if = "Vec::is_empty"
    )]
    #[schemars(length(max = 3), extend("x-kubernetes-list-type" = "atomic"))]
    pub slice_required_topology_constraints: Vec<SliceTopologyConstraint>,
}

/// One layer of slices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SliceTopologyConstraint {
    /// The level whose domains hold one slice each.
    #[schemars(length(min = 1, max = 63))]
    pub topology: String,
    /// Pods per slice.
    #[schemars(range(min = 1))]
    pub size: i32,
}

/// The class that a priority comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "self.group != 'kueue.x-k8s.io' || self.kind == 'WorkloadPriorityClass'",
        "kind must be WorkloadPriorityClass for group kueue.x-k8s.io",
    ),
    rule(
        "self.group != 'scheduling.k8s.io' || self.kind == 'PriorityClass'",
        "kind must be PriorityClass for group scheduling.k8s.io",
    ),
]))]
pub struct PriorityClassRef {
    /// Its API group.
    pub group: PriorityClassGroup,
    /// Its kind.
    pub kind: PriorityClassKind,
    /// Its name.
    #[schemars(schema_with = "schema::name_required")]
    pub name: String,
}

text_enum! {
    /// The API group of a priority class.
    PriorityClassGroup {
        /// Of a WorkloadPriorityClass.
        Kueue = "kueue.x-k8s.io",
        /// Of a PriorityClass.
        Scheduling = "scheduling.k8s.io",
    }
}

text_enum! {
    /// The kind of a priority class.
    PriorityClassKind {
        /// For queueing only.
        WorkloadPriorityClass = "WorkloadPriorityClass",
        /// The pods' own.
        PriorityClass = "PriorityClass",
    }
}

/// A gate that must be open before a workload may preempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PreemptionGate {
    /// Its name.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
}
