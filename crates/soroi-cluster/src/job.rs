//! Who makes the pods of a Job? The Job controller of Kubernetes 1.36, and the TTL of finished
//! Jobs.
//!
//! It follows `pkg/controller/job` to the letter where others can see it: the order of its writes,
//! what it counts and when, its conditions, its batches of 500 and its waits. What it leaves out:
//! adoption of pods without an owner, and the alpha Workload API.
//!
//! It knows Jobs and their pods. It must never know who suspends or resumes a Job.

mod backoff;
mod decide;
mod index;
mod pod;
mod policy;
mod seen;
mod sync;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use soroi_clock::Clock;
use soroi_watch::{Change, Query};

use crate::cache::{Cache, Key, Turn};
use crate::due::{Due, after, wait_until};
use crate::events::{About, Level, Recorder};
use crate::feed::News;
use crate::groups::Groups;
use crate::options::Options;
use crate::seen::Pod;
use crate::write::{Api, Flight, Outcome, Request};
use backoff::Record;
use seen::{Job, Mode};
use sync::Synced;

/// Jobs looked at at once (`--concurrent-job-syncs`).
const SYNCS_MAX: usize = 5;
/// Other requests under way at once.
const IN_FLIGHT: usize = 16;
/// After a sync that failed: from one second, doubling, to a minute (`DefaultJobApiBackOff`).
const RETRY: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What has to be looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Look {
    /// A Job.
    Job(Key),
    /// A finished Job that may be too old to stay.
    Age(Key),
    /// A pod that may have lost its Job.
    Orphan(Key),
}

enum For {
    Orphan(Key),
    Age(Key),
    Aside,
}

struct Jobs {
    api: Api,
    clock: Clock,
    options: Arc<Options>,
    jobs: Cache<Job>,
    pods: Cache<Pod>,
    /// The Job with that uid.
    by_uid: BTreeMap<String, Key>,
    /// The pods whose controller has that uid.
    owned: Groups<String, Key>,
    /// Uids of pods whose deletion was asked for and not seen yet.
    doomed: BTreeSet<String>,
    records: BTreeMap<Key, Record>,
    failures: BTreeMap<Key, u32>,
    due: Due<Look>,
    syncing: BTreeSet<Key>,
    /// To be looked at as soon as the sync that is under way has ended.
    missed: BTreeSet<Key>,
    syncs: FuturesUnordered<BoxFuture<'static, (Arc<Job>, Synced)>>,
    flight: Flight<For>,
    recorder: Recorder,
}

/// Looks after all Jobs, for ever.
pub(crate) async fn run(
    api: Api,
    client: kube::Client,
    clock: Clock,
    options: Arc<Options>,
    seed: u64,
    mut pods: News<Pod>,
) {
    let query = Query::all::<k8s_openapi::api::batch::v1::Job>();
    let mut jobs: BoxStream<'static, Change<Arc<Job>>> =
        soroi_watch::watch_map(client, clock.clone(), query, seed, Arc::<Job>::new);
    let mut controller = Jobs {
        api: api.clone(),
        clock: clock.clone(),
        options,
        jobs: Cache::default(),
        pods: Cache::default(),
        by_uid: BTreeMap::new(),
        owned: Groups::default(),
        doomed: BTreeSet::new(),
        records: BTreeMap::new(),
        failures: BTreeMap::new(),
        due: Due::default(),
        syncing: BTreeSet::new(),
        missed: BTreeSet::new(),
        syncs: FuturesUnordered::new(),
        flight: Flight::new(api, IN_FLIGHT),
        recorder: Recorder::new("job-controller"),
    };
    loop {
        controller.work();
        let wake = controller.wake();
        tokio::select! {
            biased;
            Some(change) = jobs.next() => {
                for turn in controller.jobs.apply(change) {
                    controller.job_turned(&turn);
                }
            }
            Some(change) = pods.recv() => {
                for turn in controller.pods.apply(change) {
                    controller.pod_turned(&turn);
                }
            }
            Some((job, synced)) = controller.syncs.next() => controller.synced(&job, synced),
            (what, outcome) = controller.flight.next() => controller.landed(what, &outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Jobs {
    fn ready(&self) -> bool {
        self.jobs.synced() && self.pods.synced()
    }

    fn has_room(&self) -> bool {
        self.syncs.len() < SYNCS_MAX && self.flight.has_room()
    }

    fn wake(&self) -> Option<Timestamp> {
        if self.ready() && self.has_room() { self.due.next() } else { None }
    }

    fn work(&mut self) {
        if !self.ready() {
            return;
        }
        let now = self.clock.now();
        while self.has_room() {
            let Some(look) = self.due.pop(now) else { return };
            match look {
                Look::Job(key) if self.syncing.contains(&key) => {
                    self.missed.insert(key);
                }
                Look::Job(key) => self.sync(key, now),
                Look::Age(key) => self.look_at_age(key, now),
                Look::Orphan(key) => self.look_at_orphan(key),
            }
        }
    }

    fn job_turned(&mut self, turn: &Turn<Job>) {
        let now = self.clock.now();
        let (key, old, new) = (&turn.key, turn.old.as_ref(), turn.new.as_ref());
        if let Some(old) = old.filter(|old| new.is_none_or(|new| new.meta.uid != old.meta.uid)) {
            self.by_uid.remove(&old.meta.uid);
            self.records.remove(key);
            self.failures.remove(key);
            self.check_orphans(&old.meta.uid, now);
        }
        let Some(new) = new else { return };
        self.by_uid.insert(new.meta.uid.clone(), key.clone());
        if new.finished().is_some() {
            self.records.remove(key);
            self.check_orphans(&new.meta.uid, now);
            self.due.add(Look::Age(key.clone()), now);
            return;
        }
        // News of the spec is urgent; the status changes with pods, which come in bursts.
        let urgent = old
            .is_none_or(|old| (&old.meta.uid, old.meta.generation) != (&new.meta.uid, new.meta.generation));
        let wait = if urgent { Duration::ZERO } else { self.options.job_batch };
        self.due.add(Look::Job(key.clone()), after(now, wait));
    }

    fn pod_turned(&mut self, turn: &Turn<Pod>) {
        let now = self.clock.now();
        let owner = |pod: &Arc<Pod>| {
            pod.meta.controller().filter(|owner| owner.kind == "Job").map(|owner| owner.uid.clone())
        };
        let (old, new) = (turn.old.as_ref(), turn.new.as_ref());
        let (old_owner, new_owner) = (old.and_then(owner), new.and_then(owner));
        if let Some(uid) = old_owner.as_ref().filter(|uid| new_owner.as_ref() != Some(uid)) {
            self.owned.remove(uid, &turn.key);
        }
        if let Some(old) = old.filter(|old| new.is_none_or(|new| new.meta.uid != old.meta.uid)) {
            self.doomed.remove(&old.meta.uid);
        }
        if let Some(new) = new {
            if new.meta.deleting.is_some() {
                self.doomed.remove(&new.meta.uid);
            }
            if let Some(uid) = &new_owner {
                self.owned.add(uid, turn.key.clone());
            }
            if decide::tracked(new) {
                self.due.add(Look::Orphan(turn.key.clone()), now);
            }
        }
        for uid in [old_owner, new_owner].into_iter().flatten() {
            if let Some(job) = self.by_uid.get(&uid) {
                self.due.add(Look::Job(job.clone()), after(now, self.options.job_batch));
            }
        }
    }

    /// The pods of a Job that is finished or gone must not wait to be counted.
    fn check_orphans(&mut self, uid: &String, now: Timestamp) {
        for key in self.owned.of(uid) {
            self.due.add(Look::Orphan(key.clone()), now);
        }
    }

    fn sync(&mut self, key: Key, now: Timestamp) {
        let Some(job) = self.jobs.get(&key).cloned() else { return };
        if job.foreign || job.finished().is_some() {
            return;
        }
        if job.mode == Mode::Unknown {
            let message = "Skipped Job sync because completion mode is unknown";
            self.tell(&job, Level::Warning, "UnknownCompletionMode", message);
            return;
        }
        let keys = self.owned.of(&job.meta.uid);
        let pods = keys.filter_map(|key| self.pods.get(key)).map(|pod| {
            // What we have deleted is on its way out, even if the watch has not told of it yet.
            if pod.meta.deleting.is_none() && self.doomed.contains(&pod.meta.uid) {
                let mut pod = Pod::clone(pod);
                pod.meta.deleting = Some(now);
                return Arc::new(pod);
            }
            pod.clone()
        });
        let pods: Vec<Arc<Pod>> = pods.collect();
        let record = self.records.get(&key).copied().unwrap_or_default();
        self.syncing.insert(key);
        let api = self.api.clone();
        self.syncs.push(Box::pin(async move {
            let synced = sync::run(api, now, job.clone(), pods, record).await;
            (job, synced)
        }));
    }

    fn synced(&mut self, job: &Arc<Job>, synced: Synced) {
        let now = self.clock.now();
        let key = job.meta.key.clone();
        self.syncing.remove(&key);
        if self.jobs.get(&key).is_some_and(|known| known.meta.uid == job.meta.uid) {
            self.records.insert(key.clone(), synced.record);
        }
        self.doomed.extend(synced.doomed);
        for pod in synced.pods {
            if let Some(turn) = self.pods.wrote(pod) {
                self.pod_turned(&turn);
            }
        }
        for (key, uid) in synced.gone {
            if let Some(turn) = self.pods.gone(&key, Some(&uid)) {
                self.pod_turned(&turn);
            }
        }
        if let Some(turn) = synced.job.and_then(|job| self.jobs.wrote(job)) {
            self.job_turned(&turn);
        }
        for (level, reason, message) in synced.said {
            self.tell(job, level, reason, &message);
        }
        if let Some(again) = synced.again {
            self.due.add(Look::Job(key.clone()), after(now, again));
        }
        if synced.failed {
            self.missed.remove(&key);
            let failures = self.failures.entry(key.clone()).or_insert(0);
            let wait = RETRY.saturating_mul(1 << (*failures).min(16)).min(RETRY_MAX);
            *failures = failures.saturating_add(1);
            self.due.add(Look::Job(key), after(now, wait));
        } else {
            self.failures.remove(&key);
            if self.missed.remove(&key) {
                self.due.add(Look::Job(key), now);
            }
        }
    }

    fn tell(&mut self, job: &Job, level: Level, reason: &str, message: &str) {
        let now = self.clock.now();
        if let Some(request) = self.recorder.record(now, &About::job(&job.meta), level, reason, message) {
            self.flight.push(For::Aside, request);
        }
    }

    /// Deletes a finished Job whose time to live is over.
    fn look_at_age(&mut self, key: Key, now: Timestamp) {
        let Some(job) = self.jobs.get(&key) else { return };
        let (Some(finished), Some(ttl)) = (job.finished(), job.ttl) else { return };
        if job.meta.deleting.is_some() {
            return;
        }
        let end = finished.saturating_add(SignedDuration::from_secs(ttl)).unwrap_or(Timestamp::MAX);
        if now < end {
            self.due.add(Look::Age(key), end);
            return;
        }
        let options = json!({ "propagationPolicy": "Foreground", "preconditions": { "uid": job.meta.uid } });
        let request = Request::delete(job.path(), options);
        self.flight.push(For::Age(key), request);
    }

    /// Lets go of a pod whose Job does not exist, or has ended without it.
    fn look_at_orphan(&mut self, key: Key) {
        let Some(pod) = self.pods.get(&key).filter(|pod| decide::tracked(pod)) else { return };
        if let Some(owner) = pod.meta.controller() {
            if owner.kind != "Job" || owner.api_version != "batch/v1" {
                return;
            }
            let job = self.by_uid.get(&owner.uid).and_then(|job| self.jobs.get(job));
            if job.is_some_and(|job| job.foreign || job.finished().is_none()) {
                return;
            }
        }
        let request = pod::untrack(pod);
        self.flight.push(For::Orphan(key), request);
    }

    fn landed(&mut self, what: For, outcome: &Outcome) {
        let now = self.clock.now();
        let failed = !matches!(outcome, Outcome::Done(_) | Outcome::Missing);
        match what {
            For::Aside => {}
            For::Age(key) if failed => self.due.add(Look::Age(key), after(now, RETRY)),
            For::Age(_) => {}
            For::Orphan(key) => {
                if let Outcome::Done(body) = outcome {
                    let turn = crate::seen::read::<Pod>(body).and_then(|pod| self.pods.wrote(pod));
                    if let Some(turn) = turn {
                        self.pod_turned(&turn);
                    }
                } else if failed {
                    self.due.add(Look::Orphan(key), after(now, RETRY));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
