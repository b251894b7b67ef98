//! ResourceFlavor: a kind of nodes that quota is counted for.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Taint, Toleration};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{self, rule};

/// Which nodes a flavor means.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "ResourceFlavor",
    derive = "PartialEq",
    derive = "Default",
    shortname = "flavor",
    shortname = "flavors",
    shortname = "rf",
    category = "soroi",
    doc = "ResourceFlavor is a kind of nodes that quota is counted for."
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "!has(self.topologyName) || (has(self.nodeLabels) && self.nodeLabels.size() >= 1)",
        "topologyName needs at least one of nodeLabels",
    ),
    rule(
        "!has(oldSelf.topologyName) || (has(self.topologyName) && self.topologyName == oldSelf.topologyName)",
        "topologyName is immutable once set",
    ),
]))]
pub struct ResourceFlavorSpec {
    /// Labels that its nodes carry; they become the node selector of the pods that use it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::node_labels")]
    pub node_labels: BTreeMap<String, String>,
    /// Taints that its nodes carry; only workloads that tolerate them use it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::taints")]
    pub node_taints: Vec<Taint>,
    /// Tolerations that the pods which use it get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::tolerations")]
    pub tolerations: Vec<Toleration>,
    /// The Topology in which its nodes stand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub topology_name: Option<String>,
}
