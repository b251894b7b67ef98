//! GangPlan: the commit record of a gang.
//!
//! What was decided for a gang stands here before anything outside changes, and it is the last
//! object to go: whoever leads after a crash reads it and carries on. Everything is in one object
//! without a status subresource, so that a decision and how far it was carried out are one write.
//!
//! Only Soroi's own account writes plans. People read them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::CustomResource;
use schemars::JsonSchema;
use schemars::transform::{RecursiveTransform, Transform};
use serde::{Deserialize, Serialize};

use crate::Quantities;
use crate::compress::{Parts, runs, split};
use crate::kueue::TopologyAssignment;
use crate::schema;
use crate::text_enum::text_enum;

/// The API group.
pub const GROUP: &str = "soroi.dev";
/// The version.
pub const VERSION: &str = "v1alpha1";

/// What was decided for a gang.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "soroi.dev",
    version = "v1alpha1",
    kind = "GangPlan",
    namespaced,
    status = "GangPlanStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "gp",
    category = "soroi",
    doc = "GangPlan is the commit record of a gang: where its pods go, and who pays. Written by Soroi only.",
    printcolumn(
        name = "Gang",
        type_ = "string",
        json_path = ".spec.gang.name",
        description = "The Workload, PodGroup or pod that stands for the gang"
    ),
    printcolumn(
        name = "Phase",
        type_ = "string",
        json_path = ".status.phase",
        description = "How far the plan was carried out"
    ),
    printcolumn(
        name = "Pods",
        type_ = "integer",
        json_path = ".spec.pods",
        description = "Pods that have a place or are paid for"
    ),
    printcolumn(
        name = "Policy",
        type_ = "string",
        json_path = ".spec.policy",
        priority = "1",
        description = "The placement policy that it was decided under"
    ),
    printcolumn(
        name = "ClusterQueue",
        type_ = "string",
        json_path = ".spec.clusterQueue",
        priority = "1",
        description = "The ClusterQueue that pays"
    ),
    printcolumn(
        name = "Age",
        type_ = "date",
        json_path = ".metadata.creationTimestamp",
        description = "When it was decided"
    )
)]
#[serde(rename_all = "camelCase")]
pub struct GangPlanSpec {
    /// Whose plan it is. The plan is named after the gang's uid.
    pub gang: GangRef,
    /// The epoch of the leader that last wrote the plan.
    #[schemars(range(min = 0))]
    pub leader_epoch: i64,
    /// The placement policy that it was decided under.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PlacementPolicy>,
    /// The LocalQueue, in the plan's namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub local_queue: Option<String>,
    /// The ClusterQueue that pays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub cluster_queue: Option<String>,
    /// The Volcano Queue that pays.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub volcano_queue: Option<String>,
    /// What its members name as their owner: the uids of Jobs, or a PodGroup. By them its bound
    /// members are still found when the gang itself is gone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub owners: Vec<String>,
    /// With how few pods the gang is whole. Without it, with all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub min_members: Option<i32>,
    /// All pods of all pod sets.
    #[schemars(range(min = 0))]
    pub pods: i32,
    /// What each pod set got.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 48))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub pod_sets: Vec<PlannedPodSet>,
    /// Gangs that leave for this one (phase Holding).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 1000))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["uid"]))]
    pub victims: Vec<PlanVictim>,
}

/// A gang that leaves for another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanVictim {
    /// Workload, PodGroup or Pod.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
    /// Why it may be told to, as its condition Preempted will say: `InClusterQueue`, ...
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub reason: Option<String>,
}

/// The object that stands for a gang.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangRef {
    /// Workload, PodGroup or Pod.
    #[schemars(length(min = 1, max = 63))]
    pub kind: String,
    /// Its namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its uid.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

text_enum! {
    /// Where and how places are decided.
    #[derive(Default)]
    PlacementPolicy {
        /// Quota and places in one decision; Soroi binds.
        #[default]
        Unified = "Unified",
        /// Places are checked where the flavor names a Topology, and pinned by node selectors.
        TopologyOnly = "TopologyOnly",
        /// Quota first, pods created, then places for the gang; Soroi binds.
        AfterAdmission = "AfterAdmission",
        /// Quota alone; another scheduler places pods one by one.
        QuotaOnly = "QuotaOnly",
    }
}

text_enum! {
    /// How places are chosen among those that do.
    #[derive(Default)]
    PackingPolicy {
        /// The fewest domains, then the one with the least to spare.
        #[default]
        BestFit = "BestFit",
        /// Where the cluster's own mix of pods loses least of what it could still use.
        Fragmentation = "Fragmentation",
        /// Where most is left.
        Spread = "Spread",
    }
}

/// What a pod set got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPodSet {
    /// The pod set.
    #[schemars(schema_with = "schema::pod_set_name")]
    pub name: String,
    /// How many of its pods have a place or are paid for.
    #[schemars(range(min = 0))]
    pub count: i32,
    /// The fingerprint of what its pods ask for, where the pods of a PodGroup make the pod set: by it
    /// they keep its name when pods of another kind join the group.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub shape: Option<String>,
    /// The flavor that pays for each resource.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::string_map")]
    pub flavors: BTreeMap<String, String>,
    /// What is paid for each resource, for all pods together.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(schema_with = "schema::quantities")]
    pub usage: Quantities,
    /// Where the pods go: nodes in the order of their names, similar names together. Empty where
    /// the policy decides no places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10000), extend("x-kubernetes-list-type" = "atomic"))]
    pub nodes: Vec<NodeGroup>,
    /// The same by topology domain, where the flavor names a Topology.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "topology")]
    pub topology: Option<TopologyAssignment>,
}

/// As in a Workload, without its rules: in so many pod sets the API server would not let them run, for
/// what they may cost, and would refuse the whole definition. Nobody but Soroi writes plans.
fn topology(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut schema = generator.subschema_for::<TopologyAssignment>();
    let mut without_rules = RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("x-kubernetes-validations");
    });
    without_rules.transform(&mut schema);
    schema
}

impl PlannedPodSet {
    /// Nodes and how many pods go to each, in the order of the names.
    ///
    /// # Errors
    /// A group contradicts itself.
    pub fn nodes(&self) -> Result<Vec<(String, u32)>, MalformedNodes> {
        let mut nodes = Vec::new();
        for (ix, group) in self.nodes.iter().enumerate() {
            group.expand(&mut nodes).map_err(|problem| MalformedNodes { group: ix, problem })?;
        }
        Ok(nodes)
    }
}

/// Nodes whose names begin and end alike, column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NodeGroup {
    /// What all names begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub prefix: String,
    /// What is between, one entry per node.
    #[schemars(schema_with = "node_roots")]
    pub roots: Vec<String>,
    /// What all names end with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 253))]
    pub suffix: String,
    /// Pods per node, if the same for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub pods: Option<i32>,
    /// Pods per node, one entry per node.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crate::kueue::pod_counts_schema")]
    pub pods_each: Vec<i32>,
}

fn node_roots(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schema::strings(100_000, 253)
}

/// A node group that contradicts itself. Counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nodes[{group}]: {problem}")]
pub struct MalformedNodes {
    /// The group.
    pub group: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl NodeGroup {
    /// Writes nodes down in little space. They are sorted by name; a name that comes twice is one
    /// node with the sum of its pods, and a node without pods is left out.
    pub fn compress<'a>(nodes: impl IntoIterator<Item = (&'a str, u32)>) -> Vec<Self> {
        let mut pods_on: BTreeMap<&str, i32> = BTreeMap::new();
        for (name, pods) in nodes {
            let sum = pods_on.entry(name).or_default();
            *sum = sum.saturating_add(i32::try_from(pods).unwrap_or(i32::MAX));
        }
        pods_on.retain(|_, pods| *pods > 0);
        let names: Vec<&str> = pods_on.keys().copied().collect();
        let counts: Vec<i32> = pods_on.values().copied().collect();
        let mut groups = Vec::new();
        let mut start = 0;
        for len in runs(&names) {
            groups.push(Self::column(&names[start..start + len], &counts[start..start + len]));
            start += len;
        }
        groups
    }

    fn column(names: &[&str], counts: &[i32]) -> Self {
        let Parts { prefix, suffix, roots } = split(names);
        let pods = crate::kueue::uniform(counts);
        Self {
            prefix: prefix.to_owned(),
            roots: roots.into_iter().map(str::to_owned).collect(),
            suffix: suffix.to_owned(),
            pods,
            pods_each: if pods.is_some() { Vec::new() } else { counts.to_vec() },
        }
    }

    fn expand(&self, nodes: &mut Vec<(String, u32)>) -> Result<(), &'static str> {
        if self.pods.is_none() && self.pods_each.len() != self.roots.len() {
            return Err("needs pods, or one entry of podsEach per root");
        }
        for (ix, root) in self.roots.iter().enumerate() {
            let pods = self.pods.or_else(|| self.pods_each.get(ix).copied()).unwrap_or_default();
            let pods = u32::try_from(pods).map_err(|_| "the number of pods is negative")?;
            nodes.push((format!("{}{root}{}", self.prefix, self.suffix), pods));
        }
        Ok(())
    }
}

/// How far a plan was carried out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GangPlanStatus {
    /// Where it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<PlanPhase>,
    /// When a member was last created or bound, or the phase changed. Time-outs count from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::time")]
    pub progressed_at: Option<MicroTime>,
    /// Why and how the plan is taken back (phase Undoing).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<PlanUndo>,
}

text_enum! {
    /// Where a plan stands.
    PlanPhase {
        /// Places and quota are kept while victims leave.
        Holding = "Holding",
        /// The decision stands: the gang is released, gathered and bound.
        Committed = "Committed",
        /// All members are bound.
        Settled = "Settled",
        /// The decision is being taken back.
        Undoing = "Undoing",
    }
}

/// Why and how a plan is taken back. Enough to finish it after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanUndo {
    /// The reason for the Workload's condition, in one word.
    #[schemars(length(min = 1, max = 1024))]
    pub reason: String,
    /// The same for people.
    #[schemars(length(max = 32768))]
    pub message: String,
    /// Members ran already: this is an eviction, and the Workload gets an Evicted condition.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub started: bool,
    /// Of a preemption, the reason of the Workload's condition Preempted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub cause: Option<String>,
}

#[cfg(test)]
mod tests;
