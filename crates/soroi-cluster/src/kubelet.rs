//! Who runs the pods? One task that plays the kubelet of every node.
//!
//! It keeps nodes Ready and their leases fresh, takes in the pods that are bound to them or
//! refuses those that do not fit, lets containers run and end as annotations say, and lets go of
//! deleted pods once their containers have stopped. Nodes can be made dead, unreachable or
//! blinking (see [`crate::annotation`]); then nothing of them moves.
//!
//! It knows pods and nodes. It must never know why a pod is where it is.

mod admit;
mod life;
mod machine;
mod status;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use serde_json::json;
use soroi_clock::Clock;

use crate::cache::{Cache, Key, Turn};
use crate::due::{Due, after, wait_until};
use crate::events::{About, Level, Recorder};
use crate::feed::News;
use crate::groups::Groups;
use crate::need;
use crate::options::Options;
use crate::seen::{self, Node, Pod};
use crate::write::{Api, Flight, Outcome, Request};
use life::{Life, Script, Step};
use machine::Machine;

/// Requests under way at once; a real cluster's kubelets write in parallel too.
const IN_FLIGHT: usize = 16;
/// After a refused or lost write.
const RETRY: Duration = Duration::from_secs(1);
/// After a conflict: the watch is about to tell why.
const CONFLICT_RETRY: Duration = Duration::from_millis(100);
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";

/// What has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    Machine(String),
    Lease(String),
    Pod(Key),
}

/// What a request was for.
enum For {
    /// A pod's status; the pod's uid.
    Show(Key, String),
    Remove(Key, String),
    Node(String),
    /// A lease: whether it was to be created.
    Lease(String, bool),
    /// Nobody waits for it.
    Aside,
}

struct Kubelets {
    clock: Clock,
    options: Arc<Options>,
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    machines: BTreeMap<String, Machine>,
    lives: BTreeMap<Key, Life>,
    bound: Groups<String, Key>,
    due: Due<Look>,
    /// Pods and nodes with a write under way: the next look must wait for its outcome.
    busy: BTreeSet<Look>,
    flight: Flight<For>,
    recorder: Recorder,
}

/// Plays all kubelets, for ever.
pub(crate) async fn run(
    api: Api,
    clock: Clock,
    options: Arc<Options>,
    mut pods: News<Pod>,
    mut nodes: News<Node>,
) {
    let mut kubelets = Kubelets {
        clock: clock.clone(),
        options,
        pods: Cache::default(),
        nodes: Cache::default(),
        machines: BTreeMap::new(),
        lives: BTreeMap::new(),
        bound: Groups::default(),
        due: Due::default(),
        busy: BTreeSet::new(),
        flight: Flight::new(api, IN_FLIGHT),
        recorder: Recorder::new("kubelet"),
    };
    loop {
        kubelets.work();
        let wake = kubelets.wake();
        tokio::select! {
            biased;
            Some(change) = nodes.recv() => {
                for turn in kubelets.nodes.apply(change) {
                    kubelets.node_turned(&turn);
                }
            }
            Some(change) = pods.recv() => {
                for turn in kubelets.pods.apply(change) {
                    kubelets.pod_turned(&turn);
                }
            }
            (what, outcome) = kubelets.flight.next() => kubelets.landed(what, outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Kubelets {
    fn ready(&self) -> bool {
        self.pods.synced() && self.nodes.synced()
    }

    /// When to look again; not at all while a request must land first or the lists are missing.
    fn wake(&self) -> Option<Timestamp> {
        if self.ready() && self.flight.has_room() { self.due.next() } else { None }
    }

    /// Looks at everything whose time has come.
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
                Look::Machine(name) => self.look_at_machine(&name, now),
                Look::Lease(name) => self.renew(&name, now),
                Look::Pod(key) => self.look_at_pod(&key, now),
            }
        }
    }

    fn node_turned(&mut self, turn: &Turn<Node>) {
        let now = self.clock.now();
        let name = &turn.key.name;
        let replaced = match (&turn.old, &turn.new) {
            (Some(old), Some(new)) => old.meta.uid != new.meta.uid,
            (Some(_), None) => true,
            _ => false,
        };
        if replaced && self.machines.remove(name).is_some() {
            for key in self.bound.of(name) {
                self.lives.remove(key);
            }
            self.due.remove(&Look::Lease(name.clone()));
        }
        let Some(node) = &turn.new else { return };
        if !self.machines.contains_key(name) && node.served_elsewhere(now) {
            return;
        }
        if let Some(machine) = self.machines.get_mut(name) {
            machine.told(node, &self.options, now);
        } else {
            self.machines.insert(name.clone(), Machine::new(node, &self.options, now));
            self.due.add(Look::Lease(name.clone()), now);
            for key in self.bound.of(name) {
                self.due.add(Look::Pod(key.clone()), now);
            }
        }
        self.due.add(Look::Machine(name.clone()), now);
    }

    fn pod_turned(&mut self, turn: &Turn<Pod>) {
        let old = turn.old.as_ref().filter(|old| {
            turn.new.as_ref().is_none_or(|new| old.meta.uid != new.meta.uid || old.node != new.node)
        });
        if let Some(node) = old.and_then(|old| old.node.as_ref()) {
            self.release(&turn.key, node);
            self.lives.remove(&turn.key);
            self.bound.remove(node, &turn.key);
        }
        let Some(node) = turn.new.as_ref().and_then(|new| new.node.as_ref()) else { return };
        self.bound.add(node, turn.key.clone());
        let now = self.clock.now();
        // A pod is taken in, or not, in the order in which pods arrive.
        if self.ready() && self.flight.has_room() && !self.busy.contains(&Look::Pod(turn.key.clone())) {
            self.look_at_pod(&turn.key, now);
        } else {
            self.due.add(Look::Pod(turn.key.clone()), now);
        }
    }

    fn look_at_machine(&mut self, name: &str, now: Timestamp) {
        let Some(machine) = self.machines.get_mut(name) else { return };
        let change = machine.pass(now);
        if let Some(next) = machine.next_flip(now) {
            self.due.add(Look::Machine(name.into()), next);
        }
        if let Some(back) = change.back {
            for key in self.bound.of(&name.to_owned()) {
                if let (machine::Back::Rebooted, Some(life)) = (back, self.lives.get_mut(key)) {
                    let restart = self.pods.get(key).map(|pod| pod.restart).unwrap_or_default();
                    life.crash(restart, life::KILLED, now);
                }
                self.due.add(Look::Pod(key.clone()), now);
            }
            self.due.add(Look::Lease(name.into()), now);
        }
        let up = self.machines.get(name).is_some_and(|machine| machine.up);
        let node = self.nodes.get(&Key::new("", name));
        if let Some(request) = node.filter(|_| up).and_then(|node| status::serve(node, now)) {
            self.busy.insert(Look::Machine(name.into()));
            self.flight.push(For::Node(name.into()), request);
        }
    }

    /// Renews a node's lease, or creates it.
    fn renew(&mut self, name: &str, now: Timestamp) {
        let Some(machine) = self.machines.get(name) else { return };
        if !machine.up {
            // Looked at again when the machine is back.
            return;
        }
        let renewed = MicroTime(now);
        let request = if machine.leased {
            Request::merge(format!("{LEASES}/{name}"), json!({ "spec": { "renewTime": renewed } }))
        } else {
            let seconds =
                i32::try_from(self.options.heartbeat.as_secs().saturating_mul(4)).unwrap_or(i32::MAX);
            let owner = json!({ "apiVersion": "v1", "kind": "Node", "name": name, "uid": machine.uid });
            let lease = json!({
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "metadata": { "name": name, "namespace": "kube-node-lease", "ownerReferences": [owner] },
                "spec": { "holderIdentity": name, "leaseDurationSeconds": seconds.max(1), "renewTime": renewed },
            });
            Request::post(LEASES, lease)
        };
        self.flight.push(For::Lease(name.into(), !machine.leased), request);
        self.due.add(Look::Lease(name.into()), after(now, self.options.heartbeat));
    }

    fn look_at_pod(&mut self, key: &Key, now: Timestamp) {
        let Some(pod) = self.pods.get(key).cloned() else { return };
        let Some(machine) = pod.node.as_ref().and_then(|node| self.machines.get(node)) else { return };
        if !machine.up {
            // Looked at again when the machine is back.
            return;
        }
        let (script, unreadable) = Script::of(&pod, self.options.start_latency);
        let known = self.lives.get(key).is_some_and(|life| life.uid == pod.meta.uid);
        if !known {
            self.lives.remove(key);
            if !self.take_in(&pod, &script, now) {
                return;
            }
            for name in unreadable {
                let message = format!("annotation {name} is not understood and left out");
                self.tell(&pod, "InvalidAnnotation", &message, now);
            }
        }
        if pod.ended() {
            self.release(key, pod.node.as_deref().unwrap_or_default());
        } else {
            self.resize(&pod);
        }
        let Some(life) = self.lives.get_mut(key) else { return };
        match life.step(&pod, &script, now) {
            Step::Rest => {}
            Step::Wait(at) => self.due.add(Look::Pod(key.clone()), at),
            Step::Show => {
                let request = status::show(&pod, life, life.ready(&script, now), now);
                self.busy.insert(Look::Pod(key.clone()));
                self.flight.push(For::Show(key.clone(), pod.meta.uid.clone()), request);
            }
            Step::Remove => {
                self.busy.insert(Look::Pod(key.clone()));
                self.flight.push(For::Remove(key.clone(), pod.meta.uid.clone()), status::remove(&pod));
            }
        }
    }

    /// Admits a pod that has just arrived, or refuses it. Whether it is on the node now.
    fn take_in(&mut self, pod: &Arc<Pod>, script: &Script, now: Timestamp) -> bool {
        let name = pod.node.clone().unwrap_or_default();
        let (Some(node), Some(machine)) =
            (self.nodes.get(&Key::new("", name.clone())), self.machines.get_mut(&name))
        else {
            return false;
        };
        let key = pod.meta.key.clone();
        let mut life = Life::begin(pod, script, now);
        if pod.ended() {
            life.held.clear();
            self.lives.insert(key, life);
            return true;
        }
        // What runs already was admitted by whoever was kubelet before; what is on its way out
        // need not be admitted any more.
        if pod.phase != seen::Phase::Running && pod.meta.deleting.is_none() {
            let others = self.bound.of(&name);
            let others =
                others.filter(|other| self.lives.get(other).is_some_and(|life| !life.held.is_empty()));
            let others = others.filter_map(|other| self.pods.get(other)).map(AsRef::as_ref);
            if let Err(refusal) = admit::admit(pod, node, &machine.used, others) {
                self.busy.insert(Look::Pod(key.clone()));
                let request = status::refuse(pod, &refusal.reason, &refusal.message);
                self.flight.push(For::Show(key, pod.meta.uid.clone()), request);
                self.tell(pod, &refusal.reason, &refusal.message, now);
                return false;
            }
        }
        need::add(&mut machine.used, &life.held);
        self.lives.insert(key, life);
        true
    }

    /// What the pod occupied is free again.
    fn release(&mut self, key: &Key, node: &str) {
        let held = self.lives.get_mut(key).map(|life| std::mem::take(&mut life.held));
        if let (Some(held), Some(machine)) = (held, self.machines.get_mut(node)) {
            need::take(&mut machine.used, &held);
        }
    }

    /// What the pod occupies follows its size, which may change in place.
    fn resize(&mut self, pod: &Pod) {
        let machine = pod.node.as_ref().and_then(|node| self.machines.get_mut(node));
        let (Some(life), Some(machine)) = (self.lives.get_mut(&pod.meta.key), machine) else { return };
        if life.held != pod.need {
            need::take(&mut machine.used, &life.held);
            need::add(&mut machine.used, &pod.need);
            life.held.clone_from(&pod.need);
        }
    }

    fn tell(&mut self, pod: &Pod, reason: &str, message: &str, now: Timestamp) {
        let about = About::pod(&pod.meta);
        if let Some(request) = self.recorder.record(now, &about, Level::Warning, reason, message) {
            self.flight.push(For::Aside, request);
        }
    }

    fn landed(&mut self, what: For, outcome: Outcome) {
        let now = self.clock.now();
        let retry = match &outcome {
            Outcome::Done(_) | Outcome::Missing => now,
            Outcome::Conflict => after(now, CONFLICT_RETRY),
            Outcome::Refused { .. } | Outcome::Lost(_) => after(now, RETRY),
        };
        match what {
            For::Aside => {}
            For::Show(key, uid) => {
                self.busy.remove(&Look::Pod(key.clone()));
                let turn = match outcome {
                    Outcome::Done(body) => seen::read::<Pod>(&body).and_then(|pod| self.pods.wrote(pod)),
                    Outcome::Missing => self.pods.gone(&key, Some(&uid)),
                    _ => None,
                };
                if let Some(turn) = turn {
                    self.pod_turned(&turn);
                }
                self.due.add(Look::Pod(key), retry);
            }
            For::Remove(key, uid) => {
                self.busy.remove(&Look::Pod(key.clone()));
                let done = matches!(outcome, Outcome::Done(_) | Outcome::Missing);
                if let Some(life) = self.lives.get_mut(&key).filter(|life| done && life.uid == uid) {
                    life.removed = true;
                }
                self.due.add(Look::Pod(key), retry);
            }
            For::Node(name) => {
                self.busy.remove(&Look::Machine(name.clone()));
                if let Outcome::Done(body) = outcome {
                    let turn = seen::read::<Node>(&body).and_then(|node| self.nodes.wrote(node));
                    if let Some(turn) = turn {
                        self.node_turned(&turn);
                    }
                }
                self.due.add(Look::Machine(name), retry);
            }
            For::Lease(name, created) => self.lease_landed(name, created, &outcome, now),
        }
    }

    fn lease_landed(&mut self, name: String, created: bool, outcome: &Outcome, now: Timestamp) {
        let Some(machine) = self.machines.get_mut(&name) else { return };
        match (outcome, created) {
            (Outcome::Done(_), _) => machine.leased = true,
            // It is there already: renew it instead.
            (Outcome::Conflict, true) => {
                machine.leased = true;
                self.due.add(Look::Lease(name), now);
            }
            (Outcome::Missing, true) => {
                let body = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": "kube-node-lease" } });
                self.flight.push(For::Aside, Request::post("/api/v1/namespaces", body));
                self.due.add(Look::Lease(name), after(now, CONFLICT_RETRY));
            }
            (Outcome::Missing, false) => {
                machine.leased = false;
                self.due.add(Look::Lease(name), now);
            }
            _ => self.due.add(Look::Lease(name), after(now, RETRY)),
        }
    }
}

#[cfg(test)]
mod tests;
