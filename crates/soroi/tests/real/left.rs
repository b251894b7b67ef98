//! What Kueue 0.18 and Volcano 1.15 leave on a cluster: the shapes of recorded objects, as small as
//! they can be.

use serde_json::{Value, json};

/// Where Kueue's manager and its webhooks were.
const SERVICE: &str = "kueue-webhook-service";
const NAMESPACE: &str = "kueue-system";

/// A definition as Kueue's: made by its generator, with an older version beside the stored one, and
/// a conversion between the two that the manager served.
pub fn definition(mut ours: Value) -> Value {
    ours["metadata"]["annotations"] = json!({ "controller-gen.kubebuilder.io/version": "v0.20.1" });
    ours["metadata"]["labels"] = json!({ "app.kubernetes.io/name": "kueue" });
    if ours["spec"]["group"] != "kueue.x-k8s.io" {
        return ours;
    }
    let mut older = ours["spec"]["versions"][0].clone();
    older["name"] = "v1beta1".into();
    older["storage"] = false.into();
    ours["spec"]["versions"].as_array_mut().unwrap().push(older);
    ours["spec"]["conversion"] = json!({
        "strategy": "Webhook",
        "webhook": {
            "clientConfig": { "service": { "name": SERVICE, "namespace": NAMESPACE, "path": "/convert" } },
            "conversionReviewVersions": ["v1"],
        },
    });
    ours
}

/// Admission that refuses whatever nobody answers for, and the API of pending workloads.
pub fn admission() -> Vec<Value> {
    let hook = |name: &str, service: Value, groups: &str, resource: &str| {
        json!({
            "name": name, "failurePolicy": "Fail", "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": { "service": service },
            "rules": [{ "apiGroups": [groups], "apiVersions": ["*"], "resources": [resource],
                        "operations": ["CREATE", "UPDATE"] }],
        })
    };
    let kueue = |path: &str| json!({ "name": SERVICE, "namespace": NAMESPACE, "path": path });
    let volcano = json!({
        "name": "volcano-admission-service", "namespace": "volcano-system", "path": "/podgroups/validate",
    });
    let configuration = |kind: &str, name: &str, hooks: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": kind,
            "metadata": { "name": name }, "webhooks": hooks,
        })
    };
    vec![
        configuration(
            "MutatingWebhookConfiguration",
            "kueue-mutating-webhook-configuration",
            json!([
                hook("mjob.kb.io", kueue("/mutate-batch-v1-job"), "batch", "jobs"),
                hook(
                    "mworkload.kb.io",
                    kueue("/mutate-kueue-x-k8s-io-v1beta2-workload"),
                    "kueue.x-k8s.io",
                    "workloads"
                ),
            ]),
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            "kueue-validating-webhook-configuration",
            json!([hook(
                "vworkload.kb.io",
                kueue("/validate-kueue-x-k8s-io-v1beta2-workload"),
                "kueue.x-k8s.io",
                "workloads"
            ),]),
        ),
        configuration(
            "ValidatingWebhookConfiguration",
            "volcano-admission-service-podgroups-validate",
            json!([hook("validatepodgroup.volcano.sh", volcano, "scheduling.volcano.sh", "podgroups"),]),
        ),
        json!({
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": { "name": "v1beta2.visibility.kueue.x-k8s.io" },
            "spec": {
                "group": "visibility.kueue.x-k8s.io", "version": "v1beta2",
                "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
                "service": { "name": "kueue-visibility-server", "namespace": NAMESPACE },
            },
        }),
    ]
}

/// A Job as its user wrote it, with one GPU per pod.
pub fn job(name: &str, queue: &str, pods: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "default", "labels": { "kueue.x-k8s.io/queue-name": queue },
        },
        "spec": {
            "parallelism": pods, "completions": pods, "suspend": true,
            "template": {
                "metadata": { "annotations": { "soroi.dev/run-for": "24h" } },
                "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "main", "image": "trainer",
                    "resources": {
                        "requests": { "cpu": "10m", "memory": "1Mi", "example.com/gpu": "1" },
                        "limits": { "example.com/gpu": "1" },
                    },
                }] },
            },
        },
    })
}

/// The Workload that Kueue made of a stored Job, without its status.
pub fn workload(job: &Value, name: &str) -> Value {
    let (queue, owner) = (&job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"], &job["metadata"]);
    let mut template = job["spec"]["template"].clone();
    template["metadata"]["labels"] = json!({ "batch.kubernetes.io/job-name": owner["name"] });
    json!({
        "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
        "metadata": {
            "name": name, "namespace": "default",
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "labels": { "kueue.x-k8s.io/job-uid": owner["uid"] },
            "ownerReferences": [{
                "apiVersion": "batch/v1", "kind": "Job", "name": owner["name"], "uid": owner["uid"],
                "controller": true, "blockOwnerDeletion": true,
            }],
        },
        "spec": {
            "active": true, "priority": 0, "queueName": queue,
            "podSets": [{
                "name": "main", "count": job["spec"]["parallelism"], "template": template,
                "topologyRequest": { "podIndexLabel": "batch.kubernetes.io/job-completion-index" },
            }],
        },
    })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str) -> Value {
    json!({
        "type": kind, "status": status, "reason": reason, "message": message, "observedGeneration": 1,
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    })
}

/// Status of an admitted Workload; with the node of all its pods where Kueue chose one.
pub fn admitted(pods: u32, queue: &str, flavor: &str, node: Option<&str>) -> Value {
    let mut assignment = json!({
        "name": "main", "count": pods,
        "flavors": { "cpu": flavor, "memory": flavor, "example.com/gpu": flavor },
        "resourceUsage": {
            "cpu": format!("{}m", 10 * pods), "memory": format!("{pods}Mi"), "example.com/gpu": pods.to_string(),
        },
    });
    if let Some(node) = node {
        assignment["topologyAssignment"] = json!({
            "levels": ["kubernetes.io/hostname"],
            "slices": [{
                "domainCount": 1, "podCounts": { "universal": pods },
                "valuesPerLevel": [{ "universal": node }],
            }],
        });
    }
    json!({ "status": {
        "admission": { "clusterQueue": queue, "podSetAssignments": [assignment] },
        "conditions": [
            condition("QuotaReserved", "True", "QuotaReserved", &format!("Quota reserved in ClusterQueue {queue}")),
            condition("Admitted", "True", "Admitted", "The workload is admitted"),
        ],
    }})
}

/// Status of a Workload that waits.
pub fn pending() -> Value {
    let why = "couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor \
               default-flavor, 2 more needed";
    json!({ "status": { "conditions": [condition("QuotaReserved", "False", "Pending", why)] } })
}

/// What Kueue changed in a Job to start it; under its topology-aware scheduling with a gate, which
/// stays in the template.
pub fn start(workload: &str, queue: &str, local_queue: &str, gated: bool) -> Value {
    let mut patch = json!({ "spec": { "suspend": false, "template": { "metadata": {
        "annotations": { "kueue.x-k8s.io/workload": workload },
        "labels": {
            "kueue.x-k8s.io/cluster-queue-name": queue, "kueue.x-k8s.io/local-queue-name": local_queue,
            "kueue.x-k8s.io/podset": "main",
        },
    }}}});
    if gated {
        patch["spec"]["template"]["spec"] = json!({
            "nodeSelector": { "kubernetes.io/os": "linux" },
            "schedulingGates": [{ "name": "kueue.x-k8s.io/topology" }],
        });
    }
    patch
}

/// What Kueue changed in a pod when it knew its node.
pub fn ungate(node: &str) -> Value {
    json!({ "spec": {
        "schedulingGates": null,
        "nodeSelector": { "kubernetes.io/os": "linux", "kubernetes.io/hostname": node },
    }})
}
