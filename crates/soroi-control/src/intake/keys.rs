//! Labels, annotations and gates that Kubernetes', Kueue's and Volcano's users write.

/// Job (and pod): the LocalQueue.
pub(crate) const QUEUE_NAME_LABEL: &str = "kueue.x-k8s.io/queue-name";
/// Job: the WorkloadPriorityClass.
pub(crate) const PRIORITY_CLASS_LABEL: &str = "kueue.x-k8s.io/priority-class";
/// Job: how long it may run, in seconds.
pub(crate) const MAX_EXEC_TIME_LABEL: &str = "kueue.x-k8s.io/max-exec-time-seconds";
/// Pod: its pod set.
pub(crate) const POD_SET_LABEL: &str = "kueue.x-k8s.io/podset";
/// Job: how few pods still are worth starting.
pub(crate) const MIN_PARALLELISM_ANNOTATION: &str = "kueue.x-k8s.io/job-min-parallelism";

/// Names the PodGroup that a pod belongs to (the annotation that Volcano's users write).
pub(crate) const GROUP_ANNOTATION: &str = "scheduling.k8s.io/group-name";
/// Volcano's own spelling of the same.
pub(crate) const VOLCANO_GROUP_ANNOTATION: &str = "scheduling.volcano.sh/group-name";
/// The Volcano Queue of a pod.
pub(crate) const VOLCANO_QUEUE_ANNOTATION: &str = "scheduling.volcano.sh/queue-name";
/// The role of a pod in its PodGroup.
pub(crate) const ROLE_ANNOTATION: &str = "volcano.sh/task-spec";

/// The index of an Indexed Job's pod: an annotation, since Kubernetes 1.28 also a label.
pub(crate) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// Job: gates of others; the Workload is not decided while this is not empty.
pub(crate) const GATED_BY_ANNOTATION: &str = "kueue.x-k8s.io/admission-gated-by";

/// Template: all pods in one domain of this level.
pub(crate) const REQUIRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-required-topology";
/// Template: in one domain of this level if possible.
pub(crate) const PREFERRED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-preferred-topology";
/// Template: anywhere in the topology.
pub(crate) const UNCONSTRAINED_TOPOLOGY: &str = "kueue.x-k8s.io/podset-unconstrained-topology";
/// Template: slices of the pod set, each in one domain of this level.
pub(crate) const SLICE_TOPOLOGY: &str = "kueue.x-k8s.io/podset-slice-required-topology";
/// Template: the size of a slice.
pub(crate) const SLICE_SIZE: &str = "kueue.x-k8s.io/podset-slice-size";
/// Template: several layers of slices.
pub(crate) const SLICE_LAYERS: &str = "kueue.x-k8s.io/podset-slice-required-topology-constraints";
/// Template: pod sets that share one domain.
pub(crate) const POD_SET_GROUP: &str = "kueue.x-k8s.io/podset-group-name";

/// Labels that the API server puts on a Job's template to find its pods (`pkg/registry/batch/job`).
pub(crate) const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// The older spelling.
pub(crate) const JOB_NAME_LEGACY: &str = "job-name";
/// The Job's uid.
pub(crate) const CONTROLLER_UID: &str = "batch.kubernetes.io/controller-uid";
/// The older spelling.
pub(crate) const CONTROLLER_UID_LEGACY: &str = "controller-uid";
