//! Which kinds of objects does a story speak of, and where does the API keep them?
//!
//! Knows names, groups and paths; never what an object means.

/// A kind of API object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Kind {
    /// The word for it in a story.
    pub word: &'static str,
    /// API group; empty for the core group.
    pub group: &'static str,
    /// API version.
    pub version: &'static str,
    /// `kind` of its objects.
    pub kind: &'static str,
    /// Its resource name in paths.
    pub plural: &'static str,
    /// Whether its objects live in a namespace.
    pub namespaced: bool,
}

const fn kind(
    word: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    namespaced: bool,
) -> Kind {
    Kind { word, group, version, kind, plural, namespaced }
}

/// Group of Kueue's kinds.
pub const KUEUE: &str = "kueue.x-k8s.io";
/// Group of Volcano's kinds.
pub const VOLCANO: &str = "scheduling.volcano.sh";

/// Nodes.
pub const NODE: Kind = kind("node", "", "v1", "Node", "nodes", false);
/// Pods.
pub const POD: Kind = kind("pod", "", "v1", "Pod", "pods", true);
/// Namespaces.
pub const NAMESPACE: Kind = kind("namespace", "", "v1", "Namespace", "namespaces", false);
/// Events, as core/v1 shows them.
pub const EVENT: Kind = kind("event", "", "v1", "Event", "events", true);
/// Jobs.
pub const JOB: Kind = kind("job", "batch", "v1", "Job", "jobs", true);
/// PersistentVolumes.
pub const VOLUME: Kind = kind("volume", "", "v1", "PersistentVolume", "persistentvolumes", false);
/// PersistentVolumeClaims.
pub const CLAIM: Kind = kind("claim", "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true);
/// PriorityClasses.
pub const PRIORITY_CLASS: Kind =
    kind("priorityclass", "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", false);
/// Kueue's Workloads.
pub const WORKLOAD: Kind = kind("workload", KUEUE, "v1beta2", "Workload", "workloads", true);
/// Kueue's ClusterQueues.
pub const CLUSTER_QUEUE: Kind = kind("queue", KUEUE, "v1beta2", "ClusterQueue", "clusterqueues", false);
/// Kueue's LocalQueues.
pub const LOCAL_QUEUE: Kind = kind("localqueue", KUEUE, "v1beta2", "LocalQueue", "localqueues", true);
/// Kueue's Cohorts.
pub const COHORT: Kind = kind("cohort", KUEUE, "v1beta2", "Cohort", "cohorts", false);
/// Kueue's ResourceFlavors.
pub const FLAVOR: Kind = kind("flavor", KUEUE, "v1beta2", "ResourceFlavor", "resourceflavors", false);
/// Kueue's Topologies.
pub const TOPOLOGY: Kind = kind("topology", KUEUE, "v1beta2", "Topology", "topologies", false);
/// Kueue's AdmissionChecks.
pub const ADMISSION_CHECK: Kind = kind("check", KUEUE, "v1beta2", "AdmissionCheck", "admissionchecks", false);
/// Kueue's WorkloadPriorityClasses.
pub const WORKLOAD_PRIORITY_CLASS: Kind = kind(
    "workloadpriorityclass",
    KUEUE,
    "v1beta2",
    "WorkloadPriorityClass",
    "workloadpriorityclasses",
    false,
);
/// Volcano's PodGroups.
pub const POD_GROUP: Kind = kind("group", VOLCANO, "v1beta1", "PodGroup", "podgroups", true);
/// Volcano's Queues.
pub const VOLCANO_QUEUE: Kind = kind("volcanoqueue", VOLCANO, "v1beta1", "Queue", "queues", false);
/// Soroi's commit records.
pub const GANG_PLAN: Kind = kind("plan", "soroi.dev", "v1alpha1", "GangPlan", "gangplans", true);

/// Leases. No story names them; who leads is looked up there.
pub const LEASE: Kind = kind("lease", "coordination.k8s.io", "v1", "Lease", "leases", true);

/// Every kind that a story may name, in the order in which a manifest file is usually written.
pub const KINDS: &[Kind] = &[
    NAMESPACE,
    NODE,
    VOLUME,
    CLAIM,
    PRIORITY_CLASS,
    TOPOLOGY,
    FLAVOR,
    COHORT,
    ADMISSION_CHECK,
    CLUSTER_QUEUE,
    LOCAL_QUEUE,
    WORKLOAD_PRIORITY_CLASS,
    VOLCANO_QUEUE,
    POD_GROUP,
    JOB,
    POD,
    WORKLOAD,
    GANG_PLAN,
    EVENT,
];

impl Kind {
    /// The kind that a story calls `word` (also its Kubernetes name in lower case, or plural).
    pub fn of_word(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        KINDS
            .iter()
            .copied()
            .find(|kind| kind.word == word || kind.plural == word || kind.kind.to_ascii_lowercase() == word)
    }

    /// The kind of a manifest.
    pub fn of_manifest(api_version: &str, kind: &str) -> Option<Self> {
        KINDS.iter().copied().find(|known| known.api_version() == api_version && known.kind == kind)
    }

    /// `apiVersion` of its objects.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.to_owned()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    /// The path of its collection: in `namespace`, or over all namespaces.
    pub fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() {
            format!("/api/{}", self.version)
        } else {
            format!("/apis/{}/{}", self.group, self.version)
        };
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{}", self.plural),
            None => format!("{root}/{}", self.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_found_by_any_of_their_names() {
        for word in ["group", "podgroups", "PodGroup"] {
            assert_eq!(Kind::of_word(word), Some(POD_GROUP));
        }
        assert_eq!(Kind::of_manifest("kueue.x-k8s.io/v1beta2", "ClusterQueue"), Some(CLUSTER_QUEUE));
        assert_eq!(Kind::of_manifest("v1", "ClusterQueue"), None);
    }

    #[test]
    fn paths_are_those_of_the_api() {
        assert_eq!(POD.path(Some("team-a")), "/api/v1/namespaces/team-a/pods");
        assert_eq!(POD.path(None), "/api/v1/pods");
        assert_eq!(NODE.path(Some("ignored")), "/api/v1/nodes");
        assert_eq!(JOB.path(Some("x")), "/apis/batch/v1/namespaces/x/jobs");
    }
}
