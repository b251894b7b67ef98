//! PodGroup: pods that start together.
//!
//! The kind has no status subresource, as in Volcano: status is written with the whole object.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantities;
use crate::schema::{self, SUBDOMAIN, rule};
use crate::text_enum::text_enum;

/// How many pods must start together, and under which queue.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "scheduling.volcano.sh",
    version = "v1beta1",
    kind = "PodGroup",
    namespaced,
    status = "PodGroupStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "pg",
    shortname = "podgroup-v1beta1",
    category = "soroi",
    doc = "PodGroup is a group of pods that start together.",
    printcolumn(name = "STATUS", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "minMember", type_ = "integer", json_path = ".spec.minMember"),
    printcolumn(name = "RUNNINGS", type_ = "integer", json_path = ".status.running"),
    printcolumn(name = "AGE", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "QUEUE", type_ = "string", json_path = ".spec.queue", priority = "1")
)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupSpec {
    /// How many pods must start together. Pods above it may start later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_member: Option<i32>,
    /// The same per role of pods. Counts only if its sum is at most minMember.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub min_task_member: BTreeMap<String, i32>,
    /// The queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), extend("default" = "default", "pattern" = SUBDOMAIN))]
    pub queue: Option<String>,
    /// The PriorityClass of the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub priority_class_name: Option<String>,
    /// What the queue must have free before the group is looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantities")]
    pub min_resources: Option<Quantities>,
    /// How near to each other the pods must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopology>,
    /// Groups within the group.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sub_group_policy: Vec<SubGroupPolicy>,
}

impl PodGroupSpec {
    /// The queue in force.
    pub fn queue(&self) -> &str {
        self.queue.as_deref().filter(|queue| !queue.is_empty()).unwrap_or(super::DEFAULT_QUEUE)
    }
}

/// How near to each other pods must be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!(has(self.highestTierAllowed) && has(self.highestTierName))",
    "highestTierAllowed and highestTierName exclude each other",
)]))]
pub struct NetworkTopology {
    /// Whether it must or should be so.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = NetworkTopologyMode::Hard))]
    pub mode: Option<NetworkTopologyMode>,
    /// The highest tier of HyperNodes that the pods may span.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub highest_tier_allowed: Option<i64>,
    /// The same by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub highest_tier_name: Option<String>,
}

text_enum! {
    /// Whether a topology constraint must hold.
    NetworkTopologyMode {
        /// It must.
        Hard = "hard",
        /// It should.
        Soft = "soft",
    }
}

/// Groups within a group: pods that are alike in the labels named.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubGroupPolicy {
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How near to each other the pods of one sub-group must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_topology: Option<NetworkTopology>,
    /// Pods per sub-group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1), extend("default" = 1))]
    pub sub_group_size: Option<i32>,
    /// How many sub-groups must be complete for the group to start.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0), extend("default" = 0))]
    pub min_sub_groups: Option<i32>,
    /// Which pods are meant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub label_selector: Option<LabelSelector>,
    /// Labels whose values tell one sub-group from another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub match_label_keys: Vec<String>,
}

/// How a PodGroup goes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<PodGroupPhase>,
    /// Why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<PodGroupCondition>,
    /// Pods that run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub running: Option<i32>,
    /// Pods that ended well.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub succeeded: Option<i32>,
    /// Pods that ended badly.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub failed: Option<i32>,
}

text_enum! {
    /// Where a PodGroup stands.
    PodGroupPhase {
        /// It waits for its queue.
        Pending = "Pending",
        /// Its minimum of pods runs.
        Running = "Running",
        /// Some pods run and the others cannot.
        Unknown = "Unknown",
        /// Its queue has room; it waits for places.
        Inqueue = "Inqueue",
        /// All pods have ended.
        Completed = "Completed",
    }
}

/// A statement about a PodGroup. Not `meta/v1`'s: Volcano has its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PodGroupCondition {
    /// Unschedulable or Scheduled.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<String>,
    /// True, False or Unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Identifies the scheduling session in which it was said.
    #[serde(rename = "transitionID", skip_serializing_if = "Option::is_none")]
    pub transition_id: Option<String>,
    /// When it was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub last_transition_time: Option<Time>,
    /// Why, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Why, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}
