//! Parts that go into one region together, and parts that are one and the same.

use super::Taken;
use super::part::{Part, Region, Wish, room};
use super::problem::Problems;
use crate::cluster::{Cluster, NodeIx};
use crate::event::Name;
use crate::reason::PlaceProblem;

/// Parts that share a region: most often just one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bundle {
    /// Indexes of its parts, the one with most pods first.
    pub(super) parts: Vec<usize>,
}

/// Equal parts without a request for a level, as one: which part each original went into.
#[derive(Debug)]
pub(super) struct Merged {
    pub(super) parts: Vec<Part>,
    went_into: Vec<usize>,
    counts: Vec<u32>,
    roles: Vec<Option<Name>>,
}

/// Pods of one part and one role: nothing tells them apart.
#[derive(Debug)]
pub(super) struct Kin {
    pub(super) part: usize,
    pub(super) role: Option<Name>,
    pub(super) count: u32,
}

/// Puts the parts of each group together. Members of a group have one wish and one set of bound
/// members afterwards.
pub(super) fn bundles(parts: &mut [Part]) -> Vec<Bundle> {
    let mut bundles: Vec<Bundle> = Vec::new();
    for at in 0..parts.len() {
        let together = |bundle: &&mut Bundle| {
            let other = &parts[bundle.parts[0]];
            parts[at].group.is_some()
                && other.group == parts[at].group
                && other.topology == parts[at].topology
                && ![&other.wish, &parts[at].wish].iter().any(|wish| wish.is_settled())
        };
        match bundles.iter_mut().find(together) {
            Some(bundle) => bundle.parts.push(at),
            None => bundles.push(Bundle { parts: vec![at] }),
        }
    }
    for bundle in bundles.iter_mut().filter(|bundle| bundle.parts.len() > 1) {
        let wish =
            bundle.parts.iter().map(|at| &parts[*at].wish).find(|wish| **wish != Wish::Anywhere).cloned();
        let bound: Vec<NodeIx> = bundle.parts.iter().flat_map(|at| parts[*at].bound.clone()).collect();
        for at in &bundle.parts {
            parts[*at].wish = wish.clone().unwrap_or(Wish::Anywhere);
            parts[*at].bound = bound.clone();
        }
        bundle.parts.sort_by_key(|at| (std::cmp::Reverse(parts[*at].count), *at));
    }
    bundles
}

impl Bundle {
    /// The bundle as it is when only `some` of the parts are left, under their new numbers.
    pub(super) fn of(&self, some: &[usize]) -> Option<Self> {
        let new_number = |at: &usize| some.iter().position(|some| some == at);
        let parts: Vec<usize> = self.parts.iter().filter_map(new_number).collect();
        (!parts.is_empty()).then_some(Self { parts })
    }

    /// Regions that take each of the bundle's parts (though perhaps not all of them together),
    /// best first; of each level at most `limit`.
    pub(super) fn regions(&self, cluster: &mut Cluster, parts: &[Part], limit: usize) -> Vec<Region> {
        let Some((&lead, others)) = self.parts.split_first() else { return Vec::new() };
        // Filtered by the others only afterwards: the lead alone offers a few more.
        let offered = if others.is_empty() { limit } else { limit.saturating_mul(8) };
        let lead = &parts[lead];
        let mut regions: Vec<Region> =
            lead.view(cluster).map_or(Vec::new(), |view| lead.regions(&view, lead.count, offered).to_vec());
        for other in others.iter().map(|at| &parts[*at]) {
            let Some(view) = other.view(cluster) else { return Vec::new() };
            regions.retain(|region| room(view.index, region) >= u64::from(other.count));
        }
        regions
    }
}

impl Merged {
    /// Pod sets that need the same and may go anywhere are one part: for one shape the answer is
    /// exact, and a search need not try them in every order.
    pub(super) fn of(all: Vec<Part>) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut went_into = Vec::new();
        let counts = all.iter().map(|part| part.count).collect();
        let roles = all.iter().map(|part| part.role.clone()).collect();
        for part in all {
            let twin = parts.iter().position(|other| {
                other.wish == Wish::Anywhere
                    && part.wish == Wish::Anywhere
                    && other.need.ix == part.need.ix
                    && other.grain.is_fine()
                    && part.grain.is_fine()
                    && other.who == part.who
                    && other.topology == part.topology
                    && other.count.checked_add(part.count).is_some()
            });
            went_into.push(twin.unwrap_or(parts.len()));
            match twin {
                Some(twin) => parts[twin].count += part.count,
                None => parts.push(part),
            }
        }
        Self { parts, went_into, counts, roles }
    }

    /// The pods by part and role, in the order of the request.
    pub(super) fn kins(&self) -> Vec<Kin> {
        let mut kins: Vec<Kin> = Vec::new();
        for at in 0..self.counts.len() {
            match kins.iter_mut().find(|kin| self.is_of(at, kin)) {
                Some(kin) => kin.count = kin.count.saturating_add(self.counts[at]),
                None => kins.push(Kin {
                    part: self.went_into[at],
                    role: self.roles[at].clone(),
                    count: self.counts[at],
                }),
            }
        }
        kins
    }

    fn is_of(&self, original: usize, kin: &Kin) -> bool {
        kin.part == self.went_into[original] && kin.role == self.roles[original]
    }

    /// How many pods each original keeps when so many of each kin are kept: the first ones all.
    pub(super) fn keep(&mut self, kept: &[u32]) {
        for (kin, kept) in self.kins().iter().zip(kept) {
            let mut left = *kept;
            for at in 0..self.counts.len() {
                if self.is_of(at, kin) {
                    self.counts[at] = self.counts[at].min(left);
                    left -= self.counts[at];
                }
            }
        }
    }

    fn originals(&self, part: usize) -> Vec<usize> {
        (0..self.went_into.len()).filter(move |at| self.went_into[*at] == part).collect()
    }

    /// The same for problems: those originals have one that found less room than they asked for
    /// after the ones before them; or the last one, if it is others that are in the way.
    pub(super) fn deal_problems(&self, problems: Problems) -> Problems {
        let mut dealt = Problems::new();
        for (part, problem) in problems {
            let in_the_way = problem.fitting >= problem.asked;
            let mut left = problem.fitting;
            let originals = self.originals(part);
            for at in &originals {
                let asked = self.counts[*at];
                let fitting = left.min(asked);
                left -= fitting;
                if fitting < asked || (in_the_way && originals.last() == Some(at)) {
                    dealt.push((*at, PlaceProblem { asked, fitting, ..problem.clone() }));
                }
            }
        }
        dealt
    }

    /// Deals the places of merged parts out to the originals, both in order.
    pub(super) fn deal(&self, cluster: &Cluster, mut taken: Vec<Taken>) -> Vec<Taken> {
        for (part, taken) in taken.iter_mut().enumerate() {
            if self.originals(part).len() > 1 {
                taken.sort_unstable_by_key(|(node, _)| cluster.slot_of(*node).rank);
            }
            taken.reverse();
        }
        let deal_one = |(at, part): (usize, &usize)| {
            let mut missing = self.counts[at];
            let mut dealt = Taken::new();
            while missing > 0
                && let Some((node, count)) = taken[*part].pop()
            {
                let here = count.min(missing);
                missing -= here;
                dealt.push((node, here));
                if count > here {
                    taken[*part].push((node, count - here));
                }
            }
            dealt
        };
        self.went_into.iter().enumerate().map(deal_one).collect()
    }
}
