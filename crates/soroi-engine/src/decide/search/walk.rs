//! Flavors as Kueue chooses them, for gangs that need quota alone.
//!
//! Kueue (0.18, `pkg/scheduler/flavorassigner`) takes the pod sets one after the other, and for each resource
//! group the flavor at which its walk stops, or the best. It never comes back to an earlier pod set. Where a walk
//! stopped before the last flavor and nothing came of it, the next attempt begins behind that flavor.
//!
//! Where places count too, `search` looks further: a pod set takes another flavor if that leaves more for the
//! next.

use std::collections::{BTreeMap, BTreeSet};

use super::super::assign::{FlavorOption, Ground, Options, Refusal, on_top, options};
use super::super::fungible::{Grade, Means};
use super::{Answer, Findings, Flavors, NoAnswer, Search};
use crate::decide::strict::Unmet;
use crate::event::{Name, ResourceGroup};
use crate::quota::{FlavorResource, Sum};

/// By pod set and resource group, how many flavors were tried before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::decide) struct Tried(Vec<BTreeMap<usize, usize>>);

/// What a walk came to.
pub(in crate::decide) enum Walked {
    /// There is quota, perhaps once the victims have left.
    Answer(Answer),
    /// There is quota now, but it is promised to somebody whose victims are leaving. Nobody else is asked to
    /// leave meanwhile.
    Promised,
    /// There is none, and nobody can leave for it.
    Unmet(Unmet),
    /// There is none, whoever left.
    Nothing,
}

impl Tried {
    /// Whether a walk stopped before the last flavor.
    pub(in crate::decide) fn is_open(&self) -> bool {
        self.0.iter().any(|groups| groups.values().any(|tried| *tried > 0))
    }

    fn of(&self, at: usize, group: usize) -> usize {
        self.0.get(at).and_then(|groups| groups.get(&group)).copied().unwrap_or(0)
    }
}

impl Search<'_> {
    /// One walk, and where the next one would begin.
    pub(in crate::decide) fn walk(&mut self, before: &Tried) -> (Walked, Tried) {
        let mut tried = Tried::default();
        let mut chosen: Vec<Flavors> = Vec::new();
        let Some(ground) = self.ground else { return (Walked::Nothing, tried) };
        for at in 0..self.start.sets.len() {
            let mut flavors = Flavors::new();
            let mut groups = BTreeMap::new();
            for (group, spec) in ground.queue.groups.iter().enumerate() {
                let asked = self.asked_of(group, at);
                if asked.is_empty() {
                    continue;
                }
                let taken = self.taken(&chosen);
                let from = before.of(at, group);
                let Some((option, next)) = self.walk_group(ground, spec, at, (&asked, &taken), from) else {
                    return (Walked::Nothing, tried);
                };
                groups.insert(group, next);
                flavors.extend(asked.keys().map(|resource| (resource.clone(), option.clone())));
            }
            if !self.all_covered(at, &flavors) {
                return (Walked::Nothing, tried);
            }
            tried.0.push(groups);
            chosen.push(flavors);
        }
        (self.walked(ground, &chosen), tried)
    }

    /// The flavor of a group, and how many the next walk passes over.
    fn walk_group(
        &mut self,
        ground: Ground<'_>,
        spec: &ResourceGroup,
        at: usize,
        (asked, taken): (&BTreeMap<Name, Sum>, &BTreeMap<FlavorResource, Sum>),
        from: usize,
    ) -> Option<(FlavorOption, usize)> {
        let Options { fit, refused, short, .. } = options(ground, spec, &self.start.sets[at], asked, taken);
        self.findings.blockers.extend(short);
        let fungibility = ground.queue.fungibility;
        let mut best: Option<FlavorOption> = None;
        for position in from..spec.flavors.len() {
            let fits = fit.iter().find(|option| option.position == position).cloned();
            let option = fits.or_else(|| {
                let refusal = refused.iter().find(|refusal| refusal.position == position && refusal.short)?;
                self.fits_now(ground, refusal, asked, taken)
                    .or_else(|| self.preempting?.once_others_left(ground, refusal, asked, taken))
            });
            let Some(option) = option else { continue };
            if option.grade.stops(fungibility) {
                let next = (position + 1) % spec.flavors.len();
                return Some((option, next));
            }
            if best.as_ref().is_none_or(|best| option.grade.beats(best.grade, fungibility)) {
                best = Some(option);
            }
        }
        best.map(|best| (best, 0))
    }

    /// A flavor that is short only of what is promised to others.
    fn fits_now(
        &self,
        ground: Ground<'_>,
        refusal: &Refusal,
        asked: &BTreeMap<Name, Sum>,
        taken: &BTreeMap<FlavorResource, Sum>,
    ) -> Option<FlavorOption> {
        let (tree, queue) = (ground.tree, &ground.queue.name);
        let mut borrow = 0;
        for (what, sum) in on_top(&refusal.flavor, asked, taken) {
            if sum > tree.available_now(queue, &what) {
                return None;
            }
            borrow = borrow.max(tree.borrow_height(queue, &what, sum));
        }
        let (position, flavor) = (refusal.position, refusal.flavor.clone());
        Some(FlavorOption { position, flavor, grade: Grade { means: Means::Fits, borrow }, borrow })
    }

    fn walked(&mut self, ground: Ground<'_>, chosen: &[Flavors]) -> Walked {
        let options = || chosen.iter().flat_map(BTreeMap::values);
        let usage = self.taken(chosen);
        let short: BTreeSet<&FlavorResource> = usage
            .iter()
            .filter(|(what, sum)| **sum > ground.tree.available(&ground.queue.name, what))
            .map(|(what, _)| what)
            .collect();
        if short.is_empty() {
            return Walked::Answer(self.without_places(chosen));
        }
        // Asked of the quota, not of the grade: that of a flavor may be one of its resources that fits and borrows
        // from farther than the one that does not.
        if short.iter().all(|what| usage[*what] <= ground.tree.available_now(&ground.queue.name, what)) {
            return Walked::Promised;
        }
        let unmet = || {
            let borrow = options().map(|option| option.borrow).max().unwrap_or(0);
            Unmet { usage: usage.clone(), borrow }
        };
        // Of one resource alone it is known already that nobody can leave.
        let hopeless = short.len() == 1 && options().any(|option| option.grade.means == Means::Nobody);
        match self.preempting {
            Some(preempting) if !hopeless => match self.complete_with_victims(preempting, ground, chosen) {
                Ok(answer) => Walked::Answer(answer),
                Err(_) => Walked::Unmet(unmet()),
            },
            _ => Walked::Unmet(unmet()),
        }
    }

    /// That nothing came of it, for those whom only that matters to.
    pub(in crate::decide) fn unexplained(self) -> NoAnswer {
        let Findings { blockers, unmet, .. } = self.findings;
        NoAnswer { blockers, unmet, ..NoAnswer::without_reason() }
    }

    /// Why nothing came of it, and what would have to change.
    pub(in crate::decide) fn into_reason(mut self) -> NoAnswer {
        let reason = self.why();
        let Findings { blockers, shortages, unmet, .. } = self.findings;
        NoAnswer { reason, blockers, shortages, unmet }
    }
}
