//! A gang that started with fewer members than it has pods takes the others in when there is room:
//! each more that quota and places allow, in the flavors that it has.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assign::totals;
use super::gang::{Held, Phase};
use super::search::NoAnswer;
use super::wanted::{StartSet, Wanted};
use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::{Amount, GangId, Millis, Name, QueueingStrategy};
use crate::minima::Minima;
use crate::place::{PlaceRequest, Placement, place};
use crate::queue::{Blocker, CapabilityBlocker, LineKey, QuotaBlocker, Turn, WantIx};
use crate::quota::volcano::NoRoom;
use crate::quota::{FlavorResource, Sum, saturate};
use crate::reason::{FlavorProblem, Reason, VolcanoProblem};

/// More members of one pod set.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Growth {
    /// Which pod set.
    set: usize,
    cluster_queue: Option<Name>,
    volcano_queue: Option<Name>,
    /// By resource: the flavor that pays, and what one pod takes.
    pays: BTreeMap<Name, (Option<Name>, Amount)>,
    /// Places for all that there are.
    places: PlaceRequest,
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
        let pods = held.unseated.iter().filter_map(|uid| self.world.pods.get(uid));
        let surplus = pods.filter(|pod| pod.is_live() && pod.bindable && pod.node.is_none());
        let (set, pod) =
            surplus.filter_map(|pod| Some((state.set_of(pod)?, pod))).min_by_key(|(set, _)| *set)?;
        let named = fact.pod_sets.iter().find(|s| s.name == held.sets[set].name)?;
        let seats = u32::try_from(held.sets[set].seats.len()).unwrap_or(u32::MAX);
        let members = held.unseated.iter().filter_map(|uid| self.world.pods.get(uid));
        let there =
            members.filter(|pod| pod.is_live() && pod.bindable && state.set_of(pod) == Some(set)).count();
        let more = named.count.saturating_sub(seats).min(u32::try_from(there).unwrap_or(u32::MAX));
        if more == 0 {
            return None;
        }
        let one = StartSet {
            name: named.name.clone(),
            role: named.role.clone(),
            count: 1,
            shape: named.shape.clone(),
            placed: pod.shape.clone(),
            topology: named.topology.clone(),
        };
        let cluster_queue = held.admission.cluster_queue.clone();
        let queue = cluster_queue.as_ref().and_then(|name| self.quotas.kueue.queue(name));
        let flavors = &held.admission.pod_sets[set].flavors;
        let pays = totals(&one, 1, queue).into_iter();
        let pays = pays.map(|(resource, sum)| {
            let flavor = flavors.get(&resource).cloned();
            (resource, (flavor, saturate(sum)))
        });
        let pod_set = crate::place::PodSetRequest {
            count: more,
            bound: super::repair::taken_nodes(held, set),
            ..super::repair::pod_set_request(held, set, &pod.shape, named.topology.clone())
        };
        Some(Growth {
            set,
            cluster_queue,
            volcano_queue: fact.volcano_queue.clone(),
            pays: pays.collect(),
            places: PlaceRequest {
                pod_sets: vec![pod_set],
                minima: Some(Minima::of(1)),
                excluded: Vec::new(),
            },
        })
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
        match self.room_for_more(growth) {
            Ok(placement) => {
                self.waiting.leave(id);
                self.take_in_more(id, growth, placement, now, out);
            }
            Err(no) => self.certify(want, no),
        }
    }

    pub(super) fn room_for_more(&mut self, growth: &Growth) -> Result<Placement, NoAnswer> {
        let enough = self.quota_for_more(growth, 1)?;
        let (mut low, mut high) = (1, growth.places.pod_sets[0].count);
        while low < high {
            let middle = high - (high - low) / 2;
            match self.quota_for_more(growth, middle) {
                Ok(_) => low = middle,
                Err(_) => high = middle - 1,
            }
        }
        let mut request = growth.places.clone();
        request.pod_sets[0].count = low;
        place(&mut self.cluster, &request).map_err(|problems| {
            let mut no = self.no_places_for(&request, problems);
            no.blockers.extend(enough);
            no
        })
    }

    /// Whether quota allows so many more. The answer is what a gang that fails for want of places
    /// takes for given.
    fn quota_for_more(&self, growth: &Growth, count: u32) -> Result<BTreeSet<Blocker>, NoAnswer> {
        let mut enough = BTreeSet::new();
        let mut need: BTreeMap<Name, Amount> = BTreeMap::new();
        for (resource, (flavor, amount)) in &growth.pays {
            let needed = Sum::from(*amount) * Sum::from(count);
            need.insert(resource.clone(), saturate(needed));
            let (Some(queue), Some(flavor)) = (&growth.cluster_queue, flavor) else { continue };
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
            let set = growth.places.pod_sets[0].name.clone();
            let reason = Reason::NoFlavor(vec![(set, vec![problem])]);
            return Err(NoAnswer { reason, blockers: enough, shortages: BTreeSet::new() });
        }
        let Some(queue) = &growth.volcano_queue else { return Ok(enough) };
        let ceiling = |(queue, resource, needed)| CapabilityBlocker { queue, resource, needed };
        match self.quotas.volcano.room(queue, &need) {
            Ok(held) => {
                enough.extend(held.into_iter().map(ceiling).map(Blocker::CapabilityEnough));
                Ok(enough)
            }
            Err(NoRoom { held, queue, problem }) => {
                enough.extend(held.into_iter().map(ceiling).map(Blocker::CapabilityEnough));
                if let VolcanoProblem::OverCapability { resource, .. } = &problem {
                    let needed = need.get(resource).copied().unwrap_or(0);
                    enough.insert(Blocker::CapabilityShort(ceiling((
                        queue.clone(),
                        resource.clone(),
                        needed,
                    ))));
                }
                let reason = Reason::VolcanoQueue { queue, problem };
                Err(NoAnswer { reason, blockers: enough, shortages: BTreeSet::new() })
            }
        }
    }

    fn take_in_more(
        &mut self,
        id: &GangId,
        growth: &Growth,
        placement: Placement,
        now: Millis,
        out: &mut Vec<Decision>,
    ) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let Some(held) = &mut state.held else { return };
        let places = placement.pod_sets.into_iter().flat_map(|set| set.nodes);
        let nodes: Vec<Name> =
            places.flat_map(|(node, count)| (0..count).map(move |_| node.clone())).collect();
        let set = &mut held.admission.pod_sets[growth.set];
        set.count = set.count.saturating_add(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        for (resource, (_, amount)) in &growth.pays {
            let more = amount.saturating_mul(Amount::try_from(nodes.len()).unwrap_or(Amount::MAX));
            let usage = set.usage.entry(resource.clone()).or_default();
            *usage = usage.saturating_add(more);
        }
        let mut paid = held.paid.clone();
        paid[growth.set] = paid[growth.set].saturating_add(u32::try_from(nodes.len()).unwrap_or(u32::MAX));
        held.add_seats(growth.set, nodes.into_iter().map(Some));
        self.pay_for(id, paid);
        self.charge_seats(id);
        self.promise_seats(id);
        self.write_places(id, now, out);
        self.recount(id);
    }
}

impl Held {
    /// Whether it could take more members in now: nothing else of it is under way.
    pub(super) fn may_grow(&self) -> bool {
        self.phase == Phase::Committed && self.was_whole
    }
}
