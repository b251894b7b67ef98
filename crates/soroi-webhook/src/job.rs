//! Jobs with a queue: created suspended, and with settings that can be carried out.
//!
//! The rules are those of Kueue's Job webhook (0.18, `pkg/controller/jobs/job`). A Job without the
//! queue-name label is none of our business, unless its namespace has a default queue: it gets that.

use serde_json::Value;
use soroi_api::labels::{kubernetes, kueue as keys};
use soroi_api::syntax::{SUBDOMAIN_WORDS, is_subdomain};

use crate::DEFAULT_QUEUE;
use crate::field::Findings;
use crate::json::{annotation, items, label, text};
use crate::topology;

/// Kinds, each after its API group, that get a Workload of their own: what they create is paid for
/// by them.
pub const MANAGED_KINDS: [(&str, &str); 3] =
    [("batch", "Job"), (soroi_api::kueue::GROUP, "Workload"), (soroi_api::volcano::GROUP, "PodGroup")];

/// Gives a Job that names no queue the default one, if there is one, and suspends a managed Job that
/// is created running: it starts when it is admitted.
pub(crate) fn default(job: &Value, default_queue: bool) -> Option<Value> {
    let unnamed = default_queue && wants_queue(job);
    let runs = job["spec"]["suspend"] != true;
    if !job["spec"].is_object() || !(unnamed || (is_managed(job) && runs)) {
        return None;
    }
    let mut job = job.clone();
    if unnamed {
        job["metadata"]["labels"][keys::QUEUE_NAME] = DEFAULT_QUEUE.into();
    }
    job["spec"]["suspend"] = true.into();
    Some(job)
}

/// It would be managed if it had a queue. (Labels that are no map are the API server's to refuse.)
pub(crate) fn wants_queue(job: &Value) -> bool {
    let labels = &job["metadata"]["labels"];
    label(job, keys::QUEUE_NAME).is_none() && (labels.is_object() || labels.is_null()) && can_be_managed(job)
}

/// It has a queue, and nobody else manages it.
fn is_managed(job: &Value) -> bool {
    label(job, keys::QUEUE_NAME).is_some() && can_be_managed(job)
}

/// It runs under Kubernetes' own controller, and no owner of it is managed instead.
fn can_be_managed(job: &Value) -> bool {
    let own_controller = match text(&job["spec"]["managedBy"]) {
        None => true,
        Some(controller) => controller == kubernetes::JOB_CONTROLLER,
    };
    own_controller && !has_managed_owner(job)
}

fn has_managed_owner(job: &Value) -> bool {
    items(&job["metadata"]["ownerReferences"]).iter().filter(|owner| owner["controller"] == true).any(
        |owner| {
            let api_version = owner["apiVersion"].as_str().unwrap_or_default();
            let group = api_version.split_once('/').map_or("", |(group, _)| group);
            MANAGED_KINDS.iter().any(|(managed, kind)| group == *managed && owner["kind"] == *kind)
        },
    )
}

pub(crate) fn state(job: &Value, before: Option<&Value>, findings: &mut Findings) {
    if is_managed(job) {
        labels(job, findings);
        min_parallelism(job, before, findings);
        completions_follow(job, findings);
        let template = &job["spec"]["template"];
        // A release may start it with fewer pods than it asked for.
        let pods = before.map_or(0, pods).max(pods(job));
        let in_group = crate::pod::GROUP_KEYS.iter().any(|key| annotation(template, key).is_some());
        topology::of_template(template, pods, !in_group, findings);
    }
}

pub(crate) fn change(new: &Value, old: &Value, findings: &mut Findings) {
    let running = new["spec"]["suspend"] != true;
    if running && (is_managed(new) || is_managed(old)) {
        queue_is_kept(new, old, findings);
        parallelism_is_kept(new, old, findings);
    }
}

fn label_path(key: &str) -> String {
    format!("metadata.labels[{key}]")
}

/// Quota is held in the queue that the Job was admitted through. Suspending it first, or in the
/// same request, gives the quota back.
fn queue_is_kept(new: &Value, old: &Value, findings: &mut Findings) {
    for key in [keys::QUEUE_NAME, keys::PREBUILT_WORKLOAD_NAME] {
        if label(new, key) != label(old, key) {
            findings.forbidden(label_path(key), "is immutable while the job is not suspended");
        }
    }
}

fn labels(job: &Value, findings: &mut Findings) {
    for key in [keys::QUEUE_NAME, keys::PRIORITY_CLASS, keys::PREBUILT_WORKLOAD_NAME] {
        if let Some(name) = label(job, key).filter(|name| !is_subdomain(name)) {
            findings.invalid(label_path(key), &name.into(), SUBDOMAIN_WORDS);
        }
    }
    if let Some(seconds) = label(job, keys::MAX_EXEC_TIME_SECONDS)
        && seconds.parse::<i32>().map_or(true, |seconds| seconds < 1)
    {
        let field = label_path(keys::MAX_EXEC_TIME_SECONDS);
        findings.invalid(field, &seconds.into(), "must be a number of seconds of at least 1");
    }
}

fn pods(job: &Value) -> i64 {
    job["spec"]["completions"].as_i64().map_or(parallelism(job), |all| all.min(parallelism(job)))
}

fn parallelism(job: &Value) -> i64 {
    job["spec"]["parallelism"].as_i64().unwrap_or(1)
}

/// Judged when it is said (Kueue: when the Job is created). Later the Job may run with as few pods as that.
fn min_parallelism(job: &Value, before: Option<&Value>, findings: &mut Findings) {
    let Some(minimum) = annotation(job, keys::JOB_MIN_PARALLELISM) else { return };
    if before.is_some_and(|before| annotation(before, keys::JOB_MIN_PARALLELISM) == Some(minimum)) {
        return;
    }
    let most = parallelism(job) - 1;
    if !minimum.parse::<i64>().is_ok_and(|minimum| (1..=most).contains(&minimum)) {
        let field = format!("metadata.annotations[{}]", keys::JOB_MIN_PARALLELISM);
        let words = if most < 1 {
            "needs a parallelism of at least 2".to_owned()
        } else {
            format!("must be a number from 1 to {most}, less than the parallelism")
        };
        findings.invalid(field, &minimum.into(), words);
    }
}

/// Completions that follow the parallelism can be changed by an Indexed Job alone, and only together with it
/// (Kubernetes 1.36, `batch/v1` validation).
fn completions_follow(job: &Value, findings: &mut Findings) {
    const TRUE: [&str; 6] = ["1", "t", "T", "TRUE", "true", "True"];
    const FALSE: [&str; 6] = ["0", "f", "F", "FALSE", "false", "False"];
    let Some(follow) = annotation(job, keys::JOB_COMPLETIONS_EQUAL_PARALLELISM) else { return };
    let field = format!("metadata.annotations[{}]", keys::JOB_COMPLETIONS_EQUAL_PARALLELISM);
    if !TRUE.contains(&follow) {
        if !FALSE.contains(&follow) {
            findings.invalid(field, &follow.into(), "must be true or false");
        }
        return;
    }
    if job["spec"]["completionMode"] != "Indexed" {
        findings.invalid(field, &follow.into(), "must not be true for a job that is not Indexed");
    } else if job["spec"]["completions"].as_i64().unwrap_or(1) != parallelism(job) {
        let completions = &job["spec"]["completions"];
        findings.invalid("spec.completions", completions, format!("must equal the parallelism with {field}"));
    }
}

/// A Job that may run with fewer pods was given a number of them; it is not the user's while it runs.
fn parallelism_is_kept(new: &Value, old: &Value, findings: &mut Findings) {
    let partial = annotation(old, keys::JOB_MIN_PARALLELISM).is_some();
    // The release itself sets both in one request: there the job was suspended before.
    let ran = old["spec"]["suspend"] != true;
    if partial && ran && parallelism(new) != parallelism(old) {
        findings.forbidden(
            "spec.parallelism",
            format!("is immutable while the job is not suspended and has {}", keys::JOB_MIN_PARALLELISM),
        );
    }
}

#[cfg(test)]
mod tests;
