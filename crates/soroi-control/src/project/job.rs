//! What is written to a Job: release, suspension, and the way back.
//!
//! Every patch tests the Job's uid first: a Job that was created again under the same name is
//! another one. A test that fails makes the API server refuse the whole patch (422).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{PodSchedulingGate, PodTemplateSpec, Toleration};
use serde_json::{Value, json};
use soroi_api::kueue::{PodSetUpdate, ResourceFlavor};
use soroi_api::labels::{kubernetes as kubernetes_keys, kueue as keys, soroi as soroi_keys};
use soroi_api::syntax;
use soroi_engine::event;

use super::Steps;
use crate::intake::{Invalid, JobFacts};

/// What a Job gets when it starts.
#[derive(Clone, Debug, Default)]
pub struct Release<'a> {
    /// The uid of its gang; given where our scheduler must bind its pods (Unified,
    /// AfterAdmission). It becomes a label, at which pods are handed to our scheduler when they
    /// are created.
    pub gang: Option<&'a str>,
    /// The name of its Workload.
    pub workload: &'a str,
    /// The name of the pod set.
    pub pod_set: &'a str,
    /// The ClusterQueue that pays.
    pub cluster_queue: &'a str,
    /// The LocalQueue that it came through.
    pub local_queue: &'a str,
    /// The flavors that its pods use: their node labels become node selectors, and their
    /// tolerations are added.
    pub flavors: Vec<&'a ResourceFlavor>,
    /// What its admission checks add, for this pod set.
    pub updates: Vec<&'a PodSetUpdate>,
    /// How many pods it may run, if not as many as it asks for (Kueue, partial admission).
    pub pods: Option<u32>,
    /// Its pods wait for a topology domain (TopologyOnly with a Topology).
    pub topology_gate: bool,
}

/// Starts a Job: one patch, as the API server demands it, that sets `suspend: false` and injects
/// what [`Release`] says into the template of its Workload's pod set. Give it only while
/// [`JobFacts::template_mutable`]; it tests that the Job still is suspended.
///
/// # Errors
/// [`Invalid`] on a node label or update that contradicts what the template says.
pub fn release(
    job: &JobFacts,
    template: &PodTemplateSpec,
    release: &Release<'_>,
) -> Result<json_patch::Patch, Invalid> {
    let mut template = template.clone();
    inject(&mut template, release)?;
    let mut steps = set_template(on(job).test("/spec/suspend", true), job, &template);
    for (field, count) in size(job, release.pods) {
        steps = steps.set(&format!("/spec/{field}"), count);
    }
    Ok(steps.set("/spec/suspend", false).patch())
}

/// The fields of a Job's specification that say how many pods it runs, for another number of them.
fn size(job: &JobFacts, pods: Option<u32>) -> impl Iterator<Item = (&'static str, u32)> {
    let fields: &[&str] =
        if job.completions_follow { &["parallelism", "completions"] } else { &["parallelism"] };
    pods.into_iter().flat_map(|pods| fields.iter().map(move |field| (*field, pods)))
}

/// The same as a merge patch (RFC 7386) of the Job at `version`, whose template selects nodes by
/// `selector`; `None` when more of the template would have to be known, because a list in it grows
/// or a value in it would change. Give it only while the template is that of the Workload's pod set,
/// and [`JobFacts::template_mutable`]: the version tells the API server that it still is.
pub fn release_at_once(
    job: &JobFacts,
    version: &str,
    selector: &event::Labels,
    release: &Release<'_>,
) -> Option<Value> {
    let mut added = PodTemplateSpec::default();
    inject(&mut added, release).ok()?;
    let (meta, spec) = (added.metadata.unwrap_or_default(), added.spec.unwrap_or_default());
    let nodes = spec.node_selector.unwrap_or_default();
    let agrees =
        |(key, value): (&String, &String)| selector.get(key.as_str()).is_none_or(|there| **there == **value);
    let grows = spec.tolerations.is_some() || spec.scheduling_gates.is_some();
    if grows || !release.updates.is_empty() || !nodes.iter().all(agrees) {
        return None;
    }
    let mut patch = json!({
        "metadata": { "uid": &*job.uid, "resourceVersion": version },
        "spec": {
            "suspend": false,
            "template": {
                "metadata": { "labels": meta.labels, "annotations": meta.annotations },
                "spec": { "nodeSelector": nodes },
            },
        },
    });
    for (field, count) in size(job, release.pods) {
        patch["spec"][field] = count.into();
    }
    Some(patch)
}

/// Stops a Job: its controller deletes the pods, and does not count them as failed.
pub fn suspend(job: &JobFacts) -> json_patch::Patch {
    on(job).set("/spec/suspend", true).patch()
}

/// Ends the suspension of a Job whose controller makes no pods any more.
pub fn resume(job: &JobFacts) -> json_patch::Patch {
    on(job).test("/spec/suspend", true).set("/spec/suspend", false).patch()
}

/// Takes back what the release did: the template becomes that of the Workload's pod set again, exactly, and
/// where fewer pods may do, there are as many as that asks for. (A Job whose parallelism was above its
/// completions gets these for both, as with Kueue.) Give it only while [`JobFacts::template_mutable`].
pub fn restore(job: &JobFacts, template: &PodTemplateSpec, pods: u32) -> json_patch::Patch {
    let mut steps = set_template(on(job).test("/spec/suspend", true), job, template);
    let reduced = job.min_parallelism.is_some() && job.pods() != pods;
    for (field, count) in size(job, reduced.then_some(pods)) {
        steps = steps.set(&format!("/spec/{field}"), count);
    }
    steps.patch()
}

/// Clears `status.startTime` (a merge patch for the status subresource): Kubernetes 1.34 and 1.35
/// let a template change only while it is empty.
pub fn clear_start_time() -> Value {
    json!({"status": {"startTime": null}})
}

fn on(job: &JobFacts) -> Steps {
    Steps::default().test("/metadata/uid", &*job.uid)
}

/// Replaces whole values, so that nothing must be known of what stands there now.
fn set_template(steps: Steps, job: &JobFacts, template: &PodTemplateSpec) -> Steps {
    let mut meta = template.metadata.clone().unwrap_or_default();
    if !job.manual_selector {
        let labels = meta.labels.get_or_insert_default();
        for key in [kubernetes_keys::JOB_NAME, kubernetes_keys::JOB_NAME_LEGACY] {
            labels.insert(key.into(), job.name.to_string());
        }
        for key in [kubernetes_keys::CONTROLLER_UID, kubernetes_keys::CONTROLLER_UID_LEGACY] {
            labels.insert(key.into(), job.uid.to_string());
        }
    }
    let spec = template.spec.clone().unwrap_or_default();
    steps
        .set_or_remove("/spec/template/metadata", json!(meta))
        .set_or_remove("/spec/template/spec/nodeSelector", json!(spec.node_selector))
        .set_or_remove("/spec/template/spec/tolerations", json!(spec.tolerations))
        .set_or_remove("/spec/template/spec/schedulingGates", json!(spec.scheduling_gates))
}

fn inject(template: &mut PodTemplateSpec, release: &Release<'_>) -> Result<(), Invalid> {
    let meta = template.metadata.get_or_insert_default();
    let labels = meta.labels.get_or_insert_default();
    let annotations = meta.annotations.get_or_insert_default();
    let spec = template.spec.get_or_insert_default();
    for update in &release.updates {
        merge(labels, &update.labels, "metadata.labels")?;
        merge(annotations, &update.annotations, "metadata.annotations")?;
        merge(spec.node_selector.get_or_insert_default(), &update.node_selector, "spec.nodeSelector")?;
        add_tolerations(&mut spec.tolerations, &update.tolerations);
    }
    let mut flavors: Vec<&ResourceFlavor> = Vec::new();
    for flavor in &release.flavors {
        if !flavors.iter().any(|known| known.metadata.name == flavor.metadata.name) {
            flavors.push(flavor);
        }
    }
    for flavor in flavors {
        let selector = spec.node_selector.get_or_insert_default();
        merge(selector, &flavor.spec.node_labels, "spec.nodeSelector")?;
        add_tolerations(&mut spec.tolerations, &flavor.spec.tolerations);
    }
    let marks = [
        (keys::PODSET, Some(release.pod_set)),
        (keys::CLUSTER_QUEUE_NAME, Some(release.cluster_queue)),
        (keys::LOCAL_QUEUE_NAME, Some(release.local_queue)),
        (soroi_keys::GANG, release.gang),
    ];
    for (key, value) in marks {
        // A queue's name may be too long for a label, which is left out then.
        if let Some(value) = value.filter(|value| !value.is_empty() && syntax::is_label_value(value)) {
            labels.insert(key.into(), value.into());
        }
    }
    annotations.insert(keys::WORKLOAD.into(), release.workload.into());
    if release.topology_gate {
        let asked = [
            keys::PODSET_REQUIRED_TOPOLOGY,
            keys::PODSET_PREFERRED_TOPOLOGY,
            keys::PODSET_UNCONSTRAINED_TOPOLOGY,
        ];
        if !asked.iter().any(|key| annotations.contains_key(*key)) {
            annotations.insert(keys::PODSET_UNCONSTRAINED_TOPOLOGY.into(), "true".into());
        }
        let gates = spec.scheduling_gates.get_or_insert_default();
        if !gates.iter().any(|gate| gate.name == keys::GATE_TOPOLOGY) {
            gates.push(PodSchedulingGate { name: keys::GATE_TOPOLOGY.into() });
        }
    }
    Ok(())
}

/// Adds entries; one that stands there with another value is a contradiction.
fn merge(
    into: &mut BTreeMap<String, String>,
    from: &BTreeMap<String, String>,
    field: &str,
) -> Result<(), Invalid> {
    for (key, value) in from {
        let there = into.entry(key.clone()).or_insert_with(|| value.clone());
        if there != value {
            let problem = format!("\"{there}\" contradicts \"{value}\"");
            return Err(Invalid::new(format!("template.{field}[{key}]"), problem));
        }
    }
    Ok(())
}

fn add_tolerations(into: &mut Option<Vec<Toleration>>, from: &[Toleration]) {
    for toleration in from {
        let list = into.get_or_insert_default();
        if !list.contains(toleration) {
            list.push(toleration.clone());
        }
    }
}

#[cfg(test)]
mod tests;
