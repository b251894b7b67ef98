//! Cohort: a group of queues and cohorts that share unused quota.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quota::{FairSharing, FairSharingStatus, ResourceGroup, resources_disjoint};
use crate::schema::{self, rule};

/// Where a Cohort stands, and what it owns itself.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Cohort",
    status = "CohortStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "co",
    category = "soroi",
    doc = "Cohort is a group of queues and cohorts that share unused quota."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "has(self.parentName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit) && !has(r.lendingLimit))))",
    "borrowingLimit and lendingLimit need a parentName",
)]))]
pub struct CohortSpec {
    /// The cohort above it. Without it, it is the root of a tree. A cycle stops admission of all
    /// its members.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub parent_name: Option<String>,
    /// Quota that belongs to the cohort itself and that all its members may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [resources_disjoint()]))]
    pub resource_groups: Vec<ResourceGroup>,
    /// Its weight when unused quota of the cohort above is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
}

/// What a Cohort uses.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CohortStatus {
    /// How much it borrows relative to its weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
