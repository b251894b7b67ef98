//! Kueue's kinds: tables of requests and answers.

use expect_test::expect;
use serde_json::{Value, json};

use crate::tests::{picture, review};
use crate::{Operation, Review, admit};

fn created(kind: &str, object: Value) -> String {
    picture(admit(&Review { object: Some(&object), ..review(Operation::Create, "kueue.x-k8s.io", kind) }))
}

fn updated(old: &Value, new: &Value) -> String {
    let request = review(Operation::Update, "kueue.x-k8s.io", "Workload");
    picture(admit(&Review { object: Some(new), old_object: Some(old), ..request }))
}

fn group(resources: usize, flavors: &[String]) -> Value {
    let covered: Vec<String> = (0..resources).map(|ix| format!("example.com/r{ix}")).collect();
    let flavors: Vec<Value> = flavors.iter().map(|name| json!({"name": name})).collect();
    json!({"coveredResources": covered, "flavors": flavors})
}

fn flavors(from: usize, count: usize) -> Vec<String> {
    (from..from + count).map(|ix| format!("f{ix}")).collect()
}

#[test]
fn quotas_can_be_counted() {
    let groups = |groups: Value| json!({"spec": {"resourceGroups": groups}});
    let mut board = String::new();
    for kind in ["ClusterQueue", "Cohort"] {
        board += &created(kind, groups(json!([group(8, &flavors(0, 64)), group(1, &flavors(64, 2))])));
        board += &created(kind, groups(json!([group(9, &flavors(0, 64))])));
        board += &created(kind, groups(json!([group(1, &flavors(0, 2)), group(1, &flavors(1, 1))])));
    }
    let many: Vec<Value> = (0..5).map(|ix| group(1, &flavors(ix * 64, 64))).collect();
    board += &created("ClusterQueue", groups(json!(many)));
    board += &created("Cohort", json!({"metadata": {"name": "a"}, "spec": {"parentName": "a"}}));
    expect![[r#"
        as it is
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.resourceGroups[0].flavors: Forbidden: flavors times coveredResources must be at most 512
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.resourceGroups[1].flavors[0].name: Duplicate value: "f1"
        as it is
        422 Invalid: Cohort.kueue.x-k8s.io "train" is invalid: spec.resourceGroups[0].flavors: Forbidden: flavors times coveredResources must be at most 512
        422 Invalid: Cohort.kueue.x-k8s.io "train" is invalid: spec.resourceGroups[1].flavors[0].name: Duplicate value: "f1"
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.resourceGroups[*].flavors: Too many: 320: must have at most 256 items
        as it is
        warning: spec.parentName: a cohort below itself is a cycle; its queues will not admit
    "#]].assert_eq(&board);
}

#[test]
fn selectors_checks_and_policies_mean_something() {
    let mut board = String::new();
    for spec in [
        json!({"namespaceSelector": {}}),
        json!({"namespaceSelector": {"matchLabels": {"team": "a"}, "matchExpressions": [
            {"key": "x", "operator": "In", "values": ["1"]}, {"key": "y", "operator": "Exists"}]}}),
        json!({"namespaceSelector": {"matchLabels": {"a b": "c d"}}}),
        json!({"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "In"}]}}),
        json!({"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Exists", "values": ["1"]}]}}),
        json!({"namespaceSelector": {"matchExpressions": [{"key": "x", "operator": "Is"}]}}),
        json!({
            "resourceGroups": [group(1, &flavors(0, 1))],
            "admissionChecksStrategy": {"admissionChecks": [{"name": "c", "onFlavors": ["f0", "f1"]}]},
        }),
    ] {
        board += &created("ClusterQueue", json!({"spec": spec}));
    }
    let placed = |kind: &str, policy: &str| {
        created(kind, json!({"metadata": {"annotations": {"soroi.dev/placement": policy}}}))
    };
    board += &placed("ClusterQueue", "QuotaOnly");
    board += &placed("ClusterQueue", "quota");
    board += &placed("LocalQueue", "QuotaOnly");
    let packed = |kind: &str, packing: &str| {
        created(kind, json!({"metadata": {"annotations": {"soroi.dev/packing": packing}}}))
    };
    board += &packed("ClusterQueue", "Spread");
    board += &packed("ClusterQueue", "spread");
    board += &packed("LocalQueue", "Spread");
    expect![[r#"
        as it is
        as it is
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: [spec.namespaceSelector.matchLabels: Invalid value: "a b": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit, spec.namespaceSelector.matchLabels[a b]: Invalid value: "c d": must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit]
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.namespaceSelector.matchExpressions[0].values: Required value: must be given for operator In or NotIn
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.namespaceSelector.matchExpressions[0].values: Forbidden: must not be given for operator Exists or DoesNotExist
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.namespaceSelector.matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist"
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: spec.admissionChecksStrategy.admissionChecks[0].onFlavors[1]: Not found: "f1": the queue has no such flavor
        as it is
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: metadata.annotations[soroi.dev/placement]: Unsupported value: "quota": supported values: "Unified", "TopologyOnly", "AfterAdmission", "QuotaOnly"
        as it is
        warning: metadata.annotations[soroi.dev/placement]: has no effect on a LocalQueue; set it on the ClusterQueue
        as it is
        422 Invalid: ClusterQueue.kueue.x-k8s.io "train" is invalid: metadata.annotations[soroi.dev/packing]: Unsupported value: "spread": supported values: "BestFit", "Fragmentation", "Spread"
        as it is
        warning: metadata.annotations[soroi.dev/packing]: has no effect on a LocalQueue; set it on the ClusterQueue
    "#]].assert_eq(&board);
}

#[test]
fn flavors_are_ones_that_nodes_can_have() {
    let mut board = String::new();
    for spec in [
        json!({"nodeLabels": {"cloud.provider.com/topology-rack": "rack-1"}}),
        json!({"nodeLabels": {"a/b/c": "x y"}}),
        json!({"nodeTaints": [{"key": "no key", "effect": "NoSchedule"}]}),
        json!({"tolerations": [{"operator": "Exists"}, {"key": "-"}]}),
    ] {
        board += &created("ResourceFlavor", json!({"spec": spec}));
    }
    expect![[r#"
        as it is
        422 Invalid: ResourceFlavor.kueue.x-k8s.io "train" is invalid: [spec.nodeLabels: Invalid value: "a/b/c": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit, spec.nodeLabels[a/b/c]: Invalid value: "x y": must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit]
        422 Invalid: ResourceFlavor.kueue.x-k8s.io "train" is invalid: spec.nodeTaints[0].key: Invalid value: "no key": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        422 Invalid: ResourceFlavor.kueue.x-k8s.io "train" is invalid: spec.tolerations[1].key: Invalid value: "-": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
    "#]].assert_eq(&board);
}

fn workload(status: Value) -> Value {
    json!({"spec": {"podSets": [{"name": "main", "count": 4}]}, "status": status})
}

#[test]
fn workloads_ask_for_what_can_be_given() {
    let pods = |part: &str| {
        let container = json!({"resources": {part: {"pods": "1", "cpu": "1"}}});
        json!({"spec": {"podSets": [{"name": "main", "template": {"spec": {"containers": [container]}}}]}})
    };
    let wish = |wish: Value| json!({"spec": {"podSets": [{"name": "main", "topologyRequest": wish}]}});
    let mut board = created("Workload", pods("requests"));
    let affine = |terms: Value| {
        let required = json!({"nodeSelectorTerms": terms});
        let affinity = json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}});
        json!({"spec": {"podSets": [{"name": "main", "template": {"spec": {"affinity": affinity}}}]}})
    };
    let expression = |key: &str, operator: &str, values: &[&str]| {
        affine(json!([{"matchExpressions": [{"key": key, "operator": operator, "values": values}]}]))
    };
    let pair = |sets: [(i64, Value); 2]| {
        let set =
            |(count, request): (i64, Value)| json!({"name": "s", "count": count, "topologyRequest": request});
        json!({"spec": {"podSets": sets.map(set)}})
    };
    let rack = json!({"required": "rack", "podSetGroupName": "all"});
    let block = json!({"required": "block", "podSetGroupName": "all"});
    board += &created("Workload", pair([(1, rack.clone()), (7, rack.clone())]));
    board += &created("Workload", pair([(2, rack.clone()), (7, rack.clone())]));
    board += &created("Workload", pair([(1, rack.clone()), (7, block)]));
    board += &created("Workload", pair([(1, rack), (7, json!(null))]));
    board += &created("Workload", wish(json!({"podSetSliceSize": 0})));
    board += &created("Workload", wish(json!({"podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2})));
    let layers = json!([{"topology": "block", "size": 8}, {"topology": "rack", "size": 3}]);
    board += &created("Workload", wish(json!({"podsetSliceRequiredTopologyConstraints": layers})));
    board += &created("Workload", affine(json!([])));
    board += &created("Workload", expression("rack", "In", &["a"]));
    board += &created("Workload", expression("ra ck", "In", &["a b"]));
    board += &created("Workload", expression("rack", "NotIn", &[]));
    board += &created("Workload", expression("rack", "Exists", &["a"]));
    board += &created("Workload", expression("rack", "Gt", &["many"]));
    board += &created("Workload", expression("rack", "Is", &[]));
    let field = |key: &str, values: &[&str]| {
        affine(json!([{"matchFields": [{"key": key, "operator": "In", "values": values}]}]))
    };
    board += &created("Workload", field("metadata.name", &["n1"]));
    board += &created("Workload", field("metadata.uid", &["n1", "n2"]));
    let selects = json!({"nodeSelector": {"a b": "c d"}});
    board += &created("Workload", json!({"spec": {"podSets": [{"template": {"spec": selects}}]}}));
    board += &created("Workload", wish(json!({"required": "rack", "podIndexLabel": "i"})));
    board += &created("Workload", wish(json!({"required": "rack", "preferred": "rack"})));
    board += &created("Workload", wish(json!({"required": "rack", "unconstrained": false})));
    expect![[r#"
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.containers[0].resources.requests[pods]: Forbidden: the resource pods is reserved: every pod counts as one
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].topologyRequest.podSetGroupName: Invalid value: "all": one of the pod sets of a group must have 1 pod, spec.podSets[1].topologyRequest.podSetGroupName: Invalid value: "all": one of the pod sets of a group must have 1 pod]
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].topologyRequest.podSetGroupName: Invalid value: "all": all pod sets of a group must ask for the same level, spec.podSets[1].topologyRequest.podSetGroupName: Invalid value: "all": all pod sets of a group must ask for the same level]
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].topologyRequest.podSetGroupName: Invalid value: "all": a group has exactly 2 pod sets, and this one has 1
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].topologyRequest.podSetSliceSize: Forbidden: must not be given without podSetSliceRequiredTopology, spec.podSets[0].topologyRequest.podSetSliceSize: Invalid value: 0: must be a number of pods of at least 1]
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].topologyRequest.podsetSliceRequiredTopologyConstraints[1].size: Invalid value: 3: must evenly divide the parent layer size 8
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: Required value: must have at least one node selector term
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: Invalid value: "ra ck": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit, spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values[0]: Invalid value: "a b": must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit]
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be given for operator In or NotIn
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Forbidden: must not be given for operator Exists or DoesNotExist
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].values: Required value: must be one whole number for operator Gt or Lt
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].key: Unsupported value: "metadata.uid": supported values: "metadata.name", spec.podSets[0].template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchFields[0].values: Required value: must be one name]
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [spec.podSets[0].template.spec.nodeSelector: Invalid value: "a b": must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit, spec.podSets[0].template.spec.nodeSelector[a b]: Invalid value: "c d": must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit]
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets[0].topologyRequest.preferred: Forbidden: must not be used together with required
        as it is
    "#]].assert_eq(&board);
}

#[test]
fn what_was_assigned_adds_up() {
    let assigned = |assignment: Value| workload(json!({"admission": {"podSetAssignments": [assignment]}}));
    let mut board = String::new();
    for assignment in [
        json!({"name": "main", "count": 4, "resourceUsage": {"cpu": "2", "memory": "512Mi", "example.com/gpu": 4}}),
        json!({"name": "main", "count": 3, "resourceUsage": {"cpu": "1", "example.com/gpu": "4"}}),
        json!({"name": "main", "resourceUsage": {"example.com/gpu": "5"}}),
        json!({"name": "other"}),
    ] {
        board += &created("Workload", assigned(assignment));
    }
    let check = json!({"name": "c", "state": "Ready", "podSetUpdates": [{"name": "other"}]});
    board += &created("Workload", workload(json!({"admissionChecks": [check]})));
    expect![[r#"
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: [status.admission.podSetAssignments[0].resourceUsage[cpu]: Invalid value: "1": must be divisible by the count of pods, 3, status.admission.podSetAssignments[0].resourceUsage[example.com/gpu]: Invalid value: "4": must be divisible by the count of pods, 3]
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: status.admission.podSetAssignments[0].resourceUsage[example.com/gpu]: Invalid value: "5": must be divisible by the count of pods, 4
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: status.admission.podSetAssignments[0].name: Not found: "other": there is no such pod set
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: status.admissionChecks[0].podSetUpdates[0].name: Not found: "other": there is no such pod set
    "#]].assert_eq(&board);
}

#[test]
fn what_must_not_change_while_quota_is_held() {
    let holding = |reserved: &str, status: Value| {
        let mut workload = workload(status);
        workload["status"]["conditions"] = json!([{"type": "QuotaReserved", "status": reserved}]);
        workload
    };
    let reclaimable = |count: i32| json!({"reclaimablePods": [{"name": "main", "count": count}]});
    let checked = |label: &str, state: &str| {
        let update = json!({"name": "main", "labels": {"a": label}});
        json!({"admissionChecks": [{"name": "c", "state": state, "podSetUpdates": [update]}]})
    };
    let mut other_pods = holding("True", json!({}));
    other_pods["spec"]["podSets"][0]["count"] = 5.into();
    let mut other_pods_waiting = holding("False", json!({}));
    other_pods_waiting["spec"]["podSets"][0]["count"] = 5.into();
    let mut board = updated(&holding("True", json!({})), &other_pods);
    board += &updated(&holding("False", json!({})), &other_pods_waiting);
    let of_group = |mut workload: Value| {
        workload["metadata"]["ownerReferences"] = json!([{"kind": "PodGroup", "name": "train", "uid": "u"}]);
        workload
    };
    let mut more_pods = of_group(holding("True", json!({})));
    more_pods["spec"]["podSets"].as_array_mut().unwrap().push(json!({"name": "main-2", "count": 1}));
    board += &updated(&of_group(holding("True", json!({}))), &of_group(other_pods.clone()));
    board += &updated(&of_group(other_pods), &of_group(holding("True", json!({}))));
    board += &updated(&of_group(holding("True", json!({}))), &more_pods);
    board += &updated(&holding("True", reclaimable(1)), &holding("True", reclaimable(2)));
    board += &updated(&holding("True", reclaimable(2)), &holding("True", reclaimable(1)));
    board += &updated(&holding("True", reclaimable(2)), &holding("False", json!({})));
    board += &updated(&holding("True", checked("a", "Ready")), &holding("True", checked("b", "Ready")));
    board += &updated(&holding("True", checked("a", "Pending")), &holding("True", checked("b", "Ready")));
    board += &updated(&holding("True", checked("a", "Ready")), &holding("False", checked("b", "Retry")));
    expect![[r#"
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets: Forbidden: is immutable while quota is reserved
        as it is
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: spec.podSets: Forbidden: can only grow while quota is reserved
        as it is
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: status.reclaimablePods[main]: Forbidden: cannot fall from 2 to 1 while quota is reserved
        as it is
        422 Invalid: Workload.kueue.x-k8s.io "train" is invalid: status.admissionChecks[0].podSetUpdates: Forbidden: is immutable while the check is Ready
        as it is
        as it is
    "#]].assert_eq(&board);
}
