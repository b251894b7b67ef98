//! What the control side is told before it starts.

use soroi_engine::decision::Settings;

/// How the control side behaves. Everything has a default that suits a real cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Policies and time-outs of decisions.
    pub settings: Settings,
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
}

impl Default for Config {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            epoch: 1,
            serve_volcano: true,
            instance: "soroi-0".into(),
            seed: 0,
            writes_in_flight: 64,
            request_timeout_ms: 10_000,
            reason_refresh_ms: 5_000,
            refreshes_per_second: 50,
        }
    }
}
