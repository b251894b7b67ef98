//! ClusterQueue: a pool of quota for the whole cluster, and the rules by which it is given out.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quota::{
    FairSharing, FairSharingStatus, FlavorUsage, ResourceGroup, StopPolicy, resources_disjoint,
};
use crate::schema::{self, rule};
use crate::text_enum::text_enum;

/// What a ClusterQueue gives out, and how.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "kueue.x-k8s.io",
    version = "v1beta2",
    kind = "ClusterQueue",
    status = "ClusterQueueStatus",
    derive = "PartialEq",
    derive = "Default",
    shortname = "cq",
    category = "soroi",
    doc = "ClusterQueue is a pool of quota for the whole cluster, and the rules by which it is given out.",
    printcolumn(
        name = "Cohort",
        type_ = "string",
        json_path = ".spec.cohortName",
        description = "The cohort that it shares quota with"
    ),
    printcolumn(
        name = "Strategy",
        type_ = "string",
        json_path = ".spec.queueingStrategy",
        priority = "1",
        description = "The order in which workloads are admitted"
    ),
    printcolumn(
        name = "Pending Workloads",
        type_ = "integer",
        json_path = ".status.pendingWorkloads",
        description = "Workloads that wait"
    ),
    printcolumn(
        name = "Admitted Workloads",
        type_ = "integer",
        json_path = ".status.admittedWorkloads",
        priority = "1",
        description = "Workloads that are admitted and not finished"
    )
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "has(self.cohortName) || !has(self.resourceGroups) || self.resourceGroups.all(g, g.flavors.all(f, f.resources.all(r, !has(r.borrowingLimit) && !has(r.lendingLimit))))",
        "borrowingLimit and lendingLimit need a cohortName",
    ),
    rule(
        "has(self.concurrentAdmissionPolicy) == has(oldSelf.concurrentAdmissionPolicy) && (!has(self.concurrentAdmissionPolicy) || self.concurrentAdmissionPolicy == oldSelf.concurrentAdmissionPolicy)",
        "concurrentAdmissionPolicy is immutable",
    ),
    rule(
        "!has(self.concurrentAdmissionPolicy) || (has(self.resourceGroups) && self.resourceGroups.size() == 1 && self.resourceGroups[0].flavors.size() <= 16 && (!has(self.queueingStrategy) || self.queueingStrategy != 'StrictFIFO'))",
        "concurrentAdmissionPolicy needs exactly one resource group with at most 16 flavors, and not StrictFIFO",
    ),
]))]
pub struct ClusterQueueSpec {
    /// What there is to give out: groups of resources with their flavors. A resource and a flavor
    /// belong to one group only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic", "x-kubernetes-validations" = [resources_disjoint()]))]
    pub resource_groups: Vec<ResourceGroup>,
    /// The cohort that it shares unused quota with. The Cohort object is optional.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub cohort_name: Option<String>,
    /// In which order workloads are admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = QueueingStrategy::BestEffortFifo))]
    pub queueing_strategy: Option<QueueingStrategy>,
    /// Which namespaces may use it. Without it none, empty all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::label_selector")]
    pub namespace_selector: Option<LabelSelector>,
    /// When the search for a flavor stops.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = FlavorFungibility::default()))]
    pub flavor_fungibility: Option<FlavorFungibility>,
    /// Which running workloads may be evicted for waiting ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ClusterQueuePreemption::default()))]
    pub preemption: Option<ClusterQueuePreemption>,
    /// Checks that must be passed before a workload with quota starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_checks_strategy: Option<AdmissionChecksStrategy>,
    /// Whether it admits.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = StopPolicy::None))]
    pub stop_policy: Option<StopPolicy>,
    /// Its weight when unused quota of the cohort is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharing>,
    /// Whether LocalQueues are ordered by what they used before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admission_scope: Option<AdmissionScope>,
    /// Whether a workload is tried in several flavors at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrent_admission_policy: Option<ConcurrentAdmissionPolicy>,
}

impl ClusterQueueSpec {
    /// The order in force.
    pub fn queueing_strategy(&self) -> QueueingStrategy {
        self.queueing_strategy.unwrap_or_default()
    }

    /// The stop policy in force.
    pub fn stop_policy(&self) -> StopPolicy {
        self.stop_policy.unwrap_or_default()
    }
}

text_enum! {
    /// In which order workloads are admitted.
    #[derive(Default)]
    QueueingStrategy {
        /// By priority and age; the first blocks all others until it is admitted.
        StrictFifo = "StrictFIFO",
        /// By priority and age; one that does not fit lets later ones pass.
        #[default]
        BestEffortFifo = "BestEffortFIFO",
    }
}

/// When the search for a flavor stops.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!has(self.preference) || (has(self.whenCanBorrow) && self.whenCanBorrow == 'TryNextFlavor' && has(self.whenCanPreempt) && self.whenCanPreempt == 'TryNextFlavor')",
    "preference needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
)]))]
pub struct FlavorFungibility {
    /// What to do with a flavor in which the workload fits if it borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = FlavorFungibilityPolicy::MayStopSearch))]
    pub when_can_borrow: Option<FlavorFungibilityPolicy>,
    /// What to do with a flavor in which the workload fits if it preempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = FlavorFungibilityPolicy::TryNextFlavor))]
    pub when_can_preempt: Option<FlavorFungibilityPolicy>,
    /// Which of the two is better when all flavors were tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preference: Option<FlavorFungibilityPreference>,
}

text_enum! {
    /// What to do with a flavor that is not quite free.
    FlavorFungibilityPolicy {
        /// Take it.
        MayStopSearch = "MayStopSearch",
        /// Try the next one first.
        TryNextFlavor = "TryNextFlavor",
    }
}

text_enum! {
    /// Which compromise is better.
    FlavorFungibilityPreference {
        /// Rather borrow than preempt.
        BorrowingOverPreemption = "BorrowingOverPreemption",
        /// Rather preempt than borrow.
        PreemptionOverBorrowing = "PreemptionOverBorrowing",
    }
}

/// Which running workloads may be evicted for waiting ones.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "!(has(self.reclaimWithinCohort) && self.reclaimWithinCohort == 'Never' && has(self.borrowWithinCohort) && has(self.borrowWithinCohort.policy) && self.borrowWithinCohort.policy != 'Never')",
    "borrowWithinCohort needs reclaimWithinCohort other than Never",
)]))]
pub struct ClusterQueuePreemption {
    /// Of other queues of the cohort that use more than their own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = ReclaimWithinCohortPolicy::Never))]
    pub reclaim_within_cohort: Option<ReclaimWithinCohortPolicy>,
    /// Of other queues of the cohort, while this queue itself borrows.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = BorrowWithinCohort::default()))]
    pub borrow_within_cohort: Option<BorrowWithinCohort>,
    /// Of this queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = WithinClusterQueuePolicy::Never))]
    pub within_cluster_queue: Option<WithinClusterQueuePolicy>,
}

text_enum! {
    /// Which workloads of other queues may be evicted to get the queue's own quota back.
    #[derive(Default)]
    ReclaimWithinCohortPolicy {
        /// None.
        #[default]
        Never = "Never",
        /// Those of lower priority.
        LowerPriority = "LowerPriority",
        /// All.
        Any = "Any",
    }
}

text_enum! {
    /// Which workloads of the same queue may be evicted.
    #[derive(Default)]
    WithinClusterQueuePolicy {
        /// None.
        #[default]
        Never = "Never",
        /// Those of lower priority.
        LowerPriority = "LowerPriority",
        /// Those of lower priority, and newer ones of equal priority.
        LowerOrNewerEqualPriority = "LowerOrNewerEqualPriority",
    }
}

/// Eviction in other queues while the evicting queue borrows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BorrowWithinCohort {
    /// Whether it is allowed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = BorrowWithinCohortPolicy::Never))]
    pub policy: Option<BorrowWithinCohortPolicy>,
    /// Only workloads of at most this priority may be evicted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_priority_threshold: Option<i32>,
}

text_enum! {
    /// Whether workloads of other queues may be evicted while borrowing.
    #[derive(Default)]
    BorrowWithinCohortPolicy {
        /// They may not.
        #[default]
        Never = "Never",
        /// Those of lower priority may.
        LowerPriority = "LowerPriority",
    }
}

/// Checks that must be passed before a workload with quota starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionChecksStrategy {
    /// The checks.
    #[schemars(length(min = 1, max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub admission_checks: Vec<AdmissionCheckRule>,
}

/// One check, and for which flavors it is needed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionCheckRule {
    /// The name of the AdmissionCheck.
    #[schemars(length(min = 1, max = 316))]
    pub name: String,
    /// The flavors for which it is needed. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::name_set")]
    pub on_flavors: Vec<String>,
}

/// Whether LocalQueues are ordered by what they used before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AdmissionScope {
    /// The mode.
    pub admission_mode: AdmissionMode,
}

text_enum! {
    /// How LocalQueues of one ClusterQueue are ordered.
    AdmissionMode {
        /// Those that used less go first.
        UsageBasedAdmissionFairSharing = "UsageBasedAdmissionFairSharing",
        /// They are not.
        NoAdmissionFairSharing = "NoAdmissionFairSharing",
    }
}

/// Whether a workload is tried in several flavors at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConcurrentAdmissionPolicy {
    /// What happens when a better flavor becomes free later.
    pub migration: MigrationPolicy,
}

/// What happens to a running workload when a better flavor becomes free.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationPolicy {
    /// Whether it moves.
    #[schemars(length(max = 253))]
    pub mode: MigrationMode,
    /// How far it moves.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<MigrationConstraints>,
}

text_enum! {
    /// Whether a running workload moves to a better flavor.
    MigrationMode {
        /// It does.
        TryPreferredFlavors = "TryPreferredFlavors",
        /// It stays where it started.
        RetainFirstAdmission = "RetainFirstAdmission",
    }
}

/// How far a workload moves.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MigrationConstraints {
    /// The least preferred flavor that still counts as good: from there on nothing moves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "schema::name")]
    pub last_acceptable_flavor_name: Option<String>,
}

/// What a ClusterQueue has given out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClusterQueueStatus {
    /// Whether it admits (type Active), and why not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "schema::conditions")]
    pub conditions: Vec<Condition>,
    /// What workloads with quota hold, per flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_reservation: Vec<FlavorUsage>,
    /// What admitted workloads hold, per flavor and resource.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub flavors_usage: Vec<FlavorUsage>,
    /// Workloads that wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_workloads: Option<i32>,
    /// Workloads that hold quota.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reserving_workloads: Option<i32>,
    /// Workloads that are admitted and not finished.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admitted_workloads: Option<i32>,
    /// How much it borrows relative to its weight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fair_sharing: Option<FairSharingStatus>,
}
