//! A gang that started with fewer members than it has pods takes the others in when there is room:
//! each more that quota and places allow, in the flavors that it has; members of a new kind in
//! flavors that are chosen for them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admit::most;
use super::assign::totals;
use super::gang::{GangState, Held, Phase};
use super::search::NoAnswer;
use super::wanted::{Start, StartSet, Wanted};
use crate::decision::{Decision, PodSetAdmission};
use crate::engine::Engine;
use crate::event::{Amount, Gang, GangId, Millis, Name, Pod, PodSet, Policy, QueueingStrategy};
use crate::fit::Ask;
use crate::minima::Minima;
use crate::place::{PlaceRequest, PodSetRequest, place};
use crate::queue::{Blocker, LineKey, QuotaBlocker, Turn, WantIx};
use crate::quota::{FlavorResource, Sum, saturate};
use crate::reason::{FlavorProblem, Reason};

/// How many pod sets a gang may have: as many as its plan can say (GangPlan, `spec.podSets`). With more
/// than 55, what the plan's rules may cost would be over the budget of Kubernetes' API server (1.36), which
/// then refuses the whole definition.
pub const POD_SETS_MAX: usize = 48;

/// How many pod sets a gang of a ClusterQueue may have: as many as its Workload can say (Kueue,
/// Workload `spec.podSets`).
pub const PAID_POD_SETS_MAX: usize = 18;

/// More members than a gang was admitted with, of one pod set or of several: whichever finds room
/// first, in the order of its pod sets.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Growth {
    each: Vec<More>,
}

/// More members of one pod set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct More {
    set: Name,
    count: u32,
    cluster_queue: Option<Name>,
    volcano_queue: Option<Name>,
    /// By resource: the flavor that pays, and what one pod takes.
    pays: BTreeMap<Name, (Option<Name>, Amount)>,
    asks: Asks,
}

/// What is asked for members of one pod set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Asks {
    /// Places for all of them.
    Places(PlaceRequest),
    /// Flavors, and places on them: what a gang of these members alone would ask.
    FlavorsAndPlaces(Arc<Start>),
    /// Nothing: it cannot be taken in.
    Nothing,
}

/// Where members find room.
struct Room {
    nodes: Vec<(Name, u32)>,
    /// By resource: the flavor that was chosen, if one was to be.
    flavors: BTreeMap<Name, Name>,
}

/// Which pod set a member without a seat belongs to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// One that was admitted.
    Held(usize),
    /// One that the gang's objects name since: its position there.
    New(usize),
}

impl Engine {
    /// Puts a running gang with members that it was not admitted for into the line for places.
    pub(crate) fn want_growth(&mut self, id: &GangId) {
        let growth = self.growth(id);
        let turn = self.gangs.get(id).and_then(|state| state.fact.as_ref()).map(Turn::of);
        match (growth, turn) {
            (Some(growth), Some(turn)) => {
                let wanted = Wanted::More(Arc::new(growth));
                self.waiting.join(LineKey::Admitted, QueueingStrategy::BestEffortFifo, turn, wanted);
                self.to_tell.insert(id.clone());
            }
            _ => self.waiting.leave(id),
        }
    }

    fn growth(&self, id: &GangId) -> Option<Growth> {
        let state = self.gangs.get(id)?;
        let (fact, held) = (state.fact.as_ref()?, state.held.as_ref()?);
        fact.minima.as_ref()?;
        let pods = held.unseated.iter().filter(|uid| !held.refused.contains(*uid));
        let pods = pods.filter_map(|uid| self.world.pods.get(uid));
        let surplus = pods.filter(|pod| pod.is_live() && pod.bindable && pod.node.is_none());
        let mut kinds: BTreeMap<Kind, (u32, &Pod)> = BTreeMap::new();
        for pod in surplus {
            if let Some(kind) = state.kind_of(fact, held, pod) {
                kinds.entry(kind).or_insert((0, pod)).0 += 1;
            }
        }
        let each = kinds.into_iter().filter_map(|(kind, (there, pod))| match kind {
            Kind::Held(set) => self.more_of(fact, held, set, there, pod),
            Kind::New(at) => Some(self.more_of_new(fact, held, &fact.pod_sets[at], there)),
        });
        let each: Vec<More> = each.collect();
        (!each.is_empty()).then_some(Growth { each })
    }

    fn more_of(&self, fact: &Gang, held: &Held, set: usize, there: u32, pod: &Pod) -> Option<More> {
        let named = fact.pod_sets.iter().find(|s| s.name == held.sets[set].name)?;
        let seats = u32::try_from(held.sets[set].seats.len()).unwrap_or(u32::MAX);
        // Jobs say how many there are to be; a group of bare pods is as many as there are.
        let most = if pod.pod_set.is_some() { named.count.saturating_sub(seats) } else { there };
        let count = there.min(most);
        if count == 0 {
            return None;
        }
        let cluster_queue = held.admission.cluster_queue.clone();
        let flavors = &held.admission.pod_sets[set].flavors;
        let pod_set = PodSetRequest {
            count,
            bound: self.nodes_near(&fact.id, held, set),
            who: self.cluster.seen_as(&pod.who, &pod.shape),
            ..super::repair::pod_set_request(held, set, &pod.shape, named.topology.clone())
        };
        Some(More {
            set: named.name.clone(),
            count,
            pays: self.price(named, cluster_queue.as_ref(), flavors),
            cluster_queue,
            volcano_queue: fact.volcano_queue.clone(),
            asks: Asks::Places(PlaceRequest {
                pod_sets: vec![pod_set],
                minima: Some(Minima::of(1)),
                packing: self.packing_of(fact),
                ..PlaceRequest::default()
            }),
        })
    }

    /// Of a pod set that was not there when the gang was admitted.
    fn more_of_new(&self, fact: &Gang, held: &Held, named: &PodSet, count: u32) -> More {
        let cluster_queue = held.admission.cluster_queue.clone();
        let most = if cluster_queue.is_some() { PAID_POD_SETS_MAX } else { POD_SETS_MAX };
        let asks = match cluster_queue.clone() {
            // With whom it is to share a domain was placed without it.
            _ if held.sets.len() >= most || named.topology.group.is_some() => Asks::Nothing,
            Some(queue) => Asks::FlavorsAndPlaces(Arc::new(Start {
                // Members of such a gang get their places beside its others, whenever those got theirs.
                policy: Policy::Unified,
                packing: self.packing_of(fact),
                cluster_queue: Some(queue),
                volcano_queue: None,
                sets: vec![StartSet {
                    count,
                    who: self.cluster.seen_as(&named.who, &named.shape),
                    ..StartSet::of(named)
                }],
                minima: Minima::of(1),
                // Its admission was checked.
                checks: BTreeSet::new(),
                lingering: None,
                // Nobody leaves for members beyond those that make a gang whole.
                rank: None,
            })),
            None => Asks::Places(PlaceRequest {
                packing: self.packing_of(fact),
                ..self.places_of_new(named, count)
            }),
        };
        More {
            set: named.name.clone(),
            count,
            pays: self.price(named, cluster_queue.as_ref(), &BTreeMap::new()),
            cluster_queue,
            volcano_queue: fact.volcano_queue.clone(),
            asks,
        }
    }

    fn places_of_new(&self, named: &PodSet, count: u32) -> PlaceRequest {
        let pod_set = PodSetRequest {
            name: named.name.clone(),
            role: named.role.clone(),
            count,
            ask: Ask { shape: named.shape.clone(), ..Ask::default() },
            who: self.cluster.seen_as(&named.who, &named.shape),
            request: named.topology.clone(),
            ..PodSetRequest::default()
        };
        PlaceRequest { pod_sets: vec![pod_set], minima: Some(Minima::of(1)), ..PlaceRequest::default() }
    }

    /// What one pod of the set takes, by resource, and the flavor that pays.
    fn price(
        &self,
        named: &PodSet,
        cluster_queue: Option<&Name>,
        flavors: &BTreeMap<Name, Name>,
    ) -> BTreeMap<Name, (Option<Name>, Amount)> {
        let queue = cluster_queue.and_then(|name| self.quotas.kueue.queue(name));
        let pays = totals(&StartSet::of(named), 1, queue).into_iter();
        pays.map(|(resource, sum)| {
            let flavor = flavors.get(&resource).cloned();
            (resource, (flavor, saturate(sum)))
        })
        .collect()
    }

    /// Takes as many in as quota and places allow, or says why not one.
    pub(super) fn grow(
        &mut self,
        id: &GangId,
        want: WantIx,
        growth: &Growth,
        now: Millis,
        out: &mut Vec<Decision>,
    ) {
        match self.first_with_room(growth) {
            Ok((more, room)) => {
                self.waiting.leave(id);
                self.take_in_more(id, more, room, now, out);
            }
            Err(no) => self.certify(want, no),
        }
    }

    /// Why not one more can be taken in; `None` if one can.
    pub(super) fn no_room_for_more(&mut self, growth: &Growth) -> Option<NoAnswer> {
        self.first_with_room(growth).err()
    }

    fn first_with_room<'g>(&mut self, growth: &'g Growth) -> Result<(&'g More, Room), NoAnswer> {
        let mut answer: Option<NoAnswer> = None;
        for more in &growth.each {
            match self.room_for(more) {
                Ok(room) => return Ok((more, room)),
                Err(no) => answer = Some(answer.map_or(no.clone(), |before| before.and(no))),
            }
        }
        Err(answer.expect("who grows wants more of at least one pod set"))
    }

    fn room_for(&mut self, more: &More) -> Result<Room, NoAnswer> {
        match &more.asks {
            Asks::Nothing => Err(NoAnswer::of(Reason::NotAdmittedWith { pod_set: more.set.clone() })),
            Asks::Places(request) => self.places_for(more, request.clone()),
            Asks::FlavorsAndPlaces(start) => self.flavors_and_places_for(more, start),
        }
    }

    fn places_for(&mut self, more: &More, mut request: PlaceRequest) -> Result<Room, NoAnswer> {
        let enough = self.quota_for_more(more, 1)?;
        request.pod_sets[0].count = most(1, more.count, |count| self.quota_for_more(more, count).is_ok());
        match place(&mut self.cluster, &request) {
            Ok(placement) => {
                let nodes = placement.pod_sets.into_iter().flat_map(|set| set.nodes).collect();
                Ok(Room { nodes, flavors: BTreeMap::new() })
            }
            Err(problems) => {
                let mut no = self.no_places_for(&request, problems);
                no.blockers.extend(enough);
                Err(no)
            }
        }
    }

    /// One first, which says why if there is none; then as many as one choice of flavors has quota for.
    fn flavors_and_places_for(&mut self, more: &More, start: &Start) -> Result<Room, NoAnswer> {
        let one = Minima::of(1);
        let enough = self.quota_for_more(more, 1)?;
        let mut answer = self.search(start, vec![1], Some(&one), true).map_err(|mut no| {
            no.blockers.extend(enough);
            no
        })?;
        let most = most(1, more.count, |count| {
            self.quota_for_more(more, count).is_ok() && self.search(start, vec![count], None, false).is_ok()
        });
        if most > 1
            && let Ok(larger) = self.search(start, vec![most], Some(&one), true)
        {
            answer = larger;
        }
        let set = answer.sets.pop().expect("one pod set was asked for");
        Ok(Room { nodes: set.nodes, flavors: set.flavors })
    }

    /// Whether quota allows so many more. The answer is what a gang that fails for want of places
    /// takes for given.
    fn quota_for_more(&self, more: &More, count: u32) -> Result<BTreeSet<Blocker>, NoAnswer> {
        let mut enough = BTreeSet::new();
        let mut need: BTreeMap<Name, Amount> = BTreeMap::new();
        for (resource, (flavor, amount)) in &more.pays {
            let needed = Sum::from(*amount) * Sum::from(count);
            need.insert(resource.clone(), saturate(needed));
            let (Some(queue), Some(flavor)) = (&more.cluster_queue, flavor) else { continue };
            let what = FlavorResource { flavor: flavor.clone(), resource: resource.clone() };
            let Some(root) = self.quotas.kueue.root(queue) else { continue };
            let short = needed - self.quotas.kueue.available(queue, &what);
            let blocker = QuotaBlocker { root, what, queue: queue.clone(), needed };
            if short <= 0 {
                enough.insert(Blocker::QuotaEnough(blocker));
                continue;
            }
            let (flavor, resource, short) = (flavor.clone(), resource.clone(), saturate(short));
            let problem = FlavorProblem::Short { flavor, resource, short };
            enough.insert(Blocker::QuotaShort(blocker));
            let reason = Reason::NoFlavor(vec![(more.set.clone(), vec![problem])]);
            return Err(NoAnswer { reason, blockers: enough, shortages: BTreeSet::new(), unmet: None });
        }
        let Some(queue) = &more.volcano_queue else { return Ok(enough) };
        match self.room_under(queue, &need) {
            Ok(more) => enough.extend(more),
            Err(mut no) => {
                no.blockers.extend(enough);
                return Err(no);
            }
        }
        Ok(enough)
    }

    fn take_in_more(&mut self, id: &GangId, more: &More, room: Room, now: Millis, out: &mut Vec<Decision>) {
        let places = room.nodes.into_iter();
        let nodes: Vec<Name> =
            places.flat_map(|(node, count)| (0..count).map(move |_| node.clone())).collect();
        let count = u32::try_from(nodes.len()).unwrap_or(u32::MAX);
        let Some(at) = self.seat_set_for(id, &more.set, room.flavors) else { return };
        let Some(held) = self.gangs.get_mut(id).and_then(|state| state.held.as_mut()) else { return };
        let set = &mut held.admission.pod_sets[at];
        set.count = set.count.saturating_add(count);
        for (resource, (_, amount)) in &more.pays {
            let amount = amount.saturating_mul(Amount::from(count));
            let usage = set.usage.entry(resource.clone()).or_default();
            *usage = usage.saturating_add(amount);
        }
        let mut paid = held.paid.clone();
        paid[at] = paid[at].saturating_add(count);
        held.add_seats(at, nodes.into_iter().map(Some));
        self.pay_for(id, paid);
        self.charge_seats(id);
        self.promise_seats(id);
        self.write_places(id, now, out);
        self.recount(id);
    }

    /// Where the gang has its seats of this pod set; an empty one in these flavors is added if it has
    /// none.
    fn seat_set_for(&mut self, id: &GangId, name: &Name, flavors: BTreeMap<Name, Name>) -> Option<usize> {
        let state = self.gangs.get(id)?;
        let held = state.held.as_ref()?;
        if let Some(at) = held.sets.iter().position(|set| set.name == *name) {
            return Some(at);
        }
        let admission = PodSetAdmission { name: name.clone(), flavors, ..PodSetAdmission::default() };
        let set = self.seat_set(state.fact.as_ref(), &admission);
        let held = self.gangs.get_mut(id)?.held.as_mut()?;
        held.admission.pod_sets.push(admission);
        held.paid.push(0);
        held.sets.push(set);
        Some(held.sets.len() - 1)
    }
}

impl GangState {
    /// The pod set of a member that found no seat among those of its role. Sets are told apart by role
    /// and shape where the members themselves make them.
    fn kind_of(&self, fact: &Gang, held: &Held, pod: &Pod) -> Option<Kind> {
        let alike = |set: &PodSet| set.role == pod.role && set.shape == pod.shape;
        match fact.pod_sets.iter().position(alike).filter(|_| pod.pod_set.is_none()) {
            Some(at) => {
                let there = held.sets.iter().position(|set| set.name == fact.pod_sets[at].name);
                Some(there.map_or(Kind::New(at), Kind::Held))
            }
            None => self.set_of(pod).map(Kind::Held),
        }
    }
}

impl Held {
    /// Whether it could take more members in now: nothing else of it is under way.
    pub(super) fn may_grow(&self) -> bool {
        self.phase == Phase::Committed && self.was_whole
    }
}
