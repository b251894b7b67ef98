//! What is there? Everything that a plan is made of, read once.
//!
//! Knows where to ask. Must never know what an answer means for the adoption; what cannot be read
//! is said, not guessed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use serde_json::Value;
use soroi_api::labels::{kueue, volcano};
use soroi_clock::Clock;

use super::object::{list, text};
use crate::run::apply::get;
use crate::run::rivals;

/// Objects in one answer.
const PAGE: usize = 500;
/// Volcano's other controllers (1.15, `cmd/controller-manager`): they make PodGroups and write the
/// state of Queues.
const VOLCANO_CONTROLLERS: &str = "vc-controller-manager";

pub(super) const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
pub(super) const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const API_SERVICES: &str = "/apis/apiregistration.k8s.io/v1/apiservices";
/// Resources of Kubernetes itself, and the selector of the objects that belong to a queue.
pub(super) const JOBS: &str = "jobs.batch";
pub(super) const PODS: &str = "pods";
/// Kinds of jobs that Kueue 0.18 admits, besides those that are defined by a group of its own or of
/// Volcano's.
const JOB_GROUPS: [&str; 7] = [
    "jobset.x-k8s.io",
    "kubeflow.org",
    "trainer.kubeflow.org",
    "ray.io",
    "workload.codeflare.dev",
    "sparkoperator.k8s.io",
    "leaderworkerset.x-k8s.io",
];

/// A cluster as another product left it.
#[derive(Clone, Debug, Default)]
pub(super) struct Seen {
    /// Definitions of Kueue's and Volcano's groups.
    pub(super) definitions: Vec<Value>,
    /// Webhook configurations of anybody.
    pub(super) webhooks: Vec<Value>,
    /// Aggregated APIs of anybody.
    pub(super) api_services: Vec<Value>,
    /// Whose leases are renewed: who, and `namespace/name`.
    pub(super) live: Vec<(&'static str, String)>,
    /// Services (`namespace/name`) behind webhooks that have somebody to answer.
    pub(super) answering: BTreeSet<String>,
    /// Objects, or why they cannot be read, by `plural.group`.
    pub(super) objects: BTreeMap<String, Result<Vec<Value>, String>>,
}

impl Seen {
    /// The objects of a resource that could be read.
    pub(super) fn of(&self, resource: &str) -> &[Value] {
        self.objects.get(resource).and_then(|listed| listed.as_ref().ok()).map_or(&[], Vec::as_slice)
    }
}

/// Reads a cluster. Takes up to half a minute where a lease looks old but not surely given up.
///
/// # Errors
/// The API server does not answer, or refuses to say something that is needed.
pub(super) async fn look(client: &kube::Client, clock: &Clock) -> anyhow::Result<Seen> {
    let mut seen = Seen::default();
    let leaders = [
        ("Kueue's manager", rivals::KUEUE),
        ("Volcano's scheduler", rivals::VOLCANO),
        ("Volcano's controller manager", VOLCANO_CONTROLLERS),
    ];
    for (who, lease) in leaders {
        let live = rivals::live(client, clock, lease).await.context("cannot read leases")?;
        seen.live.extend(live.into_iter().map(|place| (who, place)));
    }
    let definitions = items(client, DEFINITIONS, "").await?;
    for kind in ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"] {
        let path = format!("{REGISTRATION}/{}s", kind.to_lowercase());
        for mut webhook in items(client, &path, "").await? {
            // Lists leave the kind out.
            webhook["kind"] = kind.into();
            webhook["apiVersion"] = "admissionregistration.k8s.io/v1".into();
            seen.webhooks.push(webhook);
        }
    }
    for mut service in items(client, API_SERVICES, "").await? {
        service["kind"] = "APIService".into();
        service["apiVersion"] = "apiregistration.k8s.io/v1".into();
        seen.api_services.push(service);
    }
    for service in services(&seen.webhooks) {
        if answers(client, &service).await? {
            seen.answering.insert(service);
        }
    }
    seen.objects = objects(client, &definitions).await?;
    seen.definitions = definitions.into_iter().filter(|one| is_of_theirs(text(one, "/spec/group"))).collect();
    Ok(seen)
}

/// Whether a group is Kueue's or Volcano's.
fn is_of_theirs(group: &str) -> bool {
    group == soroi_api::kueue::GROUP || group.ends_with(".volcano.sh")
}

/// The version of a definition that is stored.
pub(super) fn stored_version(definition: &Value) -> &str {
    let stored = list(definition, "/spec/versions").iter().find(|version| version["storage"] == true);
    stored.map_or("", |version| text(version, "/name"))
}

async fn objects(
    client: &kube::Client,
    definitions: &[Value],
) -> anyhow::Result<BTreeMap<String, Result<Vec<Value>, String>>> {
    let queued = format!("labelSelector={}", kueue::QUEUE_NAME);
    let mut objects = BTreeMap::new();
    for definition in definitions {
        let group = text(definition, "/spec/group");
        let selector = match (is_of_theirs(group), JOB_GROUPS.contains(&group)) {
            (true, _) => "",
            (false, true) => &*queued,
            (false, false) => continue,
        };
        let plural = text(definition, "/spec/names/plural");
        let path = format!("/apis/{group}/{}/{plural}", stored_version(definition));
        // A conversion that nobody does any more makes a kind unreadable; the others still are.
        let listed = items(client, &path, selector).await.map_err(|error| format!("{error:#}"));
        objects.insert(format!("{plural}.{group}"), listed);
    }
    for (resource, path) in [
        (JOBS, "/apis/batch/v1/jobs"),
        ("deployments.apps", "/apis/apps/v1/deployments"),
        ("statefulsets.apps", "/apis/apps/v1/statefulsets"),
    ] {
        objects.insert(resource.to_owned(), Ok(items(client, path, &queued).await?));
    }
    objects.insert(PODS.to_owned(), Ok(pods(client).await?));
    Ok(objects)
}

/// Pods that Kueue or Volcano had a hand in.
async fn pods(client: &kube::Client) -> anyhow::Result<Vec<Value>> {
    let selectors = [
        format!("labelSelector={}", kueue::PODSET),
        format!("labelSelector={}", kueue::MANAGED),
        format!("fieldSelector=spec.schedulerName%3D{}", volcano::SCHEDULER_NAME),
    ];
    let mut pods = BTreeMap::new();
    for selector in selectors {
        for pod in items(client, "/api/v1/pods", &selector).await? {
            pods.insert(text(&pod, "/metadata/uid").to_owned(), pod);
        }
    }
    Ok(pods.into_values().collect())
}

/// All objects at `path`, page by page; none if nothing is served there.
pub(super) async fn items(client: &kube::Client, path: &str, selector: &str) -> anyhow::Result<Vec<Value>> {
    let mut all = Vec::new();
    let mut next = String::new();
    loop {
        let page = format!("{path}?limit={PAGE}&{selector}{next}");
        let page = page.trim_end_matches('&');
        let Some(mut answer) =
            get::<Value>(client, page).await.with_context(|| format!("cannot list {path}"))?
        else {
            return Ok(all);
        };
        if let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) {
            all.extend(items);
        }
        match text(&answer, "/metadata/continue") {
            "" => return Ok(all),
            token => next = format!("&continue={token}"),
        }
    }
}

/// The services (`namespace/name`) that webhooks are sent to.
pub(super) fn services(webhooks: &[Value]) -> BTreeSet<String> {
    let hooks = webhooks.iter().flat_map(|one| list(one, "/webhooks"));
    let services = hooks.filter_map(|hook| hook.pointer("/clientConfig/service"));
    services.map(|service| format!("{}/{}", text(service, "/namespace"), text(service, "/name"))).collect()
}

/// Whether somebody stands behind a service.
async fn answers(client: &kube::Client, service: &str) -> anyhow::Result<bool> {
    let (namespace, name) = service.split_once('/').unwrap_or_default();
    let path = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let slices = items(client, &path, &format!("labelSelector=kubernetes.io/service-name%3D{name}")).await?;
    let mut endpoints = slices.iter().flat_map(|slice| list(slice, "/endpoints"));
    Ok(endpoints.any(|one| one["conditions"]["ready"] != false && !list(one, "/addresses").is_empty()))
}
