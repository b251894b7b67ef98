//! What the world tells the engine: facts about objects, and how decisions turned out.
//!
//! Every type here is what `intake` makes of a Kubernetes object, parsed once. Amounts are whole
//! numbers in base units: milli for `cpu`, bytes for memory and storage, pieces for the rest, and
//! already rounded as the API server does. A fact replaces the earlier one of the same identity.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::minima::Minima;
pub use neighbours::{HostPort, Neighbours, PodSelector, PodTerm, Protocol, Spread, Unserved, Who};
pub use preferences::Preferences;
pub use volumes::{Attached, Claim, ClaimKey, ClaimProblem, ClaimState, Volume, ZONE_LABELS};

mod neighbours;
mod preferences;
mod volumes;

/// A Kubernetes name, label key or value: cheap to clone, compared as a whole.
pub type Name = Arc<str>;
/// Milliseconds since 1970.
pub type Millis = i64;
/// A whole number in the base unit of its resource.
pub type Amount = i64;
/// The uid of the object that stands for the gang (its Workload, PodGroup or single pod).
pub type GangId = Arc<str>;
/// The uid of a pod.
pub type PodUid = Arc<str>;
/// Labels, or a node selector.
pub type Labels = BTreeMap<Name, Name>;

/// One thing that the world tells. Deletions carry the identity only.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "taken apart at once, never kept in this form")]
pub enum Event {
    /// A node is there, or changed.
    Node(Node),
    /// The node of this name is gone.
    NodeGone(Name),
    /// A pod is there, or changed. Every pod counts, managed or not.
    Pod(Pod),
    /// The pod of this uid is gone.
    PodGone(PodUid),
    /// A namespace is there, or changed its labels.
    Namespace {
        /// Its name.
        name: Name,
        /// Its labels.
        labels: Labels,
    },
    /// The namespace of this name is gone.
    NamespaceGone(Name),
    /// A PersistentVolumeClaim is there, or changed.
    Claim(Claim),
    /// The claim is gone.
    ClaimGone(ClaimKey),
    /// A PersistentVolume is there, or changed.
    Volume(Volume),
    /// The volume of this name is gone.
    VolumeGone(Name),
    /// How many volumes the drivers of a node attach, as far as they say so (its CSINode); empty when
    /// that is gone.
    VolumeLimits {
        /// The node.
        node: Name,
        /// By driver.
        limits: BTreeMap<Name, u32>,
    },
    /// A ResourceFlavor is there, or changed.
    Flavor(Flavor),
    /// The flavor of this name is gone.
    FlavorGone(Name),
    /// A Topology is there, or changed.
    Topology(Topology),
    /// The topology of this name is gone.
    TopologyGone(Name),
    /// A Cohort is there, or changed.
    Cohort(Cohort),
    /// The Cohort object of this name is gone (queues may still name it: then it has no quota).
    CohortGone(Name),
    /// A ClusterQueue is there, or changed.
    ClusterQueue(ClusterQueue),
    /// The ClusterQueue of this name is gone.
    ClusterQueueGone(Name),
    /// A LocalQueue is there, or changed.
    LocalQueue(LocalQueue),
    /// The LocalQueue is gone.
    LocalQueueGone {
        /// Its namespace.
        namespace: Name,
        /// Its name.
        name: Name,
    },
    /// A Volcano Queue is there, or changed.
    VolcanoQueue(VolcanoQueue),
    /// The Volcano Queue of this name is gone.
    VolcanoQueueGone(Name),
    /// A gang is there, or changed.
    Gang(Gang),
    /// The gang ended or was deleted. Its quota and places stay charged until its last bound pod
    /// is gone or terminal.
    GangGone(GangId),
    /// A GangPlan was read: the commit record of a gang. Restores the gang's admission after a
    /// restart; the engine's own commits come back the same way and change nothing.
    Plan(Plan),
    /// The GangPlan of this gang is gone.
    PlanGone(GangId),
}

/// How a decision turned out. An unknown outcome (a lost reply) is not reported: the decision
/// stays assumed until the world is read back.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// The admission was written down (GangPlan, or Workload status for policies without plans).
    /// The same for [`crate::Decision::Place`].
    Committed(GangId),
    /// It could not be written; nothing outside changed. Places and quota are given back; after
    /// [`crate::Decision::Place`] the new places only. Decided again after a pause.
    NotCommitted(GangId),
    /// The API server accepted the binding.
    Bound(PodUid),
    /// The API server refused the binding.
    NotBound {
        /// The pod.
        pod: PodUid,
        /// The pod cannot be bound any more (gone, terminating, bound elsewhere) as opposed to
        /// "try again".
        lost: bool,
    },
    /// An undo was carried through: the owner is suspended, its template restored, no pod active.
    Undone(GangId),
}

/// A node as placement sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// Its name.
    pub name: Name,
    /// Its labels.
    pub labels: Labels,
    /// Its taints, cordon excluded.
    pub taints: Vec<Taint>,
    /// `spec.unschedulable`.
    pub unschedulable: bool,
    /// Condition Ready is True. A node that is not ready takes no new pod; what runs there stays.
    pub ready: bool,
    /// `status.allocatable`, pod slots as `pods`.
    pub allocatable: BTreeMap<Name, Amount>,
}

/// A taint of a node or flavor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Taint {
    /// Its key.
    pub key: Name,
    /// Its value, empty if none.
    pub value: Name,
    /// What it does to pods that do not tolerate it.
    pub effect: TaintEffect,
}

/// What a taint does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaintEffect {
    /// No new pods.
    NoSchedule,
    /// Preferably no new pods: never a reason to refuse.
    PreferNoSchedule,
    /// No pods at all.
    NoExecute,
}

/// A toleration of a pod or flavor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// The taint's key; `None` with `Exists` tolerates every taint.
    pub key: Option<Name>,
    /// Which taint values it means.
    pub matches: TolerationMatch,
    /// `None` tolerates every effect.
    pub effect: Option<TaintEffect>,
}

/// Which values a toleration means (`operator` and `value` of the API).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TolerationMatch {
    /// Any value.
    Exists,
    /// This value.
    Equal(Name),
}

/// What placement must know of a pod: requests and constraints. Equal pods share one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape {
    /// Requests by Kubernetes' formula, without the implied pod slot.
    pub requests: BTreeMap<Name, Amount>,
    /// `nodeSelector`.
    pub node_selector: Labels,
    /// Required node affinity: one term must match. `None` means no requirement; an empty list
    /// matches nothing, as in Kubernetes.
    pub node_affinity: Option<Vec<NodeSelectorTerm>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
    /// What it demands of other pods, if anything.
    pub neighbours: Option<Arc<Neighbours>>,
    /// What it would like, if anything: chooses among places, and never keeps it from one.
    pub prefers: Option<Arc<Preferences>>,
    /// The claims that it mounts: sorted, each once.
    pub claims: Vec<ClaimKey>,
    /// Something else that it needs, and nobody here can promise.
    pub unserved: Option<Unserved>,
}

impl Shape {
    /// The same without what only the scheduler that binds it must look at.
    #[must_use]
    pub fn without_neighbours(self: &Arc<Self>) -> Arc<Self> {
        let of_others = self.prefers.as_ref().filter(|prefers| prefers.mind_others());
        if self.neighbours.is_none()
            && self.claims.is_empty()
            && self.unserved.is_none()
            && of_others.is_none()
        {
            return self.clone();
        }
        let mut alone = (**self).clone();
        if let Some(prefers) = of_others {
            let of_nodes = Preferences { nodes: prefers.nodes.clone(), ..Preferences::default() };
            alone.prefers = Some(of_nodes).filter(|prefers| !prefers.is_empty()).map(Arc::new);
        }
        Arc::new(Self { neighbours: None, claims: Vec::new(), unserved: None, ..alone })
    }
}

/// A term of required node affinity: all of its expressions must hold; an empty term matches no
/// node (Kubernetes, `core/v1` NodeSelectorTerm).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct NodeSelectorTerm {
    /// On labels.
    pub labels: Vec<Expression>,
    /// On fields; `metadata.name` is the only one there is.
    pub fields: Vec<Expression>,
}

/// One requirement of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Expression {
    /// The label's (or field's) key.
    pub key: Name,
    /// What must hold of its value.
    pub op: Operator,
}

/// What must hold of a label's value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// One of these.
    In(Vec<Name>),
    /// None of these, or no such label.
    NotIn(Vec<Name>),
    /// There is such a label.
    Exists,
    /// There is no such label.
    DoesNotExist,
    /// It is a whole number above this.
    Gt(i64),
    /// It is a whole number below this.
    Lt(i64),
}

/// A selector over labels: all expressions must hold; an empty one matches everything.
pub type Selector = Vec<Expression>;

/// A pod as the engine sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Pod {
    /// Its uid.
    pub uid: PodUid,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The node that it is bound to.
    pub node: Option<Name>,
    /// What it needs.
    pub shape: Arc<Shape>,
    /// As whom others mean it.
    pub who: Arc<Who>,
    /// Whose member it is: matches one of [`Gang::owners`], whichever arrives first.
    pub owner: Option<Name>,
    /// The pod set that its label names, if any; else it is matched by role and shape.
    pub pod_set: Option<Name>,
    /// The role that it names: it is matched to pod sets of that role only.
    pub role: Option<Name>,
    /// Its completion index, if it has one.
    pub index: Option<u32>,
    /// Its phase.
    pub phase: PodPhase,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// Soroi may bind it: it names our scheduler and has no scheduling gates.
    pub bindable: bool,
}

/// `status.phase`, Unknown counted as Running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PodPhase {
    /// Not started.
    Pending,
    /// Started.
    Running,
    /// Ended well; it charges nothing.
    Succeeded,
    /// Ended badly; it charges nothing.
    Failed,
}

/// A ResourceFlavor.
#[derive(Clone, Debug, PartialEq)]
pub struct Flavor {
    /// Its name.
    pub name: Name,
    /// Labels that its nodes carry.
    pub node_labels: Labels,
    /// Taints that its nodes carry; a workload must tolerate them.
    pub node_taints: Vec<Taint>,
    /// Tolerations that its pods get.
    pub tolerations: Vec<Toleration>,
    /// The Topology that it names.
    pub topology: Option<Name>,
}

/// A Topology: node labels, coarse to fine.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// Its name.
    pub name: Name,
    /// Node label keys, coarsest first; 1 to 16.
    pub levels: Vec<Name>,
}

/// Quotas of one resource in one flavor.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// The resource.
    pub resource: Name,
    /// What the node owns.
    pub nominal: Amount,
    /// How much above its own it may use; `None`: no limit.
    pub borrowing_limit: Option<Amount>,
    /// How much of its own others may use; `None`: all.
    pub lending_limit: Option<Amount>,
}

/// One flavor within a resource group.
#[derive(Clone, Debug, PartialEq)]
pub struct FlavorQuotas {
    /// The flavor.
    pub flavor: Name,
    /// One entry per covered resource.
    pub quotas: Vec<Quota>,
}

/// Resources that are served by the same flavors, in order of preference.
#[derive(Clone, Debug, PartialEq)]
pub struct ResourceGroup {
    /// The resources.
    pub covered: Vec<Name>,
    /// The flavors, preferred first.
    pub flavors: Vec<FlavorQuotas>,
}

/// A Cohort object.
#[derive(Clone, Debug, PartialEq)]
pub struct Cohort {
    /// Its name.
    pub name: Name,
    /// The cohort above it.
    pub parent: Option<Name>,
    /// Quotas of its own.
    pub groups: Vec<ResourceGroup>,
    /// Fair sharing weight in thousandths.
    pub weight_milli: Amount,
}

/// How a ClusterQueue orders its gangs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum QueueingStrategy {
    /// A gang that does not fit lets later ones pass.
    #[default]
    BestEffortFifo,
    /// The first gang blocks the queue until it is admitted.
    StrictFifo,
}

/// Whether a queue admits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StopPolicy {
    /// It does.
    #[default]
    None,
    /// Nothing new; what runs stays.
    Hold,
    /// Nothing new, and what runs is evicted.
    HoldAndDrain,
}

/// Where and how places are decided (README, "Placement policies").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    /// Quota and places in one decision; Soroi binds.
    #[default]
    Unified,
    /// Places are checked where the flavor names a Topology, and pinned by node selectors.
    TopologyOnly,
    /// Quota first, pods created, then places for the gang; Soroi binds.
    AfterAdmission,
    /// Quota alone; another scheduler places pods one by one.
    QuotaOnly,
}

impl Policy {
    /// Whether Soroi binds the pods of gangs under this policy; otherwise another scheduler does.
    pub fn soroi_binds(self) -> bool {
        matches!(self, Self::Unified | Self::AfterAdmission)
    }
}

/// Flavor fungibility: when the search for a flavor stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fungibility {
    /// Take a flavor that needs borrowing (true), or try the next one first.
    pub stop_at_borrow: bool,
    /// Take a flavor that needs preemption (true), or try the next one first.
    pub stop_at_preempt: bool,
    /// Of flavors that were not taken at once, rather preempt than borrow.
    pub prefer_preemption: bool,
}

/// Which running gangs a waiting one may have evicted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Preemptible {
    /// None.
    #[default]
    Never,
    /// Those of lower priority.
    LowerPriority,
    /// Those of lower priority, and of equal priority those that queued later.
    LowerOrNewerEqual,
    /// All.
    Any,
}

/// What a ClusterQueue's gangs may preempt (Kueue, `ClusterQueue.spec.preemption`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preemption {
    /// Of its own gangs.
    pub within_queue: Preemptible,
    /// Of the gangs of other queues of its cohorts that use more than their own.
    pub reclaim: Preemptible,
    /// Whether it may do the latter while it borrows itself.
    pub while_borrowing: Option<WhileBorrowing>,
}

/// What a gang that borrows may preempt in other queues: gangs of lower priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WhileBorrowing {
    /// And not above this priority.
    pub priority_max: Option<i32>,
}

impl Preemption {
    /// Whether its gangs preempt anybody at all.
    pub fn is_any(&self) -> bool {
        self.within_queue != Preemptible::Never || self.reclaim != Preemptible::Never
    }
}

/// A ClusterQueue.
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterQueue {
    /// Its name.
    pub name: Name,
    /// Its cohort.
    pub cohort: Option<Name>,
    /// Which namespaces may use it; `None`: none.
    pub namespace_selector: Option<Selector>,
    /// Its order.
    pub strategy: QueueingStrategy,
    /// Whether it admits.
    pub stop: StopPolicy,
    /// Its quotas.
    pub groups: Vec<ResourceGroup>,
    /// When the search for a flavor stops.
    pub fungibility: Fungibility,
    /// What its gangs may preempt.
    pub preemption: Preemption,
    /// Fair sharing weight in thousandths.
    pub weight_milli: Amount,
    /// The queue's own policy; `None`: the configured one.
    pub placement: Option<Policy>,
    /// How places of its gangs are chosen; `None`: as configured.
    pub packing: Option<crate::packing::Packing>,
    /// Why the queue cannot admit although its object is well formed, as intake found out (a
    /// deletion under way, an admission check that is missing or inactive).
    pub inactive: Option<crate::reason::QueueInactive>,
}

/// A LocalQueue: a namespace's door to a ClusterQueue.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalQueue {
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The ClusterQueue behind it.
    pub cluster_queue: Name,
    /// Whether it admits.
    pub stop: StopPolicy,
}

/// A Volcano Queue. Its capability is a quota tree of its own.
#[derive(Clone, Debug, PartialEq)]
pub struct VolcanoQueue {
    /// Its name.
    pub name: Name,
    /// The queue above it, `root` if none.
    pub parent: Option<Name>,
    /// Hard ceiling per resource; absent: none.
    pub capability: BTreeMap<Name, Amount>,
    /// What is kept for it and those below it, per resource, whether they use it or not.
    pub guarantee: BTreeMap<Name, Amount>,
    /// Larger goes first.
    pub priority: i32,
    /// It takes new gangs.
    pub open: bool,
    /// What of it could not be understood: neither it nor a queue below it takes new gangs then, since
    /// nobody knows its ceiling.
    pub invalid: Option<Name>,
}

/// A gang as its objects describe it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gang {
    /// Its identity.
    pub id: GangId,
    /// Its namespace.
    pub namespace: Name,
    /// The name people know it by: its Workload's, PodGroup's or pod's.
    pub name: Name,
    /// What [`Pod::owner`] of its members says, for instance a Job's uid or a PodGroup's key.
    pub owners: Vec<Name>,
    /// Its LocalQueue, in its own namespace. `None`: it needs no quota there.
    pub local_queue: Option<Name>,
    /// Its seat in the Volcano tree.
    pub volcano_queue: Option<Name>,
    /// Larger goes first.
    pub priority: i32,
    /// The time stamp of its order.
    pub queued_at: Millis,
    /// It was sent back into its queue, to be considered from this time on (Kueue: the Workload's
    /// `requeueAt`); in the past or 0: at once.
    pub not_before: Millis,
    /// What must start together. At least one.
    pub pod_sets: Vec<PodSet>,
    /// How many members must run for the gang to be worth anything, over all pod sets and of each
    /// role; `None`: all. (A PodGroup's `minMember` and `minTaskMember`.)
    pub minima: Option<Minima>,
    /// Whether it may be decided now.
    pub readiness: Readiness,
    /// Admission checks of its ClusterQueue that it has not passed: for each the flavors that it is asked
    /// for; without any it is asked for all. Who gets one of them gets its quota alone, and places when
    /// all are passed.
    pub checks: BTreeSet<BTreeSet<Name>>,
    /// A policy that its kind imposes, whatever its queue says; `None`: the queue's. (A Workload
    /// whose pods somebody else starts and binds is [`Policy::QuotaOnly`].)
    pub policy: Option<Policy>,
    /// A scheduler that its pods name on purpose, neither ours nor the default one. Policies that
    /// need ours cannot be carried out then: [`crate::reason::Reason::ForeignScheduler`].
    pub foreign_scheduler: Option<Name>,
    /// What its status says it holds. Restores gangs whose policy has no plan, and gangs that were
    /// admitted by another product.
    pub admitted: Option<Admitted>,
    /// How far its pods are, where somebody waits for that.
    pub pods_ready: PodsReady,
}

/// Whether the pods of a gang are ready (Kueue, condition PodsReady under `waitForPodsReady`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PodsReady {
    /// Its status says that all of them are ready or have ended well.
    pub shown: bool,
    /// It is admitted, its pods are not ready, and at this time it has to leave for that; `None`: not so, or
    /// it may take as long as it likes.
    pub due: Option<Millis>,
}

impl PodSet {
    /// A pod as quota sees it: with the requests that are charged.
    pub fn charged(&self) -> &Arc<Shape> {
        self.charged.as_ref().unwrap_or(&self.shape)
    }
}

/// Some equal pods of a gang.
#[derive(Clone, Debug, PartialEq)]
pub struct PodSet {
    /// Its name.
    pub name: Name,
    /// The role of its pods, which may have a minimum of its own. Pod sets may share one.
    pub role: Option<Name>,
    /// How many pods should run now (a Job: min of parallelism and remaining completions).
    pub count: u32,
    /// How few of them would do, if there is nothing for all (Kueue's `minCount`); `None`: all or none.
    pub least: Option<u32>,
    /// What each needs, as predicted from the template.
    pub shape: Arc<Shape>,
    /// The same with the requests that are charged to quota, where these are others.
    pub charged: Option<Arc<Shape>>,
    /// Where they must be relative to each other.
    pub topology: TopologyRequest,
    /// As whom others mean them. Where members differ in their labels, those of one of them.
    pub who: Arc<Who>,
}

/// Where the pods of a pod set must be relative to each other (Kueue, `topologyRequest`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TopologyRequest {
    /// Where all of them are together.
    pub wish: TopologyWish,
    /// Parts of equal size, each of which is in one domain: layers from coarse to fine, the size of
    /// each a multiple of the next one's. Pods beyond the last whole part of the first layer make a
    /// smaller one.
    pub slices: Vec<Slice>,
    /// Pod sets that name the same group share one domain, and one flavor of each resource group
    /// (Kueue, `podSetGroupName`: a leader and its workers).
    pub group: Option<Name>,
}

/// A layer of slices: every `size` pods are in one domain of a level.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Slice {
    /// The node label of the level.
    pub level: Name,
    /// Pods in each; at least 1.
    pub size: u32,
}

impl TopologyRequest {
    /// Nothing is asked.
    pub const NONE: Self = Self { wish: TopologyWish::None, slices: Vec::new(), group: None };

    /// This and nothing else.
    pub fn of(wish: TopologyWish) -> Self {
        Self { wish, ..Self::NONE }
    }

    /// All pods in one domain of this level.
    pub fn required(level: Name) -> Self {
        Self::of(TopologyWish::Required(level))
    }

    /// In one domain of this level if possible.
    pub fn preferred(level: Name) -> Self {
        Self::of(TopologyWish::Preferred(level))
    }

    /// Anywhere in the topology.
    pub fn unconstrained() -> Self {
        Self::of(TopologyWish::Unconstrained)
    }

    /// The level that all pods are to share, strictly or not.
    pub fn level(&self) -> Option<&Name> {
        match &self.wish {
            TopologyWish::Required(level) | TopologyWish::Preferred(level) => Some(level),
            TopologyWish::None | TopologyWish::Unconstrained => None,
        }
    }
}

/// Where all pods of a pod set are together.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum TopologyWish {
    /// Nothing was asked.
    #[default]
    None,
    /// All in one domain of the level with this node label, or not at all.
    Required(Name),
    /// In one domain of this level if possible, else as few coarser ones as possible.
    Preferred(Name),
    /// Anywhere in the topology.
    Unconstrained,
}

/// Whether a gang may be decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Readiness {
    /// It may.
    Ready,
    /// Not yet: an expected step of somebody else is missing (the Job controller's status, more
    /// pods of a group). No fault, and seldom for long.
    NotYet(crate::reason::NotYet),
    /// It must not run: its user switched it off (`spec.active: false`, suspended by hand, queue
    /// removed). An admitted gang leaves.
    Off(crate::reason::Off),
}

/// What a gang's status says that it holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The ClusterQueue whose quota it holds.
    pub cluster_queue: Name,
    /// When it got that; 0: not known.
    pub reserved_at: Millis,
    /// It was told to leave.
    pub leaving: bool,
    /// Per pod set: name, count, and the flavor of each resource.
    pub pod_sets: Vec<(Name, u32, BTreeMap<Name, Name>)>,
    /// Per pod set that is pinned to topology domains: its name and the domains. Restores the
    /// places of gangs whose policy has no plan.
    pub topology: BTreeMap<Name, crate::decision::TopologyPlaces>,
}

/// A GangPlan: the commit record.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The gang.
    pub gang: GangId,
    /// [`Gang::owners`], so that bound pods are still found when the gang itself is gone; may be
    /// empty.
    pub owners: Vec<Name>,
    /// How far it was carried out.
    pub phase: PlanPhase,
    /// What was decided.
    pub admission: crate::decision::Admission,
    /// The time of its last progress.
    pub progressed_at: Millis,
    /// Who leaves for it (phase Holding), and why they may be told to.
    pub victims: Vec<(GangId, crate::preempt::Cause)>,
}

/// How far a plan was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanPhase {
    /// Quota and places are kept while victims leave.
    Holding,
    /// Decided and written; members are released and bound.
    Committed,
    /// All members are bound.
    Settled,
    /// Being taken back.
    Undoing,
}
