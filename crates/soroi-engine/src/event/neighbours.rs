//! What a pod demands of other pods: of those on its node, and of those in the domains around it.
//!
//! The rules are those of kube-scheduler 1.36 (plugins NodePorts, InterPodAffinity,
//! PodTopologySpread). What it would only like is in `preferences`.

use super::{Labels, Name, Selector};
use crate::fit::selects;

/// What a pod demands of other pods. Most pods demand nothing, and have no such value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Neighbours {
    /// Ports of its node that it must have for itself: sorted, each once.
    pub ports: Vec<HostPort>,
    /// In each of these domains there must be a pod that all of these terms mean.
    pub affinity: Vec<PodTerm>,
    /// In none of these domains may there be a pod that the term means.
    pub anti_affinity: Vec<PodTerm>,
    /// How evenly pods must be spread (`whenUnsatisfiable: DoNotSchedule`).
    pub spread: Vec<Spread>,
}

impl Neighbours {
    /// Whether nothing is demanded.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A port of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostPort {
    /// Its number.
    pub port: u16,
    /// Its protocol.
    pub protocol: Protocol,
    /// The address on which it is taken; `None`: on all.
    pub ip: Option<Name>,
}

impl HostPort {
    /// Whether the two cannot be on one node (Kubernetes, `HostPortInfo.CheckConflict`).
    pub fn conflicts(&self, other: &Self) -> bool {
        let same_address = self.ip.is_none() || other.ip.is_none() || self.ip == other.ip;
        (self.port, self.protocol) == (other.port, other.protocol) && same_address
    }
}

/// The protocol of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    /// `TCP`, and what is not said.
    Tcp,
    /// `UDP`.
    Udp,
    /// `SCTP`.
    Sctp,
}

/// Pods in a domain around a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodTerm {
    /// The node label whose value tells domains apart.
    pub topology_key: Name,
    /// Which pods it means.
    pub pods: PodSelector,
}

/// Which pods are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PodSelector {
    /// Pods of these namespaces.
    pub namespaces: Vec<Name>,
    /// And of those whose labels match; `None`: of no others.
    pub namespace_selector: Option<Selector>,
    /// What their own labels must be; `None` means no pod at all (Kubernetes,
    /// `LabelSelectorAsSelector`).
    pub labels: Option<Selector>,
}

impl PodSelector {
    /// Whether it means a pod of this namespace with these labels.
    pub fn selects(&self, namespace: &Name, of_namespace: Option<&Labels>, labels: &Labels) -> bool {
        let there = self.namespaces.contains(namespace)
            || self.namespace_selector.as_ref().is_some_and(|selector| match of_namespace {
                Some(of_namespace) => selects(selector, of_namespace),
                // Not known (yet): only what selects all of them means it.
                None => selector.is_empty(),
            });
        there && self.labels.as_ref().is_some_and(|selector| selects(selector, labels))
    }
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Spread {
    /// The node label whose value tells domains apart.
    pub topology_key: Name,
    /// Which pods are spread: of the pod's own namespace.
    pub pods: PodSelector,
    /// By how many pods a domain may exceed the emptiest one. At least 1.
    pub max_skew: u32,
    /// With fewer domains than this, the emptiest one counts as having none.
    pub min_domains: u32,
    /// Nodes that the pod's selector or affinity excludes do not count (`nodeAffinityPolicy`).
    pub honours_affinity: bool,
    /// Nodes with taints that the pod does not tolerate do not count (`nodeTaintsPolicy`).
    pub honours_taints: bool,
}

impl Spread {
    /// Whether pods that are there count. Under a selector that selects every pod they do not, only the
    /// one that comes counts itself (kube-scheduler 1.36, `countPodsMatchSelector`).
    pub fn counts_anybody(&self) -> bool {
        self.pods.labels.as_ref().is_none_or(|labels| !labels.is_empty())
    }
}

/// As whom a pod is meant by others.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Who {
    /// Its namespace.
    pub namespace: Name,
    /// Its labels.
    pub labels: Labels,
}

/// What of a pod Soroi does not look at yet, so that no node can be promised to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Unserved {
    /// Claims of dynamic resource allocation.
    ResourceClaims,
    /// Volumes that are made for the pod alone, when it is there (`ephemeral`).
    OwnVolumes,
}
