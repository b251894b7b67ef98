//! One after the other: where it is configured (`block_admission`), nobody gets quota of a ClusterQueue
//! while the pods of one who has some are not ready (Kueue, `waitForPodsReady.blockAdmission`).
//!
//! Who would be decided stands aside, and comes back when all are ready. That costs as much as there are
//! such gangs at each admission, of which there are few: each takes as long as its pods take to start.
//! Who sleeps with a certificate goes on sleeping, and keeps its reason.

use crate::engine::Engine;
use crate::event::{GangId, Millis};
use crate::queue::LineKey;

impl Engine {
    /// Notes whether others have to wait for the pods of a gang.
    pub(crate) fn note_getting_ready(&mut self, id: &GangId) {
        if !self.settings.block_admission {
            return;
        }
        let awaited = self.gangs.get(id).is_some_and(|state| {
            let pays = state.held.as_ref().is_some_and(|held| held.admission.cluster_queue.is_some());
            pays && state.fact.as_ref().is_some_and(|fact| !fact.pods_ready.shown)
        });
        match awaited {
            true => _ = self.getting_ready.insert(id.clone()),
            false => _ = self.getting_ready.remove(id),
        }
    }

    /// Whether those who want quota of a ClusterQueue have to wait for others' pods.
    pub(crate) fn is_one_getting_ready(&self) -> bool {
        !self.getting_ready.is_empty()
    }

    /// Has everybody who would be decided wait for others' pods, if there are such.
    pub(super) fn hold_back(&mut self) {
        if !self.is_one_getting_ready() {
            return;
        }
        let lines = self.waiting.awake_lines().filter(|line| matches!(line, LineKey::ClusterQueue(_)));
        for line in lines.cloned().collect::<Vec<_>>() {
            while let Some((turn, _)) = self.waiting.head(&line) {
                self.waiting.leave(&turn.id);
                self.to_tell.insert(turn.id.clone());
                self.blocked.insert(turn.id);
            }
        }
    }

    /// Nobody's pods are waited for any more: whoever stood aside is back.
    pub(super) fn let_in(&mut self, now: Millis) {
        if self.is_one_getting_ready() {
            return;
        }
        for id in std::mem::take(&mut self.blocked) {
            let Some(state) = self.gangs.get(&id) else { continue };
            if state.fact.is_some() && state.held.is_none() && state.hold.is_none() {
                let next = self.stand(&id, now);
                self.look_again(&id, next);
            }
        }
    }
}
