//! How many pods may be evicted? For each PodDisruptionBudget its pods are counted, and those that are
//! well, so that evictions know what they may take.
//!
//! Source: `pkg/controller/disruption`, Kubernetes 1.36. Left out: the condition `DisruptionTarget` of
//! pods that were to be disrupted and are not, which is taken back after two minutes there. Of
//! controllers with a scale none runs here, so that budgets that need it are for pods of Jobs (which
//! have none) and for pods without a controller.
//!
//! It knows budgets and pods. It must never know who evicts.

mod budget;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::BoxStream;
use soroi_clock::Clock;
use soroi_watch::{Change, Query};

use crate::cache::{Cache, Key, Turn};
use crate::due::{Due, after, wait_until};
use crate::events::{About, Level, Recorder};
use crate::feed::News;
use crate::seen::Pod;
use crate::write::{Api, Flight, Outcome};
use budget::Budget;

/// Requests under way at once.
const IN_FLIGHT: usize = 16;
const RETRY: Duration = Duration::from_secs(1);

struct Disruption {
    clock: Clock,
    budgets: Cache<Budget>,
    pods: Cache<Pod>,
    due: Due<Key>,
    busy: BTreeSet<Key>,
    flight: Flight<Option<Key>>,
    recorder: Recorder,
}

/// Keeps the status of all budgets, for ever.
pub(crate) async fn run(api: Api, client: kube::Client, clock: Clock, seed: u64, mut pods: News<Pod>) {
    let query = Query::path("/apis/policy/v1/poddisruptionbudgets");
    let mut budgets: BoxStream<'static, Change<Arc<Budget>>> =
        soroi_watch::watch_map(client, clock.clone(), query, seed, Arc::<Budget>::new);
    let mut disruption = Disruption {
        clock: clock.clone(),
        budgets: Cache::default(),
        pods: Cache::default(),
        due: Due::default(),
        busy: BTreeSet::new(),
        flight: Flight::new(api, IN_FLIGHT),
        recorder: Recorder::new("controllermanager"),
    };
    loop {
        disruption.work();
        let wake = disruption.wake();
        tokio::select! {
            biased;
            Some(change) = budgets.next() => {
                for turn in disruption.budgets.apply(change) {
                    disruption.due.add(turn.key, clock.now());
                }
            }
            Some(change) = pods.recv() => {
                for turn in disruption.pods.apply(change) {
                    disruption.pod_turned(&turn);
                }
            }
            (key, outcome) = disruption.flight.next() => disruption.landed(key, &outcome),
            () = wait_until(&clock, wake) => {}
        }
    }
}

impl Disruption {
    fn ready(&self) -> bool {
        self.budgets.synced() && self.pods.synced() && self.flight.has_room()
    }

    fn wake(&self) -> Option<jiff::Timestamp> {
        self.due.next().filter(|_| self.ready())
    }

    /// A pod matters to the budgets that meant it or mean it now, if what they count has changed.
    fn pod_turned(&mut self, turn: &Turn<Pod>) {
        if counted(&turn.old) == counted(&turn.new) {
            return;
        }
        let now = self.clock.now();
        let either = |budget: &&Arc<Budget>| {
            let mut pods = [&turn.old, &turn.new].into_iter().flatten();
            pods.any(|pod| budget.covers(pod))
        };
        for budget in self.budgets.iter().filter(either) {
            self.due.add(budget.meta.key.clone(), now);
        }
    }

    fn work(&mut self) {
        while self.ready() {
            let Some(key) = self.due.pop(self.clock.now()) else { return };
            // Its answer will be followed by another look.
            if !self.busy.contains(&key) {
                self.look(&key);
            }
        }
    }

    fn look(&mut self, key: &Key) {
        let Some(budget) = self.budgets.get(key).cloned() else { return };
        let now = self.clock.now();
        let pods: Vec<&Arc<Pod>> = self.pods.iter().filter(|pod| budget.covers(pod)).collect();
        let counted = budget.count(&pods, now);
        for (level, reason, message) in &counted.said {
            let about = About { api_version: "policy/v1", kind: "PodDisruptionBudget", meta: &budget.meta };
            if let Some(event) = self.recorder.record(now, &about, *level, reason, message) {
                self.flight.push(None, event);
            }
        }
        for pod in &counted.not_deleted {
            let Key { namespace, .. } = key;
            // The namespace twice, as Kubernetes has it.
            let message =
                format!("Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't");
            let about = About::pod(&pod.meta);
            if let Some(event) = self.recorder.record(now, &about, Level::Warning, "NotDeleted", &message) {
                self.flight.push(None, event);
            }
        }
        if let Some(at) = counted.look_again {
            self.due.add(key.clone(), at);
        }
        if let Some(request) = budget.written(&counted.status) {
            self.busy.insert(key.clone());
            self.flight.push(Some(key.clone()), request);
        }
    }

    fn landed(&mut self, key: Option<Key>, outcome: &Outcome) {
        let Some(key) = key else { return };
        self.busy.remove(&key);
        let now = self.clock.now();
        match outcome {
            Outcome::Done(body) => {
                if let Some(budget) = crate::seen::read::<Budget>(body) {
                    self.budgets.wrote(budget);
                }
                // Pods may have changed while it was under way.
                self.due.add(key, now);
            }
            Outcome::Missing => {}
            Outcome::Conflict | Outcome::Refused { .. } | Outcome::Lost(_) => {
                self.due.add(key, after(now, RETRY));
            }
        }
    }
}

/// What budgets look at in a pod.
fn counted(pod: &Option<Arc<Pod>>) -> Option<(&BTreeMap<String, String>, bool, bool)> {
    pod.as_ref().map(|pod| (&pod.meta.labels, pod.ready(), pod.meta.deleting.is_some()))
}

#[cfg(test)]
mod tests;
