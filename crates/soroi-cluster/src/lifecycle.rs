//! What becomes of nodes that fall silent, and of the pods on them? Node lifecycle, eviction by
//! taints, and the collection of pods whose node is gone.
//!
//! Source: `pkg/controller/{nodelifecycle,tainteviction,podgc}`, Kubernetes 1.36. Left out: the
//! rate at which nodes of a zone are tainted (0.1 per second; none if all are silent). Here a
//! silent node is tainted at once, so that a story that loses a rack need not wait for each node.
//!
//! It knows nodes, leases and pods. It must never know what runs in the pods.

mod evict;
mod health;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde::Deserialize;
use soroi_clock::Clock;
use soroi_watch::{Change, Query};

use crate::cache::{Cache, Key, Seen, Turn};
use crate::due::{Due, after, wait_until};
use crate::events::{About, Level, Recorder};
use crate::feed::News;
use crate::groups::Groups;
use crate::options::Options;
use crate::seen::{self, Meta, Node, Pod};
use crate::write::{Api, Flight, Outcome, Request};
use health::Health;

/// Requests under way at once.
const IN_FLIGHT: usize = 16;
const RETRY: Duration = Duration::from_secs(1);
/// After a conflict: the watch is about to tell why.
const CONFLICT_RETRY: Duration = Duration::from_millis(100);

/// What has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    Node(String),
    Pod(Key),
}

/// What a request was for.
enum For {
    Node(String),
    Pod(Key, String),
    Aside,
}

/// A node's lease: when its kubelet last gave a sign of life.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "LeaseWire")]
struct Lease {
    meta: Meta,
    renewed: Option<Timestamp>,
}

#[derive(Deserialize)]
struct LeaseWire {
    metadata: Meta,
    #[serde(default)]
    spec: LeaseSpecWire,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpecWire {
    renew_time: Option<MicroTime>,
}

impl From<LeaseWire> for Lease {
    fn from(wire: LeaseWire) -> Self {
        Self { meta: wire.metadata, renewed: wire.spec.renew_time.map(|time| time.0) }
    }
}

impl Seen for Lease {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

struct Lifecycle {
    clock: Clock,
    options: Arc<Options>,
    nodes: Cache<Node>,
    leases: Cache<Lease>,
    pods: Cache<Pod>,
    health: BTreeMap<String, Health>,
    bound: Groups<String, Key>,
    /// Since when a node that has pods has not existed.
    missing: BTreeMap<String, Timestamp>,
    /// Since when a pod has had to tolerate a taint, for tolerations that end.
    tolerating: BTreeMap<Key, Timestamp>,
    /// Pods that have yet to be told that their node is not Ready: once each time it stops being so.
    unready: BTreeSet<Key>,
    /// Pods whose deletion was asked for.
    doomed: BTreeSet<String>,
    due: Due<Look>,
    busy: BTreeSet<Look>,
    flight: Flight<For>,
    recorder: Recorder,
}

/// Looks after nodes and their pods, for ever.
pub(crate) async fn run(
    api: Api,
    client: kube::Client,
    clock: Clock,
    options: Arc<Options>,
    seed: u64,
    mut pods: News<Pod>,
    mut nodes: News<Node>,
) {
    let query = Query::path("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases");
    let mut leases: BoxStream<'static, Change<Arc<Lease>>> =
        soroi_watch::watch_map(client, clock.clone(), query, seed, Arc::<Lease>::new);
    let mut lifecycle = Lifecycle {
        clock: clock.clone(),
        options,
        nodes: Cache::default(),
        leases: Cache::default(),
        pods: Cache::default(),
        health: BTreeMap::new(),
        bound: Groups::default(),
        missing: BTreeMap::new(),
        tolerating: BTreeMap::new(),
        unready: BTreeSet::new(),
        doomed: BTreeSet::new(),
        due: Due::default(),
        busy: BTreeSet::new(),
        flight: Flight::new(api, IN_FLIGHT),
        recorder: Recorder::new("node-controller"),
    };
    loop {
        lifecycle.work();
        let wake = lifecycle.wake();
        tokio::select! {
            biased;
            Some(change) = nodes.recv() => {
                for turn in lifecycle.nodes.apply(change) {
                    lifecycle.node_turned(&turn);
                }
            }
            Some(change) = leases.next() => {
                for turn in lifecycle.leases.apply(change) {
                    lifecycle.lease_turned(&turn);
                }
            }
            Some(change) = pods.recv() => {
                for turn in lifecycle.pods.apply(change) {
                    lifecycle.pod_turned(&turn);
                }
            }
            (what, outcome) = lifecycle.flight.next() => lifecycle.landed(what, &outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Lifecycle {
    fn ready(&self) -> bool {
        self.nodes.synced() && self.leases.synced() && self.pods.synced()
    }

    fn wake(&self) -> Option<Timestamp> {
        if self.ready() && self.flight.has_room() { self.due.next() } else { None }
    }

    fn work(&mut self) {
        if !self.ready() {
            return;
        }
        let now = self.clock.now();
        while self.flight.has_room() {
            let Some(look) = self.due.pop(now) else { return };
            if self.busy.contains(&look) {
                continue;
            }
            match look {
                Look::Node(name) => self.look_at_node(&name, now),
                Look::Pod(key) => self.look_at_pod(&key, now),
            }
        }
    }

    fn node_turned(&mut self, turn: &Turn<Node>) {
        let now = self.clock.now();
        let name = &turn.key.name;
        match &turn.new {
            Some(node) => {
                let fresh = turn.old.as_ref().is_none_or(|old| old.meta.uid != node.meta.uid);
                if fresh {
                    self.health.insert(name.clone(), Health::new(node, now));
                    self.missing.remove(name);
                } else if let Some(health) = self.health.get_mut(name) {
                    health.told(node, now);
                }
                self.due.add(Look::Node(name.clone()), now);
            }
            None => {
                self.health.remove(name);
            }
        }
        // What its pods have to put up with has changed only if the taints have.
        let taints = |node: Option<&Arc<Node>>| node.map(|node| node.taints.clone());
        if taints(turn.old.as_ref()) != taints(turn.new.as_ref()) || turn.new.is_none() {
            for key in self.bound.of(name) {
                self.due.add(Look::Pod(key.clone()), now);
            }
        }
    }

    fn lease_turned(&mut self, turn: &Turn<Lease>) {
        let renewed = |lease: &Arc<Lease>| lease.renewed;
        let Some(new) = turn.new.as_ref() else { return };
        if turn.old.as_ref().and_then(renewed) == renewed(new) {
            return;
        }
        let now = self.clock.now();
        if let Some(health) = self.health.get_mut(&turn.key.name) {
            health.heard = now;
            // It is looked at when the silence has lasted for too long; that moment moves by itself.
        }
    }

    fn pod_turned(&mut self, turn: &Turn<Pod>) {
        let (old, new) = (turn.old.as_ref(), turn.new.as_ref());
        let left = old.and_then(|old| old.node.as_ref());
        let left = left.filter(|node| new.is_none_or(|new| new.node.as_ref() != Some(node)));
        if let Some(node) = left.filter(|node| self.bound.remove(node, &turn.key)) {
            self.missing.remove(node);
        }
        if let Some(old) = old.filter(|old| new.is_none_or(|new| new.meta.uid != old.meta.uid)) {
            self.tolerating.remove(&turn.key);
            self.unready.remove(&turn.key);
            self.doomed.remove(&old.meta.uid);
        }
        let Some(new) = new else { return };
        if let Some(node) = &new.node {
            self.bound.add(node, turn.key.clone());
        }
        self.due.add(Look::Pod(turn.key.clone()), self.clock.now());
    }

    fn look_at_node(&mut self, name: &str, now: Timestamp) {
        let (Some(node), Some(health)) =
            (self.nodes.get(&Key::new("", name)).cloned(), self.health.get(name))
        else {
            return;
        };
        let silent_at = health.silent_at(&node, self.options.node_grace);
        let request = if now >= silent_at {
            health::give_up(&node, now).or_else(|| health::retaint(&node, now))
        } else {
            self.due.add(Look::Node(name.into()), silent_at);
            health::retaint(&node, now)
        };
        if let Some(request) = request {
            self.busy.insert(Look::Node(name.into()));
            self.flight.push(For::Node(name.into()), request);
            return;
        }
        self.mark_pods(&node, now);
    }

    /// Pods on a node that is not Ready are not ready either; told once each time that happens.
    fn mark_pods(&mut self, node: &Node, now: Timestamp) {
        let lost = node.ready().is_some_and(|ready| ready != "True");
        let Some(health) = self.health.get_mut(node.name()) else { return };
        if std::mem::replace(&mut health.lost, lost) == lost {
            return;
        }
        if lost {
            let message = format!("Node {} status is now: NodeNotReady", node.name());
            self.tell(&About::node(&node.meta), Level::Normal, "NodeNotReady", &message, now);
        }
        for key in self.bound.of(&node.meta.key.name) {
            if lost {
                self.unready.insert(key.clone());
                self.due.add(Look::Pod(key.clone()), now);
            } else {
                self.unready.remove(key);
            }
        }
    }

    fn look_at_pod(&mut self, key: &Key, now: Timestamp) {
        let Some(pod) = self.pods.get(key).cloned() else { return };
        if self.doomed.contains(&pod.meta.uid) && pod.meta.deleting.is_none() {
            return;
        }
        let waits_for_finalizers = pod.meta.deleting.is_some() && pod.meta.grace == Some(0);
        if waits_for_finalizers && pod.ended() {
            return;
        }
        let Some(name) = pod.node.clone() else {
            // Nobody else would ever end it, and whoever holds a finalizer may wait for that: no
            // kubelet knows it. (Kubernetes' PodGC, gcUnscheduledTerminating.)
            if pod.meta.deleting.is_some() {
                self.push(&pod, evict::fail_and_remove(&pod, None, now));
            }
            return;
        };
        let Some(node) = self.nodes.get(&Key::new("", name.clone())).cloned() else {
            let since = *self.missing.entry(name).or_insert(now);
            let until = after(since, self.options.orphan_grace);
            if now < until {
                self.due.add(Look::Pod(key.clone()), until);
            } else {
                let why = ("DeletionByPodGC", "PodGC: node no longer exists");
                self.push(&pod, evict::fail_and_remove(&pod, Some(why), now));
            }
            return;
        };
        if waits_for_finalizers {
            return;
        }
        if self.unready.contains(key) {
            if pod.active() && pod.ready() {
                self.push(&pod, evict::not_ready(&pod, now));
                return;
            }
            self.unready.remove(key);
        }
        if pod.meta.deleting.is_some() {
            return;
        }
        match evict::tolerated(&pod, &node) {
            evict::Tolerated::ForEver => {
                self.tolerating.remove(key);
            }
            evict::Tolerated::For(span) => {
                let since = *self.tolerating.entry(key.clone()).or_insert(now);
                let until = after(since, span);
                if now < until {
                    self.due.add(Look::Pod(key.clone()), until);
                } else {
                    self.evict(&pod, now);
                }
            }
        }
    }

    fn evict(&mut self, pod: &Pod, now: Timestamp) {
        let message = format!("Marking for deletion Pod {}", pod.meta.key);
        let request = evict::evict(pod, now);
        if evict::is_deletion(pod) {
            self.tell(&About::pod(&pod.meta), Level::Normal, "TaintManagerEviction", &message, now);
            self.doomed.insert(pod.meta.uid.clone());
        }
        self.push(pod, request);
    }

    fn push(&mut self, pod: &Pod, request: Request) {
        self.busy.insert(Look::Pod(pod.meta.key.clone()));
        self.flight.push(For::Pod(pod.meta.key.clone(), pod.meta.uid.clone()), request);
    }

    fn tell(&mut self, about: &About<'_>, level: Level, reason: &str, message: &str, now: Timestamp) {
        if let Some(request) = self.recorder.record(now, about, level, reason, message) {
            self.flight.push(For::Aside, request);
        }
    }

    fn landed(&mut self, what: For, outcome: &Outcome) {
        let now = self.clock.now();
        let retry = match outcome {
            Outcome::Done(_) | Outcome::Missing => now,
            Outcome::Conflict => after(now, CONFLICT_RETRY),
            Outcome::Refused { .. } | Outcome::Lost(_) => after(now, RETRY),
        };
        match what {
            For::Aside => {}
            For::Node(name) => {
                self.busy.remove(&Look::Node(name.clone()));
                if let Outcome::Done(body) = outcome {
                    let turn = seen::read::<Node>(body).and_then(|node| self.nodes.wrote(node));
                    if let Some(turn) = turn {
                        self.node_turned(&turn);
                    }
                }
                self.due.add(Look::Node(name), retry);
            }
            For::Pod(key, uid) => {
                self.busy.remove(&Look::Pod(key.clone()));
                if matches!(outcome, Outcome::Done(_)) {
                    self.unready.remove(&key);
                }
                let turn = match outcome {
                    // A deletion answers with the pod, or with a Status if nothing is left.
                    Outcome::Done(body) => seen::read::<Pod>(body)
                        .filter(|pod| pod.meta.uid == uid)
                        .and_then(|pod| self.pods.wrote(pod)),
                    Outcome::Missing => self.pods.gone(&key, Some(&uid)),
                    _ => {
                        self.doomed.remove(&uid);
                        None
                    }
                };
                if let Some(turn) = turn {
                    self.pod_turned(&turn);
                }
                self.due.add(Look::Pod(key), retry);
            }
        }
    }
}

#[cfg(test)]
mod tests;
