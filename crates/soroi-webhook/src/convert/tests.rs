//! Each renaming there and back, and what is lost on the way.

use expect_test::{Expect, expect};

use super::*;

const OLD: &str = "kueue.x-k8s.io/v1beta1";
const NEW: &str = "kueue.x-k8s.io/v1beta2";

fn object(version: &str, kind: &str, spec: &Value, status: &Value) -> Value {
    json!({
        "apiVersion": version, "kind": kind,
        "metadata": { "name": "x", "labels": { "cohort": "kept" } }, "spec": spec, "status": status,
    })
}

/// The old object, as the new version has it; and that it comes back as it was.
fn new_of(kind: &str, spec: &Value, status: &Value, expected: &Expect) {
    let old = object(OLD, kind, spec, status);
    let new = convert(&old, NEW).unwrap();
    assert_eq!(new["apiVersion"], NEW);
    assert_eq!(new["metadata"], old["metadata"]);
    expected.assert_eq(&format!("{}\n{}", new["spec"], new["status"]));
    assert_eq!(convert(&new, OLD).unwrap(), old, "there and back");
    assert_eq!(convert(&new, NEW).unwrap(), new, "as it is");
}

#[test]
fn a_queue_names_its_cohort() {
    new_of(
        "ClusterQueue",
        &json!({ "cohort": "all", "flavorFungibility": { "whenCanBorrow": "TryNextFlavor" } }),
        &json!({ "pendingWorkloads": 3 }),
        &expect![[r#"
            {"cohortName":"all","flavorFungibility":{"whenCanBorrow":"TryNextFlavor"}}
            {"pendingWorkloads":3}"#]],
    );
}

#[test]
fn usage_of_a_local_queue_has_another_name() {
    new_of(
        "LocalQueue",
        &json!({ "clusterQueue": "main" }),
        &json!({ "flavorUsage": [{ "name": "a", "resources": [] }] }),
        &expect![[r#"
            {"clusterQueue":"main"}
            {"flavorsUsage":[{"name":"a","resources":[]}]}"#]],
    );
}

#[test]
fn a_workload_refers_to_its_priority_and_lists_its_domains_shortly() {
    new_of(
        "Workload",
        &json!({ "priority": 5, "priorityClassName": "high", "priorityClassSource": "kueue.x-k8s.io/workloadpriorityclass" }),
        &json!({
            "accumulatedPastExexcutionTimeSeconds": 7,
            "admission": { "clusterQueue": "main", "podSetAssignments": [{ "name": "main", "topologyAssignment": {
                "levels": ["block", "rack"],
                "domains": [
                    { "values": ["b1", "r1"], "count": 2 }, { "values": ["b1", "r2"], "count": 1 },
                ],
            } }] },
        }),
        &expect![[r#"
            {"priority":5,"priorityClassRef":{"group":"kueue.x-k8s.io","kind":"WorkloadPriorityClass","name":"high"}}
            {"accumulatedPastExecutionTimeSeconds":7,"admission":{"clusterQueue":"main","podSetAssignments":[{"name":"main","topologyAssignment":{"levels":["block","rack"],"slices":[{"domainCount":2,"podCounts":{"individual":[2,1]},"valuesPerLevel":[{"universal":"b1"},{"individual":{"prefix":"r","roots":["1","2"]}}]}]}}]}}"#]],
    );
    new_of(
        "Workload",
        &json!({ "priorityClassName": "high", "priorityClassSource": "scheduling.k8s.io/priorityclass" }),
        &json!({}),
        &expect![[r#"
            {"priorityClassRef":{"group":"scheduling.k8s.io","kind":"PriorityClass","name":"high"}}
            {}"#]],
    );
}

#[test]
fn what_does_not_differ_passes() {
    for kind in ["Cohort", "ResourceFlavor", "Topology", "WorkloadPriorityClass"] {
        let old = object(OLD, kind, &json!({ "cohort": "a", "anything": [1] }), &Value::Null);
        let mut new = old.clone();
        new["apiVersion"] = NEW.into();
        assert_eq!(convert(&old, NEW).unwrap(), new);
        assert_eq!(convert(&new, OLD).unwrap(), old);
    }
}

/// Old words that have no way back, and new settings that old clients do not see.
#[test]
fn what_only_one_version_can_say_is_left_out() {
    let to = |version: &str, kind: &str, spec: Value, status: Value| {
        let from = if version == NEW { OLD } else { NEW };
        let converted = convert(&object(from, kind, &spec, &status), version).unwrap();
        format!("{kind} {} {}\n", converted["spec"], converted["status"])
    };
    let mut told = to(
        NEW,
        "ClusterQueue",
        json!({ "admissionChecks": ["a", "b"], "flavorFungibility": { "whenCanBorrow": "Borrow", "whenCanPreempt": "Preempt" } }),
        json!({ "pendingWorkloadsStatus": {}, "fairSharing": { "weightedShare": 1, "admissionFairSharingStatus": {} } }),
    );
    told += &to(NEW, "ClusterQueue", json!({ "admissionChecks": [] }), json!({}));
    told +=
        &to(OLD, "ClusterQueue", json!({ "concurrentAdmissionPolicy": {}, "cohortName": "c" }), json!({}));
    told += &to(NEW, "LocalQueue", json!({}), json!({ "flavors": [] }));
    told += &to(NEW, "Workload", json!({ "priorityClassName": "x", "priorityClassSource": "" }), json!({}));
    told += &to(
        OLD,
        "Workload",
        json!({ "preemptionGates": [], "podSets": [{ "topologyRequest": { "required": "r", "podsetSliceRequiredTopologyConstraints": [] } }] }),
        json!({ "preemptionGates": [] }),
    );
    told += &to(NEW, "AdmissionCheck", json!({ "controllerName": "c", "retryDelayMinutes": 15 }), json!({}));
    expect![[r#"
        ClusterQueue {"admissionChecksStrategy":{"admissionChecks":[{"name":"a"},{"name":"b"}]},"flavorFungibility":{"whenCanBorrow":"MayStopSearch","whenCanPreempt":"MayStopSearch"}} {"fairSharing":{"weightedShare":1}}
        ClusterQueue {} {}
        ClusterQueue {"cohort":"c"} {}
        LocalQueue {} {}
        Workload {} {}
        Workload {"podSets":[{"topologyRequest":{"required":"r"}}]} {}
        AdmissionCheck {"controllerName":"c"} {}
    "#]].assert_eq(&told);
}

#[test]
fn an_assignment_that_contradicts_itself_is_refused() {
    let refused = |from: &str, to: &str, assignment: Value| {
        let status = json!({ "admission": { "podSetAssignments": [{ "topologyAssignment": assignment }] } });
        format!("{}\n", convert(&object(from, "Workload", &json!({}), &status), to).unwrap_err().0)
    };
    let mut told =
        refused(OLD, NEW, json!({ "levels": ["a", "b"], "domains": [{ "values": ["x"], "count": 1 }] }));
    told += &refused(
        NEW,
        OLD,
        json!({ "levels": ["a"], "slices": [{ "domainCount": 2, "valuesPerLevel": [{ "universal": "x" }], "podCounts": { "individual": [1] } }] }),
    );
    told += &refused(NEW, OLD, json!({ "levels": 5 }));
    told += &format!(
        "{}\n",
        convert(&object("batch/v1", "Workload", &json!({}), &json!({})), NEW).unwrap_err().0
    );
    expect![[r#"
        topologyAssignment.domains[0]: values must have one entry per level
        topologyAssignment: topologyAssignment.slices[0]: podCounts has fewer entries than domainCount
        topologyAssignment: invalid type: integer `5`, expected a sequence
        Workload of "batch/v1" cannot be converted to "kueue.x-k8s.io/v1beta2"
    "#]]
    .assert_eq(&told);
}

/// Nobody has promised a shape.
#[test]
fn strange_objects_do_no_harm() {
    for kind in ["ClusterQueue", "LocalQueue", "Workload", "AdmissionCheck"] {
        for strange in [
            json!(null),
            json!(5),
            json!([1]),
            json!({ "admission": 5, "podSets": {}, "admissionChecks": "x" }),
        ] {
            for (from, to) in [(OLD, NEW), (NEW, OLD)] {
                convert(&object(from, kind, &strange, &strange), to).unwrap();
            }
        }
    }
}
