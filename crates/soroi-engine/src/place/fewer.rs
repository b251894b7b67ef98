//! Not all pods fit, but perhaps enough of them.

use std::cmp::Reverse;

use super::Taken;
use super::bundle::Bundle;
use super::part::Part;
use super::search::whole;
use crate::cluster::Cluster;

/// As many pods as possible, at least `min`: pod sets give up pods one after the other, in a few
/// orders of importance, and the order that keeps most pods wins (the first of equals: pod sets
/// are kept in the order of the request).
pub(super) fn fewer(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    min: u32,
    work: &mut u64,
) -> Option<Vec<Taken>> {
    let room = |part: &Part| part.view(cluster).map_or(0, |view| part.fitting(&view));
    let alone: Vec<u32> = parts
        .iter()
        .map(room)
        .zip(parts)
        .map(|(room, part)| u32::try_from(room).unwrap_or(u32::MAX).min(part.count))
        .collect();
    let sum = |counts: &[u32]| counts.iter().map(|count| u64::from(*count)).sum::<u64>();
    if sum(&alone) < u64::from(min) {
        return None;
    }
    let in_turn: Vec<usize> = (0..parts.len()).collect();
    let backwards: Vec<usize> = in_turn.iter().rev().copied().collect();
    let mut roomiest = in_turn.clone();
    roomiest.sort_by_key(|at| (Reverse(alone[*at]), *at));
    let mut orders = vec![in_turn, backwards, roomiest];
    if parts.len() == 1 {
        orders.truncate(1);
    }
    let mut best: Option<(u64, Vec<Taken>)> = None;
    for order in orders {
        let (kept, taken) = keep_most(cluster, parts, bundles, &order, &alone, work);
        let total = sum(&kept);
        if total >= u64::from(min) && best.as_ref().is_none_or(|(most, _)| total > *most) {
            best = Some((total, taken));
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
            match whole(cluster, &kept, bundles, work) {
                Ok(taken) => (low, best) = (middle, taken),
                Err(_) => high = middle - 1,
            }
        }
        kept[at].count = low;
    }
    (kept.iter().map(|part| part.count).collect(), best)
}
