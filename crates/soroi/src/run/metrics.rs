//! What is counted, under Kueue's names where the meaning is the same, else under `soroi_`.
//!
//! Knows names, labels and units. Is told by the control loop and asked by whoever scrapes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::{Registry, Unit};
use soroi_control::observe::Observer;
use soroi_engine::Decision;
use soroi_engine::decision::ClusterQueueStatus;
use soroi_engine::event::{GangId, Millis, Name};
use soroi_engine::reason::UndoReason;

type Real = Gauge<f64, AtomicU64>;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Queue {
    cluster_queue: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueState {
    cluster_queue: String,
    status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Preempting {
    preempting_cluster_queue: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct QueueReason {
    cluster_queue: String,
    reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Quota {
    cluster_queue: String,
    flavor: String,
    resource: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Made {
    decision: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    call: &'static str,
    answer: &'static str,
}

/// Everything that is counted, and the few states that readiness follows from.
#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pending: Family<QueueState, Gauge>,
    reserving: Family<Queue, Gauge>,
    admitted: Family<Queue, Gauge>,
    active: Family<QueueState, Gauge>,
    usage: Family<Quota, Real>,
    reserved: Family<Queue, Counter>,
    evicted: Family<QueueReason, Counter>,
    preempted: Family<Preempting, Counter>,
    decisions: Family<Made, Counter>,
    requests: Family<Asked, Counter>,
    reviews: Family<Asked, Counter>,
    deciding: Histogram,
    leader: Gauge,
    epoch: Gauge,
    admission: Gauge,
    /// The ClusterQueue that pays for each gang that was admitted since we lead.
    paid: Mutex<BTreeMap<GangId, Name>>,
    /// What each queue was seen to use, so that what is not used any more is not shown.
    used: Mutex<BTreeMap<Name, Vec<Quota>>>,
    prepared: AtomicBool,
    decides: AtomicBool,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut metrics = Self {
            registry: Registry::default(),
            pending: Family::default(),
            reserving: Family::default(),
            admitted: Family::default(),
            active: Family::default(),
            usage: Family::default(),
            reserved: Family::default(),
            evicted: Family::default(),
            preempted: Family::default(),
            decisions: Family::default(),
            requests: Family::default(),
            reviews: Family::default(),
            // From a tenth of a millisecond to three seconds.
            deciding: Histogram::new(exponential_buckets(0.0001, 2.0, 16)),
            leader: Gauge::default(),
            epoch: Gauge::default(),
            admission: Gauge::default(),
            paid: Mutex::default(),
            used: Mutex::default(),
            prepared: AtomicBool::new(false),
            decides: AtomicBool::new(false),
        };
        metrics.register();
        metrics
    }
}

impl Metrics {
    fn register(&mut self) {
        let kueue = self.registry.sub_registry_with_prefix("kueue");
        kueue.register("pending_workloads", "Waiting workloads, per ClusterQueue", self.pending.clone());
        let help = "Workloads that hold quota and are not finished, per ClusterQueue";
        kueue.register("reserving_active_workloads", help, self.reserving.clone());
        let help = "Workloads that are admitted and not finished, per ClusterQueue";
        kueue.register("admitted_active_workloads", help, self.admitted.clone());
        let help = "1 for the state that a ClusterQueue is in: pending (it admits nothing) or active";
        kueue.register("cluster_queue_status", help, self.active.clone());
        let help = "Quota in use, in cores, bytes and pieces";
        kueue.register("cluster_queue_resource_usage", help, self.usage.clone());
        let help = "Workloads that got quota, per ClusterQueue";
        kueue.register("quota_reserved_workloads", help, self.reserved.clone());
        let help = "Workloads that lost their quota after they had started, per ClusterQueue and reason";
        kueue.register("evicted_workloads", help, self.evicted.clone());
        let help = "Workloads that had to stop for others of this ClusterQueue";
        kueue.register("preempted_workloads", help, self.preempted.clone());
        let soroi = self.registry.sub_registry_with_prefix("soroi");
        let help = "What was decided: admit, place, bind, settled, undo, pending";
        soroi.register("decisions", help, self.decisions.clone());
        let help = "Requests of the control loop by what was asked and what came of it";
        soroi.register("requests", help, self.requests.clone());
        let help = "Requests to our webhooks by what was asked and what came of it";
        soroi.register("webhook_requests", help, self.reviews.clone());
        let help = "How long it took to decide what can be decided";
        soroi.register_with_unit("deciding", help, Unit::Seconds, self.deciding.clone());
        soroi.register("leader", "1 while this replica leads", self.leader.clone());
        soroi.register("leader_epoch", "The epoch of this replica's last term", self.epoch.clone());
        let help = "1 while pods of a release are known to get our scheduler";
        soroi.register("admission_works", help, self.admission.clone());
        let build = Info::new(vec![("version", env!("CARGO_PKG_VERSION"))]);
        soroi.register("build", "What is running", build);
    }

    /// All of it as OpenMetrics text.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// What the cluster needs is in place.
    pub(crate) fn prepared(&self) {
        self.prepared.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_prepared(&self) -> bool {
        self.prepared.load(Ordering::Relaxed)
    }

    /// Everything was read, and decisions are made.
    pub(crate) fn decides(&self) -> bool {
        self.decides.load(Ordering::Relaxed)
    }

    pub(crate) fn leads(&self, epoch: i64) {
        self.leader.set(1);
        self.epoch.set(epoch);
    }

    /// What only a leader knows is not shown any more.
    pub(crate) fn follows(&self) {
        self.leader.set(0);
        self.decides.store(false, Ordering::Relaxed);
        self.pending.clear();
        self.reserving.clear();
        self.admitted.clear();
        self.active.clear();
        self.usage.clear();
        locked(&self.paid).clear();
        locked(&self.used).clear();
    }

    /// A webhook was asked.
    pub(crate) fn reviewed(&self, call: &'static str, answer: &'static str) {
        self.reviews.get_or_create(&Asked { call, answer }).inc();
    }

    pub(crate) fn admission_works(&self, works: bool) {
        self.admission.set(works.into());
    }

    fn show_usage(&self, status: &ClusterQueueStatus) {
        let quota = |one: &soroi_engine::decision::FlavorUsage| Quota {
            cluster_queue: status.name.to_string(),
            flavor: one.flavor.to_string(),
            resource: one.resource.to_string(),
        };
        let shown: Vec<Quota> = status.admitted_usage.iter().map(quota).collect();
        for one in &status.admitted_usage {
            // The engine counts cpu in thousandths.
            #[allow(clippy::cast_precision_loss, reason = "a gauge is for people")]
            let total = one.total as f64 / if &*one.resource == "cpu" { 1000.0 } else { 1.0 };
            self.usage.get_or_create(&quota(one)).set(total);
        }
        let before = locked(&self.used).insert(status.name.clone(), shown.clone());
        for gone in before.into_iter().flatten().filter(|one| !shown.contains(one)) {
            self.usage.remove(&gone);
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observer for Metrics {
    fn cycle(&self, took: Millis) {
        self.decides.store(true, Ordering::Relaxed);
        #[allow(clippy::cast_precision_loss, reason = "far below 2^52 ms")]
        self.deciding.observe(took as f64 / 1000.0);
    }

    fn decided(&self, decision: &Decision) {
        let made = match decision {
            Decision::Admit(admission) => {
                if let Some(queue) = &admission.cluster_queue {
                    self.reserved.get_or_create(&Queue { cluster_queue: queue.to_string() }).inc();
                    locked(&self.paid).insert(admission.gang.clone(), queue.clone());
                }
                "admit"
            }
            Decision::Place(_) => "place",
            Decision::Hold { .. } => "hold",
            Decision::HoldEnded(_) => "holdEnded",
            Decision::Bind { .. } => "bind",
            Decision::Settled(_) => "settled",
            Decision::Undo { gang, reason, started } => {
                if let UndoReason::Preempted(preempted) = reason {
                    let queue = preempted.by_path.rsplit('/').next().unwrap_or_default().to_owned();
                    let (reason, _) = soroi_control::project::status::cause_words(preempted.cause);
                    let labels = Preempting { preempting_cluster_queue: queue, reason: reason.to_owned() };
                    self.preempted.get_or_create(&labels).inc();
                }
                if let Some(queue) = locked(&self.paid).remove(gang).filter(|_| *started) {
                    let (reason, _) = soroi_control::project::status::undo_words(reason, "", "");
                    let labels = QueueReason { cluster_queue: queue.to_string(), reason: reason.to_owned() };
                    self.evicted.get_or_create(&labels).inc();
                }
                "undo"
            }
            Decision::Pending { .. } => "pending",
        };
        self.decisions.get_or_create(&Made { decision: made }).inc();
    }

    fn answered(&self, call: &'static str, answer: &'static str) {
        self.requests.get_or_create(&Asked { call, answer }).inc();
    }

    fn cluster_queue(&self, status: &ClusterQueueStatus) {
        let cluster_queue = status.name.to_string();
        let queue = Queue { cluster_queue: cluster_queue.clone() };
        // What does not fit is decided again on every change that could help it, and so is active, unless
        // its queue admits nothing.
        let works = status.inactive.is_none();
        for (state, here) in [("active", works), ("inadmissible", !works)] {
            let labels = QueueState { cluster_queue: cluster_queue.clone(), status: state };
            self.pending.get_or_create(&labels).set(if here { status.pending.into() } else { 0 });
        }
        self.reserving.get_or_create(&queue).set(status.reserving.into());
        self.admitted.get_or_create(&queue).set(status.admitted.into());
        for (state, holds) in [("active", works), ("pending", !works)] {
            let labels = QueueState { cluster_queue: cluster_queue.clone(), status: state };
            self.active.get_or_create(&labels).set(holds.into());
        }
        self.show_usage(status);
    }

    fn cluster_queue_gone(&self, name: &Name) {
        let cluster_queue = name.to_string();
        let queue = Queue { cluster_queue: cluster_queue.clone() };
        self.reserving.remove(&queue);
        self.admitted.remove(&queue);
        for status in ["active", "inadmissible", "pending"] {
            let labels = QueueState { cluster_queue: cluster_queue.clone(), status };
            self.pending.remove(&labels);
            self.active.remove(&labels);
        }
        for gone in locked(&self.used).remove(name).into_iter().flatten() {
            self.usage.remove(&gone);
        }
    }
}

#[cfg(test)]
mod tests;
