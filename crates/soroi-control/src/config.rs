//! What the control side is told before it starts.

pub use crate::project::dialect::Dialect;
use soroi_engine::decision::Settings;
use soroi_engine::event::Millis;

use crate::intake::charge::Charging;

/// How the control side behaves. Everything has a default that suits a real cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Policies and time-outs of decisions.
    pub settings: Settings,
    /// What pods charge to quota.
    pub charging: Charging,
    /// How long Workloads stay that nobody needs any more.
    pub retention: Retention,
    /// Which leadership this is: written into every GangPlan and onto every pod that is bound, so
    /// that what an earlier leader did can be told from what this one does.
    pub epoch: i64,
    /// Pods with `schedulerName: volcano` are ours too. Only while no Volcano scheduler runs.
    pub serve_volcano: bool,
    /// Who speaks in events (`reportingInstance`).
    pub instance: String,
    /// Spreads retries; the same seed gives the same run on a simulated clock.
    pub seed: u64,
    /// Requests under way at once, over all gangs. Enough to keep an API server busy (a bare bind
    /// loop saturates one with about 50), few enough to leave it room for others.
    pub writes_in_flight: usize,
    /// How long one request may take before its outcome counts as unknown, in milliseconds.
    pub request_timeout_ms: u64,
    /// How often at most the numbers in one gang's reason are refreshed, in milliseconds. Its kind
    /// is shown at once.
    pub reason_refresh_ms: i64,
    /// Status writes that only refresh numbers, per second, over all gangs.
    pub refreshes_per_second: u32,
    /// How long pods may take to be ready; `None`: as long as they like.
    pub wait_for_pods_ready: Option<WaitForPodsReady>,
    /// Whose reasons conditions and events of Workloads have.
    pub dialect: Dialect,
}

/// How long Workloads stay that nobody needs any more, in milliseconds; `None`: until somebody deletes them
/// (Kueue, `objectRetentionPolicies.workloads`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// After they ended.
    pub after_finished: Option<Millis>,
    /// After they were deactivated, but not by their user: with their Jobs. Those of no Job stay.
    pub after_deactivated: Option<Millis>,
}

/// How long the pods of an admitted Workload may take to be ready, and what becomes of it if they take longer
/// (Kueue, `waitForPodsReady`; its `blockAdmission` is [`Settings::block_admission`]).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitForPodsReady {
    /// How long after the admission all of them have to be ready, in milliseconds.
    pub timeout: Millis,
    /// How long after one that was ready is not any more, in milliseconds; `None`: no matter.
    pub recovery_timeout: Option<Millis>,
    /// How a Workload is put back whose pods were not.
    pub requeuing: Requeuing,
}

/// How a Workload is put back that was evicted because its pods were not ready (Kueue, `requeuingStrategy`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requeuing {
    /// Behind those that came after it (Kueue's timestamp `Eviction`), or where it was (`Creation`).
    pub to_the_back: bool,
    /// How often at most; then it is deactivated. `None`: always.
    pub limit: Option<u32>,
    /// The pause after the first time, in seconds; it doubles each time.
    pub base_secs: u32,
    /// The longest pause, in seconds.
    pub max_secs: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            charging: Charging::default(),
            retention: Retention::default(),
            epoch: 1,
            serve_volcano: true,
            instance: "soroi-0".into(),
            seed: 0,
            writes_in_flight: 64,
            request_timeout_ms: 10_000,
            reason_refresh_ms: 5_000,
            refreshes_per_second: 50,
            wait_for_pods_ready: None,
            dialect: Dialect::default(),
        }
    }
}
