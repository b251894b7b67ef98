//! What does a gang wait for, and may it be decided at all?

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::gang::GangState;
use super::grow::Growth;
use crate::engine::Engine;
use crate::event::{
    Gang, GangId, LocalQueue, Millis, Name, PodSet, Policy, Preemptible, Preemption, QueueingStrategy,
    Readiness, Shape, StopPolicy, TopologyRequest, Who,
};
use crate::fit::selects;
use crate::minima::Minima;
use crate::packing::Packing;
use crate::place::PlaceRequest;
use crate::queue::{LineKey, Turn};
use crate::quota::kueue;
use crate::reason::{NotYet, QueueInactive, QueueProblem, Reason};

/// What gangs wait for. Gangs of one line with equal values share certificates, so it holds all
/// that the answer depends on, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wanted {
    /// To start.
    Start(Arc<Start>),
    /// Places, for a gang that holds quota already.
    Places(Arc<PlaceRequest>),
    /// More members than it was admitted with.
    More(Arc<Growth>),
}

/// A gang that wants to start.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Start {
    pub(crate) policy: Policy,
    /// How its places are chosen.
    pub(crate) packing: Packing,
    pub(crate) cluster_queue: Option<Name>,
    pub(crate) volcano_queue: Option<Name>,
    pub(crate) sets: Vec<StartSet>,
    /// How many members must start together, over all sets and of each role.
    pub(crate) minima: Minima,
    /// Admission checks that it has not passed, by the flavors that they are asked for.
    pub(crate) checks: BTreeSet<BTreeSet<Name>>,
    /// It still holds quota of an earlier admission, which makes its answer its own.
    pub(crate) lingering: Option<GangId>,
    /// Where its queue may have others evicted: its priority and, where that matters, its age.
    pub(crate) rank: Option<(i32, Millis)>,
}

/// One pod set of a gang that wants to start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StartSet {
    pub(crate) name: Name,
    pub(crate) role: Option<Name>,
    pub(crate) count: u32,
    /// How few would do.
    pub(crate) least: Option<u32>,
    /// What is charged to quota.
    pub(crate) shape: Arc<Shape>,
    /// What is placed: the shape as it was learnt, if it was.
    pub(crate) placed: Arc<Shape>,
    pub(crate) topology: TopologyRequest,
    /// As whom others mean its pods, as far as anybody minds.
    pub(crate) who: Option<Arc<Who>>,
}

impl Start {
    /// All pods of all sets.
    pub(super) fn pods(&self) -> u32 {
        self.sets.iter().fold(0, |sum, set| sum.saturating_add(set.count))
    }

    /// Whether a check that it has not passed is asked for one of these flavors.
    pub(super) fn is_checked_on<'a>(&self, flavors: impl Iterator<Item = &'a Name> + Clone) -> bool {
        self.checks.iter().any(|on| on.is_empty() || flavors.clone().any(|flavor| on.contains(flavor)))
    }
}

impl StartSet {
    /// All pods of a pod set, in the shape that is predicted, as nobody whom others mind.
    pub(super) fn of(set: &PodSet) -> Self {
        Self {
            name: set.name.clone(),
            role: set.role.clone(),
            count: set.count,
            least: None,
            shape: set.charged().clone(),
            placed: set.shape.clone(),
            topology: set.topology.clone(),
            who: None,
        }
    }
}

fn line_of(cluster_queue: Option<&Name>, volcano_queue: Option<&Name>) -> LineKey {
    match (cluster_queue, volcano_queue) {
        (Some(queue), _) => LineKey::ClusterQueue(queue.clone()),
        (None, Some(queue)) => LineKey::VolcanoQueue(queue.clone()),
        (None, None) => LineKey::Free,
    }
}

/// Where a gang that holds nothing stands.
pub(super) enum Standing {
    /// In this line.
    Waits(LineKey, QueueingStrategy, Start),
    /// It may not be decided, for this reason, until something changes or this time comes.
    Hindered(Reason, Option<Millis>),
}

impl Engine {
    /// Puts a gang that holds nothing where it belongs. Returns when to look again.
    pub(crate) fn stand(&mut self, id: &GangId, now: Millis) -> Option<Millis> {
        self.to_tell.insert(id.clone());
        let state = self.gangs.get_mut(id)?;
        let Some(fact) = &state.fact else {
            self.waiting.leave(id);
            self.note_arrived(id, now);
            return None;
        };
        let turn = Turn::of(fact);
        self.blocked.remove(id);
        let standing = self.standing(id, now);
        match &standing {
            Standing::Waits(..) => self.note_arrived(id, now),
            Standing::Hindered(reason, _) => self.note_arrival(id, reason, now),
        }
        match standing {
            Standing::Waits(LineKey::ClusterQueue(_), ..) if self.is_one_getting_ready() => {
                self.waiting.leave(id);
                self.blocked.insert(id.clone());
                None
            }
            Standing::Waits(line, strategy, start) => match self.stands_aside(&line, &turn, now) {
                Some(until) => {
                    self.waiting.leave(id);
                    Some(until)
                }
                None => {
                    self.waiting.join(line, strategy, turn, Wanted::Start(Arc::new(start)));
                    None
                }
            },
            Standing::Hindered(_, until) => {
                self.waiting.leave(id);
                until
            }
        }
    }

    /// Why a gang that holds nothing may not be decided; `None` if it may.
    pub(super) fn hindrance(&self, id: &GangId, now: Millis) -> Option<Reason> {
        match self.standing(id, now) {
            Standing::Waits(..) => {
                self.blocked.contains(id).then_some(Reason::NotYet(NotYet::OthersNotReady))
            }
            Standing::Hindered(reason, _) => Some(reason),
        }
    }

    /// What is wrong is asked in the order in which its user should know: switched off, no way to
    /// quota, not ready, not possible, too early.
    pub(super) fn standing(&self, id: &GangId, now: Millis) -> Standing {
        let state = &self.gangs[id];
        let fact = state.fact.as_ref().expect("a gang that stands has its objects");
        if let Readiness::Off(off) = &fact.readiness {
            return Standing::Hindered(Reason::Off(off.clone()), None);
        }
        let queue = match self.cluster_queue_of(fact) {
            Ok(queue) => queue,
            Err(reason) => return Standing::Hindered(reason, None),
        };
        if let Readiness::NotYet(missing) = &fact.readiness {
            return Standing::Hindered(Reason::NotYet(missing.clone()), None);
        }
        let there = fact.pod_sets.iter().map(|set| (set.role.as_ref(), set.count));
        if let Some(lack) = fact.minima.as_ref().and_then(|minima| minima.lack(there)) {
            return Standing::Hindered(Reason::NotYet(NotYet::MembersMissing(lack)), None);
        }
        if state.given_up_to.is_some() && state.lingering.is_some() {
            return Standing::Hindered(Reason::NotYet(NotYet::StillLeaving), None);
        }
        let policy = self.policy_of(fact);
        if let Some(scheduler) = fact.foreign_scheduler.clone().filter(|_| policy.soroi_binds()) {
            return Standing::Hindered(Reason::ForeignScheduler { scheduler, policy }, None);
        }
        let until = state.not_before();
        if until > now {
            return Standing::Hindered(Reason::BackingOff { until }, Some(until));
        }
        let strategy = queue.map_or(QueueingStrategy::BestEffortFifo, |queue| queue.strategy);
        let start = self.start(id, state, fact, policy, queue.map(|queue| queue.name.clone()));
        Standing::Waits(line_of(start.cluster_queue.as_ref(), start.volcano_queue.as_ref()), strategy, start)
    }

    /// The line in which a gang stands when it can be decided.
    pub(super) fn line_for(&self, fact: &Gang) -> LineKey {
        let door = self.local_queue_of(fact);
        line_of(door.map(|door| &door.cluster_queue), fact.volcano_queue.as_ref())
    }

    fn start(
        &self,
        id: &GangId,
        state: &GangState,
        fact: &Gang,
        policy: Policy,
        cluster_queue: Option<Name>,
    ) -> Start {
        // A group says by its minima how few would do, and only a whole Workload has its size changed.
        let alone = fact.minima.is_none() && fact.volcano_queue.is_none();
        let set = |set: &PodSet| {
            let placed = state.learnt.get(&set.name).unwrap_or(&set.shape);
            let who = policy.soroi_binds().then(|| self.cluster.seen_as(&set.who, placed));
            StartSet {
                least: set.least.filter(|least| *least < set.count && alone),
                placed: if policy.soroi_binds() { placed.clone() } else { placed.without_neighbours() },
                who: who.flatten(),
                ..StartSet::of(set)
            }
        };
        let rules = cluster_queue.as_ref().and_then(|name| self.quotas.kueue.queue(name));
        let rules = rules.map(|queue| queue.preemption).filter(Preemption::is_any);
        // Age decides nothing unless the queue's rules say so; those who want the same share an answer.
        let age = |rules: Preemption| match rules.within_queue {
            Preemptible::LowerOrNewerEqual => fact.queued_at,
            _ => 0,
        };
        Start {
            policy,
            packing: self.packing_of(fact),
            cluster_queue,
            volcano_queue: fact.volcano_queue.clone(),
            sets: fact.pod_sets.iter().map(set).collect(),
            minima: state.minimum().unwrap_or_default(),
            checks: fact.checks.clone(),
            lingering: state.lingering.as_ref().map(|_| id.clone()),
            rank: rules.map(|rules| (fact.priority, age(rules))),
        }
    }

    /// The policy under which a gang is decided: its kind's, its queue's, or the configured one.
    /// Pods without a queue name Soroi as their scheduler, so somebody must bind them: policies
    /// that leave that to another scheduler do not apply to them.
    pub(super) fn policy_of(&self, fact: &Gang) -> Policy {
        if let Some(imposed) = fact.policy {
            return imposed;
        }
        let policy =
            self.queue_in_force(fact).and_then(|queue| queue.placement).unwrap_or(self.settings.placement);
        if fact.local_queue.is_none() && !policy.soroi_binds() { Policy::Unified } else { policy }
    }

    /// The ClusterQueue whose rules are a gang's: what was admitted stays under those of the queue that admitted it.
    fn queue_in_force(&self, fact: &Gang) -> Option<&crate::event::ClusterQueue> {
        let admitted = fact.admitted.as_ref().map(|held| &held.cluster_queue);
        let name = admitted.or_else(|| self.local_queue_of(fact).map(|door| &door.cluster_queue))?;
        self.quotas.kueue.queue(name)
    }

    /// How places of a gang are chosen: as its queue says, or as configured.
    pub(super) fn packing_of(&self, fact: &Gang) -> Packing {
        self.queue_in_force(fact).and_then(|queue| queue.packing).unwrap_or(self.settings.packing)
    }

    pub(super) fn local_queue_of(&self, fact: &Gang) -> Option<&LocalQueue> {
        self.world.local_queues.get(&(fact.namespace.clone(), fact.local_queue.clone()?))
    }

    /// The ClusterQueue that pays for a gang; `None` if it needs none.
    fn cluster_queue_of(&self, fact: &Gang) -> Result<Option<&crate::event::ClusterQueue>, Reason> {
        let Some(name) = &fact.local_queue else { return Ok(None) };
        let problem = |problem| Err(Reason::Queue(problem));
        let Some(door) = self.local_queue_of(fact) else {
            return problem(QueueProblem::LocalQueueMissing(name.clone()));
        };
        if door.stop != StopPolicy::None {
            return problem(QueueProblem::LocalQueueStopped(name.clone()));
        }
        let Some(queue) = self.quotas.kueue.queue(&door.cluster_queue) else {
            return problem(QueueProblem::ClusterQueueMissing(door.cluster_queue.clone()));
        };
        if let Some(why) = self.inactive.get(&queue.name) {
            return problem(QueueProblem::ClusterQueueInactive(queue.name.clone(), why.clone()));
        }
        let labels = self.world.namespaces.get(&fact.namespace);
        match (&queue.namespace_selector, labels) {
            (Some(selector), Some(labels)) if selects(selector, labels) => Ok(Some(queue)),
            // A namespace that is not known yet may have any labels; the one that selects all
            // needs none.
            (Some(selector), None) if selector.is_empty() => Ok(Some(queue)),
            _ => Err(Reason::NamespaceMismatch),
        }
    }

    /// The ClusterQueues that cannot admit, and why.
    pub(crate) fn inactive_cluster_queues(&self) -> std::collections::BTreeMap<Name, QueueInactive> {
        let tree = &self.quotas.kueue;
        let named = |queue: &crate::event::ClusterQueue| {
            self.why_inactive(tree, queue).map(|why| (queue.name.clone(), why))
        };
        tree.queues().filter_map(named).collect()
    }

    /// In Kueue's order (0.18, `clusterqueue.inactiveReason`): terminating, stopped, flavors,
    /// checks, topologies; cycles of cohorts last. What cannot be understood comes before what is missing:
    /// it may be the reason for that.
    fn why_inactive(&self, tree: &kueue::Tree, queue: &crate::event::ClusterQueue) -> Option<QueueInactive> {
        if queue.inactive == Some(QueueInactive::Terminating) {
            return queue.inactive.clone();
        }
        if queue.stop != StopPolicy::None {
            return Some(QueueInactive::Stopped);
        }
        if let Some(invalid @ QueueInactive::Invalid(_)) = &queue.inactive {
            return Some(invalid.clone());
        }
        let flavors = || queue.groups.iter().flat_map(|group| &group.flavors).map(|flavor| &flavor.flavor);
        let missing: Vec<Name> =
            flavors().filter(|name| !self.world.flavors.contains_key(*name)).cloned().collect();
        if !missing.is_empty() {
            return Some(QueueInactive::FlavorNotFound(missing));
        }
        if queue.inactive.is_some() {
            return queue.inactive.clone();
        }
        let topologies = flavors().filter_map(|name| self.world.flavors.get(name)?.topology.as_ref());
        if let Some(name) = topologies.into_iter().find(|name| !self.world.topologies.contains_key(*name)) {
            return Some(QueueInactive::TopologyNotFound(name.clone()));
        }
        tree.cycle(&queue.name).map(QueueInactive::CohortCycle)
    }

    /// The volcano priority of a line, for the order of heads: larger first.
    pub(super) fn line_priority(&self, line: &LineKey) -> Reverse<i32> {
        match line {
            LineKey::VolcanoQueue(name) => {
                Reverse(self.quotas.volcano.queue(name).map_or(0, |queue| queue.priority))
            }
            _ => Reverse(0),
        }
    }
}
