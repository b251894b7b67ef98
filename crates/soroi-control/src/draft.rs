//! Writes whose content has to be read first.
//!
//! Facts are small on purpose, so what a write needs of a whole object (a pod template) is read
//! when it is needed. The read and the write are one step to whoever asked for it.

use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde::de::DeserializeOwned;
use serde_json::json;
use soroi_api::kueue::{PodSetUpdate, ResourceFlavor, Workload};
use soroi_api::volcano::PodGroup;
use soroi_engine::event::Name;

use crate::call::{Answer, Api, Call, Refusal};
use crate::intake::group::GroupPodSet;
use crate::intake::{Invalid, JobFacts};
use crate::jobs::podgroup;
use crate::kind::{Kind, Target};
use crate::parsed::Context;
use crate::project;

/// A write that is made of an object as it is when its turn comes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Draft {
    /// The Workload of a Job.
    CreateWorkload {
        /// The Job.
        job: Target,
    },
    /// The Workload again as its Job has it now.
    MatchWorkload {
        /// The Job.
        job: Target,
    },
    /// The priority of the Workload as its Job's class has it now; all else stays.
    Reclassify {
        /// The Job.
        job: Target,
    },
    /// The Workload of a PodGroup's pods, new or again as they are now.
    GroupWorkload {
        /// The PodGroup.
        group: Target,
        /// The LocalQueue.
        queue: Name,
        /// Its kinds of pods, each with one of them.
        sets: Vec<(GroupPodSet, Target)>,
    },
    /// What a group took in after its start, for its Workload.
    GrownWorkload {
        /// Kinds of pods that are new, each with one of them.
        new: Vec<(GroupPodSet, Target)>,
        /// Pod sets that have more pods: their names and counts.
        larger: Vec<(Name, u32)>,
    },
    /// The PodGroup that is made for a pod without one.
    GroupOfPod {
        /// The pod.
        pod: Target,
    },
    /// The release of a Job.
    Release(Box<Release>),
    /// The Job's template as its Workload has it.
    Restore {
        /// The Job, as last seen.
        job: Box<JobFacts>,
        /// Its Workload.
        workload: Target,
    },
}

/// What a Job gets when it starts, and where its template is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Release {
    /// The patch, where nothing has to be read for it.
    pub(crate) at_once: Option<serde_json::Value>,
    pub(crate) job: JobFacts,
    pub(crate) workload: Target,
    /// The gang, where our scheduler binds.
    pub(crate) gang: Option<String>,
    /// The pod set in the Workload.
    pub(crate) pod_set: String,
    pub(crate) cluster_queue: String,
    pub(crate) local_queue: String,
    pub(crate) flavors: Vec<ResourceFlavor>,
    /// How many pods, if not as many as it asks for.
    pub(crate) pods: Option<u32>,
    pub(crate) topology_gate: bool,
}

impl Release {
    /// What is injected, with these updates of admission checks.
    pub(crate) fn content<'a>(&'a self, updates: Vec<&'a PodSetUpdate>) -> project::job::Release<'a> {
        project::job::Release {
            gang: self.gang.as_deref(),
            workload: &self.workload.name,
            pod_set: &self.pod_set,
            cluster_queue: &self.cluster_queue,
            local_queue: &self.local_queue,
            flavors: self.flavors.iter().collect(),
            updates,
            pods: self.pods,
            topology_gate: self.topology_gate,
        }
    }
}

/// Reads what the draft needs and makes the write of it, or says what stood in the way.
pub(crate) async fn prepare(
    api: &Api,
    context: &Context,
    target: &Target,
    draft: &Draft,
) -> Result<Call, Answer> {
    match draft {
        Draft::CreateWorkload { job } => {
            let workload = workload_of(api, context, job).await?;
            Ok(Call::Create(json!(workload)))
        }
        Draft::MatchWorkload { job } => {
            let now: Workload = read(api, target).await?;
            Ok(matched(&now, workload_of(api, context, job).await?))
        }
        Draft::Reclassify { job } => {
            let now: Workload = read(api, target).await?;
            let wanted = workload_of(api, context, job).await?.spec;
            let spec = json!({ "priority": wanted.priority, "priorityClassRef": wanted.priority_class_ref });
            let version = &now.metadata.resource_version;
            Ok(Call::Merge(json!({ "metadata": { "resourceVersion": version }, "spec": spec })))
        }
        Draft::GroupWorkload { group, queue, sets } => {
            let group: PodGroup = read(api, group).await?;
            let mut examples = Vec::new();
            for (set, pod) in sets {
                examples.push((set.clone(), read::<Pod>(api, pod).await?));
            }
            let pairs: Vec<_> = examples.iter().map(|(set, pod)| (set.clone(), pod)).collect();
            let wanted = {
                let defaults = context.defaults.read().unwrap_or_else(std::sync::PoisonError::into_inner);
                project::workload::of_group(&group, &pairs, queue, &defaults).map_err(invalid)?
            };
            match api.send(target, &Call::Read).await {
                Answer::Missing => Ok(Call::Create(json!(wanted))),
                Answer::Object(json) => Ok(matched(&decode(target, &json)?, wanted)),
                other => Err(other),
            }
        }
        Draft::GrownWorkload { new, larger } => {
            let workload: Workload = read(api, target).await?;
            let there = &workload.spec.pod_sets;
            let mut steps = project::Steps::default()
                .test("/metadata/resourceVersion", json!(workload.metadata.resource_version));
            for (name, count) in larger {
                if let Some(at) = there.iter().position(|set| *set.name == **name) {
                    steps = steps.set(&format!("/spec/podSets/{at}/count"), *count);
                }
            }
            for (set, pod) in new.iter().filter(|(set, _)| there.iter().all(|there| *there.name != *set.name))
            {
                let pod: Pod = read(api, pod).await?;
                let pod_set = project::workload::pod_set_of_group(set, &pod).map_err(invalid)?;
                steps = steps.set("/spec/podSets/-", json!(pod_set));
            }
            Ok(Call::Json(steps.patch()))
        }
        Draft::GroupOfPod { pod } => {
            let pod: Pod = read(api, pod).await?;
            let owners = pod.metadata.owner_references.iter().flatten();
            let job = owners.into_iter().find(|one| one.controller == Some(true) && one.kind == "Job");
            let owner = match job {
                Some(job) => {
                    let namespace = Name::from(pod.metadata.namespace.as_deref().unwrap_or_default());
                    let job = Target::new(Kind::Job, &namespace, &job.name.as_str().into());
                    Some(read::<serde_json::Value>(api, &job).await?)
                }
                None => None,
            };
            Ok(Call::Create(podgroup::group_of_pod(&pod, owner.as_ref())))
        }
        Draft::Release(release) => {
            if let Some(patch) = &release.at_once {
                return Ok(Call::Merge(patch.clone()));
            }
            let workload: Workload = read(api, &release.workload).await?;
            let template = template(&workload, &release.pod_set)?;
            let updates: Vec<&PodSetUpdate> = workload
                .status
                .iter()
                .flat_map(|status| &status.admission_checks)
                .flat_map(|check| &check.pod_set_updates)
                .filter(|update| update.name == release.pod_set)
                .collect();
            let content = release.content(updates);
            project::job::release(&release.job, template, &content).map(Call::Json).map_err(invalid)
        }
        Draft::Restore { job, workload } => {
            let workload: Workload = read(api, workload).await?;
            let Some(set) = workload.spec.pod_sets.first() else { return Err(no_pod_set("")) };
            Ok(Call::Json(project::job::restore(job, &set.template, u32::try_from(set.count).unwrap_or(0))))
        }
    }
}

/// The patch that makes a Workload what it should be. What its user set on it stays; what its Job no
/// longer says goes, for a merge patch leaves alone what it does not name.
fn matched(now: &Workload, mut wanted: Workload) -> Call {
    wanted.spec.active = now.spec.active;
    let mut spec = json!(wanted.spec);
    if let (Some(spec), Some(there)) = (spec.as_object_mut(), json!(now.spec).as_object()) {
        for field in there.keys().filter(|field| !spec.contains_key(*field)).cloned().collect::<Vec<_>>() {
            spec.insert(field, serde_json::Value::Null);
        }
    }
    Call::Merge(json!({ "metadata": { "resourceVersion": now.metadata.resource_version }, "spec": spec }))
}

async fn workload_of(api: &Api, context: &Context, job: &Target) -> Result<Workload, Answer> {
    let job: Job = read(api, job).await?;
    let defaults = context.defaults.read().unwrap_or_else(std::sync::PoisonError::into_inner);
    project::workload::of_job(&job, &defaults).map_err(invalid)
}

fn template<'a>(
    workload: &'a Workload,
    pod_set: &str,
) -> Result<&'a k8s_openapi::api::core::v1::PodTemplateSpec, Answer> {
    let found = workload.spec.pod_sets.iter().find(|set| set.name == pod_set);
    found.map(|set| &set.template).ok_or_else(|| no_pod_set(pod_set))
}

fn no_pod_set(name: &str) -> Answer {
    invalid(Invalid::new("spec.podSets", format!("there is no pod set \"{name}\"")))
}

async fn read<T: DeserializeOwned>(api: &Api, target: &Target) -> Result<T, Answer> {
    match api.send(target, &Call::Read).await {
        Answer::Object(json) => decode(target, &json),
        // Not the target of the write is missing, but what it is made of.
        Answer::Missing => Err(refused(409, "Conflict", format!("{target} is gone"))),
        other => Err(other),
    }
}

fn decode<T: DeserializeOwned>(target: &Target, json: &str) -> Result<T, Answer> {
    serde_json::from_str(json).map_err(|error| invalid(Invalid::new(target.to_string(), error)))
}

fn invalid(invalid: Invalid) -> Answer {
    refused(422, "Invalid", invalid.to_string())
}

fn refused(code: u16, reason: &str, message: String) -> Answer {
    Answer::Refused(Refusal { code, reason: reason.into(), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_no_longer_says_goes() {
        let workload = |spec| -> Workload {
            let json = json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload",
                "metadata": { "name": "job-train", "resourceVersion": "7" }, "spec": spec,
            });
            serde_json::from_value(json).unwrap()
        };
        let class = json!({ "group": "kueue.x-k8s.io", "kind": "WorkloadPriorityClass", "name": "high" });
        let now = workload(json!({
            "queueName": "main", "priority": 100, "priorityClassRef": class,
            "maximumExecutionTimeSeconds": 60, "active": false, "podSets": [],
        }));
        let wanted = workload(json!({ "queueName": "main", "priority": 0, "active": true, "podSets": [] }));
        let Call::Merge(patch) = matched(&now, wanted) else { panic!("it is a merge patch") };
        let gone = ["priorityClassRef", "maximumExecutionTimeSeconds"];
        assert!(
            gone.iter().all(|field| patch["spec"].get(field) == Some(&serde_json::Value::Null)),
            "{patch}"
        );
        assert_eq!((&patch["spec"]["queueName"], &patch["spec"]["active"]), (&json!("main"), &json!(false)));
        assert_eq!(patch["metadata"]["resourceVersion"], "7");
    }
}
