//! What runs: the Deployment, what it reads, and what keeps it running.
//!
//! Knows pods of our own, and how little they need. Must never know what `soroi run` does in them.

use serde_json::{Value, json};
use sha1::{Digest as _, Sha1};

use super::{NAME, Wanted, labels, metadata};
use crate::run::webhooks::objects as webhooks;

/// Where the ConfigMap is mounted.
const FOLDER: &str = "/etc/soroi";
const FILE: &str = "configuration.yaml";
/// No user of any image has it; the same that distroless images call `nonroot`.
const USER: u32 = 65532;
/// The highest value that does not need the `system-` prefix: gangs of all priorities wait for us.
const PRIORITY: u32 = 1_000_000_000;

pub(super) fn namespace(wanted: &Wanted) -> Value {
    let mut metadata = metadata(&wanted.namespace, None);
    metadata["labels"]["pod-security.kubernetes.io/enforce"] = "restricted".into();
    json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata })
}

pub(super) fn priority_class() -> Value {
    json!({
        "apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass",
        "metadata": metadata(NAME, None),
        "value": PRIORITY,
        "description": "Soroi itself: without it no gang starts.",
    })
}

/// All others.
pub(super) fn objects(wanted: &Wanted) -> Vec<Value> {
    vec![configuration(wanted), service(wanted), disruption(wanted), deployment(wanted)]
}

fn configuration(wanted: &Wanted) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": metadata(NAME, Some(&wanted.namespace)),
        "data": { FILE: wanted.text },
    })
}

fn service(wanted: &Wanted) -> Value {
    let mut ports = vec![json!({ "name": "http", "port": http_port(wanted), "targetPort": "http" })];
    if wanted.configuration.webhooks.is_some() {
        ports.push(json!({ "name": "webhooks", "port": webhooks::PORT, "targetPort": "webhooks" }));
    }
    json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": metadata(NAME, Some(&wanted.namespace)),
        "spec": {
            "selector": selector(),
            "ports": ports,
        },
    })
}

fn disruption(wanted: &Wanted) -> Value {
    json!({
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": metadata(NAME, Some(&wanted.namespace)),
        "spec": { "maxUnavailable": 1, "selector": { "matchLabels": selector() } },
    })
}

fn http_port(wanted: &Wanted) -> u16 {
    wanted.configuration.http.bind_address.port()
}

fn selector() -> Value {
    json!({ "app.kubernetes.io/name": NAME, "app.kubernetes.io/component": "controller" })
}

fn deployment(wanted: &Wanted) -> Value {
    let mut labels = labels();
    labels["app.kubernetes.io/component"] = "controller".into();
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": metadata(NAME, Some(&wanted.namespace)),
        "spec": {
            "replicas": wanted.replicas,
            "selector": { "matchLabels": selector() },
            "template": {
                "metadata": {
                    "labels": labels,
                    // The file is read at start, so other settings need other pods.
                    "annotations": { "soroi.dev/configuration": digest(&wanted.text) },
                },
                "spec": pod(wanted),
            },
        },
    })
}

/// Of a text without its last line break, which Helm takes away before it counts.
pub(super) fn digest(text: &str) -> String {
    Sha1::digest(text.trim_end().as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn pod(wanted: &Wanted) -> Value {
    json!({
        "serviceAccountName": NAME,
        "automountServiceAccountToken": true,
        "priorityClassName": NAME,
        "securityContext": {
            "runAsNonRoot": true, "runAsUser": USER, "runAsGroup": USER,
            "seccompProfile": { "type": "RuntimeDefault" },
        },
        "affinity": { "podAntiAffinity": {
            // Only preferred: a cluster of one node is served, too.
            "preferredDuringSchedulingIgnoredDuringExecution": [
                apart(100, "kubernetes.io/hostname"), apart(50, "topology.kubernetes.io/zone"),
            ],
        } },
        "containers": [container(wanted)],
        "volumes": [{ "name": "configuration", "configMap": { "name": NAME } }],
    })
}

fn apart(weight: u32, key: &str) -> Value {
    json!({
        "weight": weight,
        "podAffinityTerm": { "topologyKey": key, "labelSelector": { "matchLabels": selector() } },
    })
}

fn container(wanted: &Wanted) -> Value {
    let probe = |path: &str| json!({ "httpGet": { "path": path, "port": "http" } });
    let mut liveness = probe("/healthz");
    liveness["failureThreshold"] = 6.into();
    let mut readiness = probe("/readyz");
    readiness["periodSeconds"] = 5.into();
    let mut ports = vec![json!({ "name": "http", "containerPort": http_port(wanted) })];
    if let Some(settings) = &wanted.configuration.webhooks {
        ports.push(json!({ "name": "webhooks", "containerPort": settings.bind_address.port() }));
    }
    json!({
        "name": NAME,
        "image": wanted.image,
        "args": ["run", "--install=never", "--log=json", format!("--config={FOLDER}/{FILE}")],
        "ports": ports,
        "livenessProbe": liveness,
        "readinessProbe": readiness,
        "resources": {
            "requests": { "cpu": "250m", "memory": "256Mi" },
            "limits": { "memory": "1Gi" },
        },
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "readOnlyRootFilesystem": true,
            "capabilities": { "drop": ["ALL"] },
        },
        "volumeMounts": [{ "name": "configuration", "mountPath": FOLDER, "readOnly": true }],
    })
}
