//! Why there is no answer: what each flavor says to each pod set.
//!
//! As Kueue does, pod sets are taken in order, each on top of what the earlier ones would take of
//! the first flavor that does for them, or that is only short now; a pod set for which there is
//! none ends the list. A flavor with quota is asked for places.

use std::collections::{BTreeMap, BTreeSet};

use super::super::assign::{FlavorOption, options, totals, uncovered};
use super::super::fungible::{Grade, Means};
use super::{Flavors, Search, TRIES_MAX, topology_of};
use crate::place::place;
use crate::reason::{FlavorProblem, PlaceProblem, Reason};

impl Search<'_> {
    pub(super) fn why(&mut self) -> Reason {
        let mut problems: BTreeMap<usize, Vec<FlavorProblem>> = BTreeMap::new();
        let mut places: BTreeMap<usize, PlaceProblem> = BTreeMap::new();
        let mut chosen: Vec<Flavors> = Vec::new();
        for at in 0..self.start.sets.len() {
            let (flavors, refused) = self.first_choice(at, &chosen);
            let stop = flavors.is_none();
            problems.insert(at, refused);
            let flavors = flavors.unwrap_or_default();
            if !stop
                && flavors.is_empty()
                && let Some(problem) = self.alone_problem(at, &flavors)
            {
                let problem = self.measured(at, &flavors, problem);
                places.insert(at, problem);
            }
            chosen.push(flavors);
            if stop {
                break;
            }
        }
        problems.retain(|_, problems| !problems.is_empty());
        if problems.is_empty() && places.is_empty() {
            self.together(&chosen, &mut problems, &mut places);
        }
        let name = |at: usize| self.start.sets[at].name.clone();
        if places.is_empty() || !problems.is_empty() {
            Reason::NoFlavor(problems.into_iter().map(|(at, problems)| (name(at), problems)).collect())
        } else {
            Reason::NoPlace(places.into_iter().map(|(at, problem)| (name(at), problem)).collect())
        }
    }

    /// The flavors that a pod set would take, whether they are short or not, and what is wrong
    /// with any. `None`: there are none.
    pub(super) fn first_choice(
        &mut self,
        at: usize,
        chosen: &[Flavors],
    ) -> (Option<Flavors>, Vec<FlavorProblem>) {
        let Some(ground) = self.ground else { return (Some(Flavors::new()), Vec::new()) };
        let set = &self.start.sets[at];
        let missing = uncovered(ground, &totals(set, self.counts[at], Some(ground.queue)));
        if !missing.is_empty() {
            return (None, missing);
        }
        let (mut flavors, mut problems, mut others) = (Some(Flavors::new()), BTreeMap::new(), Vec::new());
        let taken = self.taken(chosen);
        for (group, spec) in ground.queue.groups.iter().enumerate() {
            let asked = self.asked_of(group, at);
            if asked.is_empty() {
                continue;
            }
            let options = options(ground, spec, set, &asked, &taken);
            self.findings.blockers.extend(options.short.into_iter().chain(options.enough));
            let short = options.refused.iter().find(|refusal| refusal.short);
            let short = short.map(|refusal| FlavorOption {
                position: refusal.position,
                flavor: refusal.flavor.clone(),
                grade: Grade { means: Means::Fits, borrow: 0 },
                borrow: 0,
            });
            let choice = options.fit.first().cloned().or(short);
            for refusal in options.refused {
                problems.insert((group, refusal.position), refusal.problems);
            }
            match (&mut flavors, choice) {
                (Some(flavors), Some(choice)) => {
                    flavors.extend(asked.keys().map(|resource| (resource.clone(), choice.clone())));
                }
                _ => flavors = None,
            }
            others.push((group, asked, options.fit));
        }
        if let Some(flavors) = &flavors {
            let served: BTreeSet<usize> =
                others.iter().filter(|(.., fit)| !fit.is_empty()).map(|(group, ..)| *group).collect();
            self.ask_for_places(at, flavors, others, &mut problems);
            // Where a flavor does, nobody asks what is wrong with the others.
            let lacking = |problem: &FlavorProblem| matches!(problem, FlavorProblem::NoPlace { .. });
            let placeless: BTreeSet<usize> = problems
                .iter()
                .filter(|(_, all)| all.iter().any(lacking))
                .map(|((group, _), _)| *group)
                .collect();
            problems.retain(|(group, _), _| !served.contains(group) || placeless.contains(group));
        }
        (flavors, problems.into_values().flatten().collect())
    }

    /// Adds what flavors with quota lack in places: those of the group that says where the pods
    /// go, with the first choice in all others.
    fn ask_for_places(
        &mut self,
        at: usize,
        first: &Flavors,
        groups: Vec<(usize, BTreeMap<crate::event::Name, crate::quota::Sum>, Vec<FlavorOption>)>,
        problems: &mut BTreeMap<(usize, usize), Vec<FlavorProblem>>,
    ) {
        let in_topology =
            |fit: &[FlavorOption]| fit.iter().any(|o| topology_of(self.world, &o.flavor).is_some());
        let deciding = groups.iter().position(|(_, _, fit)| in_topology(fit)).unwrap_or(0);
        let Some((group, asked, fit)) = groups.into_iter().nth(deciding) else { return };
        for option in fit {
            let mut flavors = first.clone();
            flavors.extend(asked.keys().map(|resource| (resource.clone(), option.clone())));
            if let Some(problem) = self.alone_problem(at, &flavors) {
                let problem = self.measured(at, &flavors, problem);
                let problem = FlavorProblem::NoPlace { flavor: option.flavor, problem };
                problems.insert((group, option.position), vec![problem]);
            }
        }
    }

    /// Each pod set would find places alone; together they do not.
    fn together(
        &mut self,
        chosen: &[Flavors],
        problems: &mut BTreeMap<usize, Vec<FlavorProblem>>,
        places: &mut BTreeMap<usize, PlaceProblem>,
    ) {
        let placed: Vec<usize> = (0..chosen.len()).filter(|at| self.wants_places(&chosen[*at])).collect();
        let request = self.joint_request(&placed, chosen);
        for (name, mut problem) in place(self.cluster, &request).err().unwrap_or_default() {
            problem.unproven |= self.findings.tries >= TRIES_MAX;
            let at = self.start.sets.iter().position(|set| set.name == name).unwrap_or(0);
            let problem = self.measured(at, &chosen[at], problem);
            match chosen[at].values().next() {
                None => _ = places.insert(at, problem),
                Some(option) => {
                    let flavor = option.flavor.clone();
                    problems.entry(at).or_default().push(FlavorProblem::NoPlace { flavor, problem });
                }
            }
        }
    }

    /// The problem with how many would fit if nothing else were there.
    fn measured(&mut self, at: usize, flavors: &Flavors, mut problem: PlaceProblem) -> PlaceProblem {
        let request = self.request(at, flavors);
        problem.fitting_if_empty = self.ceilings.of(self.cluster, &request);
        problem
    }
}
