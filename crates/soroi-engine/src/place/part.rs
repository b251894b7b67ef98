//! One pod set: where it may go, in order of preference, and what that takes.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{PodSetRequest, Taken};
use crate::cluster::{Cluster, Need, NodeIx};
use crate::event::{Name, TopologyRequest, TopologyWish, Who};
use crate::topology::{DomainIx, FitIndex, Grain, Group, Tree, View};

/// A pod set with its request resolved.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) need: Arc<Need>,
    pub(super) who: Option<Arc<Who>>,
    pub(super) topology: Option<Name>,
    pub(super) wish: Wish,
    /// In which portions its pods go into domains.
    pub(super) grain: Grain,
    pub(super) count: u32,
    pub(super) role: Option<Name>,
    /// Parts that must share one region say the same here.
    pub(super) group: Option<Name>,
    pub(super) bound: Vec<NodeIx>,
    /// Its shape is one of so many that no index is kept for it.
    pub(super) passing: bool,
}

/// A topology request, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Wish {
    /// Fewest nodes.
    Anywhere,
    /// One domain of this level.
    Required(usize),
    /// One domain of this level, or of a coarser one, or the fewest coarsest ones.
    Preferred(usize),
    /// In this one, whatever else there is.
    Within(Region),
    /// These domains with these counts.
    Pinned(Vec<(Vec<Name>, u32)>),
    /// What was asked for does not exist.
    Nowhere,
}

impl Wish {
    /// It says where, so that there is nothing to choose.
    pub(super) fn is_settled(&self) -> bool {
        matches!(self, Self::Within(_) | Self::Pinned(_))
    }
}

/// Where all pods of a part go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Region {
    /// Into this domain, in the fewest domains below it.
    Domain(DomainIx),
    /// Onto this node.
    Node(NodeIx),
    /// Into the fewest domains of the coarsest level, those of bound members first.
    Spread,
    /// Onto the fewest nodes.
    Anywhere,
    /// Into these, each with its count.
    Pinned(Vec<(Region, u32)>),
}

impl Part {
    pub(super) fn new(cluster: &mut Cluster, pod_set: &PodSetRequest) -> Self {
        let tree = cluster.topologies().tree(pod_set.topology.as_ref());
        let (wish, grain) = match tree {
            None => (Wish::Nowhere, Grain::FINE),
            Some(_) if !pod_set.pinned.is_empty() => {
                let pins = pod_set.pinned.iter().map(|d| (d.values.clone(), d.count)).collect();
                (Wish::Pinned(pins), Grain::FINE)
            }
            Some(tree) => resolved(&pod_set.request, tree).unwrap_or((Wish::Nowhere, Grain::FINE)),
        };
        Self {
            wish,
            grain,
            bound: pod_set.bound.iter().filter_map(|(node, _)| cluster.node_ix(node)).collect(),
            need: cluster.need(&pod_set.ask),
            who: pod_set.who.clone(),
            topology: pod_set.topology.clone(),
            count: pod_set.asked(),
            role: pod_set.role.clone(),
            passing: false,
            group: pod_set.group.clone(),
        }
    }

    /// What this part finds now; `None` if there is no such Topology.
    pub(super) fn view<'a>(&self, cluster: &'a mut Cluster) -> Option<View<'a>> {
        cluster.index(&self.need, (self.topology.as_ref(), &self.grain), !self.passing)
    }

    /// The best region that takes `count` pods now.
    pub(super) fn region(&self, view: &View<'_>, count: u32) -> Option<Region> {
        self.regions(view, count, 1).into_iter().next()
    }

    /// Regions that take `count` pods now, best first; of each level at most `limit`.
    pub(super) fn regions(&self, view: &View<'_>, count: u32, limit: usize) -> SmallVec<[Region; 1]> {
        let View { tree, index, .. } = *view;
        let anywhere = index.pods_in(DomainIx::ROOT) >= u64::from(count);
        let mut regions = SmallVec::new();
        if !count.is_multiple_of(self.grain.whole()) {
            return regions;
        }
        match &self.wish {
            Wish::Nowhere => {}
            Wish::Anywhere if anywhere => regions.push(self.everywhere(view)),
            Wish::Anywhere => {}
            Wish::Within(region) => {
                regions
                    .extend(Some(region).filter(|region| room(index, region) >= u64::from(count)).cloned());
            }
            Wish::Required(level) => self.add_domains(view, *level, count, limit, &mut regions),
            Wish::Preferred(level) => {
                for level in (1..=*level).rev() {
                    if limit > 1 || regions.is_empty() {
                        self.add_domains(view, level, count, limit, &mut regions);
                    }
                }
                if anywhere {
                    regions.push(if tree.depth() == 0 { Region::Anywhere } else { Region::Spread });
                }
            }
            Wish::Pinned(_) if count != self.count => {}
            Wish::Pinned(pins) => {
                let found = pins.iter().map(|(path, count)| Some((pinned(view, path, *count)?, *count)));
                regions.extend(found.collect::<Option<_>>().map(Region::Pinned));
            }
        }
        regions
    }

    /// The region of all nodes: slices need their domains to be looked at from the top.
    fn everywhere(&self, view: &View<'_>) -> Region {
        if self.grain.is_fine() || view.tree.depth() == 0 { Region::Anywhere } else { Region::Spread }
    }

    /// How many pods fit in the best region now.
    pub(super) fn fitting(&self, view: &View<'_>) -> u64 {
        let index = view.index;
        match &self.wish {
            Wish::Nowhere => 0,
            Wish::Anywhere | Wish::Preferred(_) => index.pods_in(DomainIx::ROOT),
            Wish::Required(level) if self.bound.is_empty() => {
                index.largest(Group::level(*level)).map_or(0, |(pods, _)| pods)
            }
            Wish::Required(level) => match self.home(view, *level) {
                Some(region) => room(index, &region),
                None => 0,
            },
            Wish::Within(region) => room(index, region),
            Wish::Pinned(pins) => pins
                .iter()
                .map(|(path, count)| {
                    let here = (0..=*count).rev().find(|count| pinned(view, path, *count).is_some());
                    u64::from(here.unwrap_or(0))
                })
                .sum(),
        }
    }

    /// Which nodes `count` pods get in a region that has the room.
    pub(super) fn take(&self, view: &View<'_>, region: &Region, count: u32) -> Taken {
        let mut taken = Taken::new();
        self.fill(view, region, u64::from(count), &mut taken);
        taken
    }

    fn fill(&self, view: &View<'_>, region: &Region, count: u64, taken: &mut Taken) {
        let View { tree, index, .. } = *view;
        match region {
            Region::Domain(domain) => fill_domain(view, *domain, count, taken),
            Region::Node(node) => taken.push((*node, narrow(count))),
            Region::Anywhere => {
                index.pick(Group::level(tree.depth() + 1), count, |node, pods| {
                    taken.push((NodeIx(node), narrow(pods)))
                });
            }
            Region::Spread => self.fill_spread(view, count, taken),
            Region::Pinned(regions) => {
                for (region, count) in regions {
                    self.fill(view, region, u64::from(*count), taken);
                }
            }
        }
    }

    fn fill_spread(&self, view: &View<'_>, count: u64, taken: &mut Taken) {
        let View { tree, index, .. } = *view;
        let mut rest = count;
        let mut homes: Vec<DomainIx> =
            self.bound.iter().filter_map(|node| tree.domain_of(*node, 1)).collect();
        homes.sort_unstable_by_key(|home| (std::cmp::Reverse(index.pods_in(*home)), tree.domain(*home).rank));
        homes.dedup();
        for home in &homes {
            let here = rest.min(index.pods_in(*home));
            fill_domain(view, *home, here, taken);
            rest -= here;
        }
        let mut picked = Vec::new();
        index.pick_except(
            Group::level(1),
            rest,
            |ix| homes.contains(&DomainIx(ix)),
            |ix, pods| picked.push((ix, pods)),
        );
        for (ix, pods) in picked {
            fill_domain(view, DomainIx(ix), pods, taken);
        }
    }

    /// Domains of this level that take `count` pods, tightest first; only the bound members' own,
    /// if there are any.
    fn add_domains(
        &self,
        view: &View<'_>,
        level: usize,
        count: u32,
        limit: usize,
        regions: &mut SmallVec<[Region; 1]>,
    ) {
        let count = u64::from(count);
        if self.bound.is_empty() {
            let tightest = view.index.at_least(Group::level(level), count).take(limit);
            regions.extend(tightest.map(|(_, ix)| region_of(view, level, ix)));
        } else {
            regions.extend(self.home(view, level).filter(|home| room(view.index, home) >= count));
        }
    }

    pub(super) fn has_bound(&self) -> bool {
        !self.bound.is_empty()
    }

    /// The one domain of this level that holds all bound members, if it is one.
    pub(super) fn home(&self, view: &View<'_>, level: usize) -> Option<Region> {
        let mut homes = self.bound.iter().map(|node| {
            if level > view.tree.depth() {
                view.tree.leaf_of(*node).map(|_| Region::Node(*node))
            } else {
                view.tree.domain_of(*node, level).map(Region::Domain)
            }
        });
        let first = homes.next()??;
        homes.all(|home| home.as_ref() == Some(&first)).then_some(first)
    }
}

/// The request in terms of the tree; `None`: it names what is not there, or slices that are larger
/// than the domain that all pods share.
fn resolved(request: &TopologyRequest, tree: &Tree) -> Option<(Wish, Grain)> {
    let wish = match &request.wish {
        TopologyWish::None | TopologyWish::Unconstrained => Wish::Anywhere,
        TopologyWish::Required(label) => Wish::Required(tree.level(label)?),
        TopologyWish::Preferred(label) => Wish::Preferred(tree.level(label)?),
    };
    let grain = Grain::of(&request.slices, tree)?;
    let level = match wish {
        Wish::Required(level) | Wish::Preferred(level) => level,
        _ => 0,
    };
    if grain.first_level().is_some_and(|first| first < level) {
        return None;
    }
    // Slices of one pod ask for nothing: their index is everybody's.
    Some((wish, if grain.is_fine() { Grain::FINE } else { grain }))
}

/// A member of a level's group as a region.
pub(super) fn region_of(view: &View<'_>, level: usize, ix: u32) -> Region {
    if level > view.tree.depth() { Region::Node(NodeIx(ix)) } else { Region::Domain(DomainIx(ix)) }
}

/// How many pods fit in a single domain or node.
pub(super) fn room(index: &FitIndex, region: &Region) -> u64 {
    match region {
        Region::Domain(domain) => index.pods_in(*domain),
        Region::Node(node) => u64::from(index.pods_on(*node)),
        Region::Spread | Region::Anywhere => index.pods_in(DomainIx::ROOT),
        Region::Pinned(pins) => {
            pins.iter().map(|(region, count)| room(index, region).min(u64::from(*count))).sum()
        }
    }
}

fn fill_domain(view: &View<'_>, domain: DomainIx, count: u64, taken: &mut Taken) {
    let View { tree, index, .. } = *view;
    let group = Group::children(domain);
    if tree.domain(domain).level == tree.depth() {
        index.pick(group, count, |node, pods| taken.push((NodeIx(node), narrow(pods))));
        return;
    }
    let mut picked = Vec::new();
    index.pick(group, count, |ix, pods| picked.push((DomainIx(ix), pods)));
    for (child, pods) in picked {
        fill_domain(view, child, pods, taken);
    }
}

/// The domain or node that a path of values names, if `count` pods fit there. The last value may be
/// a host name, and stand alone then.
fn pinned(view: &View<'_>, path: &[Name], count: u32) -> Option<Region> {
    let View { tree, index, nodes } = *view;
    let enough = |region: &Region| room(index, region) >= u64::from(count);
    if tree.depth() == tree.levels().len() || (path.len() < tree.levels().len() && path.len() > 1) {
        return tree.find(path).map(Region::Domain).filter(enough);
    }
    let (host, above) = path.split_last()?;
    let label = tree.levels().last()?;
    let here = |node: &NodeIx| {
        let facts = nodes[node.index()].facts.as_ref();
        facts.and_then(|facts| facts.labels.get(label)) == Some(host)
            && tree.path_of(*node).is_some_and(|path| above.is_empty() || path == above)
    };
    (0..nodes.len()).map(NodeIx::of).filter(here).map(Region::Node).find(enough)
}

/// Counts within a request are `u32` to begin with.
fn narrow(pods: u64) -> u32 {
    u32::try_from(pods).expect("no more than were asked for")
}
