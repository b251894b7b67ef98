//! Quotas and their usage, as ClusterQueues and Cohorts share them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Quantity;
use crate::schema::{self, rule};
use crate::text_enum::text_enum;

text_enum! {
    /// Whether a queue admits.
    #[derive(Default)]
    StopPolicy {
        /// It does.
        #[default]
        None = "None",
        /// Nothing new; what runs stays.
        Hold = "Hold",
        /// Nothing new, and what runs is evicted.
        HoldAndDrain = "HoldAndDrain",
    }
}

/// The rule that a resource belongs to one group only. That the same holds of flavors is checked at
/// admission: as a rule it would cost more than the API server allows.
pub(crate) fn resources_disjoint() -> serde_json::Value {
    rule(
        "self.all(g, g.coveredResources.all(r, self.exists_one(h, r in h.coveredResources)))",
        "a resource must be covered by one resource group only",
    )
}

/// Resources that the same flavors serve, in order of preference.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "self.flavors.all(f, f.resources.map(r, r.name) == self.coveredResources)",
    "each flavor must list exactly the coveredResources, in the same order",
)]))]
pub struct ResourceGroup {
    /// The resources that the flavors of this group serve.
    #[schemars(schema_with = "schema::covered_resources")]
    pub covered_resources: Vec<String>,
    /// The flavors, preferred first.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors: Vec<FlavorQuotas>,
}

/// Quotas of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorQuotas {
    /// The name of the ResourceFlavor.
    #[schemars(schema_with = "schema::name")]
    pub name: String,
    /// One quota for each covered resource, in the same order.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceQuota>,
}

/// Quota of one resource in one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!has(self.lendingLimit) || quantity(string(self.lendingLimit)).compareTo(quantity(string(self.nominalQuota))) <= 0",
    "lendingLimit must be at most nominalQuota",
)]))]
pub struct ResourceQuota {
    /// The resource.
    #[schemars(schema_with = "schema::resource_name")]
    pub name: String,
    /// How much the queue or cohort owns.
    #[schemars(schema_with = "schema::quantity_unsigned")]
    pub nominal_quota: Quantity,
    /// How much more than its own it may use of what others leave unused. Without it, no limit.
    /// Needs a cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity_unsigned")]
    pub borrowing_limit: Option<Quantity>,
    /// How much of its own, when unused, others may use; at most nominalQuota. Without it, all.
    /// Needs a cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity_unsigned")]
    pub lending_limit: Option<Quantity>,
}

/// The weight of a queue or cohort when unused quota is shared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharing {
    /// Its share relative to its siblings'. Zero: it borrows only what nobody else wants.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::weight")]
    pub weight: Option<Quantity>,
}

/// How much a queue or cohort borrows relative to its weight.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FairSharingStatus {
    /// The largest share over all resources of what it uses above its own, in thousandths of what
    /// its cohort could lend, divided by its weight.
    pub weighted_share: i64,
}

/// Usage of one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FlavorUsage {
    /// The name of the ResourceFlavor.
    #[schemars(schema_with = "schema::name")]
    pub name: String,
    /// Usage per resource.
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub resources: Vec<ResourceUsage>,
}

/// Usage of one resource in one flavor.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ResourceUsage {
    /// The resource.
    #[schemars(schema_with = "schema::resource_name")]
    pub name: String,
    /// How much is in use, borrowed included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub total: Option<Quantity>,
    /// How much of it is borrowed from the cohort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::quantity")]
    pub borrowed: Option<Quantity>,
}
