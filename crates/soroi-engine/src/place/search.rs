//! Several pod sets that compete for the same nodes.
//!
//! In the order in which answers are cheap: each alone (exact, and a "no" is final), one after the
//! other with a look ahead (the scarcest first, the one that failed before the others next time),
//! then on a small copy of what matters (`model`), where pods already placed make way, and where
//! all possibilities are tried if they are few.

use super::Taken;
use super::among;
use super::bundle::{Bundle, Merged, bundles};
use super::closer::closer;
use super::fewer::{Fewer, fewer};
use super::model::{Model, Verdict};
use super::part::{Part, Region, Wish, room};
use super::problem::{Problems, explain, explain_bundle};
use crate::cluster::Cluster;
use crate::minima::Minima;
use crate::packing::Packing;

/// Regions of each level that are tried for one pod set before the others are thought of. The
/// tightest ones are the best, and what hides beyond them `model` still finds.
const REGIONS_TRIED: usize = 8;
/// Pod sets of which each has an index over the nodes. More different shapes than that in one gang
/// are rare, and indexes for all of them would throw out everybody else's.
const INDEXED_MAX: usize = 32;
/// Work (fits computed) for one question, about 10 ns each: 20 ms. A gang for which this does not
/// suffice waits with the reason "not proven", and is asked again when something changes.
const WORK_MAX: u64 = 2_000_000;

/// Places all parts, or says which found no room and why. With minima, places as many as it can and
/// at least these.
pub(super) fn place(
    cluster: &mut Cluster,
    mut parts: Vec<Part>,
    minima: Option<&Minima>,
    packing: Packing,
) -> Result<Vec<Taken>, Problems> {
    let passing = parts.len() > INDEXED_MAX;
    for part in &mut parts {
        part.passing = passing;
    }
    let mut merged = Merged::of(parts);
    let bundles = bundles(&mut merged.parts);
    let mut work = WORK_MAX;
    let answer = whole(cluster, &merged.parts, &bundles, &mut work).or_else(|problems| {
        let Some(minima) = minima else { return Err(problems) };
        match fewer(cluster, &merged, &bundles, minima, &mut work) {
            Fewer::Found(kept, taken) => {
                merged.keep(&kept);
                Ok(taken)
            }
            Fewer::Impossible => Err(proven(problems)),
            Fewer::GaveUp => Err(unproven(problems)),
        }
    });
    let answer = answer.map(|taken| match among::prefer::concerns(cluster, &merged.parts, packing) {
        true => among::prefer::prefer(cluster, &merged.parts, &bundles, taken, packing),
        false => taken,
    });
    answer.map(|taken| merged.deal(cluster, taken)).map_err(|problems| merged.deal_problems(problems))
}

/// Places all parts that have pods, or says which found no room.
pub(super) fn whole(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    let some: Vec<usize> = (0..parts.len()).filter(|at| parts[*at].count > 0).collect();
    if some.len() == parts.len() {
        return whole_of_some(cluster, parts, bundles, work);
    }
    let some_parts: Vec<Part> = some.iter().map(|at| parts[*at].clone()).collect();
    let some_bundles: Vec<Bundle> = bundles.iter().filter_map(|bundle| bundle.of(&some)).collect();
    let found = whole_of_some(cluster, &some_parts, &some_bundles, work);
    let mut all = vec![Taken::new(); parts.len()];
    let found =
        found.map_err(|problems| problems.into_iter().map(|(at, p)| (some[at], p)).collect::<Vec<_>>())?;
    for (at, taken) in some.into_iter().zip(found) {
        all[at] = taken;
    }
    Ok(all)
}

fn whole_of_some(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    if !among::concerns(cluster, parts) {
        return by_room(cluster, parts, bundles, work);
    }
    if parts.iter().any(|part| !part.grain.is_fine()) {
        // Portions of pods in domains are found by room alone; what is found must suit the others.
        let found = by_room(cluster, parts, bundles, work)?;
        return among::judge(cluster, parts, found);
    }
    let alone = misfits(cluster, parts, bundles);
    if alone.is_empty() { among::place(cluster, parts, bundles, work) } else { Err(alone) }
}

/// Places parts whose pods do not mind others.
fn by_room(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    if let [part] = parts {
        let taken = part.view(cluster).and_then(|view| {
            let region = part.region(&view, part.count)?;
            Some(part.take(&view, &region, part.count))
        });
        return taken.map(|taken| vec![taken]).ok_or_else(|| vec![(0, explain(cluster, part))]);
    }
    if parts.iter().any(|part| part.passing) {
        return in_passing(cluster, parts, bundles, work);
    }
    let alone = misfits(cluster, parts, bundles);
    if !alone.is_empty() {
        return Err(alone);
    }
    let found = together(cluster, parts, bundles, work)?;
    Ok(closer(cluster, parts, bundles, found, work))
}

/// Places parts that all fit alone.
pub(super) fn together(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    let stuck = match one_by_one(cluster, parts, bundles) {
        Ok(taken) => return Ok(taken),
        Err(stuck) => stuck,
    };
    match Model::new(cluster, parts, bundles).solve(work) {
        Verdict::Found(taken) => Ok(taken),
        Verdict::Impossible => Err(stuck.problems),
        Verdict::GaveUp => Err(unproven(stuck.problems)),
    }
}

/// Gangs of very many shapes are decided in the model alone.
fn in_passing(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    work: &mut u64,
) -> Result<Vec<Taken>, Problems> {
    let mut model = Model::new(cluster, parts, bundles);
    let misfit = (0..parts.len()).find(|at| model.room_alone(*at) < u64::from(parts[*at].count));
    if let Some(misfit) = misfit.or_else(|| parts.iter().position(|part| part.wish == Wish::Nowhere)) {
        return Err(vec![(misfit, explain(cluster, &parts[misfit]))]);
    }
    let verdict = model.solve(work);
    if let Verdict::Found(taken) = verdict {
        return Ok(taken);
    }
    let (part, placed) = model.stuck().unwrap_or((0, 0));
    let mut problem = explain(cluster, &parts[part]);
    problem.fitting = problem.fitting.min(placed);
    problem.unproven = matches!(verdict, Verdict::GaveUp);
    Err(vec![(part, problem)])
}

fn unproven(mut problems: Problems) -> Problems {
    problems.iter_mut().for_each(|(_, problem)| problem.unproven = true);
    problems
}

/// That not all fit may not be proven; that not enough do is.
fn proven(mut problems: Problems) -> Problems {
    problems.iter_mut().for_each(|(_, problem)| problem.unproven = false);
    problems
}

/// Parts, or bundles that must share a region, that would not fit even if they were alone.
fn misfits(cluster: &mut Cluster, parts: &[Part], bundles: &[Bundle]) -> Problems {
    let mut problems = Problems::new();
    for (at, part) in parts.iter().enumerate() {
        let room = part.view(cluster).map_or(0, |view| part.fitting(&view));
        if room < u64::from(part.count) || part.wish == Wish::Nowhere {
            problems.push((at, explain(cluster, part)));
        }
    }
    if problems.is_empty() {
        for bundle in bundles.iter().filter(|bundle| bundle.parts.len() > 1) {
            if bundle.regions(cluster, parts, usize::MAX).is_empty() {
                problems.extend(explain_bundle(cluster, parts, bundle));
            }
        }
    }
    problems
}

/// A bundle that found no region after others had been placed, and what it lacked then.
struct Stuck {
    bundle: usize,
    problems: Problems,
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
        let taken = first_good_region(cluster, parts, bundles, bundle, later)?;
        for (part, nodes) in bundles[bundle].parts.iter().zip(taken) {
            all[*part] = nodes;
        }
    }
    Ok(all)
}

/// Takes the best region of a bundle that leaves room for each of the later ones.
fn first_good_region(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    bundle: usize,
    later: &[usize],
) -> Result<Vec<Taken>, Stuck> {
    let mut stuck = None;
    for region in bundles[bundle].regions(cluster, parts, REGIONS_TRIED) {
        let savepoint = cluster.savepoint();
        if let Some(taken) = fill(cluster, parts, &bundles[bundle], &region) {
            let blocked = later.iter().find(|later| bundles[**later].regions(cluster, parts, 1).is_empty());
            let Some(&blocked) = blocked else {
                cluster.commit(savepoint);
                return Ok(taken);
            };
            stuck.get_or_insert_with(|| Stuck {
                bundle: blocked,
                problems: explain_bundle(cluster, parts, &bundles[blocked]),
            });
        }
        cluster.rollback(savepoint);
    }
    let own = || Stuck { bundle, problems: explain_bundle(cluster, parts, &bundles[bundle]) };
    Err(stuck.unwrap_or_else(own))
}

/// Takes room for all parts of a bundle in one region, scarcest first.
fn fill(cluster: &mut Cluster, parts: &[Part], bundle: &Bundle, region: &Region) -> Option<Vec<Taken>> {
    let mut order: Vec<usize> = (0..bundle.parts.len()).collect();
    if order.len() > 1 {
        order.sort_by_key(|at| {
            let part = &parts[bundle.parts[*at]];
            let room = part.view(cluster).map_or(0, |view| room(view.index, region));
            (room / u64::from(part.count.max(1)), part.count)
        });
    }
    let mut all = vec![Taken::new(); bundle.parts.len()];
    for at in order {
        let part = &parts[bundle.parts[at]];
        let view = part.view(cluster)?;
        if room(view.index, region) < u64::from(part.count) {
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
