//! How long pods may take to be ready, in the words of Kueue (0.18, `waitForPodsReady`).

use std::time::Duration;

use anyhow::ensure;
use serde::Deserialize;
use soroi_control::config as control;

use super::{duration, millis, some_duration};

/// Left out, pods may take as long as they like.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct WaitForPodsReady {
    /// How long after its admission all pods of a Workload have to be ready.
    #[serde(deserialize_with = "duration")]
    timeout: Duration,
    /// How long after one is not any more; `0s`: no matter. The same as `timeout` if left out.
    #[serde(default, deserialize_with = "some_duration")]
    recovery_timeout: Option<Duration>,
    /// Nobody is admitted while pods of somebody else who is are not ready.
    #[serde(default)]
    pub(crate) block_admission: bool,
    /// How a Workload is put back whose pods were not ready in time.
    #[serde(default)]
    requeuing_strategy: RequeuingStrategy,
}

/// As in Kueue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct RequeuingStrategy {
    /// Which time says where in the queue.
    timestamp: Timestamp,
    /// How often at most; then it is deactivated. Left out: always.
    backoff_limit_count: Option<u32>,
    /// The first pause; doubles each time.
    backoff_base_seconds: u32,
    /// The longest one.
    backoff_max_seconds: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Timestamp {
    /// That of the eviction: behind all who came before that.
    Eviction,
    /// That of its creation: where it was.
    Creation,
}

impl Default for RequeuingStrategy {
    /// Kueue's own.
    fn default() -> Self {
        Self {
            timestamp: Timestamp::Eviction,
            backoff_limit_count: None,
            backoff_base_seconds: 60,
            backoff_max_seconds: 3_600,
        }
    }
}

impl WaitForPodsReady {
    /// What the control side is told.
    pub(super) fn rules(&self) -> control::WaitForPodsReady {
        let recovery = self.recovery_timeout.unwrap_or(self.timeout);
        let strategy = &self.requeuing_strategy;
        control::WaitForPodsReady {
            timeout: millis(self.timeout),
            recovery_timeout: (!recovery.is_zero()).then(|| millis(recovery)),
            requeuing: control::Requeuing {
                to_the_back: strategy.timestamp == Timestamp::Eviction,
                limit: strategy.backoff_limit_count,
                base_secs: strategy.backoff_base_seconds,
                max_secs: strategy.backoff_max_seconds,
            },
        }
    }

    /// Kueue's own rule (`validateWaitForPodsReady`); what else it asks for is said by types here.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        ensure!(!self.timeout.is_zero(), "waitForPodsReady.timeout: must be longer than nothing");
        Ok(())
    }
}
