//! The GangPlan of a decision, and what changes in it while it is carried out.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, OwnerReference};
use soroi_api::labels::soroi as soroi_keys;
use soroi_api::names;
use soroi_api::plan::{
    GangPlan, GangPlanSpec, GangPlanStatus, GangRef, NodeGroup, PlanPhase, PlanUndo, PlanVictim,
    PlannedPodSet,
};
use soroi_api::{Quantities, Quantity};
use soroi_engine::decision::{Admission, PodSetAdmission};
use soroi_engine::event;

use super::status::topology_assignment;
use crate::intake::queue::placement_policy;

/// Whose plan it is, and what it must say beside the decision.
#[derive(Clone, Debug)]
pub struct PlanOf<'a> {
    /// The object that stands for the gang; the plan is named after its uid.
    pub gang: GangRef,
    /// The API version of that object: it becomes an owner of the plan, so that the plan is
    /// deleted with it, once the finalizer allows.
    pub api_version: &'a str,
    /// What the gang's pods say of their owner ([`event::Gang::owners`]).
    pub owners: &'a [event::Name],
    /// The epoch of the leader that writes it.
    pub leader_epoch: i64,
    /// The LocalQueue.
    pub local_queue: Option<&'a str>,
    /// The Volcano Queue.
    pub volcano_queue: Option<&'a str>,
    /// With how few pods the gang is whole.
    pub min_members: Option<u32>,
    /// By pod set, where pods of a PodGroup make it: the fingerprint of their shape.
    pub shapes: BTreeMap<event::Name, event::Name>,
    /// Who leaves for it.
    pub victims: &'a [PlanVictim],
}

/// The commit record of a decision, as it is created or, with the same name, replaced.
pub fn plan(of: &PlanOf<'_>, admission: &Admission, phase: event::PlanPhase, now: Timestamp) -> GangPlan {
    let gang = &of.gang;
    let total = admission.pod_sets.iter().fold(0_u32, |sum, set| sum.saturating_add(set.count));
    let spec = GangPlanSpec {
        gang: gang.clone(),
        owners: of.owners.iter().map(ToString::to_string).collect(),
        leader_epoch: of.leader_epoch,
        policy: Some(placement_policy(admission.policy)),
        local_queue: of.local_queue.map(Into::into),
        cluster_queue: admission.cluster_queue.as_deref().map(Into::into),
        volcano_queue: of.volcano_queue.map(Into::into),
        min_members: of.min_members.map(pods),
        pods: pods(total),
        pod_sets: admission.pod_sets.iter().map(|set| planned(set, of.shapes.get(&set.name))).collect(),
        victims: of.victims.to_vec(),
    };
    let mut plan = GangPlan::new(&names::gang_plan(&gang.uid), spec);
    plan.metadata.namespace = Some(gang.namespace.clone());
    plan.metadata.finalizers = Some(vec![soroi_keys::PLAN_FINALIZER.into()]);
    plan.metadata.owner_references = Some(vec![OwnerReference {
        api_version: of.api_version.into(),
        kind: gang.kind.clone(),
        name: gang.name.clone(),
        uid: gang.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(false),
    }]);
    plan.status = Some(status(phase, now, None));
    plan
}

/// The status of a plan in this phase, with its last progress now.
pub fn status(phase: event::PlanPhase, now: Timestamp, undo: Option<PlanUndo>) -> GangPlanStatus {
    let phase = match phase {
        event::PlanPhase::Holding => PlanPhase::Holding,
        event::PlanPhase::Committed => PlanPhase::Committed,
        event::PlanPhase::Settled => PlanPhase::Settled,
        event::PlanPhase::Undoing => PlanPhase::Undoing,
    };
    GangPlanStatus { phase: Some(phase), progressed_at: Some(MicroTime(now)), undo }
}

fn pods(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn planned(set: &PodSetAdmission, shape: Option<&event::Name>) -> PlannedPodSet {
    let usage = set.usage.iter();
    let usage: Quantities =
        usage.map(|(resource, amount)| (resource.to_string(), Quantity::of(resource, *amount))).collect();
    let flavors = set.flavors.iter().map(|(resource, flavor)| (resource.to_string(), flavor.to_string()));
    PlannedPodSet {
        name: set.name.to_string(),
        count: pods(set.count),
        shape: shape.map(ToString::to_string),
        flavors: flavors.collect(),
        usage,
        nodes: NodeGroup::compress(set.nodes.iter().map(|(node, pods)| (&**node, *pods))),
        topology: set.topology.as_ref().map(topology_assignment),
    }
}

#[cfg(test)]
mod tests;
