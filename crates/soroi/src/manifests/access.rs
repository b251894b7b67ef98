//! Who Soroi is on the cluster, and what it may do: exactly what it does.
//!
//! Knows RBAC. What the control loop needs is listed beside that loop (`soroi_control::access`); what
//! the rest of `soroi run` needs, here. A story on a real control plane runs under these rights and
//! counts what was forbidden.

use serde_json::{Value, json};
use soroi_control::access::ACCESS;

use super::{NAME, Wanted, metadata};
use crate::run::webhooks::objects as webhooks;
use crate::run::{admission, rivals};

const ADMISSION: &str = "admissionregistration.k8s.io";
const RBAC: &str = "rbac.authorization.k8s.io";

/// The account, its rights in the cluster and in its own namespace.
pub(super) fn objects(wanted: &Wanted) -> Vec<Value> {
    let namespace = Some(wanted.namespace.as_str());
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": metadata(NAME, namespace),
        // The pod asks for its token; nothing else gets one by naming the account.
        "automountServiceAccountToken": false,
    });
    vec![
        account,
        role("ClusterRole", None, &cluster(wanted)),
        binding("ClusterRole", None, &wanted.namespace),
        role("Role", namespace, &own(wanted)),
        binding("Role", namespace, &wanted.namespace),
    ]
}

fn role(kind: &str, namespace: Option<&str>, rules: &[Value]) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": kind,
        "metadata": metadata(NAME, namespace), "rules": rules,
    })
}

fn binding(role: &str, namespace: Option<&str>, of: &str) -> Value {
    json!({
        "apiVersion": format!("{RBAC}/v1"), "kind": format!("{role}Binding"),
        "metadata": metadata(NAME, namespace),
        "roleRef": { "apiGroup": RBAC, "kind": role, "name": NAME },
        "subjects": [{ "kind": "ServiceAccount", "name": NAME, "namespace": of }],
    })
}

/// In the whole cluster.
fn cluster(wanted: &Wanted) -> Vec<Value> {
    let mut rules: Vec<Value> = Vec::new();
    for access in ACCESS {
        let same = rules.last_mut().filter(|rule| {
            rule["apiGroups"] == json!([access.group]) && rule["verbs"] == json!(access.verbs)
        });
        match same.and_then(|rule| rule["resources"].as_array_mut()) {
            Some(resources) => resources.push(access.resource.into()),
            None => rules.push(rule(access.group, &[access.resource], access.verbs, &[])),
        }
    }
    // Whether Kueue or Volcano run here.
    rules.push(rule("coordination.k8s.io", &["leases"], &["list"], &[rivals::KUEUE, rivals::VOLCANO]));
    // Whether what gives Jobs and pods their defaults has changed.
    rules.push(rule(ADMISSION, &admission::FOLLOWED, &["list", "watch"], &[]));
    if wanted.configuration.webhooks.as_ref().is_some_and(|settings| settings.publishes()) {
        // `caBundle`.
        let definitions = webhooks::definition_names();
        let definitions: Vec<&str> = definitions.iter().map(String::as_str).collect();
        let verbs = &["get", "patch"];
        let configurations = &[webhooks::VALIDATING, webhooks::MUTATING];
        rules.push(rule(ADMISSION, configurations, verbs, &[webhooks::NAME]));
        rules.push(rule("apiextensions.k8s.io", &["customresourcedefinitions"], verbs, &definitions));
    }
    rules
}

/// In its own namespace.
fn own(wanted: &Wanted) -> Vec<Value> {
    let lease = wanted.configuration.leader_election.name.as_str();
    let mut rules = vec![
        rule("coordination.k8s.io", &["leases"], &["get", "update"], &[lease]),
        // Creation cannot be limited by name: the name is not known yet when it is judged.
        rule("coordination.k8s.io", &["leases"], &["create"], &[]),
        // For show (`dryRun`), to see whether admission works.
        rule("", &["pods"], &["create"], &[]),
    ];
    let webhooks = wanted.configuration.webhooks.as_ref();
    if let Some(settings) = webhooks.filter(|settings| settings.certificate_files.is_none()) {
        // The certificate authority that replicas share.
        rules.push(rule("", &["secrets"], &["get", "update"], &[&settings.secret]));
        rules.push(rule("", &["secrets"], &["create"], &[]));
    }
    rules
}

/// `names`: all objects if empty.
fn rule(group: &str, resources: &[&str], verbs: &[&str], names: &[&str]) -> Value {
    let mut rule = json!({ "apiGroups": [group], "resources": resources, "verbs": verbs });
    if !names.is_empty() {
        rule["resourceNames"] = json!(names);
    }
    rule
}
