//! A gang that waits starts: all of it, or not at all, and then it has a reason.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::assign::{lacks, totals};
use super::gang::{Held, Phase, SeatSet};
use super::search::{Answer, NoAnswer, Search, Terms};
use super::victims::Preempting;
use super::wanted::{Start, StartSet, Wanted};
use crate::decision::{Admission, Decision, PodSetAdmission};
use crate::engine::Engine;
use crate::event::{Amount, Fungibility, Gang, GangId, Millis, Name, Policy};
use crate::minima::Minima;
use crate::queue::{Blocker, CapabilityBlocker, Certificate, QuotaBlocker, Turn, WantIx};
use crate::quota::volcano::NoRoom;
use crate::quota::{Charge, FlavorResource, Sum, saturate};
use crate::reason::Reason;

impl Engine {
    /// Decides one gang: all of it, or a certificate for it and all who want the same. Whether it took
    /// anything.
    pub(super) fn start_one(
        &mut self,
        turn: &Turn,
        want: WantIx,
        now: Millis,
        out: &mut Vec<Decision>,
    ) -> bool {
        let Wanted::Start(start) = self.waiting.ask(want).clone() else { return false };
        match self.answer_in_turn(turn, &start, now) {
            Ok(answer) => {
                self.begin(&turn.id, &start, answer, now, out);
                true
            }
            Err(no) => {
                self.certify(want, no);
                false
            }
        }
    }

    /// The gang starts, or its victims leave first.
    pub(super) fn begin(
        &mut self,
        id: &GangId,
        start: &Start,
        mut answer: Answer,
        now: Millis,
        out: &mut Vec<Decision>,
    ) {
        if let Some(reason) = answer.without_victims.take() {
            self.begin_hold(id, start, answer, reason, out);
            return self.recount(id);
        }
        let admission = admission_of(id, start, answer);
        self.waiting.leave(id);
        self.hold(admission.clone(), Phase::Assumed, now);
        out.push(Decision::Admit(admission));
        self.recount(id);
    }

    /// Notes why a want cannot be met, and whom to tell.
    pub(super) fn certify(&mut self, want: WantIx, no: NoAnswer) {
        let mut blockers = no.blockers;
        let (shortages, cluster) = (&mut self.shortages, &mut self.cluster);
        blockers.extend(no.shortages.iter().map(|request| Blocker::Places(shortages.of(cluster, request))));
        self.note_strict_head(want, no.unmet);
        self.waiting.certify(want, Certificate { reason: Arc::new(no.reason), blockers });
        self.tell_all_of(want);
    }

    /// What the gang gets now, if anything. Quota of an earlier admission that it still holds is
    /// its own: it is never charged twice.
    pub(super) fn answer(&mut self, id: &GangId, start: &Start, now: Millis) -> Result<Answer, NoAnswer> {
        let lingering = self.gangs[id].lingering.as_ref().map(|lingering| lingering.charge.clone());
        let Some(own) = lingering else { return self.first_answer(id, start, true, now) };
        self.quotas.release(&own);
        let answer = self.first_answer(id, start, true, now).map_err(|no| {
            let left = no.blockers.iter().map(|blocker| self.left_for(blocker)).collect();
            (no, left)
        });
        self.quotas.charge(&own);
        answer.map_err(|(no, left)| self.besides_its_own(no, left))
    }

    /// What is left of the quota that a blocker speaks of.
    fn left_for(&self, blocker: &Blocker) -> Option<Sum> {
        match blocker {
            Blocker::QuotaShort(it) | Blocker::QuotaEnough(it) => {
                Some(self.quotas.kueue.available(&it.queue, &it.what))
            }
            Blocker::CapabilityShort(it) | Blocker::CapabilityEnough(it) => {
                Some(self.quotas.volcano.left(&it.limit).into())
            }
            Blocker::Places(_) | Blocker::AnyRoom => None,
        }
    }

    /// An answer that was found without what the gang holds itself, said of the quota as it is with
    /// that: a blocker that took the own part for free would be falsified as soon as it was made.
    /// `left` is what was left then, for each blocker.
    fn besides_its_own(&self, mut no: NoAnswer, left: Vec<Option<Sum>>) -> NoAnswer {
        let blockers = std::mem::take(&mut no.blockers).into_iter().zip(left);
        no.blockers = blockers
            .map(|(mut blocker, left)| {
                let own = left.zip(self.left_for(&blocker)).map_or(0, |(without, with)| without - with);
                match &mut blocker {
                    Blocker::QuotaShort(it) | Blocker::QuotaEnough(it) => it.needed -= own,
                    Blocker::CapabilityShort(it) | Blocker::CapabilityEnough(it) => {
                        it.needed = it.needed.saturating_sub(saturate(own));
                    }
                    Blocker::Places(_) | Blocker::AnyRoom => {}
                }
                blocker
            })
            .collect();
        no
    }

    /// The first answer in the order in which a gang would have it: all of it, at once; all of it, once others
    /// have left; fewer pods of the set of which fewer would do. Its queue may have others leave before
    /// it takes another flavor or borrows more (`flavorFungibility`). `placing`: with places, or by quota alone.
    pub(super) fn first_answer(
        &mut self,
        id: &GangId,
        start: &Start,
        placing: bool,
        now: Millis,
    ) -> Result<Answer, NoAnswer> {
        let counts: Vec<u32> = start.sets.iter().map(|set| set.count).collect();
        if self.walks(start) {
            return self.first_walked(id, start, placing, now);
        }
        if self.preempts_early(start)
            && let Ok(answer) = self.search_for_victims(id, start, counts.clone(), placing, now)
        {
            return Ok(self.with_reason(start, answer));
        }
        let at_once = match placing {
            true => self.answer_without_victims(start),
            false => self.search(start, counts.clone(), None, false),
        };
        let no = match at_once {
            Ok(answer) => return Ok(answer),
            Err(no) => no,
        };
        match self.answer_with_victims(id, start, counts, placing, now, no) {
            Err(no) if start.sets.iter().any(|set| set.least.is_some()) => {
                self.reduced(id, start, placing, now).map_err(|least| no.and(least))
            }
            answer => answer,
        }
    }

    /// Whether the gangs of its queue have others leave although another flavor would do, or borrowing.
    fn preempts_early(&self, start: &Start) -> bool {
        let queue = start.cluster_queue.as_ref().and_then(|name| self.quotas.kueue.queue(name));
        start.rank.is_some() && queue.is_some_and(|queue| is_early(queue.fungibility))
    }

    /// An answer that was looked for before it was known why there is none at once.
    pub(super) fn with_reason(&self, start: &Start, answer: Answer) -> Answer {
        let Some(queue) = start.cluster_queue.as_ref().filter(|_| !answer.victims.is_empty()) else {
            return answer;
        };
        let lacks = |(what, sum)| lacks(sum - self.quotas.kueue.available(queue, &what), what);
        let problems = answer.usage().into_iter().filter_map(lacks).collect();
        let name = start.sets.first().map_or_else(|| "main".into(), |set| set.name.clone());
        Answer { without_victims: Some(Reason::NoFlavor(vec![(name, problems)])), ..answer }
    }

    /// So many pods of each set, once others have left for them.
    fn answer_with_victims(
        &mut self,
        id: &GangId,
        start: &Start,
        counts: Vec<u32>,
        placing: bool,
        now: Millis,
        mut no: NoAnswer,
    ) -> Result<Answer, NoAnswer> {
        match self.search_for_victims(id, start, counts, placing, now) {
            Ok(answer) => Ok(Answer { without_victims: Some(no.reason), ..answer }),
            Err(NoVictims::NotEnough) => {
                // Whatever is given back may be what those who could leave do not give.
                no.blockers.extend(self.any_gain(start));
                Err(no)
            }
            Err(NoVictims::Nobody) => Err(no),
        }
    }

    /// As many pods as there are quota and places for, of the set of which fewer would do (Kueue,
    /// partial admission). What fits fewer never fits more, so half of what is open is tried each time.
    fn reduced(
        &mut self,
        id: &GangId,
        start: &Start,
        placing: bool,
        now: Millis,
    ) -> Result<Answer, NoAnswer> {
        let counts = |less: u32| -> Vec<u32> {
            // One set at most has a least number (Kueue's rule for Workloads).
            let left = |set: &StartSet| {
                set.least.map_or(set.count, |least| set.count.saturating_sub(less).max(least))
            };
            start.sets.iter().map(left).collect()
        };
        let most = start.sets.iter().filter_map(|set| Some(set.count - set.least?)).max().unwrap_or(0);
        let mut best = self.sized(id, start, counts(most), placing, now)?;
        let (mut low, mut high) = (1, most);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.sized(id, start, counts(middle), placing, now) {
                Ok(answer) => (best, high) = (answer, middle),
                Err(_) => low = middle + 1,
            }
        }
        Ok(best)
    }

    /// So many pods of each set, at once or once others have left.
    fn sized(
        &mut self,
        id: &GangId,
        start: &Start,
        counts: Vec<u32>,
        placing: bool,
        now: Millis,
    ) -> Result<Answer, NoAnswer> {
        match self.search(start, counts.clone(), None, placing) {
            Err(no) => self.answer_with_victims(id, start, counts, placing, now, no),
            answer => answer,
        }
    }

    fn search_for_victims(
        &mut self,
        id: &GangId,
        start: &Start,
        counts: Vec<u32>,
        placing: bool,
        now: Millis,
    ) -> Result<Answer, NoVictims> {
        let tree = &self.quotas.kueue;
        let queue = start.cluster_queue.as_ref().and_then(|name| tree.queue(name));
        let (Some(rank), Some(queue)) = (start.rank, queue) else {
            return Err(NoVictims::Nobody);
        };
        if self.volcano_room(start, start.pods()).is_err() {
            return Err(NoVictims::Nobody);
        }
        let candidates =
            super::victims::candidates(&self.gangs, &self.payers, (tree, &self.inactive), queue, rank, now);
        if candidates.is_empty() {
            return Err(NoVictims::Nobody);
        }
        let fair = self.settings.fair_sharing.as_deref();
        let others = (&self.gangs, &self.holders);
        let preempting = Preempting::of(id, queue, rank, &candidates, fair, others);
        let lenient = self.settings.ignore_undeclared;
        let search = Search::of(&self.world, tree, (&mut self.cluster, &mut self.ceilings), start, lenient);
        let search = Search { counts, placing, preempting: Some(preempting), ..search };
        search.run_for_victims().ok_or(NoVictims::NotEnough)
    }

    /// More of anything that the gang could use.
    pub(super) fn any_gain(&self, start: &Start) -> Vec<Blocker> {
        let tree = &self.quotas.kueue;
        let Some(queue) = start.cluster_queue.as_ref().and_then(|name| tree.queue(name)) else {
            return Vec::new();
        };
        let Some(root) = tree.root(&queue.name) else { return Vec::new() };
        let flavors = queue.groups.iter().flat_map(|group| &group.flavors);
        let whats = flavors.flat_map(|flavor| {
            let named = flavor.quotas.iter().map(|quota| quota.resource.clone());
            named.map(|resource| FlavorResource { flavor: flavor.flavor.clone(), resource })
        });
        let short = whats.map(|what| {
            let needed = tree.available(&queue.name, &what) + 1;
            Blocker::QuotaShort(QuotaBlocker { root: root.clone(), what, queue: queue.name.clone(), needed })
        });
        short.chain([Blocker::AnyRoom]).collect()
    }

    pub(super) fn answer_without_victims(&mut self, start: &Start) -> Result<Answer, NoAnswer> {
        let all: u32 = start.sets.iter().fold(0, |sum, set| sum.saturating_add(set.count));
        let least = start.minima.total();
        let full = self.answer_for(start, all, None);
        if full.is_ok() {
            return full;
        }
        if least >= all {
            return full;
        }
        // Whatever would let more of them start lets others of them start.
        let mut others = Vec::new();
        let most = most(least, all, |members| match self.quota_for(start, members) {
            Ok(()) => true,
            Err(no) => {
                others = vec![no];
                false
            }
        });
        if most > least {
            match self.answer_for(start, most, Some(&start.minima)) {
                Ok(answer) => return Ok(answer),
                Err(no) => others.push(no),
            }
        }
        self.answer_for(start, least, None).map_err(|no| others.into_iter().fold(no, NoAnswer::and))
    }

    fn answer_for(
        &mut self,
        start: &Start,
        members: u32,
        minima: Option<&Minima>,
    ) -> Result<Answer, NoAnswer> {
        let enough = self.volcano_room(start, members)?;
        self.search(start, cut(start, members), minima, true).map_err(|mut no| {
            no.blockers.extend(enough);
            no
        })
    }

    fn quota_for(&mut self, start: &Start, members: u32) -> Result<(), NoAnswer> {
        self.volcano_room(start, members)?;
        self.search(start, cut(start, members), None, false).map(|_| ())
    }

    /// Whether its Volcano Queue has room for so many members. The answer is what the reason of a
    /// gang that fails elsewhere takes for given.
    fn volcano_room(&self, start: &Start, members: u32) -> Result<BTreeSet<Blocker>, NoAnswer> {
        let Some(queue) = &start.volcano_queue else { return Ok(BTreeSet::new()) };
        let mut need: BTreeMap<Name, Amount> = BTreeMap::new();
        for (set, count) in start.sets.iter().zip(cut(start, members)) {
            for (resource, sum) in totals(set, count, None) {
                let total = need.entry(resource).or_default();
                *total = total.saturating_add(saturate(sum));
            }
        }
        self.room_under(queue, &need)
    }

    /// Whether a Volcano Queue and those above it have room for so much of each resource. The answer is
    /// what a gang that fails elsewhere takes for given.
    pub(super) fn room_under(
        &self,
        queue: &Name,
        need: &BTreeMap<Name, Amount>,
    ) -> Result<BTreeSet<Blocker>, NoAnswer> {
        let ceiling = |(limit, needed)| CapabilityBlocker { limit, needed };
        let enough = |held: Vec<_>| held.into_iter().map(ceiling).map(Blocker::CapabilityEnough);
        let NoRoom { held, short, queue, problem } = match self.quotas.volcano.room(queue, need) {
            Ok(held) => return Ok(enough(held).collect()),
            Err(no_room) => no_room,
        };
        let mut blockers: BTreeSet<Blocker> = enough(held).collect();
        blockers.extend(short.map(ceiling).map(Blocker::CapabilityShort));
        let reason = Reason::VolcanoQueue { queue, problem };
        Err(NoAnswer { reason, blockers, shortages: BTreeSet::new(), unmet: None })
    }

    pub(super) fn search(
        &mut self,
        start: &Start,
        counts: Vec<u32>,
        minima: Option<&Minima>,
        placing: bool,
    ) -> Result<Answer, NoAnswer> {
        let room = (&mut self.cluster, &mut self.ceilings);
        let lenient = self.settings.ignore_undeclared;
        let search = Search::of(&self.world, &self.quotas.kueue, room, start, lenient);
        Search { counts, minima, placing, ..search }.run()
    }

    /// Reserves what an admission says: quota in each tree, and its places.
    pub(super) fn hold(&mut self, admission: Admission, phase: Phase, now: Millis) {
        let id = admission.gang.clone();
        self.note_arrived(&id, now);
        let volcano_queue = self.gangs.get(&id).and_then(|gang| gang.fact.as_ref()?.volcano_queue.clone());
        let paid: Vec<u32> = admission.pod_sets.iter().map(|set| set.count).collect();
        let charge = charge_of(&admission, &paid, volcano_queue);
        let fact = self.gangs.get(&id).and_then(|gang| gang.fact.as_ref());
        let sets = admission.pod_sets.iter().map(|set| self.seat_set(fact, set)).collect();
        let mut held = Held::new(admission, paid, charge, sets, phase, now);
        for (at, set) in held.admission.pod_sets.clone().iter().enumerate() {
            // Pods take seats by their index: neighbours in rank sit near each other, slice by slice.
            let mut nodes = set.nodes.clone();
            self.cluster.sort_by_domain(held.sets[at].topology.as_ref(), &mut nodes);
            let nodes =
                nodes.into_iter().flat_map(|(node, count)| (0..count).map(move |_| Some(node.clone())));
            held.add_seats(at, nodes);
            held.parked |= held.admission.policy == Policy::Unified && set.nodes.is_empty() && set.count > 0;
            if held.binds() {
                let missing =
                    set.count.saturating_sub(u32::try_from(held.sets[at].seats.len()).unwrap_or(u32::MAX));
                held.add_seats(at, (0..missing).map(|_| None));
            }
        }
        self.quotas.charge(&held.charge);
        self.release_own_lingering(&id);
        let state = self.gangs.entry(id.clone()).or_default();
        held.shaped = state.fact.is_some();
        state.told = None;
        state.held = Some(held);
        self.note_payer(&id);
        self.charge_seats(&id);
        self.seat_everybody(&id);
    }

    pub(super) fn seat_set(&self, fact: Option<&Gang>, set: &PodSetAdmission) -> SeatSet {
        let named = fact.and_then(|fact| fact.pod_sets.iter().find(|named| named.name == set.name));
        let terms = Terms::of(&self.world, set.flavors.values());
        SeatSet {
            name: set.name.clone(),
            role: named.and_then(|named| named.role.clone()),
            shape: named.map(|named| named.shape.clone()),
            topology: terms.topology,
            node_labels: terms.node_labels,
            tolerations: terms.tolerations,
            seats: Vec::new(),
            kinds: Default::default(),
        }
    }
}

/// Why nobody is evicted.
enum NoVictims {
    /// There is nobody who may be.
    Nobody,
    /// All who may be do not suffice.
    NotEnough,
}

/// The largest count from `least` up to `all` for which there is enough; what is enough for a count is
/// enough for less, and `least` is not asked for.
pub(super) fn most(least: u32, all: u32, mut enough: impl FnMut(u32) -> bool) -> u32 {
    let (mut low, mut high) = (least, all);
    while low < high {
        let middle = high - (high - low) / 2;
        if enough(middle) { low = middle } else { high = middle - 1 }
    }
    low
}

/// Counts for this many members in all, of each role at least its minimum: the last pod sets are cut
/// first.
fn cut(start: &Start, members: u32) -> Vec<u32> {
    let mut needed = start.minima.roles.clone();
    let floor = |set: &StartSet| {
        let Some(left) = set.role.as_ref().and_then(|role| needed.get_mut(role)) else { return 0 };
        let count = set.count.min(*left);
        *left -= count;
        count
    };
    let mut counts: Vec<u32> = start.sets.iter().map(floor).collect();
    let mut left = members.saturating_sub(counts.iter().sum());
    for (set, count) in start.sets.iter().zip(&mut counts) {
        let more = (set.count - *count).min(left);
        *count += more;
        left -= more;
    }
    counts
}

pub(super) fn is_early(rules: Fungibility) -> bool {
    rules.stop_at_preempt || rules.prefer_preemption
}

pub(super) fn admission_of(id: &GangId, start: &Start, answer: Answer) -> Admission {
    let sets = start.sets.iter().zip(answer.sets);
    let pod_set = |(set, got): (&StartSet, super::search::SetAnswer)| PodSetAdmission {
        name: set.name.clone(),
        count: got.count,
        flavors: got.flavors,
        usage: got.usage,
        nodes: got.nodes,
        topology: got.topology,
    };
    Admission {
        gang: id.clone(),
        policy: start.policy,
        cluster_queue: start.cluster_queue.clone(),
        pod_sets: sets.map(pod_set).collect(),
    }
}

/// What an admission takes from the trees when it pays for so many pods of each set.
pub(super) fn charge_of(admission: &Admission, paid: &[u32], volcano_queue: Option<Name>) -> Charge {
    let mut by_flavor: BTreeMap<FlavorResource, Amount> = BTreeMap::new();
    let mut by_resource: BTreeMap<Name, Amount> = BTreeMap::new();
    for (set, paid) in admission.pod_sets.iter().zip(paid) {
        for (resource, amount) in &set.usage {
            let amount = share(*amount, *paid, set.count);
            let total = by_resource.entry(resource.clone()).or_default();
            *total = total.saturating_add(amount);
            let Some(flavor) = set.flavors.get(resource) else { continue };
            let what = FlavorResource { flavor: flavor.clone(), resource: resource.clone() };
            let total = by_flavor.entry(what).or_default();
            *total = total.saturating_add(amount);
        }
    }
    Charge {
        kueue: admission.cluster_queue.clone().map(|queue| (queue, by_flavor)),
        volcano: volcano_queue.map(|queue| (queue, by_resource)),
    }
}

/// The part of an amount for `all` pods that `paid` of them take. Amounts are multiples of the
/// count, but for absurd ones that were cut off.
fn share(amount: Amount, paid: u32, all: u32) -> Amount {
    if paid >= all {
        return amount;
    }
    amount / Amount::from(all) * Amount::from(paid)
}

#[cfg(test)]
mod tests;
