//! Pod sets in slices, as parts that each are placed by themselves.
//!
//! A slice of which some members sit somewhere already is mended first: what it lacks goes into its
//! own domain (Kueue, replacement of nodes within the slice's domain). All else are whole slices,
//! which the index counts. A rest that is smaller than a slice gets the room of a whole one.

use smallvec::{SmallVec, smallvec};

use super::PodSetRequest;
use super::part::{Part, Region, Wish, room};
use crate::cluster::{Cluster, NodeIx};
use crate::event::Name;
use crate::topology::{Grain, Tree};

/// What a slice that lost members lacks.
struct Gap {
    region: Region,
    /// How its own slices lie within it.
    inner: Grain,
    missing: u32,
}

impl Part {
    /// The parts that a pod set consists of: one, unless slices of it are to be mended.
    pub(super) fn all_of(cluster: &mut Cluster, pod_set: &PodSetRequest) -> SmallVec<[Self; 1]> {
        let mut part = Self::new(cluster, pod_set);
        if part.grain.is_fine() || matches!(part.wish, Wish::Nowhere | Wish::Pinned(_)) {
            return smallvec![part];
        }
        let mut parts: SmallVec<[Self; 1]> = SmallVec::new();
        let (gaps, rest) = part.gaps(cluster, pod_set);
        for Gap { region, inner, missing } in gaps {
            let wish = Wish::Within(region);
            parts.push(Self { wish, grain: inner, count: missing, bound: Vec::new(), ..part.clone() });
        }
        if rest > 0 || parts.is_empty() {
            // More pods than a number can say are refused like any that find no room.
            part.count = rest.checked_next_multiple_of(part.grain.whole()).unwrap_or(u32::MAX);
            parts.push(part);
        }
        parts
    }

    /// Where slices lack members, as far as the pods asked for go, and how many pods are left for
    /// whole slices. Where there is room comes first: replacements may come one by one.
    fn gaps(&self, cluster: &mut Cluster, pod_set: &PodSetRequest) -> (Vec<Gap>, u32) {
        let mut members: Vec<(NodeIx, u32)> = Vec::new();
        for (node, count) in &pod_set.bound {
            members.extend(cluster.node_ix(node).map(|node| (node, *count)));
        }
        let (mut gaps, mut left) = (Vec::new(), self.count);
        let layers = self.grain.layers().to_vec();
        for (at, &(level, size)) in layers.iter().enumerate().rev() {
            let inner = Grain::nested(&layers[at + 1..]);
            let mut open = incomplete(cluster, self, &members, (level, size));
            open.sort_by_key(|(_, missing, _)| *missing);
            let mut found = Vec::new();
            for with_room in [true, false] {
                for (region, missing, node) in &mut open {
                    let room = match with_room {
                        true => self.room_within(cluster, &inner, region),
                        false => u32::MAX,
                    };
                    let here = (*missing).min(left).min(room);
                    let here = here - here % inner.whole();
                    *missing -= here;
                    left -= here;
                    if here > 0 {
                        // They complete the slices around this one, too.
                        members.push((*node, here));
                        found.push(Gap { region: region.clone(), inner: inner.clone(), missing: here });
                    }
                }
            }
            gaps.extend(found);
        }
        (gaps, left)
    }

    fn room_within(&self, cluster: &mut Cluster, inner: &Grain, region: &Region) -> u32 {
        let view = cluster.index(&self.need, (self.topology.as_ref(), inner), !self.passing);
        view.map_or(0, |view| u32::try_from(room(view.index, region)).unwrap_or(u32::MAX))
    }
}

/// The domains of a level that hold a part of a slice, how many pods they lack, and one of the
/// nodes there; by name.
fn incomplete(
    cluster: &Cluster,
    part: &Part,
    members: &[(NodeIx, u32)],
    (level, size): (usize, u32),
) -> Vec<(Region, u32, NodeIx)> {
    let Some(tree) = cluster.topologies().tree(part.topology.as_ref()) else { return Vec::new() };
    let mut sums: Vec<(u64, Region, u32, NodeIx)> = Vec::new();
    for &(node, count) in members {
        let Some((rank, region)) = domain_at(cluster, tree, node, level) else { continue };
        match sums.iter_mut().find(|(_, other, _, _)| *other == region) {
            Some((_, _, sum, _)) => *sum = sum.saturating_add(count),
            None => sums.push((rank, region, count, node)),
        }
    }
    sums.sort_by_key(|(rank, _, _, _)| *rank);
    let lacking = sums.into_iter().filter(|(_, _, sum, _)| sum % size != 0);
    lacking.map(|(_, region, sum, node)| (region, size - sum % size, node)).collect()
}

fn domain_at(cluster: &Cluster, tree: &Tree, node: NodeIx, level: usize) -> Option<(u64, Region)> {
    if level > tree.depth() {
        return tree.leaf_of(node).map(|_| (cluster.slot_of(node).rank, Region::Node(node)));
    }
    tree.domain_of(node, level).map(|domain| (tree.domain(domain).rank, Region::Domain(domain)))
}

/// Takes back what was placed only because a smaller slice got the room of a whole one: the last
/// pods in the order of domains, so that all but the last slice stay whole.
pub(super) fn trim(cluster: &Cluster, pod_set: &PodSetRequest, taken: &mut super::Taken) {
    let placed = taken.iter().fold(0u32, |sum, (_, count)| sum.saturating_add(*count));
    let mut surplus = placed.saturating_sub(pod_set.asked());
    if surplus == 0 {
        return;
    }
    cluster.by_domain(pod_set.topology.as_ref(), taken);
    while surplus > 0
        && let Some((node, count)) = taken.pop()
    {
        let gone = count.min(surplus);
        surplus -= gone;
        if count > gone {
            taken.push((node, count - gone));
        }
    }
}

impl Cluster {
    /// Sorts named nodes by their domains' paths in the topology, then by name; those outside of it,
    /// and unknown ones, come last.
    pub(crate) fn sort_by_domain(&self, topology: Option<&Name>, nodes: &mut [(Name, u32)]) {
        let Some(tree) = topology.and_then(|_| self.topologies().tree(topology)) else { return };
        let rank = |node: &Name| {
            let leaf = self.node_ix(node).and_then(|node| Some(tree.domain(tree.leaf_of(node)?).rank));
            (leaf.is_none(), leaf)
        };
        nodes.sort_by(|(a, _), (b, _)| rank(a).cmp(&rank(b)).then_with(|| a.cmp(b)));
    }

    /// Sorts nodes by their domains' paths, then by name; those outside of the topology come last.
    pub(super) fn by_domain(&self, topology: Option<&Name>, nodes: &mut [(NodeIx, u32)]) {
        let tree = self.topologies().tree(topology);
        let rank = |node: NodeIx| {
            let leaf = tree.and_then(|tree| Some(tree.domain(tree.leaf_of(node)?).rank));
            (leaf.is_none(), leaf, self.slot_of(node).rank)
        };
        nodes.sort_by_key(|(node, _)| rank(*node));
    }
}
