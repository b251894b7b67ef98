//! Which flavors does quota allow, in which order? One pod set and one resource group at a time,
//! given what earlier pod sets of the gang take.

use std::collections::{BTreeMap, BTreeSet};

use super::fungible::{Grade, Means, in_order};
use super::wanted::StartSet;
use crate::event::{
    ClusterQueue, Expression, Flavor, FlavorQuotas, Labels, Name, NodeSelectorTerm, Operator, ResourceGroup,
    Shape, TopologyRequest, TopologyWish,
};
use crate::fit::{repels, selects, tolerated};
use crate::queue::{Blocker, QuotaBlocker};
use crate::quota::{FlavorResource, Sum, kueue, saturate};
use crate::reason::FlavorProblem;
use crate::world::World;

/// What the search for flavors looks at.
#[derive(Clone, Copy)]
pub(super) struct Ground<'a> {
    pub(super) world: &'a World,
    pub(super) tree: &'a kueue::Tree,
    pub(super) queue: &'a ClusterQueue,
    /// What the queue does not name needs no quota.
    pub(super) lenient: bool,
}

/// A flavor that quota allows.
#[derive(Clone, Debug)]
pub(super) struct FlavorOption {
    /// Its position within the group.
    pub(super) position: usize,
    pub(super) flavor: Name,
    /// How it gets its quota.
    pub(super) grade: Grade,
    /// How high in the cohorts any of its resources is borrowed.
    pub(super) borrow: u32,
}

/// A flavor that does not do, and why.
pub(super) struct Refusal {
    pub(super) position: usize,
    pub(super) flavor: Name,
    pub(super) problems: Vec<FlavorProblem>,
    /// Only its unused quota is too small now.
    pub(super) short: bool,
}

/// What a group's flavors say to a pod set.
#[derive(Default)]
pub(super) struct Options {
    /// Those that do, in the order in which they are to be tried.
    pub(super) fit: Vec<FlavorOption>,
    pub(super) refused: Vec<Refusal>,
    /// Quota that is short; falsified when it is not any more.
    pub(super) short: Vec<Blocker>,
    /// Quota that suffices; falsified when it does not any more.
    pub(super) enough: Vec<Blocker>,
}

/// What all pods of a set take together, `pods` included if the queue counts them.
pub(super) fn totals(set: &StartSet, count: u32, queue: Option<&ClusterQueue>) -> BTreeMap<Name, Sum> {
    let asked = set.shape.requests.iter().filter(|(_, amount)| **amount > 0);
    let mut totals: BTreeMap<Name, Sum> =
        asked.map(|(name, amount)| (name.clone(), Sum::from(*amount) * Sum::from(count))).collect();
    let pods: Name = crate::resources::PODS_NAME.into();
    if queue.is_some_and(|queue| queue.groups.iter().any(|group| group.covered.contains(&pods))) {
        totals.insert(pods, Sum::from(count));
    }
    totals
}

/// That so much is short of a flavor's resource, if it is.
pub(super) fn lacks(short: Sum, what: FlavorResource) -> Option<FlavorProblem> {
    let FlavorResource { flavor, resource } = what;
    (short > 0).then(|| FlavorProblem::Short { flavor, resource, short: saturate(short) })
}

/// What a flavor has to have for what is asked, on top of what is taken already.
pub(super) fn on_top<'a>(
    flavor: &'a Name,
    asked: &'a BTreeMap<Name, Sum>,
    taken: &'a BTreeMap<FlavorResource, Sum>,
) -> impl Iterator<Item = (FlavorResource, Sum)> + 'a {
    asked.iter().map(move |(resource, sum)| {
        let what = FlavorResource { flavor: flavor.clone(), resource: resource.clone() };
        let sum = *sum + taken.get(&what).copied().unwrap_or(0);
        (what, sum)
    })
}

/// The resources of `asked` that no group of the queue covers, if they need quota.
pub(super) fn uncovered(ground: Ground<'_>, asked: &BTreeMap<Name, Sum>) -> Vec<FlavorProblem> {
    if ground.lenient {
        return Vec::new();
    }
    let covered: BTreeSet<&Name> = ground.queue.groups.iter().flat_map(|group| &group.covered).collect();
    let missing = asked.keys().filter(|resource| !covered.contains(resource));
    missing.map(|resource| FlavorProblem::ResourceNotCovered { resource: resource.clone() }).collect()
}

/// The flavors of a group that do for a pod set, and those that do not. The order is what the
/// queue's fungibility says (Kueue, `flavorFungibility`): a flavor that needs borrowing is taken in
/// its turn, or only after all that need less.
pub(super) fn options(
    ground: Ground<'_>,
    group: &ResourceGroup,
    set: &StartSet,
    asked: &BTreeMap<Name, Sum>,
    taken: &BTreeMap<FlavorResource, Sum>,
) -> Options {
    let mut options = Options::default();
    let keys = label_keys(ground.world, group);
    for (position, quotas) in group.flavors.iter().enumerate() {
        let flavor = quotas.flavor.clone();
        if let Err(problem) = suits(ground.world, &flavor, set, &keys) {
            options.refused.push(Refusal { position, flavor, problems: vec![problem], short: false });
            continue;
        }
        match room(ground, quotas, asked, taken, &mut options) {
            Room::Fits { borrow } => {
                let grade = Grade { means: Means::Fits, borrow };
                options.fit.push(FlavorOption { position, flavor, grade, borrow });
            }
            Room::Short(problems) => {
                options.refused.push(Refusal { position, flavor, problems, short: true });
            }
            Room::Never(problem) => {
                options.refused.push(Refusal { position, flavor, problems: vec![problem], short: false });
            }
        }
    }
    options.fit = in_order(options.fit, ground.queue.fungibility, |option| option.grade);
    options
}

/// Label keys of all flavors of the group: only these parts of a pod's selectors say which flavor
/// it wants (Kueue, `flavorassigner.flavorSelector`).
fn label_keys(world: &World, group: &ResourceGroup) -> BTreeSet<Name> {
    let flavors = group.flavors.iter().filter_map(|quotas| world.flavors.get(&quotas.flavor));
    flavors.flat_map(|flavor| flavor.node_labels.keys().cloned()).collect()
}

/// Whether the pods may run on the flavor's nodes at all.
fn suits(world: &World, name: &Name, set: &StartSet, keys: &BTreeSet<Name>) -> Result<(), FlavorProblem> {
    let Some(flavor) = world.flavors.get(name) else {
        // Its queue is inactive then, so this is not asked.
        return Err(FlavorProblem::AffinityMismatch { flavor: name.clone() });
    };
    let tolerations = || set.shape.tolerations.iter().chain(&flavor.tolerations);
    if let Some(taint) =
        flavor.node_taints.iter().find(|taint| repels(taint) && !tolerated(taint, tolerations()))
    {
        return Err(FlavorProblem::UntoleratedTaint { flavor: name.clone(), taint: taint.clone() });
    }
    if !wants_labels(&set.shape, &flavor.node_labels, keys) {
        return Err(FlavorProblem::AffinityMismatch { flavor: name.clone() });
    }
    lacks_level(world, flavor, &set.topology)
}

fn lacks_level(world: &World, flavor: &Flavor, request: &TopologyRequest) -> Result<(), FlavorProblem> {
    if request.wish == TopologyWish::None && request.slices.is_empty() {
        return Ok(());
    }
    let lacks = |level: Option<&Name>| {
        Err(FlavorProblem::NoTopologyLevel { flavor: flavor.name.clone(), level: level.cloned() })
    };
    let named = || request.level().into_iter().chain(request.slices.iter().map(|slice| &slice.level));
    let Some(topology) = flavor.topology.as_ref().and_then(|name| world.topologies.get(name)) else {
        return lacks(named().next());
    };
    let position = |level: &Name| topology.levels.iter().position(|label| label == level);
    if let Some(missing) = named().find(|level| position(level).is_none()) {
        return lacks(Some(missing));
    }
    // All in one domain of a level: the slices are as large as that, or smaller.
    let at_least = request.level().into_iter().zip(request.slices.first().map(|slice| &slice.level));
    let nested = request.slices.windows(2).map(|pair| (&pair[0].level, &pair[1].level));
    let above = at_least.filter(|(outer, inner)| position(inner) < position(outer));
    let wrong = above.chain(nested.filter(|(outer, inner)| position(inner) <= position(outer))).next();
    match wrong {
        None => Ok(()),
        Some((outer, inner)) => Err(FlavorProblem::SliceAbove {
            flavor: flavor.name.clone(),
            outer: outer.clone(),
            inner: inner.clone(),
        }),
    }
}

/// Whether what a pod's selector and required affinity say of these keys holds of the labels. A
/// term that says nothing of them matches.
fn wants_labels(shape: &Shape, labels: &Labels, keys: &BTreeSet<Name>) -> bool {
    let selector = shape.node_selector.iter().filter(|(key, _)| keys.contains(*key));
    let selected =
        selector.map(|(key, value)| Expression { key: key.clone(), op: Operator::In(vec![value.clone()]) });
    if !selects(&selected.collect::<Vec<_>>(), labels) {
        return false;
    }
    let about = |term: &NodeSelectorTerm| -> Vec<Expression> {
        term.labels.iter().filter(|expression| keys.contains(&expression.key)).cloned().collect()
    };
    match &shape.node_affinity {
        None => true,
        Some(terms) => terms.iter().map(about).any(|term| selects(&term, labels)),
    }
}

/// Whether a flavor has quota for what is asked.
enum Room {
    /// It has, and borrows so high.
    Fits { borrow: u32 },
    /// Not now: all resources that it is short of.
    Short(Vec<FlavorProblem>),
    /// Nothing that happens to the others helps.
    Never(FlavorProblem),
}

/// Whether the flavor has quota for what is asked, on top of what is taken already.
fn room(
    ground: Ground<'_>,
    quotas: &FlavorQuotas,
    asked: &BTreeMap<Name, Sum>,
    taken: &BTreeMap<FlavorResource, Sum>,
    options: &mut Options,
) -> Room {
    let queue = &ground.queue.name;
    let (mut borrow, mut short) = (0, Vec::new());
    for quota in &quotas.quotas {
        let Some(request) = asked.get(&quota.resource).copied() else { continue };
        let what = FlavorResource { flavor: quotas.flavor.clone(), resource: quota.resource.clone() };
        let previous = taken.get(&what).copied().unwrap_or(0);
        let (flavor, resource) = (quotas.flavor.clone(), quota.resource.clone());
        let maximum = ground.tree.potential(queue, &what);
        let needed = previous + request;
        if needed > maximum {
            let (previous, request, maximum) = (saturate(previous), saturate(request), saturate(maximum));
            return Room::Never(FlavorProblem::ExceedsMaximum {
                flavor,
                resource,
                previous,
                request,
                maximum,
            });
        }
        let available = ground.tree.available(queue, &what);
        borrow = borrow.max(ground.tree.borrow_height(queue, &what, needed));
        let root = ground.tree.root(queue).expect("the queue is part of the tree");
        let blocker = QuotaBlocker { root, what, queue: queue.clone(), needed };
        if needed > available {
            short.push(FlavorProblem::Short { flavor, resource, short: saturate(needed - available) });
            options.short.push(Blocker::QuotaShort(blocker));
        } else {
            options.enough.push(Blocker::QuotaEnough(blocker));
        }
    }
    if short.is_empty() { Room::Fits { borrow } } else { Room::Short(short) }
}

#[cfg(test)]
mod tests;
