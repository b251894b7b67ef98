//! How does an object go? Preconditions, grace, finalizers, propagation.
//!
//! Follows Kubernetes 1.36 (`apiserver/pkg/registry/rest/delete.go` and `generic/registry/store.go`).

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::admission::Operation;
use crate::builtin::{crd, namespace};
use crate::query::{Query, dry_run};
use crate::reply::Reply;
use crate::resource::Resource;
use crate::select::Selection;
use crate::status::{ApiError, FieldError};
use crate::store::{PODS, State, Stored, encode};
use crate::write::Call;
use crate::{decode, object, read};

/// `metav1.DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub(crate) struct DeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) revision: Option<String>,
    /// Seconds; none leaves it to the object.
    pub(crate) grace: Option<i64>,
    pub(crate) propagation: Option<Propagation>,
    pub(crate) dry_run: bool,
}

/// What happens to the objects that an object owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Propagation {
    Background,
    Foreground,
    Orphan,
}

impl DeleteOptions {
    /// Reads them from the body, or from the query where there is no body.
    pub(crate) fn parse(headers: &HeaderMap, query: &Query, body: &[u8]) -> Result<Self, ApiError> {
        let body = if body.is_empty() { Value::Null } else { decode::value(headers, body)? };
        let trial = query.get("dryRun").or_else(|| object::list(&body, &["dryRun"]).first()?.as_str());
        let grace = query.get("gracePeriodSeconds").and_then(|text| text.parse().ok());
        let mut options = Self::from_value(&body)?;
        options.dry_run = dry_run(trial).map_err(|e| refuse(&e))?;
        options.grace = options.grace.or(grace);
        if let Some(policy) = query.get("propagationPolicy") {
            options.propagation = propagation(policy)?;
        }
        Ok(options)
    }

    /// Reads them from a DeleteOptions object.
    pub(crate) fn from_value(body: &Value) -> Result<Self, ApiError> {
        let precondition =
            |key| object::at(body, &["preconditions", key]).and_then(Value::as_str).map(str::to_owned);
        let policy = match object::text(body, &["propagationPolicy"]) {
            "" => object::at(body, &["orphanDependents"])
                .and_then(Value::as_bool)
                .map(|orphan| if orphan { Propagation::Orphan } else { Propagation::Background }),
            policy => propagation(policy)?,
        };
        let trial = object::list(body, &["dryRun"]).first().and_then(Value::as_str);
        Ok(Self {
            uid: precondition("uid"),
            revision: precondition("resourceVersion"),
            grace: object::number(body, &["gracePeriodSeconds"]),
            propagation: policy,
            dry_run: dry_run(trial).map_err(|e| refuse(&e))?,
        })
    }
}

fn refuse(error: &FieldError) -> ApiError {
    ApiError::invalid("meta.k8s.io", "DeleteOptions", "", std::slice::from_ref(error))
}

fn propagation(policy: &str) -> Result<Option<Propagation>, ApiError> {
    match policy {
        "" => Ok(None),
        "Background" => Ok(Some(Propagation::Background)),
        "Foreground" => Ok(Some(Propagation::Foreground)),
        "Orphan" => Ok(Some(Propagation::Orphan)),
        other => {
            let supported = ["Background", "Foreground", "Orphan", "nil"];
            Err(refuse(&FieldError::not_supported("propagationPolicy", other, &supported)))
        }
    }
}

/// DELETE on an object.
pub(crate) fn one(
    call: &mut Call,
    headers: &HeaderMap,
    query: &Query,
    body: Bytes,
) -> Result<Reply, ApiError> {
    let options = DeleteOptions::parse(headers, query, &body)?;
    let deleted = delete(call, &options)?;
    // Pods and a few others are shown as they were; for the rest "Success" is enough.
    if !deleted.gone || &*call.resource.slot == PODS {
        return Ok(Reply::ok(read::show_json(&call.resource, &deleted.object)));
    }
    let mut details = json!({
        "name": call.name,
        "kind": call.resource.plural,
        "uid": object::meta(&deleted.object.value, "uid"),
    });
    if !call.resource.group.is_empty() {
        details["group"] = call.resource.group.as_str().into();
    }
    Ok(Reply::value(&json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
    })))
}

/// DELETE on a collection: each object that is meant, as if one by one.
pub(crate) fn collection(
    call: &mut Call,
    headers: &HeaderMap,
    query: &Query,
    body: Bytes,
    selection: &Selection,
) -> Result<Reply, ApiError> {
    let options = DeleteOptions::parse(headers, query, &body)?;
    let namespace = call.resource.namespaced.then(|| call.namespace.clone());
    let (meant, revision) = {
        let state = call.shared.store.lock();
        (read::select(&state, &call.resource, namespace.as_deref(), selection), state.revision)
    };
    let mut items = Vec::with_capacity(meant.len());
    for stored in meant {
        call.name = object::meta(&stored.value, "name").to_owned();
        match delete(call, &options) {
            Ok(deleted) => items.push(read::show(&call.resource, deleted.object.value.clone())),
            // Somebody else was quicker.
            Err(error) if error.code == 404 => {}
            Err(error) => return Err(error),
        }
    }
    Ok(Reply::ok(encode(&json!({
        "kind": call.resource.list_kind,
        "apiVersion": call.resource.api_version(),
        "metadata": { "resourceVersion": revision.to_string() },
        "items": items,
    }))))
}

/// What became of an object.
#[derive(Debug)]
pub(crate) struct Deleted {
    pub(crate) object: Arc<Stored>,
    /// Is it away, rather than waiting for finalizers or its kubelet?
    pub(crate) gone: bool,
}

/// Deletes the object that the call names.
pub(crate) fn delete(call: &mut Call, options: &DeleteOptions) -> Result<Deleted, ApiError> {
    let current = call.current()?;
    check_preconditions(&call.resource, &call.name, &current, options)?;
    call.validate(Operation::Delete, None, Some(&current.value))?;
    if options.dry_run || call.options.dry_run {
        return Ok(Deleted { object: current, gone: true });
    }
    let resource = call.resource.clone();
    let now = call.shared.clock.now();
    let mut state = call.shared.store.lock();
    // Read again: the hooks ran without the lock.
    let current = read::get(&state, &resource, &call.namespace, &call.name)?;
    check_preconditions(&resource, &call.name, &current, options)?;
    let deleted = if namespace::is_namespace(&resource) {
        namespace::delete(&mut state, &call.shared.registry(), &resource, &current, now)?
    } else {
        delete_stored(&mut state, &resource, &current, options, now)
    };
    drop(state);
    if deleted.gone {
        crd::after_removal(&call.shared, &resource, &deleted.object.value);
    }
    Ok(deleted)
}

fn check_preconditions(
    resource: &Resource,
    name: &str,
    current: &Stored,
    options: &DeleteOptions,
) -> Result<(), ApiError> {
    let uid = object::meta(&current.value, "uid");
    if let Some(wanted) = options.uid.as_deref()
        && wanted != uid
    {
        let why = format!(
            "the UID in the precondition ({wanted}) does not match the UID in record ({uid}). The object might have been deleted and then recreated"
        );
        return Err(ApiError::conflict(resource, name, why));
    }
    if let Some(wanted) = options.revision.as_deref()
        && wanted != current.revision.to_string()
    {
        let why = format!(
            "the ResourceVersion in the precondition ({wanted}) does not match the ResourceVersion in record ({}). The object might have been modified",
            current.revision
        );
        return Err(ApiError::conflict(resource, name, why));
    }
    Ok(())
}

/// Deletes a stored object, or marks it when finalizers or a kubelet must go first.
pub(crate) fn delete_stored(
    state: &mut State,
    resource: &Resource,
    current: &Arc<Stored>,
    options: &DeleteOptions,
    now: jiff::Timestamp,
) -> Deleted {
    let namespace = object::meta(&current.value, "namespace");
    let name = object::meta(&current.value, "name");
    let grace = if &*resource.slot == PODS { pod_grace(&current.value, options) } else { 0 };
    let finalizers = finalizers(&current.value, options);
    if grace == 0 && finalizers.is_empty() {
        let object = remove(state, resource, namespace, name).unwrap_or_else(|| current.clone());
        return Deleted { object, gone: true };
    }
    let new = marked(&current.value, finalizers, grace, now);
    if new == current.value {
        return Deleted { object: current.clone(), gone: false };
    }
    Deleted { object: state.put(&resource.slot, new), gone: false }
}

/// Takes an object out, and with the last one of a dying namespace the namespace too.
pub(crate) fn remove(
    state: &mut State,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Option<Arc<Stored>> {
    let gone = state.remove(&resource.slot, namespace, name);
    namespace::sweep(state, namespace);
    gone
}

/// Seconds that a pod's kubelet has: none for a pod that no kubelet runs.
fn pod_grace(pod: &Value, options: &DeleteOptions) -> i64 {
    let unbound = object::text(pod, &["spec", "nodeName"]).is_empty();
    let over = matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed");
    if unbound || over {
        return 0;
    }
    let asked = options.grace.or_else(|| object::number(pod, &["spec", "terminationGracePeriodSeconds"]));
    let grace = match asked.unwrap_or(30) {
        // Kubernetes takes a negative period as one second.
        negative if negative < 0 => 1,
        grace => grace,
    };
    match object::number(pod, &["metadata", "deletionGracePeriodSeconds"]) {
        // Already on its way: the period can only be shortened.
        Some(before) if options.grace.is_none() => before,
        Some(before) => grace.min(before),
        None => grace,
    }
}

/// The finalizers that a deletion leaves, with those that tell the garbage collector what to do.
fn finalizers(object: &Value, options: &DeleteOptions) -> Vec<Value> {
    let mut finalizers = object::finalizers(object).to_vec();
    let Some(policy) = options.propagation else {
        return finalizers;
    };
    finalizers.retain(|f| !matches!(f.as_str(), Some("orphan" | "foregroundDeletion")));
    match policy {
        Propagation::Background => {}
        Propagation::Foreground => finalizers.push("foregroundDeletion".into()),
        Propagation::Orphan => finalizers.push("orphan".into()),
    }
    finalizers
}

/// The object with its deletion recorded.
fn marked(current: &Value, finalizers: Vec<Value>, grace: i64, now: jiff::Timestamp) -> Value {
    let mut new = current.clone();
    let was_deleting = object::deleting(current);
    let before = object::number(current, &["metadata", "deletionGracePeriodSeconds"]);
    let generation = object::number(current, &["metadata", "generation"]);
    let metadata = object::meta_mut(&mut new);
    let finalizers = (!finalizers.is_empty()).then_some(Value::Array(finalizers));
    object::put(metadata, "finalizers", finalizers);
    if !was_deleting || before.is_some_and(|b| grace < b) {
        let span = Duration::from_secs(u64::try_from(grace).unwrap_or(0));
        let when = now.saturating_add(span).unwrap_or(jiff::Timestamp::MAX);
        metadata.insert("deletionTimestamp".into(), object::timestamp(when).into());
        metadata.insert("deletionGracePeriodSeconds".into(), grace.into());
    }
    if !was_deleting && let Some(generation) = generation {
        metadata.insert("generation".into(), generation.saturating_add(1).into());
    }
    new
}
