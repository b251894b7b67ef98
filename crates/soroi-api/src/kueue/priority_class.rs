//! WorkloadPriorityClass: a priority for queueing that pods know nothing of.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The number, and what it is for.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "WorkloadPriorityClass",
    no_spec,
    derive = "PartialEq",
    derive = "Default",
    shortname = "wpc",
    category = "soroi",
    doc = "WorkloadPriorityClass is a priority for queueing that pods know nothing of.",
    printcolumn(name = "Value", type_ = "integer", json_path = ".value", description = "The priority")
)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadPriorityClassSpec {
    /// The priority; larger goes first. A change does not touch workloads that exist.
    pub value: i32,
    /// What it is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2048))]
    pub description: Option<String>,
}
