//! Which kinds of objects Soroi watches and writes, and where the API server keeps them.
//!
//! Knows names and paths. Must never know what an object means.

use soroi_engine::event::Name;

/// A kind of object. The order is the order in which simultaneous changes are taken in: what
/// others refer to comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Namespace,
    LimitRange,
    RuntimeClass,
    PriorityClass,
    WorkloadPriorityClass,
    Topology,
    Flavor,
    AdmissionCheck,
    Cohort,
    ClusterQueue,
    LocalQueue,
    VolcanoQueue,
    Node,
    VolumeLimits,
    Volume,
    Claim,
    GangPlan,
    PodGroup,
    Job,
    Workload,
    Pod,
}

impl Kind {
    /// Every kind, in order.
    pub(crate) const ALL: [Self; 21] = [
        Self::Namespace,
        Self::LimitRange,
        Self::RuntimeClass,
        Self::PriorityClass,
        Self::WorkloadPriorityClass,
        Self::Topology,
        Self::Flavor,
        Self::AdmissionCheck,
        Self::Cohort,
        Self::ClusterQueue,
        Self::LocalQueue,
        Self::VolcanoQueue,
        Self::Node,
        Self::VolumeLimits,
        Self::Volume,
        Self::Claim,
        Self::GangPlan,
        Self::PodGroup,
        Self::Job,
        Self::Workload,
        Self::Pod,
    ];

    /// Group and version as they stand in a path, and the plural.
    const fn resource(self) -> (&'static str, &'static str) {
        const CORE: &str = "/api/v1";
        const KUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2";
        const VOLCANO: &str = "/apis/scheduling.volcano.sh/v1beta1";
        match self {
            Self::Namespace => (CORE, "namespaces"),
            Self::LimitRange => (CORE, "limitranges"),
            Self::RuntimeClass => ("/apis/node.k8s.io/v1", "runtimeclasses"),
            Self::PriorityClass => ("/apis/scheduling.k8s.io/v1", "priorityclasses"),
            Self::WorkloadPriorityClass => (KUEUE, "workloadpriorityclasses"),
            Self::Topology => (KUEUE, "topologies"),
            Self::Flavor => (KUEUE, "resourceflavors"),
            Self::AdmissionCheck => (KUEUE, "admissionchecks"),
            Self::Cohort => (KUEUE, "cohorts"),
            Self::ClusterQueue => (KUEUE, "clusterqueues"),
            Self::LocalQueue => (KUEUE, "localqueues"),
            Self::VolcanoQueue => (VOLCANO, "queues"),
            Self::Node => (CORE, "nodes"),
            Self::VolumeLimits => ("/apis/storage.k8s.io/v1", "csinodes"),
            Self::Volume => (CORE, "persistentvolumes"),
            Self::Claim => (CORE, "persistentvolumeclaims"),
            Self::GangPlan => ("/apis/soroi.dev/v1alpha1", "gangplans"),
            Self::PodGroup => (VOLCANO, "podgroups"),
            Self::Job => ("/apis/batch/v1", "jobs"),
            Self::Workload => (KUEUE, "workloads"),
            Self::Pod => (CORE, "pods"),
        }
    }

    /// The path of its group and version, which lists the resources that are served.
    pub(crate) const fn group(self) -> &'static str {
        self.resource().0
    }

    /// The plural, as in paths.
    pub(crate) const fn plural(self) -> &'static str {
        self.resource().1
    }

    /// Its group and version as objects name them, and the name of the kind.
    pub(crate) fn named(self) -> (&'static str, &'static str) {
        let path = self.group();
        let group = path.strip_prefix("/apis/").or_else(|| path.strip_prefix("/api/")).unwrap_or(path);
        let kind = match self {
            Self::Namespace => "Namespace",
            Self::LimitRange => "LimitRange",
            Self::RuntimeClass => "RuntimeClass",
            Self::PriorityClass => "PriorityClass",
            Self::WorkloadPriorityClass => "WorkloadPriorityClass",
            Self::Topology => "Topology",
            Self::Flavor => "ResourceFlavor",
            Self::AdmissionCheck => "AdmissionCheck",
            Self::Cohort => "Cohort",
            Self::ClusterQueue => "ClusterQueue",
            Self::LocalQueue => "LocalQueue",
            Self::VolcanoQueue => "Queue",
            Self::Node => "Node",
            Self::VolumeLimits => "CSINode",
            Self::Volume => "PersistentVolume",
            Self::Claim => "PersistentVolumeClaim",
            Self::GangPlan => "GangPlan",
            Self::PodGroup => "PodGroup",
            Self::Job => "Job",
            Self::Workload => "Workload",
            Self::Pod => "Pod",
        };
        (group, kind)
    }

    /// Whether a cluster without this kind is a cluster all the same.
    pub(crate) const fn may_be_missing(self) -> bool {
        !matches!(self, Self::Namespace | Self::Node | Self::Pod | Self::Job)
    }

    /// Objects that others are understood by: their lists are read before the rest is followed.
    pub(crate) const fn is_context(self) -> bool {
        matches!(
            self,
            Self::Namespace
                | Self::LimitRange
                | Self::RuntimeClass
                | Self::PriorityClass
                | Self::WorkloadPriorityClass
        )
    }

    /// The path of all its objects, in all namespaces.
    pub(crate) fn all(self) -> String {
        let (group, plural) = self.resource();
        format!("{group}/{plural}")
    }
}

/// One object, by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Target {
    pub(crate) kind: Kind,
    /// Empty for cluster-scoped kinds.
    pub(crate) namespace: Name,
    pub(crate) name: Name,
}

impl Target {
    pub(crate) fn new(kind: Kind, namespace: &Name, name: &Name) -> Self {
        Self { kind, namespace: namespace.clone(), name: name.clone() }
    }

    /// The path of the collection that it is created in.
    pub(crate) fn collection(&self) -> String {
        let (group, plural) = self.kind.resource();
        if self.namespace.is_empty() {
            format!("{group}/{plural}")
        } else {
            format!("{group}/namespaces/{}/{plural}", self.namespace)
        }
    }

    /// Its own path. Names are DNS names and need no escaping.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.name)
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let plural = self.kind.plural();
        if self.namespace.is_empty() {
            write!(f, "{plural}/{}", self.name)
        } else {
            write!(f, "{plural}/{}/{}", self.namespace, self.name)
        }
    }
}
