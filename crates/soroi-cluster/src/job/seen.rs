//! A Job, as its controller sees it. The pod template stays raw JSON: what this crate does not
//! know of a pod must reach the pod all the same.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{JobCondition, JobStatus, PodFailurePolicy, SuccessPolicy};
use serde::Deserialize;
use serde_json::Value;

use crate::cache::{Key, Seen};
use crate::seen::Meta;

/// The controller that we play (`spec.managedBy`).
const OURSELVES: &str = "kubernetes.io/job-controller";

/// One Job.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(crate) struct Job {
    pub(crate) meta: Meta,
    pub(crate) parallelism: i32,
    /// None: the first success ends it.
    pub(crate) completions: Option<i32>,
    pub(crate) mode: Mode,
    pub(crate) suspend: bool,
    pub(crate) backoff_limit: i32,
    pub(crate) backoff_limit_per_index: Option<i32>,
    pub(crate) max_failed_indexes: Option<i32>,
    /// Seconds that it may be active at a stretch.
    pub(crate) active_deadline: Option<i64>,
    /// Seconds that it stays after its end.
    pub(crate) ttl: Option<i64>,
    /// Somebody else looks after it.
    pub(crate) foreign: bool,
    /// Pods are replaced when they have failed, not when they are on their way out.
    pub(crate) replace_failed_only: bool,
    pub(crate) failure_policy: Option<PodFailurePolicy>,
    pub(crate) success_policy: Option<SuccessPolicy>,
    pub(crate) template: Value,
    pub(crate) status: JobStatus,
}

/// `spec.completionMode`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    NonIndexed,
    Indexed,
    Unknown,
}

impl Seen for Job {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Job {
    /// Where it lives in the API.
    pub(crate) fn path(&self) -> String {
        let Key { namespace, name } = &self.meta.key;
        format!("/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
    }

    pub(crate) fn indexed(&self) -> bool {
        self.mode == Mode::Indexed
    }

    /// How many indexes an Indexed Job has; 0 for others.
    pub(crate) fn indexes(&self) -> i32 {
        if self.indexed() { self.completions.unwrap_or(0) } else { 0 }
    }

    pub(crate) fn restarts_on_failure(&self) -> bool {
        self.template.pointer("/spec/restartPolicy").and_then(Value::as_str) == Some("OnFailure")
    }

    /// Since when it is complete or failed.
    pub(crate) fn finished(&self) -> Option<Timestamp> {
        let ended = ["Complete", "Failed"].iter().find_map(|kind| true_condition(&self.status, kind))?;
        Some(ended.last_transition_time.as_ref().map(|time| time.0).unwrap_or_default())
    }
}

/// The condition of that type, if it is True.
pub(crate) fn true_condition<'a>(status: &'a JobStatus, kind: &str) -> Option<&'a JobCondition> {
    let mut conditions = status.conditions.iter().flatten();
    conditions.find(|condition| condition.type_ == kind && condition.status == "True")
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
    #[serde(default)]
    spec: SpecWire,
    #[serde(default)]
    status: JobStatus,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecWire {
    parallelism: Option<i32>,
    completions: Option<i32>,
    completion_mode: Option<String>,
    suspend: Option<bool>,
    backoff_limit: Option<i32>,
    backoff_limit_per_index: Option<i32>,
    max_failed_indexes: Option<i32>,
    active_deadline_seconds: Option<i64>,
    ttl_seconds_after_finished: Option<i64>,
    managed_by: Option<String>,
    pod_replacement_policy: Option<String>,
    pod_failure_policy: Option<PodFailurePolicy>,
    success_policy: Option<SuccessPolicy>,
    template: Value,
}

impl From<Wire> for Job {
    fn from(Wire { metadata, spec, status }: Wire) -> Self {
        // The defaults are those of the API server (`pkg/apis/batch/v1/defaults.go`).
        let alone = spec.completions.is_none() && spec.parallelism.is_none();
        let backoff_default = if spec.backoff_limit_per_index.is_some() { i32::MAX } else { 6 };
        let replace_failed_only =
            spec.pod_failure_policy.is_some() || spec.pod_replacement_policy.as_deref() == Some("Failed");
        Self {
            meta: metadata,
            parallelism: spec.parallelism.unwrap_or(1),
            completions: if alone { Some(1) } else { spec.completions },
            mode: match spec.completion_mode.as_deref().unwrap_or("NonIndexed") {
                "NonIndexed" => Mode::NonIndexed,
                "Indexed" => Mode::Indexed,
                _ => Mode::Unknown,
            },
            suspend: spec.suspend.unwrap_or(false),
            backoff_limit: spec.backoff_limit.unwrap_or(backoff_default),
            backoff_limit_per_index: spec.backoff_limit_per_index,
            max_failed_indexes: spec.max_failed_indexes,
            active_deadline: spec.active_deadline_seconds,
            ttl: spec.ttl_seconds_after_finished,
            foreign: spec.managed_by.is_some_and(|manager| manager != OURSELVES),
            replace_failed_only,
            failure_policy: spec.pod_failure_policy,
            success_policy: spec.success_policy,
            template: spec.template,
            status,
        }
    }
}
