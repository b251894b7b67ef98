//! How long objects stay that nobody needs any more, in the words of Kueue (0.18, `objectRetentionPolicies`).

use std::time::Duration;

use serde::Deserialize;
use soroi_control::config::Retention;

use super::{millis, some_duration};

/// As in Kueue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct ObjectRetentionPolicies {
    /// Of Workloads.
    workloads: Workloads,
}

/// Left out, they stay until somebody deletes them; `0s`: not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Workloads {
    /// From their end on.
    #[serde(deserialize_with = "some_duration")]
    after_finished: Option<Duration>,
    /// From their deactivation on, unless that was their user's: with their Jobs.
    #[serde(deserialize_with = "some_duration")]
    after_deactivated_by_kueue: Option<Duration>,
}

impl ObjectRetentionPolicies {
    /// What the control side is told.
    pub(super) fn retention(&self) -> Retention {
        Retention {
            after_finished: self.workloads.after_finished.map(millis),
            after_deactivated: self.workloads.after_deactivated_by_kueue.map(millis),
        }
    }
}
