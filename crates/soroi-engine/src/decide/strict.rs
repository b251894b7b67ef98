//! What a StrictFIFO head that waits keeps from others, where quota alone counts.
//!
//! Kueue (0.18, `scheduler.go`, `resourcesToReserve`) asks the first of a StrictFIFO queue again in every cycle. If
//! others would have to leave for it, and nobody can, its own part of the quota is nobody's meanwhile, unless the
//! queue may have anybody evicted who borrows: then it comes back whenever it is needed. Whoever is decided before
//! such a head is not concerned.

use std::collections::{BTreeMap, BTreeSet};

use super::assign::lacks;
use super::search::{Answer, NoAnswer};
use super::tournament::{self, fairest};
use super::wanted::Start;
use crate::engine::Engine;
use crate::event::{GangId, Millis, Name, Policy, Preemptible};
use crate::queue::{LineKey, Turn, WantIx};
use crate::quota::kueue::Usage;
use crate::quota::{FlavorResource, Sum};
use crate::reason::{FlavorProblem, Reason};

/// What a gang would take if those could leave who are in its way.
#[derive(Clone, Debug)]
pub(crate) struct Unmet {
    /// All that it wants of the quota.
    pub(super) usage: BTreeMap<FlavorResource, Sum>,
    /// How high in the cohorts it would borrow.
    pub(super) borrow: u32,
}

/// The heads of StrictFIFO queues that keep something, by queue.
pub(crate) type StrictHeads = BTreeMap<Name, (Turn, Unmet)>;

impl Engine {
    /// Notes whether the first of a StrictFIFO queue keeps something, now that its want cannot be met.
    pub(super) fn note_strict_head(&mut self, want: WantIx, unmet: Option<Box<Unmet>>) {
        let LineKey::ClusterQueue(queue) = self.waiting.line_of(want) else { return };
        let Some(head) = self.waiting.strict_head(self.waiting.line_of(want)) else { return };
        if self.waiting.stand(&head.id).is_none_or(|(_, at)| at != want) {
            return;
        }
        let (queue, head) = (queue.clone(), head.clone());
        let rules = self.quotas.kueue.queue(&queue).map(|queue| queue.preemption);
        match unmet.filter(|_| rules.is_some_and(|rules| rules.reclaim != Preemptible::Any)) {
            Some(unmet) => _ = self.strict_heads.insert(queue, (head, *unmet)),
            None => self.strict_head_is_gone(&queue),
        }
    }

    /// Whoever waits because a StrictFIFO head kept something is asked again when it does not any more.
    pub(super) fn wake_beside_strict_heads(&mut self) {
        let first = |queue: &Name| self.waiting.strict_head(&LineKey::ClusterQueue(queue.clone()));
        let heads = self.strict_heads.iter();
        let gone =
            heads.filter(|(queue, (turn, _))| first(queue) != Some(turn)).map(|(queue, _)| queue.clone());
        for queue in gone.collect::<Vec<_>>() {
            self.strict_head_is_gone(&queue);
        }
        let roots = std::mem::take(&mut self.unkept);
        if roots.is_empty() {
            return;
        }
        self.wake_starts(&roots, |start| start.policy == Policy::QuotaOnly);
    }

    fn strict_head_is_gone(&mut self, queue: &Name) {
        if self.strict_heads.remove(queue).is_some() {
            self.unkept.extend(self.quotas.kueue.root(queue));
        }
    }

    /// What a gang gets in its turn, beside what heads keep that were decided before it.
    pub(super) fn answer_in_turn(
        &mut self,
        turn: &Turn,
        start: &Start,
        now: Millis,
    ) -> Result<Answer, NoAnswer> {
        let answer = self.answer(&turn.id, start, now)?;
        if self.strict_heads.is_empty() || !self.walks(start) {
            return Ok(answer);
        }
        let Some(queue) = &start.cluster_queue else { return Ok(answer) };
        let kept = self.kept_before(queue, turn, &answer);
        if kept.is_empty() {
            return Ok(answer);
        }
        let problems = self.lacks_beside(queue, &kept, &answer);
        if problems.is_empty() {
            return Ok(answer);
        }
        let set = start.sets.first().map_or_else(|| "main".into(), |set| set.name.clone());
        let blockers = self.any_gain(start).into_iter().collect();
        let reason = Reason::NoFlavor(vec![(set, problems)]);
        Err(NoAnswer { reason, blockers, shortages: BTreeSet::new(), unmet: None })
    }

    /// What the heads of other queues of the tree keep that come before this one.
    fn kept_before(&self, queue: &Name, turn: &Turn, answer: &Answer) -> Vec<(Name, FlavorResource, Sum)> {
        let tree = &self.quotas.kueue;
        let (root, usage) = (tree.root(queue), answer.usage());
        let comes_before = |other: &Name, head: &Turn, unmet: &Unmet| match self.settings.fair_sharing {
            None => (unmet.borrow, head) < (answer.borrow, turn),
            Some(_) => {
                let heads = [
                    tournament::Head { turn: head, queue: other, usage: &unmet.usage },
                    tournament::Head { turn, queue, usage: &usage },
                ];
                fairest(tree, &heads) == Some(0)
            }
        };
        let heads = self.strict_heads.iter().filter(|(other, _)| *other != queue && tree.root(other) == root);
        let heads = heads.filter(|(other, (head, unmet))| comes_before(other, head, unmet));
        heads.flat_map(|(other, (_, unmet))| self.keeps(other, unmet)).collect()
    }

    /// What is left of its queue's own quota as far as it wants that; of what it may borrow, if it has to.
    fn keeps(&self, queue: &Name, unmet: &Unmet) -> Vec<(Name, FlavorResource, Sum)> {
        let tree = &self.quotas.kueue;
        let kept = unmet.usage.iter().map(|(what, sum)| {
            let limit = match unmet.borrow {
                0 => Some(0),
                _ => tree.borrowing_limit(queue, what),
            };
            let own = tree.nominal(queue, what) - tree.used(queue, what);
            let most = limit.map_or(*sum, |limit| (own + limit).max(0));
            (queue.clone(), what.clone(), most.min(*sum))
        });
        kept.filter(|(.., sum)| *sum > 0).collect()
    }

    /// What an answer lacks beside this, once its victims have left.
    fn lacks_beside(
        &mut self,
        queue: &Name,
        kept: &[(Name, FlavorResource, Sum)],
        answer: &Answer,
    ) -> Vec<FlavorProblem> {
        let victims: Vec<GangId> = answer.victims.iter().map(|(id, _)| id.clone()).collect();
        self.try_out(kept, &victims, true);
        let room: BTreeMap<FlavorResource, Sum> =
            self.quotas.kueue.headroom(queue, Usage::Promised).into_iter().collect();
        self.try_out(kept, &victims, false);
        let lacks = |(what, sum)| lacks(sum - room.get(&what).copied().unwrap_or(0).max(0), what);
        answer.usage().into_iter().filter_map(lacks).collect()
    }

    /// As if this were kept and these had left; or as it was before.
    fn try_out(&mut self, kept: &[(Name, FlavorResource, Sum)], gone: &[GangId], begin: bool) {
        let sign = if begin { 1 } else { -1 };
        for (queue, what, sum) in kept {
            self.quotas.kueue.promise(queue, what, sign * sum);
        }
        for charge in gone.iter().filter_map(|id| self.gangs.get(id)).flat_map(|state| state.charges()) {
            self.quotas.give_up(charge, begin);
        }
    }
}
