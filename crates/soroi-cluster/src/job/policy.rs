//! What does a failed or succeeded pod mean? Pod failure policies and success policies.
//!
//! Source: `pod_failure_policy.go` and `success_policy.go` in `pkg/controller/job`, Kubernetes 1.36.

use k8s_openapi::api::batch::v1::{PodFailurePolicyOnExitCodesRequirement, PodFailurePolicyRule};

use super::index::Indexes;
use super::seen::Job;
use crate::seen::{Phase, Pod, State, Status};

/// What the failure policy says of a failed pod.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It counts.
    Count,
    /// It does not count.
    Ignore,
    /// Its index has failed, whatever its limit.
    FailIndex,
    /// The whole Job has failed, with this message.
    FailJob(String),
}

/// Whether a pod counts as failed: also while it is on its way out, unless the Job waits for the
/// end of its pods before it replaces them.
pub(crate) fn failed(pod: &Pod, job: &Job) -> bool {
    pod.phase == Phase::Failed
        || (!job.replace_failed_only && pod.meta.deleting.is_some() && pod.phase != Phase::Succeeded)
}

/// The first rule that matches decides; without one the failure counts.
pub(crate) fn verdict(job: &Job, pod: &Pod) -> Verdict {
    let rules = job.failure_policy.iter().flat_map(|policy| policy.rules.iter()).enumerate();
    for (number, rule) in rules {
        let Some(why) = matches(rule, pod) else { continue };
        match rule.action.as_str() {
            "Ignore" => return Verdict::Ignore,
            "FailIndex" => return Verdict::FailIndex,
            "Count" => return Verdict::Count,
            "FailJob" => {
                return Verdict::FailJob(format!("{why} matching FailJob rule at index {number}"));
            }
            _ => {}
        }
    }
    Verdict::Count
}

/// How the pod matches the rule, as the Job's message says it.
fn matches(rule: &PodFailurePolicyRule, pod: &Pod) -> Option<String> {
    let key = &pod.meta.key;
    if let Some(wanted) = &rule.on_exit_codes {
        let mut all = pod.statuses.iter().chain(&pod.init_statuses);
        let (name, exit) = all.find_map(|status| exited_as(status, wanted))?;
        return Some(format!("Container {name} for pod {key} failed with exit code {exit}"));
    }
    let patterns = rule.on_pod_conditions.iter().flatten();
    let mut met = patterns.filter(|pattern| {
        pod.condition(&pattern.type_).is_some_and(|met| Some(&met.status) == pattern.status.as_ref())
    });
    met.next().map(|pattern| format!("Pod {key} has condition {}", pattern.type_))
}

fn exited_as<'a>(
    status: &'a Status,
    wanted: &PodFailurePolicyOnExitCodesRequirement,
) -> Option<(&'a str, i32)> {
    let State::Ended { exit, .. } = status.state else { return None };
    let named = wanted.container_name.as_ref().is_none_or(|name| *name == status.name);
    let listed = wanted.values.contains(&exit);
    let matched = match wanted.operator.as_str() {
        "In" => listed,
        "NotIn" => !listed,
        _ => false,
    };
    (exit != 0 && named && matched).then_some((status.name.as_str(), exit))
}

/// The message of the first rule of the success policy that the succeeded indexes meet.
pub(crate) fn success(job: &Job, succeeded: &Indexes) -> Option<String> {
    if succeeded.is_empty() {
        return None;
    }
    let rules = job.success_policy.iter().flat_map(|policy| policy.rules.iter()).enumerate();
    for (number, rule) in rules {
        let enough = |count: i32| rule.succeeded_count.is_some_and(|wanted| count >= wanted);
        let met = match &rule.succeeded_indexes {
            None => enough(succeeded.total()),
            Some(text) => {
                let wanted = Indexes::parse(text, job.indexes());
                let there = wanted.overlap(succeeded);
                !wanted.is_empty() && (there == wanted.total() || enough(there))
            }
        };
        if met {
            return Some(format!("Matched rules at index {number}"));
        }
    }
    None
}
