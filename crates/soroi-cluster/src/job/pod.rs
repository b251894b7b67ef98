//! What does a Job's pod look like? The template, with what ties the pod to its Job.

use serde_json::{Map, Value, json};

use super::decide::{self, FAILURES, IGNORED_FAILURES, TRACKING, View};
use super::index::COMPLETION_INDEX;
use super::seen::Job;
use crate::seen::Pod;
use crate::write::Request;

/// The API server completes `generateName` with five characters, to at most 63.
const GENERATED_MAX: usize = 58;

/// The pod that `job` makes next, for this index if it is Indexed.
pub(crate) fn body(job: &Job, index: Option<i32>, view: &View) -> Value {
    let name = &job.meta.key.name;
    let mut metadata = job.template.get("metadata").cloned().filter(Value::is_object).unwrap_or(json!({}));
    let mut spec = job.template.get("spec").cloned().filter(Value::is_object).unwrap_or(json!({}));
    let labels = object(&mut metadata["labels"]);
    // The API server puts them into the template when the Job is created, unless told not to.
    for (key, value) in [
        ("job-name", name),
        ("batch.kubernetes.io/job-name", name),
        ("controller-uid", &job.meta.uid),
        ("batch.kubernetes.io/controller-uid", &job.meta.uid),
    ] {
        labels.entry(key).or_insert_with(|| value.as_str().into());
    }
    let mut prefix = format!("{name}-");
    if let Some(index) = index {
        let text = index.to_string();
        labels.insert(COMPLETION_INDEX.into(), text.clone().into());
        let annotations = object(&mut metadata["annotations"]);
        annotations.insert(COMPLETION_INDEX.into(), text.into());
        if job.backoff_limit_per_index.is_some() {
            let replaced = view.kept.get(&index).map(AsRef::as_ref);
            let (failures, ignored) = decide::inherited(job, replaced);
            annotations.insert(FAILURES.into(), failures.to_string().into());
            if ignored > 0 {
                annotations.insert(IGNORED_FAILURES.into(), ignored.to_string().into());
            }
        }
        let end = format!("-{index}-");
        let kept = name.get(..GENERATED_MAX.saturating_sub(end.len()).min(name.len())).unwrap_or(name);
        prefix = format!("{kept}{end}");
        spec["hostname"] = format!("{name}-{index}").into();
        tell_index(&mut spec);
    }
    metadata["generateName"] = prefix.into();
    metadata["namespace"] = job.meta.key.namespace.clone().into();
    let finalizers = metadata["finalizers"].as_array().cloned().unwrap_or_default();
    let finalizers = finalizers.into_iter().filter(|finalizer| finalizer != TRACKING);
    metadata["finalizers"] = finalizers.chain([TRACKING.into()]).collect();
    metadata["ownerReferences"] = json!([{
        "apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": job.meta.uid,
        "controller": true, "blockOwnerDeletion": true,
    }]);
    json!({ "apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec })
}

fn object(value: &mut Value) -> &mut Map<String, Value> {
    if !value.is_object() {
        *value = json!({});
    }
    value.as_object_mut().expect("it has just been made one")
}

/// Tells every container its index, unless it is told otherwise already.
fn tell_index(spec: &mut Value) {
    let variable = json!({
        "name": "JOB_COMPLETION_INDEX",
        "valueFrom": { "fieldRef": { "fieldPath": format!("metadata.labels['{COMPLETION_INDEX}']") } },
    });
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let mut variables = container["env"].as_array().cloned().unwrap_or_default();
            if variables.iter().all(|other| other["name"] != variable["name"]) {
                variables.push(variable.clone());
                container["env"] = variables.into();
            }
        }
    }
}

/// Takes the tracking finalizer away, whatever else happens to the pod meanwhile.
pub(crate) fn untrack(pod: &Pod) -> Request {
    Request::without_finalizer(pod.path(), &pod.meta, TRACKING)
}
