//! One look at one Job: decide, write, and say what came of it.
//!
//! The order of the writes is Kubernetes' own: pods first, then the status that notes ended pods,
//! then their finalizers, then the status that counts them and, last of all, the end of the Job.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::json;

use super::backoff::Record;
use super::decide::{self, Manage, View};
use super::pod;
use super::seen::Job;
use crate::cache::Key;
use crate::events::Level;
use crate::seen::{self, Pod};
use crate::write::{Api, Outcome, Request, difference};

/// What came of a sync.
#[derive(Debug, Default)]
pub(crate) struct Synced {
    /// The Job, as the API server has it now.
    pub(crate) job: Option<Job>,
    /// Pods that were made or changed.
    pub(crate) pods: Vec<Pod>,
    /// Pods that turned out not to exist.
    pub(crate) gone: Vec<(Key, String)>,
    /// Uids of pods whose deletion was asked for.
    pub(crate) doomed: Vec<String>,
    pub(crate) record: Record,
    /// When to look again at the latest.
    pub(crate) again: Option<Duration>,
    /// Something was refused or lost: look again with back-off.
    pub(crate) failed: bool,
    pub(crate) said: Vec<(Level, &'static str, String)>,
}

/// A write failed in such a way that the rest of the sync makes no sense.
struct Stuck;

struct Sync {
    api: Api,
    now: Timestamp,
    job: Arc<Job>,
    status: JobStatus,
    view: View,
    synced: Synced,
}

/// Looks at `job`, which is neither finished nor somebody else's, and does what it needs now.
pub(crate) async fn run(
    api: Api,
    now: Timestamp,
    job: Arc<Job>,
    pods: Vec<Arc<Pod>>,
    record: Record,
) -> Synced {
    let mut status = job.status.clone();
    status.uncounted_terminated_pods.get_or_insert_default();
    let view = decide::view(&job, &status, pods, record);
    let synced = Synced { record: view.record, ..Synced::default() };
    let mut sync = Sync { api, now, job, status, view, synced };
    if sync.all().await.is_err() {
        sync.synced.failed = true;
    }
    sync.synced
}

impl Sync {
    async fn all(&mut self) -> Result<(), Stuck> {
        let now = self.now;
        if self.status.start_time.is_none() && !self.job.suspend {
            self.status.start_time = Some(Time(now));
        }
        let mut end = decide::end(&self.job, &self.status, &self.view, now);
        let mut active = i32::try_from(self.view.active.len()).unwrap_or(i32::MAX);
        let mut must_flush = false;
        if end.is_some() {
            let deleted = self.delete(self.view.active.clone(), false).await;
            if deleted != active {
                // The Job is not over while some of its pods may still run.
                end = None;
            }
            active -= deleted;
        } else {
            self.remember_deadline();
            let managed = self.job.meta.deleting.is_none();
            if managed {
                active = self.manage(active).await;
            }
            let complete = active == 0
                && match self.job.completions {
                    None => self.view.succeeded > 0,
                    Some(completions) => self.view.succeeded >= completions,
                };
            if complete {
                let message = "Reached expected number of succeeded pods";
                end = Some(decide::condition("SuccessCriteriaMet", true, "CompletionsReached", message, now));
            } else if managed {
                must_flush = self.suspended_or_resumed();
            }
        }
        self.status.active = Some(active).filter(|active| *active > 0);
        self.status.ready = Some(self.view.ready);
        self.status.terminating = Some(self.view.terminating);
        // Kubernetes writes the start time together with something else that it has to say.
        must_flush |= self.status.active != self.job.status.active
            || self.status.ready != self.job.status.ready
            || self.status.terminating != self.job.status.terminating;
        self.track(end, must_flush).await
    }

    /// Looks again when the time is up that the Job may be active.
    fn remember_deadline(&mut self) {
        if let Some(deadline) = decide::deadline(&self.job, &self.status) {
            let left = Duration::try_from(deadline.duration_since(self.now)).unwrap_or(Duration::ZERO);
            self.look_again(left);
        }
    }

    fn look_again(&mut self, after: Duration) {
        self.synced.again = Some(self.synced.again.map_or(after, |again| again.min(after)));
    }

    fn say(&mut self, level: Level, reason: &'static str, message: impl Into<String>) {
        self.synced.said.push((level, reason, message.into()));
    }

    /// Makes or deletes pods; how many are active then.
    async fn manage(&mut self, active: i32) -> i32 {
        match decide::manage(&self.job, &self.view, self.now) {
            Manage::Nothing => active,
            Manage::Delete(pods) => active - self.delete(pods, true).await,
            Manage::Create { count, indexes } => active + self.create(count, &indexes).await,
            Manage::Wait(wait) => {
                self.look_again(wait.max(Duration::from_secs(1)));
                // Kubernetes says 0 here, whatever is active, and so do we: who waits for
                // `active: 0` must be able to live with it.
                0
            }
        }
    }

    /// Notes whether the Job is suspended; whether that is news.
    fn suspended_or_resumed(&mut self) -> bool {
        let now = self.now;
        let condition = if self.job.suspend {
            decide::condition("Suspended", true, "JobSuspended", "Job suspended", now)
        } else {
            decide::condition("Suspended", false, "JobResumed", "Job resumed", now)
        };
        if !decide::set_condition(&mut self.status, condition) {
            return false;
        }
        if self.job.suspend {
            self.status.start_time = None;
            self.say(Level::Normal, "Suspended", "Job suspended");
        } else {
            // Time that it was suspended does not count against its deadline.
            self.status.start_time = Some(Time(now));
            self.say(Level::Normal, "Resumed", "Job resumed");
        }
        true
    }

    /// Deletes pods; with `untrack`, so that they are not counted. How many it deleted.
    async fn delete(&mut self, pods: Vec<Arc<Pod>>, untrack: bool) -> i32 {
        let (mut pods, mut stuck) = (pods, Vec::new());
        if untrack {
            let (held, mut free): (Vec<_>, Vec<_>) = pods.into_iter().partition(|pod| decide::tracked(pod));
            let landed = self.api.send_all(held.iter().map(|pod| pod::untrack(pod)).collect()).await;
            for (pod, outcome) in held.into_iter().zip(landed) {
                match outcome {
                    Outcome::Done(_) => free.push(pod),
                    other => stuck.push((pod, other)),
                }
            }
            pods = free;
        }
        let requests = pods.iter().map(|pod| Request::delete(pod.path(), json!({}))).collect();
        let landed = self.api.send_all(requests).await;
        let mut deleted = 0;
        for (pod, outcome) in pods.into_iter().zip(landed).chain(stuck) {
            match outcome {
                Outcome::Done(body) => {
                    let name = &pod.meta.key.name;
                    self.synced.said.push((
                        Level::Normal,
                        "SuccessfulDelete",
                        format!("Deleted pod: {name}"),
                    ));
                    self.synced.doomed.push(pod.meta.uid.clone());
                    let there = seen::read::<Pod>(&body).filter(|pod| pod.meta.deleting.is_some());
                    self.synced.pods.extend(there);
                }
                Outcome::Missing => self.synced.gone.push((pod.meta.key.clone(), pod.meta.uid.clone())),
                other => {
                    self.synced.failed = true;
                    self.say(Level::Warning, "FailedDelete", format!("Error deleting: {}", describe(&other)));
                    continue;
                }
            }
            deleted += 1;
            self.view.terminating = self.view.terminating.saturating_add(1);
            if pod.ready() {
                self.view.ready -= 1;
            }
        }
        deleted
    }

    /// Makes pods: one, then twice as many, and so on, so that a quota that allows none is not
    /// asked 500 times. How many it made.
    async fn create(&mut self, count: usize, indexes: &[i32]) -> i32 {
        let (mut made, mut tried, mut batch) = (0, 0, 1);
        while tried < count && !self.synced.failed {
            let size = batch.min(count - tried);
            let path = format!("/api/v1/namespaces/{}/pods", self.job.meta.key.namespace);
            let body = |place| pod::body(&self.job, indexes.get(place).copied(), &self.view);
            let requests =
                (tried..tried + size).map(|place| Request::post(path.clone(), body(place))).collect();
            for outcome in self.api.send_all(requests).await {
                match outcome {
                    Outcome::Done(body) => {
                        made += 1;
                        let Some(pod) = seen::read::<Pod>(&body) else { continue };
                        let name = &pod.meta.key.name;
                        self.synced.said.push((
                            Level::Normal,
                            "SuccessfulCreate",
                            format!("Created pod: {name}"),
                        ));
                        self.synced.pods.push(pod);
                    }
                    other => {
                        self.synced.failed = true;
                        self.say(
                            Level::Warning,
                            "FailedCreate",
                            format!("Error creating: {}", describe(&other)),
                        );
                    }
                }
            }
            tried += size;
            batch *= 2;
        }
        made
    }

    /// Counts ended pods and, if it is over, ends the Job.
    async fn track(&mut self, mut end: Option<JobCondition>, mut must_flush: bool) -> Result<(), Stuck> {
        let mut held: BTreeSet<String> = self
            .view
            .pods
            .iter()
            .filter(|pod| decide::tracked(pod))
            .map(|pod| pod.meta.uid.clone())
            .collect();
        must_flush |= decide::count_released(&mut self.status, &held);
        let before = self.status.clone();
        let tally = decide::tally(&self.job, &mut self.status, &self.view, end.as_ref());
        must_flush |= before != self.status;
        if let Some(condition) = &mut end {
            let last = match condition.type_.as_str() {
                "FailureTarget" => Some("Failed"),
                "SuccessCriteriaMet" => Some("Complete"),
                _ => None,
            };
            if let Some(last) = last {
                must_flush |= decide::set_condition(&mut self.status, condition.clone());
                let (reason, message) = (condition.reason.clone(), condition.message.clone());
                *condition = decide::condition(last, true, "", "", self.now);
                (condition.reason, condition.message) = (reason, message);
            }
        }
        if must_flush {
            self.flush().await?;
        }
        let released = self.release(&tally.release, &mut held).await;
        let mut must_flush = decide::count_released(&mut self.status, &held);
        if released.is_err() {
            if must_flush {
                self.flush().await?;
            }
            return Err(Stuck);
        }
        let over = end.filter(|_| !tally.full && self.may_end());
        if let Some(condition) = &over {
            if condition.type_ == "Complete" {
                self.status.completion_time = Some(Time(self.now));
            }
            decide::set_condition(&mut self.status, condition.clone());
            must_flush = true;
        }
        if must_flush {
            self.flush().await?;
        }
        if tally.full {
            self.look_again(Duration::ZERO);
        }
        if let Some(condition) = over {
            self.say_end(&condition);
        }
        Ok(())
    }

    /// Nothing is left to count, and nothing is still on its way out.
    fn may_end(&self) -> bool {
        let noted = self.status.uncounted_terminated_pods.as_ref();
        let empty = noted.is_none_or(|noted| noted.succeeded.is_none() && noted.failed.is_none());
        empty && self.view.terminating == 0
    }

    fn say_end(&mut self, condition: &JobCondition) {
        if condition.type_ == "Complete" {
            if self.job.completions.is_some_and(|wanted| self.status.succeeded.unwrap_or(0) > wanted) {
                let message = "Too many succeeded pods running after completion count reached";
                self.say(Level::Warning, "TooManySucceededPods", message);
            }
            self.say(Level::Normal, "Completed", "Job completed");
            return;
        }
        let reason = match condition.reason.as_deref().unwrap_or("") {
            "PodFailurePolicy" => "PodFailurePolicy",
            "BackoffLimitExceeded" => "BackoffLimitExceeded",
            "DeadlineExceeded" => "DeadlineExceeded",
            "MaxFailedIndexesExceeded" => "MaxFailedIndexesExceeded",
            "FailedIndexes" => "FailedIndexes",
            _ => "Failed",
        };
        self.say(Level::Warning, reason, condition.message.clone().unwrap_or_default());
    }

    /// Takes the finalizer away from pods that are noted; takes those uids out of `held`.
    async fn release(&mut self, pods: &[Arc<Pod>], held: &mut BTreeSet<String>) -> Result<(), Stuck> {
        let landed = self.api.send_all(pods.iter().map(|pod| pod::untrack(pod)).collect()).await;
        let mut result = Ok(());
        for (pod, outcome) in pods.iter().zip(landed) {
            match outcome {
                Outcome::Done(body) => self.synced.pods.extend(seen::read::<Pod>(&body)),
                Outcome::Missing => self.synced.gone.push((pod.meta.key.clone(), pod.meta.uid.clone())),
                _ => {
                    result = Err(Stuck);
                    continue;
                }
            }
            held.remove(&pod.meta.uid);
        }
        result
    }

    /// Writes the status, if it differs from what the API server has.
    async fn flush(&mut self) -> Result<(), Stuck> {
        let changes = difference(&json!(self.job.status), &json!(self.status));
        if changes == json!({}) {
            return Ok(());
        }
        let patch = json!({ "metadata": self.job.meta.precondition(), "status": changes });
        let request = Request::merge(format!("{}/status", self.job.path()), patch);
        match self.api.send(request).await {
            Outcome::Done(body) => {
                let job: Job = seen::read(&body).ok_or(Stuck)?;
                self.job = Arc::new(job.clone());
                self.synced.job = Some(job);
                Ok(())
            }
            _ => Err(Stuck),
        }
    }
}

fn describe(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Refused { message, .. } | Outcome::Lost(message) => message.clone(),
        Outcome::Conflict => "conflict".into(),
        Outcome::Missing => "not found".into(),
        Outcome::Done(_) => "done".into(),
    }
}
