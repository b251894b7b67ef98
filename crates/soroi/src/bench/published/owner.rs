//! Creates the Workloads of the load in their time, and plays their jobs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_watch::{Change, Query, watch};
use tokio::task::JoinSet;

use super::meter::Meter;
use super::plan::{Class, Plan};
use crate::run::apply;

/// After so long without any news, none is waited for.
const IDLE_MAX: Duration = Duration::from_secs(60);

const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/workloads";

/// What was seen.
pub(super) struct Played {
    pub(super) wall: Duration,
    pub(super) waiting: Duration,
    pub(super) writes: u64,
    pub(super) evictions: usize,
    /// By class: the sum of times to admission, and how many there were.
    admitted: BTreeMap<&'static str, (f64, usize)>,
}

impl Played {
    /// By class: the mean time to the first admission, in seconds.
    pub(super) fn mean_by_class(&self) -> BTreeMap<&'static str, f64> {
        self.admitted.iter().map(|(class, (sum, count))| (*class, sum / (*count).max(1) as f64)).collect()
    }
}

/// Namespace and name.
type Key = (String, String);

/// When a Workload was created, and as what.
type Book = Arc<Mutex<BTreeMap<Key, (Timestamp, Class)>>>;

/// What the owner must know of a Workload.
#[derive(Deserialize)]
struct Seen {
    metadata: Meta,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    namespace: String,
    name: String,
    resource_version: String,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    conditions: Vec<Value>,
}

impl Status {
    fn get(&self, kind: &str) -> Option<&Value> {
        self.conditions.iter().find(|condition| condition["type"] == kind)
    }

    fn is(&self, kind: &str) -> bool {
        self.get(kind).is_some_and(|condition| condition["status"] == "True")
    }
}

/// Plays the load to its end.
pub(super) async fn play(
    client: &kube::Client,
    clock: &Clock,
    plan: &Plan,
    meter: &Meter,
) -> anyhow::Result<Played> {
    let book = Book::default();
    let changes = watch::<Seen>(client.clone(), clock.clone(), Query::path(WORKLOADS), 0);
    let (began, before) = (clock.now(), meter.read());
    let mut creators = JoinSet::new();
    for (queue, _) in plan.queues() {
        for class in &plan.classes {
            creators.spawn(create(
                client.clone(),
                clock.clone(),
                queue.clone(),
                class.clone(),
                Arc::clone(&book),
            ));
        }
    }
    let mut owner = Owner {
        client,
        clock,
        book,
        running: BTreeMap::new(),
        leaving: BTreeSet::new(),
        ends: BTreeSet::new(),
        admitted: BTreeSet::new(),
        finished: BTreeSet::new(),
        sums: BTreeMap::new(),
        evictions: 0,
    };
    owner.follow(changes, creators, plan.workloads()).await?;
    let after = meter.read();
    Ok(Played {
        wall: Duration::try_from(clock.now().duration_since(began)).unwrap_or_default(),
        waiting: after.0 - before.0,
        writes: after.1 - before.1,
        evictions: owner.evictions,
        admitted: owner.sums,
    })
}

/// Creates the Workloads of one class in one queue, one after the other.
async fn create(
    client: kube::Client,
    clock: Clock,
    queue: String,
    class: Class,
    book: Book,
) -> anyhow::Result<()> {
    for number in 0..class.count {
        let next = clock.now() + class.every;
        let (collection, object) = class.workload(&queue, number);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let entry = (clock.now(), class.clone());
        book.lock().unwrap_or_else(PoisonError::into_inner).insert((queue.clone(), name), entry);
        let made = apply::send(&client, "POST", &collection, "application/json", &object).await;
        made.with_context(|| format!("cannot create a Workload at {collection}"))?;
        clock.sleep_until(next).await;
    }
    Ok(())
}

struct Owner<'a> {
    client: &'a kube::Client,
    clock: &'a Clock,
    book: Book,
    /// Those that run or are about to be marked finished, and until when they run.
    running: BTreeMap<Key, Timestamp>,
    /// Those that were evicted, and have not been seen to have given their reservation back.
    leaving: BTreeSet<Key>,
    ends: BTreeSet<(Timestamp, Key)>,
    /// Those that were admitted once.
    admitted: BTreeSet<Key>,
    finished: BTreeSet<Key>,
    sums: BTreeMap<&'static str, (f64, usize)>,
    evictions: usize,
}

impl Owner<'_> {
    /// Until all are finished.
    async fn follow(
        &mut self,
        mut changes: BoxStream<'static, Change<Seen>>,
        mut creators: JoinSet<anyhow::Result<()>>,
        all: usize,
    ) -> anyhow::Result<()> {
        let mut writes: FuturesUnordered<BoxFuture<'_, anyhow::Result<()>>> = FuturesUnordered::new();
        let (client, clock) = (self.client, self.clock);
        let mut patience = clock.now() + IDLE_MAX;
        while self.finished.len() < all {
            let next = self.ends.first().map_or(Timestamp::MAX, |(when, _)| *when);
            tokio::select! {
                biased;
                Some(created) = creators.join_next() => created??,
                // Whoever waits for the last one in vain should know which it is.
                () = clock.sleep_until(patience) => bail!("nothing goes on: {}", self.waits_for().await),
                Some(written) = writes.next(), if !writes.is_empty() => written?,
                Some(change) = changes.next() => {
                    patience = clock.now() + IDLE_MAX;
                    for seen in changed(change) {
                        if let Some(status) = self.observe(&seen) {
                            writes.push(give_back(client, seen.metadata, status).boxed());
                        }
                    }
                }
                () = clock.sleep_until(next) => {}
            }
            let now = clock.now();
            // It counts as running until it is seen to be finished.
            while self.ends.first().is_some_and(|(when, _)| *when <= now) {
                if let Some((_, key)) = self.ends.pop_first() {
                    writes.push(finish(client, key, now).boxed());
                }
            }
        }
        Ok(())
    }

    /// One of the Workloads that are not finished, and what it says.
    async fn waits_for(&self) -> String {
        let book = self.book.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some((namespace, name)) = book.into_keys().find(|key| !self.finished.contains(key)) else {
            return "some Workloads were not created".to_owned();
        };
        let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{name}");
        let said = apply::get::<Value>(self.client, &path).await.ok().flatten().unwrap_or_default();
        format!("{namespace}/{name} is not finished: {}", said["status"]["conditions"])
    }

    /// Takes in a Workload. Returns the status with which it gives its reservation back, if it was evicted.
    fn observe(&mut self, seen: &Seen) -> Option<Value> {
        let key = (seen.metadata.namespace.clone(), seen.metadata.name.clone());
        let (created, class) = self.book.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned()?;
        if seen.status.is("Finished") {
            self.finished.insert(key);
            return None;
        }
        let now = self.clock.now();
        if seen.status.is("Evicted") && seen.status.is("QuotaReserved") {
            if let Some(when) = self.running.remove(&key) {
                self.ends.remove(&(when, key.clone()));
            }
            self.evictions += usize::from(self.leaving.insert(key));
            return Some(given_back(&seen.status, now));
        }
        self.leaving.remove(&key);
        if seen.status.is("Admitted") && !seen.status.is("Evicted") && !self.running.contains_key(&key) {
            if self.admitted.insert(key.clone()) {
                let sum = self.sums.entry(class.name).or_default();
                sum.0 += now.duration_since(created).as_secs_f64();
                sum.1 += 1;
            }
            let ends = now + class.runs;
            self.running.insert(key.clone(), ends);
            self.ends.insert((ends, key));
        }
        None
    }
}

fn changed(change: Change<Seen>) -> Vec<Seen> {
    match change {
        Change::Reset(all) => all,
        Change::Set(one) => vec![one],
        Change::Gone(_) | Change::Unreadable { .. } => Vec::new(),
    }
}

/// Marks a Workload finished. One that was evicted meanwhile has run all the same.
async fn finish(client: &kube::Client, (namespace, name): Key, now: Timestamp) -> anyhow::Result<()> {
    let finished = condition("Finished", "True", "Succeeded", "Job finished successfully", now);
    let patch = json!([{ "op": "add", "path": "/status/conditions/-", "value": finished }]);
    // Nothing else would say so again.
    while !send(client, &namespace, &name, "application/json-patch+json", &patch).await? {}
    Ok(())
}

/// Gives the reservation of an evicted Workload back, as its job's controller does. Whoever wrote it meanwhile
/// is seen, and it is tried again then.
async fn give_back(client: &kube::Client, meta: Meta, status: Value) -> anyhow::Result<()> {
    let patch = json!({ "metadata": { "resourceVersion": meta.resource_version }, "status": status });
    send(client, &meta.namespace, &meta.name, "application/merge-patch+json", &patch).await.map(drop)
}

/// Whether it was written: not if somebody else wrote at the same time.
async fn send(
    client: &kube::Client,
    namespace: &str,
    name: &str,
    content: &str,
    patch: &Value,
) -> anyhow::Result<bool> {
    let path = format!("/apis/kueue.x-k8s.io/v1beta2/namespaces/{namespace}/workloads/{name}/status");
    match apply::send(client, "PATCH", &path, content, patch).await {
        Err(kube::Error::Api(status)) if status.code == 409 => Ok(false),
        sent => sent.map(|_| true).with_context(|| format!("cannot write the status of {namespace}/{name}")),
    }
}

fn given_back(status: &Status, now: Timestamp) -> Value {
    let text = |field: &str| status.get("Evicted").and_then(|it| it[field].as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let mut conditions = status.conditions.clone();
    for new in [
        condition("Requeued", "True", reason, message, now),
        condition("QuotaReserved", "False", "Pending", message, now),
        condition("Admitted", "False", "NoReservation", "The workload has no reservation", now),
    ] {
        match conditions.iter_mut().find(|there| there["type"] == new["type"]) {
            Some(there) => *there = new,
            None => conditions.push(new),
        }
    }
    json!({ "admission": null, "conditions": conditions })
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: Timestamp) -> Value {
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    json!({
        "type": kind, "status": status, "reason": reason, "message": message,
        "lastTransitionTime": now.to_string(),
    })
}
