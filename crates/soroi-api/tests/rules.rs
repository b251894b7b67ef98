//! The rules across fields, in the CRDs, judged as the API server judges them: what is accepted,
//! what is refused, and with which words.

use kube_cel::Validator;
use serde_json::{Value, json};
use soroi_api::crds;

/// The messages that an object (and its predecessor) is refused with.
fn refused(kind: &str, object: &Value, old: Option<&Value>) -> Vec<String> {
    let crd = crds::all().into_iter().find(|crd| crd.spec.names.kind == kind).expect("the kind is ours");
    let schema = serde_json::to_value(&crd.spec.versions[0].schema).expect("a schema is JSON");
    let verdict = Validator::new().validate_with_defaults(&schema["openAPIV3Schema"], object, old);
    let errors = verdict.err().map(|errors| errors.into_vec()).unwrap_or_default();
    errors.into_iter().map(|error| format!("{}: {}", error.field_path, error.message)).collect()
}

#[track_caller]
fn accepts(kind: &str, object: Value) {
    assert_eq!(refused(kind, &object, None), Vec::<String>::new());
}

#[track_caller]
fn refuses(kind: &str, object: Value, message: &str) {
    let messages = refused(kind, &object, None);
    assert!(messages.len() == 1 && messages[0] == message, "expected {message:?}, got {messages:?}");
}

#[track_caller]
fn accepts_change(kind: &str, old: Value, new: Value) {
    assert_eq!(refused(kind, &new, Some(&old)), Vec::<String>::new());
}

#[track_caller]
fn refuses_change(kind: &str, old: Value, new: Value, message: &str) {
    let messages = refused(kind, &new, Some(&old));
    assert!(messages.len() == 1 && messages[0] == message, "expected {message:?}, got {messages:?}");
}

fn group(covered: &[&str], flavor: &str, resources: Value) -> Value {
    json!({"coveredResources": covered, "flavors": [{"name": flavor, "resources": resources}]})
}

#[test]
fn quotas() {
    let queue = |cohort: Option<&str>, groups: Value| {
        let mut object = json!({"spec": {"resourceGroups": groups}});
        if let Some(cohort) = cohort {
            object["spec"]["cohortName"] = cohort.into();
        }
        object
    };
    let cpu = |quota: Value| json!([{"name": "cpu", "nominalQuota": quota}]);
    let both = json!([{"name": "memory", "nominalQuota": 1}, {"name": "cpu", "nominalQuota": 1}]);
    accepts("ClusterQueue", queue(None, json!([group(&["cpu"], "a", cpu(json!("1500m")))])));
    refuses(
        "ClusterQueue",
        queue(None, json!([group(&["cpu", "memory"], "a", both)])),
        "spec.resourceGroups[0]: each flavor must list exactly the coveredResources, in the same order",
    );
    refuses(
        "ClusterQueue",
        queue(None, json!([group(&["cpu"], "a", cpu(json!(1))), group(&["cpu"], "b", cpu(json!(1)))])),
        "spec.resourceGroups: a resource must be covered by one resource group only",
    );
    let limits = |lending: Value| {
        json!([group(&["cpu"], "a", json!([{"name": "cpu", "nominalQuota": 2, "lendingLimit": lending}]))])
    };
    accepts("ClusterQueue", queue(Some("all"), limits(json!("2000m"))));
    refuses(
        "ClusterQueue",
        queue(Some("all"), limits(json!("2001m"))),
        "spec.resourceGroups[0].flavors[0].resources[0]: lendingLimit must be at most nominalQuota",
    );
    refuses(
        "ClusterQueue",
        queue(None, limits(json!(1))),
        "spec: borrowingLimit and lendingLimit need a cohortName",
    );
    accepts("Cohort", json!({"spec": {"parentName": "root", "resourceGroups": limits(json!(1))}}));
    refuses(
        "Cohort",
        json!({"spec": {"resourceGroups": limits(json!(1))}}),
        "spec: borrowingLimit and lendingLimit need a parentName",
    );
}

#[test]
fn cluster_queue_knobs() {
    accepts("ClusterQueue", json!({"spec": {}}));
    accepts(
        "ClusterQueue",
        json!({"spec": {"flavorFungibility": {
            "whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor", "preference": "BorrowingOverPreemption",
        }}}),
    );
    refuses(
        "ClusterQueue",
        json!({"spec": {"flavorFungibility": {"preference": "BorrowingOverPreemption"}}}),
        "spec.flavorFungibility: preference needs whenCanBorrow and whenCanPreempt to be TryNextFlavor",
    );
    refuses(
        "ClusterQueue",
        json!({"spec": {"preemption": {"borrowWithinCohort": {"policy": "LowerPriority"}}}}),
        "spec.preemption: borrowWithinCohort needs reclaimWithinCohort other than Never",
    );
    let policy = json!({"migration": {"mode": "RetainFirstAdmission"}});
    let groups = json!([group(&["cpu"], "a", json!([{"name": "cpu", "nominalQuota": 1}]))]);
    let concurrent = json!({"spec": {"concurrentAdmissionPolicy": policy, "resourceGroups": groups}});
    accepts("ClusterQueue", concurrent.clone());
    refuses_change(
        "ClusterQueue",
        concurrent,
        json!({"spec": {"resourceGroups": groups}}),
        "spec: concurrentAdmissionPolicy is immutable",
    );
    refuses(
        "ClusterQueue",
        json!({"spec": {"concurrentAdmissionPolicy": policy, "resourceGroups": groups, "queueingStrategy": "StrictFIFO"}}),
        "spec: concurrentAdmissionPolicy needs exactly one resource group with at most 16 flavors, and not StrictFIFO",
    );
}

#[test]
fn what_stays_as_it_was_created() {
    refuses_change(
        "LocalQueue",
        json!({"spec": {"clusterQueue": "a"}}),
        json!({"spec": {"clusterQueue": "b"}}),
        "spec.clusterQueue: field is immutable",
    );
    refuses_change(
        "AdmissionCheck",
        json!({"spec": {"controllerName": "a"}}),
        json!({"spec": {"controllerName": "b"}}),
        "spec.controllerName: field is immutable",
    );
    let flavor = |topology: &str| json!({"spec": {"nodeLabels": {"a": "b"}, "topologyName": topology}});
    accepts_change("ResourceFlavor", json!({"spec": {"nodeLabels": {"a": "b"}}}), flavor("t"));
    refuses_change("ResourceFlavor", flavor("t"), flavor("u"), "spec: topologyName is immutable once set");
}

#[test]
fn flavors_and_topologies() {
    refuses(
        "ResourceFlavor",
        json!({"spec": {"topologyName": "t"}}),
        "spec: topologyName needs at least one of nodeLabels",
    );
    refuses(
        "ResourceFlavor",
        json!({"spec": {"nodeTaints": [{"key": "k", "effect": "Never"}]}}),
        "spec.nodeTaints: effect of a taint must be NoSchedule, PreferNoSchedule or NoExecute",
    );
    for (toleration, message) in [
        (json!({"operator": "In", "key": "k"}), "operator of a toleration must be Exists or Equal"),
        (json!({"operator": "Exists", "value": "v"}), "a toleration with operator Exists has no value"),
        (json!({"operator": "Equal"}), "a toleration without key needs operator Exists"),
        (
            json!({"key": "k", "effect": "x"}),
            "effect of a toleration must be NoSchedule, PreferNoSchedule or NoExecute",
        ),
        (json!({"key": "k", "tolerationSeconds": 1}), "tolerationSeconds needs effect NoExecute"),
    ] {
        let flavor = json!({"spec": {"tolerations": [toleration]}});
        refuses("ResourceFlavor", flavor, &format!("spec.tolerations: {message}"));
    }
    accepts(
        "ResourceFlavor",
        json!({"spec": {"tolerations": [{"operator": "Exists"}, {"key": "k", "value": "v"}]}}),
    );

    let levels = |names: &[&str]| json!({"spec": {"levels": names.iter().map(|name| json!({"nodeLabel": name})).collect::<Vec<_>>()}});
    let host = "kubernetes.io/hostname";
    accepts("Topology", levels(&["block", "rack", host]));
    refuses("Topology", levels(&["rack", "rack"]), "spec.levels: each level needs a node label of its own");
    refuses(
        "Topology",
        levels(&[host, "rack"]),
        "spec.levels: kubernetes.io/hostname can only be the last level",
    );
    accepts_change("Topology", levels(&["rack", host]), levels(&["block", "rack", host]));
    refuses_change(
        "Topology",
        levels(&["rack"]),
        levels(&["block", "rack"]),
        "spec.levels: levels are immutable unless kubernetes.io/hostname is and stays the last one",
    );
}

fn pod_set(name: &str, count: i32) -> Value {
    json!({"name": name, "count": count, "template": {"spec": {"containers": []}}})
}

#[test]
fn workload_specs() {
    let workload = |pod_sets: Value| json!({"spec": {"podSets": pod_sets}});
    accepts("Workload", workload(json!([pod_set("a", 1), pod_set("b", 0)])));
    let with_min = |name: &str, count: i32, min: i32| {
        let mut set = pod_set(name, count);
        set["minCount"] = min.into();
        set
    };
    refuses(
        "Workload",
        workload(json!([with_min("a", 1, 2)])),
        "spec.podSets[0]: minCount must be at most count",
    );
    refuses(
        "Workload",
        workload(json!([with_min("a", 2, 1), with_min("b", 2, 1)])),
        "spec.podSets: at most one pod set may have a minCount",
    );
    let class = |group: &str, kind: &str| json!({"group": group, "kind": kind, "name": "high"});
    refuses(
        "Workload",
        json!({"spec": {"podSets": [pod_set("a", 1)], "priorityClassRef": class("scheduling.k8s.io", "PriorityClass")}}),
        "spec: priorityClassRef needs priority",
    );
    let swapped = json!({"spec": {
        "podSets": [pod_set("a", 1)], "priority": 1,
        "priorityClassRef": class("scheduling.k8s.io", "WorkloadPriorityClass"),
    }});
    refuses(
        "Workload",
        swapped,
        "spec.priorityClassRef: kind must be PriorityClass for group scheduling.k8s.io",
    );
    let gated = |gates: Value| json!({"spec": {"podSets": [pod_set("a", 1)], "preemptionGates": gates}});
    refuses_change(
        "Workload",
        gated(json!([{"name": "g"}])),
        gated(json!([{"name": "h"}])),
        "spec.preemptionGates: preemption gates can only be added",
    );
}

#[test]
fn workloads_with_quota() {
    let holding = |condition: &str, spec: Value| {
        let mut spec = spec;
        spec["podSets"] = json!([pod_set("a", 2)]);
        json!({"spec": spec, "status": {"conditions": [{"type": condition, "status": "True"}]}})
    };
    refuses_change(
        "Workload",
        holding("QuotaReserved", json!({"queueName": "a"})),
        holding("QuotaReserved", json!({"queueName": "b"})),
        ": spec.queueName is immutable while quota is reserved",
    );
    accepts_change(
        "Workload",
        holding("Evicted", json!({"queueName": "a"})),
        holding("Evicted", json!({"queueName": "b"})),
    );
    let class = |name: &str| {
        json!({"priority": 1, "priorityClassRef":
            {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": name}})
    };
    accepts_change(
        "Workload",
        holding("QuotaReserved", class("low")),
        holding("QuotaReserved", class("high")),
    );
    refuses_change(
        "Workload",
        holding("QuotaReserved", class("low")),
        holding("QuotaReserved", json!({"priority": 1})),
        ": spec.priorityClassRef is immutable while quota is reserved, except for the name of a WorkloadPriorityClass",
    );
    refuses_change(
        "Workload",
        holding("Admitted", json!({"maximumExecutionTimeSeconds": 5})),
        holding("Admitted", json!({})),
        ": spec.maximumExecutionTimeSeconds is immutable while the workload is admitted",
    );
}

#[test]
fn workload_statuses() {
    let status = |status: Value| json!({"spec": {"podSets": [pod_set("a", 2)]}, "status": status});
    refuses(
        "Workload",
        status(json!({"admission": {"podSetAssignments": [{"name": "a"}, {"name": "b"}]}})),
        ": status.admission.podSetAssignments must have at most one entry per pod set",
    );
    accepts("Workload", status(json!({"reclaimablePods": [{"name": "a", "count": 2}]})));
    refuses(
        "Workload",
        status(json!({"reclaimablePods": [{"name": "a", "count": 3}]})),
        ": status.reclaimablePods must name pod sets, with at most their counts",
    );
    refuses(
        "Workload",
        status(json!({"clusterName": "x", "nominatedClusterNames": ["x"]})),
        "status: clusterName and nominatedClusterNames exclude each other",
    );
    accepts_change(
        "Workload",
        status(json!({"nominatedClusterNames": ["x", "y"]})),
        status(json!({"clusterName": "x"})),
    );
    refuses_change(
        "Workload",
        status(json!({"nominatedClusterNames": ["y"]})),
        status(json!({"clusterName": "x"})),
        "status: clusterName is set once, to one of nominatedClusterNames",
    );
    let assigned = |slice: Value| {
        status(json!({"admission": {"podSetAssignments": [{"name": "a", "topologyAssignment":
            {"levels": ["host"], "slices": [slice]}}]}}))
    };
    let at = "status.admission.podSetAssignments[0].topologyAssignment";
    accepts(
        "Workload",
        assigned(json!({"domainCount": 2, "podCounts": {"universal": 1},
            "valuesPerLevel": [{"individual": {"roots": ["a", "b"]}}]})),
    );
    refuses(
        "Workload",
        assigned(json!({"domainCount": 2, "podCounts": {"universal": 1},
            "valuesPerLevel": [{"individual": {"roots": ["a"]}}]})),
        &format!("{at}.slices[0]: individual values of a level must have one root per domain"),
    );
    refuses(
        "Workload",
        assigned(json!({"domainCount": 2, "podCounts": {"individual": [1]},
            "valuesPerLevel": [{"universal": "a"}]})),
        &format!("{at}.slices[0]: individual podCounts must have one entry per domain"),
    );
    refuses(
        "Workload",
        assigned(json!({"domainCount": 1, "podCounts": {}, "valuesPerLevel": [{"universal": "a"}]})),
        &format!("{at}.slices[0].podCounts: exactly one of universal and individual must be set"),
    );
    refuses(
        "Workload",
        assigned(json!({"domainCount": 1, "podCounts": {"universal": 1}, "valuesPerLevel": []})),
        &format!("{at}: valuesPerLevel of each slice must have one entry per level"),
    );
}

#[test]
fn pod_groups() {
    refuses(
        "PodGroup",
        json!({"spec": {"networkTopology": {"highestTierAllowed": 1, "highestTierName": "rack"}}}),
        "spec.networkTopology: highestTierAllowed and highestTierName exclude each other",
    );
    accepts("PodGroup", json!({"spec": {"minMember": 4}}));
}
