//! From "all are there" to "all are bound". Nothing is bound before the commit is confirmed, the
//! minimum of members exists, and every one of them fits its place in its real shape.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::gang::{Held, Phase, SeatKind, SeatRef, SeatSet, SeatState};
use super::gather::{EXIST, RUN, occupant};
use crate::cluster::{Cluster, Need};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Pod, PodUid, Shape};
use crate::minima::Minima;

impl Engine {
    /// Members that can be bound get a seat each: by pod set and completion index, else in order.
    pub(super) fn promise_seats(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get(id) else { return };
        let Some(held) = &state.held else { return };
        let pods = held.unseated.iter().filter(|uid| !held.refused.contains(*uid));
        let pods = pods.filter_map(|uid| self.world.pods.get(uid));
        let bindable = pods.filter(|pod| pod.is_live() && pod.bindable && pod.node.is_none());
        let mut candidates: Vec<(usize, Option<u32>, Name, PodUid)> = bindable
            .filter_map(|pod| Some((state.set_of(pod)?, pod.index, pod.name.clone(), pod.uid.clone())))
            .collect();
        candidates.sort();
        let mut without = Vec::new();
        for (set, index, _, uid) in candidates {
            let own = index.map(|index| SeatRef { set, ordinal: index as usize });
            match own.filter(|at| self.is_open(id, *at)) {
                Some(at) => self.sit(id, at, SeatState::Promised(uid)),
                None => without.push((set, uid)),
            }
        }
        for (set, uid) in without {
            if let Some(at) = self.free_seat(id, set) {
                self.sit(id, at, SeatState::Promised(uid));
            }
        }
    }

    fn is_open(&self, id: &GangId, at: SeatRef) -> bool {
        let held = self.gangs.get(id).and_then(|state| state.held.as_ref());
        held.is_some_and(|held| held.by_kind.get(&SeatKind::Open).is_some_and(|open| open.contains(&at)))
    }

    /// An open seat; else one whose member ended well (the owner created another one), else one
    /// whose member is on its way out.
    fn free_seat(&self, id: &GangId, set: usize) -> Option<SeatRef> {
        let held = self.gangs.get(id)?.held.as_ref()?;
        let kinds = [SeatKind::Open, SeatKind::Done, SeatKind::Vacating];
        kinds.into_iter().find_map(|kind| held.of_kind(kind).find(|at| at.set == set))
    }

    /// Binds the members that have a seat, or asks for places for those that do not fit theirs.
    pub(super) fn bind_promised(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let Some(state) = self.gangs.get(id) else { return };
        let (Some(held), Some(minimum)) = (&state.held, state.minimum()) else { return };
        // What it waits for is seen only with its admission.
        let checked = held.parked && state.fact.as_ref().is_some_and(|fact| fact.admitted.is_some());
        if held.orphan || (checked && held.phase == Phase::Committed) {
            self.want_places(id);
            return;
        }
        let started = held.started();
        let exist = held.by_role(&EXIST).any(|(_, count)| count > 0);
        let ready = started || exist && minimum.are_met(held.by_role(&EXIST));
        if held.phase != Phase::Committed || held.retry_at > now || !ready {
            self.waiting.leave(id);
            return;
        }
        let promised: Vec<SeatRef> = held.of_kind(SeatKind::Promised).collect();
        let mut tester = Tester::default();
        let (fit, misfit): (Vec<_>, Vec<_>) =
            promised.into_iter().partition(|at| self.takes_its_pod(id, *at, &mut tester));
        let starts = started || !fit.is_empty() && self.would_do(id, &minimum, &fit);
        if starts {
            fit.into_iter().for_each(|at| self.bind(id, at, out));
        }
        if misfit.is_empty() {
            match self.gangs[id].held.as_ref().is_some_and(Held::may_grow) {
                true => self.want_growth(id),
                false => self.waiting.leave(id),
            }
            return;
        }
        // Nothing runs yet: all are planned anew, with more room to choose from.
        let leaving = if starts { misfit } else { self.seats_to_replan(id) };
        let sets: BTreeSet<usize> = leaving.iter().map(|at| at.set).collect();
        leaving.into_iter().for_each(|at| self.set_node(id, at, None));
        self.left_behind(id, &sets).into_iter().for_each(|at| self.set_node(id, at, None));
        self.want_places(id);
    }

    /// Whether these members would make the gang whole.
    fn would_do(&self, id: &GangId, minimum: &Minima, fit: &[SeatRef]) -> bool {
        let held = self.gangs[id].held.as_ref();
        held.is_some_and(|held| {
            let fit = fit.iter().map(|at| (held.sets[at.set].role.as_ref(), 1));
            minimum.are_met(held.by_role(&RUN).chain(fit))
        })
    }

    fn seats_to_replan(&self, id: &GangId) -> Vec<SeatRef> {
        let held = self.gangs[id].held.as_ref();
        let kinds = [SeatKind::Promised, SeatKind::Open];
        held.into_iter().flat_map(|held| kinds.into_iter().flat_map(|kind| held.of_kind(kind))).collect()
    }

    /// Whether the seat's node takes the real pod. The place is kept in that shape from now on; and
    /// a shape that was not expected is learnt.
    fn takes_its_pod(&mut self, id: &GangId, at: SeatRef, tester: &mut Tester) -> bool {
        let Some(state) = self.gangs.get_mut(id) else { return false };
        let expected = state.held.as_ref().and_then(|held| state.expected(&held.sets[at.set].name)).cloned();
        let Some(held) = &mut state.held else { return false };
        let pod = held.seat(at).state.pod().and_then(|uid| self.world.pods.get(uid));
        let Some(pod) = pod else { return false };
        let set = &held.sets[at.set];
        if let Some(real) = expected.and_then(|expected| differs(set, &expected, pod)) {
            state.learnt.insert(set.name.clone(), real);
        }
        let need = tester.need(&mut self.cluster, at.set, set, pod);
        let Some(node) = held.seat(at).node.clone() else { return false };
        held.seat_mut(at).shape = Some(pod.shape.clone());
        let who = pod.who.clone();
        let kept = self.cluster.is_charged(&occupant(id, at), &node, &need);
        let mindful = self.cluster.minds(&need, &who);
        if kept && !mindful {
            return self.cluster.keeps(&node, &need);
        }
        self.cluster.uncharge(&occupant(id, at));
        let room = if kept { self.cluster.keeps(&node, &need) } else { self.cluster.takes(&node, &need) };
        let fits = room && !(mindful && self.cluster.clashes(&node, &need, &who));
        self.charge_seat(id, at);
        fits
    }

    fn bind(&mut self, id: &GangId, at: SeatRef, out: &mut Vec<Decision>) {
        let Some(held) = self.gangs.get(id).and_then(|state| state.held.as_ref()) else { return };
        let (SeatState::Promised(pod), Some(node)) =
            (held.seat(at).state.clone(), held.seat(at).node.clone())
        else {
            return;
        };
        self.sit(id, at, SeatState::Sent(pod.clone()));
        out.push(Decision::Bind { gang: id.clone(), pod, node });
    }

    /// Moves a seat to another node, or from any.
    pub(super) fn set_node(&mut self, id: &GangId, at: SeatRef, node: Option<Name>) {
        if let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) {
            held.seat_mut(at).node = node;
            self.charge_seat(id, at);
        }
    }
}

/// What pods of equal shape need, made once for all of them.
#[derive(Default)]
struct Tester {
    last: Option<(usize, Arc<Shape>, Arc<Need>)>,
}

impl Tester {
    fn need(&mut self, cluster: &mut Cluster, set_at: usize, set: &SeatSet, pod: &Pod) -> Arc<Need> {
        if let Some((last, shape, need)) = &self.last
            && *last == set_at
            && Arc::ptr_eq(shape, &pod.shape)
        {
            return need.clone();
        }
        let need = cluster.need(&set.ask(&pod.shape));
        self.last = Some((set_at, pod.shape.clone(), need.clone()));
        need
    }
}

/// The shape of a real pod without what its flavors added, if it is not the expected one.
fn differs(set: &SeatSet, expected: &Arc<Shape>, pod: &Pod) -> Option<Arc<Shape>> {
    if Arc::ptr_eq(expected, &pod.shape) || **expected == *pod.shape {
        return None;
    }
    let mut real = (*pod.shape).clone();
    real.node_selector.retain(|key, value| {
        set.node_labels.get(key) != Some(value) || expected.node_selector.contains_key(key)
    });
    real.tolerations.retain(|it| !set.tolerations.contains(it) || expected.tolerations.contains(it));
    (real != **expected).then(|| Arc::new(real))
}

#[cfg(test)]
mod tests;
