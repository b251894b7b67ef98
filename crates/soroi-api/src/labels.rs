//! Labels, annotations, scheduling gates, finalizers and names that objects are tied together by.
//!
//! The keys are facts of Kueue 0.18/0.19, Volcano 1.15 and Kubernetes 1.36; only those below
//! `soroi.dev/` are our own.

/// Keys that users set and Kueue reads.
pub mod kueue {
    /// Label of a job: the LocalQueue that it waits in.
    pub const QUEUE_NAME: &str = "kueue.x-k8s.io/queue-name";
    /// Label of a job: its WorkloadPriorityClass.
    pub const PRIORITY_CLASS: &str = "kueue.x-k8s.io/priority-class";
    /// Label of a job: how long it may be admitted, in seconds.
    pub const MAX_EXEC_TIME_SECONDS: &str = "kueue.x-k8s.io/max-exec-time-seconds";
    /// Label or annotation of a job: a Workload that exists already.
    pub const PREBUILT_WORKLOAD_NAME: &str = "kueue.x-k8s.io/prebuilt-workload-name";
    /// Label (or annotation, since 0.19) of a pod: the group that it starts with.
    pub const POD_GROUP_NAME: &str = "kueue.x-k8s.io/pod-group-name";
    /// Annotation of a pod: how many pods its group has.
    pub const POD_GROUP_TOTAL_COUNT: &str = "kueue.x-k8s.io/pod-group-total-count";
    /// Annotation of a pod: its group may be admitted when the first pod is there.
    pub const POD_GROUP_FAST_ADMISSION: &str = "kueue.x-k8s.io/pod-group-fast-admission";
    /// Annotation of a pod: its group serves and does not end.
    pub const POD_GROUP_SERVING: &str = "kueue.x-k8s.io/pod-group-serving";
    /// Annotation of a pod: `false` ends the retries of its group.
    pub const RETRIABLE_IN_GROUP: &str = "kueue.x-k8s.io/retriable-in-group";
    /// Annotation of a Job: with how few pods it is worth starting.
    pub const JOB_MIN_PARALLELISM: &str = "kueue.x-k8s.io/job-min-parallelism";
    /// Annotation of a Job of which fewer pods would do: then it has as many completions.
    pub const JOB_COMPLETIONS_EQUAL_PARALLELISM: &str = "kueue.x-k8s.io/job-completions-equal-parallelism";
    /// Annotation of a job: it may grow and shrink while it runs.
    pub const ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";
    /// Annotation of a job: names of others' gates that keep it from being looked at.
    pub const ADMISSION_GATED_BY: &str = "kueue.x-k8s.io/admission-gated-by";
    /// Annotation of a Workload: added to its priority.
    pub const PRIORITY_BOOST: &str = "kueue.x-k8s.io/priority-boost";
    /// Annotation of a Workload: the only flavors that it may use.
    pub const ALLOWED_RESOURCE_FLAVORS: &str = "kueue.x-k8s.io/workload-allowed-resource-flavors";
    /// Annotation of a pod: a dead node's kubelet need not confirm its end.
    pub const SAFE_TO_FORCEFULLY_DELETE: &str = "kueue.x-k8s.io/safe-to-forcefully-delete";

    /// Annotation of a pod template: all pods within one domain of this level.
    pub const PODSET_REQUIRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-required-topology";
    /// Annotation of a pod template: within one domain of this level if possible.
    pub const PODSET_PREFERRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-preferred-topology";
    /// Annotation of a pod template (`true`): anywhere within the topology.
    pub const PODSET_UNCONSTRAINED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-unconstrained-topology";
    /// Annotation of a pod template: each slice within one domain of this level.
    pub const PODSET_SLICE_REQUIRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-slice-required-topology";
    /// Annotation of a pod template: pods per slice.
    pub const PODSET_SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
    /// Annotation of a pod template: nested slices, as JSON.
    pub const PODSET_SLICE_REQUIRED_TOPOLOGY_CONSTRAINTS: &str =
        "kueue.x-k8s.io/podset-slice-required-topology-constraints";
    /// Annotation of a pod template: pod sets of one group are placed together.
    pub const PODSET_GROUP_NAME: &str = "kueue.x-k8s.io/podset-group-name";

    /// Label of a Workload: the uid of its job.
    pub const JOB_UID: &str = "kueue.x-k8s.io/job-uid";
    /// Label (and finalizer) of a pod that is managed on its own.
    pub const MANAGED: &str = "kueue.x-k8s.io/managed";
    /// Label of a pod: its pod set.
    pub const PODSET: &str = "kueue.x-k8s.io/podset";
    /// Label of a pod: the ClusterQueue that pays.
    pub const CLUSTER_QUEUE_NAME: &str = "kueue.x-k8s.io/cluster-queue-name";
    /// Label of a pod: the LocalQueue that it came through.
    pub const LOCAL_QUEUE_NAME: &str = "kueue.x-k8s.io/local-queue-name";
    /// Annotation of a pod: its Workload.
    pub const WORKLOAD: &str = "kueue.x-k8s.io/workload";
    /// Label and annotation of an elastic job's pods: the slice of the workload.
    pub const WORKLOAD_SLICE_NAME: &str = "kueue.x-k8s.io/workload-slice-name";
    /// Annotation of a pod of a group: the hash of its shape, which names its pod set.
    pub const ROLE_HASH: &str = "kueue.x-k8s.io/role-hash";
    /// Annotation of a Workload: it stands for a group of pods.
    pub const IS_GROUP_WORKLOAD: &str = "kueue.x-k8s.io/is-group-workload";
    /// Annotation of a pod: the owner that is managed instead of it.
    pub const POD_SUSPENDING_PARENT: &str = "kueue.x-k8s.io/pod-suspending-parent";
    /// Label of a pod: its index within its group.
    pub const POD_GROUP_POD_INDEX: &str = "kueue.x-k8s.io/pod-group-pod-index";
    /// Annotation of a pod: the label that holds its index within its group.
    pub const POD_GROUP_POD_INDEX_LABEL: &str = "kueue.x-k8s.io/pod-group-pod-index-label";
    /// Annotation of a pod: added to its index to give its rank.
    pub const POD_INDEX_OFFSET: &str = "kueue.x-k8s.io/pod-index-offset";
    /// Label of a Workload that is one of several tried at once.
    pub const CONCURRENT_ADMISSION_PARENT: &str = "kueue.x-k8s.io/concurrent-admission-parent";
    /// Annotation of a Workload: group, version and kind of its job.
    pub const JOB_OWNER_GVK: &str = "kueue.x-k8s.io/job-owner-gvk";
    /// Annotation of a Workload: the name of its job.
    pub const JOB_OWNER_NAME: &str = "kueue.x-k8s.io/job-owner-name";
    /// Annotation of a Workload that is one of several of its job: which.
    pub const COMPONENT_WORKLOAD_INDEX: &str = "kueue.x-k8s.io/component-workload-index";
    /// Label of an object that was copied from another cluster.
    pub const MULTIKUEUE_ORIGIN: &str = "kueue.x-k8s.io/multikueue-origin";

    /// Scheduling gate of a pod that waits for quota.
    pub const GATE_ADMISSION: &str = "kueue.x-k8s.io/admission";
    /// Scheduling gate of a pod that waits for its topology domain.
    pub const GATE_TOPOLOGY: &str = "kueue.x-k8s.io/topology";
    /// Scheduling gate of an elastic job's pod.
    pub const GATE_ELASTIC_JOB: &str = "kueue.x-k8s.io/elastic-job";

    /// Finalizer of ClusterQueues, ResourceFlavors, Topologies, AdmissionChecks and Workloads.
    pub const RESOURCE_IN_USE: &str = "kueue.x-k8s.io/resource-in-use";

    /// Value of a Job's `spec.managedBy` when another cluster runs it.
    pub const MULTIKUEUE_CONTROLLER: &str = "kueue.x-k8s.io/multikueue";
    /// Prefix of annotations that are copied to a ProvisioningRequest.
    pub const PROVISIONING_PREFIX: &str = "provreq.kueue.x-k8s.io/";

    /// The LocalQueue of jobs without the label, if there is one of this name.
    pub const DEFAULT_LOCAL_QUEUE: &str = "default";
    /// The pod set of jobs that have only one.
    pub const MAIN_POD_SET: &str = "main";
    /// The most pod sets that a Workload may have (18 since 0.19, 10 before).
    pub const POD_SETS_MAX: usize = 18;
    /// The most layers of slices that a pod set may have (`podsetSliceRequiredTopologyConstraints`).
    pub const SLICE_LAYERS_MAX: usize = 3;
}

/// Keys of Volcano.
pub mod volcano {
    /// Annotation of a pod: its PodGroup.
    pub const GROUP_NAME: &str = "scheduling.k8s.io/group-name";
    /// The same under Volcano's own prefix.
    pub const GROUP_NAME_VOLCANO: &str = "scheduling.volcano.sh/group-name";
    /// Annotation of a pod's owner: the minimum of the PodGroup that is made for it.
    pub const GROUP_MIN_MEMBER: &str = "scheduling.volcano.sh/group-min-member";
    /// Annotation of a pod's owner: the resources that the queue must have free.
    pub const GROUP_MIN_RESOURCES: &str = "scheduling.volcano.sh/group-min-resources";
    /// Annotation of a pod or namespace: its queue.
    pub const QUEUE_NAME: &str = "scheduling.volcano.sh/queue-name";
    /// Scheduling gate (and the annotation that asks for it) of a pod that waits for its queue.
    pub const QUEUE_ALLOCATION_GATE: &str = "scheduling.volcano.sh/queue-allocation-gate";

    /// Annotation of a pod: its role within its group.
    pub const TASK_SPEC: &str = "volcano.sh/task-spec";
    /// Annotation of a pod: its index within its role.
    pub const TASK_INDEX: &str = "volcano.sh/task-index";
    /// Annotation of a pod: its job.
    pub const JOB_NAME: &str = "volcano.sh/job-name";
    /// Annotation or label of a pod: it may be evicted.
    pub const PREEMPTABLE: &str = "volcano.sh/preemptable";
    /// Annotation: how long it may wait.
    pub const SLA_WAITING_TIME: &str = "volcano.sh/sla-waiting-time";
    /// Annotation: how long it must not be evicted after its start.
    pub const COOLDOWN_TIME: &str = "volcano.sh/cooldown-time";
    /// Annotation: it may use revocable nodes.
    pub const REVOCABLE_ZONE: &str = "volcano.sh/revocable-zone";
    /// Annotation: how many pods must stay.
    pub const JDB_MIN_AVAILABLE: &str = "volcano.sh/jdb-min-available";
    /// Annotation: how many pods may be missing.
    pub const JDB_MAX_UNAVAILABLE: &str = "volcano.sh/jdb-max-unavailable";
    /// Annotation: how its cores must lie.
    pub const NUMA_TOPOLOGY_POLICY: &str = "volcano.sh/numa-topology-policy";
    /// Annotation: how its cores lie.
    pub const TOPOLOGY_DECISION: &str = "volcano.sh/topology-decision";
    /// Annotation: its level of service.
    pub const QOS_LEVEL: &str = "volcano.sh/qos-level";
    /// Annotation of a queue: its path in the tree.
    pub const HIERARCHY: &str = "volcano.sh/hierarchy";
    /// Annotation of a queue: the weights along that path.
    pub const HIERARCHY_WEIGHTS: &str = "volcano.sh/hierarchy-weights";
    /// Annotation of a queue: it was closed because its parent was.
    pub const CLOSED_BY_PARENT: &str = "volcano.sh/closed-by-parent";
    /// Annotation of an owner: the mode of the made PodGroup's network topology.
    pub const NETWORK_TOPOLOGY_MODE: &str = "volcano.sh/network-topology-mode";
    /// Annotation of an owner: the highest tier of the made PodGroup's network topology.
    pub const NETWORK_TOPOLOGY_HIGHEST_TIER: &str = "volcano.sh/network-topology-highest-tier";
    /// Prefix of annotations that are copied from owners to the PodGroup made for their pods.
    pub const PREFIX: &str = "volcano.sh/";

    /// The scheduler that pods of Volcano name.
    pub const SCHEDULER_NAME: &str = "volcano";
}

/// Keys of our own.
pub mod soroi {
    /// Annotation of a ClusterQueue: the placement policy of its gangs.
    pub const PLACEMENT: &str = "soroi.dev/placement";
    /// Annotation of a ClusterQueue: how places of its gangs are chosen among those that do.
    pub const PACKING: &str = "soroi.dev/packing";
    /// Label of pods that a release of ours brought about: they get our scheduler when they are
    /// created. Its value is the uid of the gang.
    pub const GANG: &str = "soroi.dev/gang";
    /// Annotation of a pod that we bound: the epoch of the leader that did.
    pub const LEADER_EPOCH: &str = "soroi.dev/leader-epoch";
    /// Finalizer of a GangPlan: it goes last.
    pub const PLAN_FINALIZER: &str = "soroi.dev/plan";

    /// The scheduler that our pods name.
    pub const SCHEDULER_NAME: &str = "soroi";
}

/// Keys of Kubernetes itself that everybody needs.
pub mod kubernetes {
    /// Label of a node: its name.
    pub const HOSTNAME: &str = "kubernetes.io/hostname";
    /// Label and annotation of an Indexed Job's pod: its index.
    pub const JOB_COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";
    /// Label of a Job's pod: the Job.
    pub const JOB_NAME: &str = "batch.kubernetes.io/job-name";
    /// Label of a Job's pod: the Job's uid.
    pub const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
    /// Label of a Job's pod: the Job, in the older form.
    pub const JOB_NAME_LEGACY: &str = "job-name";
    /// Label of a Job's pod: the Job's uid, in the older form.
    pub const CONTROLLER_UID_LEGACY: &str = "controller-uid";
    /// Finalizer of a Job's pod: it has not been counted yet.
    pub const JOB_TRACKING: &str = "batch.kubernetes.io/job-tracking";
    /// Value of a Job's `spec.managedBy` when Kubernetes' own controller runs it.
    pub const JOB_CONTROLLER: &str = "kubernetes.io/job-controller";
    /// The scheduler of pods that name none.
    pub const DEFAULT_SCHEDULER: &str = "default-scheduler";
}
