//! What does the cluster look like, and what has happened in it? Read from the API alone.
//!
//! A [`World`] holds every object of the kinds that stories speak of, as the watches told it, plus
//! what objects alone do not show: how often a gang was evicted, where a pod was bound first, what
//! happened last. It knows no internals of the product: a world looks the same on a real cluster.

mod gang;
mod need;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use serde_json::Value;
use soroi_watch::Change;

use crate::kind::{self, Kind};
use crate::scenario::{Condition, GangRef};

pub use gang::{GangView, State, has_ended};
pub(crate) use gang::{gangs_of_job, gangs_of_pod, gangs_of_workload};
pub use need::{Amounts, amount, amounts, pod_requests};

/// Lines of the trace that a failure shows.
const TRACE_MAX: usize = 20_000;

/// Where an object is: kind, namespace (or empty), name.
pub type Key = (Kind, String, String);

/// An object that changed.
#[derive(Clone, Debug)]
pub struct Changed {
    /// Where it is, or was.
    pub key: Key,
    /// How it was; `None`: it was not there.
    pub before: Option<Value>,
}

/// The objects now, and the history that they do not show.
#[derive(Debug, Default)]
pub struct World {
    /// By kind, namespace, name: asked for on every change, so that keys of one kind are not compared by it.
    objects: BTreeMap<Kind, BTreeMap<String, BTreeMap<String, Value>>>,
    started: Option<Timestamp>,
    trace: VecDeque<String>,
    /// Uid of a pod to the node that it was bound to first.
    pub(crate) bound_to: BTreeMap<String, String>,
    /// When a node was last seen to have become smaller.
    pub(crate) shrank: BTreeMap<String, Timestamp>,
    /// Since when a node has been shut for pods.
    pub(crate) shut: BTreeMap<String, Timestamp>,
    /// Nodes that have moved to other domains at some time, or may have.
    pub(crate) moved: BTreeSet<String>,
    evictions: BTreeMap<GangRef, u32>,
    failed: BTreeMap<GangRef, BTreeSet<String>>,
    /// Since when a gang has had some bound pods but fewer than its minimum.
    pub(crate) between: BTreeMap<GangRef, Timestamp>,
    /// What the product can know, and what met it.
    pub(crate) seeing: crate::rule::seeing::Seeing,
    /// When each plan, by uid, came to its phase.
    pub(crate) phased: BTreeMap<String, Timestamp>,
    /// Uids of plans under which a member was bound.
    pub(crate) begun: BTreeSet<String>,
    /// What gangs were made of a while ago.
    pub(crate) lately: crate::rule::lately::Lately,
    /// Who waits although he fits, in a lull.
    pub(crate) vain: crate::rule::vain::Vain,
    /// The story has stopped the product: nobody can repair anything.
    away: bool,
    /// Gangs that were whole at some time.
    pub(crate) were_whole: BTreeSet<GangRef>,
    /// By group without Jobs: uids of members that ended well since it last held no node. Their pods
    /// may be gone.
    pub(crate) done: BTreeMap<GangRef, BTreeSet<String>>,
    /// When a leader of the product was put to sleep.
    pub(crate) naps: Vec<Nap>,
    /// The epoch of the term that began last, where there are several replicas.
    pub(crate) epoch: i64,
    /// When the lease was last written.
    pub(crate) renewed: Option<Timestamp>,
    /// Uids of pods that were bound late: by a leader that had slept since it decided that.
    pub(crate) late: BTreeMap<String, Timestamp>,
    /// What was held of quotas.
    pub(crate) paid: crate::rule::paid::Paid,
    /// Who is told to leave for whom.
    pub(crate) evicted: crate::rule::evicted::Evicted,
    /// When the story last did something.
    pub(crate) last_deed: Option<Timestamp>,
    /// What must never be true.
    pub(crate) forbidden: Vec<Condition>,
    /// What was broken, in order of appearance.
    pub(crate) violations: Vec<String>,
    /// Changes of single objects that were told.
    changes: u64,
    /// The same without leases, which no rule about rest looks at.
    turns: u64,
}

/// A sleep of the leader.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nap {
    pub(crate) until: Timestamp,
}

impl World {
    /// An empty world whose trace counts seconds from `now`.
    pub fn new(now: Timestamp) -> Self {
        Self { started: Some(now), ..Self::default() }
    }

    /// The object, if it is there.
    pub fn get(&self, kind: Kind, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.get(&kind)?.get(namespace)?.get(name)
    }

    /// All objects of a kind, by namespace and name.
    pub fn all(&self, kind: Kind) -> impl Iterator<Item = &Value> {
        self.objects.get(&kind).into_iter().flat_map(BTreeMap::values).flat_map(BTreeMap::values)
    }

    fn take(&mut self, key: &Key) -> Option<Value> {
        self.objects.get_mut(&key.0)?.get_mut(&key.1)?.remove(&key.2)
    }

    /// The last happenings, oldest first.
    pub fn trace(&self) -> impl Iterator<Item = &str> {
        self.trace.iter().map(String::as_str)
    }

    /// Writes a line into the trace.
    pub fn note(&mut self, now: Timestamp, text: &str) {
        if self.trace.len() == TRACE_MAX {
            self.trace.pop_front();
        }
        let since = self.started.map_or(0.0, |started| now.duration_since(started).as_secs_f64());
        self.trace.push_back(format!("{since:>9.3}s  {text}"));
    }

    /// The story stops the product, or starts it. What lacks members then has as long from the start as
    /// if it lacked them since then.
    pub(crate) fn product(&mut self, runs: bool, now: Timestamp) {
        if runs && self.away {
            self.between.values_mut().for_each(|since| *since = now);
        }
        self.away = !runs;
        if self.away {
            self.seeing.stopped();
        }
    }

    /// Whether the story has stopped the product.
    pub(crate) fn is_away(&self) -> bool {
        self.away
    }

    /// Whoever sleeps is woken.
    pub(crate) fn wake(&mut self, now: Timestamp) {
        self.naps.iter_mut().for_each(|nap| nap.until = nap.until.min(now));
    }

    /// How many changes of single objects there were; the rules were asked after each.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Differs whenever something may have changed that a rule about rest looks at; as long as it does not,
    /// their answers stand.
    pub(crate) fn turns(&self) -> u64 {
        self.turns
    }

    fn count(&mut self, kind: Kind) {
        self.changes += 1;
        if !matches!(kind, kind::LEASE) {
            self.turns += 1;
        }
    }

    /// How often the gang's Workload went to Evicted.
    pub fn evictions(&self, gang: &GangRef) -> u32 {
        self.evictions.get(gang).copied().unwrap_or(0)
    }

    /// How many pods of the gang failed, those already gone included.
    pub fn failed(&self, gang: &GangRef) -> usize {
        self.failed.get(gang).map_or(0, BTreeSet::len)
    }

    /// Takes in what a watch told of one kind. Returns what changed.
    pub fn change(&mut self, kind: Kind, change: Change<Value>, now: Timestamp) -> Vec<Changed> {
        match change {
            Change::Reset(objects) => {
                let fresh: BTreeMap<Key, Value> =
                    objects.into_iter().map(|object| (key(kind, &object), object)).collect();
                let known = self.all(kind).map(|object| key(kind, object));
                let gone: Vec<Key> = known.filter(|known| !fresh.contains_key(known)).collect();
                let mut changed = Vec::new();
                for key in gone {
                    changed.push(self.remove(key, now));
                }
                for (key, object) in fresh {
                    if self.get(key.0, &key.1, &key.2) != Some(&object) {
                        changed.push(self.set(key, object, now));
                    }
                }
                changed
            }
            Change::Set(object) => vec![self.set(key(kind, &object), object, now)],
            Change::Gone(object) => vec![self.remove(key(kind, &object), now)],
            Change::Unreadable { namespace, name, error } => {
                self.violations.push(format!("{} {namespace}/{name} is unreadable: {error}", kind.word));
                Vec::new()
            }
        }
    }

    fn set(&mut self, key: Key, object: Value, now: Timestamp) -> Changed {
        self.count(key.0);
        let before = self.take(&key);
        for line in told(&key, before.as_ref(), &object) {
            self.note(now, &line);
        }
        match key.0 {
            kind::POD => self.pod_history(&object),
            kind::NODE => self.node_history(before.as_ref(), &object, now),
            kind::WORKLOAD => self.workload_history(before.as_ref(), &object),
            kind::GANG_PLAN => {
                let phase = |plan: &Value| plan["status"]["phase"].clone();
                if before.as_ref().map(phase) != Some(phase(&object)) {
                    self.phased.insert(text(&object["metadata"]["uid"]).to_owned(), now);
                }
            }
            kind::LEASE => {
                self.epoch = self.epoch.max(object["spec"]["leaseTransitions"].as_i64().unwrap_or(0));
            }
            _ => {}
        }
        let of_kind = self.objects.entry(key.0).or_default();
        of_kind.entry(key.1.clone()).or_default().insert(key.2.clone(), object);
        Changed { key, before }
    }

    fn remove(&mut self, key: Key, now: Timestamp) -> Changed {
        self.count(key.0);
        let before = self.take(&key);
        if key.0 == kind::NODE {
            self.shut.remove(&key.2);
            // It may be made again with other labels.
            self.moved.insert(key.2.clone());
        }
        if before.is_some() && key.0 != kind::EVENT {
            self.note(now, &format!("{} {} gone", key.0.word, key.2));
        }
        Changed { key, before }
    }

    fn pod_history(&mut self, pod: &Value) {
        if pod["status"]["phase"] == "Failed" {
            let uid = text(&pod["metadata"]["uid"]).to_owned();
            for gang in gang::gangs_of_pod(pod) {
                self.failed.entry(gang).or_default().insert(uid.clone());
            }
        }
    }

    fn node_history(&mut self, before: Option<&Value>, node: &Value, now: Timestamp) {
        let room = amounts(&node["status"]["allocatable"]);
        let had = before.map(|before| amounts(&before["status"]["allocatable"])).unwrap_or_default();
        let name = text(&node["metadata"]["name"]).to_owned();
        if had.iter().any(|(resource, had)| room.get(resource).copied().unwrap_or(0) < *had) {
            self.shrank.insert(name.clone(), now);
        }
        if before.is_some_and(|before| domains(before) != domains(node)) {
            self.moved.insert(name.clone());
        }
        match crate::rule::seat::is_shut(node) {
            true => _ = self.shut.entry(name).or_insert(now),
            false => _ = self.shut.remove(&name),
        }
    }

    fn workload_history(&mut self, before: Option<&Value>, workload: &Value) {
        let evicted =
            |workload: &Value| condition(workload, "Evicted").is_some_and(|found| found["status"] == "True");
        if evicted(workload) && !before.is_some_and(evicted) {
            for gang in gang::gangs_of_workload(workload) {
                *self.evictions.entry(gang).or_insert(0) += 1;
            }
        }
    }
}

/// The labels of a node that say where it is.
fn domains(node: &Value) -> Vec<(&String, &Value)> {
    let labels = node["metadata"]["labels"].as_object().into_iter().flatten();
    labels.filter(|(key, _)| key.starts_with("topology.")).collect()
}

fn key(kind: Kind, object: &Value) -> Key {
    let metadata = &object["metadata"];
    (kind, text(&metadata["namespace"]).to_owned(), text(&metadata["name"]).to_owned())
}

/// A JSON text, or nothing.
pub(crate) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

/// The condition of a type in an object's status.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    object["status"]["conditions"].as_array()?.iter().find(|condition| condition["type"] == kind)
}

/// Whether a condition is there and True.
pub fn is_true(object: &Value, kind: &str) -> bool {
    condition(object, kind).is_some_and(|found| found["status"] == "True")
}

/// What of a change is worth a line in the trace.
fn told(key: &Key, before: Option<&Value>, now: &Value) -> Vec<String> {
    let who = format!("{} {}", key.0.word, key.2);
    let mut lines = Vec::new();
    let nothing = Value::Null;
    let was = before.unwrap_or(&nothing);
    if before.is_none() && !matches!(key.0, kind::EVENT | kind::NAMESPACE) {
        lines.push(format!("{who} created"));
    }
    let mut watched = |what: &str, old: &Value, new: &Value| {
        if old != new && !new.is_null() {
            let new = new.as_str().map_or_else(|| new.to_string(), str::to_owned);
            lines.push(format!("{who} {what} {new}"));
        }
    };
    match key.0 {
        kind::POD => {
            watched("bound to", &was["spec"]["nodeName"], &now["spec"]["nodeName"]);
            watched("phase", &was["status"]["phase"], &now["status"]["phase"]);
        }
        kind::JOB => watched("suspend", &was["spec"]["suspend"], &now["spec"]["suspend"]),
        kind::NODE => watched("unschedulable", &was["spec"]["unschedulable"], &now["spec"]["unschedulable"]),
        kind::GANG_PLAN => watched("phase", &was["status"]["phase"], &now["status"]["phase"]),
        kind::POD_GROUP => watched("phase", &was["status"]["phase"], &now["status"]["phase"]),
        kind::LEASE => {
            watched("is held by", &was["spec"]["holderIdentity"], &now["spec"]["holderIdentity"]);
        }
        _ => {}
    }
    if before.is_none_or(|before| before["metadata"]["deletionTimestamp"].is_null()) {
        watched("is being deleted at", &Value::Null, &now["metadata"]["deletionTimestamp"]);
    }
    if key.0 != kind::POD {
        lines.extend(conditions_told(&who, was, now));
    }
    lines
}

fn conditions_told(who: &str, was: &Value, now: &Value) -> Vec<String> {
    let conditions = now["status"]["conditions"].as_array();
    let changed = conditions.into_iter().flatten().filter(|condition| {
        let before = self::condition(was, text(&condition["type"]));
        before.is_none_or(|before| {
            ["status", "reason", "message"].iter().any(|field| before[field] != condition[field])
        })
    });
    let line = |condition: &Value| {
        let field = |name: &str| text(&condition[name]).to_owned();
        format!("{who} {}={} {}: {}", field("type"), field("status"), field("reason"), field("message"))
    };
    changed.map(line).collect()
}
