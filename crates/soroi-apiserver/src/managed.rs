//! Who owns which field? Server-side apply.
//!
//! What is kept in `metadata.managedFields` is one entry for each manager that applies, with the
//! fields of its last configuration, so that a field which it no longer names goes away, and so
//! that two managers who apply different values collide. Managers that update or patch are not
//! recorded: they take the fields that they change away from those who applied them, and nobody
//! collides with them. Must never know a kind: lists are told apart by the schema's shapes.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::object;
use crate::schema::Shape;
use crate::status::{ApiError, FieldError};
use crate::write::Call;

mod fields;
mod merge;

use fields::{FieldSet, Step};

/// One entry of `managedFields` of an applying manager.
#[derive(Clone, Debug)]
struct Entry {
    manager: String,
    subresource: String,
    api_version: String,
    time: String,
    fields: FieldSet,
}

fn entries(object: &Value) -> Vec<Entry> {
    object::list(object, &["metadata", "managedFields"])
        .iter()
        .filter(|e| object::text(e, &["operation"]) == "Apply")
        .map(|e| Entry {
            manager: object::text(e, &["manager"]).to_owned(),
            subresource: object::text(e, &["subresource"]).to_owned(),
            api_version: object::text(e, &["apiVersion"]).to_owned(),
            time: object::text(e, &["time"]).to_owned(),
            fields: FieldSet::parse(e.get("fieldsV1").unwrap_or(&Value::Null)),
        })
        .collect()
}

fn put_entries(object: &mut Value, entries: Vec<Entry>) {
    let shown: Vec<Value> = entries
        .into_iter()
        .filter(|e| !e.fields.is_empty())
        .map(|e| {
            let mut entry = json!({
                "manager": e.manager,
                "operation": "Apply",
                "apiVersion": e.api_version,
                "time": e.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": e.fields.to_value(),
            });
            if !e.subresource.is_empty() {
                entry["subresource"] = e.subresource.into();
            }
            entry
        })
        .collect();
    let list = (!shown.is_empty()).then_some(Value::Array(shown));
    object::put(object::meta_mut(object), "managedFields", list);
}

/// Checks that a configuration may be applied, and gives the part of it that counts.
///
/// # Errors
/// 422 without a manager's name, 400 for another kind, another name or managed fields.
pub(crate) fn check_configuration(call: &Call, configuration: &Value) -> Result<Value, ApiError> {
    if call.options.manager.is_none() {
        let error = FieldError::required("fieldManager", "is required for apply patch");
        return Err(ApiError::invalid("meta.k8s.io", "PatchOptions", "", &[error]));
    }
    if object::at(configuration, &["metadata", "managedFields"]).is_some() {
        return Err(ApiError::bad_request("metadata.managedFields must be nil"));
    }
    let (version, kind) =
        (object::text(configuration, &["apiVersion"]), object::text(configuration, &["kind"]));
    let resource = &call.resource;
    if version != resource.api_version() || kind != resource.kind {
        let text = format!(
            "invalid object type: {version}, Kind={kind}, expected {}, Kind={}",
            resource.api_version(),
            resource.kind
        );
        return Err(ApiError::bad_request(text));
    }
    let name = object::meta(configuration, "name");
    if !name.is_empty() && name != call.name {
        let wanted = &call.name;
        let text = format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
        return Err(ApiError::bad_request(text));
    }
    let mut counted = configuration.clone();
    // Quantities and times are compared in their canonical form. Unknown fields are reported when
    // the merged object is settled, so they stay here.
    if let Some(schema) = resource.schema() {
        let mut settled = configuration.clone();
        if schema.settle(&mut settled).is_ok_and(|unknown| unknown.is_empty()) {
            counted = settled;
        }
    }
    Ok(counted)
}

/// The object after a configuration is applied to it; `None` makes a new one.
///
/// # Errors
/// 409 when another manager applied a different value and the request does not force its own.
pub(crate) fn applied(
    call: &Call,
    current: Option<&Value>,
    configuration: &Value,
) -> Result<Value, ApiError> {
    let shape = Shape::root(call.resource.schema().map(std::sync::Arc::as_ref));
    let mut base = json!({});
    let live = current.unwrap_or_else(|| {
        base = json!({ "metadata": { "name": call.name } });
        &base
    });
    let mut entries = entries(live);
    let own = |e: &Entry| e.manager == call.manager && e.subresource == call.subresource;
    let wanted = owned(call, FieldSet::of(shape, configuration));
    let before = entries.iter().find(|e| own(e)).map(|e| e.fields.clone()).unwrap_or_default();
    let changed: BTreeSet<Vec<Step>> = wanted
        .paths()
        .filter(|path| {
            // That an item is in a list is not a matter of its value.
            let item = matches!(path.last(), Some(Step::Key(_)));
            let here = fields::get(shape, live, path);
            here.is_some() && !item && here != fields::get(shape, configuration, path)
        })
        .cloned()
        .collect();
    take_from_others(&mut entries, &changed, call.options.force, own)?;
    let mut new = live.clone();
    merge::merge(shape, &mut new, configuration);
    for path in before.paths().filter(|p| !wanted.contains(p)) {
        let shared = entries.iter().any(|e| !own(e) && e.fields.reaches(path));
        if !shared && !wanted.reaches(path) {
            fields::remove(shape, &mut new, path);
        }
    }
    let time = object::timestamp(call.shared.clock.now());
    let unchanged = before == wanted;
    entries.retain(|e| !own(e) || unchanged);
    if !unchanged {
        entries.push(Entry {
            manager: call.manager.clone(),
            subresource: call.subresource.clone(),
            api_version: call.resource.api_version(),
            time,
            fields: wanted,
        });
    }
    put_entries(&mut new, entries);
    Ok(new)
}

/// The fields that an apply to this endpoint can own.
fn owned(call: &Call, mut fields: FieldSet) -> FieldSet {
    let first = |path: &[Step]| match path.first() {
        Some(Step::Field(name)) => name.clone(),
        _ => String::new(),
    };
    let status_only = call.subresource == "status";
    let has_status = call.resource.status;
    fields.retain(|path| match first(path).as_str() {
        "apiVersion" | "kind" => false,
        "metadata" => {
            let system = ["name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp"];
            !matches!(path, [_, Step::Field(key)] if system.contains(&key.as_str())) && path.len() > 1
        }
        "status" if has_status => status_only,
        _ => !status_only,
    });
    fields
}

/// Fields that change cease to be those of others, if that is forced; else they collide.
fn take_from_others(
    entries: &mut [Entry],
    changed: &BTreeSet<Vec<Step>>,
    force: bool,
    own: impl Fn(&Entry) -> bool,
) -> Result<(), ApiError> {
    let mut conflicts: Vec<(String, String)> = Vec::new();
    for entry in entries.iter_mut().filter(|e| !own(e)) {
        let lost: Vec<Vec<Step>> = entry.fields.paths().filter(|p| changed.contains(*p)).cloned().collect();
        for path in lost {
            if force {
                entry.fields.remove(&path);
            } else {
                let who = match entry.subresource.as_str() {
                    "" => format!("{:?}", entry.manager),
                    subresource => format!("{:?} with subresource {subresource:?}", entry.manager),
                };
                conflicts.push((who, fields::shown(&path)));
            }
        }
    }
    conflicts.sort();
    let causes = conflicts
        .iter()
        .map(|(who, field)| {
            json!({ "reason": "FieldManagerConflict", "message": format!("conflict with {who}"), "field": field })
        })
        .collect();
    let message = match conflicts.as_slice() {
        [] => return Ok(()),
        [(who, field)] => format!("Apply failed with 1 conflict: conflict with {who}: {field}"),
        many => {
            let mut text = format!("Apply failed with {} conflicts: ", many.len());
            let mut last = "";
            for (who, field) in many {
                if who != last {
                    let separator = if last.is_empty() { "" } else { "\n" };
                    text.push_str(&format!("{separator}conflicts with {who}:"));
                    last = who;
                }
                text.push_str(&format!("\n- {field}"));
            }
            text
        }
    };
    Err(ApiError::apply_conflict(message, causes))
}

/// A change by update or patch: the fields that it changes belong to nobody who applied them.
pub(crate) fn on_change(call: &Call, new: &mut Value, old: &Value) {
    if object::list(old, &["metadata", "managedFields"]).is_empty() {
        object::meta_mut(new).remove("managedFields");
        return;
    }
    // An empty list is the documented way to reset ownership.
    let reset = object::at(new, &["metadata", "managedFields"]).and_then(Value::as_array).is_some_and(|l| {
        l.is_empty() || l.iter().all(|e| e.as_object().is_some_and(serde_json::Map::is_empty))
    });
    if reset {
        object::meta_mut(new).remove("managedFields");
        return;
    }
    let shape = Shape::root(call.resource.schema().map(std::sync::Arc::as_ref));
    let mut entries = entries(old);
    for entry in &mut entries {
        entry.fields.retain(|path| {
            let (now, before) = (fields::get(shape, new, path), fields::get(shape, old, path));
            match path.last() {
                Some(Step::Key(_)) => now.is_some(),
                _ => now == before,
            }
        });
    }
    put_entries(new, entries);
}
