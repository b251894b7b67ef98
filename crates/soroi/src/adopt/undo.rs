//! Puts back what an adoption saved.
//!
//! What ran under Soroi goes on: its pods are bound, and its Workloads say so in Kueue's words.
//! Soroi must be stopped, and what only Soroi would ever remove (its admission policies, the
//! finalizers of its plans) is removed here. Each step may be made again.

use anyhow::{Context as _, bail};
use serde_json::{Value, json};
use soroi_api::labels::{kueue, soroi};
use soroi_clock::Clock;

use super::carry::{cluster, delete, merge, put};
use super::look::{DEFINITIONS, REGISTRATION, items};
use super::object::{list, path, place, text};
use super::save::Folder;
use crate::manifests;
use crate::run::apply::get;
use crate::run::webhooks::objects as webhooks;
use crate::run::{admission, rivals};

const PLANS: (&str, &str) = ("/apis/soroi.dev/v1alpha1", "gangplans");
/// What the API server gave an object; a new one gets its own.
const GIVEN: [&str; 6] =
    ["uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink"];

/// What became of an undo.
#[derive(Clone, Debug, Default)]
pub(super) struct Undone {
    /// Objects that are as they were before.
    pub(super) restored: Vec<String>,
    /// Pods that nobody will bind.
    pub(super) waiting: Vec<String>,
}

/// Undoes an adoption.
///
/// # Errors
/// Soroi runs, the folder is not that of this cluster, or a request was refused.
pub(super) async fn undo(client: &kube::Client, clock: &Clock, folder: &Folder) -> anyhow::Result<Undone> {
    folder.belongs_to(&cluster(client).await?)?;
    if let Some(lease) = rivals::live(client, clock, manifests::NAME).await?.first() {
        bail!("Soroi is live: it holds the lease {lease}; stop it first");
    }
    let saved = folder.objects()?;
    let mut done = Undone::default();
    for resource in admission::FOLLOWED.into_iter().chain([webhooks::VALIDATING]) {
        let selector = format!("labelSelector={}%3D{}", admission::LABEL.0, admission::LABEL.1);
        for object in items(client, &format!("{REGISTRATION}/{resource}"), &selector).await? {
            delete(client, &path(REGISTRATION, resource, &object)).await?;
        }
    }
    drop_plans(client).await?;
    // Admission comes last: it refuses requests until its product runs.
    for wanted in ["CustomResourceDefinition", "Pod", "APIService", ""] {
        for object in &saved {
            let kind = text(object, "/kind");
            let is_admission = kind.ends_with("WebhookConfiguration");
            if (kind == wanted || (wanted.is_empty() && is_admission)) && restore(client, object).await? {
                done.restored.push(format!("{kind} {}", place(object)));
            }
        }
    }
    let selector = format!("fieldSelector=spec.schedulerName%3D{}", soroi::SCHEDULER_NAME);
    let pods = items(client, "/api/v1/pods", &selector).await?;
    done.waiting = pods.iter().filter(|pod| text(pod, "/spec/nodeName").is_empty()).map(place).collect();
    Ok(done)
}

/// Plans have a finalizer that Soroi alone takes off.
async fn drop_plans(client: &kube::Client) -> anyhow::Result<()> {
    let (base, plural) = PLANS;
    for plan in items(client, &format!("{base}/{plural}"), "").await? {
        let path = path(base, plural, &plan);
        merge(client, &path, &json!({ "metadata": { "finalizers": null } })).await?;
        delete(client, &path).await?;
    }
    Ok(())
}

/// Puts one object back; whether there was something to do.
async fn restore(client: &kube::Client, saved: &Value) -> anyhow::Result<bool> {
    match text(saved, "/kind") {
        "CustomResourceDefinition" => {
            let path = format!("{DEFINITIONS}/{}", super::object::name(saved));
            match get::<Value>(client, &path).await? {
                Some(there) => {
                    let before = as_before(there.clone(), saved);
                    if before == there {
                        return Ok(false);
                    }
                    put(client, &path, &before).await.map(|()| true)
                }
                None => create(client, DEFINITIONS, saved).await,
            }
        }
        "Pod" => bind_again(client, saved).await,
        kind => {
            let collection = format!("/apis/{}/{}s", text(saved, "/apiVersion"), kind.to_lowercase());
            match get::<Value>(client, &format!("{collection}/{}", super::object::name(saved))).await? {
                Some(_) => Ok(false),
                None => create(client, &collection, saved).await,
            }
        }
    }
}

/// What is there, with what was said before.
fn as_before(mut there: Value, saved: &Value) -> Value {
    there["spec"] = saved["spec"].clone();
    for field in ["labels", "annotations"] {
        match (&saved["metadata"][field], there["metadata"].as_object_mut()) {
            (Value::Null, Some(meta)) => drop(meta.remove(field)),
            (value, _) => there["metadata"][field] = value.clone(),
        }
    }
    there
}

async fn create(client: &kube::Client, collection: &str, saved: &Value) -> anyhow::Result<bool> {
    let mut object = saved.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.retain(|field, _| !GIVEN.contains(&field.as_str()));
    }
    let request = http::Request::post(format!("{collection}?fieldManager=soroi"))
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(object.to_string().into_bytes())?;
    let made = client.request::<Value>(request).await;
    made.with_context(|| format!("cannot create {} {}", text(saved, "/kind"), place(saved)))?;
    Ok(true)
}

/// Gives a pod its finalizer again, if it is the same pod and is not leaving.
async fn bind_again(client: &kube::Client, saved: &Value) -> anyhow::Result<bool> {
    let path = path("/api/v1", "pods", saved);
    let Some(there) = get::<Value>(client, &path).await? else { return Ok(false) };
    let same = there["metadata"]["uid"] == saved["metadata"]["uid"];
    let mut finalizers = list(&there, "/metadata/finalizers").to_vec();
    let kept = finalizers.iter().any(|one| one == kueue::MANAGED);
    if !same || kept || !there["metadata"]["deletionTimestamp"].is_null() {
        return Ok(false);
    }
    finalizers.push(kueue::MANAGED.into());
    let version = text(&there, "/metadata/resourceVersion");
    let body = json!({ "metadata": { "finalizers": finalizers, "resourceVersion": version } });
    merge(client, &path, &body).await?;
    Ok(true)
}
