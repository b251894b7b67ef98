//! What should happen now? The cycle, readable as a story.
//!
//! Every decision is made here, in this order: gangs of which something was heard live on (members
//! take their seats, are bound, time out); what freed up wakes the certificates that it falsifies;
//! admitted gangs that want places get them; then the heads of all queues are decided in rounds
//! until nobody is left who could be; then everybody whose reason changed is told.
//!
//! Nothing is retried because time passed, except where time is the answer (time-outs, pauses).

mod account;
mod admit;
pub(crate) mod arriving;
mod assign;
mod bind;
pub(crate) mod ceiling;
mod facts;
mod fungible;
mod gather;
pub(crate) mod grow;
mod implied;
mod in_turn;
mod leave;
mod outcome;
pub(crate) mod renew;
mod repair;
mod restore;
mod rounds;
mod search;
pub(crate) mod strict;
mod tell;
mod tournament;
mod walked;

pub(crate) mod gang;
pub(crate) mod hold;
pub(crate) mod shortage;
pub(crate) mod status;
pub(crate) mod victims;
pub(crate) mod wanted;

use std::collections::BTreeSet;

use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{Gang, GangId, Millis, PodUid};
use gang::Phase;

pub(crate) use gather::{RUN, occupant};

impl Engine {
    pub(crate) fn cycle(&mut self, now: Millis) -> Vec<Decision> {
        let mut out = Vec::new();
        let urgent = self.is_urgent();
        self.reconfigure();
        self.look_at_touched(now, &mut out);
        self.adopt_holds();
        self.let_in(now);
        self.settle_holds(now, &mut out);
        self.renew_numbers(urgent, now);
        self.start_newcomers(now, &mut out);
        // Whoever is admitted takes from the others: who now waits for another reason is decided
        // again, which changes nothing but that.
        while self.wake_falsified() {
            self.place_admitted(now, &mut out);
            self.start_waiting(now, &mut out);
        }
        self.note_stale_numbers(now);
        self.tell(&mut out);
        out
    }

    /// Whether something was heard of a gang, or room was gained: that is answered first.
    fn is_urgent(&mut self) -> bool {
        self.reconfigured || !self.touched.is_empty() || self.shortages.are_behind(&mut self.cluster)
    }

    /// After a change of rules everybody is looked at, and no certificate stands; after one of
    /// LocalQueues or namespaces their gangs are.
    pub(crate) fn reconfigure(&mut self) {
        let namespaces = std::mem::take(&mut self.changed_namespaces);
        let doors = std::mem::take(&mut self.changed_doors);
        // Labels of pods that nobody minded are no part of what gangs wait for.
        let all = std::mem::take(&mut self.reconfigured) | self.cluster.take_news_of_labels();
        if all {
            self.quotas.kueue.refresh();
            self.inactive = self.inactive_cluster_queues();
            self.waiting.wake_all();
            self.news.all_cluster_queues(&self.quotas.kueue);
            if self.settings.fair_sharing.is_some() {
                self.news.all_cohorts(&self.quotas.kueue);
            }
            self.news.all_local_queues(&self.world.local_queues);
        }
        if !all && namespaces.is_empty() && doors.is_empty() {
            return;
        }
        let concerned = |gang: &Gang| {
            let door = || gang.local_queue.as_ref().map(|name| (gang.namespace.clone(), name.clone()));
            namespaces.contains(&gang.namespace) || door().is_some_and(|door| doors.contains(&door))
        };
        let gangs = self.gangs.iter();
        let gangs = gangs.filter(|(_, state)| all || state.fact.as_ref().is_some_and(&concerned));
        for id in gangs.map(|(id, _)| id.clone()).collect::<Vec<_>>() {
            self.touch(&id);
        }
        self.news.local_queues.extend(doors);
    }

    fn look_at_touched(&mut self, now: Millis, out: &mut Vec<Decision>) {
        while let Some((when, id)) = self.timers.first().cloned().filter(|(when, _)| *when <= now) {
            self.timers.remove(&(when, id.clone()));
            self.touch(&id);
        }
        // Whatever is held is accounted for before anything is decided.
        for id in self.account_for_touched(now, out) {
            self.look(&id, now, out);
        }
    }

    /// What is known of the touched gangs and their pods is what they hold. Returns them.
    pub(crate) fn account_for_touched(&mut self, now: Millis, out: &mut Vec<Decision>) -> Vec<GangId> {
        let touched = std::mem::take(&mut self.touched);
        for (id, pods) in &touched {
            self.account(id, pods, now, out);
        }
        touched.into_keys().collect()
    }

    fn account(&mut self, id: &GangId, pods: &BTreeSet<PodUid>, now: Millis, out: &mut Vec<Decision>) {
        if self.gangs.contains_key(id) {
            self.note_hold_moved(id);
            self.bury_if_gone(id, now);
            self.restore(id, now, out);
            pods.iter().for_each(|pod| self.follow_pod(id, pod));
        }
    }

    /// One gang lives on.
    fn look(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let Some(state) = self.gangs.get(id) else { return };
        let next = match state.held.as_ref().map(|held| held.phase.clone()) {
            None if state.hold.is_some() => None,
            None => self.stand(id, now),
            Some(Phase::Assumed | Phase::Undoing(_)) => None,
            Some(Phase::Committed | Phase::Replacing) => match self.must_leave(id, now) {
                Some(reason) => {
                    self.undo(id, reason, out);
                    None
                }
                None => {
                    let due = self.gangs[id].fact.as_ref().and_then(|fact| fact.pods_ready.due);
                    self.live(id, now, out).into_iter().chain(due).min()
                }
            },
        };
        let lingers_until = self.release_lingering(id, now);
        self.look_again(id, next.into_iter().chain(lingers_until).min());
        self.recount(id);
        self.forget_if_empty(id);
    }

    /// Sets when time alone has this gang looked at again.
    pub(crate) fn look_again(&mut self, id: &GangId, when: Option<Millis>) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        if let Some(old) = std::mem::replace(&mut state.due, when) {
            self.timers.remove(&(old, id.clone()));
        }
        if let Some(when) = when {
            self.timers.insert((when, id.clone()));
        }
    }

    /// Wakes the wants whose certificates do not hold any more. Whether anybody is awake.
    fn wake_falsified(&mut self) -> bool {
        for shortage in self.waiting.certificates().take_ended() {
            self.shortages.forget(shortage);
        }
        let mut wake = self.waiting.certificates().falsified_by_quota(&mut self.quotas);
        if self.nodes_seen != self.cluster.facts_version() {
            // What could ever fit may have changed, and that is part of what is told.
            self.nodes_seen = self.cluster.facts_version();
            wake.extend(self.waiting.certificates().short_of_places());
        }
        if self.shortages.are_behind(&mut self.cluster) {
            wake.extend(self.waiting.certificates().helped_by_any_room());
        }
        self.wake_preemptors();
        self.wake_beside_strict_heads();
        for shortage in self.shortages.ended(&mut self.cluster) {
            wake.extend(self.waiting.certificates().short_of(shortage));
        }
        wake.into_iter().for_each(|want| self.waiting.wake(want));
        self.lines_in_turn().next().is_some()
    }

    pub(crate) fn forget_if_empty(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get(id) else { return };
        let holds = state.held.is_some() || state.lingering.is_some() || state.hold.is_some();
        let known = state.fact.is_some() || holds;
        if known || self.plans.contains_key(id) {
            return;
        }
        self.note_payer(id);
        let state = self.gangs.remove(id).expect("just seen");
        self.world.set_owners(id, &state.owners, &[]);
        if let Some(due) = state.due {
            self.timers.remove(&(due, id.clone()));
        }
        self.waiting.leave(id);
        self.to_tell.remove(id);
        self.blocked.remove(id);
        self.news.forget(id);
    }
}

#[cfg(test)]
mod tests;
