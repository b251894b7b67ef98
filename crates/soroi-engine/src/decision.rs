//! What the engine answers: decisions as values. Nothing here does anything.

use std::collections::BTreeMap;

use crate::event::{Amount, GangId, Millis, Name, PodUid, Policy};
use crate::packing::Packing;
use crate::preempt::{Cause, FairRule};
use crate::reason::{Reason, UndoReason};

/// One decision. The engine has already reserved what it speaks of.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// The gang starts: write this down, then release it.
    Admit(Admission),
    /// The gang holds quota and gets its places now, or new places for members that lost theirs.
    /// Replaces the nodes of the gang's plan as a whole; bound members keep theirs. Confirmed like
    /// an admission ([`crate::event::Outcome::Committed`]); nothing is bound there before.
    Place(Admission),
    /// The gang starts when others have left: write this down, with the victims. Confirmed like an admission;
    /// only then are they told to leave. Followed by [`Decision::Admit`], another one of this, or
    /// [`Decision::HoldEnded`].
    Hold {
        /// What is kept for it.
        admission: Admission,
        /// Who leaves, in order, and why they may be told to.
        victims: Vec<(GangId, Cause)>,
    },
    /// Nothing is kept for the gang any more: it waits as everybody does. What was written about it goes.
    HoldEnded(GangId),
    /// Bind this pod to this node. Given only after the commit was confirmed and the gang's
    /// minimum of members exists.
    Bind {
        /// Whose member it is.
        gang: GangId,
        /// The pod.
        pod: PodUid,
        /// The node.
        node: Name,
    },
    /// All members are bound: the plan may be marked Settled.
    Settled(GangId),
    /// Take the admission back.
    Undo {
        /// The gang.
        gang: GangId,
        /// Why.
        reason: UndoReason,
        /// Members ran already: this is an eviction, with an Evicted condition.
        started: bool,
    },
    /// The gang waits for this reason. Given when the kind of the reason changed; when only its
    /// numbers did, for the first gangs of each queue ([`crate::Engine::reason`] has the others').
    /// Also for admitted gangs that wait for places: those of AfterAdmission, and running ones
    /// that lost members.
    Pending {
        /// The gang.
        gang: GangId,
        /// Why it waits.
        reason: Reason,
    },
}

/// What a gang got.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// The gang.
    pub gang: GangId,
    /// The policy that it was decided under.
    pub policy: Policy,
    /// The ClusterQueue that pays, if any.
    pub cluster_queue: Option<Name>,
    /// One entry per pod set, in the gang's order.
    pub pod_sets: Vec<PodSetAdmission>,
}

/// What one pod set got.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PodSetAdmission {
    /// Its name.
    pub name: Name,
    /// How many pods were placed (or paid for).
    pub count: u32,
    /// The flavor that pays for each resource.
    pub flavors: BTreeMap<Name, Name>,
    /// What is paid, per resource, for all `count` pods.
    pub usage: BTreeMap<Name, Amount>,
    /// Node and number of pods there, in node order. Empty where the policy decides no places.
    pub nodes: Vec<(Name, u32)>,
    /// The same by topology domain, where the flavor names a Topology.
    pub topology: Option<TopologyPlaces>,
}

/// Places by topology domain.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyPlaces {
    /// Node label keys, coarsest first. Only the last one when that is the host name.
    pub levels: Vec<Name>,
    /// Domains, in order of their values.
    pub domains: Vec<TopologyDomain>,
}

/// A topology domain and how many pods go there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyDomain {
    /// One value per level.
    pub values: Vec<Name>,
    /// Number of pods.
    pub count: u32,
}

/// A ClusterQueue as its status shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterQueueStatus {
    /// Its name.
    pub name: Name,
    /// Why it does not admit; `None`: it is active.
    pub inactive: Option<crate::reason::QueueInactive>,
    /// Waiting gangs.
    pub pending: u32,
    /// Gangs with quota.
    pub reserving: u32,
    /// Gangs admitted.
    pub admitted: u32,
    /// Per flavor and resource: total and borrowed.
    pub usage: Vec<FlavorUsage>,
    /// The same of gangs that are admitted: without those that wait for admission checks.
    pub admitted_usage: Vec<FlavorUsage>,
    /// Under fair sharing, its weighted share in thousandths.
    pub share: Option<i64>,
}

/// A LocalQueue as its status shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalQueueStatus {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Why it does not admit; `None`: it is active.
    pub inactive: Option<crate::reason::QueueInactive>,
    /// Waiting gangs.
    pub pending: u32,
    /// Gangs with quota.
    pub reserving: u32,
    /// Gangs admitted.
    pub admitted: u32,
    /// Per flavor and resource: total (borrowed is always 0).
    pub usage: Vec<FlavorUsage>,
    /// The same of gangs that are admitted: without those that wait for admission checks.
    pub admitted_usage: Vec<FlavorUsage>,
}

/// Usage of one resource in one flavor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlavorUsage {
    /// The flavor.
    pub flavor: Name,
    /// The resource.
    pub resource: Name,
    /// In use.
    pub total: Amount,
    /// Thereof above the queue's own quota.
    pub borrowed: Amount,
}

/// Settings of the engine. Times are milliseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The policy of queues that name none, and of gangs without a queue.
    pub placement: Policy,
    /// How long members may be missing after a commit, counted from the last progress.
    pub start_timeout: Millis,
    /// How long a gang may be bound below its minimum before it ever was whole.
    pub gather_timeout: Millis,
    /// The same after it was whole.
    pub recovery_timeout: Millis,
    /// How long a pod on an unreachable node keeps its quota.
    pub dead_pod_timeout: Millis,
    /// The first pause after an undo; doubles each time.
    pub undo_backoff_min: Millis,
    /// The longest pause after an undo.
    pub undo_backoff_max: Millis,
    /// Resources that a ClusterQueue does not name need no quota there (Kueue, `quotaCheckStrategy:
    /// IgnoreUndeclared`); otherwise who asks for one is not admitted.
    pub ignore_undeclared: bool,
    /// Fair sharing with these rules of preemption, if it is on.
    pub fair_sharing: Option<Vec<FairRule>>,
    /// No gang gets quota of a ClusterQueue while the pods of one that holds some are not ready (Kueue,
    /// `waitForPodsReady.blockAdmission`).
    pub block_admission: bool,
    /// How places are chosen among those that do, for gangs of queues that do not say.
    pub packing: Packing,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            placement: Policy::Unified,
            start_timeout: 60_000,
            gather_timeout: 5_000,
            recovery_timeout: 60_000,
            dead_pod_timeout: 300_000,
            undo_backoff_min: 1_000,
            undo_backoff_max: 60_000,
            ignore_undeclared: false,
            fair_sharing: None,
            block_admission: false,
            packing: Packing::BestFit,
        }
    }
}
