//! What is there? Everything of one kind, as far as the watch and our own writes have told.
//!
//! An answer to a write is put in at once, so that a decision is never taken on a state that we
//! ourselves have already changed; older news from the watch is then ignored.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use soroi_watch::Change;

use crate::seen::Meta;

/// Which object: namespace (empty for cluster-scoped ones) and name.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) namespace: String,
    pub(crate) name: String,
}

impl Key {
    pub(crate) fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// An object that can be kept in a [`Cache`].
pub(crate) trait Seen {
    fn meta(&self) -> &Meta;
}

/// One object before and after something happened to it.
#[derive(Clone, Debug)]
pub(crate) struct Turn<T> {
    pub(crate) key: Key,
    pub(crate) old: Option<Arc<T>>,
    pub(crate) new: Option<Arc<T>>,
}

/// All objects of one kind, in the order of their keys.
#[derive(Debug)]
pub(crate) struct Cache<T> {
    all: BTreeMap<Key, Arc<T>>,
    /// The highest version that the watch has told of: what is older and not here was deleted.
    told: u64,
    synced: bool,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Self { all: BTreeMap::new(), told: 0, synced: false }
    }
}

impl<T: Seen> Cache<T> {
    /// Whether the first complete list has arrived.
    pub(crate) fn synced(&self) -> bool {
        self.synced
    }

    pub(crate) fn get(&self, key: &Key) -> Option<&Arc<T>> {
        self.all.get(key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.all.values()
    }

    /// Takes in news from the watch; what came of it.
    pub(crate) fn apply(&mut self, change: Change<Arc<T>>) -> Vec<Turn<T>> {
        match change {
            Change::Reset(all) => self.reset(all),
            Change::Set(object) => {
                self.told = self.told.max(object.meta().version);
                self.set(object).into_iter().collect()
            }
            Change::Gone(object) => {
                self.told = self.told.max(object.meta().version);
                self.gone(&object.meta().key, Some(&object.meta().uid)).into_iter().collect()
            }
            Change::Unreadable { namespace, name, error } => {
                tracing::warn!(namespace, name, error, "unreadable object left out");
                self.gone(&Key { namespace, name }, None).into_iter().collect()
            }
        }
    }

    fn reset(&mut self, all: Vec<Arc<T>>) -> Vec<Turn<T>> {
        self.synced = true;
        let mut before = std::mem::take(&mut self.all);
        let mut turns = Vec::new();
        for object in all {
            self.told = self.told.max(object.meta().version);
            let key = object.meta().key.clone();
            let old = before.remove(&key);
            if old.as_ref().is_none_or(|old| {
                old.meta().uid != object.meta().uid || old.meta().version != object.meta().version
            }) {
                turns.push(Turn { key: key.clone(), old, new: Some(object.clone()) });
            }
            self.all.insert(key, object);
        }
        turns.extend(before.into_iter().map(|(key, old)| Turn { key, old: Some(old), new: None }));
        turns
    }

    /// Takes in the answer to a write of ours, unless the watch has told of its deletion meanwhile.
    pub(crate) fn wrote(&mut self, object: T) -> Option<Turn<T>> {
        if !self.all.contains_key(&object.meta().key) && object.meta().version <= self.told {
            return None;
        }
        self.set(Arc::new(object))
    }

    fn set(&mut self, object: Arc<T>) -> Option<Turn<T>> {
        let key = object.meta().key.clone();
        let old = self.all.get(&key).cloned();
        if let Some(old) = &old {
            let stale = old.meta().uid == object.meta().uid && object.meta().version <= old.meta().version;
            if stale && object.meta().version != 0 {
                return None;
            }
        }
        self.all.insert(key.clone(), object.clone());
        Some(Turn { key, old, new: Some(object) })
    }

    /// Forgets an object, if it is (still) the one with that uid.
    pub(crate) fn gone(&mut self, key: &Key, uid: Option<&str>) -> Option<Turn<T>> {
        if uid.is_some_and(|uid| self.all.get(key).is_some_and(|known| known.meta().uid != uid)) {
            return None;
        }
        let old = self.all.remove(key)?;
        Some(Turn { key: key.clone(), old: Some(old), new: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Thing(Meta);

    impl Seen for Thing {
        fn meta(&self) -> &Meta {
            &self.0
        }
    }

    fn thing(name: &str, uid: &str, version: u64) -> Thing {
        Thing(Meta { key: Key::new("d", name), uid: uid.into(), version, ..Meta::default() })
    }

    fn versions(cache: &Cache<Thing>) -> Vec<(&str, u64)> {
        cache.iter().map(|thing| (thing.0.key.name.as_str(), thing.0.version)).collect()
    }

    #[test]
    fn old_news_is_ignored_and_deleted_objects_do_not_come_back() {
        let mut cache = Cache::default();
        assert!(!cache.synced());
        cache.apply(Change::Reset(vec![Arc::new(thing("a", "1", 3))]));
        assert!(cache.wrote(thing("a", "1", 5)).is_some());
        assert!(cache.apply(Change::Set(Arc::new(thing("a", "1", 4)))).is_empty());
        assert_eq!(versions(&cache), [("a", 5)]);

        // Deleted at 7; the answer to a write made at 6 arrives late.
        cache.apply(Change::Gone(Arc::new(thing("a", "1", 7))));
        assert!(cache.wrote(thing("a", "1", 6)).is_none());

        // Created anew by us at 9; then the watch tells of an older one's end.
        assert!(cache.wrote(thing("a", "2", 9)).is_some());
        assert!(cache.apply(Change::Gone(Arc::new(thing("a", "1", 8)))).is_empty());
        assert_eq!(versions(&cache), [("a", 9)]);
    }

    #[test]
    fn a_reset_tells_only_what_differs() {
        let mut cache = Cache::default();
        let first = ["a", "b", "c"].map(|name| Arc::new(thing(name, "1", 1)));
        cache.apply(Change::Reset(first.to_vec()));
        let second = vec![first[0].clone(), Arc::new(thing("b", "1", 2)), Arc::new(thing("d", "1", 3))];
        let turns = cache.apply(Change::Reset(second));
        let told: Vec<_> = turns
            .iter()
            .map(|turn| (turn.key.name.as_str(), turn.old.is_some(), turn.new.is_some()))
            .collect();
        assert_eq!(told, [("b", true, true), ("d", false, true), ("c", true, false)]);
    }
}
