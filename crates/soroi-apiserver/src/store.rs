//! What is stored? Every object as raw JSON, one revision counter, and the recent events.
//!
//! One lock guards all of it, so that a watch is subscribed in the same moment as its snapshot is
//! taken. Knows keys, revisions and history. Must never know HTTP or what a kind means, but for
//! one index: pods by node.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::bell::{Bell, Listener};
use crate::object;

/// An object at one revision. Its text is made once and shared by all who read or watch it.
#[derive(Debug)]
pub(crate) struct Stored {
    pub(crate) value: Value,
    pub(crate) revision: u64,
    /// How the object came to be so; each state of an object has exactly one event.
    change: Change,
    /// About how many bytes its text has.
    weight: usize,
    line: OnceLock<Bytes>,
}

impl Stored {
    fn new(value: Value, revision: u64, change: Change) -> Arc<Self> {
        let weight = weigh(&value);
        Arc::new(Self { value, revision, change, weight, line: OnceLock::new() })
    }

    /// An object that is shown but not stored: a trial, or one just removed.
    pub(crate) fn unsaved(value: Value) -> Arc<Self> {
        Self::new(value, 0, Change::Added)
    }

    /// The line that watchers of this state see.
    pub(crate) fn line(&self) -> &Bytes {
        self.line.get_or_init(|| event_line(self.change, |text| write_json(text, &self.value)))
    }

    /// The object as JSON text: a part of the line, not another copy.
    pub(crate) fn json(&self) -> Bytes {
        let line = self.line();
        line.slice(self.change.head().len()..line.len() - TAIL.len())
    }
}

/// About how many bytes a value has as text, without making the text.
pub(crate) fn weigh(value: &Value) -> usize {
    let mut bytes = 0_usize;
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::String(text) => bytes = bytes.saturating_add(text.len() + 2),
            Value::Array(values) => {
                bytes = bytes.saturating_add(values.len() + 2);
                open.extend(values);
            }
            Value::Object(fields) => {
                let keys: usize = fields.keys().map(|key| key.len() + 4).sum();
                bytes = bytes.saturating_add(keys + 2);
                open.extend(fields.values());
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => bytes = bytes.saturating_add(5),
        }
    }
    bytes
}

/// A value as JSON text.
pub(crate) fn encode(value: &Value) -> Bytes {
    let mut text = Vec::with_capacity(1024);
    write_json(&mut text, value);
    Bytes::from(text)
}

fn write_json(text: &mut Vec<u8>, value: &Value) {
    serde_json::to_writer(text, value).expect("a JSON value has only text keys, and memory takes all");
}

/// An event line; `object` writes what is in the middle.
pub(crate) fn event_line(change: Change, object: impl FnOnce(&mut Vec<u8>)) -> Bytes {
    let mut text = Vec::with_capacity(2048);
    text.extend_from_slice(change.head().as_bytes());
    object(&mut text);
    text.extend_from_slice(TAIL.as_bytes());
    // Lines are kept as long as the history: what was reserved too much is given back.
    text.shrink_to_fit();
    Bytes::from(text)
}

/// How an event line ends.
const TAIL: &str = "}\n";

/// Namespace (empty for cluster-scoped objects) and name.
pub(crate) type Key = (String, String);

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    /// How the event line begins.
    fn head(self) -> &'static str {
        match self {
            Self::Added => "{\"type\":\"ADDED\",\"object\":",
            Self::Modified => "{\"type\":\"MODIFIED\",\"object\":",
            Self::Deleted => "{\"type\":\"DELETED\",\"object\":",
        }
    }
}

/// One change, kept for those who watch.
#[derive(Debug)]
pub(crate) struct Event {
    pub(crate) change: Change,
    /// The object after the change; for a deletion its last state, with the deletion's revision.
    pub(crate) object: Arc<Stored>,
    /// The object before the change.
    pub(crate) before: Option<Arc<Stored>>,
}

/// The objects of one resource and their recent history.
#[derive(Debug)]
pub(crate) struct Collection {
    pub(crate) objects: BTreeMap<Key, Arc<Stored>>,
    /// Pods by `spec.nodeName`; empty for other kinds.
    by_node: BTreeMap<String, BTreeSet<Key>>,
    events: VecDeque<Arc<Event>>,
    /// About how many bytes the objects in `events` have as text.
    weight: usize,
    /// Every event after this revision is still in `events`.
    floor: u64,
    /// The resource is no longer served.
    closed: bool,
    bell: Bell,
}

impl Collection {
    fn new(floor: u64) -> Self {
        Self {
            objects: BTreeMap::new(),
            by_node: BTreeMap::new(),
            events: VecDeque::new(),
            weight: 0,
            floor,
            closed: false,
            bell: Bell::default(),
        }
    }

    /// The objects of a namespace, or of all for `None`, in order, after `after`.
    pub(crate) fn range<'a>(
        &'a self,
        namespace: Option<&'a str>,
        after: Option<&Key>,
    ) -> impl Iterator<Item = (&'a Key, &'a Arc<Stored>)> {
        let from = match (after, namespace) {
            (Some(after), _) => Bound::Excluded(after.clone()),
            (None, Some(ns)) => Bound::Included((ns.to_owned(), String::new())),
            (None, None) => Bound::Unbounded,
        };
        self.objects
            .range((from, Bound::Unbounded))
            .take_while(move |((ns, _), _)| namespace.is_none_or(|wanted| wanted == ns))
    }

    /// The pods on a node, in order of namespace and name.
    pub(crate) fn on_node(&self, node: &str) -> impl Iterator<Item = (&Key, &Arc<Stored>)> {
        self.by_node.get(node).into_iter().flatten().filter_map(|key| self.objects.get_key_value(key))
    }

    /// The events after a revision, oldest first, or `None` when some of them are forgotten.
    pub(crate) fn since(&self, revision: u64) -> Option<impl Iterator<Item = &Arc<Event>>> {
        if revision < self.floor {
            return None;
        }
        let from = self.events.partition_point(|e| e.object.revision <= revision);
        Some(self.events.range(from..))
    }

    /// What differs between a revision and now: the old state of every object changed since, or
    /// `None` when that is forgotten.
    pub(crate) fn changed_since(&self, revision: u64) -> Option<BTreeMap<Key, Option<Arc<Stored>>>> {
        let mut old = BTreeMap::new();
        for event in self.since(revision)? {
            let value = &event.object.value;
            let key = (object::meta(value, "namespace").to_owned(), object::meta(value, "name").to_owned());
            old.entry(key).or_insert_with(|| event.before.clone());
        }
        Some(old)
    }

    /// Is the resource no longer served?
    pub(crate) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Hears when this resource changes.
    pub(crate) fn listen(&self) -> Listener {
        self.bell.listen()
    }

    fn reindex(&mut self, key: &Key, before: Option<&Stored>, after: Option<&Stored>) {
        let node = |stored: Option<&Stored>| {
            stored.map(|s| object::text(&s.value, &["spec", "nodeName"]).to_owned()).filter(|n| !n.is_empty())
        };
        let (old, new) = (node(before), node(after));
        if old == new {
            return;
        }
        if let Some(old) = old
            && let Some(set) = self.by_node.get_mut(&old)
        {
            set.remove(key);
            if set.is_empty() {
                self.by_node.remove(&old);
            }
        }
        if let Some(new) = new {
            self.by_node.entry(new).or_default().insert(key.clone());
        }
    }
}

/// Everything, under the one lock.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) revision: u64,
    /// Events kept per resource.
    history: usize,
    collections: BTreeMap<Arc<str>, Collection>,
    /// Events by the time of their last write, oldest first.
    fading: VecDeque<(Timestamp, Key, u64)>,
    random: u64,
}

/// The slot whose objects are indexed by node.
pub(crate) const PODS: &str = "pods";

/// The slot whose objects fade away.
pub(crate) const EVENTS: &str = "events";

/// Bytes of text of the objects that are remembered of one resource: those of ten thousand pods. Large
/// objects that change often would take gigabytes otherwise.
const HISTORY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of text of one object. etcd takes no more in one request.
pub(crate) const OBJECT_BYTES_MAX: usize = 3 * 512 * 1024;

/// How long an Event is kept after its last change; Kubernetes' default.
const EVENT_TTL: SignedDuration = SignedDuration::from_hours(1);

impl State {
    /// The objects of a slot, if it was ever written or watched.
    pub(crate) fn collection(&self, slot: &str) -> Option<&Collection> {
        self.collections.get(slot)
    }

    /// The objects of a slot, made when missing.
    pub(crate) fn collection_mut(&mut self, slot: &Arc<str>) -> &mut Collection {
        // A slot that was never written has no forgotten events, whatever the revision is; one whose
        // CRD went and came back does not promise the history of the former.
        let revision = self.revision;
        let collection = self.collections.entry(slot.clone()).or_insert_with(|| Collection::new(0));
        if collection.closed {
            *collection = Collection::new(revision);
        }
        collection
    }

    /// Ends a slot: its watches show what is left of its history, and end.
    pub(crate) fn close_slot(&mut self, slot: &str) {
        if let Some(collection) = self.collections.get_mut(slot) {
            collection.closed = true;
            collection.bell.ring();
        }
    }

    /// All slots that have objects or watchers.
    pub(crate) fn slots(&self) -> impl Iterator<Item = (&Arc<str>, &Collection)> {
        self.collections.iter()
    }

    /// One object.
    pub(crate) fn get(&self, slot: &str, namespace: &str, name: &str) -> Option<&Arc<Stored>> {
        // BTreeMap needs an owned key to look up a pair of texts.
        self.collections.get(slot)?.objects.get(&(namespace.to_owned(), name.to_owned()))
    }

    /// Stores an object, new or changed, under the next revision.
    pub(crate) fn put(&mut self, slot: &Arc<str>, mut value: Value) -> Arc<Stored> {
        self.revision += 1;
        let revision = self.revision;
        object::meta_mut(&mut value).insert("resourceVersion".into(), revision.to_string().into());
        let key = (object::meta(&value, "namespace").to_owned(), object::meta(&value, "name").to_owned());
        let history = self.history;
        let collection = self.collection_mut(slot);
        let change = if collection.objects.contains_key(&key) { Change::Modified } else { Change::Added };
        let stored = Stored::new(value, revision, change);
        let before = collection.objects.insert(key.clone(), stored.clone());
        if &**slot == PODS {
            collection.reindex(&key, before.as_deref(), Some(&stored));
        }
        record(collection, history, change, stored.clone(), before);
        stored
    }

    /// Notes that an Event was written now, and removes those that have faded since.
    pub(crate) fn fade(&mut self, written: &Stored, now: Timestamp) {
        let value = &written.value;
        let key = (object::meta(value, "namespace").to_owned(), object::meta(value, "name").to_owned());
        self.fading.push_back((now, key, written.revision));
        let slot: Arc<str> = Arc::from(EVENTS);
        while let Some((when, _, _)) = self.fading.front()
            && now.duration_since(*when) > EVENT_TTL
        {
            let Some((_, (namespace, name), revision)) = self.fading.pop_front() else { return };
            // A later write of the same Event has an entry of its own.
            if self.get(EVENTS, &namespace, &name).is_some_and(|s| s.revision == revision) {
                self.remove(&slot, &namespace, &name);
            }
        }
    }

    /// Removes an object; gives its last state, with the revision of the removal.
    pub(crate) fn remove(&mut self, slot: &Arc<str>, namespace: &str, name: &str) -> Option<Arc<Stored>> {
        let key = (namespace.to_owned(), name.to_owned());
        let before = self.collections.get_mut(slot)?.objects.remove(&key)?;
        self.revision += 1;
        let revision = self.revision;
        let mut value = before.value.clone();
        object::meta_mut(&mut value).insert("resourceVersion".into(), revision.to_string().into());
        let gone = Stored::new(value, revision, Change::Deleted);
        let history = self.history;
        let collection = self.collection_mut(slot);
        if &**slot == PODS {
            collection.reindex(&key, Some(&before), None);
        }
        record(collection, history, Change::Deleted, gone.clone(), Some(before));
        Some(gone)
    }

    /// The next number of the server's own sequence (SplitMix64: it never changes with a crate).
    pub(crate) fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.random;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A new uid in the form of a random UUID.
    pub(crate) fn uid(&mut self) -> String {
        let (high, low) = (self.random(), self.random());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            0x8000 | ((low >> 48) & 0x3fff),
            low & 0xffff_ffff_ffff
        )
    }

    /// Five characters for `generateName`, from the alphabet that Kubernetes uses so that no
    /// words come out (`apimachinery/pkg/util/rand`).
    pub(crate) fn suffix(&mut self) -> String {
        const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.random();
        (0..5)
            .map(|_| {
                let letter = ALPHABET[(bits % ALPHABET.len() as u64) as usize];
                bits /= ALPHABET.len() as u64;
                letter as char
            })
            .collect()
    }
}

fn record(
    collection: &mut Collection,
    history: usize,
    change: Change,
    object: Arc<Stored>,
    before: Option<Arc<Stored>>,
) {
    collection.weight = collection.weight.saturating_add(object.weight);
    collection.events.push_back(Arc::new(Event { change, object, before }));
    while collection.events.len() > history || collection.weight > HISTORY_BYTES_MAX {
        let Some(forgotten) = collection.events.pop_front() else { break };
        collection.weight = collection.weight.saturating_sub(forgotten.object.weight);
        collection.floor = forgotten.object.revision;
    }
    collection.bell.ring();
}

/// The revision of a server that stores nothing yet.
const FIRST_REVISION: u64 = 1;

/// The shared state behind its lock.
#[derive(Debug)]
pub(crate) struct Store {
    state: Mutex<State>,
}

impl Store {
    /// An empty store that keeps `history` events per resource; uids follow from `seed`.
    pub(crate) fn new(seed: u64, history: usize) -> Self {
        let state = State {
            revision: FIRST_REVISION,
            history: history.max(1),
            collections: BTreeMap::new(),
            fading: VecDeque::new(),
            random: seed,
        };
        Self { state: Mutex::new(state) }
    }

    /// Takes the lock. Nothing is awaited while it is held.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        // A panic while it was held left at most an object unwritten: every change is one call.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
