//! What was decided? Reads a GangPlan back into the engine's words.

use std::sync::Arc;

use soroi_api::conditions::workload::reason as word;
use soroi_api::plan::{GangPlan, PlanPhase, PlanUndo, PlanVictim, PlannedPodSet};
use soroi_engine::decision::{Admission, PodSetAdmission};
use soroi_engine::event::{self, Name};
use soroi_engine::preempt::Cause;

use super::group;
use super::queue::{amount, policy};
use super::workload::topology_places;
use super::{Invalid, some_name, too_many_pods};

/// A GangPlan: the engine's fact, and what carrying it out needs beside.
#[derive(Clone, Debug, PartialEq)]
pub struct PlanFacts {
    /// The engine's fact.
    pub plan: event::Plan,
    /// The term of the leader that wrote it.
    pub epoch: i64,
    /// Why and how it is taken back (phase Undoing).
    pub undo: Option<PlanUndo>,
    /// The name of the PodGroup whose plan it is, if it is one's.
    pub group: Option<Name>,
    /// Who leaves for it (phase Holding).
    pub victims: Vec<PlanVictim>,
    /// The pod sets that pods of a PodGroup make.
    pub named: Vec<group::Named>,
}

/// A GangPlan.
///
/// # Errors
/// [`Invalid`] on the part that contradicts itself. Only Soroi writes plans, so such a one was
/// tampered with; the caller reports it and treats the gang as one whose plan was lost.
pub fn plan(plan: &GangPlan) -> Result<PlanFacts, Invalid> {
    let spec = &plan.spec;
    let status = plan.status.as_ref();
    let progressed_at = status.and_then(|status| status.progressed_at.as_ref());
    let phase = match status.and_then(|status| status.phase) {
        Some(PlanPhase::Holding) => event::PlanPhase::Holding,
        Some(PlanPhase::Settled) => event::PlanPhase::Settled,
        Some(PlanPhase::Undoing) => event::PlanPhase::Undoing,
        Some(PlanPhase::Committed) | None => event::PlanPhase::Committed,
    };
    let pod_sets = spec.pod_sets.iter().enumerate();
    let pod_sets =
        pod_sets.map(|(at, set)| pod_set(set).map_err(|e| e.within(&format!("spec.podSets[{at}]"))));
    let admission = Admission {
        gang: Arc::from(spec.gang.uid.as_str()),
        policy: policy(spec.policy.unwrap_or_default()),
        cluster_queue: some_name(spec.cluster_queue.as_ref()),
        pod_sets: pod_sets.collect::<Result<_, _>>()?,
    };
    let counts = admission.pod_sets.iter().map(|set| {
        let placed = set.nodes.iter().fold(0_u32, |sum, (_, pods)| sum.saturating_add(*pods));
        set.count.max(placed)
    });
    if let Some(problem) = too_many_pods("spec.podSets", counts) {
        return Err(problem);
    }
    let named = spec.pod_sets.iter().filter_map(|set| {
        let shape = set.shape.as_ref()?;
        Some((Arc::from(set.name.as_str()), Arc::from(shape.as_str())))
    });
    Ok(PlanFacts {
        group: (spec.gang.kind == "PodGroup").then(|| Arc::from(spec.gang.name.as_str())),
        victims: spec.victims.clone(),
        named: named.collect(),
        plan: event::Plan {
            gang: admission.gang.clone(),
            owners: spec.owners.iter().map(|owner| Arc::from(owner.as_str())).collect(),
            phase,
            admission,
            progressed_at: progressed_at.map_or(0, |time| time.0.as_millisecond()),
            victims: spec.victims.iter().map(victim).collect(),
        },
        epoch: spec.leader_epoch,
        undo: status.and_then(|status| status.undo.clone()),
    })
}

fn victim(victim: &PlanVictim) -> (event::GangId, Cause) {
    (Arc::from(victim.uid.as_str()), cause(victim.reason.as_deref().unwrap_or_default()))
}

/// The right by which a victim may be preempted, by the reason of its condition Preempted. One that is not
/// known is the commonest.
pub fn cause(reason: &str) -> Cause {
    match reason {
        word::IN_COHORT_RECLAMATION => Cause::Reclaim,
        word::IN_COHORT_RECLAIM_WHILE_BORROWING => Cause::ReclaimWhileBorrowing,
        word::IN_COHORT_FAIR_SHARING => Cause::FairSharing,
        _ => Cause::WithinQueue,
    }
}

fn pod_set(set: &PlannedPodSet) -> Result<PodSetAdmission, Invalid> {
    let name = |text: &String| -> Name { Arc::from(text.as_str()) };
    let nodes = set.nodes().map_err(|problem| Invalid::new("nodes", problem))?;
    let usage = set.usage.iter().map(|(resource, quantity)| {
        Ok((name(resource), amount(&format!("usage[{resource}]"), resource, quantity)?))
    });
    let topology = set.topology.as_ref().map(topology_places);
    Ok(PodSetAdmission {
        name: name(&set.name),
        count: u32::try_from(set.count).map_err(|_| Invalid::new("count", "must not be negative"))?,
        flavors: set.flavors.iter().map(|(resource, flavor)| (name(resource), name(flavor))).collect(),
        usage: usage.collect::<Result<_, Invalid>>()?,
        nodes: nodes.into_iter().map(|(node, pods)| (Arc::from(node), pods)).collect(),
        topology: topology.transpose().map_err(|problem| Invalid::new("topology", problem))?,
    })
}
