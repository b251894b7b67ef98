//! What do flavors and nodes say to each pod set? In the way in which a reason is found, but of every flavor,
//! and with the numbers that people ask for next.

use std::collections::BTreeMap;

use super::super::assign::{FlavorOption, options, totals};
use super::super::fungible::{Grade, Means};
use super::{Flavors, Search};
use crate::account::{FlavorAccount, PlacesAccount, QuotaAccount, SetAccount};
use crate::event::{Name, ResourceGroup};
use crate::place::survey;
use crate::quota::{FlavorResource, Sum, saturate};
use crate::reason::FlavorProblem;

impl Search<'_> {
    /// Each pod set on top of what the earlier ones would take of the first flavor that does for them.
    pub(in crate::decide) fn survey(&mut self) -> Vec<SetAccount> {
        let mut chosen: Vec<Flavors> = Vec::new();
        let mut accounts = Vec::new();
        for at in 0..self.start.sets.len() {
            let flavors = self.flavors_of(at, &chosen);
            let places = flavors.is_empty().then(|| self.places(at, &Flavors::new())).flatten();
            let set = &self.start.sets[at];
            accounts.push(SetAccount {
                name: set.name.clone(),
                count: self.counts[at],
                requests: set.placed.requests.clone(),
                flavors,
                places,
            });
            chosen.push(self.first_choice(at, &chosen).0.unwrap_or_default());
        }
        accounts
    }

    fn flavors_of(&mut self, at: usize, chosen: &[Flavors]) -> Vec<FlavorAccount> {
        let Some(ground) = self.ground else { return Vec::new() };
        let taken = self.taken(chosen);
        let first = self.first_choice(at, chosen).0.unwrap_or_default();
        let mut accounts: Vec<FlavorAccount> = Vec::new();
        for (group, spec) in ground.queue.groups.iter().enumerate() {
            let asked = self.asked_of(group, at);
            if asked.is_empty() {
                continue;
            }
            let answers = options(ground, spec, &self.start.sets[at], &asked, &taken);
            for (position, quotas) in spec.flavors.iter().enumerate() {
                let refused = answers.refused.iter().find(|refusal| refusal.position == position);
                // Too little quota, now or ever, is what the numbers say.
                let is_quota = |problem: &&FlavorProblem| {
                    matches!(problem, FlavorProblem::Short { .. } | FlavorProblem::ExceedsMaximum { .. })
                };
                let problems = refused.iter().flat_map(|refusal| &refusal.problems);
                let problem = problems.into_iter().find(|problem| !is_quota(problem)).cloned();
                let option = FlavorOption {
                    position,
                    flavor: quotas.flavor.clone(),
                    grade: Grade { means: Means::Fits, borrow: 0 },
                    borrow: 0,
                };
                let mut flavors = first.clone();
                flavors.extend(asked.keys().map(|resource| (resource.clone(), option.clone())));
                let places = problem.is_none().then(|| self.places(at, &flavors)).flatten();
                let quota = self.quota_of(at, spec, &quotas.flavor, &taken);
                accounts.push(FlavorAccount { flavor: quotas.flavor.clone(), problem, quota, places });
            }
        }
        accounts
    }

    fn quota_of(
        &self,
        at: usize,
        spec: &ResourceGroup,
        flavor: &Name,
        taken: &BTreeMap<FlavorResource, Sum>,
    ) -> Vec<QuotaAccount> {
        let Some(ground) = self.ground else { return Vec::new() };
        let (tree, queue) = (ground.tree, &ground.queue.name);
        let asked = totals(&self.start.sets[at], self.counts[at], Some(ground.queue));
        let quota = |(resource, sum): (Name, Sum)| {
            let what = FlavorResource { flavor: flavor.clone(), resource: resource.clone() };
            let before = taken.get(&what).copied().unwrap_or(0);
            let free = tree.available(queue, &what);
            QuotaAccount {
                asked: saturate(sum),
                nominal: saturate(tree.nominal(queue, &what)),
                used: saturate(tree.used(queue, &what)),
                borrowed: saturate(tree.borrowed(queue, &what)),
                free: saturate((free - before).max(0)),
                short: saturate((before + sum - free).max(0)),
                resource,
            }
        };
        asked.into_iter().filter(|(resource, _)| spec.covered.contains(resource)).map(quota).collect()
    }

    fn places(&mut self, at: usize, flavors: &Flavors) -> Option<PlacesAccount> {
        if !self.wants_places(flavors) {
            return None;
        }
        let request = self.request(at, flavors);
        let mut account = survey(self.cluster, &request);
        if let Some(problem) = &mut account.problem {
            problem.fitting_if_empty = self.ceilings.of(self.cluster, &request);
        }
        Some(account)
    }
}
