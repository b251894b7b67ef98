//! Volcano's kinds, group `scheduling.volcano.sh`, version `v1beta1` (Volcano 1.15).

mod pod_group;
mod queue;

pub use pod_group::{
    NetworkTopology, NetworkTopologyMode, PodGroup, PodGroupCondition, PodGroupPhase, PodGroupSpec,
    PodGroupStatus, SubGroupPolicy,
};
pub use queue::{
    DequeueStrategy, ExtendCluster, Guarantee, NodeGroupAffinity, Queue, QueueAffinity, QueueSpec,
    QueueState, QueueStatus, Reservation,
};

/// The API group.
pub const GROUP: &str = "scheduling.volcano.sh";
/// The version.
pub const VERSION: &str = "v1beta1";
/// The queue of PodGroups that name none.
pub const DEFAULT_QUEUE: &str = "default";
/// The queue above all others.
pub const ROOT_QUEUE: &str = "root";
