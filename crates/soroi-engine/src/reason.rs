//! Why not? Every answer other than "yes", with the numbers in it.
//!
//! The kind of a reason and its numbers are values; the one text of each is its `Display` in
//! `explain`, in Kueue's wording where Kueue has one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::{Amount, GangId, Millis, Name, Policy};
use crate::minima::Lack;
use crate::preempt::Cause;

/// Why a gang waits.
#[derive(Clone, Debug, PartialEq)]
pub enum Reason {
    /// It may not be decided yet.
    NotYet(NotYet),
    /// Its user switched it off.
    Off(Off),
    /// Its LocalQueue or ClusterQueue cannot admit.
    Queue(QueueProblem),
    /// Its namespace does not match the ClusterQueue's selector.
    NamespaceMismatch,
    /// The first gang of a StrictFIFO queue is in the way.
    BehindStrictHead {
        /// Namespace and name of that gang.
        head: (Name, Name),
    },
    /// The first gang of its ClusterQueue waits until others have left for it. Nobody else of the queue is decided
    /// meanwhile, where quota alone counts.
    BehindPreemptor {
        /// Namespace and name of that gang.
        head: (Name, Name),
    },
    /// It was undone and pauses.
    BackingOff {
        /// When it may try again.
        until: Millis,
    },
    /// No flavor gives a complete answer: per pod set, what each flavor said, in order.
    NoFlavor(Vec<(Name, Vec<FlavorProblem>)>),
    /// It has no flavors to choose from (no quota asked), and the places do not suffice.
    NoPlace(Vec<(Name, PlaceProblem)>),
    /// Its seat in the Volcano tree has no room.
    VolcanoQueue {
        /// The queue.
        queue: Name,
        /// What is wrong.
        problem: VolcanoProblem,
    },
    /// Its pods name another scheduler, so that its policy cannot be carried out.
    ForeignScheduler {
        /// The scheduler named.
        scheduler: Name,
        /// The policy that needs ours.
        policy: Policy,
    },
    /// Others leave for it.
    Preempting {
        /// Why it cannot start before that.
        without: Arc<Reason>,
        /// How many leave.
        victims: u32,
    },
    /// It runs, and members came that are of no pod set it was admitted with.
    NotAdmittedWith {
        /// The pod set that they would be.
        pod_set: Name,
    },
}

impl Reason {
    /// Whether it says that an object does not exist. Objects of different kinds are heard of in any
    /// order, so that one may only not be known yet.
    pub fn is_of_missing(&self) -> bool {
        use QueueInactive::{CheckNotFound, FlavorNotFound, TopologyNotFound};
        match self {
            Self::Queue(QueueProblem::LocalQueueMissing(_) | QueueProblem::ClusterQueueMissing(_))
            | Self::VolcanoQueue { problem: VolcanoProblem::Missing, .. } => true,
            Self::Queue(QueueProblem::ClusterQueueInactive(_, why)) => {
                matches!(why, CheckNotFound(_) | FlavorNotFound(_) | TopologyNotFound(_))
            }
            _ => false,
        }
    }

    /// Whether it is the next step of somebody else that mostly comes at once: whoever is told of it
    /// before reads of trouble that is none.
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::NotYet(NotYet::JobNotSuspended | NotYet::WorkloadBehind | NotYet::AdmissionNotProven)
        )
    }

    /// Whether no search proved that it is impossible.
    pub(crate) fn is_unproven(&self) -> bool {
        self.places().any(|problem| problem.unproven)
    }

    /// Notes that none did.
    pub(crate) fn cut_short(&mut self) {
        match self {
            Self::NoFlavor(sets) => {
                for problem in sets.iter_mut().flat_map(|(_, problems)| problems) {
                    if let FlavorProblem::NoPlace { problem, .. } = problem {
                        problem.unproven = true;
                    }
                }
            }
            Self::NoPlace(sets) => sets.iter_mut().for_each(|(_, problem)| problem.unproven = true),
            _ => {}
        }
    }

    fn places(&self) -> impl Iterator<Item = &PlaceProblem> {
        let (flavors, places): (&[_], &[_]) = match self {
            Self::NoFlavor(sets) => (sets, &[]),
            Self::NoPlace(sets) => (&[], sets),
            _ => (&[], &[]),
        };
        let in_flavors = flavors.iter().flat_map(|(_, problems): &(Name, Vec<FlavorProblem>)| problems);
        let in_flavors = in_flavors.filter_map(|problem| match problem {
            FlavorProblem::NoPlace { problem, .. } => Some(problem),
            _ => None,
        });
        in_flavors.chain(places.iter().map(|(_, problem): &(Name, PlaceProblem)| problem))
    }
}

/// What a Volcano Queue lacks.
#[derive(Clone, Debug, PartialEq)]
pub enum VolcanoProblem {
    /// There is no such queue.
    Missing,
    /// It is closed or closing.
    Closed,
    /// It, or one above it, could not be understood; the text names the field.
    Invalid(Name),
    /// Its capability is used up.
    OverCapability {
        /// The resource.
        resource: Name,
        /// What is missing.
        short: Amount,
    },
    /// What there is in all is in use, or kept for other queues.
    Guaranteed {
        /// The resource.
        resource: Name,
        /// What is missing.
        short: Amount,
    },
}

/// An expected step of somebody else that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotYet {
    /// The Job's status does not show `Suspended=True` without active pods yet.
    JobNotSuspended,
    /// The Workload that stands for it is being written, or brought in step with what it stands for.
    WorkloadBehind,
    /// A group has fewer pods than its minimum, or than that of a role.
    MembersMissing(Lack),
    /// A gate of a user or another controller is closed.
    Gated(Name),
    /// Admission checks are not ready.
    ChecksPending,
    /// It was preempted, and pods of it are still on their way out.
    StillLeaving,
    /// Our own admission policies are not shown to work yet.
    AdmissionNotProven,
    /// Pods of gangs that were admitted before are not ready, and it is configured to wait for them.
    OthersNotReady,
    /// An object of the gang could not be understood; the text names the field.
    Invalid(Name),
}

/// Why a gang must not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Off {
    /// `spec.active: false`.
    Deactivated,
    /// Its owner was suspended by its user.
    SuspendedByUser,
    /// It ended.
    Finished,
    /// An admission check has it start anew: what its eviction says.
    CheckRetry(Name),
}

/// What is wrong with the way to quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueProblem {
    /// There is no such LocalQueue in the gang's namespace.
    LocalQueueMissing(Name),
    /// The LocalQueue is stopped.
    LocalQueueStopped(Name),
    /// The ClusterQueue that the LocalQueue names does not exist.
    ClusterQueueMissing(Name),
    /// The ClusterQueue is not active.
    ClusterQueueInactive(Name, QueueInactive),
}

/// Why a queue does not admit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum QueueInactive {
    /// It is being deleted.
    Terminating,
    /// Its stop policy says so.
    Stopped,
    /// It names flavors that do not exist.
    FlavorNotFound(Vec<Name>),
    /// A flavor of it names a Topology that does not exist.
    TopologyNotFound(Name),
    /// It names admission checks that do not exist.
    CheckNotFound(Vec<Name>),
    /// It names admission checks that are not active.
    CheckInactive(Vec<Name>),
    /// Its cohorts form a cycle through this one.
    CohortCycle(Name),
    /// (LocalQueue) its ClusterQueue does not exist.
    ClusterQueueMissing,
    /// (LocalQueue) its ClusterQueue is not active.
    ClusterQueueInactive,
    /// Its object could not be understood; the text names the field.
    Invalid(Name),
}

/// Why a flavor does not do for a pod set.
#[derive(Clone, Debug, PartialEq)]
pub enum FlavorProblem {
    /// The queue covers no such resource.
    ResourceNotCovered {
        /// The resource.
        resource: Name,
    },
    /// The flavor's taint is not tolerated.
    UntoleratedTaint {
        /// The flavor.
        flavor: Name,
        /// The taint.
        taint: crate::event::Taint,
    },
    /// The flavor's labels contradict the pod's selector or affinity.
    AffinityMismatch {
        /// The flavor.
        flavor: Name,
    },
    /// It could never fit: the request exceeds what the queue could get at most.
    ExceedsMaximum {
        /// The flavor.
        flavor: Name,
        /// The resource.
        resource: Name,
        /// What earlier pod sets of the gang ask.
        previous: Amount,
        /// What this pod set asks.
        request: Amount,
        /// The most that the queue could get.
        maximum: Amount,
    },
    /// Too little is unused now.
    Short {
        /// The flavor.
        flavor: Name,
        /// The resource.
        resource: Name,
        /// What is missing.
        short: Amount,
    },
    /// The flavor has no Topology, or lacks the level that was asked for.
    NoTopologyLevel {
        /// The flavor.
        flavor: Name,
        /// The level asked for, if one was.
        level: Option<Name>,
    },
    /// Slices of a level that is not finer than what they are to be slices of.
    SliceAbove {
        /// The flavor.
        flavor: Name,
        /// The level that is to hold the slices.
        outer: Name,
        /// The level of the slices.
        inner: Name,
    },
    /// Quota is there, places are not.
    NoPlace {
        /// The flavor.
        flavor: Name,
        /// What the places lack.
        problem: PlaceProblem,
    },
}

/// Why the places do not suffice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaceProblem {
    /// The Topology that was asked, if any.
    pub topology: Option<Name>,
    /// How many pods were asked for.
    pub asked: u32,
    /// How many would fit (in the best single domain, where one was required).
    pub fitting: u32,
    /// The pods go by slices of so many; 0 or 1: each for itself.
    pub slice: u32,
    /// Nodes looked at.
    pub nodes: u32,
    /// Of these, how many take no pod.
    pub out: u32,
    /// How many of these for what reason; a node may have several.
    pub excluded: BTreeMap<NodeProblem, u32>,
    /// The nodes that take some of the pods and then no more.
    pub full: Box<Full>,
    /// Where it came closest: the domain's value, where one of several was required.
    pub closest: Option<Name>,
    /// What else is worth knowing.
    pub hints: Box<Hints>,
    /// No search proved that it is impossible; the bounded search just did not find it.
    pub unproven: bool,
    /// How many would fit at most if nothing else were on the nodes (this pod set alone, in the
    /// best single domain where one is required). Fewer than asked: it can never start here.
    /// `None`: not known.
    pub fitting_if_empty: Option<u32>,
}

/// What may help whoever asks why.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hints {
    /// Of each coarser level, coarsest first: the domain that takes most, where there are several and it takes
    /// more than one of the required level.
    pub coarser: Vec<Coarser>,
    /// Labels that are asked for and that no node has: keys, or `key=value`.
    pub unlabelled: Vec<Name>,
}

/// What one domain of a coarser level than the required one would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coarser {
    /// The level's node label.
    pub level: Name,
    /// The domain's value.
    pub domain: Name,
    /// How many pods it takes.
    pub fitting: u32,
}

/// Nodes that are full once they have taken what fits. None where that is not known: where other pods
/// matter, or pods go in slices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Full {
    /// How many.
    pub nodes: u32,
    /// What on how many of them is short then; a node may lack several resources.
    pub lacks: BTreeMap<NodeProblem, u32>,
}

/// Why a node does not take a pod.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NodeProblem {
    /// Not ready.
    NotReady,
    /// Cordoned.
    Unschedulable,
    /// A taint is not tolerated.
    Taint {
        /// Its key.
        key: Name,
        /// Its value.
        value: Name,
    },
    /// The node selector does not match.
    Selector,
    /// The required affinity does not match.
    Affinity,
    /// The node lies outside the chosen domain, or of the topology.
    Topology,
    /// The node lacks the label of a level of the topology, so that it is in no domain.
    NoLevel {
        /// The label.
        label: Name,
    },
    /// Where that is told apart from being outside: the node is in another domain than the one that came
    /// closest.
    OtherDomain,
    /// Too little of a resource is free.
    Insufficient {
        /// The resource.
        resource: Name,
    },
    /// No free pod slot.
    TooManyPods,
    /// A port of the node that the pod must have is taken.
    Ports,
    /// One more pod there would make the pods too uneven over their domains.
    Spread,
    /// The node is in no domain over which the pods must be spread.
    SpreadLabel,
    /// No pod is near that the pod must be near to.
    PodAffinity,
    /// A pod is near that the pod must not be near to.
    PodAntiAffinity,
    /// A pod is near that must not be near to the pod.
    ExistingAntiAffinity,
    /// One of its volumes is not reached from the node.
    VolumeAffinity,
    /// One of its volumes is in another zone.
    VolumeZone,
    /// A volume for one pod at a time is in use.
    VolumeInUse,
    /// The node attaches no more volumes.
    VolumeLimit,
    /// A claim that leads to no volume, wherever the pod is.
    Claim {
        /// Its name.
        claim: Name,
        /// Why.
        problem: crate::event::ClaimProblem,
    },
    /// What the pod needs beside that is not looked at yet: no node can be promised.
    Unserved(crate::event::Unserved),
}

/// Why an admission is taken back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UndoReason {
    /// Members did not appear in time.
    StartTimeout(Lack),
    /// Members stayed unbound or lost below a minimum for too long.
    RecoveryTimeout(Lack),
    /// Its pods are there, and were not ready in time ([`crate::event::PodsReady`]).
    NotReady,
    /// The places vanished and there are no others.
    PlacesLost,
    /// Its admission checks are passed, and there are no places for it.
    NoPlaceAfterChecks,
    /// Its user switched it off.
    Off(Off),
    /// Its LocalQueue is stopped and drained.
    LocalQueueStopped,
    /// Its ClusterQueue is stopped and drained.
    ClusterQueueStopped,
    /// It holds quota, and nothing of it can run (found after a restart).
    Orphaned,
    /// It was being taken back when the engine started; the plan says why.
    Interrupted,
    /// Another gang needs what it holds.
    Preempted(Preempted),
}

/// For whom a gang has to leave, and by what right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preempted {
    /// The gang that it leaves for.
    pub by: GangId,
    /// Why that may have it evicted.
    pub cause: Cause,
    /// The other's ClusterQueue with the cohorts above it: `/org/team/queue`.
    pub by_path: Name,
    /// Its own.
    pub path: Name,
    /// The priority of that gang.
    pub by_priority: i32,
    /// Its own.
    pub priority: i32,
}
