//! Where does a pod go? A scheduler that, like kube-scheduler, places pods one by one.
//!
//! It takes pods by priority and then by age, filters and scores nodes as the default plugins do
//! (see [`place`]), assumes its decision until the watch confirms it, and says on the pod and in
//! an Event why there is no node. A pod that found none waits for news that could help, and for
//! its back-off. Left out: preemption, volumes, and whatever looks at other pods than those that
//! use up a node (inter-pod affinity, topology spread).
//!
//! It knows nodes and pods. It must never know of gangs: that is the point of it.

mod place;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodCondition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;
use soroi_clock::Clock;

use crate::cache::{Cache, Key, Turn};
use crate::due::{Due, after, wait_until};
use crate::events::{About, Level, Recorder};
use crate::feed::News;
use crate::seen::{self, Node, Pod};
use crate::write::{Api, Flight, Outcome, Request};
use place::Usage;

/// The name under which pods ask for it.
const NAME: &str = "default-scheduler";
/// Binds and other requests under way at once.
const IN_FLIGHT: usize = 16;
/// Back-off of a pod that found no node: 1 s, doubling, up to 10 s (kube-scheduler 1.36).
const BACKOFF: Duration = Duration::from_secs(1);
const BACKOFF_MAX: Duration = Duration::from_secs(10);
/// A pod that found no node is tried again after so long, news or not.
const PARKED_MAX: Duration = Duration::from_secs(300);

/// A pod that waits for a node.
struct Waiting {
    uid: String,
    priority: i32,
    /// Its place among pods of the same priority.
    arrival: u64,
    attempts: u32,
    /// Not to be tried before.
    not_before: Timestamp,
    /// It found no node, and nothing has happened since that could help.
    parked: bool,
}

enum For {
    Bind(Key, String),
    Status(Key, String),
    Aside,
}

struct Scheduler {
    clock: Clock,
    pods: Cache<Pod>,
    nodes: Cache<Node>,
    usage: BTreeMap<String, Usage>,
    /// Which node each pod is charged to.
    charged: BTreeMap<Key, (String, Arc<Pod>)>,
    /// Where pods were put whose binding the watch has not shown yet: uid and node.
    assumed: BTreeMap<Key, (String, String)>,
    waiting: BTreeMap<Key, Waiting>,
    active: BTreeSet<(Reverse<i32>, u64, Key)>,
    due: Due<Key>,
    /// Bindings of which nobody knows whether they were made: to be sent again, to the same node.
    unsure: Due<Key>,
    arrivals: u64,
    /// Something has happened that could help pods that found no node.
    stirred: bool,
    /// What pods of this shape were told since the last such thing.
    refusals: BTreeMap<String, String>,
    flight: Flight<For>,
    recorder: Recorder,
}

/// Places pods, for ever.
pub(crate) async fn run(api: Api, clock: Clock, mut pods: News<Pod>, mut nodes: News<Node>) {
    let mut scheduler = Scheduler {
        clock: clock.clone(),
        pods: Cache::default(),
        nodes: Cache::default(),
        usage: BTreeMap::new(),
        charged: BTreeMap::new(),
        assumed: BTreeMap::new(),
        waiting: BTreeMap::new(),
        active: BTreeSet::new(),
        due: Due::default(),
        unsure: Due::default(),
        arrivals: 0,
        stirred: false,
        refusals: BTreeMap::new(),
        flight: Flight::new(api, IN_FLIGHT),
        recorder: Recorder::new(NAME),
    };
    loop {
        scheduler.work();
        let wake = scheduler.wake();
        tokio::select! {
            biased;
            Some(change) = nodes.recv() => {
                for turn in scheduler.nodes.apply(change) {
                    scheduler.node_turned(&turn);
                }
            }
            Some(change) = pods.recv() => {
                for turn in scheduler.pods.apply(change) {
                    scheduler.pod_turned(&turn);
                }
            }
            (what, outcome) = scheduler.flight.next() => scheduler.landed(what, &outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Scheduler {
    fn ready(&self) -> bool {
        self.pods.synced() && self.nodes.synced()
    }

    fn wake(&self) -> Option<Timestamp> {
        let due = self.due.next().into_iter().chain(self.unsure.next()).min();
        due.filter(|_| self.ready() && self.flight.has_room())
    }

    fn work(&mut self) {
        if !self.ready() {
            return;
        }
        let now = self.clock.now();
        if std::mem::take(&mut self.stirred) {
            self.refusals.clear();
            for (key, waiting) in &mut self.waiting {
                if std::mem::take(&mut waiting.parked) {
                    self.due.remove(key);
                    self.due.add(key.clone(), waiting.not_before);
                }
            }
        }
        while let Some(key) = self.due.pop(now) {
            if let Some(waiting) = self.waiting.get_mut(&key) {
                waiting.parked = false;
                self.active.insert((Reverse(waiting.priority), waiting.arrival, key));
            }
        }
        while self.flight.has_room() {
            if let Some(key) = self.unsure.pop(now) {
                if let (Some(pod), Some((uid, node))) = (self.pods.get(&key), self.assumed.get(&key)) {
                    self.flight.push(For::Bind(key, uid.clone()), binding(pod, node));
                }
                continue;
            }
            let Some((_, _, key)) = self.active.pop_first() else { return };
            self.try_to_place(&key, now);
        }
    }

    fn node_turned(&mut self, turn: &Turn<Node>) {
        let usable = |node: &Arc<Node>| {
            (node.unschedulable, node.taints.clone(), node.allocatable.clone(), node.meta.labels.clone())
        };
        if let Some(new) = &turn.new {
            self.stirred |= turn.old.as_ref().map(usable) != Some(usable(new));
        }
    }

    fn pod_turned(&mut self, turn: &Turn<Pod>) {
        let new = turn.new.as_ref();
        if new.is_none_or(|new| {
            self.assumed.get(&turn.key).is_some_and(|(uid, _)| *uid != new.meta.uid) || new.node.is_some()
        }) {
            self.assumed.remove(&turn.key);
        }
        self.charge(&turn.key, new);
        let wants =
            new.filter(|pod| pod.scheduler == NAME && pod.node.is_none() && !pod.gated && pod.active());
        let Some(pod) = wants.filter(|_| !self.assumed.contains_key(&turn.key)) else {
            self.forget(&turn.key);
            return;
        };
        if self.waiting.get(&turn.key).is_some_and(|waiting| waiting.uid == pod.meta.uid) {
            // A change of the pod itself may help it; a change of its status is our own.
            let changed = turn.old.as_ref().is_some_and(|old| old.meta.generation != pod.meta.generation);
            if changed {
                self.due.add(turn.key.clone(), self.clock.now());
            }
            return;
        }
        self.forget(&turn.key);
        self.enqueue(pod, 0, self.clock.now());
    }

    fn enqueue(&mut self, pod: &Pod, attempts: u32, not_before: Timestamp) {
        self.arrivals += 1;
        let waiting = Waiting {
            uid: pod.meta.uid.clone(),
            priority: pod.priority,
            arrival: self.arrivals,
            attempts,
            not_before,
            parked: false,
        };
        self.waiting.insert(pod.meta.key.clone(), waiting);
        self.due.add(pod.meta.key.clone(), not_before);
    }

    fn forget(&mut self, key: &Key) {
        if let Some(waiting) = self.waiting.remove(key) {
            self.active.remove(&(Reverse(waiting.priority), waiting.arrival, key.clone()));
            self.due.remove(key);
        }
    }

    /// Charges a pod to the node where it is or where we have put it, and to no other.
    fn charge(&mut self, key: &Key, pod: Option<&Arc<Pod>>) {
        let assumed = self.assumed.get(key).map(|(_, node)| node);
        let place = pod
            .filter(|pod| !pod.ended())
            .and_then(|pod| Some((pod.node.as_ref().or(assumed)?.clone(), pod.clone())));
        let before = self.charged.get(key);
        let same = match (before, &place) {
            (None, None) => return,
            (Some((node, pod)), Some((new_node, new_pod))) => node == new_node && pod.need == new_pod.need,
            _ => false,
        };
        if !same {
            if let Some((node, pod)) = before {
                if let Some(usage) = self.usage.get_mut(node) {
                    usage.take(pod);
                }
                self.stirred = true;
            }
            if let Some((node, pod)) = &place {
                self.usage.entry(node.clone()).or_default().add(pod);
            }
        }
        match place {
            Some(place) => self.charged.insert(key.clone(), place),
            None => self.charged.remove(key),
        };
    }

    fn try_to_place(&mut self, key: &Key, now: Timestamp) {
        let (Some(pod), Some(waiting)) = (self.pods.get(key).cloned(), self.waiting.get_mut(key)) else {
            return;
        };
        waiting.attempts = waiting.attempts.saturating_add(1);
        let attempts = waiting.attempts;
        // While everything finds a node, nobody has to tell shapes apart.
        let known = if self.refusals.is_empty() { None } else { self.refusals.get(&place::shape(&pod)) };
        let refusal = match known {
            Some(refusal) => refusal.clone(),
            None => match place::place(&pod, self.nodes.iter().map(AsRef::as_ref), &self.usage) {
                Ok(node) => return self.bind(&pod, node),
                Err(refusal) => {
                    self.refusals.insert(place::shape(&pod), refusal.clone());
                    refusal
                }
            },
        };
        if let Some(waiting) = self.waiting.get_mut(key) {
            waiting.parked = true;
            waiting.not_before = after(now, backoff(attempts));
        }
        self.due.add(key.clone(), after(now, PARKED_MAX));
        self.tell(&pod, Level::Warning, "FailedScheduling", &refusal, now);
        let said = pod.condition("PodScheduled").is_some_and(|scheduled| {
            scheduled.status == "False" && scheduled.message.as_ref() == Some(&refusal)
        });
        if !said {
            let condition = PodCondition {
                type_: "PodScheduled".into(),
                status: "False".into(),
                reason: Some("Unschedulable".into()),
                message: Some(refusal),
                last_transition_time: Some(Time(now)),
                ..PodCondition::default()
            };
            let status = json!({ "conditions": pod.conditions_with(condition) });
            let patch = json!({ "metadata": pod.meta.precondition(), "status": status });
            let request = Request::merge(format!("{}/status", pod.path()), patch);
            self.flight.push(For::Status(key.clone(), pod.meta.uid.clone()), request);
        }
    }

    fn bind(&mut self, pod: &Arc<Pod>, node: String) {
        let request = binding(pod, &node);
        self.assumed.insert(pod.meta.key.clone(), (pod.meta.uid.clone(), node));
        self.charge(&pod.meta.key, Some(pod));
        self.flight.push(For::Bind(pod.meta.key.clone(), pod.meta.uid.clone()), request);
    }

    fn tell(&mut self, pod: &Pod, level: Level, reason: &str, message: &str, now: Timestamp) {
        if let Some(request) = self.recorder.record(now, &About::pod(&pod.meta), level, reason, message) {
            self.flight.push(For::Aside, request);
        }
    }

    fn landed(&mut self, what: For, outcome: &Outcome) {
        let now = self.clock.now();
        match what {
            For::Aside => {}
            For::Status(key, uid) => {
                let turn = match outcome {
                    Outcome::Done(body) => seen::read::<Pod>(body).and_then(|pod| self.pods.wrote(pod)),
                    Outcome::Missing => self.pods.gone(&key, Some(&uid)),
                    _ => None,
                };
                if let Some(turn) = turn {
                    self.pod_turned(&turn);
                }
            }
            For::Bind(key, uid) => self.bound(&key, &uid, outcome, now),
        }
    }

    /// The watch tells where the pod is; here we only learn whether to wait for that.
    fn bound(&mut self, key: &Key, uid: &str, outcome: &Outcome, now: Timestamp) {
        let pod = self.pods.get(key).filter(|pod| pod.meta.uid == uid).cloned();
        if let Outcome::Done(_) = outcome {
            let node = self.assumed.get(key).map(|(_, node)| node.clone());
            let node = node.or_else(|| pod.as_ref().and_then(|pod| pod.node.clone()));
            if let (Some(pod), Some(node)) = (pod, node) {
                let message = format!("Successfully assigned {key} to {node}");
                self.tell(&pod, Level::Normal, "Scheduled", &message, now);
            }
            return;
        }
        if self.assumed.get(key).is_none_or(|(assumed, _)| assumed != uid) {
            return;
        }
        if let Outcome::Lost(_) = outcome {
            // The place must not be given away: the binding may have been made.
            self.unsure.add(key.clone(), after(now, BACKOFF));
            return;
        }
        self.assumed.remove(key);
        self.charge(key, pod.as_ref());
        let attempts = self.waiting.get(key).map_or(1, |waiting| waiting.attempts);
        self.forget(key);
        if let (Some(pod), false) = (pod, *outcome == Outcome::Missing) {
            self.enqueue(&pod, attempts, after(now, backoff(attempts)));
        }
    }
}

fn binding(pod: &Pod, node: &str) -> Request {
    let Key { namespace, name } = &pod.meta.key;
    let binding = json!({
        "apiVersion": "v1", "kind": "Binding",
        "metadata": { "namespace": namespace, "name": name, "uid": pod.meta.uid },
        "target": { "apiVersion": "v1", "kind": "Node", "name": node },
    });
    Request::post(format!("{}/binding", pod.path()), binding)
}

fn backoff(attempts: u32) -> Duration {
    BACKOFF.saturating_mul(1 << attempts.saturating_sub(1).min(8)).min(BACKOFF_MAX)
}

#[cfg(test)]
mod tests;
