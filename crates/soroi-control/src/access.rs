//! What the control loop asks of the API server, and nothing else: the rights that its account needs.
//!
//! Knows groups, resources and verbs as RBAC spells them. Must never know who grants them.

/// One resource (or subresource) and what is done to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// API group; empty for core.
    pub group: &'static str,
    /// The plural, with the subresource after a slash.
    pub resource: &'static str,
    /// Verbs of RBAC.
    pub verbs: &'static [&'static str],
    /// What it is for, in a few words.
    pub why: &'static str,
}

const fn access(
    group: &'static str,
    resource: &'static str,
    verbs: &'static [&'static str],
    why: &'static str,
) -> Access {
    Access { group, resource, verbs, why }
}

const KUEUE: &str = soroi_api::kueue::GROUP;
const VOLCANO: &str = soroi_api::volcano::GROUP;
/// What is only looked at.
const FOLLOW: &[&str] = &["list", "watch"];
/// What is looked at and changed; read back when the outcome of a change is unknown.
const CHANGE: &[&str] = &["get", "list", "watch", "patch"];
const MAKE: &[&str] = &["get", "list", "watch", "create", "patch"];

/// All of it, in the whole cluster.
pub const ACCESS: &[Access] = &[
    access("", "limitranges", FOLLOW, "requests that follow from a LimitRange"),
    access("", "namespaces", FOLLOW, "which queues a namespace may use"),
    access("", "nodes", FOLLOW, "places"),
    access("", "persistentvolumeclaims", FOLLOW, "which volumes a pod has"),
    access("", "persistentvolumes", FOLLOW, "which nodes reach a volume"),
    access("", "pods", &["get", "list", "watch", "patch", "delete"], "places in use; members of gangs"),
    access("", "pods/binding", &["create"], "binding"),
    access("", "pods/status", &["patch"], "why a pod waits"),
    access(
        "batch",
        "jobs",
        &["get", "list", "watch", "patch", "delete"],
        "gangs; release and suspension; one that was deactivated goes after the time that is configured",
    ),
    // `Workload.ownerReferences[].blockOwnerDeletion` needs it where the plugin
    // OwnerReferencesPermissionEnforcement is on.
    access("batch", "jobs/finalizers", &["update"], "a Workload owned by its Job"),
    access("batch", "jobs/status", &["patch"], "a start time that stands in the way of the next start"),
    access("events.k8s.io", "events", &["create", "patch"], "what people read"),
    access(KUEUE, "admissionchecks", FOLLOW, "checks of queues"),
    access(KUEUE, "clusterqueues", CHANGE, "quota; the finalizer while in use"),
    access(KUEUE, "clusterqueues/status", &["patch"], "usage and counts"),
    access(KUEUE, "cohorts", FOLLOW, "quota"),
    access(KUEUE, "cohorts/status", &["patch"], "shares"),
    access(KUEUE, "localqueues", CHANGE, "where jobs queue"),
    access(KUEUE, "localqueues/status", &["patch"], "usage and counts"),
    access(KUEUE, "resourceflavors", CHANGE, "which nodes a quota is of; the finalizer while in use"),
    access(KUEUE, "topologies", CHANGE, "what is near what; the finalizer while in use"),
    access(KUEUE, "workloadpriorityclasses", FOLLOW, "the order of jobs"),
    access(
        KUEUE,
        "workloads",
        &["get", "list", "watch", "create", "patch", "delete"],
        "what is queued; it goes when its Job leaves its queue, or was deleted without it, and after the configured time",
    ),
    access(KUEUE, "workloads/status", &["patch"], "admission, and why not yet"),
    access("node.k8s.io", "runtimeclasses", FOLLOW, "what a pod costs beside its requests"),
    access("scheduling.k8s.io", "priorityclasses", FOLLOW, "the order of jobs"),
    access("storage.k8s.io", "csinodes", FOLLOW, "how many volumes a node attaches"),
    access(VOLCANO, "podgroups", MAKE, "gangs; their status is part of the object"),
    access(VOLCANO, "podgroups/finalizers", &["update"], "a Workload owned by its PodGroup"),
    access(VOLCANO, "queues", MAKE, "quota; the two queues that always exist"),
    access(VOLCANO, "queues/status", &["patch"], "the state of a queue"),
    access(
        soroi_api::plan::GROUP,
        "gangplans",
        &["get", "list", "watch", "create", "update", "patch", "delete"],
        "what was decided",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;

    #[test]
    fn every_kind_that_is_watched_may_be_watched() {
        for kind in Kind::ALL {
            let path = kind.group();
            let group =
                path.strip_prefix("/apis/").and_then(|path| path.split('/').next()).unwrap_or_default();
            let found = ACCESS.iter().find(|one| one.group == group && one.resource == kind.plural());
            let found = found.unwrap_or_else(|| panic!("no access to {group}/{}", kind.plural()));
            assert!(FOLLOW.iter().all(|verb| found.verbs.contains(verb)), "{found:?}");
        }
    }

    #[test]
    fn nothing_is_asked_for_wholesale() {
        for access in ACCESS {
            assert!(!access.group.contains('*') && !access.resource.contains('*'), "{access:?}");
            for verb in access.verbs {
                let known = ["get", "list", "watch", "create", "update", "patch", "delete"];
                assert!(known.contains(verb), "{access:?}");
            }
        }
        let mut sorted = ACCESS.to_vec();
        sorted.sort_by_key(|access| (access.group, access.resource));
        sorted.dedup_by_key(|access| (access.group, access.resource));
        assert_eq!(sorted.len(), ACCESS.len(), "a resource is listed once");
    }
}
