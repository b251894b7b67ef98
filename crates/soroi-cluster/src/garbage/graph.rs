//! Who belongs to whom? Objects by uid, and the dependents of each.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Deserialize;
use soroi_watch::Change;

use crate::cache::Key;
use crate::groups::Groups;
use crate::seen::Meta;

/// The metadata of one object, without labels and annotations, which say nothing about owners.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(crate) struct Item {
    pub(crate) meta: Meta,
    /// Which type it is of.
    pub(crate) resource: usize,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
}

impl From<Wire> for Item {
    fn from(Wire { mut metadata }: Wire) -> Self {
        metadata.labels.clear();
        metadata.annotations.clear();
        Self { meta: metadata, resource: 0 }
    }
}

/// All objects and their dependents. An object whose owner does not exist (any more) hangs on the
/// owner's uid all the same.
#[derive(Debug, Default)]
pub(crate) struct Graph {
    items: BTreeMap<String, Arc<Item>>,
    places: BTreeMap<(usize, Key), String>,
    dependents: Groups<String, String>,
}

impl Graph {
    pub(crate) fn get(&self, uid: &str) -> Option<&Arc<Item>> {
        self.items.get(uid)
    }

    pub(crate) fn dependents(&self, owner: &Item) -> impl Iterator<Item = &Arc<Item>> {
        self.dependents.of(&owner.meta.uid).filter_map(|uid| self.items.get(uid))
    }

    /// Takes in news of one type; the objects that have to be looked at because of it.
    pub(crate) fn apply(&mut self, resource: usize, change: Change<Arc<Item>>) -> BTreeSet<String> {
        let mut touched = BTreeSet::new();
        match change {
            Change::Set(item) => self.set(resource, item, &mut touched),
            Change::Gone(item) => self.gone(resource, &item.meta.key, &mut touched),
            Change::Unreadable { namespace, name, .. } => {
                self.gone(resource, &Key::new(namespace, name), &mut touched);
            }
            Change::Reset(items) => {
                let mut before: BTreeSet<Key> = self
                    .places
                    .range((resource, Key::default())..)
                    .take_while(|((other, _), _)| *other == resource)
                    .map(|((_, key), _)| key.clone())
                    .collect();
                for item in items {
                    before.remove(&item.meta.key);
                    self.set(resource, item, &mut touched);
                }
                for key in before {
                    self.gone(resource, &key, &mut touched);
                }
            }
        }
        touched
    }

    fn set(&mut self, resource: usize, item: Arc<Item>, touched: &mut BTreeSet<String>) {
        let (uid, place) = (item.meta.uid.clone(), (resource, item.meta.key.clone()));
        if self.places.get(&place).is_some_and(|other| *other != uid) {
            self.gone(resource, &item.meta.key, touched);
        }
        let old = self.items.insert(uid.clone(), item.clone());
        let owners =
            |item: &Item| item.meta.owners.iter().map(|owner| owner.uid.clone()).collect::<BTreeSet<_>>();
        let (before, now) = (old.as_deref().map(owners).unwrap_or_default(), owners(&item));
        for owner in before.difference(&now) {
            self.dependents.remove(owner, &uid);
        }
        for owner in now.difference(&before) {
            self.dependents.add(owner, uid.clone());
        }
        self.places.insert(place, uid.clone());
        // Owners that are on their way out may have waited for this.
        let leaving =
            |owner: &&String| self.items.get(*owner).is_some_and(|owner| owner.meta.deleting.is_some());
        touched.extend(before.union(&now).filter(leaving).cloned());
        if item.meta.deleting.is_some() && old.is_none_or(|old| old.meta.deleting.is_none()) {
            touched.extend(self.dependents.of(&uid).cloned());
        }
        if item.meta.deleting.is_some() || !now.is_empty() {
            touched.insert(uid);
        }
    }

    fn gone(&mut self, resource: usize, key: &Key, touched: &mut BTreeSet<String>) {
        let Some(uid) = self.places.remove(&(resource, key.clone())) else { return };
        if let Some(item) = self.items.remove(&uid) {
            for owner in &item.meta.owners {
                self.dependents.remove(&owner.uid, &uid);
                touched.insert(owner.uid.clone());
            }
        }
        touched.extend(self.dependents.of(&uid).cloned());
        touched.insert(uid);
    }
}
