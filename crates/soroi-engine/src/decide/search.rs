//! One complete answer, or why there is none: flavors that quota allows, and places for the whole
//! gang on them. The first assignment of flavors (in the order that the queue's fungibility gives)
//! for which all places exist wins; a flavor with quota and without places is passed over.

use std::collections::{BTreeMap, BTreeSet};

use super::assign::{FlavorOption, Ground, Refusal, options, totals, uncovered};
use super::wanted::{Start, StartSet};
use crate::cluster::Cluster;
use crate::decision::TopologyPlaces;
use crate::event::{Amount, Flavor, Labels, Name, Policy, Toleration};
use crate::fit::Ask;
use crate::place::{PlaceRequest, PodSetRequest, place};
use crate::queue::Blocker;
use crate::quota::{FlavorResource, Sum, saturate};
use crate::reason::{FlavorProblem, PlaceProblem, Reason};
use crate::world::World;

/// Assignments of flavors for which places are searched for one gang. Each costs a placement, and
/// all but one of many are alike; gangs with more pod sets and flavors than that are told that the
/// search was not complete.
const TRIES_MAX: u32 = 256;

/// What a gang gets.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// One entry per pod set.
    pub(super) sets: Vec<SetAnswer>,
    /// How high in the cohorts it borrows.
    pub(super) borrow: u32,
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
}

/// The flavors of one pod set: by resource, and how high it borrows for them.
type Flavors = BTreeMap<Name, FlavorOption>;

/// A search under way.
pub(super) struct Search<'a> {
    pub(super) world: &'a World,
    pub(super) cluster: &'a mut Cluster,
    /// `None`: nobody charges quota for flavors, so there are none to choose from.
    pub(super) ground: Option<Ground<'a>>,
    pub(super) start: &'a Start,
    /// Per pod set, how many pods.
    pub(super) counts: Vec<u32>,
    /// How many of them must find places; `None`: all.
    pub(super) min_members: Option<u32>,
    /// Whether places are asked for at all, or only quota.
    pub(super) placing: bool,
}

/// What was found out on the way.
#[derive(Default)]
struct Findings {
    /// Per pod set, by group and flavor: the first problem met there.
    flavor_problems: BTreeMap<usize, BTreeMap<(usize, usize), FlavorProblem>>,
    place_problems: BTreeMap<usize, PlaceProblem>,
    blockers: BTreeSet<Blocker>,
    shortages: BTreeSet<PlaceRequest>,
    /// Pod set with its flavors: whether it finds places when it is alone.
    alone: BTreeMap<(usize, Vec<Name>), bool>,
    tries: u32,
}

impl Search<'_> {
    pub(super) fn run(&mut self) -> Result<Answer, NoAnswer> {
        let mut findings = Findings::default();
        if let Some(ground) = self.ground {
            for (at, set) in self.start.sets.iter().enumerate() {
                let asked = totals(set, self.counts[at], Some(ground.queue));
                let missing = uncovered(ground.queue, &asked).into_iter().enumerate();
                let missing: BTreeMap<_, _> = missing.map(|(ix, problem)| ((0, ix), problem)).collect();
                if !missing.is_empty() {
                    findings.flavor_problems.insert(at, missing);
                }
            }
            if !findings.flavor_problems.is_empty() {
                return Err(self.give_up(findings));
            }
        }
        match self.next_set(&mut Vec::new(), &mut findings) {
            Some(answer) => Ok(answer),
            None => Err(self.give_up(findings)),
        }
    }

    /// Chooses flavors for the pod sets from `chosen.len()` on; places for all once they are
    /// chosen.
    fn next_set(&mut self, chosen: &mut Vec<Flavors>, findings: &mut Findings) -> Option<Answer> {
        if chosen.len() == self.start.sets.len() {
            return self.complete(chosen, findings);
        }
        self.next_group(0, Flavors::new(), chosen, findings)
    }

    /// Chooses a flavor of each group from this one on for the pod set at hand.
    fn next_group(
        &mut self,
        group: usize,
        flavors: Flavors,
        chosen: &mut Vec<Flavors>,
        findings: &mut Findings,
    ) -> Option<Answer> {
        let at = chosen.len();
        let ground = self.ground.filter(|ground| group < ground.queue.groups.len());
        let Some(ground) = ground else {
            if !self.alone_fits(at, &flavors, findings) {
                return None;
            }
            chosen.push(flavors);
            let answer = self.next_set(chosen, findings);
            chosen.pop();
            return answer;
        };
        let spec = &ground.queue.groups[group];
        let set = &self.start.sets[at];
        let mut asked = totals(set, self.counts[at], Some(ground.queue));
        asked.retain(|resource, _| spec.covered.contains(resource));
        if asked.is_empty() {
            return self.next_group(group + 1, flavors, chosen, findings);
        }
        let (fit, refused) = options(ground, spec, set, &asked, &self.taken(chosen));
        for Refusal { position, problem, blockers } in refused {
            findings.flavor_problems.entry(at).or_default().entry((group, position)).or_insert(problem);
            findings.blockers.extend(blockers);
        }
        for option in fit {
            let mut flavors = flavors.clone();
            flavors.extend(asked.keys().map(|resource| (resource.clone(), option.clone())));
            if let Some(answer) = self.next_group(group + 1, flavors, chosen, findings) {
                return Some(answer);
            }
            if findings.tries >= TRIES_MAX {
                return None;
            }
        }
        None
    }

    /// What the pod sets that have their flavors take.
    fn taken(&self, chosen: &[Flavors]) -> BTreeMap<FlavorResource, Sum> {
        let mut taken = BTreeMap::new();
        for (at, flavors) in chosen.iter().enumerate() {
            let queue = self.ground.map(|ground| ground.queue);
            for (resource, sum) in totals(&self.start.sets[at], self.counts[at], queue) {
                let Some(option) = flavors.get(&resource) else { continue };
                *taken.entry(FlavorResource { flavor: option.flavor.clone(), resource }).or_default() += sum;
            }
        }
        taken
    }

    /// Whether a pod set finds places when nobody else of the gang is there: if not, no choice for
    /// the others helps. Not asked where fewer than all may do.
    fn alone_fits(&mut self, at: usize, flavors: &Flavors, findings: &mut Findings) -> bool {
        if !self.wants_places(flavors) || self.start.sets.len() == 1 || self.min_members.is_some() {
            return true;
        }
        let names = flavors.values().map(|option| option.flavor.clone()).collect();
        if let Some(known) = findings.alone.get(&(at, names)) {
            return *known;
        }
        let request = PlaceRequest { pod_sets: vec![self.request(at, flavors)], ..PlaceRequest::default() };
        let answer = place(self.cluster, &request);
        let fits = answer.is_ok();
        if let Err(problems) = answer {
            problems.into_iter().for_each(|(_, problem)| self.note(at, flavors, problem, findings));
            findings.shortages.insert(request);
        }
        let names = flavors.values().map(|option| option.flavor.clone()).collect();
        findings.alone.insert((at, names), fits);
        fits
    }

    /// All flavors are chosen: are there places for all pods together?
    fn complete(&mut self, chosen: &[Flavors], findings: &mut Findings) -> Option<Answer> {
        findings.tries += 1;
        let placed: Vec<usize> = (0..chosen.len()).filter(|at| self.wants_places(&chosen[*at])).collect();
        let mut answer = self.without_places(chosen);
        if placed.is_empty() {
            return Some(answer);
        }
        let pod_sets = placed.iter().map(|at| self.request(*at, &chosen[*at])).collect();
        let request = PlaceRequest { pod_sets, min_members: self.min_members, excluded: Vec::new() };
        match place(self.cluster, &request) {
            Ok(placement) => {
                for (at, places) in placed.into_iter().zip(placement.pod_sets) {
                    let count = places.nodes.iter().map(|(_, count)| count).sum();
                    answer.sets[at] = SetAnswer {
                        nodes: places.nodes,
                        topology: places.topology,
                        ..self.paid(at, &chosen[at], count)
                    };
                }
                Some(answer)
            }
            Err(problems) => {
                for (name, mut problem) in problems {
                    problem.unproven |= findings.tries >= TRIES_MAX;
                    let at = self.start.sets.iter().position(|set| set.name == name).unwrap_or(0);
                    self.note(at, &chosen[at], problem, findings);
                }
                findings.shortages.insert(request);
                None
            }
        }
    }

    fn without_places(&self, chosen: &[Flavors]) -> Answer {
        let sets = chosen.iter().enumerate().map(|(at, flavors)| self.paid(at, flavors, self.counts[at]));
        let borrow = chosen.iter().flat_map(|flavors| flavors.values()).map(|option| option.borrow).max();
        Answer { sets: sets.collect(), borrow: borrow.unwrap_or(0) }
    }

    fn paid(&self, at: usize, flavors: &Flavors, count: u32) -> SetAnswer {
        let queue = self.ground.map(|ground| ground.queue);
        let usage = totals(&self.start.sets[at], count, queue);
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
            Policy::Unified => true,
            Policy::TopologyOnly => in_topology(),
            Policy::AfterAdmission | Policy::QuotaOnly => false,
        }
    }

    fn request(&self, at: usize, flavors: &Flavors) -> PodSetRequest {
        let set: &StartSet = &self.start.sets[at];
        let names: BTreeSet<&Name> = flavors.values().map(|option| &option.flavor).collect();
        let terms = Terms::of(self.world, names.into_iter());
        PodSetRequest {
            name: set.name.clone(),
            count: self.counts[at],
            ask: Ask {
                shape: set.placed.clone(),
                node_labels: terms.node_labels,
                tolerations: terms.tolerations,
            },
            topology: terms.topology,
            request: set.topology.clone(),
            group: None,
            bound: Vec::new(),
            pinned: Vec::new(),
        }
    }

    fn note(&self, at: usize, flavors: &Flavors, problem: PlaceProblem, findings: &mut Findings) {
        // The flavor that decides where the pods go: that of the topology, else the first.
        let with_topology = flavors.values().find(|option| topology_of(self.world, &option.flavor).is_some());
        let Some(option) = with_topology.or(flavors.values().next()) else {
            findings.place_problems.entry(at).or_insert(problem);
            return;
        };
        let groups = self.ground.map_or(&[][..], |ground| &ground.queue.groups);
        let has =
            |group: &crate::event::ResourceGroup| group.flavors.iter().any(|f| f.flavor == option.flavor);
        let group = groups.iter().position(has).unwrap_or(0);
        let problem = FlavorProblem::NoPlace { flavor: option.flavor.clone(), problem };
        findings.flavor_problems.entry(at).or_default().entry((group, option.position)).or_insert(problem);
    }

    fn give_up(&self, findings: Findings) -> NoAnswer {
        let name = |at: usize| self.start.sets[at].name.clone();
        let reason = if self.ground.is_some() && !findings.flavor_problems.is_empty() {
            let sets = findings.flavor_problems.into_iter();
            Reason::NoFlavor(
                sets.map(|(at, problems)| (name(at), problems.into_values().collect())).collect(),
            )
        } else {
            Reason::NoPlace(
                findings.place_problems.into_iter().map(|(at, problem)| (name(at), problem)).collect(),
            )
        };
        NoAnswer { reason, blockers: findings.blockers, shortages: findings.shortages }
    }
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
