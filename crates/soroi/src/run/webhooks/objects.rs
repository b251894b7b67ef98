//! What tells the API server when to ask us, and where.
//!
//! The rules of what may be blocked while Soroi is down:
//!
//! - what Soroi does not manage is never sent (`objectSelector`: Jobs with a queue, pods of a release),
//!   but for Jobs that may get the default queue of their namespace, and these go on after 2 s at most;
//! - validation fails open: schemas and policies still hold, and a finished Job can be deleted;
//! - defaults of Jobs and pods, where no policy gives them, fail closed: a managed Job that started
//!   by itself would be worse than one that has to be created again.
//!
//! Knows webhook configurations. Must never know who answers.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, WebhookClientConfig,
};
use serde_json::{Value, json};
use soroi_api::labels::{kueue, soroi};

use crate::run::admission::{self, LABEL};
use crate::run::config::Webhooks;

/// Paths of requests.
pub(super) const DEFAULT: &str = "/default";
pub(super) const VALIDATE: &str = "/validate";
pub(super) const CONVERT: &str = "/convert";

const GROUP: &str = "admissionregistration.k8s.io";
/// Of both configurations.
pub(crate) const NAME: &str = "soroi";
pub(crate) const VALIDATING: &str = "validatingwebhookconfigurations";
pub(crate) const MUTATING: &str = "mutatingwebhookconfigurations";
/// The port of the Service.
pub(crate) const PORT: u16 = 443;
/// How long an API server waits for an answer.
const TIMEOUT_SECS: u32 = 5;
/// The same for objects that are not ours.
const UNMANAGED_TIMEOUT_SECS: u32 = 2;

pub(crate) fn labels() -> Value {
    json!({ LABEL.0: LABEL.1 })
}

/// How the API server reaches us.
pub(crate) fn client_config(settings: &Webhooks, namespace: &str, path: &str) -> Value {
    match &settings.url {
        Some(url) => json!({ "url": format!("{url}{path}") }),
        None => json!({ "service": {
            "namespace": namespace, "name": settings.service, "port": PORT, "path": path,
        } }),
    }
}

/// The resource definitions, with Kueue's old version.
pub(crate) fn definitions(settings: &Webhooks, namespace: &str) -> Vec<CustomResourceDefinition> {
    let converter: WebhookClientConfig = serde_json::from_value(client_config(settings, namespace, CONVERT))
        .expect("a client configuration as the API has it");
    let mut definitions = soroi_api::crds::v1beta1::all(&converter);
    for crd in &mut definitions {
        // By it our own conversion is told from another product's.
        crd.metadata.labels.get_or_insert_default().insert(LABEL.0.into(), LABEL.1.into());
    }
    definitions
}

/// The paths of all objects that say how we are reached.
pub(super) fn configured() -> Vec<String> {
    let configurations = [VALIDATING, MUTATING].map(|kind| format!("/apis/{GROUP}/v1/{kind}/{NAME}"));
    let names = definition_names();
    let definitions =
        names.iter().map(|name| format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}"));
    configurations.into_iter().chain(definitions).collect()
}

/// The names of the resource definitions with a conversion.
pub(crate) fn definition_names() -> Vec<String> {
    let kueue = soroi_api::crds::all().into_iter().filter(|crd| crd.spec.group == soroi_api::kueue::GROUP);
    kueue.filter_map(|crd| crd.metadata.name).collect()
}

/// Both configurations, each with its path. `policies`: the API server gives Jobs and pods their
/// defaults by itself. `account`: whose own writes need no second look.
pub(crate) fn configurations(
    settings: &Webhooks,
    namespace: &str,
    policies: bool,
    account: &str,
) -> Vec<(String, Value)> {
    let to = |path: &str| client_config(settings, namespace, path);
    let mut mutating =
        vec![webhook("queues", "Ignore", to(DEFAULT), &[rule(VOLCANO, &["queues"], &["CREATE"])])];
    if !policies {
        let jobs = rule(("batch", "v1"), &["jobs"], &["CREATE"]);
        let pods = rule(("", "v1"), &["pods"], &["CREATE"]);
        mutating.push(having(kueue::QUEUE_NAME, webhook("jobs", "Fail", to(DEFAULT), &[jobs])));
        mutating.push(having(soroi::GANG, webhook("pods", "Fail", to(DEFAULT), &[pods])));
        mutating.push(default_queue(to(DEFAULT)));
    }
    for webhook in &mut mutating {
        webhook["reinvocationPolicy"] = "IfNeeded".into();
    }
    let kueue_kinds = [
        "clusterqueues",
        "cohorts",
        "localqueues",
        "resourceflavors",
        "topologies",
        "workloads",
        "workloads/status",
    ];
    let kinds = [
        rule((soroi_api::kueue::GROUP, soroi_api::kueue::VERSION), &kueue_kinds, WRITES),
        rule(VOLCANO, &["podgroups"], WRITES),
        rule(VOLCANO, &["queues"], &["CREATE", "UPDATE", "DELETE"]),
        rule((soroi_api::plan::GROUP, "v1alpha1"), &["gangplans"], WRITES),
    ];
    let jobs = rule(("batch", "v1"), &["jobs"], WRITES);
    let mut validating = vec![
        webhook("kinds", "Ignore", to(VALIDATE), &kinds),
        having(kueue::QUEUE_NAME, webhook("jobs", "Ignore", to(VALIDATE), &[jobs])),
        webhook("pods", "Ignore", to(VALIDATE), &[rule(("", "v1"), &["pods"], &["UPDATE"])]),
    ];
    let not_ours = json!([{ "name": "not-by-soroi", "expression": format!("request.userInfo.username != '{account}'") }]);
    for webhook in &mut validating {
        webhook["matchConditions"] = not_ours.clone();
    }
    if let Some(conditions) = validating.last_mut().and_then(|pods| pods["matchConditions"].as_array_mut()) {
        conditions.push(moves());
    }
    vec![
        configuration(VALIDATING, "ValidatingWebhookConfiguration", &validating),
        configuration(MUTATING, "MutatingWebhookConfiguration", &mutating),
    ]
}

/// A pod's queue or group changes. Pods are changed all the time, and most are not ours: no other
/// change is sent.
fn moves() -> Value {
    let changes = |map: &str, key: &str| {
        let value = |object: &str| {
            let map = format!("{object}.metadata.{map}");
            format!("(has({map}) && '{key}' in {map} ? {map}['{key}'] : '')")
        };
        format!("{} != {}", value("object"), value("oldObject"))
    };
    let groups = soroi_webhook::GROUP_KEYS.map(|key| changes("annotations", key)).join(" || ");
    let queue = changes("labels", kueue::QUEUE_NAME);
    json!({ "name": "moves", "expression": format!("{queue} || {groups}") })
}

/// Jobs that name no queue, in case their namespace has a default one. These are not ours yet, so
/// they are neither refused nor long held up.
fn default_queue(client_config: Value) -> Value {
    let jobs = rule(("batch", "v1"), &["jobs"], &["CREATE"]);
    let mut webhook = webhook("default-queue", "Ignore", client_config, &[jobs]);
    webhook["timeoutSeconds"] = UNMANAGED_TIMEOUT_SECS.into();
    // No selector says "no label, or an empty one".
    let mut asked = vec![admission::names_no_queue()];
    asked.extend(admission::manageable());
    webhook["matchConditions"] = json!(asked);
    webhook
}

const VOLCANO: (&str, &str) = (soroi_api::volcano::GROUP, "v1beta1");
const WRITES: &[&str] = &["CREATE", "UPDATE"];

fn configuration(resource: &str, kind: &str, webhooks: &[Value]) -> (String, Value) {
    let object = json!({
        "apiVersion": format!("{GROUP}/v1"), "kind": kind,
        "metadata": { "name": NAME, "labels": labels() },
        "webhooks": webhooks,
    });
    (format!("/apis/{GROUP}/v1/{resource}/{NAME}"), object)
}

fn rule((group, version): (&str, &str), resources: &[&str], operations: &[&str]) -> Value {
    json!({
        "apiGroups": [group], "apiVersions": [version], "resources": resources, "operations": operations,
    })
}

fn webhook(name: &str, failure_policy: &str, client_config: Value, rules: &[Value]) -> Value {
    json!({
        "name": format!("{name}.soroi.dev"),
        "clientConfig": client_config,
        "rules": rules,
        "failurePolicy": failure_policy,
        "matchPolicy": "Equivalent",
        "sideEffects": "None",
        "timeoutSeconds": TIMEOUT_SECS,
        "admissionReviewVersions": ["v1"],
    })
}

/// Only objects that have, or had, this label.
fn having(label: &str, mut webhook: Value) -> Value {
    webhook["objectSelector"] = json!({ "matchExpressions": [{ "key": label, "operator": "Exists" }] });
    webhook
}
