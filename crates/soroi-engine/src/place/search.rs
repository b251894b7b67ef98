//! Several pod sets that compete for the same nodes.
//!
//! In the order in which answers are cheap: each alone (exact, and a "no" is final), one after the
//! other with a look ahead (the scarcest first, the one that failed before the others next time),
//! then on a small copy of what matters (`model`), where pods already placed make way, and where
//! all possibilities are tried if they are few.

use super::Taken;
use super::bundle::{Bundle, Merged, bundles};
use super::model::{Model, Verdict};
use super::part::{Part, Region, Wish};
use super::problem::explain;
use crate::cluster::Cluster;
use crate::reason::PlaceProblem;

/// Regions of each level that are tried for one pod set before the others are thought of. The
/// tightest ones are the best, and what hides beyond them `model` still finds.
const REGIONS_TRIED: usize = 8;
/// Pod sets of which each has an index over the nodes. More different shapes than that in one gang
/// are rare, and indexes for all of them would throw out everybody else's.
const INDEXED_MAX: usize = 32;
/// Work (fits computed) for one question, about 10 ns each: 20 ms. A gang for which this does not
/// suffice waits with the reason "not proven", and is asked again when something changes.
const WORK_MAX: u64 = 2_000_000;

type Problems = Vec<(usize, PlaceProblem)>;

/// Places all parts, or says which found no room and why. With `min_members`, places as many as it
/// can and at least these.
pub(super) fn place(
    cluster: &mut Cluster,
    parts: Vec<Part>,
    min_members: Option<u32>,
) -> Result<Vec<Taken>, Problems> {
    let mut merged = Merged::of(parts);
    let bundles = bundles(&mut merged.parts);
    let mut work = WORK_MAX;
    let answer = match whole(cluster, &merged.parts, &bundles, &mut work) {
        Err(problems) => match min_members {
            Some(min) => fewer(cluster, &merged.parts, &bundles, min, &mut work).ok_or(problems),
            None => Err(problems),
        },
        found => found,
    };
    match answer {
        Ok(taken) => Ok(merged.deal(taken)),
        Err(problems) => Err(problems
            .into_iter()
            .flat_map(|(part, problem)| {
                merged.originals(part).map(move |at| (at, problem.clone())).collect::<Vec<_>>()
            })
            .collect()),
    }
}

/// Gangs of very many shapes do not keep indexes.
pub(super) fn mind_others(parts: &mut [Part]) {
    let passing = parts.len() > INDEXED_MAX;
    for part in parts {
        part.passing = passing;
    }
}

fn whole(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    let alone = misfits(cluster, parts);
    if !alone.is_empty() {
        return Err(alone);
    }
    if let [part] = parts {
        let taken = part.view(cluster).and_then(|view| {
            let region = part.region(&view, part.count)?;
            Some(part.take(&view, &region, part.count))
        });
        return taken.map(|taken| vec![taken]).ok_or_else(|| vec![(0, explain(cluster, part, false))]);
    }
    let stuck = if parts.len() <= INDEXED_MAX {
        match one_by_one(cluster, parts, bundles) {
            Ok(taken) => return Ok(taken),
            Err(stuck) => stuck,
        }
    } else {
        Stuck { bundle: 0, problems: Vec::new() }
    };
    let mut model = Model::new(cluster, parts, bundles);
    match model.solve(work) {
        Verdict::Found(taken) => Ok(taken),
        Verdict::Impossible => Err(stuck.explained(cluster, parts, bundles, false)),
        Verdict::GaveUp => Err(stuck.explained(cluster, parts, bundles, true)),
    }
}

/// Parts that would not fit even if they were alone.
fn misfits(cluster: &mut Cluster, parts: &[Part]) -> Problems {
    let mut problems = Problems::new();
    for (at, part) in parts.iter().enumerate() {
        let room = part.view(cluster).map_or(0, |view| part.fitting(&view));
        if room < u64::from(part.count) || part.wish == Wish::Nowhere {
            problems.push((at, explain(cluster, part, false)));
        }
    }
    problems
}

/// A bundle that found no region after others had been placed, and what it lacked then.
struct Stuck {
    bundle: usize,
    problems: Problems,
}

impl Stuck {
    fn explained(
        self,
        cluster: &mut Cluster,
        parts: &[Part],
        bundles: &[Bundle],
        unproven: bool,
    ) -> Problems {
        let mut problems = self.problems;
        if problems.is_empty() {
            let all = bundles[self.bundle].parts.iter();
            problems = all.map(|at| (*at, explain(cluster, &parts[*at], unproven))).collect();
        }
        for (_, problem) in &mut problems {
            problem.unproven = unproven;
        }
        problems
    }
}

/// Places one bundle after the other, scarcest first. A bundle that gets stuck goes first in the
/// next attempt.
fn one_by_one(cluster: &mut Cluster, parts: &[Part], bundles: &[Bundle]) -> Result<Vec<Taken>, Stuck> {
    let mut order = by_scarcity(cluster, parts, bundles);
    let mut tried: Vec<Vec<usize>> = Vec::new();
    loop {
        let savepoint = cluster.savepoint();
        let attempt = in_order(cluster, parts, bundles, &order);
        cluster.rollback(savepoint);
        let stuck = match attempt {
            Ok(taken) => return Ok(taken),
            Err(stuck) => stuck,
        };
        tried.push(order.clone());
        let at = order.iter().position(|bundle| *bundle == stuck.bundle).expect("it is one of them");
        order[..=at].rotate_right(1);
        if tried.len() > bundles.len() || tried.contains(&order) {
            return Err(stuck);
        }
    }
}

/// The bundle with the least room for each of its pods first; then the one with fewer pods, which
/// are likelier to be large.
fn by_scarcity(cluster: &mut Cluster, parts: &[Part], bundles: &[Bundle]) -> Vec<usize> {
    let slack = |cluster: &mut Cluster, at: &usize| {
        let part = &parts[*at];
        let room = part.view(cluster).map_or(0, |view| part.fitting(&view));
        (room.saturating_mul(1024) / u64::from(part.count.max(1)), part.count)
    };
    let mut order: Vec<(_, usize)> = bundles
        .iter()
        .enumerate()
        .map(|(bundle, b)| (b.parts.iter().map(|at| slack(cluster, at)).min(), bundle))
        .collect();
    order.sort_unstable();
    order.into_iter().map(|(_, bundle)| bundle).collect()
}

fn in_order(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    order: &[usize],
) -> Result<Vec<Taken>, Stuck> {
    let mut all = vec![Taken::new(); parts.len()];
    for (at, &bundle) in order.iter().enumerate() {
        let later = &order[at + 1..];
        let mut stuck = None;
        let mut found = false;
        for region in bundles[bundle].regions(cluster, parts, REGIONS_TRIED) {
            let savepoint = cluster.savepoint();
            let taken = fill(cluster, parts, &bundles[bundle], &region);
            let blocked = later.iter().find(|later| bundles[**later].regions(cluster, parts, 1).is_empty());
            match (taken, blocked) {
                (Some(taken), None) => {
                    cluster.commit(savepoint);
                    for (part, nodes) in bundles[bundle].parts.iter().zip(taken) {
                        all[*part] = nodes;
                    }
                    found = true;
                    break;
                }
                (_, blocked) => {
                    if let Some(&blocked) = blocked {
                        let problems = stuck_on(cluster, parts, &bundles[blocked]);
                        stuck.get_or_insert(Stuck { bundle: blocked, problems });
                    }
                    cluster.rollback(savepoint);
                }
            }
        }
        if !found {
            let own = || Stuck { bundle, problems: stuck_on(cluster, parts, &bundles[bundle]) };
            return Err(stuck.unwrap_or_else(own));
        }
    }
    Ok(all)
}

fn stuck_on(cluster: &mut Cluster, parts: &[Part], bundle: &Bundle) -> Problems {
    let problems = bundle.parts.iter().map(|at| (*at, explain(cluster, &parts[*at], false)));
    let mut problems: Problems = problems.collect();
    if problems.iter().any(|(_, problem)| problem.fitting < problem.asked) {
        problems.retain(|(_, problem)| problem.fitting < problem.asked);
    }
    problems
}

/// Takes room for all parts of a bundle in one region, largest need for room first.
fn fill(cluster: &mut Cluster, parts: &[Part], bundle: &Bundle, region: &Region) -> Option<Vec<Taken>> {
    let mut order: Vec<usize> = (0..bundle.parts.len()).collect();
    if order.len() > 1 {
        order.sort_by_key(|at| {
            let part = &parts[bundle.parts[*at]];
            let room = part.view(cluster).map_or(0, |view| super::part::room(view.index, region));
            (room / u64::from(part.count.max(1)), part.count)
        });
    }
    let mut all = vec![Taken::new(); bundle.parts.len()];
    for at in order {
        let part = &parts[bundle.parts[at]];
        let view = part.view(cluster)?;
        if super::part::room(view.index, region) < u64::from(part.count) {
            return None;
        }
        let taken = part.take(&view, region, part.count);
        for (node, count) in &taken {
            cluster.take(*node, &part.need, *count);
        }
        all[at] = taken;
    }
    Some(all)
}

/// As many pods as possible, at least `min`: pod sets give up pods one after the other, in a few
/// orders of importance, and the order that keeps most pods wins.
fn fewer(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    min: u32,
    work: &mut u64,
) -> Option<Vec<Taken>> {
    let alone: Vec<u32> = parts
        .iter()
        .map(|part| {
            let room = part.view(cluster).map_or(0, |view| part.fitting(&view));
            u32::try_from(room).unwrap_or(u32::MAX).min(part.count)
        })
        .collect();
    let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    if sum(&alone) < u64::from(min) {
        return None;
    }
    let in_turn: Vec<usize> = (0..parts.len()).collect();
    let backwards: Vec<usize> = in_turn.iter().rev().copied().collect();
    let roomiest: Vec<usize> = {
        let mut order = in_turn.clone();
        order.sort_by_key(|at| (std::cmp::Reverse(alone[*at]), *at));
        order
    };
    let mut best: Option<(u64, Vec<Taken>)> = None;
    for order in [in_turn, backwards, roomiest] {
        let kept = keep_most(cluster, parts, bundles, &order, &alone, work);
        let total = sum(&kept.0);
        if total >= u64::from(min) && best.as_ref().is_none_or(|(most, _)| total > *most) {
            best = Some((total, kept.1));
        }
    }
    best.map(|(_, taken)| taken)
}

/// Gives each pod set in turn as many pods as still fit beside those before it.
fn keep_most(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    order: &[usize],
    alone: &[u32],
    work: &mut u64,
) -> (Vec<u32>, Vec<Taken>) {
    let mut kept: Vec<Part> = parts.to_vec();
    for part in &mut kept {
        part.count = 0;
    }
    let mut best = vec![Taken::new(); parts.len()];
    for &at in order {
        let (mut low, mut high) = (0, alone[at]);
        while low < high {
            let middle = high - (high - low) / 2;
            kept[at].count = middle;
            match whole_of_some(cluster, &kept, bundles, work) {
                Some(taken) => (low, best) = (middle, taken),
                None => high = middle - 1,
            }
        }
        kept[at].count = low;
    }
    (kept.iter().map(|part| part.count).collect(), best)
}

/// [`whole`] for those parts that have pods left.
fn whole_of_some(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Option<Vec<Taken>> {
    let some: Vec<usize> = (0..parts.len()).filter(|at| parts[*at].count > 0).collect();
    let new_ix = |at: &usize| some.iter().position(|some| some == at);
    let some_parts: Vec<Part> = some.iter().map(|at| parts[*at].clone()).collect();
    let some_bundles: Vec<Bundle> = bundles
        .iter()
        .map(|bundle| Bundle { parts: bundle.parts.iter().filter_map(new_ix).collect() })
        .filter(|bundle| !bundle.parts.is_empty())
        .collect();
    let taken = whole(cluster, &some_parts, &some_bundles, work).ok()?;
    let mut all = vec![Taken::new(); parts.len()];
    for (at, taken) in some.into_iter().zip(taken) {
        all[at] = taken;
    }
    Some(all)
}
