//! Holds: quota and places that are kept for a gang while its victims leave.
//!
//! A hold is written down before anybody is evicted. It ends when no victim is left: the gang is decided
//! again then, on what they left and nobody else could take, and is admitted, or finds new
//! victims, or waits as everybody does. It also ends when the gang must not run any more.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admit::{admission_of, charge_of};
use super::gang::Phase;
use super::search::Answer;
use super::wanted::{Standing, Start, Wanted};
use crate::cluster::Occupant;
use crate::decision::{Admission, Decision};
use crate::engine::Engine;
use crate::event::{Amount, GangId, Millis, Name, PlanPhase, Policy, Shape};
use crate::preempt::Cause;
use crate::queue::LineKey;
use crate::quota::Charge;
use crate::reason::{Preempted, Reason, UndoReason};

/// What is kept for a gang.
#[derive(Clone, Debug)]
pub(crate) struct Hold {
    pub(crate) admission: Admission,
    pub(crate) charge: Charge,
    /// Who leaves for it, and why they may be told to. Those who have left stay named.
    pub(crate) victims: BTreeMap<GangId, Cause>,
    /// Why it could not start without.
    pub(crate) reason: Arc<Reason>,
    /// What it asked for.
    start: Start,
    /// It is known to be written down.
    pub(crate) written: bool,
}

impl Engine {
    /// Keeps for a gang what its victims will leave.
    pub(super) fn begin_hold(
        &mut self,
        id: &GangId,
        start: &Start,
        answer: Answer,
        reason: Reason,
        out: &mut Vec<Decision>,
    ) {
        let victims = answer.victims.clone();
        let admission = admission_of(id, start, answer);
        let victims: BTreeMap<GangId, Cause> = victims.into_iter().collect();
        self.waiting.leave(id);
        self.keep(id, start.clone(), admission.clone(), victims.clone(), Arc::new(reason), false);
        if let Some(state) = self.gangs.get_mut(id) {
            state.told = None;
        }
        self.to_tell.insert(id.clone());
        out.push(Decision::Hold { admission, victims: victims.into_iter().collect() });
    }

    fn keep(
        &mut self,
        id: &GangId,
        start: Start,
        admission: Admission,
        victims: BTreeMap<GangId, Cause>,
        reason: Arc<Reason>,
        written: bool,
    ) {
        let paid: Vec<u32> = admission.pod_sets.iter().map(|set| set.count).collect();
        let charge = charge_of(&admission, &paid, None);
        self.quotas.promise(&charge, true);
        for victim in victims.keys() {
            self.give_up(victim, Some(id));
        }
        let Some(state) = self.gangs.get_mut(id) else { return };
        state.hold = Some(Hold { admission, charge, victims, reason, start, written });
        self.holders.insert(id.clone());
        self.holds_moved.insert(id.clone());
        self.keep_room(id);
    }

    /// Counts what a gang holds as somebody else's from now on, or as its own again.
    fn give_up(&mut self, id: &GangId, to: Option<&GangId>) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        if state.given_up_to.is_some() == to.is_some() {
            return;
        }
        let before = std::mem::replace(&mut state.given_up_to, to.cloned());
        self.holds_moved.extend(before);
        let state = &self.gangs[id];
        for charge in state.charges() {
            self.quotas.give_up(charge, to.is_some());
        }
        if to.is_none() {
            // It stays, and may be asked to leave for somebody else.
            self.note_easier(id);
        }
    }

    /// Nothing is kept for the gang any more. Victims that were not told to leave stay.
    fn end_hold(&mut self, id: &GangId) -> Option<Hold> {
        let hold = self.gangs.get_mut(id)?.hold.take()?;
        self.holders.remove(id);
        self.holds_moved.remove(id);
        self.quotas.promise(&hold.charge, false);
        if hold.admission.policy == Policy::QuotaOnly {
            // What was promised kept others from asking anybody to leave.
            let queue = hold.admission.cluster_queue.as_ref();
            self.reranked.extend(queue.and_then(|queue| self.quotas.kueue.root(queue)));
        }
        for node in kept_nodes(&hold) {
            self.cluster.uncharge(&Occupant::Kept { gang: id.clone(), node: node.clone() });
        }
        for victim in hold.victims.keys() {
            if self.gangs.get(victim).is_some_and(|state| state.given_up_to.as_ref() == Some(id)) {
                self.give_up(victim, None);
            }
        }
        Some(hold)
    }

    /// The plan of a hold could not be written: nobody was told anything.
    pub(super) fn hold_not_written(&mut self, id: &GangId, now: Millis) {
        if self.end_hold(id).is_none() {
            return;
        }
        let pause = self.settings.undo_backoff_min;
        if let Some(state) = self.gangs.get_mut(id) {
            state.not_before = now.saturating_add(pause);
        }
        self.touch(id);
    }

    /// Charges nodes for the places of a hold, as far as victims there do not take them still. So what is
    /// left for others fits both now and when the victims are gone.
    pub(crate) fn keep_room(&mut self, id: &GangId) {
        for (node, shape) in self.kept_on(id) {
            let occupant = Occupant::Kept { gang: id.clone(), node: node.clone() };
            match shape {
                Some(shape) => self.cluster.charge(occupant, &node, &Arc::new(shape)),
                None => _ = self.cluster.uncharge(&occupant),
            }
        }
    }

    /// Per node of a hold, what is to be kept there beside what its victims still take.
    pub(crate) fn kept_on(&self, id: &GangId) -> BTreeMap<Name, Option<Shape>> {
        let Some(state) = self.gangs.get(id) else { return BTreeMap::new() };
        let Some(hold) = &state.hold else { return BTreeMap::new() };
        let mut wanted: BTreeMap<Name, BTreeMap<Name, Amount>> = BTreeMap::new();
        for set in &hold.admission.pod_sets {
            let Some(shape) = state.expected(&set.name) else { continue };
            for (node, count) in &set.nodes {
                let on_node = wanted.entry(node.clone()).or_default();
                for (resource, amount) in &shape.requests {
                    let all = amount.saturating_mul(Amount::from(*count));
                    let sum = on_node.entry(resource.clone()).or_default();
                    *sum = sum.saturating_add(all);
                }
            }
        }
        for victim in hold.victims.keys() {
            for occupant in self.occupants_of(victim) {
                let Some((node, requests)) = self.cluster.charge_of(&occupant) else { continue };
                let Some(on_node) = wanted.get_mut(node) else { continue };
                for (resource, amount) in requests {
                    if let Some(sum) = on_node.get_mut(&resource) {
                        *sum = sum.saturating_sub(amount);
                    }
                }
            }
        }
        let kept = wanted.into_iter().map(|(node, mut requests)| {
            requests.retain(|_, amount| *amount > 0);
            (node, (!requests.is_empty()).then(|| Shape { requests, ..Shape::default() }))
        });
        kept.collect()
    }

    /// Whatever of a gang may charge a node: pods that are there, and places.
    pub(crate) fn occupants_of(&self, id: &GangId) -> Vec<Occupant> {
        self.gangs.get(id).map_or_else(Vec::new, |state| super::victims::occupants(&self.world, id, state))
    }

    /// Holds that a restart finds written down are taken up. Their victims may be known already or not.
    pub(crate) fn adopt_holds(&mut self) {
        for id in std::mem::take(&mut self.holds_found) {
            let Some(plan) = self.plans.get(&id).filter(|plan| plan.phase == PlanPhase::Holding) else {
                continue;
            };
            let (admission, named) = (plan.admission.clone(), plan.victims.clone());
            let Some(state) = self.gangs.get(&id) else { continue };
            if state.hold.is_some() || state.held.is_some() || state.fact.is_none() || state.plan_echoes {
                continue;
            }
            let start = match self.standing(&id, Millis::MAX) {
                Standing::Waits(_, _, start) => start,
                // It is let go when it is looked at next.
                Standing::Hindered(..) => Start::default(),
            };
            let there = |(victim, _): &(GangId, Cause)| {
                self.gangs
                    .get(victim)
                    .is_some_and(|state| state.given_up_to.is_none() && state.charges().next().is_some())
            };
            let victims = named.into_iter().filter(there).collect();
            self.waiting.leave(&id);
            // What it lacks is still what its victims hold.
            let reason = match self.answer_without_victims(&start) {
                Err(no) => no.reason,
                Ok(_) => Reason::NoFlavor(Vec::new()),
            };
            self.keep(&id, start, admission, victims, Arc::new(reason), true);
            self.to_tell.insert(id);
        }
    }

    /// Has the next decision look at the hold of this gang, and at the one that it is a victim of.
    pub(crate) fn note_hold_moved(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get(id) else { return };
        if state.hold.is_some() {
            self.holds_moved.insert(id.clone());
        }
        self.holds_moved.extend(state.given_up_to.clone());
    }

    /// Goes on with every hold that may be further than it was: evicts, waits, or ends it.
    pub(crate) fn settle_holds(&mut self, now: Millis, out: &mut Vec<Decision>) {
        for id in std::mem::take(&mut self.holds_moved) {
            self.keep_room(&id);
            let Some(hold) = self.gangs.get(&id).and_then(|state| state.hold.as_ref()) else { continue };
            let wanted = match self.gangs[&id].fact.is_some().then(|| self.standing(&id, now)) {
                Some(Standing::Waits(_, _, start)) => Some(start),
                _ => None,
            };
            if wanted.as_ref() != Some(&hold.start) {
                self.let_hold_go(&id, now, out);
                continue;
            }
            let victims = hold.victims.clone();
            let written = hold.written;
            let here = |victim: &GangId| {
                self.gangs.get(victim).is_some_and(|state| state.given_up_to.as_ref() == Some(&id))
            };
            let staying: BTreeMap<GangId, Cause> =
                victims.into_iter().filter(|(victim, _)| here(victim)).collect();
            if staying.is_empty() && self.is_one_getting_ready() {
                // What they left is kept until it is its turn, which nobody says.
                self.holds_moved.insert(id);
                continue;
            }
            if staying.is_empty() {
                self.end_or_start(&id, now, out);
            } else if written {
                for (victim, cause) in staying {
                    self.evict_for(&id, &victim, cause, out);
                }
            }
        }
    }

    /// Tells a victim to leave, if it was not told and can be.
    fn evict_for(&mut self, by: &GangId, victim: &GangId, cause: Cause, out: &mut Vec<Decision>) {
        let Some(held) = self.gangs.get(victim).and_then(|state| state.held.as_ref()) else { return };
        // What is not known to be written cannot be taken back yet.
        if !matches!(held.phase, Phase::Committed | Phase::Replacing) {
            return;
        }
        let theirs = held.admission.cluster_queue.clone();
        let ours = self.gangs[by].hold.as_ref().and_then(|hold| hold.admission.cluster_queue.clone());
        let path = |queue: Option<Name>| -> Name {
            let names = queue.map(|queue| self.quotas.kueue.path(&queue)).unwrap_or_default();
            format!("/{}", names.join("/")).into()
        };
        let (by_path, path) = (path(ours), path(theirs));
        let mut evicted_by = self.gangs[victim].preempted_by.clone();
        evicted_by.retain(|id| self.gangs.contains_key(id));
        evicted_by.insert(by.clone());
        self.gangs.get_mut(victim).expect("it holds quota").preempted_by = evicted_by;
        let priority = |id: &GangId| self.gangs[id].fact.as_ref().map_or(0, |fact| fact.priority);
        let (by_priority, priority) = (priority(by), priority(victim));
        let preempted = Preempted { by: by.clone(), cause, by_path, path, by_priority, priority };
        self.undo(victim, UndoReason::Preempted(preempted), out);
        self.look_again(victim, None);
        self.recount(victim);
    }

    /// No victim is left. What they left is given to nobody else before this is decided.
    fn end_or_start(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let Some(hold) = self.end_hold(id) else { return };
        match self.answer(id, &hold.start, now) {
            Ok(answer) => {
                self.begin(id, &hold.start, answer, now, out);
            }
            // What its victims left is its own when the others have left whom it shares a tree with.
            Err(_) if self.others_still_leave(&hold) => {
                self.keep(id, hold.start, hold.admission, hold.victims, hold.reason, hold.written);
            }
            // It is told why with all others.
            Err(_) => self.hold_ended(id, now, out),
        }
    }

    /// Whether somebody leaves for another gang of the same tree of quota.
    fn others_still_leave(&self, hold: &Hold) -> bool {
        let root = |hold: &Hold| self.quotas.kueue.root(hold.admission.cluster_queue.as_ref()?);
        let Some(ours) = root(hold) else { return false };
        let related = self.holders.iter().filter(|other| {
            let other = self.gangs.get(*other).and_then(|state| state.hold.as_ref());
            other.and_then(root).as_ref() == Some(&ours)
        });
        let mut leaving = related.flat_map(|id| {
            self.gangs[id].hold.iter().flat_map(move |it| it.victims.keys().map(move |victim| (id, victim)))
        });
        leaving.any(|(id, victim)| {
            self.gangs.get(victim).is_some_and(|gone| gone.given_up_to.as_ref() == Some(id))
        })
    }

    fn let_hold_go(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        if self.end_hold(id).is_some() {
            self.hold_ended(id, now, out);
        }
    }

    fn hold_ended(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let has_plan = self.plans.contains_key(id);
        if let Some(state) = self.gangs.get_mut(id) {
            state.plan_echoes |= has_plan;
            state.told = None;
        }
        out.push(Decision::HoldEnded(id.clone()));
        if self.gangs.get(id).is_some_and(|state| state.fact.is_some()) {
            let next = self.stand(id, now);
            self.look_again(id, next);
        }
        self.recount(id);
        self.forget_if_empty(id);
    }

    /// Whoever may preempt looks again where it became easier to evict somebody, or another use. Where quota
    /// alone counts also after anything was given back: with that, those who started meanwhile and could leave
    /// may be enough.
    pub(crate) fn wake_preemptors(&mut self) {
        let roots = std::mem::take(&mut self.reranked);
        let released = std::mem::take(&mut self.released);
        if roots.is_empty() && released.is_empty() {
            return;
        }
        self.wake_starts(&roots, |start| start.rank.is_some());
        self.wake_starts(&released, |start| start.rank.is_some() && start.policy == Policy::QuotaOnly);
        let tree = &self.quotas.kueue;
        let kept = self.strict_heads.keys().filter_map(|queue| tree.root(queue));
        self.unkept.extend(kept.filter(|root| released.contains(root)));
    }

    /// Wakes those for whom this holds of all who want to start below these roots.
    pub(super) fn wake_starts(&mut self, roots: &BTreeSet<Name>, concerns: impl Fn(&Start) -> bool) {
        for queue in roots.iter().flat_map(|root| self.quotas.kueue.queues_below(root)) {
            let concerns = |wanted: &Wanted| matches!(wanted, Wanted::Start(start) if concerns(start));
            self.waiting.wake_in(&LineKey::ClusterQueue(queue.clone()), concerns);
        }
    }

    /// Notes where quota was given back.
    pub(crate) fn note_release(&mut self, charge: &Charge) {
        let queue = charge.kueue.as_ref().map(|(queue, _)| queue);
        self.released.extend(queue.and_then(|queue| self.quotas.kueue.root(queue)));
    }

    /// Notes that a gang that holds quota became easier to evict, or leaves something else when it is.
    pub(crate) fn note_easier(&mut self, id: &GangId) {
        let queue = self.gangs.get(id).and_then(|state| state.pays.as_ref());
        self.reranked.extend(queue.and_then(|(queue, _)| self.quotas.kueue.root(queue)));
    }

    /// Nodes on which something is kept; for the invariants.
    pub(crate) fn kept_everywhere(&self) -> BTreeMap<Occupant, Name> {
        let mut all = BTreeMap::new();
        for id in &self.holders {
            for (node, shape) in self.kept_on(id) {
                if shape.is_some() {
                    all.insert(Occupant::Kept { gang: id.clone(), node: node.clone() }, node);
                }
            }
        }
        all
    }
}

fn kept_nodes(hold: &Hold) -> BTreeSet<&Name> {
    hold.admission.pod_sets.iter().flat_map(|set| &set.nodes).map(|(node, _)| node).collect()
}
