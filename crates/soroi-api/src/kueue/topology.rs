//! Topology: what is near what, as levels of node labels.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::{LABEL_KEY, rule};

/// The levels of a Topology.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "Topology",
    derive = "PartialEq",
    derive = "Default",
    shortname = "topo",
    category = "soroi",
    doc = "Topology says what is near what, as levels of node labels."
)]
#[serde(rename_all = "camelCase")]
pub struct TopologySpec {
    /// Node labels, coarsest first.
    #[schemars(length(min = 1, max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [
        rule(
            "self.all(a, self.exists_one(b, b.nodeLabel == a.nodeLabel))",
            "each level needs a node label of its own",
        ),
        rule(
            "self.all(l, l.nodeLabel != 'kubernetes.io/hostname') || self[self.size() - 1].nodeLabel == 'kubernetes.io/hostname'",
            "kubernetes.io/hostname can only be the last level",
        ),
        rule(
            "self == oldSelf || (self[self.size() - 1].nodeLabel == 'kubernetes.io/hostname' && oldSelf[oldSelf.size() - 1].nodeLabel == 'kubernetes.io/hostname')",
            "levels are immutable unless kubernetes.io/hostname is and stays the last one",
        ),
    ]))]
    pub levels: Vec<TopologyLevel>,
}

/// One level: nodes with the same value of the label (and of all levels above) form a domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyLevel {
    /// The key of the node label, for example `cloud.provider.com/topology-rack`.
    #[schemars(length(min = 1, max = 316), extend("pattern" = LABEL_KEY))]
    pub node_label: String,
}
