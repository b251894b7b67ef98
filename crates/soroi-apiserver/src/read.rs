//! What is there? Getting and listing.
//!
//! Knows pages and how a snapshot of the past is put together. Must never write.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use http::header::ACCEPT;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Shared;
use crate::builtin::event;
use crate::query::{ListOptions, Page, Query, Revision};
use crate::reply::Reply;
use crate::resource::{Resource, View};
use crate::select::Selection;
use crate::status::ApiError;
use crate::store::{Key, State, Stored, encode};
use crate::table::{self, Included};

/// A stored value as a resource shows it.
pub(crate) fn show(resource: &Resource, value: Value) -> Value {
    match resource.view {
        View::Plain => value,
        View::NewEvent => event::to_new(value),
    }
}

/// A value that a client sent to a resource, as it is stored.
pub(crate) fn stored_form(resource: &Resource, value: Value) -> Value {
    match resource.view {
        View::Plain => value,
        View::NewEvent => event::to_stored(value),
    }
}

/// A stored object as a resource shows it, as JSON text.
pub(crate) fn show_json(resource: &Resource, stored: &Stored) -> Bytes {
    match resource.view {
        View::Plain => stored.json(),
        View::NewEvent => encode(&event::to_new(stored.value.clone())),
    }
}

/// How much of an object a reader asks for, and in which form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Whole,
    /// `PartialObjectMetadata`.
    Metadata,
    /// Rows of a table, for people.
    Table(Included),
}

impl Extent {
    /// Reads the `Accept` header: the first form in it that we know.
    ///
    /// # Errors
    /// 400 for rows that should carry what no row can.
    pub(crate) fn parse(headers: &HeaderMap, query: &Query) -> Result<Self, ApiError> {
        let accepted = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
        // Clients that take Protobuf, too, are answered in JSON, which they take as well.
        let known = accepted.split(',').map(str::trim).filter(|form| !form.contains("protobuf"));
        let first = known.into_iter().next().unwrap_or("");
        let wanted = |kind: &str| first.split(';').any(|part| part.trim() == kind);
        if wanted("as=PartialObjectMetadata") || wanted("as=PartialObjectMetadataList") {
            return Ok(Self::Metadata);
        }
        if !wanted("as=Table") {
            return Ok(Self::Whole);
        }
        match query.get("includeObject") {
            None | Some("" | "Metadata") => Ok(Self::Table(Included::Metadata)),
            Some("Object") => Ok(Self::Table(Included::Object)),
            Some("None") => Ok(Self::Table(Included::Nothing)),
            Some(other) => Err(ApiError::bad_request(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', 'Object', 'None', or empty"
            ))),
        }
    }

    /// The object as JSON text, as it looks at a moment.
    pub(crate) fn show(self, resource: &Resource, stored: &Stored, now: Timestamp) -> Bytes {
        match self {
            Self::Whole => show_json(resource, stored),
            Self::Metadata => encode(&json!({
                "kind": "PartialObjectMetadata",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": stored.value.get("metadata"),
            })),
            Self::Table(included) => table::encode_one(resource, stored, included, now),
        }
    }
}

/// The objects of a resource that are meant, in order of namespace and name.
pub(crate) fn select(
    state: &State,
    resource: &Resource,
    namespace: Option<&str>,
    selection: &Selection,
) -> Vec<Arc<Stored>> {
    let Some(collection) = state.collection(&resource.slot) else {
        return Vec::new();
    };
    let namespace = namespace.or_else(|| selection.fields.demanded(&["metadata", "namespace"]));
    let keep = |(_, stored): &(&Key, &Arc<Stored>)| selection.matches(&stored.value);
    let take = |(_, stored): (&Key, &Arc<Stored>)| stored.clone();
    let name = selection.fields.demanded(&["metadata", "name"]);
    if let Some(name) = name
        && (namespace.is_some() || !resource.namespaced)
    {
        let one = state.get(&resource.slot, namespace.unwrap_or(""), name);
        return one.filter(|stored| selection.matches(&stored.value)).cloned().into_iter().collect();
    }
    if &*resource.slot == crate::store::PODS
        && let Some(node) = selection.fields.demanded(&["spec", "nodeName"])
        && !node.is_empty()
    {
        let here = |(key, _): &(&Key, &Arc<Stored>)| namespace.is_none_or(|ns| ns == key.0);
        return collection.on_node(node).filter(here).filter(keep).map(take).collect();
    }
    if selection.is_everything() {
        return collection.range(namespace, None).map(take).collect();
    }
    collection.range(namespace, None).filter(keep).map(take).collect()
}

/// One object.
pub(crate) fn get(
    state: &State,
    resource: &Resource,
    namespace: &str,
    name: &str,
) -> Result<Arc<Stored>, ApiError> {
    state.get(&resource.slot, namespace, name).cloned().ok_or_else(|| ApiError::not_found(resource, name))
}

/// A page of objects, with what the list's metadata says.
struct Listed {
    objects: Vec<Arc<Stored>>,
    revision: u64,
    next: Option<Page>,
    remaining: Option<usize>,
}

/// Answers a list.
pub(crate) fn list(
    shared: &Shared,
    resource: &Resource,
    namespace: Option<&str>,
    selection: &Selection,
    options: &ListOptions,
) -> Result<Reply, ApiError> {
    // The lock is held for the choice only, not while the text is made.
    let listed = listed(&shared.store.lock(), resource, namespace, selection, options)?;
    let mut metadata = json!({ "resourceVersion": listed.revision.to_string() });
    if let Some(next) = &listed.next {
        metadata["continue"] = next.token().into();
    }
    if let Some(remaining) = listed.remaining {
        metadata["remainingItemCount"] = remaining.into();
    }
    Ok(Reply::ok(encode_list(resource, options.extent, &metadata, &listed.objects, shared.clock.now())))
}

fn encode_list(
    resource: &Resource,
    extent: Extent,
    metadata: &Value,
    objects: &[Arc<Stored>],
    now: Timestamp,
) -> Bytes {
    let (kind, version) = match extent {
        Extent::Whole => (resource.list_kind.clone(), resource.api_version()),
        Extent::Metadata => ("PartialObjectMetadataList".to_owned(), "meta.k8s.io/v1".to_owned()),
        Extent::Table(included) => {
            let objects = objects.iter().map(Arc::as_ref);
            return table::encode(resource, metadata, objects, included, now);
        }
    };
    let items: Vec<Bytes> = objects.iter().map(|o| extent.show(resource, o, now)).collect();
    let size: usize = items.iter().map(|i| i.len() + 1).sum();
    let mut text = Vec::with_capacity(size + 256);
    let head = format!("{{\"kind\":{kind:?},\"apiVersion\":{version:?},\"metadata\":{metadata},\"items\":[");
    text.extend_from_slice(head.as_bytes());
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            text.push(b',');
        }
        text.extend_from_slice(item);
    }
    text.extend_from_slice(b"]}");
    Bytes::from(text)
}

fn listed(
    state: &State,
    resource: &Resource,
    namespace: Option<&str>,
    selection: &Selection,
    options: &ListOptions,
) -> Result<Listed, ApiError> {
    let current = state.revision;
    let (revision, after) = match (&options.page, options.revision) {
        (Some(page), _) => (page.revision, Some(&page.after)),
        (None, Revision::AtLeast(asked) | Revision::Exactly(asked)) if asked > current => {
            return Err(ApiError::future_revision(asked, current));
        }
        (None, Revision::Exactly(asked)) => (asked, None),
        (None, _) => (current, None),
    };
    if revision == current && after.is_none() && options.limit == 0 {
        let objects = select(state, resource, namespace, selection);
        return Ok(Listed { objects, revision, next: None, remaining: None });
    }
    let past = past(state, resource, revision, options.page.is_some())?;
    let mut objects = Vec::new();
    let mut rest = 0;
    let mut last = None;
    for (key, stored) in at_revision(state, resource, namespace, after, &past) {
        if !selection.matches(&stored.value) {
            continue;
        }
        if options.limit > 0 && objects.len() == options.limit {
            rest += 1;
            continue;
        }
        objects.push(stored);
        last = Some(key);
    }
    let next = last.filter(|_| rest > 0).map(|after| Page { revision, after });
    // Kubernetes counts the rest only where no selector makes that costly.
    let remaining = (rest > 0 && selection.is_everything()).then_some(rest);
    Ok(Listed { objects, revision, next, remaining })
}

type Past = BTreeMap<Key, Option<Arc<Stored>>>;

fn past(state: &State, resource: &Resource, revision: u64, paging: bool) -> Result<Past, ApiError> {
    if revision >= state.revision {
        return Ok(Past::new());
    }
    let Some(collection) = state.collection(&resource.slot) else {
        return Ok(Past::new());
    };
    collection.changed_since(revision).ok_or_else(|| {
        let text = if paging {
            "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter."
        } else {
            "The resourceVersion for the provided list is too old."
        };
        ApiError::expired(text)
    })
}

/// The objects as they were, in order: those of now, with the changes since taken back.
fn at_revision(
    state: &State,
    resource: &Resource,
    namespace: Option<&str>,
    after: Option<&Key>,
    past: &Past,
) -> BTreeMap<Key, Arc<Stored>> {
    let now = state.collection(&resource.slot).into_iter().flat_map(|c| c.range(namespace, after));
    let mut objects: BTreeMap<Key, Arc<Stored>> = now.map(|(k, s)| (k.clone(), s.clone())).collect();
    for (key, old) in past {
        let inside = namespace.is_none_or(|ns| ns == key.0) && after.is_none_or(|a| key > a);
        match old {
            Some(old) if inside => {
                objects.insert(key.clone(), old.clone());
            }
            _ => {
                objects.remove(key);
            }
        }
    }
    objects
}
