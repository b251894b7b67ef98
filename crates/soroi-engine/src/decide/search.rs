//! One complete answer, or why there is none: flavors that quota allows, and places for the whole
//! gang on them. The first assignment of flavors (in the order that the queue's fungibility gives)
//! for which all places exist wins; a flavor with quota and without places is passed over.

mod survey;
mod walk;
mod why;

pub(super) use walk::{Tried, Walked};

use std::collections::{BTreeMap, BTreeSet};

use super::assign::{FlavorOption, Ground, options, totals};
use super::ceiling::Ceilings;
use super::fungible::{Means, in_order};
use super::strict::Unmet;
use super::victims::{Places, Preempting};
use super::wanted::{Start, StartSet};
use crate::cluster::Cluster;
use crate::decision::TopologyPlaces;
use crate::event::{Amount, Flavor, GangId, Labels, Name, Policy, ResourceGroup, Toleration};
use crate::fit::Ask;
use crate::minima::Minima;
use crate::place::{PlaceRequest, PodSetRequest, place};
use crate::preempt::{Candidate, Cause, Choice, Everywhere, Preemptor, victims};
use crate::queue::Blocker;
use crate::quota::kueue::{self, Tree, Trial};
use crate::quota::{FlavorResource, Sum, saturate};
use crate::reason::{PlaceProblem, Reason};
use crate::world::World;

/// Assignments of flavors for which places are searched for one gang. Each costs a placement, and
/// all but one of many are alike; gangs with more pod sets and flavors than that are told that the
/// search was not complete.
const TRIES_MAX: u32 = 256;

/// What a gang gets.
#[derive(Clone, Debug, Default)]
pub(super) struct Answer {
    /// One entry per pod set.
    pub(super) sets: Vec<SetAnswer>,
    /// How high in the cohorts it borrows.
    pub(super) borrow: u32,
    /// Who has to leave first, and why they may be told to.
    pub(super) victims: Vec<(GangId, Cause)>,
    /// Then, why it cannot start without.
    pub(super) without_victims: Option<Reason>,
}

impl Answer {
    /// What it takes of the quota.
    pub(super) fn usage(&self) -> BTreeMap<FlavorResource, Sum> {
        let mut usage = BTreeMap::new();
        for set in &self.sets {
            for (resource, amount) in &set.usage {
                let Some(flavor) = set.flavors.get(resource) else { continue };
                let what = FlavorResource { flavor: flavor.clone(), resource: resource.clone() };
                *usage.entry(what).or_default() += Sum::from(*amount);
            }
        }
        usage
    }
}

/// What one pod set gets.
#[derive(Clone, Debug, Default)]
pub(super) struct SetAnswer {
    pub(super) count: u32,
    /// By resource.
    pub(super) flavors: BTreeMap<Name, Name>,
    /// By resource, for all `count` pods.
    pub(super) usage: BTreeMap<Name, Amount>,
    pub(super) nodes: Vec<(Name, u32)>,
    pub(super) topology: Option<TopologyPlaces>,
}

/// Why there is no answer, and what would have to change before it is worth asking again.
#[derive(Clone, Debug)]
pub(super) struct NoAnswer {
    pub(super) reason: Reason,
    pub(super) blockers: BTreeSet<Blocker>,
    pub(super) shortages: BTreeSet<PlaceRequest>,
    /// What it would take if those could leave who are in its way, where quota alone counts.
    pub(super) unmet: Option<Box<Unmet>>,
}

/// The flavors of one pod set, by resource.
type Flavors = BTreeMap<Name, FlavorOption>;

/// No assignment below helps: the choice for this pod set, or for one before it, must change.
struct Stuck(usize);

/// What a search looks at.
pub(super) struct Search<'a> {
    pub(super) world: &'a World,
    pub(super) cluster: &'a mut Cluster,
    pub(super) ceilings: &'a mut Ceilings,
    /// `None`: nobody charges quota for flavors, so there are none to choose from.
    pub(super) ground: Option<Ground<'a>>,
    pub(super) start: &'a Start,
    /// Per pod set, how many pods.
    pub(super) counts: Vec<u32>,
    /// How many of them must find places; `None`: all.
    pub(super) minima: Option<&'a Minima>,
    /// Whether places are asked for at all, or only quota.
    pub(super) placing: bool,
    /// Who may be evicted for it, if that is asked.
    pub(super) preempting: Option<Preempting<'a>>,
    pub(super) findings: Findings,
}

/// What was found out on the way.
#[derive(Default)]
pub(super) struct Findings {
    blockers: BTreeSet<Blocker>,
    shortages: BTreeSet<PlaceRequest>,
    /// By pod set and flavors: what is in the way although it is alone.
    alone: BTreeMap<(usize, Vec<Name>), Option<PlaceProblem>>,
    tries: u32,
    pub(super) unmet: Option<Box<Unmet>>,
}

impl<'a> Search<'a> {
    /// For all pods of a gang, with places, and without anybody leaving.
    pub(super) fn of(
        world: &'a World,
        tree: &'a Tree,
        (cluster, ceilings): (&'a mut Cluster, &'a mut Ceilings),
        start: &'a Start,
        lenient: bool,
    ) -> Self {
        let queue = start.cluster_queue.as_ref().and_then(|name| tree.queue(name));
        Self {
            world,
            cluster,
            ceilings,
            ground: queue.map(|queue| Ground { world, tree, queue, lenient }),
            start,
            counts: start.sets.iter().map(|set| set.count).collect(),
            minima: None,
            placing: true,
            preempting: None,
            findings: Findings::default(),
        }
    }
}

impl Search<'_> {
    pub(super) fn run(mut self) -> Result<Answer, NoAnswer> {
        match self.next_set(&mut Vec::new()) {
            Ok(answer) => Ok(answer),
            Err(Stuck(_)) if !self.placing => {
                Err(NoAnswer { blockers: self.findings.blockers, ..NoAnswer::without_reason() })
            }
            Err(Stuck(_)) => {
                let reason = self.why();
                let Findings { blockers, shortages, unmet, .. } = self.findings;
                Err(NoAnswer { reason, blockers, shortages, unmet })
            }
        }
    }

    /// The first assignment for which victims free quota and places, in the order of flavors: with those that
    /// only lack places before those that lack quota.
    pub(super) fn run_for_victims(mut self) -> Option<Answer> {
        self.next_set(&mut Vec::new()).ok()
    }

    /// Chooses flavors for the pod sets from `chosen.len()` on; places for all once they are
    /// chosen.
    fn next_set(&mut self, chosen: &mut Vec<Flavors>) -> Result<Answer, Stuck> {
        if chosen.len() == self.start.sets.len() {
            return self.complete(chosen);
        }
        self.next_group(0, Flavors::new(), chosen)
    }

    /// Chooses a flavor of each group from this one on for the pod set at hand.
    fn next_group(
        &mut self,
        group: usize,
        flavors: Flavors,
        chosen: &mut Vec<Flavors>,
    ) -> Result<Answer, Stuck> {
        let at = chosen.len();
        let Some(ground) = self.ground.filter(|ground| group < ground.queue.groups.len()) else {
            if !self.all_covered(at, &flavors) {
                return Err(Stuck(0));
            }
            chosen.push(flavors);
            let answer = self.next_set(chosen);
            chosen.pop();
            return answer;
        };
        let asked = self.asked_of(group, at);
        if asked.is_empty() {
            return self.next_group(group + 1, flavors, chosen);
        }
        let spec = &ground.queue.groups[group];
        let taken = self.taken(chosen);
        let mut options = options(ground, spec, &self.start.sets[at], &asked, &taken);
        if let Some(preempting) = self.preempting {
            options.fit.extend(preempting.reclaimable(ground, &options.refused, &asked, &taken));
            options.fit.sort_by_key(|option| option.position);
            options.fit = in_order(options.fit, ground.queue.fungibility, |option| option.grade);
        }
        self.findings.blockers.extend(options.short);
        let settled = self.flavor_of_partner(spec, chosen);
        for option in options.fit {
            if settled.as_ref().is_some_and(|flavor| *flavor != option.flavor) {
                continue;
            }
            let mut flavors = flavors.clone();
            flavors.extend(asked.keys().map(|resource| (resource.clone(), option.clone())));
            match self.next_group(group + 1, flavors, chosen) {
                Err(Stuck(level)) if level >= at && self.findings.tries < TRIES_MAX => {}
                answer => return answer,
            }
        }
        // Another choice for an earlier pod set may leave more.
        Err(Stuck(at.saturating_sub(1)))
    }

    /// The flavor that an earlier pod set has of this group of resources, with which the one at hand
    /// shares a domain, and therefore the flavor (Kueue, pod set groups).
    fn flavor_of_partner(&self, spec: &ResourceGroup, chosen: &[Flavors]) -> Option<Name> {
        let group = self.start.sets[chosen.len()].topology.group.as_ref()?;
        let partners = self.start.sets.iter().zip(chosen);
        let partners = partners.filter(|(set, _)| set.topology.group.as_ref() == Some(group));
        let mut flavors = partners.flat_map(|(_, flavors)| flavors);
        let (_, option) = flavors.find(|(resource, _)| spec.covered.contains(resource))?;
        Some(option.flavor.clone())
    }

    /// What a pod set asks of the resources of a group.
    fn asked_of(&self, group: usize, at: usize) -> BTreeMap<Name, Sum> {
        let queue = self.ground.map(|ground| ground.queue);
        let mut asked = totals(&self.start.sets[at], self.counts[at], queue);
        let covered = queue.map(|queue| &queue.groups[group].covered);
        asked.retain(|resource, _| covered.is_some_and(|covered| covered.contains(resource)));
        asked
    }

    /// Whether every resource of the pod set that needs a flavor has one.
    fn all_covered(&self, at: usize, flavors: &Flavors) -> bool {
        let Some(ground) = self.ground.filter(|ground| !ground.lenient) else { return true };
        let asked = totals(&self.start.sets[at], self.counts[at], Some(ground.queue));
        asked.keys().all(|resource| flavors.contains_key(resource))
    }

    /// What the pod sets that have their flavors take.
    fn taken(&self, chosen: &[Flavors]) -> BTreeMap<FlavorResource, Sum> {
        let mut taken = BTreeMap::new();
        let queue = self.ground.map(|ground| ground.queue);
        for (at, flavors) in chosen.iter().enumerate() {
            for (resource, sum) in totals(&self.start.sets[at], self.counts[at], queue) {
                let Some(option) = flavors.get(&resource) else { continue };
                *taken.entry(FlavorResource { flavor: option.flavor.clone(), resource }).or_default() += sum;
            }
        }
        taken
    }

    /// All flavors are chosen: are there places for all pods together?
    fn complete(&mut self, chosen: &[Flavors]) -> Result<Answer, Stuck> {
        let (Some(preempting), Some(ground)) = (self.preempting, self.ground) else {
            return self.complete_at_once(chosen);
        };
        let fits = |option: &FlavorOption| option.grade.means == Means::Fits;
        if preempting.early
            && chosen.iter().flat_map(BTreeMap::values).all(fits)
            && let Ok(answer) = self.complete_at_once(chosen)
        {
            return Ok(answer);
        }
        self.complete_with_victims(preempting, ground, chosen)
    }

    fn complete_at_once(&mut self, chosen: &[Flavors]) -> Result<Answer, Stuck> {
        let placed = self.placed(chosen);
        let mut answer = self.without_places(chosen);
        if placed.is_empty() {
            return Ok(answer);
        }
        if placed.len() > 1 && self.minima.is_none() {
            // Cheaper than the whole, and it says whose choice is to blame.
            for at in &placed {
                if self.alone_problem(*at, &chosen[*at]).is_some() {
                    return Err(Stuck(*at));
                }
            }
        }
        if let Some(at) = self.torn_apart(&placed, chosen) {
            return Err(Stuck(at));
        }
        self.findings.tries += 1;
        let request = self.joint_request(&placed, chosen);
        let Ok(placement) = place(self.cluster, &request) else {
            self.findings.shortages.insert(request);
            return Err(Stuck(chosen.len() - 1));
        };
        for (at, places) in placed.into_iter().zip(placement.pod_sets) {
            let count = places.nodes.iter().map(|(_, count)| count).sum();
            let paid = self.paid(at, &chosen[at], count);
            answer.sets[at] = SetAnswer { nodes: places.nodes, topology: places.topology, ..paid };
        }
        Ok(answer)
    }

    /// A pod set that is to share a domain with an earlier one, and whose flavors lie in another
    /// topology.
    fn torn_apart(&self, placed: &[usize], chosen: &[Flavors]) -> Option<usize> {
        let topology =
            |at: usize| chosen[at].values().find_map(|option| topology_of(self.world, &option.flavor));
        let group = |at: usize| self.start.sets[at].topology.group.as_ref();
        placed.iter().copied().find(|at| {
            let mut earlier = placed.iter().copied().take_while(|other| other < at);
            group(*at).is_some()
                && earlier.any(|other| group(other) == group(*at) && topology(other) != topology(*at))
        })
    }

    /// What keeps a pod set from finding places when nobody else of the gang is there.
    fn alone_problem(&mut self, at: usize, flavors: &Flavors) -> Option<PlaceProblem> {
        if !self.wants_places(flavors) {
            return None;
        }
        let names = flavors.values().map(|option| option.flavor.clone()).collect();
        if let Some(known) = self.findings.alone.get(&(at, names)) {
            return known.clone();
        }
        let request = PlaceRequest { pod_sets: vec![self.request(at, flavors)], ..PlaceRequest::default() };
        let problem = place(self.cluster, &request).err().and_then(|problems| problems.into_iter().next());
        let problem = problem.map(|(_, problem)| problem);
        if problem.is_some() {
            self.findings.shortages.insert(request);
        }
        let names = flavors.values().map(|option| option.flavor.clone()).collect();
        self.findings.alone.insert((at, names), problem.clone());
        problem
    }

    fn without_places(&self, chosen: &[Flavors]) -> Answer {
        let sets = chosen.iter().enumerate().map(|(at, flavors)| self.paid(at, flavors, self.counts[at]));
        let borrow = chosen.iter().flat_map(|flavors| flavors.values()).map(|option| option.borrow).max();
        let (borrow, victims) = (borrow.unwrap_or(0), Vec::new());
        Answer { sets: sets.collect(), borrow, victims, without_victims: None }
    }

    /// All flavors are chosen: who has to leave so that there are quota and places?
    fn complete_with_victims(
        &mut self,
        preempting: Preempting<'_>,
        ground: Ground<'_>,
        chosen: &[Flavors],
    ) -> Result<Answer, Stuck> {
        let stuck = Stuck(chosen.len().saturating_sub(1));
        self.findings.tries += 1;
        let usage = self.taken(chosen);
        let lacks = |(what, sum): (&FlavorResource, &Sum)| {
            (*sum > ground.tree.available(&ground.queue.name, what)).then(|| what.clone())
        };
        let mut short: BTreeSet<FlavorResource> = usage.iter().filter_map(lacks).collect();
        let only_places = short.is_empty();
        if only_places {
            short = usage.keys().cloned().collect();
        }
        let preemptor = Preemptor {
            queue: &ground.queue.name,
            rules: preempting.rules,
            priority: preempting.priority,
            queued_at: preempting.queued_at,
            usage: &usage,
            short: &short,
            evicted_by: preempting.evicted_by,
        };
        let placed = self.placed(chosen);
        let mut answer = self.without_places(chosen);
        let (tree, candidates, fair) = (ground.tree, preempting.candidates, preempting.fair);
        if placed.is_empty() {
            if only_places || waits_only(tree, &preemptor) {
                return Err(stuck);
            }
            let found = victims(tree, &preemptor, candidates, Choice::Kueues, fair, &mut Everywhere);
            answer.victims = named(candidates, &found.ok_or(stuck)?);
            return Ok(answer);
        }
        let request = self.joint_request(&placed, chosen);
        let mut places = Places::new(self.cluster, self.world, preempting, &request);
        if waits_only(tree, &preemptor) && places.find(&[]).is_some() {
            // All that it needs is promised to nobody and will be free: nobody else has to go.
            return Err(stuck);
        }
        let Some(found) = victims(tree, &preemptor, candidates, Choice::Cheapest, fair, &mut places) else {
            return Err(stuck);
        };
        let gone: Vec<usize> = found.iter().map(|(at, _)| *at).collect();
        let placement = places.find(&gone).expect("victims are chosen so that there are places");
        answer.victims = named(candidates, &found);
        for (at, places) in placed.into_iter().zip(placement.pod_sets) {
            let set = &mut answer.sets[at];
            (set.nodes, set.topology) = (places.nodes, places.topology);
        }
        Ok(answer)
    }

    fn paid(&self, at: usize, flavors: &Flavors, count: u32) -> SetAnswer {
        let usage = totals(&self.start.sets[at], count, self.ground.map(|ground| ground.queue));
        SetAnswer {
            count,
            flavors: flavors
                .iter()
                .map(|(resource, option)| (resource.clone(), option.flavor.clone()))
                .collect(),
            usage: usage.into_iter().map(|(resource, sum)| (resource, saturate(sum))).collect(),
            ..SetAnswer::default()
        }
    }

    fn wants_places(&self, flavors: &Flavors) -> bool {
        let in_topology = || flavors.values().any(|option| topology_of(self.world, &option.flavor).is_some());
        match self.start.policy {
            _ if !self.placing => false,
            Policy::Unified => !self.is_checked(flavors),
            Policy::TopologyOnly => in_topology(),
            Policy::AfterAdmission | Policy::QuotaOnly => false,
        }
    }

    /// Whether admission checks have to be passed for what a pod set gets.
    fn is_checked(&self, flavors: &Flavors) -> bool {
        self.start.is_checked_on(flavors.values().map(|option| &option.flavor))
    }

    /// The pod sets that are placed now. Where one of them has checks to pass, the gang gets quota alone: the
    /// places of the others would wait in vain.
    fn placed(&self, chosen: &[Flavors]) -> Vec<usize> {
        if self.start.policy == Policy::Unified && chosen.iter().any(|flavors| self.is_checked(flavors)) {
            return Vec::new();
        }
        (0..chosen.len()).filter(|at| self.wants_places(&chosen[*at])).collect()
    }

    fn joint_request(&self, placed: &[usize], chosen: &[Flavors]) -> PlaceRequest {
        let pod_sets = placed.iter().map(|at| self.request(*at, &chosen[*at])).collect();
        let packing = self.start.packing;
        PlaceRequest { pod_sets, minima: self.minima.cloned(), packing, ..PlaceRequest::default() }
    }

    fn request(&self, at: usize, flavors: &Flavors) -> PodSetRequest {
        let set: &StartSet = &self.start.sets[at];
        let names: BTreeSet<&Name> = flavors.values().map(|option| &option.flavor).collect();
        let terms = Terms::of(self.world, names.into_iter());
        PodSetRequest {
            name: set.name.clone(),
            role: set.role.clone(),
            count: self.counts[at],
            ask: Ask {
                shape: set.placed.clone(),
                node_labels: terms.node_labels,
                tolerations: terms.tolerations,
            },
            who: set.who.clone(),
            topology: terms.topology,
            request: set.topology.clone(),
            group: set.topology.group.clone(),
            bound: Vec::new(),
            pinned: Vec::new(),
        }
    }
}

impl NoAnswer {
    /// This reason, and whatever would end another one as well.
    pub(super) fn and(mut self, other: Self) -> Self {
        self.blockers.extend(other.blockers);
        self.shortages.extend(other.shortages);
        if other.reason.is_unproven() {
            self.reason.cut_short();
        }
        self
    }

    /// For questions to which only yes or no matters.
    fn without_reason() -> Self {
        Self::of(Reason::NoPlace(Vec::new()))
    }
}

/// Whether there is quota when those have left who leave already.
fn waits_only(tree: &kueue::Tree, preemptor: &Preemptor<'_>) -> bool {
    let trial = Trial::new(tree, preemptor.queue, [], preemptor.usage.keys().cloned());
    trial.is_some_and(|trial| {
        let queue = trial.queue(preemptor.queue);
        queue.is_some_and(|queue| trial.fits(queue, &trial.take(preemptor.usage.iter())))
    })
}

fn named(candidates: &[Candidate<'_>], victims: &[(usize, Cause)]) -> Vec<(GangId, Cause)> {
    victims.iter().map(|(at, cause)| (candidates[*at].id.clone(), *cause)).collect()
}

/// What flavors add to the pods that run on them.
#[derive(Clone, Debug, Default)]
pub(super) struct Terms {
    pub(super) node_labels: Labels,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) topology: Option<Name>,
}

impl Terms {
    pub(super) fn of<'n>(world: &World, flavors: impl Iterator<Item = &'n Name>) -> Self {
        let mut terms = Self::default();
        for flavor in flavors.filter_map(|name| world.flavors.get(name)) {
            let Flavor { node_labels, tolerations, topology, .. } = flavor;
            terms.node_labels.extend(node_labels.iter().map(|(key, value)| (key.clone(), value.clone())));
            terms.tolerations.extend(tolerations.iter().cloned());
            terms.topology = terms.topology.or_else(|| topology.clone());
        }
        terms.tolerations.sort();
        terms.tolerations.dedup();
        terms
    }
}

fn topology_of<'w>(world: &'w World, flavor: &Name) -> Option<&'w Name> {
    world.flavors.get(flavor)?.topology.as_ref()
}
