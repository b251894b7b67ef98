//! What does a client see, and when? One watch of the pods of the bench's namespace.
//!
//! Every moment is that at which the event was read, by this process's own clock.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::bail;
use futures::StreamExt as _;
use futures::stream::BoxStream;
use serde::Deserialize;
use soroi_clock::Clock;
use soroi_watch::{Change, Query, watch};

use super::objects::BATCH;

/// Now, by the clock that all figures are taken from.
#[expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock, not the cluster's time")]
pub(super) fn now() -> Instant {
    Instant::now()
}

/// The pods of a namespace, as a watch shows them.
pub(super) struct Eyes {
    changes: BoxStream<'static, Change<Pod>>,
    clock: Clock,
    pub(super) seen: Seen,
}

/// What was seen so far.
#[derive(Default)]
pub(super) struct Seen {
    batches: BTreeMap<String, Batch>,
    listed: bool,
}

/// The pods with the same label [`BATCH`], by name.
#[derive(Default)]
pub(super) struct Batch {
    /// Those that exist, with their uid.
    pub(super) there: BTreeMap<String, String>,
    /// When each was first seen on a node.
    pub(super) bound: BTreeMap<String, Instant>,
    /// Those that a scheduler has called unschedulable.
    pub(super) waiting: BTreeSet<String>,
    /// Those that run.
    pub(super) running: BTreeSet<String>,
    /// When the last one was seen to go.
    pub(super) gone: Option<Instant>,
}

impl Batch {
    /// When the first and the last one were seen on a node.
    pub(super) fn first_and_last(&self) -> Option<(Instant, Instant)> {
        Some((self.bound.values().min().copied()?, self.bound.values().max().copied()?))
    }
}

#[derive(Deserialize)]
struct Pod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
struct Metadata {
    name: String,
    uid: String,
    #[serde(default)]
    labels: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    node_name: Option<String>,
}

#[derive(Default, Deserialize)]
struct Status {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<Condition>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(default)]
    reason: String,
}

impl Eyes {
    /// Opens them; ends when what is there has been seen.
    pub(super) async fn open(client: kube::Client, namespace: &str) -> anyhow::Result<Self> {
        let clock = Clock::real();
        let query = Query::within::<k8s_openapi::api::core::v1::Pod>(namespace);
        let changes = watch(client, clock.clone(), query, 0);
        let mut eyes = Self { changes, clock, seen: Seen::default() };
        eyes.until("the pods are listed", Duration::from_secs(60), |seen| seen.listed).await?;
        Ok(eyes)
    }

    /// Looks on until it is true.
    ///
    /// # Errors
    /// It was not true in time; says what.
    pub(super) async fn until(
        &mut self,
        what: &str,
        patience: Duration,
        mut happened: impl FnMut(&Seen) -> bool,
    ) -> anyhow::Result<()> {
        let deadline = now() + patience;
        while !happened(&self.seen) {
            let left = deadline.saturating_duration_since(now());
            match self.clock.timeout(left, self.changes.next()).await {
                Ok(Some(change)) => self.seen.take(change, now()),
                Ok(None) | Err(_) => bail!("{what}: not within {patience:?}"),
            }
        }
        Ok(())
    }
}

impl Seen {
    /// What is known of a batch.
    pub(super) fn batch(&self, name: &str) -> &Batch {
        static NOTHING: Batch = Batch {
            there: BTreeMap::new(),
            bound: BTreeMap::new(),
            waiting: BTreeSet::new(),
            running: BTreeSet::new(),
            gone: None,
        };
        self.batches.get(name).unwrap_or(&NOTHING)
    }

    /// Drops what is known of a batch.
    pub(super) fn forget(&mut self, name: &str) {
        self.batches.remove(name);
    }

    fn take(&mut self, change: Change<Pod>, at: Instant) {
        match change {
            Change::Reset(pods) => {
                // Only at the beginning, or after a break that spoils the round anyway.
                self.batches.clear();
                self.listed = true;
                for pod in pods {
                    self.set(pod, at);
                }
            }
            Change::Set(pod) => self.set(pod, at),
            Change::Gone(pod) => {
                let Some(batch) = pod.metadata.labels.get(BATCH) else { return };
                let batch = self.batches.entry(batch.clone()).or_default();
                batch.there.remove(&pod.metadata.name);
                batch.gone = Some(at);
            }
            Change::Unreadable { .. } => {}
        }
    }

    fn set(&mut self, pod: Pod, at: Instant) {
        let Some(batch) = pod.metadata.labels.get(BATCH) else { return };
        let batch = self.batches.entry(batch.clone()).or_default();
        let name = pod.metadata.name;
        if pod.spec.node_name.is_some() {
            batch.bound.entry(name.clone()).or_insert(at);
        }
        if pod.status.phase == "Running" {
            batch.running.insert(name.clone());
        }
        if pod.status.conditions.iter().any(|condition| condition.reason == "Unschedulable") {
            batch.waiting.insert(name.clone());
        }
        batch.there.insert(name, pod.metadata.uid);
    }
}
