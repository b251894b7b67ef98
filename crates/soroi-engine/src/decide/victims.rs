//! Who could leave, and are there places once they have? What `preempt` asks of the engine.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::admit::is_early;
use super::assign::{FlavorOption, Ground, Refusal, on_top};
use super::fungible::{Grade, Means};
use super::gang::{GangState, Gangs, Phase};
use crate::cluster::{Cluster, Need, NodeIx, Occupant};
use crate::engine::Engine;
use crate::event::{ClusterQueue, GangId, Millis, Name, Preemptible, Preemption, TopologyWish};
use crate::place::{PlaceRequest, PodSetRequest, place};
use crate::preempt::{self, Candidate, FairRule, Possibility, Preemptor, Room, is_considered, possibility};
use crate::quota::kueue::Tree;
use crate::quota::{FlavorResource, Sum};
use crate::reason::QueueInactive;
use crate::topology::Grain;
use crate::world::World;

/// What a gang brings along that may have others leave.
#[derive(Clone, Copy)]
pub(super) struct Preempting<'a> {
    pub(super) rules: Preemption,
    /// Whether it is asked who could leave before it is known that somebody has to.
    pub(super) early: bool,
    pub(super) priority: i32,
    pub(super) queued_at: Millis,
    pub(super) candidates: &'a [Candidate<'a>],
    pub(super) fair: Option<&'a [FairRule]>,
    /// Gangs that had it evicted before.
    pub(super) evicted_by: &'a BTreeSet<GangId>,
    pub(super) gangs: &'a Gangs,
    /// Gangs for which places are kept.
    pub(super) holders: &'a BTreeSet<GangId>,
}

impl<'a> Preempting<'a> {
    /// On behalf of a gang of this queue, with its priority and age, and with whom it may have evicted.
    pub(super) fn of(
        id: &GangId,
        queue: &ClusterQueue,
        (priority, queued_at): (i32, Millis),
        candidates: &'a [Candidate<'a>],
        fair: Option<&'a [FairRule]>,
        (gangs, holders): (&'a Gangs, &'a BTreeSet<GangId>),
    ) -> Self {
        Self {
            rules: queue.preemption,
            early: is_early(queue.fungibility),
            priority,
            queued_at,
            candidates,
            fair,
            evicted_by: &gangs[id].preempted_by,
            gangs,
            holders,
        }
    }
}

/// The gangs that pay for quota, by ClusterQueue.
pub(crate) type Payers = BTreeMap<Name, Paying>;

/// The gangs that pay for quota of one ClusterQueue.
#[derive(Clone, Debug, Default)]
pub(crate) struct Paying {
    gangs: BTreeSet<GangId>,
    /// How many there are of each priority. Mostly nobody's is low enough, and nobody is gone through then.
    priorities: BTreeMap<i32, usize>,
}

impl Paying {
    pub(super) fn gangs(&self) -> &BTreeSet<GangId> {
        &self.gangs
    }

    fn add(&mut self, id: &GangId, priority: i32) {
        if self.gangs.insert(id.clone()) {
            *self.priorities.entry(priority).or_default() += 1;
        }
    }

    fn remove(&mut self, id: &GangId, priority: i32) {
        if self.gangs.remove(id)
            && let Some(left) = self.priorities.get_mut(&priority)
        {
            *left -= 1;
            if *left == 0 {
                self.priorities.remove(&priority);
            }
        }
    }

    /// Whether the priority of anybody is low enough for a rule, seen from this one.
    fn any_allowed(&self, rule: Preemptible, priority: i32) -> bool {
        let Some((lowest, _)) = self.priorities.first_key_value() else { return false };
        match rule {
            Preemptible::Never => false,
            Preemptible::LowerPriority => *lowest < priority,
            Preemptible::LowerOrNewerEqual => *lowest <= priority,
            Preemptible::Any => true,
        }
    }
}

impl Engine {
    /// Notes which ClusterQueue's quota a gang holds, and with which priority.
    pub(crate) fn note_payer(&mut self, id: &GangId) {
        let Some(state) = self.gangs.get_mut(id) else { return };
        let now = pays(state);
        if state.pays == now {
            return;
        }
        let before = std::mem::replace(&mut state.pays, now.clone());
        if let Some((before, priority)) = before
            && let Some(payers) = self.payers.get_mut(&before)
        {
            payers.remove(id, priority);
            if payers.gangs.is_empty() {
                self.payers.remove(&before);
            }
        }
        if let Some((queue, priority)) = now {
            self.payers.entry(queue).or_default().add(id, priority);
        }
    }
}

/// The ClusterQueue whose quota a gang holds, and its priority.
pub(crate) fn pays(state: &GangState) -> Option<(Name, i32)> {
    let queue = state.charges().find_map(|charge| charge.kueue.as_ref()).map(|(queue, _)| queue.clone());
    queue.map(|queue| (queue, rank(state).0))
}

/// Priority and age of a gang; those of one whose objects are not known come before all others.
fn rank(state: &GangState) -> (i32, Millis) {
    state.fact.as_ref().map_or((i32::MIN, Millis::MAX), |fact| (fact.priority, fact.queued_at))
}

/// All who hold quota of the tree that the queue belongs to, do not leave for somebody else, and whom a gang
/// of this priority and age may have evicted as far as they alone tell. Those of a queue that is stopped, or
/// inactive for another reason, stay (Kueue 0.18: such queues are no part of the snapshot).
pub(super) fn candidates<'a>(
    gangs: &'a Gangs,
    payers: &'a Payers,
    (tree, inactive): (&'a Tree, &'a BTreeMap<Name, QueueInactive>),
    queue: &'a ClusterQueue,
    (priority, queued_at): (i32, Millis),
    now: Millis,
) -> Vec<Candidate<'a>> {
    let (own, rules) = (&queue.name, queue.preemption);
    let rule = move |payer: &Name| if payer == own { rules.within_queue } else { rules.reclaim };
    let related = tree.who_borrows_beside(own, payers);
    let related = related.filter(move |(payer, paying)| {
        paying.any_allowed(rule(payer), priority) && !inactive.contains_key(*payer)
    });
    let ids = related.flat_map(|(payer, paying)| paying.gangs.iter().map(move |id| (payer, id)));
    let candidate = |(queue, id): (&'a Name, &'a GangId)| {
        let state = gangs.get(id).filter(|state| state.given_up_to.is_none())?;
        if !preempt::allows(rule(queue), (priority, queued_at), rank(state)) {
            return None;
        }
        let (_, usage) = state.charges().find_map(|charge| charge.kueue.as_ref())?;
        let reserved_at = state.reserved_at();
        let pods: u64 = state.held.iter().flat_map(|held| &held.paid).map(|paid| u64::from(*paid)).sum();
        // Whoever has just begun loses something too, the more the larger he is.
        let seconds = u64::try_from(now.saturating_sub(reserved_at) / 1000).unwrap_or(0) + 1;
        let leaving = match &state.held {
            Some(held) => matches!(held.phase, Phase::Undoing(_)),
            None => true,
        };
        let fact = state.fact.as_ref();
        Some(Candidate {
            id: id.clone(),
            queue: queue.clone(),
            priority: fact.map_or(i32::MIN, |fact| fact.priority),
            queued_at: fact.map_or(Millis::MAX, |fact| fact.queued_at),
            reserved_at,
            // Nobody can be told to leave whose objects are not known.
            leaving: leaving || fact.is_none(),
            work: seconds.saturating_mul(pods),
            usage: Cow::Borrowed(usage),
        })
    };
    ids.filter_map(candidate).collect()
}

/// Whatever of a gang may charge a node: pods that are there, and places.
pub(super) fn occupants(world: &World, id: &GangId, state: &GangState) -> Vec<Occupant> {
    let pods = world.members(id, &state.owners).filter(|pod| pod.occupies().is_some());
    let pods = pods.map(|pod| Occupant::Pod(pod.uid.clone()));
    let seats = state.held.iter().flat_map(|held| held.seats()).filter(|(_, seat)| seat.node.is_some());
    pods.chain(seats.map(|(at, _)| super::occupant(id, at))).collect()
}

/// Places for a request, on the cluster as it is when all holds have got what they wait for.
pub(super) struct Places<'a, 'c> {
    cluster: &'c mut Cluster,
    world: &'a World,
    preempting: Preempting<'a>,
    request: &'a PlaceRequest,
    /// By candidate, once it was asked about.
    occupants: Vec<Option<Vec<Occupant>>>,
}

impl<'a, 'c> Places<'a, 'c> {
    pub(super) fn new(
        cluster: &'c mut Cluster,
        world: &'a World,
        preempting: Preempting<'a>,
        request: &'a PlaceRequest,
    ) -> Self {
        let occupants = vec![None; preempting.candidates.len()];
        Self { cluster, world, preempting, request, occupants }
    }

    /// The places that the request finds when these have left.
    pub(super) fn find(&mut self, gone: &[usize]) -> Option<crate::place::Placement> {
        gone.iter().for_each(|at| self.look_up(*at));
        let savepoint = self.cluster.savepoint();
        self.fulfil_holds();
        for at in gone {
            for occupant in self.occupants[*at].iter().flatten() {
                self.cluster.lift(occupant);
            }
        }
        let found = place(self.cluster, self.request).ok();
        self.cluster.rollback(savepoint);
        found
    }

    /// As if the victims of all holds had left, and those had come who wait for them.
    fn fulfil_holds(&mut self) {
        for holder in self.preempting.holders {
            let Some(state) = self.preempting.gangs.get(holder) else { continue };
            let Some(hold) = &state.hold else { continue };
            for victim in hold.victims.keys() {
                let Some(gone) = self.preempting.gangs.get(victim) else { continue };
                if gone.given_up_to.as_ref() == Some(holder) {
                    for occupant in occupants(self.world, victim, gone) {
                        self.cluster.lift(&occupant);
                    }
                }
            }
            for set in &hold.admission.pod_sets {
                let Some(shape) = state.expected(&set.name).cloned() else { continue };
                for (node, count) in &set.nodes {
                    self.cluster.lift(&Occupant::Kept { gang: holder.clone(), node: node.clone() });
                    self.cluster.take_named(node, &shape, *count);
                }
            }
        }
    }

    fn look_up(&mut self, at: usize) {
        if self.occupants[at].is_none() {
            let id = &self.preempting.candidates[at].id;
            let state = self.preempting.gangs.get(id);
            self.occupants[at] = Some(state.map_or_else(Vec::new, |state| occupants(self.world, id, state)));
        }
    }

    /// Who takes how much on which node, cheap ones first.
    fn by_node(&mut self, among: &[usize]) -> Taken {
        let mut by_node = Taken::new();
        for at in among {
            self.look_up(*at);
            for occupant in self.occupants[*at].iter().flatten() {
                if let Some((node, need)) = self.cluster.charge_on(occupant) {
                    by_node.entry(node).or_default().push((*at, need.clone()));
                }
            }
        }
        by_node
    }

    /// For one pod set: the nodes where it costs least to make room, until there is enough; in one domain
    /// if one is required.
    fn cheapest_nodes(&mut self, set: &PodSetRequest, taken: &Taken) -> Vec<usize> {
        let need = self.cluster.need(&set.ask);
        let mut offers: BTreeMap<Option<u32>, Vec<Offer>> = BTreeMap::new();
        let mut free: BTreeMap<Option<u32>, u64> = BTreeMap::new();
        let Some(view) = self.cluster.index(&need, (set.topology.as_ref(), &Grain::FINE), false) else {
            return Vec::new();
        };
        let level = match &set.request.wish {
            TopologyWish::Required(label) => view.tree.level(label),
            _ => None,
        };
        for (node, slot) in view.suitable() {
            let domain = level.and_then(|level| view.tree.domain_of(node, level)).map(|ix| ix.index() as u32);
            let now = slot.space.fit_count(&need.requests);
            *free.entry(domain).or_default() += u64::from(now);
            let mut space = slot.space.clone();
            let (mut gone, mut last) = (Vec::new(), now);
            for (at, theirs) in taken.get(&node).into_iter().flatten() {
                space.uncharge(&theirs.requests, 1);
                if gone.last() != Some(at) {
                    gone.push(*at);
                }
                let fit = space.fit_count(&need.requests);
                if fit > last {
                    offers.entry(domain).or_default().push(Offer {
                        pods: u64::from(fit - now),
                        cost: self.preempting.cost(&gone),
                        node,
                        gangs: gone.clone(),
                    });
                    last = fit;
                }
            }
        }
        let domains: BTreeSet<Option<u32>> = free.keys().copied().collect();
        let chosen = domains.into_iter().filter_map(|domain| {
            let there = offers.remove(&domain).unwrap_or_default();
            let missing = u64::from(set.count).saturating_sub(free.get(&domain).copied().unwrap_or(0));
            let gangs = enough(there, missing)?;
            Some((self.preempting.cost(&gangs), gangs))
        });
        chosen.min().map(|(_, gangs)| gangs).unwrap_or_default()
    }
}

/// By node: candidates, and what each of their pods there takes.
type Taken = BTreeMap<NodeIx, Vec<(usize, Arc<Need>)>>;

/// Some gangs of a node, and for how many more pods there is room without them.
struct Offer {
    pods: u64,
    cost: Dear,
    node: NodeIx,
    gangs: Vec<usize>,
}

/// What it costs, roughly: the highest priority, how many, how new.
type Dear = (i32, usize, Reverse<Millis>);

/// The offers that cost least per pod until there are enough; one per node.
fn enough(mut offers: Vec<Offer>, missing: u64) -> Option<Vec<usize>> {
    let mut gangs: BTreeSet<usize> = BTreeSet::new();
    if missing == 0 {
        return Some(Vec::new());
    }
    offers.sort_by_key(|offer| {
        let (priority, count, newest) = offer.cost;
        // Gangs per pod, in thousandths.
        (priority, count as u64 * 1000 / offer.pods.max(1), newest, offer.node)
    });
    let (mut left, mut by_node): (u64, BTreeMap<NodeIx, u64>) = (missing, BTreeMap::new());
    for offer in offers {
        let before = by_node.get(&offer.node).copied().unwrap_or(0);
        if offer.pods > before {
            left = left.saturating_sub(offer.pods - before);
            by_node.insert(offer.node, offer.pods);
            gangs.extend(offer.gangs);
        }
        if left == 0 {
            return Some(gangs.into_iter().collect());
        }
    }
    None
}

impl Preempting<'_> {
    /// Of flavors that quota does not allow now, those that it may once others have left.
    pub(super) fn reclaimable(
        &self,
        ground: Ground<'_>,
        refused: &[Refusal],
        asked: &BTreeMap<Name, Sum>,
        taken: &BTreeMap<FlavorResource, Sum>,
    ) -> Vec<FlavorOption> {
        let short = refused.iter().filter(|refusal| refusal.short);
        let options = short.filter_map(|refusal| self.once_others_left(ground, refusal, asked, taken));
        // Who leaves for one resource may be enough for another; of one alone it is known.
        options.filter(|option| option.grade.means != Means::Nobody || asked.len() > 1).collect()
    }

    /// How a flavor that is short now would get its quota: as the worst of its resources does (Kueue, the
    /// representative mode). `None`: Kueue would not look for victims.
    pub(super) fn once_others_left(
        &self,
        ground: Ground<'_>,
        refusal: &Refusal,
        asked: &BTreeMap<Name, Sum>,
        taken: &BTreeMap<FlavorResource, Sum>,
    ) -> Option<FlavorOption> {
        let (tree, queue) = (ground.tree, &ground.queue.name);
        let (mut worst, mut highest): (Option<Grade>, u32) = (None, 0);
        for (what, sum) in on_top(&refusal.flavor, asked, taken) {
            let grade = if sum <= tree.available(queue, &what) {
                Grade { means: Means::Fits, borrow: tree.borrow_height(queue, &what, sum) }
            } else if !is_considered(tree, queue, self.rules, &what, sum, self.fair.is_some()) {
                return None;
            } else {
                let (possible, borrow) = self.possibility(ground, what, sum);
                let means = match possible {
                    Possibility::NoCandidates => Means::Nobody,
                    Possibility::Preempt => Means::Preempt,
                    Possibility::Reclaim => Means::Reclaim,
                };
                Grade { means, borrow }
            };
            highest = highest.max(grade.borrow);
            if worst.is_none_or(|worst| worst.beats(grade, ground.queue.fungibility)) {
                worst = Some(grade);
            }
        }
        let (position, flavor) = (refusal.position, refusal.flavor.clone());
        worst.map(|grade| FlavorOption { position, flavor, grade, borrow: highest })
    }

    /// What preemption could do about one resource of a flavor, and how high it would still borrow.
    fn possibility(&self, ground: Ground<'_>, what: FlavorResource, sum: Sum) -> (Possibility, u32) {
        let (tree, queue) = (ground.tree, &ground.queue.name);
        let (short, usage) = (BTreeSet::from([what.clone()]), BTreeMap::from([(what, sum)]));
        let preemptor = Preemptor {
            queue,
            rules: self.rules,
            priority: self.priority,
            queued_at: self.queued_at,
            usage: &usage,
            short: &short,
            evicted_by: self.evicted_by,
        };
        possibility(tree, &preemptor, self.candidates, self.fair)
    }

    fn cost(&self, gangs: &[usize]) -> Dear {
        let staying = || gangs.iter().map(|at| &self.candidates[*at]).filter(|candidate| !candidate.leaving);
        let priority = staying().map(|candidate| candidate.priority).max().unwrap_or(i32::MIN);
        let newest = staying().map(|candidate| candidate.reserved_at).max().unwrap_or(Millis::MAX);
        (priority, staying().count(), Reverse(newest))
    }
}

impl Room for Places<'_, '_> {
    fn suffices(&mut self, gone: &[usize]) -> bool {
        self.find(gone).is_some()
    }

    fn suggest(&mut self, among: &[usize]) -> Option<Vec<usize>> {
        let by_node = self.by_node(among);
        let savepoint = self.cluster.savepoint();
        let mut gangs: Vec<usize> = Vec::new();
        for set in &self.request.pod_sets {
            gangs.extend(self.cheapest_nodes(set, &by_node));
        }
        self.cluster.rollback(savepoint);
        gangs.sort_unstable();
        gangs.dedup();
        Some(gangs)
    }
}
