//! The objects of one kind, as far as they are remembered.
//!
//! An object is known by its place (namespace and name) and by its uid; a namesake with another
//! uid is another object. Knows which of two readings of an object is the newer one, so that the
//! answer to our own write may be taken in before the watch shows it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use soroi_engine::event::Name;

/// Uids of deleted objects that are remembered: an answer that was under way while its object was
/// deleted must not bring it back. As many as may be under way at once, and then some.
const TOMBSTONES_MAX: usize = 4096;

/// What is known of any object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Meta {
    pub(crate) uid: Name,
    /// Empty for cluster-scoped objects.
    pub(crate) namespace: Name,
    pub(crate) name: Name,
    /// `metadata.resourceVersion` as it stands: the precondition of a write.
    pub(crate) version: Name,
    pub(crate) generation: i64,
    /// It has a deletion timestamp.
    pub(crate) terminating: bool,
    pub(crate) finalizers: Vec<Name>,
}

impl Meta {
    /// Where it is.
    pub(crate) fn place(&self) -> Place {
        (self.namespace.clone(), self.name.clone())
    }

    /// Resource versions of one kind can be compared as numbers (Kubernetes 1.35, and in fact
    /// before: they are etcd's revisions). Unreadable ones count as new.
    fn is_older_than(&self, other: &Self) -> bool {
        match (self.version.parse::<u64>(), other.version.parse::<u64>()) {
            (Ok(own), Ok(other)) => own < other,
            _ => false,
        }
    }
}

/// Namespace and name.
pub(crate) type Place = (Name, Name);

/// An object as remembered.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Known<T> {
    pub(crate) meta: Meta,
    pub(crate) facts: T,
}

/// All objects of a kind.
#[derive(Debug)]
pub(crate) struct Store<T> {
    /// By uid: what belongs together is found by its uid, thousands at a time.
    objects: BTreeMap<Name, Known<T>>,
    /// The uid of whatever is at a place.
    places: BTreeMap<Place, Name>,
    tombstones: BTreeSet<Name>,
    buried: VecDeque<Name>,
}

impl<T> Default for Store<T> {
    fn default() -> Self {
        Self {
            objects: BTreeMap::new(),
            places: BTreeMap::new(),
            tombstones: BTreeSet::new(),
            buried: VecDeque::new(),
        }
    }
}

/// Who says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A watch or a list: in the server's order, so that what it shows exists.
    Watch,
    /// The answer to a request, which may have been overtaken.
    Answer,
}

/// What a reading changed.
#[derive(Debug, PartialEq)]
pub(crate) enum Took<T> {
    /// It is older than what is known, or of an object that is gone.
    Nothing,
    /// The object is new here.
    New,
    /// The object was known; its earlier state.
    Changed(Known<T>),
    /// A namesake took the place of the one that was known.
    Replaced(Known<T>),
}

impl<T> Store<T> {
    pub(crate) fn get(&self, place: &Place) -> Option<&Known<T>> {
        self.objects.get(self.places.get(place)?)
    }

    pub(crate) fn by_uid(&self, uid: &str) -> Option<&Known<T>> {
        self.objects.get(uid)
    }

    pub(crate) fn by_uid_mut(&mut self, uid: &str) -> Option<&mut Known<T>> {
        self.objects.get_mut(uid)
    }

    /// All of them, in order of namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Known<T>> {
        self.places.values().filter_map(|uid| self.objects.get(uid))
    }

    /// Takes in a reading.
    pub(crate) fn set(&mut self, meta: Meta, facts: T, source: Source) -> Took<T> {
        if source == Source::Answer && self.tombstones.contains(&meta.uid) {
            return Took::Nothing;
        }
        let place = meta.place();
        if let Some(known) = self.get(&place)
            && known.meta.uid == meta.uid
            && meta.is_older_than(&known.meta)
        {
            return Took::Nothing;
        }
        let uid = meta.uid.clone();
        let known = self.objects.insert(uid.clone(), Known { meta, facts });
        match self.places.insert(place, uid.clone()) {
            Some(before) if before != uid => {
                let replaced = self.objects.remove(&before);
                self.bury(before);
                replaced.map_or(Took::New, Took::Replaced)
            }
            _ => known.map_or(Took::New, Took::Changed),
        }
    }

    /// The object of this uid is gone.
    pub(crate) fn remove(&mut self, uid: &Name) -> Option<Known<T>> {
        self.bury(uid.clone());
        let known = self.objects.remove(uid)?;
        self.places.remove(&known.meta.place());
        Some(known)
    }

    /// Those that a list no longer has, by uid. They stay until they are removed.
    pub(crate) fn unlisted(&self, listed: &BTreeSet<Name>) -> Vec<Name> {
        self.objects.keys().filter(|uid| !listed.contains(*uid)).cloned().collect()
    }

    fn bury(&mut self, uid: Name) {
        if self.tombstones.insert(uid.clone()) {
            self.buried.push_back(uid);
        }
        if self.buried.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.buried.pop_front()
        {
            self.tombstones.remove(&oldest);
        }
    }
}
