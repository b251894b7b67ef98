//! How does an object come to be stored, or changed?
//!
//! Every write runs the same way as in Kubernetes: decode, default, admit (mutating), set what
//! only the server may set, validate, admit (validating), store. What is read without the lock is
//! compared again under it, and the write tried anew if it has changed. Must never know the rules
//! of one kind: those are in `builtin`.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use serde_json::Value;

use crate::admission::{Admitting, Operation, User};
use crate::builtin::{crd, namespace};
use crate::object;
use crate::query::WriteOptions;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::store::{EVENTS, OBJECT_BYTES_MAX, State, Stored, encode, weigh};
use crate::{Shared, decode, meta, read, unserved};

mod change;

pub(crate) use change::{change, patch, update};

/// One request that writes.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) shared: Arc<Shared>,
    pub(crate) resource: Arc<Resource>,
    /// Empty for cluster-scoped resources.
    pub(crate) namespace: String,
    /// Empty on collections.
    pub(crate) name: String,
    pub(crate) subresource: String,
    pub(crate) options: WriteOptions,
    pub(crate) user: User,
    /// Who is named in `managedFields`.
    pub(crate) manager: String,
    /// Is it a server-side apply, which settles by itself who owns which field?
    pub(crate) applying: bool,
    pub(crate) warnings: Vec<String>,
}

/// Which part of an object a write may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Everything but the status.
    Main,
    Status,
    /// The main part, by a subresource that checks for itself what may change.
    Checked,
}

impl Call {
    /// A request of the server's own, outside any namespace.
    pub(crate) fn internal(shared: &Arc<Shared>, resource: Arc<Resource>) -> Self {
        Self {
            shared: shared.clone(),
            resource,
            namespace: String::new(),
            name: String::new(),
            subresource: String::new(),
            options: WriteOptions {
                dry_run: false,
                manager: None,
                validation: crate::query::FieldValidation::Strict,
                force: false,
            },
            user: User { name: "system:apiserver".into(), groups: Vec::new() },
            manager: "soroi-apiserver".into(),
            applying: false,
            warnings: Vec::new(),
        }
    }

    pub(crate) fn part(&self) -> Part {
        match self.subresource.as_str() {
            "status" => Part::Status,
            "resize" => Part::Checked,
            _ => Part::Main,
        }
    }

    /// The stored object that the request is about.
    pub(crate) fn current(&self) -> Result<Arc<Stored>, ApiError> {
        read::get(&self.shared.store.lock(), &self.resource, &self.namespace, &self.name)
    }

    /// Asks the hooks whether the object may be so, while it may still be changed.
    fn mutate(&mut self, op: Operation, object: &mut Value, old: Option<&Value>) -> Result<bool, ApiError> {
        if self.shared.admission.is_empty() {
            return Ok(false);
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        let name = object::meta(object, "name").to_owned();
        let replaced = self.admitting(&self.resource.kind, &name).mutate(op, object, old, &mut warnings);
        self.warnings = warnings;
        replaced
    }

    /// Asks the hooks about the final object, or about a deletion.
    pub(crate) fn validate(
        &mut self,
        op: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        let resource = self.resource.clone();
        self.validate_as(&resource.kind, op, object, old)
    }

    /// The same about an object of another kind, which a subresource takes.
    pub(crate) fn validate_as(
        &mut self,
        kind: &str,
        op: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
    ) -> Result<(), ApiError> {
        if self.shared.admission.is_empty() {
            return Ok(());
        }
        let mut warnings = std::mem::take(&mut self.warnings);
        let name = object.or(old).map_or("", |o| object::meta(o, "name"));
        let verdict = self.admitting(kind, name).validate(op, object, old, &mut warnings);
        self.warnings = warnings;
        verdict
    }

    fn admitting<'a>(&'a self, kind: &'a str, name: &'a str) -> Admitting<'a> {
        Admitting {
            shared: &self.shared,
            resource: &self.resource,
            kind,
            subresource: &self.subresource,
            namespace: &self.namespace,
            name,
            user: &self.user,
            dry_run: self.options.dry_run,
        }
    }

    /// 409: the stored object is not the one that the request means.
    pub(crate) fn precondition(&self, what: &str, wanted: &str, found: &str) -> ApiError {
        let key = ["/registry", &self.resource.plural, &self.namespace, &self.name];
        let key = key.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let why = format!(
            "StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
        );
        ApiError::conflict(&self.resource, &self.name, why)
    }

    fn now(&self) -> String {
        object::timestamp(self.shared.clock.now())
    }
}

/// POST on a collection.
pub(crate) fn create(call: &mut Call, headers: &HeaderMap, body: Bytes) -> Result<Reply, ApiError> {
    let validation = call.options.validation;
    let object = decode::object(&call.resource, headers, &body, validation, &mut call.warnings)?;
    let object = read::stored_form(&call.resource, object);
    let stored = create_object(call, object)?;
    call.warnings.extend(unserved::stored_only(&call.resource.group, &call.resource.kind));
    Ok(Reply::created(read::show_json(&call.resource, &stored)))
}

/// Creates a decoded object.
pub(crate) fn create_object(call: &mut Call, mut object: Value) -> Result<Arc<Stored>, ApiError> {
    let resource = call.resource.clone();
    settle_namespace(call, &mut object)?;
    if !object::meta(&object, "resourceVersion").is_empty() {
        return Err(ApiError::unknown("resourceVersion should not be set on objects to be created"));
    }
    defaults(&resource, &mut object);
    namespace::check_active(
        &call.shared.store.lock(),
        &resource,
        &call.namespace,
        object::meta(&object, "name"),
    )?;
    (resource.rules.admit)(&call.shared.store.lock(), &mut object)?;
    if call.mutate(Operation::Create, &mut object, None)? {
        defaults(&resource, &mut object);
    }
    begin(call, &mut object);
    if resource.status && !resource.rules.created_with_status {
        object::fields_mut(&mut object).remove("status");
    }
    (resource.rules.create)(&mut object);
    check(&resource, &object, None, Part::Main)?;
    call.validate(Operation::Create, Some(&object), None)?;
    let stored = store_new(call, object)?;
    if !call.options.dry_run {
        crd::after_write(&call.shared, &resource, &stored.value);
    }
    Ok(stored)
}

fn defaults(resource: &Resource, object: &mut Value) {
    if let Some(schema) = resource.schema() {
        schema.fill_defaults(object);
    }
    (resource.rules.defaults)(object);
}

/// The namespace of the path is the object's, whether it says so or not.
fn settle_namespace(call: &Call, object: &mut Value) -> Result<(), ApiError> {
    let given = object::meta(object, "namespace");
    if !call.resource.namespaced {
        if !given.is_empty() {
            object::meta_mut(object).remove("namespace");
        }
        return Ok(());
    }
    if given.is_empty() {
        object::meta_mut(object).insert("namespace".into(), call.namespace.as_str().into());
    } else if given != call.namespace {
        let text = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(ApiError::bad_request(text));
    }
    Ok(())
}

/// Sets what only the server may set on a new object.
fn begin(call: &Call, object: &mut Value) {
    let now = call.now();
    let mut state = call.shared.store.lock();
    let uid = state.uid();
    let generated = generated_name(&mut state, &call.resource, object);
    drop(state);
    let generation = call.resource.custom || call.resource.rules.generation;
    let metadata = object::meta_mut(object);
    for key in ["selfLink", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"] {
        metadata.remove(key);
    }
    if !call.applying {
        metadata.remove("managedFields");
    }
    metadata.insert("uid".into(), uid.into());
    metadata.insert("creationTimestamp".into(), now.into());
    if generation {
        metadata.insert("generation".into(), 1.into());
    }
    if let Some(name) = generated {
        metadata.insert("name".into(), name.into());
    }
}

/// Longest prefix that `generateName` keeps before its five characters.
const GENERATE_PREFIX_MAX: usize = 58;

fn generated_name(state: &mut State, resource: &Resource, object: &Value) -> Option<String> {
    let prefix = object::meta(object, "generateName");
    if !object::meta(object, "name").is_empty() || prefix.is_empty() {
        return None;
    }
    let prefix: String = prefix.chars().take(GENERATE_PREFIX_MAX).collect();
    let namespace = object::meta(object, "namespace");
    let mut name = String::new();
    // Eight tries are Kubernetes' own bound; the last one may then fail as "already exists".
    for _ in 0..8 {
        name = format!("{prefix}{}", state.suffix());
        if state.get(&resource.slot, namespace, &name).is_none() {
            break;
        }
    }
    Some(name)
}

/// Validates a new or changed object: metadata, schema, the kind's own rules.
fn check(resource: &Resource, object: &Value, old: Option<&Value>, part: Part) -> Result<(), ApiError> {
    if weigh(object) > OBJECT_BYTES_MAX {
        return Err(ApiError::too_large(&format!("an object has at most {OBJECT_BYTES_MAX} bytes")));
    }
    let mut errors = meta::errors(object, resource.rules.name);
    if let Some(schema) = resource.schema() {
        errors.extend(schema.validate(object, old));
    }
    match (old, part) {
        (None, _) => errors.extend((resource.rules.check)(object)),
        (Some(old), Part::Main) => {
            errors.extend((resource.rules.check)(object));
            errors.extend((resource.rules.check_update)(object, old));
        }
        (Some(_), Part::Checked) => errors.extend((resource.rules.check)(object)),
        (Some(old), Part::Status) => errors.extend((resource.rules.check_status)(object, old)),
    }
    if errors.is_empty() {
        return Ok(());
    }
    Err(ApiError::invalid_object(resource, object::meta(object, "name"), &errors))
}

fn store_new(call: &Call, object: Value) -> Result<Arc<Stored>, ApiError> {
    let resource = &call.resource;
    let name = object::meta(&object, "name").to_owned();
    let mut state = call.shared.store.lock();
    namespace::check_active(&state, resource, &call.namespace, &name)?;
    if state.get(&resource.slot, &call.namespace, &name).is_some() {
        return Err(ApiError::already_exists(resource, &name));
    }
    (resource.rules.admit_stored)(&state, &object)?;
    if call.options.dry_run {
        return Ok(Stored::unsaved(object));
    }
    let stored = state.put(&resource.slot, object);
    if &*resource.slot == EVENTS {
        state.fade(&stored, call.shared.clock.now());
    }
    Ok(stored)
}

/// JSON text of a `metav1.Status` that says Success.
pub(crate) fn success() -> Bytes {
    encode(&serde_json::json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
}
