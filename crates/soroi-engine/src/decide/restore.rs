//! What was admitted before the engine started, and what shows that a commit went through.

use std::collections::BTreeMap;

use super::assign::totals;
use super::gang::{Held, Phase};
use super::wanted::StartSet;
use crate::decision::{Admission, Decision, PodSetAdmission, TopologyDomain, TopologyPlaces};
use crate::engine::Engine;
use crate::event::{
    Admitted, Gang, GangId, Millis, Name, Plan, PlanPhase, PodSet, Policy, Readiness, TopologyRequest,
};
use crate::place::{PlaceRequest, PodSetRequest, place};
use crate::quota::saturate;
use crate::reason::{NotYet, UndoReason};

impl Engine {
    /// Before a gang is looked at: what its objects say it holds is held, and what they show as
    /// written is committed.
    pub(super) fn restore(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let state = &self.gangs[id];
        let plan = self.plans.get(id);
        if let Some(held) = &state.held {
            let unknown = matches!(held.phase, Phase::Assumed | Phase::Replacing);
            let by_plan = unknown && plan.is_some_and(|plan| shows(plan, held));
            let shown = state.fact.as_ref().and_then(|fact| fact.admitted.as_ref());
            let shown = shown.filter(|_| !state.status_echoes && !held.binds());
            let by_status = shown
                .is_some_and(|shown| Some(&shown.cluster_queue) == held.admission.cluster_queue.as_ref());
            if by_plan || by_status {
                self.committed(id, now);
            }
            self.meet_gang(id);
            return;
        }
        if state.gone || state.hold.is_some() {
            return;
        }
        if plan.is_some_and(|plan| plan.phase == PlanPhase::Holding) && !state.plan_echoes {
            self.holds_found.insert(id.clone());
        }
        if let Some(plan) = plan.filter(|plan| plan.phase != PlanPhase::Holding && !state.plan_echoes) {
            self.adopt_plan(plan.clone(), now, out);
            return;
        }
        let Some(fact) = state.fact.clone() else { return };
        match &fact.admitted {
            Some(admitted) if !state.status_echoes => self.adopt_admitted(&fact, admitted, now, out),
            Some(_) => {}
            None => self.adopt_bound(&fact, now, out),
        }
    }

    fn adopt_plan(&mut self, plan: Plan, now: Millis, out: &mut Vec<Decision>) {
        let id = plan.gang.clone();
        let undoing = plan.phase == PlanPhase::Undoing;
        let phase = if undoing { Phase::Undoing(UndoReason::Interrupted) } else { Phase::Committed };
        self.waiting.leave(&id);
        self.hold(plan.admission, phase, now);
        if let Some(held) = self.gangs.get_mut(&id).and_then(|state| state.held.as_mut()) {
            held.was_whole = plan.phase == PlanPhase::Settled;
            let all = held.sets.iter().map(|set| set.seats.len()).sum::<usize>();
            held.settled = held.was_whole && held.running_or_done() as usize == all;
        }
        if undoing {
            let reason = UndoReason::Interrupted;
            out.push(Decision::Undo { gang: id.clone(), reason, started: false });
        }
    }

    /// A gang that its status shows as admitted. Policies without plans need no more than that.
    /// Where there should be a plan and is none: bound pods are an implied commit; without them
    /// the gang is decided again within its quota.
    fn adopt_admitted(&mut self, fact: &Gang, admitted: &Admitted, now: Millis, out: &mut Vec<Decision>) {
        let policy = self.policy_of(fact);
        let admission = admission_of(fact, admitted, policy);
        self.waiting.leave(&fact.id);
        self.hold(admission, Phase::Committed, now);
        if admitted.leaving && !policy.soroi_binds() {
            // An earlier run told it to; whoever carries that out reads why where it is written.
            self.undo(&fact.id, UndoReason::Interrupted, out);
            return;
        }
        if !policy.soroi_binds() {
            self.find_pinned_places(&fact.id, admitted);
            return;
        }
        let parked = fact.readiness == Readiness::NotYet(NotYet::ChecksPending);
        let Some(held) = self.gangs.get_mut(&fact.id).and_then(|state| state.held.as_mut()) else { return };
        held.orphan = !held.started() && !parked && policy == Policy::Unified;
        if held.started() {
            self.write_places(&fact.id, now, out);
        }
    }

    /// Members of a gang that is pinned to domains, and that are not bound yet, keep room there.
    fn find_pinned_places(&mut self, id: &GangId, admitted: &Admitted) {
        let Some(held) = self.gangs.get(id).and_then(|state| state.held.as_ref()) else { return };
        let sets: Vec<Name> = held.sets.iter().map(|set| set.name.clone()).collect();
        for (at, name) in sets.iter().enumerate() {
            let Some(pinned) = admitted.topology.get(name) else { continue };
            let (mut nodes, unbound) = self.bound_in(id, at, pinned);
            if let Some(request) = self.pinned_request(id, at, unbound) {
                let request = PlaceRequest { pod_sets: vec![request], ..PlaceRequest::default() };
                // Not found: somebody else sits there now. The pods are pinned all the same, and
                // will be seen when they are bound.
                let placement = place(&mut self.cluster, &request).ok();
                let places =
                    placement.into_iter().flat_map(|placement| placement.pod_sets).flat_map(|set| set.nodes);
                nodes.extend(places.flat_map(|(node, count)| (0..count).map(move |_| node.clone())));
            }
            if let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) {
                held.add_seats(at, nodes.into_iter().map(Some));
            }
        }
        self.charge_seats(id);
        self.seat_everybody(id);
    }

    /// The nodes of a pod set's bound members, and what is left of its domains without them.
    fn bound_in(&self, id: &GangId, at: usize, pinned: &TopologyPlaces) -> (Vec<Name>, Vec<TopologyDomain>) {
        let (state, mut left) = (&self.gangs[id], pinned.domains.clone());
        let members = self.world.members(id, &state.owners).filter(|pod| state.set_of(pod) == Some(at));
        let nodes: Vec<Name> =
            members.filter(|pod| pod.is_live()).filter_map(|pod| pod.node.clone()).collect();
        for node in &nodes {
            let Some(labels) = self.cluster.node(node).map(|node| &node.labels) else { continue };
            let values: Vec<Option<&Name>> = pinned.levels.iter().map(|level| labels.get(level)).collect();
            let mine =
                |domain: &&mut TopologyDomain| domain.values.iter().map(Some).eq(values.iter().copied());
            if let Some(domain) = left.iter_mut().find(mine) {
                domain.count = domain.count.saturating_sub(1);
            }
        }
        left.retain(|domain| domain.count > 0);
        (nodes, left)
    }

    fn pinned_request(&self, id: &GangId, at: usize, domains: Vec<TopologyDomain>) -> Option<PodSetRequest> {
        if domains.is_empty() {
            return None;
        }
        let state = self.gangs.get(id)?;
        let set = &state.held.as_ref()?.sets[at];
        Some(PodSetRequest {
            name: set.name.clone(),
            role: None,
            count: domains.iter().map(|domain| domain.count).sum(),
            ask: set.ask(&state.expected(&set.name)?.without_neighbours()),
            who: None,
            topology: set.topology.clone(),
            request: TopologyRequest::NONE,
            group: None,
            bound: Vec::new(),
            pinned: domains,
        })
    }

    /// A plan may be known before the gang. When that is known too, its places are charged in the
    /// shape of its pods, its members sit down, and its seat in the Volcano tree is charged.
    fn meet_gang(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let (Some(fact), Some(held)) = (&state.fact, &mut state.held) else { return };
        let mut unmet = !held.shaped;
        held.shaped = true;
        for set in &mut held.sets {
            // A set without pods is not among them, and stays what it was.
            if let Some(named) = fact.pod_sets.iter().find(|named| named.name == set.name) {
                unmet |= set.shape.is_none();
                set.role.clone_from(&named.role);
                set.shape = Some(named.shape.clone());
            }
        }
        if !unmet {
            return;
        }
        if held.charge.volcano.is_none() && fact.volcano_queue.is_some() {
            let queue = fact.volcano_queue.clone();
            self.charge_anew(id, queue);
        }
        self.charge_seats(id);
        self.seat_everybody(id);
    }
}

/// Whether a plan shows that what is held was written down. An older plan of the same gang may
/// give the same places; it is told by its time, which may have been cut to seconds.
fn shows(plan: &Plan, held: &Held) -> bool {
    let written = matches!(plan.phase, PlanPhase::Committed | PlanPhase::Settled);
    written
        && plan.progressed_at > held.decided_at.saturating_sub(1_000)
        && same_places(&plan.admission, &held.admission)
}

/// Whether two admissions give the same nodes and flavors: what a plan keeps of one.
fn same_places(one: &Admission, other: &Admission) -> bool {
    one.pod_sets.len() == other.pod_sets.len()
        && one.pod_sets.iter().zip(&other.pod_sets).all(|(one, other)| {
            one.name == other.name && one.nodes == other.nodes && one.flavors == other.flavors
        })
}

fn admission_of(fact: &Gang, admitted: &Admitted, policy: Policy) -> Admission {
    let pod_set = |(name, count, flavors): &(Name, u32, BTreeMap<Name, Name>)| match fact
        .pod_sets
        .iter()
        .find(|set| set.name == *name)
    {
        Some(set) => paid(set, *count, flavors.clone()),
        None => PodSetAdmission {
            name: name.clone(),
            count: *count,
            flavors: flavors.clone(),
            usage: BTreeMap::new(),
            nodes: Vec::new(),
            topology: None,
        },
    };
    Admission {
        gang: fact.id.clone(),
        policy,
        cluster_queue: Some(admitted.cluster_queue.clone()),
        pod_sets: admitted.pod_sets.iter().map(pod_set).collect(),
    }
}

pub(super) fn paid(set: &PodSet, count: u32, flavors: BTreeMap<Name, Name>) -> PodSetAdmission {
    let set = StartSet {
        name: set.name.clone(),
        role: set.role.clone(),
        count,
        least: None,
        shape: set.charged().clone(),
        placed: set.shape.clone(),
        topology: set.topology.clone(),
        who: None,
    };
    let mut usage: BTreeMap<Name, i64> =
        totals(&set, count, None).into_iter().map(|(resource, sum)| (resource, saturate(sum))).collect();
    if flavors.contains_key(crate::resources::PODS_NAME) {
        usage.insert(crate::resources::PODS_NAME.into(), i64::from(count));
    }
    PodSetAdmission { name: set.name, count, flavors, usage, nodes: Vec::new(), topology: None }
}

#[cfg(test)]
mod tests;
