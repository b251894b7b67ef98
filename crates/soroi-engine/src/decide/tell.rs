//! Everybody who waits is told why, when that changed.

use std::sync::Arc;

use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{GangId, Millis};
use crate::queue::{LineKey, WantIx};
use crate::reason::Reason;

/// When only numbers changed, this many gangs of a want are told, the first in their order. The
/// others are told when it is their turn; whoever asks for one of them sees the new numbers.
const NUMBERS_TOLD_MAX: usize = 8;

impl Engine {
    /// Notes whom the new certificate of a want concerns.
    pub(super) fn tell_all_of(&mut self, want: WantIx) {
        let most = if self.waiting.tell(want) { NUMBERS_TOLD_MAX } else { usize::MAX };
        self.to_tell.extend(self.waiting.turns(want).take(most).map(|turn| turn.id.clone()));
    }

    pub(super) fn tell(&mut self, out: &mut Vec<Decision>) {
        self.to_tell.extend(self.waiting.take_moved_heads());
        self.note_who_is_behind();
        for id in std::mem::take(&mut self.to_tell) {
            let Some(reason) = self.reason_now(&id) else { continue };
            let Some(state) = self.gangs.get_mut(&id) else { continue };
            let known = state.told.as_ref().is_some_and(|told| Arc::ptr_eq(told, &reason) || *told == reason);
            if !known {
                state.told = Some(reason.clone());
                out.push(Decision::Pending { gang: id, reason: (*reason).clone() });
            }
        }
    }

    /// Whoever would be decided if the first gang of its queue did not wait for its victims is told that.
    fn note_who_is_behind(&mut self) {
        let queues = self.preemptors_in_front().into_keys().cloned();
        for line in queues.map(LineKey::ClusterQueue).collect::<Vec<_>>() {
            let Some(reason) = self.behind_preemptor(&line) else { continue };
            for want in self.waiting.awake_wants(&line) {
                if !self.waiting.tell_undecided(want, &reason) {
                    self.to_tell.extend(self.waiting.turns(want).map(|turn| turn.id.clone()));
                }
            }
        }
    }

    /// What those are told who are not decided because the first of their line waits for its victims.
    fn behind_preemptor(&self, line: &LineKey) -> Option<Arc<Reason>> {
        let LineKey::ClusterQueue(queue) = line else { return None };
        let head = self.gangs[*self.preemptors_in_front().get(queue)?].fact.as_ref()?;
        let head = (head.namespace.clone(), head.name.clone());
        Some(Arc::new(Reason::BehindPreemptor { head }))
    }

    /// Why a gang waits now.
    pub(crate) fn reason_now(&self, id: &GangId) -> Option<Arc<Reason>> {
        let state = self.gangs.get(id)?;
        if let Some((_, want)) = self.waiting.stand(id) {
            let line = self.waiting.line_of(want);
            if let Some(head) = self.waiting.strict_head(line).filter(|head| head.id != *id)
                && *line != LineKey::Admitted
            {
                let head = (head.namespace.clone(), head.name.clone());
                return Some(Arc::new(Reason::BehindStrictHead { head }));
            }
            return match self.waiting.certificate(want) {
                Some(certificate) => Some(certificate.reason.clone()),
                None => self.behind_preemptor(line),
            };
        }
        if state.held.is_some() || state.fact.is_none() {
            return None;
        }
        if let Some(hold) = &state.hold {
            let victims = u32::try_from(hold.victims.len()).unwrap_or(u32::MAX);
            return Some(Arc::new(Reason::Preempting { without: hold.reason.clone(), victims }));
        }
        // A pause lasts until the timer that ends it has fired.
        let pauses = state.due == Some(state.not_before());
        self.hindrance(id, if pauses { state.not_before().saturating_sub(1) } else { Millis::MAX })
            .map(Arc::new)
    }
}
