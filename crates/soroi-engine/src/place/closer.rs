//! Preferred domains, once it is known that there are places at all.
//!
//! Pod sets that compete may each have been pushed further apart than they need be: then the gang
//! is placed again with one domain required where it is preferred, first of the preferred level,
//! then of coarser ones. Pod sets come in the order of the request: what an earlier one has got, a
//! later one does not take away.

use super::Taken;
use super::bundle::Bundle;
use super::part::{Part, Wish};
use super::search::together;
use crate::cluster::{Cluster, NodeIx};

/// Places at least as close together as `found`.
pub(super) fn closer(
    cluster: &mut Cluster,
    parts: &[Part],
    bundles: &[Bundle],
    mut found: Vec<Taken>,
    work: &mut u64,
) -> Vec<Taken> {
    let mut parts = parts.to_vec();
    for bundle in bundles {
        let Wish::Preferred(preferred) = parts[bundle.parts[0]].wish else { continue };
        let mut level = reached(cluster, &parts, bundle, &found, preferred);
        for nearer in (level + 1..=preferred).rev() {
            let before = parts.clone();
            wish(&mut parts, bundle, Wish::Required(nearer));
            if !bundle.regions(cluster, &parts, 1).is_empty()
                && let Ok(taken) = together(cluster, &parts, bundles, work)
            {
                (found, level) = (taken, nearer);
                break;
            }
            parts = before;
        }
        if level > 0 {
            wish(&mut parts, bundle, Wish::Required(level));
        }
    }
    found
}

fn wish(parts: &mut [Part], bundle: &Bundle, wish: Wish) {
    for at in &bundle.parts {
        parts[*at].wish = wish.clone();
    }
}

/// The finest level, up to this one, of which one domain holds the whole bundle (with the members
/// that were bound before); 0: none does.
pub(super) fn reached(
    cluster: &Cluster,
    parts: &[Part],
    bundle: &Bundle,
    found: &[Taken],
    finest: usize,
) -> usize {
    let lead = &parts[bundle.parts[0]];
    let Some(tree) = cluster.topologies().tree(lead.topology.as_ref()) else { return finest };
    let places = bundle.parts.iter().flat_map(|at| found[*at].iter().map(|(node, _)| *node));
    let nodes: Vec<NodeIx> = places.chain(lead.bound.iter().copied()).collect();
    let together = |level: &usize| match *level > tree.depth() {
        true => nodes.windows(2).all(|pair| pair[0] == pair[1]),
        false => nodes.windows(2).all(|pair| {
            tree.domain_of(pair[0], *level).is_some()
                && tree.domain_of(pair[0], *level) == tree.domain_of(pair[1], *level)
        }),
    };
    (1..=finest).rev().find(together).unwrap_or(0)
}
