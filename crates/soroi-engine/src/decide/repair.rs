//! Places for gangs that hold quota: the first ones under AfterAdmission, new ones where real pods
//! did not fit, spare ones for members that were lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::gang::{GangState, Held, Phase, SeatKind, SeatRef};
use super::search::NoAnswer;
use super::wanted::Wanted;
use crate::decision::{Admission, Decision};
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Policy, QueueingStrategy, Shape, TopologyRequest, Who};
use crate::minima::Minima;
use crate::place::{PlaceRequest, Placement, PodSetRequest, place};
use crate::queue::{LineKey, Turn, WantIx};
use crate::reason::{PlaceProblem, Reason, UndoReason};

/// Seats that want a node, of one pod set and for pods of one shape.
type Homeless = BTreeMap<(usize, Arc<Shape>), Vec<SeatRef>>;

impl Engine {
    /// Puts an admitted gang into the line for places, if members of it want some.
    pub(crate) fn want_places(&mut self, id: &GangId) {
        let Some(turn) = self.gangs.get(id).and_then(|state| state.fact.as_ref()).map(Turn::of) else {
            return;
        };
        let homeless = self.homeless(id);
        if homeless.is_empty() {
            self.waiting.leave(id);
            return;
        }
        let request = Wanted::Places(Arc::new(self.places_request(id, &homeless)));
        self.waiting.join(LineKey::Admitted, QueueingStrategy::BestEffortFifo, turn, request);
        self.to_tell.insert(id.clone());
    }

    /// Gives places to admitted gangs, in the order of their turns and before anybody starts.
    pub(crate) fn place_admitted(&mut self, now: Millis, out: &mut Vec<Decision>) {
        while let Some((turn, want)) = self.waiting.head(&LineKey::Admitted) {
            let request = match self.waiting.ask(want).clone() {
                Wanted::Places(request) => request,
                Wanted::More(growth) => {
                    self.grow(&turn.id, want, &growth, now, out);
                    continue;
                }
                Wanted::Start(_) => return,
            };
            match place(&mut self.cluster, &request) {
                Ok(placement) => {
                    self.waiting.leave(&turn.id);
                    self.give_places(&turn.id, placement, now, out);
                }
                Err(problems) => self.no_places(&turn.id, want, &request, problems, out),
            }
        }
    }

    fn give_places(&mut self, id: &GangId, placement: Placement, now: Millis, out: &mut Vec<Decision>) {
        let groups = self.homeless(id).into_iter().zip(placement.pod_sets);
        for (((set, shape), seats), mut places) in groups {
            let topology = self.gangs[id].held.as_ref().and_then(|held| held.sets[set].topology.as_ref());
            self.cluster.sort_by_domain(topology, &mut places.nodes);
            let nodes =
                places.nodes.into_iter().flat_map(|(node, count)| (0..count).map(move |_| node.clone()));
            for (at, node) in seats.into_iter().zip(nodes) {
                if let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) {
                    held.seat_mut(at).shape = Some(shape.clone());
                }
                self.set_node(id, at, Some(node));
            }
        }
        self.write_places(id, now, out);
    }

    /// Has the gang's places written down as they are now.
    pub(super) fn write_places(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        let Some(held) = self.gangs.get(id).and_then(|state| state.held.as_ref()) else { return };
        let admission = self.as_seated(held);
        let Some(state) = self.gangs.get_mut(id) else { return };
        // Whatever it waits for next is told again, also when it is the same.
        state.told = None;
        let Some(held) = state.held.as_mut() else { return };
        held.phase = Phase::Replacing;
        held.settled = false;
        held.orphan = false;
        held.parked = false;
        held.decided_at = now;
        held.progressed_at = now;
        held.admission = admission.clone();
        out.push(Decision::Place(admission));
        // What it would leave, if it were asked to, is something else now.
        self.note_easier(id);
    }

    /// The plan was removed by force: it is written again from memory.
    pub(super) fn rewrite_lost_plan(&mut self, id: &GangId, now: Millis, out: &mut Vec<Decision>) {
        if !self.plans_lost.remove(id) {
            return;
        }
        let held = self.gangs.get(id).and_then(|state| state.held.as_ref());
        if held.is_some_and(|held| held.binds() && held.phase == Phase::Committed) {
            self.write_places(id, now, out);
        }
    }

    fn no_places(
        &mut self,
        id: &GangId,
        want: WantIx,
        request: &PlaceRequest,
        problems: Vec<(Name, PlaceProblem)>,
        out: &mut Vec<Decision>,
    ) {
        let Some(held) = self.gangs.get(id).and_then(|state| state.held.as_ref()) else { return };
        if held.orphan || (held.admission.policy == Policy::Unified && !held.started()) {
            let reason = match (held.orphan, held.parked) {
                (true, _) => UndoReason::Orphaned,
                (_, true) => UndoReason::NoPlaceAfterChecks,
                _ => UndoReason::PlacesLost,
            };
            self.undo(id, reason, out);
            self.look_again(id, None);
            return;
        }
        let no = self.no_places_for(request, problems);
        self.certify(want, no);
    }

    pub(super) fn no_places_for(
        &mut self,
        request: &PlaceRequest,
        mut problems: Vec<(Name, PlaceProblem)>,
    ) -> NoAnswer {
        for (name, problem) in &mut problems {
            let request = request.pod_sets.iter().find(|set| set.name == *name);
            problem.fitting_if_empty = request.and_then(|set| self.ceilings.of(&mut self.cluster, set));
        }
        NoAnswer::of_places(Reason::NoPlace(problems), request.clone())
    }

    /// The seats that want a node now: of members that are there; of all, for an orphan and after admission
    /// checks; and of members to come whose pod set moves as a whole.
    fn homeless(&self, id: &GangId) -> Homeless {
        let mut homeless = Homeless::new();
        let Some(state) = self.gangs.get(id) else { return homeless };
        let Some(held) = &state.held else { return homeless };
        let without_node = |at: &SeatRef| held.seat(*at).node.is_none();
        for at in held.of_kind(SeatKind::Promised).filter(without_node) {
            let pod = held.seat(at).state.pod().and_then(|uid| self.world.pods.get(uid));
            if let Some(pod) = pod {
                homeless.entry((at.set, pod.shape.clone())).or_default().push(at);
            }
        }
        let sets: BTreeSet<usize> = homeless.keys().map(|(set, _)| *set).collect();
        let moves = |set: &usize| held.started() && self.is_deserted(id, *set);
        let moving: BTreeSet<usize> = sets.into_iter().filter(moves).collect();
        let all = held.orphan || held.parked;
        let wanted = |at: &SeatRef| all || moving.contains(&at.set);
        for at in held.of_kind(SeatKind::Open).filter(without_node).filter(wanted) {
            if let Some(shape) = state.expected(&held.sets[at.set].name) {
                homeless.entry((at.set, shape.clone())).or_default().push(at);
            }
        }
        homeless
    }

    /// The seats of pod sets, of those that lost all members, that are kept for new ones.
    /// Where the pods of a set belong into one domain, they move with the first that comes: it
    /// would sit in another domain than the others otherwise.
    pub(super) fn left_behind(&self, id: &GangId, sets: &BTreeSet<usize>) -> Vec<SeatRef> {
        let held = self.gangs.get(id).and_then(|state| state.held.as_ref());
        let open = held.into_iter().flat_map(|held| held.of_kind(SeatKind::Open));
        let deserted: BTreeSet<&usize> = sets.iter().filter(|set| self.is_deserted(id, **set)).collect();
        open.filter(|at| deserted.contains(&at.set)).collect()
    }

    /// Whether nobody is left of a pod set whose pods belong into one domain.
    fn is_deserted(&self, id: &GangId, set: usize) -> bool {
        let one_domain = self.topology_request(id, set).level().is_some();
        let held = self.gangs.get(id).and_then(|state| state.held.as_ref());
        one_domain && held.is_some_and(|held| self.nodes_near(id, held, set).is_empty())
    }

    /// Node and number of members there near which a pod set belongs: its own, and those of the pod
    /// sets with which it shares a domain.
    pub(super) fn nodes_near(&self, id: &GangId, held: &Held, set: usize) -> Vec<(Name, u32)> {
        match self.topology_request(id, set).group {
            Some(group) => self.nodes_of_group(id, held, &group),
            None => taken_nodes(held, set),
        }
    }

    /// The same for all pod sets that share a domain.
    pub(super) fn nodes_of_group(&self, id: &GangId, held: &Held, group: &Name) -> Vec<(Name, u32)> {
        let partners =
            (0..held.sets.len()).filter(|at| self.topology_request(id, *at).group.as_ref() == Some(group));
        partners.flat_map(|at| taken_nodes(held, at)).collect()
    }

    fn topology_request(&self, id: &GangId, set: usize) -> TopologyRequest {
        let state = &self.gangs[id];
        let name = state.held.as_ref().map(|held| &held.sets[set].name);
        let sets = state.fact.iter().flat_map(|fact| &fact.pod_sets);
        sets.into_iter().find(|s| Some(&s.name) == name).map(|s| s.topology.clone()).unwrap_or_default()
    }

    fn places_request(&self, id: &GangId, homeless: &Homeless) -> PlaceRequest {
        let state = &self.gangs[id];
        let held = state.held.as_ref().expect("homeless members belong to an admission");
        let request = |((set, shape), seats): (&(usize, Arc<Shape>), &Vec<SeatRef>)| {
            let asked = self.topology_request(id, *set);
            // Pods of one set belong together, also when their real shapes differ. (No pod set has such
            // a name as a group gets here.)
            let own = || Some(held.sets[*set].name.clone()).filter(|_| several_shapes(homeless, *set));
            PodSetRequest {
                count: u32::try_from(seats.len()).unwrap_or(u32::MAX),
                group: asked.group.as_ref().map(|group| format!("/{group}").into()).or_else(own),
                bound: self.nodes_near(id, held, *set),
                who: self.who_of(state, held, *set, shape),
                ..pod_set_request(held, *set, shape, asked)
            }
        };
        let pod_sets: Vec<PodSetRequest> = homeless.iter().map(request).collect();
        let all = pod_sets.iter().fold(0u32, |sum, set| sum.saturating_add(set.count));
        let minima = self.missing(state, held, &pod_sets);
        PlaceRequest {
            pod_sets,
            minima: Some(minima).filter(|minima| minima.total() < all),
            packing: state.fact.as_ref().map_or(self.settings.packing, |fact| self.packing_of(fact)),
            ..PlaceRequest::default()
        }
    }

    /// As whom others mean the members of a set, as far as anybody minds.
    pub(super) fn who_of(
        &self,
        state: &GangState,
        held: &Held,
        set: usize,
        shape: &Arc<Shape>,
    ) -> Option<Arc<Who>> {
        let who = state.who(&held.sets[set].name).filter(|_| held.binds())?;
        self.cluster.seen_as(who, shape)
    }

    /// How many of the members asked for must find a place, so that those that have one are worth
    /// something; at least one: a placement of nobody is not worth a decision.
    fn missing(&self, state: &GangState, held: &Held, asked: &[PodSetRequest]) -> Minima {
        let placed = held.seats().filter(|(_, seat)| match seat.state.kind() {
            SeatKind::Promised | SeatKind::Sent | SeatKind::Bound => seat.node.is_some(),
            SeatKind::Done => true,
            SeatKind::Open | SeatKind::Vacating => false,
        });
        let placed = placed.map(|(at, _)| (held.sets[at.set].role.as_ref(), 1));
        let mut missing = state.minimum().unwrap_or_default().beside(placed);
        missing.members = missing.members.max(1);
        // Members of a role that do not exist yet are not asked for.
        for (role, need) in &mut missing.roles {
            let of_role = asked.iter().filter(|set| set.role.as_ref() == Some(role));
            *need = (*need).min(of_role.fold(0, |sum: u32, set| sum.saturating_add(set.count)));
        }
        missing.roles.retain(|_, need| *need > 0);
        missing
    }

    /// The admission with the nodes that its seats have now.
    pub(super) fn as_seated(&self, held: &Held) -> Admission {
        let mut admission = held.admission.clone();
        for (at, set) in admission.pod_sets.iter_mut().enumerate() {
            set.nodes = kept_nodes(held, at);
            let topology = held.sets[at].topology.as_ref();
            set.topology = topology.and_then(|name| self.cluster.topology_places(name, &set.nodes));
        }
        admission
    }
}

/// What pods of this shape ask in a pod set that has its flavors.
pub(super) fn pod_set_request(
    held: &Held,
    set: usize,
    shape: &Arc<Shape>,
    request: TopologyRequest,
) -> PodSetRequest {
    PodSetRequest {
        name: held.sets[set].name.clone(),
        role: held.sets[set].role.clone(),
        ask: match held.binds() {
            true => held.sets[set].ask(shape),
            false => held.sets[set].ask(&shape.without_neighbours()),
        },
        topology: held.sets[set].topology.clone(),
        request,
        ..PodSetRequest::default()
    }
}

/// Node and number of seats there that are kept or taken, in node order.
fn kept_nodes(held: &Held, set: usize) -> Vec<(Name, u32)> {
    nodes_of(held, set, |kind| !matches!(kind, SeatKind::Done | SeatKind::Vacating))
}

/// Node and number of members there, in node order: others of their set belong near them.
pub(super) fn taken_nodes(held: &Held, set: usize) -> Vec<(Name, u32)> {
    nodes_of(held, set, |kind| matches!(kind, SeatKind::Promised | SeatKind::Sent | SeatKind::Bound))
}

fn nodes_of(held: &Held, set: usize, counts: impl Fn(SeatKind) -> bool) -> Vec<(Name, u32)> {
    let mut nodes: BTreeMap<Name, u32> = BTreeMap::new();
    for seat in held.sets[set].seats.iter().filter(|seat| counts(seat.state.kind())) {
        if let Some(node) = &seat.node {
            *nodes.entry(node.clone()).or_default() += 1;
        }
    }
    nodes.into_iter().collect()
}

fn several_shapes(homeless: &Homeless, set: usize) -> bool {
    homeless.keys().filter(|(of, _)| *of == set).count() > 1
}
