//! Whole objects pass through the types unchanged.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use soroi_api::{kueue, plan, volcano};

fn same<T: DeserializeOwned + Serialize>(object: Value) {
    let read: T = serde_json::from_value(object.clone()).expect("the sample is an object of the kind");
    assert_eq!(serde_json::to_value(&read).expect("what was read can be written"), object);
}

fn condition(type_: &str) -> Value {
    json!({
        "type": type_, "status": "True", "reason": "Because", "message": "so",
        "lastTransitionTime": "2026-05-04T03:02:01Z", "observedGeneration": 3,
    })
}

fn groups() -> Value {
    json!([{
        "coveredResources": ["cpu", "example.com/gpu"],
        "flavors": [{"name": "spot", "resources": [
            {"name": "cpu", "nominalQuota": 16, "borrowingLimit": "1500m", "lendingLimit": "0"},
            {"name": "example.com/gpu", "nominalQuota": "4"},
        ]}],
    }])
}

#[test]
fn resource_flavor() {
    same::<kueue::ResourceFlavor>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "plain"},
        "spec": {},
    }));
    same::<kueue::ResourceFlavor>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ResourceFlavor", "metadata": {"name": "gpu"},
        "spec": {
            "nodeLabels": {"pool": "gpu"},
            "nodeTaints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}],
            "tolerations": [{"key": "spot", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
            "topologyName": "racks",
        },
    }));
}

#[test]
fn topology() {
    same::<kueue::Topology>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Topology", "metadata": {"name": "racks"},
        "spec": {"levels": [{"nodeLabel": "example.com/rack"}, {"nodeLabel": "kubernetes.io/hostname"}]},
    }));
}

#[test]
fn cluster_queue() {
    same::<kueue::ClusterQueue>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "team"},
        "spec": {
            "resourceGroups": groups(),
            "cohortName": "all",
            "queueingStrategy": "StrictFIFO",
            "namespaceSelector": {},
            "flavorFungibility": {
                "whenCanBorrow": "TryNextFlavor", "whenCanPreempt": "TryNextFlavor",
                "preference": "BorrowingOverPreemption",
            },
            "preemption": {
                "reclaimWithinCohort": "Any", "withinClusterQueue": "LowerOrNewerEqualPriority",
                "borrowWithinCohort": {"policy": "LowerPriority", "maxPriorityThreshold": 100},
            },
            "admissionChecksStrategy": {"admissionChecks": [{"name": "prov", "onFlavors": ["spot"]}]},
            "stopPolicy": "HoldAndDrain",
            "fairSharing": {"weight": "2"},
            "admissionScope": {"admissionMode": "UsageBasedAdmissionFairSharing"},
            "concurrentAdmissionPolicy": {"migration": {
                "mode": "TryPreferredFlavors", "constraints": {"lastAcceptableFlavorName": "spot"},
            }},
        },
        "status": {
            "conditions": [condition("Active")],
            "flavorsReservation": [{"name": "spot", "resources": [{"name": "cpu", "total": "2", "borrowed": "0"}]}],
            "flavorsUsage": [{"name": "spot", "resources": [{"name": "cpu", "total": "2", "borrowed": "0"}]}],
            "pendingWorkloads": 0, "reservingWorkloads": 1, "admittedWorkloads": 1,
            "fairSharing": {"weightedShare": 500},
        },
    }));
}

#[test]
fn an_absent_namespace_selector_is_not_an_empty_one() {
    let read = |spec: Value| serde_json::from_value::<kueue::ClusterQueueSpec>(spec).unwrap();
    assert_eq!(read(json!({})).namespace_selector, None);
    assert!(read(json!({"namespaceSelector": {}})).namespace_selector.is_some());
}

#[test]
fn local_queue() {
    same::<kueue::LocalQueue>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue",
        "metadata": {"name": "team-a", "namespace": "default"},
        "spec": {"clusterQueue": "team", "stopPolicy": "Hold", "fairSharing": {"weight": 3}},
        "status": {
            "conditions": [condition("Active")],
            "flavorsReservation": [{"name": "spot", "resources": [{"name": "cpu", "total": "2"}]}],
            "flavorsUsage": [{"name": "spot", "resources": [{"name": "cpu", "total": "2"}]}],
            "pendingWorkloads": 2, "reservingWorkloads": 1, "admittedWorkloads": 0,
            "fairSharing": {
                "weightedShare": 1,
                "admissionFairSharingStatus": {
                    "consumedResources": {"cpu": "1500m"}, "lastUpdate": "2026-05-04T03:02:01Z",
                },
            },
        },
    }));
}

#[test]
fn cohort_priority_class_and_check() {
    same::<kueue::Cohort>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "all"},
        "spec": {"parentName": "root", "resourceGroups": groups(), "fairSharing": {"weight": "500m"}},
        "status": {"fairSharing": {"weightedShare": 0}},
    }));
    same::<kueue::WorkloadPriorityClass>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass", "metadata": {"name": "high"},
        "value": 1000, "description": "for the demo",
    }));
    same::<kueue::AdmissionCheck>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "AdmissionCheck", "metadata": {"name": "prov"},
        "spec": {
            "controllerName": "kueue.x-k8s.io/provisioning-request",
            "parameters": {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": "prov"},
        },
        "status": {"conditions": [condition("Active")]},
    }));
}

fn template() -> Value {
    json!({
        "metadata": {"labels": {"app": "train"}},
        "spec": {
            "containers": [{
                "name": "main", "image": "train:1",
                "resources": {"requests": {"cpu": "500m", "example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}},
            }],
            "restartPolicy": "Never", "securityContext": {},
        },
    })
}

#[test]
fn workload() {
    same::<kueue::Workload>(json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {"name": "job-train-0a1b2", "namespace": "default", "finalizers": ["kueue.x-k8s.io/resource-in-use"]},
        "spec": {
            "active": true, "queueName": "team-a", "priority": 5, "maximumExecutionTimeSeconds": 60,
            "priorityClassRef": {"group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high"},
            "preemptionGates": [{"name": "gate"}],
            "podSets": [{
                "name": "main", "count": 4, "minCount": 2, "template": template(),
                "topologyRequest": {
                    "required": "rack", "preferred": "block", "unconstrained": true,
                    "podIndexLabel": "index", "subGroupIndexLabel": "sub", "subGroupCount": 2,
                    "podSetGroupName": "g", "podSetSliceRequiredTopology": "rack", "podSetSliceSize": 2,
                    "podsetSliceRequiredTopologyConstraints": [{"topology": "rack", "size": 2}],
                },
            }],
        },
        "status": workload_status(),
    }));
}

fn workload_status() -> Value {
    let at = "2026-05-04T03:02:01Z";
    json!({
        "admission": {
            "clusterQueue": "team",
            "podSetAssignments": [{
                "name": "main", "count": 4, "delayedTopologyRequest": "Ready",
                "flavors": {"cpu": "spot"}, "resourceUsage": {"cpu": "2"},
                "topologyAssignment": {
                    "levels": ["kubernetes.io/hostname"],
                    "slices": [{
                        "domainCount": 2, "podCounts": {"individual": [1, 3]},
                        "valuesPerLevel": [{"individual": {"prefix": "worker", "suffix": ".local", "roots": ["", "2"]}}],
                    }],
                },
            }],
        },
        "conditions": [condition("QuotaReserved"), condition("Admitted")],
        "requeueState": {"count": 1, "requeueAt": at},
        "reclaimablePods": [{"name": "main", "count": 1}],
        "admissionChecks": [{
            "name": "prov", "state": "Ready", "message": "", "lastTransitionTime": at, "retryCount": 1,
            "requeueAfterSeconds": 5,
            "podSetUpdates": [{
                "name": "main", "labels": {"a": "b"}, "annotations": {"c": "d"}, "nodeSelector": {"e": "f"},
                "tolerations": [{"operator": "Exists"}],
            }],
        }],
        "resourceRequests": [{"name": "main", "resources": {"cpu": "2"}}],
        "accumulatedPastExecutionTimeSeconds": 7,
        "schedulingStats": {"evictions": [{"reason": "Preempted", "underlyingCause": "", "count": 2}]},
        "nominatedClusterNames": ["one"],
        "clusterName": "one",
        "unhealthyNodes": [{"name": "worker2"}],
        "preemptionGates": [{"name": "gate", "position": "Open", "lastTransitionTime": at}],
    })
}

#[test]
fn pod_group_and_queue() {
    same::<volcano::PodGroup>(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "train", "namespace": "default"},
        "spec": {
            "minMember": 4, "minTaskMember": {"worker": 3}, "queue": "default", "priorityClassName": "high",
            "minResources": {"cpu": "2"},
            "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
            "subGroupPolicy": [{
                "name": "pairs", "subGroupSize": 2, "minSubGroups": 1, "matchLabelKeys": ["pair"],
                "labelSelector": {"matchLabels": {"app": "train"}},
                "networkTopology": {"mode": "hard", "highestTierName": "rack"},
            }],
        },
        "status": {
            "phase": "Inqueue", "running": 0, "succeeded": 1, "failed": 2,
            "conditions": [{
                "type": "Unschedulable", "status": "True", "transitionID": "e406", "reason": "NotEnoughResources",
                "message": "1/4", "lastTransitionTime": "2026-05-04T03:02:01Z",
            }],
        },
    }));
    same::<volcano::Queue>(json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": "team"},
        "spec": {
            "weight": 2, "capability": {"cpu": "8"}, "deserved": {"cpu": 4}, "guarantee": {"resource": {"cpu": 1}},
            "reclaimable": false, "type": "batch", "parent": "root", "priority": 3, "dequeueStrategy": "fifo",
            "extendClusters": [{"name": "far", "weight": 1, "capacity": {"cpu": "100"}}],
            "affinity": {
                "nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["a"]},
                "nodeGroupAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": ["b"]},
            },
        },
        "status": {
            "state": "Closing", "allocated": {"cpu": "0"}, "reservation": {"nodes": ["n"], "resource": {"cpu": "1"}},
            "unknown": 0, "pending": 1, "running": 2, "inqueue": 3, "completed": 4,
        },
    }));
}

#[test]
fn gang_plan() {
    same::<plan::GangPlan>(json!({
        "apiVersion": "soroi.dev/v1alpha1", "kind": "GangPlan",
        "metadata": {"name": "1f35fefc", "namespace": "default", "finalizers": ["soroi.dev/plan"]},
        "spec": {
            "gang": {"kind": "Workload", "namespace": "default", "name": "job-train-0a1b2", "uid": "1f35fefc"},
            "leaderEpoch": 7, "policy": "Unified", "localQueue": "team-a", "clusterQueue": "team",
            "volcanoQueue": "default", "minMembers": 4, "pods": 4,
            "podSets": [{
                "name": "main", "count": 4, "flavors": {"cpu": "spot"}, "usage": {"cpu": "2"},
                "nodes": [{"prefix": "worker", "roots": ["", "2"], "suffix": ".local", "pods": 2}],
                "topology": {"levels": ["rack"], "slices": [{
                    "domainCount": 1, "podCounts": {"universal": 4}, "valuesPerLevel": [{"universal": "r1"}],
                }]},
            }],
            "victims": [{"kind": "Workload", "namespace": "b", "name": "w", "uid": "u", "reason": "InClusterQueue"}],
        },
        "status": {
            "phase": "Undoing", "progressedAt": "2026-05-04T03:02:01.000250Z",
            "undo": {"reason": "NodeFailures", "message": "2 of 4 pods lost their nodes", "started": true, "cause": "InClusterQueue"},
        },
    }));
}
