//! Kueue's kinds, group `kueue.x-k8s.io`, version `v1beta2`.
//!
//! Fields, bounds and defaults are those of Kueue 0.18 and 0.19; where the two differ, the wider
//! one counts, so that objects of both are accepted. Optional fields are `Option`, empty lists or
//! empty maps, and are never filled in when an object is read; methods give the value in force.

mod admission_check;
mod cluster_queue;
mod cohort;
mod local_queue;
mod priority_class;
mod quota;
mod resource_flavor;
mod topology;
mod topology_assignment;
mod workload;
mod workload_status;

pub use admission_check::{
    AdmissionCheck, AdmissionCheckParameters, AdmissionCheckSpec, AdmissionCheckStatus,
};
pub use cluster_queue::{
    AdmissionCheckRule, AdmissionChecksStrategy, AdmissionMode, AdmissionScope, BorrowWithinCohort,
    BorrowWithinCohortPolicy, ClusterQueue, ClusterQueuePreemption, ClusterQueueSpec, ClusterQueueStatus,
    ConcurrentAdmissionPolicy, FlavorFungibility, FlavorFungibilityPolicy, FlavorFungibilityPreference,
    MigrationConstraints, MigrationMode, MigrationPolicy, QueueingStrategy, ReclaimWithinCohortPolicy,
    WithinClusterQueuePolicy,
};
pub use cohort::{Cohort, CohortSpec, CohortStatus};
pub use local_queue::{
    AdmissionFairSharingStatus, LocalQueue, LocalQueueFairSharingStatus, LocalQueueFlavorUsage,
    LocalQueueResourceUsage, LocalQueueSpec, LocalQueueStatus,
};
pub use priority_class::{WorkloadPriorityClass, WorkloadPriorityClassSpec};
pub use quota::{
    FairSharing, FairSharingStatus, FlavorQuotas, FlavorUsage, ResourceGroup, ResourceQuota, ResourceUsage,
    StopPolicy,
};
pub use resource_flavor::{ResourceFlavor, ResourceFlavorSpec};
pub use topology::{Topology, TopologyLevel, TopologySpec};
pub use topology_assignment::{
    MalformedAssignment, TopologyAssignment, TopologyAssignmentSlice, TopologyDomain, TopologyLevelValues,
    TopologyPodCounts, TopologyValueParts,
};
pub(crate) use topology_assignment::{counts as pod_counts_schema, uniform};
pub use workload::{
    PodSet, PodSetTopologyRequest, PreemptionGate, PriorityClassGroup, PriorityClassKind, PriorityClassRef,
    SliceTopologyConstraint, Workload, WorkloadSpec,
};
pub use workload_status::{
    Admission, AdmissionCheckState, CheckState, DelayedTopologyRequest, PodSetAssignment, PodSetRequest,
    PodSetUpdate, PreemptionGatePosition, PreemptionGateState, ReclaimablePod, RequeueState, SchedulingStats,
    UnhealthyNode, WorkloadEviction, WorkloadStatus,
};

/// The API group.
pub const GROUP: &str = "kueue.x-k8s.io";
/// The version that is stored.
pub const VERSION: &str = "v1beta2";
/// The version that old clients speak. It is served by conversion.
pub const V1BETA1: &str = "v1beta1";
