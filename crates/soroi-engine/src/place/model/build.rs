//! From the cluster to the model.

use super::{Choice, Model, Piece};
use crate::cluster::{Cluster, NodeIx};
use crate::event::Amount;
use crate::place::bundle::Bundle;
use crate::place::part::{Part, Region, Wish, region_of};
use crate::resources::ResourceIx;
use crate::topology::{DomainIx, Group, Tree};

/// More nodes than this divided by the parts are not looked at: the arrays would take more memory
/// than the cluster. Only gangs of very many shapes get there.
const CELLS_MAX: usize = 4_000_000;
/// Regions of one bundle that are looked at.
const REGIONS_MAX: usize = 1_024;

/// What one part sees: nodes with room for it, and where it may go.
struct Sight {
    nodes: Vec<NodeIx>,
    regions: Vec<Region>,
    /// Pods that fit if the part is alone.
    room: u64,
}

impl Model {
    /// Copies what matters: nodes on which at least one of the pods fits now. Of nodes that are
    /// the same in every respect, no more than there are pods.
    pub(in crate::place) fn new(cluster: &mut Cluster, parts: &[Part], bundles: &[Bundle]) -> Self {
        let mut cut = false;
        let sights: Vec<Sight> = parts.iter().map(|part| look(cluster, part, &mut cut)).collect();
        let requests = Requests::of(parts, cluster);
        let nodes = representatives(cluster, parts, &sights, &requests, &mut cut);
        let mut free = Vec::with_capacity(nodes.len() * requests.resources.len());
        for (node, _) in &nodes {
            free.extend(requests.free(cluster, *node));
        }
        let mut model = Self {
            parts: parts.len(),
            kinds: nodes.iter().map(|(_, kind)| *kind).collect(),
            nodes: nodes.into_iter().map(|(node, _)| node).collect(),
            resources: requests.resources.len(),
            free,
            pieces: Vec::new(),
            choices: Vec::new(),
            placed: Vec::new(),
            moves: Vec::new(),
            chosen: Vec::new(),
            choice_of: Vec::new(),
            work: 0,
            stuck: None,
            alone: sights.iter().map(|sight| sight.room).collect(),
            cut,
        };
        let numbers = Numbers::of(&model.nodes);
        for bundle in bundles {
            model.add(cluster, parts, bundle, &sights, &requests, &numbers);
        }
        model.placed = vec![0; model.pieces.len() * model.nodes.len()];
        model.chosen = vec![0; model.choices.len()];
        model
    }

    fn add(
        &mut self,
        cluster: &Cluster,
        parts: &[Part],
        bundle: &Bundle,
        sights: &[Sight],
        requests: &Requests,
        numbers: &Numbers,
    ) {
        let lead = bundle.parts[0];
        let tree = cluster.topologies().tree(parts[lead].topology.as_ref());
        let nodes_of = |model: &Self, region: &Region| -> Vec<usize> {
            let within = |at: &usize| tree.is_some_and(|tree| contains(tree, region, model.nodes[*at]));
            (0..model.nodes.len()).filter(within).collect()
        };
        if let [Region::Pinned(pins)] = &sights[lead].regions[..] {
            for (region, count) in pins {
                let pieces =
                    vec![self.piece((lead, &parts[lead]), &sights[lead], requests, *count, numbers, tree)];
                let regions = vec![nodes_of(self, region)];
                self.choices.push(Choice { pieces, regions });
            }
            return;
        }
        let mut pieces = Vec::new();
        for &part in &bundle.parts {
            let count = parts[part].count;
            pieces.push(self.piece((part, &parts[part]), &sights[part], requests, count, numbers, tree));
        }
        let shared = sights[lead]
            .regions
            .iter()
            .filter(|region| bundle.parts.iter().all(|part| sights[*part].regions.contains(region)));
        let regions = shared.map(|region| nodes_of(self, region)).collect();
        self.choices.push(Choice { pieces, regions });
    }

    /// A new piece, of the choice that is added next.
    fn piece(
        &mut self,
        (part, asked): (usize, &Part),
        sight: &Sight,
        requests: &Requests,
        count: u32,
        numbers: &Numbers,
        tree: Option<&Tree>,
    ) -> usize {
        let mut allowed = vec![false; self.nodes.len()];
        for at in sight.nodes.iter().filter_map(|node| numbers.get(*node)) {
            allowed[at] = true;
        }
        let domains = |level: usize| {
            let domain = |node: &NodeIx| match tree {
                Some(tree) if level <= tree.depth() => tree.domain_of(*node, level).map(|domain| domain.0),
                _ => Some(node.0),
            };
            self.nodes.iter().map(|node| domain(node).unwrap_or(u32::MAX)).collect()
        };
        let layers = asked.grain.layers().iter();
        let slices = layers.map(|(level, size)| (domains(*level), *size)).collect();
        self.pieces.push(Piece { part, requests: requests.of_part[part].clone(), count, allowed, slices });
        self.choice_of.push(self.choices.len());
        self.pieces.len() - 1
    }
}

/// The model's numbers of the cluster's nodes.
struct Numbers(Vec<Option<u32>>);

impl Numbers {
    fn of(nodes: &[NodeIx]) -> Self {
        let len = nodes.iter().map(|node| node.index() + 1).max().unwrap_or(0);
        let mut numbers = vec![None; len];
        for (at, node) in (0..).zip(nodes) {
            numbers[node.index()] = Some(at);
        }
        Self(numbers)
    }

    fn get(&self, node: NodeIx) -> Option<usize> {
        self.0.get(node.index()).copied().flatten().map(|at| at as usize)
    }
}

/// The requests of all parts, and the resources they name, under numbers of their own.
struct Requests {
    resources: Vec<ResourceIx>,
    of_part: Vec<Vec<(usize, Amount)>>,
}

impl Requests {
    fn of(parts: &[Part], cluster: &Cluster) -> Self {
        let mut resources: Vec<ResourceIx> =
            parts.iter().flat_map(|part| part.need.requests.iter().map(|(resource, _)| resource)).collect();
        // By name: numbers tell which resource was heard of first.
        resources.sort_unstable_by_key(|resource| cluster.resource_names().name(*resource));
        resources.dedup();
        let number =
            |resource: ResourceIx| resources.iter().position(|r| *r == resource).expect("all are listed");
        let of_part = parts
            .iter()
            .map(|part| {
                part.need.requests.iter().map(|(resource, amount)| (number(resource), amount)).collect()
            })
            .collect();
        Self { resources, of_part }
    }

    fn free(&self, cluster: &Cluster, node: NodeIx) -> Vec<Amount> {
        let space = &cluster.slot_of(node).space;
        self.resources.iter().map(|resource| space.free(*resource).max(0)).collect()
    }
}

fn look(cluster: &mut Cluster, part: &Part, cut: &mut bool) -> Sight {
    let Some(view) = part.view(cluster) else {
        return Sight { nodes: Vec::new(), regions: Vec::new(), room: 0 };
    };
    let every_node = view.index.at_least(Group::level(view.tree.depth() + 1), 1);
    let nodes = every_node.map(|(_, node)| NodeIx(node)).collect();
    let regions = match &part.wish {
        // Fewer domains were tried before: here any answer will do.
        Wish::Anywhere | Wish::Preferred(_) => vec![Region::Anywhere],
        Wish::Required(level) if part.bound.is_empty() => {
            let enough = view.index.at_least(Group::level(*level), u64::from(part.count));
            let mut regions: Vec<Region> =
                enough.take(REGIONS_MAX + 1).map(|(_, ix)| region_of(&view, *level, ix)).collect();
            *cut |= regions.len() > REGIONS_MAX;
            regions.truncate(REGIONS_MAX);
            regions
        }
        _ => part.regions(&view, part.count, 1).to_vec(),
    };
    Sight { nodes, regions, room: if part.wish == Wish::Nowhere { 0 } else { part.fitting(&view) } }
}

/// What tells one node from another, as far as this gang is concerned.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Likeness {
    /// The parts that find room there, one bit each.
    seen_by: Vec<u64>,
    /// Its domain in each topology of which some part needs one domain.
    leaves: Vec<Option<DomainIx>>,
    free: Vec<Amount>,
}

/// The nodes of all sights, at most as many of a kind as there are pods; each with a number that
/// is equal for nodes of one kind: those that no part's constraints or regions tell apart.
fn representatives(
    cluster: &Cluster,
    parts: &[Part],
    sights: &[Sight],
    requests: &Requests,
    cut: &mut bool,
) -> Vec<(NodeIx, usize)> {
    let mut kinds = kinds(cluster, parts, sights, requests);
    for equal in &mut kinds {
        equal.sort_unstable_by_key(|node| cluster.slot_of(*node).rank);
    }
    // Numbers of nodes and domains tell who came first; names decide instead.
    kinds.sort_unstable_by_key(|equal| cluster.slot_of(equal[0]).rank);
    let pods: u64 = parts.iter().map(|part| u64::from(part.count)).sum();
    let per_kind = usize::try_from(pods).unwrap_or(usize::MAX);
    let mut nodes = Vec::new();
    for (kind, equal) in kinds.into_iter().enumerate() {
        nodes.extend(equal.into_iter().take(per_kind).map(|node| (node, kind)));
    }
    nodes.sort_unstable_by_key(|(node, _)| cluster.slot_of(*node).rank);
    let nodes_max = CELLS_MAX / parts.len().max(1);
    *cut |= nodes.len() > nodes_max;
    nodes.truncate(nodes_max);
    nodes
}

/// The nodes of all sights, equal ones together; in no particular order.
fn kinds(cluster: &Cluster, parts: &[Part], sights: &[Sight], requests: &Requests) -> Vec<Vec<NodeIx>> {
    let needs_domain = |part: &&Part| {
        matches!(part.wish, Wish::Required(_) | Wish::Within(_) | Wish::Pinned(_)) || !part.grain.is_fine()
    };
    let mut topologies: Vec<_> =
        parts.iter().filter(needs_domain).map(|part| part.topology.as_ref()).collect();
    topologies.sort_unstable();
    topologies.dedup();
    let trees: Vec<&Tree> =
        topologies.into_iter().filter_map(|name| cluster.topologies().tree(name)).collect();

    let slots = sights.iter().flat_map(|sight| &sight.nodes).map(|node| node.index() + 1).max();
    let mut seen_by: Vec<Vec<u64>> = vec![Vec::new(); slots.unwrap_or(0)];
    for (part, sight) in sights.iter().enumerate() {
        for node in &sight.nodes {
            let bits = &mut seen_by[node.index()];
            bits.resize(parts.len().div_ceil(64), 0);
            bits[part / 64] |= 1 << (part % 64);
        }
    }
    let mut likenesses: Vec<(Likeness, NodeIx)> = Vec::new();
    for (ix, seen_by) in seen_by.into_iter().enumerate().filter(|(_, bits)| !bits.is_empty()) {
        let node = NodeIx::of(ix);
        let leaves = trees.iter().map(|tree| tree.leaf_of(node)).collect();
        likenesses.push((Likeness { seen_by, leaves, free: requests.free(cluster, node) }, node));
    }
    likenesses.sort_unstable();
    let equal = likenesses.chunk_by(|(a, _), (b, _)| a == b);
    equal.map(|chunk| chunk.iter().map(|(_, node)| *node).collect()).collect()
}

/// Whether a node lies in a region.
pub(in crate::place) fn contains(tree: &Tree, region: &Region, node: NodeIx) -> bool {
    match region {
        Region::Node(only) => *only == node,
        Region::Domain(domain) => tree.domain_of(node, tree.domain(*domain).level) == Some(*domain),
        Region::Anywhere | Region::Spread => tree.leaf_of(node).is_some(),
        Region::Pinned(pins) => pins.iter().any(|(region, _)| contains(tree, region, node)),
    }
}
