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
use crate::builtin::{crd, event, namespace};
use crate::managed;
use crate::object;
use crate::patch::Patch;
use crate::query::WriteOptions;
use crate::reply::Reply;
use crate::resource::{Resource, View};
use crate::status::{ApiError, FieldError};
use crate::store::{State, Stored, encode};
use crate::{Shared, decode, meta, read};

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

/// How often a write that lost a race is tried again before the client is told.
const TRIES_MAX: usize = 100;

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
    let object = if call.resource.view == View::NewEvent { event::to_stored(object) } else { object };
    let stored = create_object(call, object)?;
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
    Ok(state.put(&resource.slot, object))
}

/// PUT on an object or its status.
pub(crate) fn update(call: &mut Call, headers: &HeaderMap, body: Bytes) -> Result<Reply, ApiError> {
    let validation = call.options.validation;
    let object = decode::object(&call.resource, headers, &body, validation, &mut call.warnings)?;
    let object = if call.resource.view == View::NewEvent { event::to_stored(object) } else { object };
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
        Ok(if call.resource.view == View::NewEvent { event::to_stored(new) } else { new })
    })?;
    Ok(Reply::ok(read::show_json(&call.resource, &stored)))
}

/// A server-side apply: creates what is missing.
fn apply(call: &mut Call, configuration: &Value) -> Result<Reply, ApiError> {
    call.applying = true;
    let configuration = &managed::check_configuration(call, configuration)?;
    match change(call, |call, current| {
        let mut new = managed::applied(call, Some(current), configuration)?;
        settle_patched(call, &mut new)?;
        Ok(new)
    }) {
        Err(error) if error.code == 404 && call.part() == Part::Main => {
            let mut new = managed::applied(call, None, configuration)?;
            settle_patched(call, &mut new)?;
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
        let ours = |key: &String| key != "metadata" && !(resource.status && key == "status");
        let fields = |v: &Value| v.as_object().cloned().unwrap_or_default();
        let (mut a, mut b) = (fields(new), fields(old));
        a.retain(|k, _| ours(k));
        b.retain(|k, _| ours(k));
        a != b
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
    drop(state);
    crd::after_write(&call.shared, resource, &stored.value);
    Ok(Some(stored))
}

/// JSON text of a `metav1.Status` that says Success.
pub(crate) fn success() -> Bytes {
    encode(&serde_json::json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success" }))
}
