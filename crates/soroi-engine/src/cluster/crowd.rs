//! Who is where, as far as others mind: ports that are taken, whom those that are there keep away,
//! and how many pods of a kind are on which node.
//!
//! Knows occupants one by one as they come and go, so that tries are undone as charges are. Must
//! never know domains: whoever asks adds nodes up.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Need, NodeIx};
use crate::event::{ClaimKey, HostPort, Labels, Name, PodSelector, PodTerm, Selector, Shape, Who};

/// Kinds of pods that are counted all the time; the one that was not asked about for longest makes
/// room. Counting a kind anew costs a look at every pod.
const KINDS_MAX: usize = 256;

/// A pod that all of these mean.
pub(crate) type Kind = Vec<PodSelector>;

/// Pods of a kind on a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Count {
    /// All of them.
    pub(crate) all: u32,
    /// Those that are not on their way out.
    pub(crate) staying: u32,
}

/// An occupant as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Face {
    pub(super) who: Arc<Who>,
    pub(super) leaving: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counted {
    asked: u64,
    nodes: BTreeMap<NodeIx, Count>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(super) struct Crowd {
    ports: BTreeMap<NodeIx, BTreeMap<HostPort, u32>>,
    /// Claims that are mounted, by how many on which node.
    mounts: BTreeMap<ClaimKey, BTreeMap<NodeIx, u32>>,
    /// Whom those that are there do not want around, and on which nodes they are.
    minded: BTreeMap<PodTerm, BTreeMap<NodeIx, u32>>,
    kinds: BTreeMap<Kind, Counted>,
    namespaces: BTreeMap<Name, Labels>,
    asked: u64,
    /// Labels that somebody ever minded; `None`: nobody did.
    keys: Option<BTreeSet<Name>>,
    keys_grew: bool,
}

impl Crowd {
    pub(super) fn come(&mut self, node: NodeIx, need: &Need, face: Option<&Face>) {
        for claim in &need.ask.shape.claims {
            *self.mounts.entry(claim.clone()).or_default().entry(node).or_default() += 1;
        }
        if let Some(demands) = need.ask.shape.neighbours.as_deref() {
            for port in &demands.ports {
                *self.ports.entry(node).or_default().entry(port.clone()).or_default() += 1;
            }
            for term in &demands.anti_affinity {
                if !self.minded.contains_key(term) {
                    self.mind(term);
                }
                if let Some(nodes) = self.minded.get_mut(term) {
                    *nodes.entry(node).or_default() += 1;
                }
            }
        }
        self.count(node, face, |count, leaving| {
            count.all += 1;
            count.staying += u32::from(!leaving);
        });
    }

    pub(super) fn go(&mut self, node: NodeIx, need: &Need, face: Option<&Face>) {
        for claim in &need.ask.shape.claims {
            if let Some(nodes) = self.mounts.get_mut(claim) {
                take_one(nodes, &node);
                if nodes.is_empty() {
                    self.mounts.remove(claim);
                }
            }
        }
        if let Some(demands) = need.ask.shape.neighbours.as_deref() {
            for port in &demands.ports {
                if let Some(ports) = self.ports.get_mut(&node) {
                    take_one(ports, port);
                    if ports.is_empty() {
                        self.ports.remove(&node);
                    }
                }
            }
            for term in &demands.anti_affinity {
                if let Some(nodes) = self.minded.get_mut(term) {
                    take_one(nodes, &node);
                    if nodes.is_empty() {
                        self.minded.remove(term);
                    }
                }
            }
        }
        self.count(node, face, |count, leaving| {
            count.all -= 1;
            count.staying -= u32::from(!leaving);
        });
    }

    /// Says whether anything changed.
    pub(super) fn set_namespace(&mut self, name: &Name, labels: Option<&Labels>) -> bool {
        if self.namespaces.get(name) == labels {
            return false;
        }
        match labels {
            Some(labels) => _ = self.namespaces.insert(name.clone(), labels.clone()),
            None => _ = self.namespaces.remove(name),
        }
        self.kinds.retain(|kind, _| kind.iter().all(|pods| pods.namespace_selector.is_none()));
        true
    }

    pub(super) fn is_of(&self, kind: &[PodSelector], who: &Who) -> bool {
        is_of(&self.namespaces, kind, who)
    }

    /// How many pods of the kind are on each node that has some.
    pub(super) fn of_kind<'a>(
        &mut self,
        kind: &[PodSelector],
        everybody: impl Iterator<Item = (NodeIx, &'a Face)>,
    ) -> &BTreeMap<NodeIx, Count> {
        self.asked += 1;
        if !self.kinds.contains_key(kind) {
            if self.kinds.len() >= KINDS_MAX {
                let oldest = self.kinds.iter().min_by_key(|(_, one)| one.asked).map(|(kind, _)| kind.clone());
                oldest.map(|kind| self.kinds.remove(&kind));
            }
            let nodes = self.counted_anew(kind, everybody);
            self.kinds.insert(kind.to_vec(), Counted { asked: 0, nodes });
        }
        let counted = self.kinds.get_mut(kind).expect("counted just now, if not before");
        counted.asked = self.asked;
        &counted.nodes
    }

    fn counted_anew<'a>(
        &self,
        kind: &[PodSelector],
        everybody: impl Iterator<Item = (NodeIx, &'a Face)>,
    ) -> BTreeMap<NodeIx, Count> {
        let mut nodes: BTreeMap<NodeIx, Count> = BTreeMap::new();
        for (node, face) in everybody.filter(|(_, face)| self.is_of(kind, &face.who)) {
            let count = nodes.entry(node).or_default();
            count.all += 1;
            count.staying += u32::from(!face.leaving);
        }
        nodes
    }

    pub(super) fn minded(&self) -> &BTreeMap<PodTerm, BTreeMap<NodeIx, u32>> {
        &self.minded
    }

    pub(super) fn ports_on(&self, node: NodeIx) -> impl Iterator<Item = &HostPort> {
        self.ports.get(&node).into_iter().flat_map(BTreeMap::keys)
    }

    /// The nodes on which a claim is mounted.
    pub(super) fn mounts_of(&self, claim: &ClaimKey) -> impl Iterator<Item = NodeIx> {
        self.mounts.get(claim).into_iter().flat_map(|nodes| nodes.keys().copied())
    }

    /// Everything that is mounted, with the nodes.
    pub(super) fn mounts(&self) -> impl Iterator<Item = (&ClaimKey, NodeIx)> {
        self.mounts.iter().flat_map(|(claim, nodes)| nodes.keys().map(move |node| (claim, *node)))
    }

    /// What of a pod matters to where it may be, beside its shape: nothing, mostly.
    pub(super) fn seen_as(&self, who: &Arc<Who>, shape: &Shape) -> Option<Arc<Who>> {
        let demands = shape.neighbours.as_deref().into_iter().flat_map(|demands| {
            let terms = demands.affinity.iter().chain(&demands.anti_affinity).map(|term| &term.pods);
            terms.chain(demands.spread.iter().map(|spread| &spread.pods))
        });
        let liked = shape.prefers.as_deref().into_iter().flat_map(|prefers| {
            let terms = prefers.near.iter().chain(&prefers.apart).map(|(_, term)| &term.pods);
            terms.chain(prefers.spread.iter().map(|spread| &spread.pods))
        });
        let own: Vec<&PodSelector> = demands.chain(liked).collect();
        if own.is_empty() && self.keys.is_none() {
            return None;
        }
        let names = |key: &Name| self.keys.as_ref().is_some_and(|keys| keys.contains(key));
        let own = |key: &Name| own.iter().any(|pods| keys_of(pods).any(|named| named == key));
        let labels = who.labels.iter().filter(|(key, _)| names(key) || own(key));
        let labels = labels.map(|(key, value)| (key.clone(), value.clone())).collect();
        Some(Arc::new(Who { namespace: who.namespace.clone(), labels }))
    }

    /// Whether labels began to matter that did not before, since this was last asked.
    pub(super) fn take_news(&mut self) -> bool {
        std::mem::take(&mut self.keys_grew)
    }

    pub(super) fn is_watched(&self) -> bool {
        !self.kinds.is_empty() || self.keys.is_some()
    }

    /// What is kept differs from what the occupants add up to.
    pub(super) fn discrepancies<'a>(
        &self,
        everybody: impl Iterator<Item = (NodeIx, &'a Need, Option<&'a Face>)> + Clone,
        found: &mut Vec<String>,
    ) {
        let mut fresh = Self { namespaces: self.namespaces.clone(), ..Self::default() };
        everybody.clone().for_each(|(node, need, face)| fresh.come(node, need, face));
        if (&fresh.ports, &fresh.minded, &fresh.mounts) != (&self.ports, &self.minded, &self.mounts) {
            found.push("ports, anti-affinity or mounts differ from what those that are there say".to_owned());
        }
        let seen = everybody.filter_map(|(node, _, face)| Some((node, face?)));
        for (kind, counted) in &self.kinds {
            if self.counted_anew(kind, seen.clone()) != counted.nodes {
                found.push(format!("pods of {kind:?} are counted wrongly"));
            }
        }
    }

    fn mind(&mut self, term: &PodTerm) {
        let keys = self.keys.get_or_insert_with(|| {
            self.keys_grew = true;
            BTreeSet::new()
        });
        for key in keys_of(&term.pods) {
            self.keys_grew |= keys.insert(key.clone());
        }
        self.minded.insert(term.clone(), BTreeMap::new());
    }

    fn count(&mut self, node: NodeIx, face: Option<&Face>, change: impl Fn(&mut Count, bool)) {
        let Some(face) = face else { return };
        for (kind, counted) in &mut self.kinds {
            if is_of(&self.namespaces, kind, &face.who) {
                let count = counted.nodes.entry(node).or_default();
                change(count, face.leaving);
                if count.all == 0 {
                    counted.nodes.remove(&node);
                }
            }
        }
    }
}

fn is_of(namespaces: &BTreeMap<Name, Labels>, kind: &[PodSelector], who: &Who) -> bool {
    let of_namespace = namespaces.get(&who.namespace);
    kind.iter().all(|pods| pods.selects(&who.namespace, of_namespace, &who.labels))
}

fn keys_of(pods: &PodSelector) -> impl Iterator<Item = &Name> {
    pods.labels.iter().flat_map(|selector: &Selector| selector.iter().map(|one| &one.key))
}

fn take_one<K: Ord>(counts: &mut BTreeMap<K, u32>, key: &K) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
