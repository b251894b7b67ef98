//! What stands between a gang and its start, for people: more than a reason says, and asked for seldom.
//!
//! Plain data. What it is filled with is found in `decide::account`, which decides nothing: it looks at the
//! state that decisions are made from, and tries out changes on copies of it.

use std::collections::BTreeMap;

use crate::event::{Amount, Millis, Name};
use crate::reason::{FlavorProblem, NodeProblem, PlaceProblem, Reason};

/// How a gang does.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// Its ClusterQueue, if its way leads to one.
    pub cluster_queue: Option<Name>,
    /// Its Volcano Queue.
    pub volcano_queue: Option<Name>,
    /// Where it stands.
    pub standing: Standing,
    /// What each pod set finds, while it waits for quota or places; in the order of the gang.
    pub pod_sets: Vec<SetAccount>,
    /// What would help, what suffices by itself first.
    pub remedies: Vec<Remedy>,
}

/// Where a gang stands.
#[derive(Clone, Debug, PartialEq)]
pub enum Standing {
    /// It waits.
    Waits {
        /// Why; `None`: it was not decided yet.
        reason: Option<Reason>,
        /// How many gangs of its queue come before it, if it is in one.
        before: Option<u32>,
        /// When it is looked at again by itself, where that is known.
        until: Option<Millis>,
    },
    /// It holds what it needs. Members and how many of them are on a node.
    Admitted {
        /// How many pods it was admitted with.
        pods: u32,
        /// How many of its pods are on a node and have not ended.
        bound: u32,
    },
}

/// What a pod set asks for and finds.
#[derive(Clone, Debug, PartialEq)]
pub struct SetAccount {
    /// Its name.
    pub name: Name,
    /// How many pods.
    pub count: u32,
    /// What each asks for.
    pub requests: BTreeMap<Name, Amount>,
    /// What each flavor says, in the order of the queue; empty where none are chosen.
    pub flavors: Vec<FlavorAccount>,
    /// What the nodes say where no flavor is chosen.
    pub places: Option<PlacesAccount>,
}

/// What a flavor says to a pod set.
#[derive(Clone, Debug, PartialEq)]
pub struct FlavorAccount {
    /// The flavor.
    pub flavor: Name,
    /// Why it is out whatever is free; `None`: it is not.
    pub problem: Option<FlavorProblem>,
    /// Its quota, by resource.
    pub quota: Vec<QuotaAccount>,
    /// What its nodes say, where places are asked for.
    pub places: Option<PlacesAccount>,
}

/// What a ClusterQueue has of a resource in a flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaAccount {
    /// The resource.
    pub resource: Name,
    /// What the pod set asks for in all.
    pub asked: Amount,
    /// What the queue owns.
    pub nominal: Amount,
    /// What its gangs use.
    pub used: Amount,
    /// Of that, what it borrows.
    pub borrowed: Amount,
    /// What it could use now beside that, of its own and borrowed.
    pub free: Amount,
    /// What is missing.
    pub short: Amount,
}

/// What the nodes say to a pod set, alone.
#[derive(Clone, Debug, PartialEq)]
pub struct PlacesAccount {
    /// Why it finds no room; `None`: it does, by itself.
    pub problem: Option<PlaceProblem>,
    /// The nodes that take a pod, and how many.
    pub takes: Vec<(Name, u32)>,
    /// The nodes that take none beside those that fit, by reason, in order of names.
    pub nodes: BTreeMap<NodeProblem, Vec<Name>>,
    /// Of nodes that lack only room: what one pod more lacks, by node; those that lack least first.
    pub short: Vec<NodeShort>,
    /// Domains of the required level by how many pods they take, best first, at most a few.
    pub domains: Vec<(Name, u32)>,
}

/// What a node lacks for one pod more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeShort {
    /// The node.
    pub node: Name,
    /// By resource: what is missing for one pod beside those that fit there, and what is free for these.
    pub short: BTreeMap<Name, (Amount, Amount)>,
}

/// Something that would help.
#[derive(Clone, Debug, PartialEq)]
pub struct Remedy {
    /// What.
    pub step: Step,
    /// Whether the gang starts when that has happened and nothing else has: tried out, not estimated.
    pub enough: bool,
}

/// A change that might let a gang start.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A ClusterQueue owns more of a resource.
    Quota {
        /// The queue.
        queue: Name,
        /// The flavor.
        flavor: Name,
        /// The resource.
        resource: Name,
        /// How much more.
        more: Amount,
    },
    /// A cordoned node is uncordoned.
    Uncordon(Name),
    /// A node becomes ready.
    Ready(Name),
    /// Its pods tolerate a taint, or the nodes lose it.
    Tolerate {
        /// The taint's key.
        key: Name,
        /// The taint's value.
        value: Name,
        /// The nodes that have it and take its pods otherwise.
        nodes: Vec<Name>,
    },
    /// Nodes get a label that the pods select.
    Label {
        /// The label.
        label: Name,
        /// Its value.
        value: Name,
        /// The nodes that lack it, or have another value, and take its pods otherwise.
        nodes: Vec<Name>,
    },
    /// A pod that belongs to no gang of ours leaves its node.
    PodLeaves {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
        /// The node.
        node: Name,
    },
    /// Another gang ends.
    GangEnds {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// All of the other steps together.
    All,
}
