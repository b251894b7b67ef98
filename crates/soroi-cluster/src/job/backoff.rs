//! When may a failed pod be replaced? Ten seconds after the failure, doubling with each more.
//!
//! Source: `pkg/controller/job/backoff_utils.go`, Kubernetes 1.36.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::seen::{Pod, State, Status};

const WAIT: Duration = Duration::from_secs(10);
const WAIT_MAX: Duration = Duration::from_secs(600);

/// The failures of a Job since its last success.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Record {
    failures: u32,
    last: Option<Timestamp>,
}

impl Record {
    /// The record after these pods have newly succeeded and failed.
    pub(crate) fn after(self, succeeded: &[&Pod], failed: &[&Pod]) -> Self {
        let mut failures: Vec<Timestamp> = failed.iter().map(|pod| finished(pod)).collect();
        failures.sort();
        let success = succeeded.iter().map(|pod| finished(pod)).max();
        let (before, counted) = match success {
            None => (self, failures),
            Some(success) => {
                let later = failures.into_iter().filter(|failure| *failure > success);
                (Self::default(), later.collect())
            }
        };
        let count = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        Self {
            failures: before.failures.saturating_add(count),
            last: counted.last().copied().or(before.last),
        }
    }

    /// How long a replacement has to wait yet.
    pub(crate) fn remaining(self, now: Timestamp) -> Duration {
        self.last.map_or(Duration::ZERO, |last| remaining(self.failures, last, now))
    }
}

/// How long to wait yet after so many failures, the last of them at `last`.
pub(crate) fn remaining(failures: u32, last: Timestamp, now: Timestamp) -> Duration {
    if failures == 0 {
        return Duration::ZERO;
    }
    let whole = WAIT.saturating_mul(1 << (failures - 1).min(16)).min(WAIT_MAX);
    let passed = now.duration_since(last);
    let whole = SignedDuration::try_from(whole).unwrap_or(SignedDuration::MAX);
    Duration::try_from(whole.saturating_sub(passed)).unwrap_or(Duration::ZERO)
}

/// When a pod came to its end, as well as can be told.
pub(crate) fn finished(pod: &Pod) -> Timestamp {
    let not_ready = || {
        let ready = pod.condition("Ready").filter(|ready| ready.status == "False")?;
        ready.last_transition_time.as_ref().map(|time| time.0)
    };
    let told_to_go = || {
        let grace = SignedDuration::from_secs(pod.meta.grace.unwrap_or(0));
        pod.meta.deleting?.checked_sub(grace).ok()
    };
    containers_finished(&pod.statuses).or_else(not_ready).or_else(told_to_go).unwrap_or(pod.meta.created)
}

/// When the last container ended, if all have.
fn containers_finished(statuses: &[Status]) -> Option<Timestamp> {
    let ends: Option<Vec<Timestamp>> = statuses
        .iter()
        .map(|status| match status.state {
            State::Ended { at, .. } => at,
            State::Waiting | State::Running { .. } => None,
        })
        .collect();
    ends?.into_iter().max()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn ended(second: i64) -> Pod {
        let finished = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(at(second));
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "p" },
            "status": { "containerStatuses": [
                { "name": "c", "state": { "terminated": { "exitCode": 1, "finishedAt": finished } } }
            ] },
        }))
        .unwrap()
    }

    #[test]
    fn waits_double_until_something_succeeds() {
        let (one, two, three) = (ended(100), ended(120), ended(130));
        let record = Record::default().after(&[], &[&one]);
        assert_eq!(record.remaining(at(100)).as_secs(), 10);
        assert_eq!(record.remaining(at(111)).as_secs(), 0);
        let record = record.after(&[], &[&three, &two]);
        assert_eq!(record.remaining(at(130)).as_secs(), 40);
        // A success forgives what was before it, not what came after.
        let record = record.after(&[&two], &[&one, &three]);
        assert_eq!(record.remaining(at(130)).as_secs(), 10);
        assert_eq!(remaining(30, at(0), at(0)).as_secs(), 600);
    }
}
