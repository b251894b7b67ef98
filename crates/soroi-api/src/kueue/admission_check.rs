//! AdmissionCheck: a question that another controller answers before a workload starts.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, LABEL, SUBDOMAIN, rule};

/// Who answers, and by what parameters.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "AdmissionCheck",
    status = "AdmissionCheckStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "ac",
    category = "soroi",
    doc = "AdmissionCheck is a question that another controller answers before a workload starts."
)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckSpec {
    /// The controller that answers. Immutable.
    #[schemars(length(min = 1, max = 253))]
    #[schemars(extend("x-kubernetes-validations" = [rule("self == oldSelf", "field is immutable")]))]
    pub controller_name: String,
    /// The object with the controller's parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<AdmissionCheckParameters>,
}

/// Names an object with parameters.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckParameters {
    /// Its API group.
    #[schemars(length(min = 1, max = 253), extend("pattern" = SUBDOMAIN))]
    pub api_group: String,
    /// Its kind.
    #[schemars(length(min = 1, max = 63), extend("pattern" = "^[A-Za-z]([-A-Za-z0-9]*[A-Za-z0-9])?$"))]
    pub kind: String,
    /// Its name.
    #[schemars(length(min = 1, max = 63), extend("pattern" = LABEL))]
    pub name: String,
}

/// Whether the check can be used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckStatus {
    /// Whether its controller is at work (type Active).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
}
