//! Jobs: defaults, the generated selector, validation, and when the template may change.
//!
//! Kubernetes 1.36, `pkg/apis/batch` and `pkg/registry/batch/job`.

use serde_json::{Value, json};

use crate::builtin::pod::{check as pod_check, defaults as pod_defaults};
use crate::builtin::{PLAIN, Rules};
use crate::object::{self, set_default};
use crate::select::LabelSelector;
use crate::status::FieldError;

mod change;

pub(crate) const RULES: Rules =
    Rules { generation: true, defaults, create, check, check_update: change::check, check_status, ..PLAIN };

fn defaults(job: &mut Value) {
    pod_defaults::template(job);
    let indexed_limit = object::at(job, &["spec", "backoffLimitPerIndex"]).is_some();
    let failure_policy = object::at(job, &["spec", "podFailurePolicy"]).is_some();
    let spec = object::ensure(job, &["spec"]);
    if spec.get("completions").is_none() && spec.get("parallelism").is_none() {
        spec.insert("completions".into(), 1.into());
    }
    set_default(spec, "parallelism", 1);
    set_default(spec, "backoffLimit", if indexed_limit { i32::MAX } else { 6 });
    set_default(spec, "completionMode", "NonIndexed");
    set_default(spec, "suspend", false);
    set_default(spec, "manualSelector", false);
    set_default(spec, "podReplacementPolicy", if failure_policy { "Failed" } else { "TerminatingOrFailed" });
}

const UID_LABEL: &str = "batch.kubernetes.io/controller-uid";
const NAME_LABEL: &str = "batch.kubernetes.io/job-name";

/// Makes a selector for the Job's own pods, unless the author manages that.
fn create(job: &mut Value) {
    let (uid, name) = (object::meta(job, "uid").to_owned(), object::meta(job, "name").to_owned());
    if !object::flag(job, &["spec", "manualSelector"]) {
        let labels = object::ensure(job, &["spec", "template", "metadata", "labels"]);
        for (key, value) in
            [("job-name", &name), (NAME_LABEL, &name), ("controller-uid", &uid), (UID_LABEL, &uid)]
        {
            set_default(labels, key, value.as_str());
        }
        set_default(object::ensure(job, &["spec", "selector", "matchLabels"]), UID_LABEL, uid);
    }
    // Read back, a Job without labels shows those of its template.
    if object::labels(job).is_none_or(serde_json::Map::is_empty) {
        let labels = object::at(job, &["spec", "template", "metadata", "labels"]).cloned();
        object::put(object::meta_mut(job), "labels", labels);
    }
}

fn check(job: &Value) -> Vec<FieldError> {
    let Some(spec) = job.get("spec") else { return vec![FieldError::required("spec", "")] };
    let mut errors = Vec::new();
    for key in [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ] {
        if let Some(number) = object::number(spec, &[key]).filter(|n| *n < 0) {
            let field = format!("spec.{key}");
            errors.push(FieldError::invalid(&field, number, "must be greater than or equal to 0"));
        }
    }
    check_mode(spec, &mut errors);
    let template = spec.get("template").unwrap_or(&Value::Null);
    errors.extend(pod_check::template(template, "spec.template"));
    match object::text(template, &["spec", "restartPolicy"]) {
        "OnFailure" | "Never" => {}
        "" | "Always" => errors.push(FieldError::required(
            "spec.template.spec.restartPolicy",
            "valid values: \"OnFailure\", \"Never\"",
        )),
        other => errors.push(FieldError::not_supported(
            "spec.template.spec.restartPolicy",
            other,
            &["OnFailure", "Never"],
        )),
    }
    check_selector(job, spec, template, &mut errors);
    errors
}

fn check_mode(spec: &Value, errors: &mut Vec<FieldError>) {
    let mode = object::text(spec, &["completionMode"]);
    let indexed = mode == "Indexed";
    if !matches!(mode, "Indexed" | "NonIndexed") {
        errors.push(FieldError::not_supported("spec.completionMode", mode, &["NonIndexed", "Indexed"]));
    }
    if indexed && object::at(spec, &["completions"]).is_none() {
        errors.push(FieldError::required("spec.completions", "when completion mode is Indexed"));
    }
    if indexed && object::number(spec, &["parallelism"]).is_some_and(|p| p > 100_000) {
        let parallelism = object::number(spec, &["parallelism"]).unwrap_or(0);
        let why = "must be less than or equal to 100000 when completion mode is Indexed";
        errors.push(FieldError::invalid("spec.parallelism", parallelism, why));
    }
    let per_index = object::at(spec, &["backoffLimitPerIndex"]);
    if let Some(limit) = per_index.filter(|_| !indexed) {
        errors.push(FieldError::invalid(
            "spec.backoffLimitPerIndex",
            limit.clone(),
            "requires indexed completion mode",
        ));
    }
    if per_index.is_none() && object::at(spec, &["maxFailedIndexes"]).is_some() {
        errors.push(FieldError::required("spec.backoffLimitPerIndex", "when maxFailedIndexes is specified"));
    }
    let policy = object::text(spec, &["podReplacementPolicy"]);
    if !matches!(policy, "TerminatingOrFailed" | "Failed") {
        let supported = ["Failed", "TerminatingOrFailed"];
        errors.push(FieldError::not_supported("spec.podReplacementPolicy", policy, &supported));
    } else if policy != "Failed" && object::at(spec, &["podFailurePolicy"]).is_some() {
        errors.push(FieldError::not_supported("spec.podReplacementPolicy", policy, &["Failed"]));
    }
}

fn check_selector(job: &Value, spec: &Value, template: &Value, errors: &mut Vec<FieldError>) {
    let Some(selector) = object::at(spec, &["selector"]) else {
        errors.push(FieldError::required("spec.selector", ""));
        return;
    };
    let labels = object::map(template, &["metadata", "labels"]);
    let parsed = LabelSelector::from_object(selector);
    if !object::flag(spec, &["manualSelector"]) {
        check_generated(job, selector, parsed.as_ref(), labels, errors);
    }
    if parsed.as_ref().is_none_or(|s| !s.matches(labels)) {
        let shown = labels.cloned().unwrap_or_default();
        let why = "`selector` does not match template `labels`";
        errors.push(FieldError::invalid("spec.template.metadata.labels", shown, why));
    }
}

/// The selector and the labels that the server itself gives a Job.
fn check_generated(
    job: &Value,
    selector: &Value,
    parsed: Option<&LabelSelector>,
    labels: Option<&object::Fields>,
    errors: &mut Vec<FieldError>,
) {
    let (uid, name) = (object::meta(job, "uid"), object::meta(job, "name"));
    for (key, value) in [(UID_LABEL, uid), (NAME_LABEL, name)] {
        let field = format!("spec.template.metadata.labels[{key}]");
        match labels.and_then(|l| l.get(key)).and_then(Value::as_str) {
            None => errors.push(FieldError::required(&field, format!("must be '{value}'"))),
            Some(found) if found != value => {
                errors.push(FieldError::invalid(&field, found, format!("must be '{value}'")));
            }
            Some(_) => {}
        }
    }
    let own = json!({ UID_LABEL: uid, NAME_LABEL: name, "controller-uid": uid, "job-name": name });
    if parsed.is_some_and(|s| !s.matches(own.as_object())) {
        errors.push(FieldError::invalid("spec.selector", selector.clone(), "`selector` not auto-generated"));
    }
}

fn check_status(job: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for key in ["active", "succeeded", "failed", "terminating", "ready"] {
        if let Some(number) = object::number(job, &["status", key]).filter(|n| *n < 0) {
            let field = format!("status.{key}");
            errors.push(FieldError::invalid(&field, number, "must be greater than or equal to 0"));
        }
    }
    let finished = |kind: &str| has_condition(job, kind);
    if is_finished(job) && !is_finished(old) {
        errors.extend(check_end(job));
    }
    if finished("Complete") && finished("Failed") {
        let shown = object::at(job, &["status", "conditions"]).cloned().unwrap_or_default();
        let why = "cannot set Complete=True and Failed=true conditions";
        errors.push(FieldError::invalid("status.conditions", shown, why));
    }
    errors
}

fn has_condition(job: &Value, kind: &str) -> bool {
    object::list(job, &["status", "conditions"])
        .iter()
        .any(|c| object::text(c, &["type"]) == kind && object::text(c, &["status"]) == "True")
}

fn is_finished(job: &Value) -> bool {
    has_condition(job, "Complete") || has_condition(job, "Failed")
}

/// What a Job must be that ends now (`ValidateJobStatus`).
fn check_end(job: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (end, before) in [("Failed", "FailureTarget"), ("Complete", "SuccessCriteriaMet")] {
        if has_condition(job, end) && !has_condition(job, before) {
            let shown = object::at(job, &["status", "conditions"]).cloned().unwrap_or_default();
            let why = format!("cannot set {end}=True condition without the {before}=true condition");
            errors.push(FieldError::invalid("status.conditions", shown, why));
        }
    }
    if let Some(active) = object::number(job, &["status", "active"]).filter(|active| *active > 0) {
        errors.push(FieldError::invalid("status.active", active, "active>0 is invalid for finished job"));
    }
    if object::at(job, &["status", "startTime"]).is_none() {
        errors.push(FieldError::required("status.startTime", "startTime is required for finished job"));
    }
    let uncounted = |list| !object::list(job, &["status", "uncountedTerminatedPods", list]).is_empty();
    if uncounted("succeeded") || uncounted("failed") {
        let shown = object::at(job, &["status", "uncountedTerminatedPods"]).cloned().unwrap_or_default();
        let why = "uncountedTerminatedPods needs to be empty for finished job";
        errors.push(FieldError::invalid("status.uncountedTerminatedPods", shown, why));
    }
    errors
}

#[cfg(test)]
mod tests;
