//! What pods would like of nodes and of each other, as kube-scheduler 1.36 scores it, for a gang whose
//! pods come one after the other.
//!
//! Each plugin's raw scores become 0 to 100 over the nodes that could take such a pod, and count by its
//! default weight (`pkg/scheduler/apis/config/v1/default_plugins.go`).

use super::{Domains, Rules};
use crate::cluster::{Cluster, NodeIx};
use crate::event::{Preferences, Spread};
use crate::fit::{disliked, liked, selects_node, tolerates_node};
use crate::place::part::Part;

/// The most that one plugin gives a node.
const SCORE_MAX: i64 = 100;
/// The plugins' weights.
const TAINT_TOLERATION: i64 = 3;
const NODE_AFFINITY: i64 = 2;
const INTER_POD_AFFINITY: i64 = 2;
const POD_TOPOLOGY_SPREAD: i64 = 2;
/// Natural logarithms are kept in units of 1/1024.
const LN_UNIT: i64 = 1024;
/// The logarithm of 2, in these units.
const LN_2: i64 = 710;
const HOSTNAME: &str = "kubernetes.io/hostname";

/// What the pods of one part would like; empty where all nodes are the same to them.
#[derive(Default)]
pub(super) struct Taste {
    /// By candidate: what other pods do not change.
    fixed: Vec<i64>,
    /// Counters of pods, and what each of these pods is worth.
    pods: Vec<(usize, i64)>,
    spread: Vec<SoftSpread>,
}

struct SoftSpread {
    counter: usize,
    /// [`LN_UNIT`]s for each pod that is there.
    weight: i64,
    /// The same for a domain of its own.
    base: i64,
}

impl Rules {
    /// Learns what the pods of these parts (those that the rules are of) would like.
    pub(in super::super) fn learn_tastes(&mut self, cluster: &mut Cluster, parts: &[Part]) {
        let mut domains = Domains::default();
        for (at, part) in parts.iter().enumerate() {
            self.parts[at].taste.fixed = self.fixed(cluster, at, part);
            if let Some(prefers) = part.need.ask.shape.prefers.clone() {
                self.add_likes(cluster, &mut domains, parts, at, &prefers);
                self.add_soft_spread(cluster, &mut domains, parts, at, &prefers);
            }
        }
    }

    /// TaintToleration and NodeAffinity.
    fn fixed(&self, cluster: &Cluster, at: usize, part: &Part) -> Vec<i64> {
        let ask = &part.need.ask;
        let raw: Vec<(i64, i64)> = self.parts[at]
            .candidates
            .iter()
            .map(|node| match &cluster.slot_of(*node).facts {
                Some(facts) => (disliked(ask, facts).into(), liked(&ask.shape, facts).into()),
                None => (0, 0),
            })
            .collect();
        let most_taints = raw.iter().map(|(taints, _)| *taints).max().unwrap_or(0).max(1);
        let most_liked = raw.iter().map(|(_, liked)| *liked).max().unwrap_or(0).max(1);
        let score = |(taints, liked): &(i64, i64)| {
            TAINT_TOLERATION * (SCORE_MAX - SCORE_MAX * taints / most_taints)
                + NODE_AFFINITY * (SCORE_MAX * liked / most_liked)
        };
        raw.iter().map(score).collect()
    }

    fn add_likes(
        &mut self,
        cluster: &mut Cluster,
        domains: &mut Domains,
        parts: &[Part],
        at: usize,
        prefers: &Preferences,
    ) {
        let near = prefers.near.iter().map(|(weight, term)| (i64::from(*weight), term));
        let apart = prefers.apart.iter().map(|(weight, term)| (-i64::from(*weight), term));
        for (weight, term) in near.chain(apart) {
            let kind = std::slice::from_ref(&term.pods);
            let counter = self.add_counter(cluster, domains, &term.topology_key, |_| true, false);
            self.fill(cluster, counter, kind, |count| count.all);
            self.raised_by(cluster, counter, kind, parts);
            self.parts[at].taste.pods.push((counter, weight));
        }
    }

    fn add_soft_spread(
        &mut self,
        cluster: &mut Cluster,
        domains: &mut Domains,
        parts: &[Part],
        at: usize,
        prefers: &Preferences,
    ) {
        let ask = parts[at].need.ask.clone();
        for spread in &prefers.spread {
            let counts = |node: &crate::event::Node| {
                let has_all = prefers.spread.iter().all(|one| node.labels.contains_key(&one.topology_key));
                has_all
                    && (!spread.honours_affinity || selects_node(&ask, node))
                    && (!spread.honours_taints || tolerates_node(&ask, node))
            };
            let counter = self.add_counter(cluster, domains, &spread.topology_key, counts, false);
            let kind = std::slice::from_ref(&spread.pods);
            if spread.counts_anybody() {
                self.fill(cluster, counter, kind, |count| count.staying);
                self.raised_by(cluster, counter, kind, parts);
            }
            let soft = self.soft_spread(at, spread, counter);
            self.parts[at].taste.spread.push(soft);
        }
    }

    /// More domains weigh more (`topologyNormalizingWeight`).
    fn soft_spread(&self, at: usize, spread: &Spread, counter: usize) -> SoftSpread {
        let there = self.parts[at].candidates.iter().filter_map(|node| self.domain(counter, *node));
        let size = match &*spread.topology_key == HOSTNAME {
            true => there.count(),
            false => there.collect::<std::collections::BTreeSet<u32>>().len(),
        };
        let base = LN_UNIT * (i64::from(spread.max_skew) - 1);
        SoftSpread { counter, weight: ln(size as u64 + 2), base }
    }

    /// Whether the part would like some of its candidates better than others, as things are or may get.
    pub(in super::super) fn has_taste(&self, part: usize) -> bool {
        let taste = &self.parts[part].taste;
        taste.fixed.windows(2).any(|two| two[0] != two[1])
            || !taste.pods.is_empty()
            || !taste.spread.is_empty()
    }

    /// Whether what the part would like changes as pods of the gang are put somewhere.
    pub(in super::super) fn has_changing_taste(&self, part: usize) -> bool {
        self.tasted(part).any(|counter| self.parts.iter().any(|other| other.raises.contains(&counter)))
    }

    /// Whether the part would rather not put a second pod where its first is.
    pub(in super::super) fn likes_distance(&self, part: usize) -> bool {
        let taste = &self.parts[part].taste;
        let apart = taste.pods.iter().filter(|(_, weight)| *weight < 0).map(|(counter, _)| *counter);
        apart.chain(taste.spread.iter().map(|one| one.counter)).any(|counter| self.raises(part, counter))
    }

    /// Counters of pods in whose domains pods of the part would like to be and that they raise themselves.
    pub(in super::super) fn likes_itself(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        let near = self.parts[part].taste.pods.iter().filter(|(_, weight)| *weight > 0);
        near.map(|(counter, _)| *counter).filter(move |counter| self.raises(part, *counter))
    }

    fn tasted(&self, part: usize) -> impl Iterator<Item = usize> + '_ {
        let taste = &self.parts[part].taste;
        taste.pods.iter().map(|(counter, _)| *counter).chain(taste.spread.iter().map(|one| one.counter))
    }

    /// How much a pod of the part would like each of its candidates now, in their order.
    pub(in super::super) fn scores(&self, part: usize) -> Vec<i64> {
        let rules = &self.parts[part];
        let mut scores = rules.taste.fixed.clone();
        if !rules.taste.pods.is_empty() {
            let raw: Vec<i64> = rules.candidates.iter().map(|node| self.worth(part, *node)).collect();
            let (least, most) = (raw.iter().min().copied(), raw.iter().max().copied());
            if let (Some(least), Some(most)) = (least, most)
                && most > least
            {
                for (score, raw) in scores.iter_mut().zip(raw) {
                    *score += INTER_POD_AFFINITY * (SCORE_MAX * (raw - least) / (most - least));
                }
            }
        }
        if !rules.taste.spread.is_empty() {
            self.add_evenness(part, &mut scores);
        }
        scores
    }

    /// What the pods around a node are worth (InterPodAffinity).
    fn worth(&self, part: usize, node: NodeIx) -> i64 {
        let around =
            |(counter, weight): &(usize, i64)| weight * self.counters[*counter].at(node).map_or(0, i64::from);
        self.parts[part].taste.pods.iter().map(around).sum()
    }

    /// PodTopologySpread: nodes without one of the labels get nothing.
    fn add_evenness(&self, part: usize, scores: &mut [i64]) {
        let rules = &self.parts[part];
        let crowded = |node: &NodeIx| {
            let each = rules.taste.spread.iter().map(|one| {
                let there = i64::from(self.counters[one.counter].at(*node)?);
                Some(there * one.weight + one.base)
            });
            each.sum::<Option<i64>>().map(|sum| (sum + LN_UNIT / 2) / LN_UNIT)
        };
        let raw: Vec<Option<i64>> = rules.candidates.iter().map(crowded).collect();
        let least = raw.iter().flatten().min().copied().unwrap_or(0);
        let most = raw.iter().flatten().max().copied().unwrap_or(0);
        for (score, raw) in scores.iter_mut().zip(raw) {
            let even = raw.map_or(0, |raw| match most {
                0 => SCORE_MAX,
                most => SCORE_MAX * (most + least - raw) / most,
            });
            *score += POD_TOPOLOGY_SPREAD * even;
        }
    }
}

/// The natural logarithm of a whole number, in units of 1/1024 and rounded down: the same on every
/// machine, which floating point does not promise.
fn ln(number: u64) -> i64 {
    let whole = number.max(1).ilog2();
    // The rest is between 1 and 2; squaring it gives one binary digit of its logarithm after the other.
    let mut rest = (u128::from(number.max(1)) << 32) >> whole;
    let mut log = i64::from(whole) * LN_UNIT;
    for digit in 1..=10 {
        rest = (rest * rest) >> 32;
        if rest >= 2 << 32 {
            rest >>= 1;
            log += LN_UNIT >> digit;
        }
    }
    log * LN_2 / LN_UNIT
}

#[cfg(test)]
mod tests {
    use super::ln;

    #[test]
    fn logarithms_are_those_of_mathematics() {
        for number in 1..=5_000u64 {
            let exact = (number as f64).ln() * 1024.0;
            assert!((ln(number) as f64 - exact).abs() < 6.0, "ln({number}): {} for {exact}", ln(number));
        }
    }
}
