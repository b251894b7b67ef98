//! Gangs leave: because their user or an administrator says so, because they could not be made
//! whole in time, or because they ended. Quota stays until the last bound pod is gone or terminal.

use super::gang::{GangState, Lingering, Phase};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{GangId, Millis, PlanPhase, Readiness, StopPolicy};
use crate::reason::{Off, UndoReason};

impl Engine {
    /// Takes an admission back. Quota and places are kept until that is carried out.
    pub(super) fn undo(&mut self, id: &GangId, reason: UndoReason, out: &mut Vec<Decision>) {
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) else { return };
        // Whoever is evicted for another is told so, however far it was, and who has to start anew for a check. And
        // who was given all the time there is, and did not get ready, has had its start.
        let evicted = matches!(
            reason,
            UndoReason::Preempted(_) | UndoReason::NotReady | UndoReason::Off(Off::CheckRetry(_))
        );
        let started = held.was_whole || evicted;
        held.phase = Phase::Undoing(reason.clone());
        self.waiting.leave(id);
        self.note_easier(id);
        out.push(Decision::Undo { gang: id.clone(), reason, started });
    }

    /// Why an admitted gang has to leave although nothing happened to it.
    pub(super) fn must_leave(&self, id: &GangId, now: Millis) -> Option<UndoReason> {
        let state = self.gangs.get(id)?;
        let fact = state.fact.as_ref()?;
        if let Readiness::Off(off) = &fact.readiness {
            return Some(UndoReason::Off(off.clone()));
        }
        if self.local_queue_of(fact).is_some_and(|door| door.stop == StopPolicy::HoldAndDrain) {
            return Some(UndoReason::LocalQueueStopped);
        }
        if fact.pods_ready.due.is_some_and(|due| due <= now) {
            return Some(UndoReason::NotReady);
        }
        let payer = state.held.as_ref()?.admission.cluster_queue.as_ref()?;
        let drained =
            self.quotas.kueue.queue(payer).is_some_and(|queue| queue.stop == StopPolicy::HoldAndDrain);
        drained.then_some(UndoReason::ClusterQueueStopped)
    }

    /// The undo was carried out: places are free, the gang waits again. Undone before it ran, it
    /// pauses; each time twice as long, up to the limit.
    pub(super) fn undone(&mut self, id: &GangId, now: Millis) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let Some(Phase::Undoing(reason)) = state.held.as_ref().map(|held| held.phase.clone()) else { return };
        if pauses(&reason) {
            let doubled = self.settings.undo_backoff_min.saturating_mul(1 << state.undos.min(32));
            state.undos += 1;
            state.not_before = now.saturating_add(doubled.min(self.settings.undo_backoff_max));
        }
        self.let_go(id, now);
    }

    /// Gives places back at once, and quota when the last bound pod ends.
    pub(super) fn let_go(&mut self, id: &GangId, now: Millis) {
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.take()) else { return };
        self.uncharge_seats(id, &held);
        let state = self.gangs.get_mut(id).expect("just seen");
        state.status_echoes = state.fact.as_ref().is_some_and(|fact| fact.admitted.is_some());
        state.plan_echoes = self.plans.contains_key(id);
        state.lingering = Some(Lingering { charge: held.charge, since: now });
        self.lingering.insert(id.clone());
        self.note_payer(id);
        if self.world.nodes_of(id, &self.gangs[id].owners).next().is_some() {
            self.note_easier(id);
        }
        self.waiting.leave(id);
        self.touch(id);
    }

    /// A gang whose objects are gone holds nothing but the quota of pods that still end.
    pub(super) fn bury_if_gone(&mut self, id: &GangId, now: Millis) {
        let plan_lost = self.plans_lost.contains(id);
        let state = &self.gangs[id];
        // Its plan is the last object of a gang: without it nothing is left to wait for.
        let orphaned = plan_lost && state.fact.is_none() && state.held.is_some();
        if plan_lost && matches!(state.held.as_ref().map(|held| &held.phase), Some(Phase::Undoing(_))) {
            self.undone(id, now);
        }
        if !self.gangs[id].gone && !orphaned {
            return;
        }
        self.plans_lost.remove(id);
        let state = &self.gangs[id];
        if state.held.is_none()
            && state.lingering.is_none()
            && !state.plan_echoes
            && let Some(plan) = self.plans.get(id).filter(|plan| plan.phase != PlanPhase::Holding).cloned()
        {
            // It ended while nobody looked: what its pods still hold is what its plan says.
            self.hold(plan.admission, Phase::Committed, now);
        }
        self.let_go(id, now);
        self.waiting.leave(id);
        if let Some(state) = self.gangs.get_mut(id) {
            state.fact = None;
            state.told = None;
        }
        self.note_payer(id);
    }

    /// Releases the quota of an earlier admission once nothing of it runs. Returns when that may
    /// be because of time alone: pods on unreachable nodes keep quota for a while only.
    pub(super) fn release_lingering(&mut self, id: &GangId, now: Millis) -> Option<Millis> {
        let state = self.gangs.get(id)?;
        let lingering = state.lingering.as_ref()?;
        let until = self.keeps_quota_until(id, state, lingering, now);
        if until.is_some_and(|until| until > now) {
            return until.filter(|until| *until < Millis::MAX);
        }
        self.release_own_lingering(id);
        if self.gangs.get(id).is_some_and(|state| state.held.is_none() && state.fact.is_some()) {
            // What it wants does not depend on what it kept any more.
            return self.stand(id, now);
        }
        None
    }

    /// Gives the quota of an earlier admission back.
    pub(super) fn release_own_lingering(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        if let Some(lingering) = state.lingering.take() {
            if let Some(holder) = state.given_up_to.take() {
                self.quotas.give_up(&lingering.charge, false);
                self.holds_moved.insert(holder);
            }
            self.quotas.release(&lingering.charge);
            self.note_release(&lingering.charge);
        }
        self.lingering.remove(id);
        self.note_payer(id);
    }

    fn keeps_quota_until(
        &self,
        id: &GangId,
        state: &GangState,
        kept: &Lingering,
        now: Millis,
    ) -> Option<Millis> {
        let mut until =
            self.world.nodes_of(id, &state.owners).map(|node| match self.world.unready_since.get(node) {
                Some(since) => (*since).max(kept.since).saturating_add(self.settings.dead_pod_timeout),
                // A node that was never seen is as unreachable as one that is gone.
                None if self.cluster.node(node).is_none() => {
                    kept.since.saturating_add(self.settings.dead_pod_timeout)
                }
                None => Millis::MAX,
            });
        // Mostly the first one keeps it for good; the others need not be asked then.
        let latest = until.try_fold(None, |latest: Option<Millis>, until| match until {
            Millis::MAX => Err(until),
            until => Ok(latest.max(Some(until))),
        });
        latest.unwrap_or_else(Some).filter(|until| *until > now)
    }
}

/// Whether a gang that left for this reason could come straight back, and must not.
fn pauses(reason: &UndoReason) -> bool {
    match reason {
        UndoReason::StartTimeout { .. }
        | UndoReason::RecoveryTimeout { .. }
        | UndoReason::PlacesLost
        | UndoReason::Orphaned
        | UndoReason::Interrupted => true,
        // For how long it pauses is said by its status.
        UndoReason::NotReady
        // Decided again, it is admitted with places or not at all.
        | UndoReason::NoPlaceAfterChecks
        | UndoReason::Off(_)
        | UndoReason::LocalQueueStopped
        | UndoReason::ClusterQueueStopped
        | UndoReason::Preempted(_) => false,
    }
}
