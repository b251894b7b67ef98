//! What a gang gets that needs quota alone: what Kueue would give it (policy QuotaOnly).
//!
//! Each attempt is one walk over the flavors (`search::walk`), for all pods, then for fewer. As long as walks
//! stop before the last flavor and nothing comes of them, the next one begins where the last one stopped.

use super::search::{Answer, NoAnswer, Search, Tried, Walked};
use super::victims::{Preempting, candidates};
use super::wanted::Start;
use crate::engine::Engine;
use crate::event::{GangId, Millis, Policy};
use crate::reason::Reason;

/// How many walks one decision takes: each passes over one flavor more, and a gang has not that many.
const WALKS_MAX: usize = 32;

impl Engine {
    /// Whether Kueue's choice is made for it: it needs quota alone, all of it at once.
    pub(super) fn walks(&self, start: &Start) -> bool {
        start.policy == Policy::QuotaOnly
            && start.cluster_queue.is_some()
            && start.volcano_queue.is_none()
            && start.minima.total() >= start.pods()
    }

    /// The first answer that a walk has; `explained`: with the reason if there is none.
    pub(super) fn first_walked(
        &mut self,
        id: &GangId,
        start: &Start,
        explained: bool,
        now: Millis,
    ) -> Result<Answer, NoAnswer> {
        let tree = &self.quotas.kueue;
        let queue = start.cluster_queue.as_ref().and_then(|name| tree.queue(name));
        let candidates = match (start.rank, queue) {
            (Some(rank), Some(queue)) => {
                candidates(&self.gangs, &self.payers, (tree, &self.inactive), queue, rank, now)
            }
            _ => Vec::new(),
        };
        // Whoever may have nobody evicted is told apart from whom that would not help.
        let rank = start.rank.unwrap_or_default();
        let fair = self.settings.fair_sharing.as_deref();
        let others = (&self.gangs, &self.holders);
        let preempting = queue.map(|queue| Preempting::of(id, queue, rank, &candidates, fair, others));
        let lenient = self.settings.ignore_undeclared;
        let search = Search::of(&self.world, tree, (&mut self.cluster, &mut self.ceilings), start, lenient);
        let full = search.counts.clone();
        let mut search = Search { placing: false, preempting, ..search };
        let found = search.attempts(full.clone());
        let wants_reason = explained && found.as_ref().is_none_or(|answer| !answer.victims.is_empty());
        search.counts = full;
        let no = if wants_reason { search.into_reason() } else { search.unexplained() };
        match found {
            Some(answer) if answer.victims.is_empty() => Ok(answer),
            Some(answer) => {
                // A flavor that has quota is passed over for one that others have to leave.
                let silent = matches!(&no.reason, Reason::NoFlavor(problems) if problems.is_empty());
                match silent {
                    true => Ok(self.with_reason(start, answer)),
                    false => Ok(Answer { without_victims: Some(no.reason), ..answer }),
                }
            }
            // Whoever may preempt is asked again when anything is given back (`wake_preemptors`).
            None => Err(no),
        }
    }
}

impl Search<'_> {
    /// Walk after walk, each for all pods and then for fewer.
    fn attempts(&mut self, full: Vec<u32>) -> Option<Answer> {
        let mut before = Tried::default();
        for _ in 0..WALKS_MAX {
            self.counts.clone_from(&full);
            let (walked, tried) = self.walk(&before);
            match walked {
                Walked::Answer(answer) => return Some(answer),
                Walked::Promised => return None,
                // Those who try more than one way in turn keep none of them for themselves.
                Walked::Unmet(unmet) if before == Tried::default() && !tried.is_open() => {
                    self.findings.unmet = Some(Box::new(unmet));
                }
                Walked::Unmet(_) | Walked::Nothing => {}
            }
            if let Some(answer) = self.fewer(&full, &before) {
                return Some(answer);
            }
            if !tried.is_open() {
                return None;
            }
            before = tried;
        }
        None
    }

    /// As many pods as there is quota for of the set of which fewer would do (Kueue, `PodSetReducer`: what fits
    /// fewer is taken never to fit more, so half of what is open is tried each time).
    fn fewer(&mut self, full: &[u32], before: &Tried) -> Option<Answer> {
        let sets = &self.start.sets;
        let most = sets.iter().filter_map(|set| Some(set.count.saturating_sub(set.least?))).max()?;
        let less = |less: u32| -> Vec<u32> {
            let counts = self.start.sets.iter().zip(full);
            counts
                .map(|(set, all)| set.least.map_or(*all, |least| all.saturating_sub(less).max(least)))
                .collect()
        };
        let (mut low, mut high) = (1, most + 1);
        let mut best: Option<(u32, Answer)> = None;
        while low < high {
            let middle = low + (high - low) / 2;
            self.counts = less(middle);
            match self.walk(before).0 {
                Walked::Answer(answer) => {
                    best = Some((middle, answer));
                    high = middle;
                }
                _ => low = middle + 1,
            }
        }
        best.filter(|(at, _)| *at == low).map(|(_, answer)| answer)
    }
}
