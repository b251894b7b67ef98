//! Carries a plan out. Every step may be made again: after a crash, the whole is repeated.
//!
//! Before anything is taken away, what is there is saved, and Soroi's own admission is in force: a
//! managed job that is created meanwhile must be suspended by somebody.
//!
//! Knows requests. Must never decide what is to be changed.

use anyhow::Context as _;
use serde_json::{Value, json};
use soroi_clock::Clock;

use super::object::{list, name, text};
use super::plan::{Plan, Step, definition_path};
use super::save::Folder;
use crate::manifests;
use crate::run::apply::get;
use crate::run::{admission, install};

/// Annotations that describe a definition as its product made it: its generator, who writes
/// certificates into it, and what kubectl applied.
const THEIRS: [&str; 3] = ["controller-gen.kubebuilder.io/", "cert-manager.io/", "kubectl.kubernetes.io/"];

/// Takes over.
///
/// # Errors
/// A request that was refused; what was done until then stands, and the same again goes on.
pub(super) async fn carry(
    client: &kube::Client,
    clock: &Clock,
    plan: &Plan,
    folder: &Folder,
) -> anyhow::Result<()> {
    folder.claim(&cluster(client).await?)?;
    for step in &plan.steps {
        save(client, step, folder).await?;
    }
    install::prepare(client, manifests::NAMESPACE).await?;
    // It cannot be tried: the admission that is about to go may refuse whatever is created.
    clock.sleep(admission::SETTLE).await;
    for step in &plan.steps {
        make(client, clock, step).await?;
    }
    Ok(())
}

/// Which cluster this is.
pub(super) async fn cluster(client: &kube::Client) -> anyhow::Result<String> {
    let namespace: Option<Value> = get(client, "/api/v1/namespaces/kube-system").await?;
    let uid = namespace.as_ref().map(|namespace| text(namespace, "/metadata/uid").to_owned());
    uid.filter(|uid| !uid.is_empty()).context("the cluster has no namespace kube-system")
}

async fn save(client: &kube::Client, step: &Step, folder: &Folder) -> anyhow::Result<()> {
    let (kind, version, path) = match step {
        Step::Remove { kind, path, .. } => (kind.as_str(), "", path.clone()),
        Step::Replace { definition, .. } => {
            ("CustomResourceDefinition", "apiextensions.k8s.io/v1", definition_path(definition))
        }
        Step::LetGo { kind, path, .. } => (*kind, "v1", path.clone()),
        Step::StoreAnew { .. } => return Ok(()),
    };
    if let Some(mut object) = get::<Value>(client, &path).await? {
        if text(&object, "/kind").is_empty() {
            object["kind"] = kind.into();
            object["apiVersion"] = version.into();
        }
        folder.keep(&object)?;
    }
    Ok(())
}

async fn make(client: &kube::Client, clock: &Clock, step: &Step) -> anyhow::Result<()> {
    match step {
        Step::Remove { path, .. } => delete(client, path).await,
        Step::StoreAnew { paths, .. } => {
            for path in paths {
                // Nothing is changed; the server writes what is stored in another version.
                merge(client, path, &json!({})).await?;
            }
            Ok(())
        }
        Step::Replace { definition, version, .. } => replace(client, clock, definition, version).await,
        Step::LetGo { path, finalizer, .. } => let_go(client, path, finalizer).await,
    }
}

/// Makes a definition ours. Its objects are stored in `version` by now.
async fn replace(
    client: &kube::Client,
    clock: &Clock,
    definition: &str,
    version: &str,
) -> anyhow::Result<()> {
    let path = definition_path(definition);
    let stored = json!({ "status": { "storedVersions": [version] } });
    merge(client, &format!("{path}/status"), &stored).await?;
    let Some(there) = get::<Value>(client, &path).await? else { return Ok(()) };
    let all = soroi_api::crds::all();
    let ours = all.iter().find(|one| one.metadata.name.as_deref() == Some(definition));
    let ours = ours.with_context(|| format!("{definition} is not ours"))?;
    let body = taken_over(there, serde_json::to_value(ours)?);
    put(client, &path, &body).await?;
    install::served(client, clock, ours).await
}

/// Their definition with our contents. Labels and annotations of others stay.
fn taken_over(mut theirs: Value, ours: Value) -> Value {
    if let Some(annotations) = theirs["metadata"]["annotations"].as_object_mut() {
        annotations.retain(|key, _| !THEIRS.iter().any(|start| key.starts_with(start)));
    }
    theirs["spec"] = ours["spec"].clone();
    theirs
}

async fn let_go(client: &kube::Client, path: &str, finalizer: &str) -> anyhow::Result<()> {
    let Some(object) = get::<Value>(client, path).await? else { return Ok(()) };
    let left: Vec<&Value> =
        list(&object, "/metadata/finalizers").iter().filter(|one| *one != finalizer).collect();
    let version = text(&object, "/metadata/resourceVersion");
    let body = json!({ "metadata": { "finalizers": left, "resourceVersion": version } });
    merge(client, path, &body).await
}

/// Merges a patch into an object, if it is there.
pub(super) async fn merge(client: &kube::Client, path: &str, body: &Value) -> anyhow::Result<()> {
    let request = http::Request::patch(format!("{path}?fieldManager=soroi"))
        .header(http::header::CONTENT_TYPE, "application/merge-patch+json")
        .body(body.to_string().into_bytes())?;
    unless_gone(client.request::<Value>(request).await).with_context(|| format!("cannot write {path}"))
}

/// Writes an object as it is given.
pub(super) async fn put(client: &kube::Client, path: &str, body: &Value) -> anyhow::Result<()> {
    let request = http::Request::put(format!("{path}?fieldManager=soroi"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(body.to_string().into_bytes())?;
    client.request::<Value>(request).await.with_context(|| format!("cannot replace {}", name(body)))?;
    Ok(())
}

/// Removes an object, if it is there.
pub(super) async fn delete(client: &kube::Client, path: &str) -> anyhow::Result<()> {
    let request = http::Request::delete(path).body(Vec::new())?;
    unless_gone(client.request::<Value>(request).await).with_context(|| format!("cannot remove {path}"))
}

fn unless_gone(answer: kube::Result<Value>) -> kube::Result<()> {
    match answer {
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        answer => answer.map(|_| ()),
    }
}
