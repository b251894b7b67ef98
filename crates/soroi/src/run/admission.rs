//! Admission by the API server's own policies, and whether they are seen to work.
//!
//! Three `MutatingAdmissionPolicy` objects (Kubernetes 1.36) do what only creation allows: a managed
//! Job is created suspended, a Job that names no queue gets the default one of its namespace, and a
//! pod that carries the label of a released gang gets our scheduler, which a Job's template cannot be
//! given any more. They say what `soroi_webhook::default` says, in CEL. They match by label, so that
//! they never meet what Soroi does not manage, but for Jobs without a queue, which go on whatever
//! becomes of their policy. All go on working while Soroi is down.
//!
//! Whether they work is not believed but tried: a pod is created for show (`dryRun`) and looked at.
//! Until that came back with our scheduler, no gang is released whose pods Soroi would bind.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use jiff::Timestamp;
use kube::core::PartialObjectMeta;
use serde_json::{Value, json};
use soroi_api::labels::{kubernetes, kueue, soroi};
use soroi_clock::Clock;
use soroi_watch::{Change, Query};
use tokio::sync::watch;

use super::apply::get;
use super::metrics::Metrics;
use super::webhooks::objects;

const GROUP: &str = "/apis/admissionregistration.k8s.io/v1";
const POLICIES: &str = "mutatingadmissionpolicies";
const BINDINGS: &str = "mutatingadmissionpolicybindings";
/// What may give a pod our scheduler. The last one is served everywhere.
pub(crate) const FOLLOWED: [&str; 3] = [POLICIES, BINDINGS, objects::MUTATING];
/// Says whose the policies are.
pub(crate) const LABEL: (&str, &str) = ("app.kubernetes.io/part-of", "soroi");
/// How soon a failed proof is tried again: the API server takes about a second to put a new policy
/// into force.
const RETRY: Duration = Duration::from_millis(250);
/// How many proofs in a row may fail before that is worth a warning.
const PATIENCE: u32 = 3;
/// How long after a change a proof may still tell of what was before: the API server looks at its
/// policies about once a second.
pub(crate) const SETTLE: Duration = Duration::from_secs(3);
/// How often a proof is repeated although nothing is seen to have changed.
const REPEAT: Duration = Duration::from_secs(30);
/// How long one proof may take.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// Whether the API server serves such policies.
pub(crate) async fn are_served(client: &kube::Client) -> kube::Result<bool> {
    let served: Option<Value> = get(client, GROUP).await?;
    let resources = served.as_ref().and_then(|list| list["resources"].as_array());
    Ok(resources.into_iter().flatten().any(|resource| resource["name"] == POLICIES))
}

/// The policies and their bindings, each with its path.
pub(crate) fn objects() -> Vec<(String, Value)> {
    let policies = [
        ("default-queue.soroi.dev", default_queue()),
        ("jobs.soroi.dev", jobs()),
        ("pods.soroi.dev", pods(soroi::GANG, soroi::SCHEDULER_NAME)),
    ];
    policies.into_iter().flat_map(|(name, spec)| both(name, &spec)).collect()
}

/// A policy like that for pods of released gangs, and its binding, each with its path: pods with this
/// label get this scheduler. For measuring what it costs.
pub(crate) fn like_ours(name: &str, label: &str, scheduler: &str) -> [(String, Value); 2] {
    both(name, &pods(label, scheduler))
}

fn both(name: &str, spec: &Value) -> [(String, Value); 2] {
    let mut binding = json!({ "policyName": name });
    if !spec["paramKind"].is_null() {
        // In the namespace of the object. Without the queue nothing is to be done.
        binding["paramRef"] =
            json!({ "name": soroi_webhook::DEFAULT_QUEUE, "parameterNotFoundAction": "Allow" });
    }
    let object = |kind: &str, spec: Value| {
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": kind,
            "metadata": { "name": name, "labels": { LABEL.0: LABEL.1 } },
            "spec": spec,
        })
    };
    [
        (format!("{GROUP}/{POLICIES}/{name}"), object("MutatingAdmissionPolicy", spec.clone())),
        (format!("{GROUP}/{BINDINGS}/{name}"), object("MutatingAdmissionPolicyBinding", binding)),
    ]
}

/// A managed Job is created suspended, unless an owner of it is managed instead or another
/// controller runs it.
fn jobs() -> Value {
    let [runs_here, owner] = manageable();
    json!({
        "matchConstraints": constraints("batch", "jobs", kueue::QUEUE_NAME),
        "matchConditions": [
            condition("runs", "!has(object.spec.suspend) || !object.spec.suspend"),
            condition("names-a-queue", &format!("{} != ''", queue_name())), runs_here, owner,
        ],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "mutations": [mutation("Object{spec: Object.spec{suspend: true}}")],
    })
}

/// A Job that names no queue gets that of the name `default`, if its namespace has it (the
/// parameter), and is suspended at once: the policy for Jobs with a queue would not be asked again.
/// It is not ours yet, so nothing that goes wrong may keep it from being created.
fn default_queue() -> Value {
    let mut asked = vec![names_no_queue()];
    asked.extend(manageable());
    // No selector says "no label, or an empty one".
    let constraints = json!({ "resourceRules": created("batch", "jobs") });
    let labels = format!("labels: {{'{}': '{}'}}", kueue::QUEUE_NAME, soroi_webhook::DEFAULT_QUEUE);
    json!({
        "paramKind": {
            "apiVersion": format!("{}/{}", soroi_api::kueue::GROUP, soroi_api::kueue::VERSION),
            "kind": "LocalQueue",
        },
        "matchConstraints": constraints,
        "matchConditions": asked,
        "failurePolicy": "Ignore",
        "reinvocationPolicy": "IfNeeded",
        "mutations": [mutation(&format!(
            "Object{{metadata: Object.metadata{{{labels}}}, spec: Object.spec{{suspend: true}}}}"
        ))],
    })
}

/// The queue that a Job names. An empty name is none, as with Kueue (`jobframework.QueueNameForObject`).
fn queue_name() -> String {
    format!("object.metadata.?labels[?'{}'].orValue('')", kueue::QUEUE_NAME)
}

/// A Job may get the default queue.
pub(crate) fn names_no_queue() -> Value {
    condition("names-no-queue", &format!("{} == ''", queue_name()))
}

/// A Job runs under Kubernetes' own controller, and no owner of it is managed instead.
pub(crate) fn manageable() -> [Value; 2] {
    let owners = soroi_webhook::MANAGED_KINDS
        .map(|(group, kind)| format!("(o.kind == '{kind}' && o.apiVersion.startsWith('{group}/'))"))
        .join(" || ");
    let runs_here = format!(
        "!has(object.spec.managedBy) || object.spec.managedBy in ['', '{}']",
        kubernetes::JOB_CONTROLLER
    );
    let owner = format!(
        "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, \
         has(o.controller) && o.controller && ({owners}))"
    );
    [condition("runs-here", &runs_here), condition("owner-is-not-managed", &owner)]
}

/// A pod of a released gang gets our scheduler, unless it names another one on purpose or is pinned
/// to a topology domain (then whoever it names binds it).
fn pods(label: &str, scheduler: &str) -> Value {
    let unnamed = format!(
        "!has(object.spec.schedulerName) || object.spec.schedulerName in ['', '{}']",
        kubernetes::DEFAULT_SCHEDULER
    );
    let free = format!(
        "!has(object.spec.schedulingGates) || object.spec.schedulingGates.all(g, g.name != '{}')",
        kueue::GATE_TOPOLOGY
    );
    let ours = format!("Object{{spec: Object.spec{{schedulerName: '{scheduler}'}}}}");
    json!({
        "matchConstraints": constraints("", "pods", label),
        "matchConditions": [condition("names-no-scheduler", &unnamed), condition("is-not-pinned", &free)],
        "failurePolicy": "Fail",
        "reinvocationPolicy": "IfNeeded",
        "mutations": [mutation(&ours)],
    })
}

/// New objects that carry this label.
fn constraints(group: &str, resource: &str, label: &str) -> Value {
    json!({
        "resourceRules": created(group, resource),
        "objectSelector": { "matchExpressions": [{ "key": label, "operator": "Exists" }] },
    })
}

fn created(group: &str, resource: &str) -> Value {
    json!([
        { "apiGroups": [group], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": [resource] },
    ])
}

fn condition(name: &str, expression: &str) -> Value {
    json!({ "name": name, "expression": expression })
}

fn mutation(expression: &str) -> Value {
    json!({ "patchType": "ApplyConfiguration", "applyConfiguration": { "expression": expression } })
}

/// Says for ever whether a labelled pod gets our scheduler: tried at start, after every change of a
/// policy, binding or webhook configuration of ours, and from time to time. After a change it counts as lost until a proof
/// that cannot tell of the time before.
pub(crate) async fn watch(
    client: kube::Client,
    clock: Clock,
    namespace: String,
    works: watch::Sender<bool>,
    metrics: Arc<Metrics>,
) -> anyhow::Result<()> {
    let policies = are_served(&client).await.unwrap_or(true);
    let followed = if policies { &FOLLOWED[..] } else { &[objects::MUTATING] };
    let mut changes = futures::stream::select_all(followed.iter().copied().map(|resource| {
        let query = Query::path(format!("{GROUP}/{resource}")).labels(format!("{}={}", LABEL.0, LABEL.1));
        let changes = soroi_watch::watch::<PartialObjectMeta>(client.clone(), clock.clone(), query, 0);
        changes.map(move |change| (resource, change)).boxed()
    }));
    let mut known = Known::default();
    let mut doubtful_until = Timestamp::MIN;
    let mut told = None;
    let mut failed = 0_u32;
    let mut pause = RETRY;
    loop {
        let began = clock.now();
        let proof = prove(&client, &clock, &namespace).await;
        let sure = began >= doubtful_until;
        tell(&works, &metrics, proof.is_ok() && sure);
        failed = if proof.is_ok() { 0 } else { failed.saturating_add(1) };
        if told.as_ref() != Some(&proof) {
            match &proof {
                Ok(()) => tracing::info!("admission works: pods of a release get our scheduler"),
                // The API server takes a moment to put a new policy in force.
                Err(problem) if failed <= PATIENCE => {
                    tracing::debug!(%problem, "admission is not in force yet");
                }
                Err(problem) => {
                    tracing::warn!(%problem, "admission does not work: gangs whose pods Soroi would bind wait");
                }
            }
        }
        pause = match &proof {
            Ok(()) if sure => REPEAT,
            Ok(()) => RETRY,
            Err(_) => pause.min(REPEAT),
        };
        told = Some(proof).filter(|proof| proof.is_ok() || failed > PATIENCE);
        tokio::select! {
            biased;
            Some((resource, change)) = changes.next() => {
                if known.take(resource, change) {
                    tell(&works, &metrics, false);
                    doubtful_until = clock.now().saturating_add(SETTLE).unwrap_or(Timestamp::MAX);
                }
                pause = RETRY;
            }
            () = clock.sleep(pause) => pause = pause.saturating_mul(2),
        }
    }
}

fn tell(works: &watch::Sender<bool>, metrics: &Metrics, now: bool) {
    metrics.admission_works(now);
    works.send_if_modified(|known| std::mem::replace(known, now) != now);
}

/// The versions of our policies and bindings, by uid; for each resource once it was listed.
#[derive(Debug, Default)]
struct Known {
    versions: BTreeMap<&'static str, BTreeMap<String, String>>,
}

impl Known {
    /// Takes in what a watch says. Whether anything has changed since it was first listed.
    fn take(&mut self, resource: &'static str, change: Change<PartialObjectMeta>) -> bool {
        let pair = |object: PartialObjectMeta| {
            let meta = object.metadata;
            (meta.uid.unwrap_or_default(), meta.resource_version.unwrap_or_default())
        };
        match change {
            Change::Reset(listed) => {
                let listed: BTreeMap<_, _> = listed.into_iter().map(pair).collect();
                let before = self.versions.insert(resource, listed.clone());
                before.is_some_and(|before| before != listed)
            }
            Change::Set(object) => {
                let (uid, version) = pair(object);
                let versions = self.versions.entry(resource).or_default();
                versions.insert(uid, version.clone()) != Some(version)
            }
            Change::Gone(object) => {
                self.versions.entry(resource).or_default().remove(&pair(object).0);
                true
            }
            Change::Unreadable { .. } => true,
        }
    }
}

/// Why a labelled pod does not get our scheduler.
type Problem = String;

async fn prove(client: &kube::Client, clock: &Clock, namespace: &str) -> Result<(), Problem> {
    let request = http::Request::post(format!("/api/v1/namespaces/{namespace}/pods?dryRun=All"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(probe().to_string().into_bytes())
        .map_err(|error| error.to_string())?;
    let answer = clock.timeout(ANSWER_MAX, client.request::<Value>(request)).await;
    let pod = answer.map_err(|late| late.to_string())?.map_err(|error| error.to_string())?;
    match pod["spec"]["schedulerName"].as_str() {
        Some(soroi::SCHEDULER_NAME) => Ok(()),
        other => Err(format!(
            "a pod with the label {} would get the scheduler {:?}",
            soroi::GANG,
            other.unwrap_or_default()
        )),
    }
}

/// A pod as a release brings it about, that every cluster accepts.
fn probe() -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "generateName": "soroi-probe-", "labels": { soroi::GANG: "probe" } },
        "spec": {
            "automountServiceAccountToken": false,
            "securityContext": { "runAsNonRoot": true, "seccompProfile": { "type": "RuntimeDefault" } },
            "containers": [{
                "name": "probe",
                "image": "soroi.dev/probe",
                "securityContext": { "allowPrivilegeEscalation": false, "capabilities": { "drop": ["ALL"] } },
                "resources": {
                    "requests": { "cpu": "1m", "memory": "1Mi" },
                    "limits": { "cpu": "1m", "memory": "1Mi" },
                },
            }],
        },
    })
}

#[cfg(test)]
mod tests;
