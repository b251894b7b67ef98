//! Members take their seats: what is heard of a pod decides who sits where, and what its place
//! charges. A place charges its node exactly once; the pod that is seen there replaces it.

use std::collections::BTreeMap;

use super::admit::charge_of;
use super::gang::{GangState, Held, Phase, SeatKind, SeatRef, SeatSet, SeatState};
use crate::cluster::{Cluster, Occupant};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Pod, PodPhase, PodUid, Readiness};
use crate::reason::{NotYet, UndoReason};
use crate::world::World;

/// Seats of members that run or have done their part.
pub(crate) const RUN: [SeatKind; 2] = [SeatKind::Bound, SeatKind::Done];
/// Seats of members that exist.
pub(crate) const EXIST: [SeatKind; 4] = [SeatKind::Bound, SeatKind::Done, SeatKind::Sent, SeatKind::Promised];

impl Engine {
    /// One step in the life of an admitted gang. Returns when time alone has it look again.
    pub(super) fn live(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) -> Option<Millis> {
        self.rewrite_lost_plan(id, now, out);
        let fact = self.gangs.get(id)?.fact.as_ref()?;
        let parked = fact.readiness == Readiness::NotYet(NotYet::ChecksPending);
        self.follow_counts(id);
        if parked || !self.gangs[id].held.as_ref()?.binds() {
            return None;
        }
        self.promise_seats(id);
        self.bind_promised(id, now, out);
        self.note_wholeness(id, out);
        self.time_out(id, now, out)
    }

    /// Seats everybody whose pod is known: after an admission, or a restart.
    pub(super) fn seat_everybody(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get(id) else { return };
        let members: Vec<PodUid> = self.world.members(id, &state.owners).map(|pod| pod.uid.clone()).collect();
        // Bound pods first and each to its own node's seat, so that nobody is moved on paper.
        let (bound, others): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|uid| self.world.pods.get(uid).is_some_and(|pod| pod.occupies().is_some()));
        let mut by_node: BTreeMap<(usize, Name), Vec<SeatRef>> = BTreeMap::new();
        if let Some(held) = &state.held {
            for (at, seat) in held.seats().filter(|(_, seat)| seat.state == SeatState::Open) {
                by_node.entry((at.set, seat.node.clone().unwrap_or_else(|| "".into()))).or_default().push(at);
            }
        }
        by_node.values_mut().for_each(|seats| seats.reverse());
        let (live, leaving): (Vec<_>, Vec<_>) =
            bound.into_iter().partition(|uid| self.world.pods[uid].is_live());
        let mut homeless = Vec::new();
        for uid in live.into_iter().chain(leaving) {
            let pod = &self.world.pods[&uid];
            let (node, live) = (pod.node.clone().unwrap_or_else(|| "".into()), pod.is_live());
            let set = self.gangs[id].set_of(pod);
            match set.and_then(|set| by_node.get_mut(&(set, node))?.pop()) {
                Some(at) if live => self.sit(id, at, SeatState::Bound(uid)),
                Some(at) => self.sit(id, at, SeatState::Vacating(uid)),
                None => homeless.push(uid),
            }
        }
        homeless.iter().chain(&others).for_each(|uid| self.follow_pod(id, uid));
    }

    /// Follows what is known of one member now.
    pub(super) fn follow_pod(&mut self, id: &GangId, uid: &PodUid) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let Some(held) = &mut state.held else { return };
        let ours = self.world.pods.get(uid).filter(|pod| self.world.gang_of(pod) == Some(id));
        let Some(at) = held.seat_of.get(uid).copied() else {
            match ours {
                Some(pod) if pod.is_live() => _ = held.unseated.insert(uid.clone()),
                _ => _ = held.unseated.remove(uid),
            }
            if let Some(pod) = ours.filter(|pod| pod.is_live() && pod.node.is_some()) {
                let (pod, uid) = (pod.clone(), uid.clone());
                self.adopt(id, &pod, uid);
            }
            return;
        };
        let (next, node) = match ours {
            Some(pod) if pod.phase == PodPhase::Succeeded => (SeatState::Done(uid.clone()), None),
            Some(pod) if pod.terminating && pod.occupies().is_some() => {
                (SeatState::Vacating(uid.clone()), None)
            }
            Some(pod) if pod.is_live() && pod.node.is_some() => {
                (SeatState::Bound(uid.clone()), pod.node.clone())
            }
            // Not bound, and still to be: nothing changes, whatever was decided about it.
            Some(pod) if pod.is_live() && pod.bindable => (held.seat(at).state.clone(), None),
            _ => (SeatState::Open, None),
        };
        if let Some(node) = node {
            held.seat_mut(at).node = Some(node);
        }
        let still_lives = next == SeatState::Open && ours.is_some_and(Pod::is_live);
        if still_lives {
            held.unseated.insert(uid.clone());
        }
        self.sit(id, at, next);
    }

    /// Gives a seat to a member that is bound already. (One that ended well before it had a seat
    /// is no member any more: the counts of the gang's objects are without it.)
    fn adopt(&mut self, id: &GangId, pod: &Pod, uid: PodUid) {
        let state = &self.gangs[id];
        let (Some(set), Some(held)) = (state.set_of(pod), &state.held) else { return };
        let open = || held.of_kind(SeatKind::Open).filter(|at| at.set == set);
        let there = open().find(|at| held.seat(*at).node == pod.node);
        let free =
            || held.of_kind(SeatKind::Done).chain(held.of_kind(SeatKind::Vacating)).find(|at| at.set == set);
        let Some(at) = there.or_else(|| open().next()).or_else(free) else { return };
        let node = pod.node.clone();
        if let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) {
            held.seat_mut(at).node = node;
        }
        self.sit(id, at, SeatState::Bound(uid));
    }

    /// Changes who sits on a seat, and what its place charges.
    pub(super) fn sit(&mut self, id: &GangId, at: SeatRef, next: SeatState) {
        if let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) {
            held.sit(at, next);
            self.charge_seat(id, at);
        }
    }

    /// Charges all seats for what they keep.
    pub(crate) fn charge_seats(&mut self, id: &GangId) {
        let Some(held) = self.gangs.get(id).and_then(|state| state.held.as_ref()) else { return };
        let seats: Vec<SeatRef> = held.seats().map(|(at, _)| at).collect();
        seats.into_iter().for_each(|at| self.charge_seat(id, at));
    }

    pub(super) fn charge_seat(&mut self, id: &GangId, at: SeatRef) {
        let Some(state) = self.gangs.get(id) else { return };
        let Some(held) = &state.held else { return };
        charge_seat(&mut self.cluster, &self.world, id, state, held, at);
        // What is kept there for whom it leaves for is what it does not take.
        self.holds_moved.extend(state.given_up_to.clone());
    }

    /// Gives all places back. Pods that are there go on charging their nodes themselves.
    pub(super) fn uncharge_seats(&mut self, id: &GangId, held: &Held) {
        for (at, _) in held.seats() {
            self.cluster.uncharge(&occupant(id, at));
        }
    }

    /// Pods that ended well and are not replaced give their seat and quota back (Kueue's
    /// reclaimable pods): the gang's objects ask for fewer. Quota that was given back is not taken
    /// again without a decision.
    fn follow_counts(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get(id) else { return };
        let (Some(fact), Some(held)) = (&state.fact, &state.held) else { return };
        // A gang with a minimum is as its pods are: of a set that is not named there are none left.
        let none = fact.minima.as_ref().map(|_| 0);
        let wanted =
            |name: &Name| fact.pod_sets.iter().find(|set| set.name == *name).map(|set| set.count).or(none);
        let counts: Vec<Option<u32>> = held.sets.iter().map(|set| wanted(&set.name)).collect();
        let mut paid = held.paid.clone();
        for (set, (paid, count)) in paid.iter_mut().zip(counts).enumerate() {
            let Some(count) = count else { continue };
            while let Some(at) = self.surplus_seat(id, set, count) {
                self.take_seat_away(id, at);
            }
            let seats = self.gangs[id].held.as_ref().map_or(0, |held| held.sets[set].seats.len());
            *paid = count.max(u32::try_from(seats).unwrap_or(u32::MAX)).min(*paid);
        }
        self.pay_for(id, paid);
    }

    /// A seat that is one too many and that no living member needs. Of a gang with a minimum the
    /// count is that of the pods there are: who was lost and may be replaced is not in it, so as
    /// many seats as the minimum stay, and of a role as many as its own.
    fn surplus_seat(&self, id: &GangId, set: usize, count: u32) -> Option<SeatRef> {
        let state = self.gangs.get(id)?;
        let held = state.held.as_ref()?;
        if held.sets[set].seats.len() <= count as usize {
            return None;
        }
        let of = |kind| held.of_kind(kind).filter(|at| at.set == set).last();
        let lost = || of(SeatKind::Open).or_else(|| of(SeatKind::Vacating));
        of(SeatKind::Done).or_else(|| lost().filter(|_| state.can_spare_a_seat(held, set)))
    }

    fn take_seat_away(&mut self, id: &GangId, at: SeatRef) {
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) else { return };
        let last = held.remove_seat(at);
        self.cluster.uncharge(&occupant(id, at));
        self.cluster.uncharge(&occupant(id, last));
        if at != last {
            self.charge_seat(id, at);
        }
    }

    /// Has the gang pay for so many pods of each set.
    pub(super) fn pay_for(&mut self, id: &GangId, paid: Vec<u32>) {
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) else { return };
        if held.paid == paid {
            return;
        }
        held.paid = paid;
        let queue = held.charge.volcano.as_ref().map(|(queue, _)| queue.clone());
        self.charge_anew(id, queue);
    }

    /// Charges the gang for what it pays for, in this Volcano Queue too if there is one.
    pub(super) fn charge_anew(&mut self, id: &GangId, volcano_queue: Option<Name>) {
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) else { return };
        let charge = charge_of(&held.admission, &held.paid, volcano_queue);
        let old = std::mem::replace(&mut held.charge, charge.clone());
        let given_up = self.gangs.get(id).is_some_and(|state| state.given_up_to.is_some());
        if given_up {
            self.quotas.give_up(&old, false);
        }
        self.quotas.release(&old);
        if old != charge {
            self.note_release(&old);
        }
        self.quotas.charge(&charge);
        if given_up {
            self.quotas.give_up(&charge, true);
        }
    }

    fn note_wholeness(&mut self, id: &GangId, out: &mut Vec<Decision>) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let minimum = state.minimum();
        let Some(held) = &mut state.held else { return };
        let there = held.running_or_done();
        if minimum.is_some_and(|minimum| minimum.are_met(held.by_role(&RUN))) {
            held.was_whole = true;
            state.undos = 0;
        }
        let seats: usize = held.sets.iter().map(|set| set.seats.len()).sum();
        if there as usize == seats && !held.settled && held.phase == Phase::Committed {
            held.settled = true;
            out.push(Decision::Settled(id.clone()));
        }
    }

    /// Time-outs count from the last progress. Members that are all there and wait for places are
    /// not late: nothing of them runs, and what they wait for is shown.
    fn time_out(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) -> Option<Millis> {
        let need = self.gangs[id].minimum()?;
        let held = self.gangs[id].held.as_ref()?;
        if held.parked {
            // It gets places as soon as its checks are known to be passed, or leaves then.
            return None;
        }
        let seats = need.lack(held.seats_by_role());
        if seats.is_some() && !held.started() && held.phase == Phase::Committed {
            // Whoever was bound there, for whom it holds what it holds, is gone: the others will never do.
            self.undo(id, UndoReason::Orphaned, out);
            return None;
        }
        let retry = Some(held.retry_at).filter(|at| *at > now);
        let Some(lack) = need.lack(held.by_role(&RUN)) else { return retry };
        let settings = &self.settings;
        let (span, reason) = if held.was_whole {
            (settings.recovery_timeout, UndoReason::RecoveryTimeout(lack))
        } else if held.running_or_done() > 0 {
            (settings.gather_timeout, UndoReason::RecoveryTimeout(lack))
        } else if let Some(lack) = need.lack(held.by_role(&EXIST)) {
            (settings.start_timeout, UndoReason::StartTimeout(lack))
        } else {
            return retry;
        };
        let due = held.progressed_at.saturating_add(span);
        if due <= now {
            self.undo(id, reason, out);
            return None;
        }
        retry.into_iter().chain([due]).min()
    }
}

impl GangState {
    /// Whether its minima leave a seat of this pod set over.
    fn can_spare_a_seat(&self, held: &Held, set: usize) -> bool {
        let Some(fact) = &self.fact else { return false };
        let Some(minima) = &fact.minima else { return true };
        let seats = |of: &dyn Fn(&SeatSet) -> bool| -> usize {
            held.sets.iter().filter(|set| of(set)).map(|set| set.seats.len()).sum()
        };
        let set = &held.sets[set];
        let enough_of_role = match &set.role {
            Some(role) => minima
                .roles
                .get(role)
                .is_none_or(|need| seats(&|set| set.role.as_ref() == Some(role)) > *need as usize),
            // Whose pods are all gone since a restart may have had one.
            None => minima.roles.is_empty() || fact.pod_sets.iter().any(|named| named.name == set.name),
        };
        enough_of_role && seats(&|_| true) > minima.members as usize
    }

    /// The pod set that a pod belongs to: the one its label names, else of those of its role the one
    /// of its shape, else the first that asks for the same, else the first with a seat to spare.
    pub(super) fn set_of(&self, pod: &Pod) -> Option<usize> {
        let sets = &self.held.as_ref()?.sets;
        if let Some(name) = &pod.pod_set {
            return sets.iter().position(|set| set.name == *name);
        }
        let ours = |set: &SeatSet| self.fact.is_none() || set.role == pod.role;
        let of_role = || (0..sets.len()).filter(|at| ours(&sets[*at]));
        if of_role().nth(1).is_none() {
            return of_role().next();
        }
        let fact = self.fact.as_ref()?;
        let predicted =
            |name: &Name| fact.pod_sets.iter().find(|set| set.name == *name).map(|set| &set.shape);
        let same = |name: &Name| {
            predicted(name).is_some_and(|shape| **shape == *pod.shape)
                || self.learnt.get(name).is_some_and(|shape| **shape == *pod.shape)
        };
        let asks_same =
            |name: &Name| predicted(name).is_some_and(|shape| shape.requests == pod.shape.requests);
        let held = self.held.as_ref()?;
        let open = || held.of_kind(SeatKind::Open).map(|at| at.set).find(|at| ours(&sets[*at]));
        of_role()
            .find(|at| same(&sets[*at].name))
            .or_else(|| of_role().find(|at| asks_same(&sets[*at].name)))
            .or_else(open)
    }
}

fn charge_seat(
    cluster: &mut Cluster,
    world: &World,
    id: &GangId,
    state: &GangState,
    held: &Held,
    at: SeatRef,
) {
    let seat = held.seat(at);
    let kept = match &seat.state {
        SeatState::Open | SeatState::Promised(_) | SeatState::Sent(_) => true,
        // Bound, but not seen there yet: the place still stands for it.
        SeatState::Bound(pod) => world.pods.get(pod).is_some_and(|pod| pod.node.is_none()),
        SeatState::Vacating(_) | SeatState::Done(_) => false,
    };
    let shape = seat.shape.as_ref().or_else(|| state.expected(&held.sets[at.set].name));
    let pod = seat.state.pod().and_then(|uid| world.pods.get(uid)).map(|pod| &pod.who);
    let who = pod.or_else(|| state.who(&held.sets[at.set].name));
    match (&seat.node, shape) {
        (Some(node), Some(shape)) if kept => match who {
            Some(who) => cluster.charge_as(occupant(id, at), node, shape, who, false),
            None => cluster.charge(occupant(id, at), node, shape),
        },
        _ => _ = cluster.uncharge(&occupant(id, at)),
    }
}

/// The name under which a seat's place charges its node.
pub(crate) fn occupant(id: &GangId, at: SeatRef) -> Occupant {
    let number = |n: usize| u32::try_from(n).expect("fewer than four billion seats");
    Occupant::Place { gang: id.clone(), pod_set: number(at.set), ordinal: number(at.ordinal) }
}
