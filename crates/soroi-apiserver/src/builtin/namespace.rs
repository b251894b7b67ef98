//! Namespaces: what may be created in them, and how they end.

use std::sync::Arc;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::builtin::{PLAIN, Rules};
use crate::delete::{DeleteOptions, Deleted, delete_stored};
use crate::meta::NameRule;
use crate::object;
use crate::resource::{Registry, Resource};
use crate::status::{ApiError, FieldError};
use crate::store::{State, Stored};

pub(crate) const RULES: Rules = Rules { name: NameRule::Label, create, defaults, ..PLAIN };

const SLOT: &str = "namespaces";

fn defaults(namespace: &mut Value) {
    let name = object::meta(namespace, "name").to_owned();
    if !name.is_empty() {
        // Kubernetes keeps this label equal to the name, so that selectors can name a namespace.
        object::ensure(namespace, &["metadata", "labels"])
            .insert("kubernetes.io/metadata.name".into(), name.into());
    }
}

fn create(namespace: &mut Value) {
    defaults(namespace);
    object::set_default(object::ensure(namespace, &["spec"]), "finalizers", json!(["kubernetes"]));
    object::ensure(namespace, &["status"]).insert("phase".into(), "Active".into());
}

/// Is this the resource of namespaces?
pub(crate) fn is_namespace(resource: &Resource) -> bool {
    &*resource.slot == SLOT
}

/// A namespaced object needs a namespace that exists and is not on its way out.
pub(crate) fn check_active(
    state: &State,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<(), ApiError> {
    if !resource.namespaced {
        return Ok(());
    }
    let Some(stored) = state.get(SLOT, "", namespace) else {
        return Err(ApiError::no_namespace(namespace));
    };
    if !object::deleting(&stored.value) {
        return Ok(());
    }
    let why = format!("unable to create new content in namespace {namespace} because it is being terminated");
    let mut error = ApiError::forbidden(resource, name, &why);
    if let Some(details) = &mut error.details {
        let cause = FieldError::forbidden("metadata.namespace", "").field;
        details["causes"] = json!([{
            "reason": "NamespaceTerminating",
            "message": format!("namespace {namespace} is being terminated"),
            "field": cause,
        }]);
    }
    Err(error)
}

/// Deletes a namespace: marks it, deletes what is in it, and removes it when that is all gone.
pub(crate) fn delete(
    state: &mut State,
    registry: &Registry,
    resource: &Resource,
    current: &Arc<Stored>,
    now: Timestamp,
) -> Result<Deleted, ApiError> {
    let name = object::meta(&current.value, "name").to_owned();
    if matches!(name.as_str(), "default" | "kube-system" | "kube-public") {
        return Err(ApiError::forbidden(resource, &name, "this namespace may not be deleted"));
    }
    let mut marked = current.clone();
    if !object::deleting(&current.value) {
        let mut value = current.value.clone();
        object::meta_mut(&mut value).insert("deletionTimestamp".into(), object::timestamp(now).into());
        object::ensure(&mut value, &["status"]).insert("phase".into(), "Terminating".into());
        marked = state.put(&resource.slot, value);
    }
    for inner in contents(state, registry, &name) {
        delete_stored(state, &inner.0, &inner.1, &DeleteOptions::default(), now);
    }
    sweep(state, &name);
    let gone = state.get(SLOT, "", &name).is_none();
    Ok(Deleted { object: marked, gone })
}

fn contents(state: &State, registry: &Registry, namespace: &str) -> Vec<(Arc<Resource>, Arc<Stored>)> {
    let mut seen = std::collections::BTreeSet::new();
    let mut found = Vec::new();
    for resource in registry.all().filter(|r| r.namespaced) {
        if !seen.insert(resource.slot.clone()) {
            continue;
        }
        let objects =
            state.collection(&resource.slot).into_iter().flat_map(|c| c.range(Some(namespace), None));
        found.extend(objects.map(|(_, stored)| (resource.clone(), stored.clone())));
    }
    found
}

/// Removes a namespace that is being deleted once nothing is left in it.
pub(crate) fn sweep(state: &mut State, namespace: &str) {
    if namespace.is_empty() {
        return;
    }
    let Some(stored) = state.get(SLOT, "", namespace) else { return };
    if !object::deleting(&stored.value) || !object::finalizers(&stored.value).is_empty() {
        return;
    }
    let empty = state.slots().all(|(_, c)| c.range(Some(namespace), None).next().is_none());
    if empty {
        let slot: Arc<str> = Arc::from(SLOT);
        state.remove(&slot, "", namespace);
    }
}
