//! How decisions turned out. Outcomes and the watch events that show the same come in any order.

use super::gang::{Held, Phase, SeatKind, SeatState};
use crate::engine::Engine;
use crate::event::{GangId, Millis, Outcome, PodUid};

impl Engine {
    pub(crate) fn take_outcome(&mut self, outcome: Outcome, now: Millis) {
        match outcome {
            Outcome::Committed(id) => self.committed(&id, now),
            Outcome::NotCommitted(id) => self.not_committed(&id, now),
            Outcome::Bound(pod) => self.bound(&pod, now),
            Outcome::NotBound { pod, lost } => self.not_bound(&pod, lost, now),
            Outcome::Undone(id) => {
                self.undone(&id, now);
                self.touch(&id);
            }
        }
    }

    pub(super) fn committed(&mut self, id: &GangId, now: Millis) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        if let Some(hold) = &mut state.hold {
            hold.written = true;
            state.plan_echoes = false;
            self.touch(id);
            return;
        }
        let Some(held) = &mut state.held else { return };
        if matches!(held.phase, Phase::Assumed | Phase::Replacing) {
            held.phase = Phase::Committed;
            held.progressed_at = now;
            // Its plan is of this admission now.
            state.plan_echoes = false;
            self.touch(id);
        }
    }

    fn not_committed(&mut self, id: &GangId, now: Millis) {
        self.hold_not_written(id, now);
        let pause = self.settings.undo_backoff_min;
        let Some(state) = self.gangs.get_mut(id) else { return };
        let Some(held) = &mut state.held else { return };
        match held.phase {
            Phase::Assumed => {
                state.not_before = now.saturating_add(pause);
                self.let_go(id, now);
            }
            Phase::Replacing => {
                held.phase = Phase::Committed;
                held.retry_at = now.saturating_add(pause);
                let promised: Vec<_> = held.of_kind(SeatKind::Promised).collect();
                promised.into_iter().for_each(|at| self.set_node(id, at, None));
            }
            Phase::Committed | Phase::Undoing(_) => return,
        }
        self.touch(id);
    }

    fn bound(&mut self, pod: &PodUid, now: Millis) {
        let Some(id) = self.gang_that_sent(pod) else { return };
        if let Some(held) = self.held_mut(&id)
            && let Some(at) = held.seat_of.get(pod).copied()
        {
            held.progressed_at = now;
            self.sit(&id, at, SeatState::Bound(pod.clone()));
            self.touch(&id);
        }
    }

    fn not_bound(&mut self, pod: &PodUid, lost: bool, now: Millis) {
        let Some(id) = self.gang_that_sent(pod) else { return };
        let pause = self.settings.undo_backoff_min;
        let Some(held) = self.held_mut(&id) else { return };
        let Some(at) = held.seat_of.get(pod).copied() else { return };
        if lost {
            held.refused.insert(pod.clone());
            self.sit(&id, at, SeatState::Open);
        } else {
            held.retry_at = now.saturating_add(pause);
            self.sit(&id, at, SeatState::Promised(pod.clone()));
        }
        self.touch(&id);
        // Refused for good, it is nobody's candidate until something is heard of it.
        self.touched.entry(id).or_default().insert(pod.clone());
    }

    /// The gang that waits for the outcome of this pod's binding.
    fn gang_that_sent(&self, pod: &PodUid) -> Option<GangId> {
        let id = self.world.gang_of(self.world.pods.get(pod)?)?;
        let held = self.gangs.get(id)?.held.as_ref()?;
        let at = held.seat_of.get(pod)?;
        (held.seat(*at).state.kind() == SeatKind::Sent).then(|| id.clone())
    }

    fn held_mut(&mut self, id: &GangId) -> Option<&mut Held> {
        self.gangs.get_mut(id)?.held.as_mut()
    }
}
