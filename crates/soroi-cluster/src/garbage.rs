//! What goes when its owner goes? The garbage collector.
//!
//! It watches the metadata of every type that the API server serves, keeps the graph of owners
//! and dependents, and deletes what has lost all its owners. A foreground deletion holds the
//! owner back until its blocking dependents are gone; an orphaning one sets them free first.
//!
//! Source: `pkg/controller/garbagecollector`, Kubernetes 1.36. Left out: rings of objects that
//! wait for each other's foreground deletion. Namespaces are cleared by the embedded API server.
//!
//! It knows metadata. It must never know what an object is.

mod discover;
mod graph;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{AbortHandle, BoxStream, SelectAll};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_watch::{Change, Query, SplitMix64};

use crate::cache::Key;
use crate::due::{Due, after, wait_until};
use crate::seen::{Meta, read};
use crate::write::{Api, Flight, Outcome, Request};
use discover::{Discovered, Resource};
use graph::{Graph, Item};

/// Requests under way at once.
const IN_FLIGHT: usize = 16;
const RETRY: Duration = Duration::from_secs(1);
const CONFLICT_RETRY: Duration = Duration::from_millis(100);
/// An owner of a kind that nobody serves may be served later.
const UNKNOWN_KIND_RETRY: Duration = Duration::from_secs(60);
/// What the watch has not shown yet although it exists, it shows soon.
const LAG: Duration = Duration::from_secs(5);
/// A new custom resource is served a moment after its definition has changed.
const DISCOVERY_DELAY: Duration = Duration::from_millis(200);
const DISCOVERY_RETRY: Duration = Duration::from_secs(5);
/// Owners known to be absent; beyond it all are forgotten and asked for again.
const ABSENT_MAX: usize = 10_000;
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// Keeps an object until its dependents are gone.
const FOREGROUND: &str = "foregroundDeletion";
/// Keeps an object until its dependents are free.
const ORPHAN: &str = "orphan";

enum For {
    /// A write about this object, in the state of this version.
    Item(String, u64),
    /// Whether the owner (the second) of an object (the first) exists.
    Owner(String, String),
}

/// News of one type.
type Stream = BoxStream<'static, (usize, Change<Arc<Item>>)>;

struct Collector {
    client: kube::Client,
    clock: Clock,
    random: SplitMix64,
    resources: BTreeMap<usize, (Resource, AbortHandle)>,
    /// Types whose first list has not arrived.
    missing: BTreeSet<usize>,
    numbers: usize,
    streams: SelectAll<Stream>,
    discovered: bool,
    discover_at: Option<Timestamp>,
    graph: Graph,
    /// Uids of owners that do not exist.
    absent: BTreeSet<String>,
    /// Owners that exist although no watch has shown them, and whether they wait for dependents.
    elsewhere: BTreeMap<String, bool>,
    /// The version of each object in which we have written something about it.
    written: BTreeMap<String, u64>,
    due: Due<String>,
    flight: Flight<For>,
}

/// Collects garbage, for ever.
pub(crate) async fn run(api: Api, client: kube::Client, clock: Clock, seed: u64) {
    let mut random = SplitMix64::new(seed);
    let query = Query::path(DEFINITIONS);
    let mut definitions = soroi_watch::watch_map(
        client.clone(),
        clock.clone(),
        query,
        random.next_u64(),
        |_: serde::de::IgnoredAny| (),
    );
    let mut collector = Collector {
        client,
        clock: clock.clone(),
        random,
        resources: BTreeMap::new(),
        missing: BTreeSet::new(),
        numbers: 0,
        streams: SelectAll::new(),
        discovered: false,
        discover_at: Some(clock.now()),
        graph: Graph::default(),
        absent: BTreeSet::new(),
        elsewhere: BTreeMap::new(),
        written: BTreeMap::new(),
        due: Due::default(),
        flight: Flight::new(api.clone(), IN_FLIGHT),
    };
    loop {
        if collector.discover_at.is_some_and(|at| at <= clock.now()) {
            let found = discover::all(&api).await;
            collector.follow(found);
        }
        collector.work();
        let wake = collector.wake();
        tokio::select! {
            biased;
            Some((number, change)) = collector.streams.next() => collector.apply(number, change),
            Some(_) = definitions.next() => collector.rediscover(DISCOVERY_DELAY),
            (what, outcome) = collector.flight.next() => collector.landed(what, &outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Collector {
    fn rediscover(&mut self, wait: Duration) {
        let at = after(self.clock.now(), wait);
        self.discover_at = Some(self.discover_at.map_or(at, |other| other.min(at)));
    }

    /// Begins to watch types that are new, and stops watching those that are gone.
    fn follow(&mut self, found: Discovered) {
        self.discover_at = None;
        if !found.complete {
            self.rediscover(DISCOVERY_RETRY);
        }
        let gone: Vec<usize> = self
            .resources
            .iter()
            .filter(|(_, (resource, _))| found.complete && !found.resources.contains(resource))
            .map(|(number, _)| *number)
            .collect();
        for number in gone {
            if let Some((_, handle)) = self.resources.remove(&number) {
                handle.abort();
            }
            self.missing.remove(&number);
            self.apply(number, Change::Reset(Vec::new()));
        }
        for resource in found.resources {
            if self.resources.values().any(|(known, _)| *known == resource) {
                continue;
            }
            let number = self.numbers;
            self.numbers += 1;
            let query = Query::path(resource.collection(None));
            let seed = self.random.next_u64();
            let items =
                soroi_watch::watch_map(self.client.clone(), self.clock.clone(), query, seed, move |item| {
                    Arc::new(Item { resource: number, ..item })
                });
            let items = items.map(move |change| (number, change));
            let (items, handle) = futures::stream::abortable(items);
            self.streams.push(items.boxed());
            self.resources.insert(number, (resource, handle));
            self.missing.insert(number);
        }
        self.discovered |= found.complete;
    }

    /// Whether every type has been listed: before that a missing dependent may only be unseen.
    fn ready(&self) -> bool {
        self.discovered && self.missing.is_empty()
    }

    fn wake(&self) -> Option<Timestamp> {
        let due = if self.ready() && self.flight.has_room() { self.due.next() } else { None };
        due.into_iter().chain(self.discover_at).min()
    }

    fn work(&mut self) {
        if !self.ready() {
            return;
        }
        let now = self.clock.now();
        while self.flight.has_room() {
            let Some(uid) = self.due.pop(now) else { return };
            self.look(&uid, now);
        }
    }

    fn apply(&mut self, number: usize, change: Change<Arc<Item>>) {
        if matches!(change, Change::Reset(_)) {
            self.missing.remove(&number);
        }
        let now = self.clock.now();
        for uid in self.graph.apply(number, change) {
            self.due.add(uid.clone(), now);
            if self.graph.get(&uid).is_none() {
                self.written.remove(&uid);
                self.elsewhere.remove(&uid);
            }
        }
    }

    /// Looks at one object: must it wait, set its dependents free, lose owners, or go?
    fn look(&mut self, uid: &str, now: Timestamp) {
        let Some(item) = self.graph.get(uid).cloned() else { return };
        if self.written.get(uid).is_some_and(|version| *version == item.meta.version) {
            // The watch is about to show what we have written.
            return;
        }
        if item.meta.deleting.is_some() {
            if item.meta.has_finalizer(ORPHAN) {
                self.set_dependents_free(&item);
            } else if item.meta.has_finalizer(FOREGROUND) {
                self.wait_for_dependents(&item);
            }
            return;
        }
        let mut keep = Vec::new();
        let (mut solid, mut waiting) = (0, 0);
        for owner in &item.meta.owners {
            match self.state_of(owner) {
                Owner::Solid => {
                    solid += 1;
                    keep.push(owner.clone());
                }
                Owner::Waiting => waiting += 1,
                Owner::Absent => {}
                Owner::Unknown => return self.ask(&item, owner, now),
            }
        }
        if solid > 0 && keep.len() < item.meta.owners.len() {
            self.set_owners(&item, &keep);
        } else if solid == 0 && !item.meta.owners.is_empty() {
            let policy = if item.meta.has_finalizer(ORPHAN) {
                "Orphan"
            } else if item.meta.has_finalizer(FOREGROUND)
                || (waiting > 0 && self.graph.dependents(&item).next().is_some())
            {
                "Foreground"
            } else {
                "Background"
            };
            let options = json!({ "propagationPolicy": policy, "preconditions": item.meta.precondition() });
            self.write(&item, |path| Request::delete(path, options));
        }
    }

    fn state_of(&self, owner: &OwnerReference) -> Owner {
        if let Some(known) = self.graph.get(&owner.uid) {
            return if waits(&known.meta) { Owner::Waiting } else { Owner::Solid };
        }
        match self.elsewhere.get(&owner.uid) {
            Some(true) => Owner::Waiting,
            Some(false) => Owner::Solid,
            None if self.absent.contains(&owner.uid) => Owner::Absent,
            None => Owner::Unknown,
        }
    }

    /// Asks the API server whether an owner exists that no watch has shown.
    fn ask(&mut self, item: &Item, owner: &OwnerReference, now: Timestamp) {
        let group = owner.api_version.rsplit_once('/').map_or("", |(group, _)| group);
        let mut known = self.resources.values().map(|(resource, _)| resource);
        let Some(resource) = known.find(|resource| resource.group() == group && resource.kind == owner.kind)
        else {
            self.due.add(item.meta.uid.clone(), after(now, UNKNOWN_KIND_RETRY));
            return;
        };
        let namespace = item.meta.key.namespace.as_str();
        if resource.namespaced && namespace.is_empty() {
            // Not valid, and it will not become so.
            return;
        }
        let path = resource.object(&Key::new(namespace, owner.name.clone()));
        self.flight.push(For::Owner(item.meta.uid.clone(), owner.uid.clone()), Request::get(path));
    }

    fn set_dependents_free(&mut self, item: &Item) {
        let dependents: Vec<Arc<Item>> = self.graph.dependents(item).cloned().collect();
        if dependents.is_empty() {
            let meta = item.meta.clone();
            self.write(item, |path| Request::without_finalizer(path, &meta, ORPHAN));
            return;
        }
        for dependent in dependents {
            if self.written.get(&dependent.meta.uid) == Some(&dependent.meta.version) {
                continue;
            }
            let others = dependent.meta.owners.iter().filter(|owner| owner.uid != item.meta.uid);
            self.set_owners(&dependent, &others.cloned().collect::<Vec<_>>());
        }
    }

    fn wait_for_dependents(&mut self, item: &Item) {
        // They were looked at when their owner began to wait; each that goes wakes it up again.
        let blocked = self.graph.dependents(item).any(|dependent| {
            let mut owners = dependent.meta.owners.iter();
            owners.any(|owner| owner.uid == item.meta.uid && owner.block_owner_deletion == Some(true))
        });
        if !blocked {
            let meta = item.meta.clone();
            self.write(item, |path| Request::without_finalizer(path, &meta, FOREGROUND));
        }
    }

    fn set_owners(&mut self, item: &Item, owners: &[OwnerReference]) {
        let mut metadata = item.meta.precondition();
        metadata["ownerReferences"] = if owners.is_empty() { Value::Null } else { json!(owners) };
        self.write(item, |path| Request::merge(path, json!({ "metadata": metadata })));
    }

    fn write(&mut self, item: &Item, request: impl FnOnce(String) -> Request) {
        let Some((resource, _)) = self.resources.get(&item.resource) else { return };
        let request = request(resource.object(&item.meta.key));
        self.written.insert(item.meta.uid.clone(), item.meta.version);
        self.flight.push(For::Item(item.meta.uid.clone(), item.meta.version), request);
    }

    fn landed(&mut self, what: For, outcome: &Outcome) {
        let now = self.clock.now();
        match what {
            For::Item(uid, version) => {
                let retry = match outcome {
                    Outcome::Done(_) | Outcome::Missing => return,
                    Outcome::Conflict => CONFLICT_RETRY,
                    Outcome::Refused { .. } | Outcome::Lost(_) => RETRY,
                };
                if self.written.get(&uid) == Some(&version) {
                    self.written.remove(&uid);
                }
                self.due.add(uid, after(now, retry));
            }
            For::Owner(uid, owner) => {
                let there = match outcome {
                    Outcome::Done(body) => read::<Item>(body).filter(|found| found.meta.uid == owner),
                    Outcome::Missing => None,
                    _ => {
                        self.due.add(uid, after(now, RETRY));
                        return;
                    }
                };
                match there {
                    Some(found) => {
                        self.elsewhere.insert(owner, waits(&found.meta));
                        // Until its own type's watch tells of it, ask again from time to time.
                        self.due.add(uid.clone(), after(now, LAG));
                    }
                    None => {
                        if self.absent.len() >= ABSENT_MAX {
                            self.absent.clear();
                        }
                        self.absent.insert(owner);
                    }
                }
                self.look(&uid, now);
            }
        }
    }
}

/// What is known of an owner.
enum Owner {
    Solid,
    /// Being deleted, and waiting for its dependents to go first.
    Waiting,
    Absent,
    Unknown,
}

fn waits(meta: &Meta) -> bool {
    meta.deleting.is_some() && meta.has_finalizer(FOREGROUND)
}

#[cfg(test)]
mod tests;
