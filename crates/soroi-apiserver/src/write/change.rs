//! How is a stored object changed? By update, patch and apply.
//!
//! A change is made from the current object and stored only if that is still the current one;
//! else it is made anew.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use super::{Call, Part, check, create_object, defaults};
use crate::admission::Operation;
use crate::builtin::crd;
use crate::managed;
use crate::object;
use crate::patch::Patch;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::status::{ApiError, FieldError};
use crate::store::{EVENTS, Stored};
use crate::{decode, read};

/// How often a write that lost a race is tried again before the client is told.
const TRIES_MAX: usize = 100;

/// PUT on an object or its status.
pub(crate) fn update(call: &mut Call, headers: &HeaderMap, body: Bytes) -> Result<Reply, ApiError> {
    let validation = call.options.validation;
    let object = decode::object(&call.resource, headers, &body, validation, &mut call.warnings)?;
    let object = read::stored_form(&call.resource, object);
    let stored = change(call, |_, _| Ok(object.clone()))?;
    Ok(Reply::ok(read::show_json(&call.resource, &stored)))
}

/// PATCH on an object or its status.
pub(crate) fn patch(call: &mut Call, headers: &HeaderMap, body: Bytes) -> Result<Reply, ApiError> {
    let patch = Patch::parse(&call.resource, headers, &body)?;
    if let Patch::Apply(configuration) = &patch {
        return apply(call, configuration);
    }
    let stored = change(call, |call, current| {
        let shown = read::show(&call.resource, current.clone());
        let mut new = patch.apply(&call.resource, shown)?;
        settle_patched(call, &mut new)?;
        Ok(read::stored_form(&call.resource, new))
    })?;
    Ok(Reply::ok(read::show_json(&call.resource, &stored)))
}

/// A server-side apply: creates what is missing.
fn apply(call: &mut Call, configuration: &Value) -> Result<Reply, ApiError> {
    call.applying = true;
    let configuration = &managed::check_configuration(call, configuration)?;
    match change(call, |call, current| {
        let shown = read::show(&call.resource, current.clone());
        let mut new = managed::applied(call, Some(&shown), configuration)?;
        settle_patched(call, &mut new)?;
        Ok(read::stored_form(&call.resource, new))
    }) {
        Err(error) if error.code == 404 && call.part() == Part::Main => {
            let mut new = managed::applied(call, None, configuration)?;
            settle_patched(call, &mut new)?;
            let new = read::stored_form(&call.resource, new);
            let stored = create_object(call, new)?;
            Ok(Reply::created(read::show_json(&call.resource, &stored)))
        }
        Ok(stored) => Ok(Reply::ok(read::show_json(&call.resource, &stored))),
        Err(error) => Err(error),
    }
}

/// Takes unknown fields out of a patched object.
fn settle_patched(call: &mut Call, new: &mut Value) -> Result<(), ApiError> {
    let validation = call.options.validation;
    let resource = call.resource.clone();
    // The text shows the whole object, which is made only when it is needed.
    let mut refused = None;
    decode::settle(&resource, new, validation, &mut call.warnings, |unknown| {
        refused = Some(unknown.clone());
        ApiError::bad_request(unknown)
    })
    .map_err(|error| match refused {
        Some(unknown) => {
            let cause = FieldError::invalid("patch", new.to_string(), unknown);
            ApiError::invalid("", "", "", &[cause])
        }
        None => error,
    })
}

/// Changes an object: `make` gives the new form of the current one, and is asked again when
/// somebody else wrote in between.
pub(crate) fn change(
    call: &mut Call,
    mut make: impl FnMut(&mut Call, &Value) -> Result<Value, ApiError>,
) -> Result<Arc<Stored>, ApiError> {
    for _ in 0..TRIES_MAX {
        let current = call.current()?;
        let new = make(call, &current.value)?;
        if let Some(stored) = change_once(call, &current, new)? {
            return Ok(stored);
        }
    }
    Err(ApiError::modified(&call.resource, &call.name))
}

/// One try; `None` when the object changed meanwhile.
fn change_once(call: &mut Call, current: &Stored, mut new: Value) -> Result<Option<Arc<Stored>>, ApiError> {
    let (resource, part) = (call.resource.clone(), call.part());
    let old = &current.value;
    check_identity(call, current, &new)?;
    keep_other_part(&resource, part, &mut new, old);
    keep_system_fields(&mut new, old);
    let operation = Operation::Update;
    defaults(&resource, &mut new);
    if call.mutate(operation, &mut new, Some(old))? {
        keep_other_part(&resource, part, &mut new, old);
        keep_system_fields(&mut new, old);
        defaults(&resource, &mut new);
    }
    if part != Part::Status {
        (resource.rules.update)(&mut new, old);
    }
    bump_generation(&resource, &mut new, old);
    if !call.applying {
        managed::on_change(call, &mut new, old);
    }
    check_finalizers(&resource, &new, old)?;
    check(&resource, &new, Some(old), part)?;
    call.validate(operation, Some(&new), Some(old))?;
    store_changed(call, current, new)
}

/// Checks uid and resourceVersion against the stored object, where the client sends them.
fn check_identity(call: &Call, current: &Stored, new: &Value) -> Result<(), ApiError> {
    let resource = &call.resource;
    let name = object::meta(new, "name");
    if name != call.name {
        let wanted = &call.name;
        let text = format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
        return Err(ApiError::bad_request(text));
    }
    let namespace = object::meta(new, "namespace");
    if resource.namespaced && !namespace.is_empty() && namespace != call.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(text));
    }
    let (uid, now) = (object::meta(new, "uid"), object::meta(&current.value, "uid"));
    if !uid.is_empty() && uid != now {
        return Err(call.precondition("UID", uid, now));
    }
    match object::meta(new, "resourceVersion") {
        "" | "0" if resource.custom && call.part() == Part::Main || resource.rules.needs_revision => {
            let error =
                FieldError::unquoted("metadata.resourceVersion", "0x0", "must be specified for an update");
            Err(ApiError::invalid_object(resource, &call.name, &[error]))
        }
        "" | "0" => Ok(()),
        text => match text.parse::<u64>() {
            Ok(revision) if revision == current.revision => Ok(()),
            Ok(_) => Err(ApiError::modified(resource, &call.name)),
            Err(_) => {
                let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                let error = FieldError::invalid("metadata.resourceVersion", text, why);
                Err(ApiError::invalid_object(resource, &call.name, &[error]))
            }
        },
    }
}

/// A write of one half of an object leaves the other as it is.
fn keep_other_part(resource: &Resource, part: Part, new: &mut Value, old: &Value) {
    match part {
        Part::Main | Part::Checked if resource.status => {
            object::put(object::fields_mut(new), "status", old.get("status").cloned());
        }
        Part::Main | Part::Checked => {}
        // Built-in kinds take metadata with a status write, custom resources do not.
        Part::Status if !resource.custom => {
            object::put(object::fields_mut(new), "spec", old.get("spec").cloned());
        }
        Part::Status => {
            let status = object::fields_mut(new).remove("status");
            let managed = object::at(new, &["metadata", "managedFields"]).cloned();
            *new = old.clone();
            object::put(object::fields_mut(new), "status", status);
            object::put(object::meta_mut(new), "managedFields", managed);
        }
    }
}

/// What only the server sets stays as it was.
fn keep_system_fields(new: &mut Value, old: &Value) {
    let metadata = object::meta_mut(new);
    for key in [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "generation",
        "selfLink",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "resourceVersion",
        "generateName",
    ] {
        object::put(metadata, key, object::at(old, &["metadata", key]).cloned());
    }
}

fn bump_generation(resource: &Resource, new: &mut Value, old: &Value) {
    if !resource.custom && !resource.rules.generation {
        return;
    }
    let changed = if resource.custom {
        let ours =
            |(key, _): &(&String, &Value)| *key != "metadata" && !(resource.status && *key == "status");
        let fields = |object| Value::as_object(object).into_iter().flatten().filter(ours);
        !fields(new).eq(fields(old))
    } else {
        !object::same(new.get("spec"), old.get("spec"))
    };
    if changed {
        let generation = object::number(old, &["metadata", "generation"]).unwrap_or(0);
        object::meta_mut(new).insert("generation".into(), generation.saturating_add(1).into());
    }
}

/// An object that is being deleted gets no new finalizers.
fn check_finalizers(resource: &Resource, new: &Value, old: &Value) -> Result<(), ApiError> {
    if !object::deleting(old) {
        return Ok(());
    }
    let before = object::finalizers(old);
    let added: Vec<&Value> = object::finalizers(new).iter().filter(|f| !before.contains(f)).collect();
    if added.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = added.iter().map(|f| f.to_string()).collect();
    let why = format!(
        "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
        names.join(", ")
    );
    let error = FieldError::forbidden("metadata.finalizers", why);
    Err(ApiError::invalid_object(resource, object::meta(old, "name"), &[error]))
}

fn store_changed(call: &Call, current: &Stored, new: Value) -> Result<Option<Arc<Stored>>, ApiError> {
    let resource = &call.resource;
    if call.options.dry_run {
        return Ok(Some(Stored::unsaved(new)));
    }
    let mut state = call.shared.store.lock();
    let Some(now) = state.get(&resource.slot, &call.namespace, &call.name) else {
        return Err(ApiError::not_found(resource, &call.name));
    };
    if now.revision != current.revision {
        return Ok(None);
    }
    let grace = object::number(&new, &["metadata", "deletionGracePeriodSeconds"]).unwrap_or(0);
    if object::deleting(&new) && object::finalizers(&new).is_empty() && grace == 0 {
        // The last finalizer went away: so does the object.
        let mut last = new;
        let stored = crate::delete::remove(&mut state, resource, &call.namespace, &call.name);
        drop(state);
        crd::after_removal(&call.shared, resource, &last);
        let revision = stored.map_or(0, |s| s.revision);
        object::meta_mut(&mut last).insert("resourceVersion".into(), revision.to_string().into());
        return Ok(Some(Stored::unsaved(last)));
    }
    if new == current.value {
        // Nothing changes, so there is no new revision and no event.
        return Ok(state.get(&resource.slot, &call.namespace, &call.name).cloned());
    }
    let stored = state.put(&resource.slot, new);
    if &*resource.slot == EVENTS {
        state.fade(&stored, call.shared.clock.now());
    }
    drop(state);
    crd::after_write(&call.shared, resource, &stored.value);
    Ok(Some(stored))
}
