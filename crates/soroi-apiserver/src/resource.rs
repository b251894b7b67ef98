//! What is served? One [`Resource`] per plural name, group and version, and the registry of them.
//!
//! Knows names, scope and which subresources exist. Must never know objects.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytes::Bytes;

use crate::builtin::Rules;
use crate::schema::Schema;
use crate::table::Column;

/// One kind of object that the server stores.
#[derive(Debug)]
pub(crate) struct Resource {
    /// API group; empty for core.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) list_kind: String,
    pub(crate) plural: String,
    pub(crate) singular: String,
    pub(crate) short_names: Vec<String>,
    pub(crate) categories: Vec<String>,
    pub(crate) namespaced: bool,
    /// Is there a status subresource, so that the main endpoint leaves status alone?
    pub(crate) status: bool,
    /// Where the scale subresource finds its numbers, if there is one.
    pub(crate) scale: Option<Scale>,
    /// Does a CustomResourceDefinition define it?
    pub(crate) custom: bool,
    /// The rules that Kubernetes has for this kind alone.
    pub(crate) rules: Rules,
    /// Fields that a field selector may name beside `metadata.name` and `metadata.namespace`.
    pub(crate) selectable: Vec<String>,
    /// Under which name the objects are kept: two resources of one name are views of the same.
    pub(crate) slot: Arc<str>,
    /// How this resource shows what is stored.
    pub(crate) view: View,
    /// What a table of its objects shows.
    pub(crate) columns: Arc<[Column]>,
    /// The schema: made at once for CRDs, at first use for built-in kinds.
    pub(crate) schema: OnceLock<Option<Arc<Schema>>>,
}

/// How a resource shows the stored object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    /// As it is stored.
    Plain,
    /// An Event as `events.k8s.io/v1`, stored as `v1`.
    NewEvent,
}

/// JSON paths of a CRD's scale subresource, such as `.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scale {
    pub(crate) spec_replicas: Vec<String>,
    pub(crate) status_replicas: Vec<String>,
    pub(crate) selector: Option<Vec<String>>,
}

impl Resource {
    /// `pods`, or `jobs.batch`: the name that messages use.
    pub(crate) fn qualified(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// `v1`, or `batch/v1`.
    pub(crate) fn api_version(&self) -> String {
        group_version(&self.group, &self.version)
    }

    /// The schema of this kind, or `None` when anything goes.
    pub(crate) fn schema(&self) -> Option<&Arc<Schema>> {
        self.schema.get_or_init(|| crate::builtin::schema(&self.group, &self.kind)).as_ref()
    }
}

/// `v1`, or `batch/v1`.
pub(crate) fn group_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Everything that is served now. Cheap to share: a change of CRDs makes a new one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Registry {
    by_path: BTreeMap<(String, String, String), Arc<Resource>>,
    /// What discovery says of a group and version, once it was asked: every client asks as it starts.
    described: Arc<Mutex<BTreeMap<(String, String), Bytes>>>,
}

impl Registry {
    /// The kinds that are always there.
    pub(crate) fn builtin() -> Self {
        let mut registry = Self::default();
        for resource in crate::builtin::resources() {
            registry.insert(Arc::new(resource));
        }
        registry
    }

    /// Serves a resource, in place of one with the same path.
    pub(crate) fn insert(&mut self, resource: Arc<Resource>) {
        let key = (resource.group.clone(), resource.version.clone(), resource.plural.clone());
        self.by_path.insert(key, resource);
        self.described = Arc::default();
    }

    /// Ends serving every version of a resource.
    pub(crate) fn remove(&mut self, group: &str, plural: &str) {
        self.by_path.retain(|(g, _, p), _| g != group || p != plural);
        self.described = Arc::default();
    }

    /// The text that describes a group and version, which `make` makes when it is not known; `None` when there
    /// is nothing to describe.
    pub(crate) fn described(
        &self,
        group: &str,
        version: &str,
        make: impl FnOnce() -> Option<Bytes>,
    ) -> Option<Bytes> {
        // Whoever panicked in here has put nothing half made into it.
        let mut known = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (group.to_owned(), version.to_owned());
        if let Some(text) = known.get(&key) {
            return Some(text.clone());
        }
        let text = make()?;
        known.insert(key, text.clone());
        Some(text)
    }

    /// The resource at a path.
    pub(crate) fn find(&self, group: &str, version: &str, plural: &str) -> Option<&Arc<Resource>> {
        // The map's key owns its strings; a scan of the group's few dozen entries would cost more
        // than these three short allocations.
        self.by_path.get(&(group.to_owned(), version.to_owned(), plural.to_owned()))
    }

    /// All resources, ordered by group, version and name.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Resource>> {
        self.by_path.values()
    }
}
