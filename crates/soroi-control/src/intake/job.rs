//! What does a Job want, and how far is it?

use std::sync::Arc;

use k8s_openapi::api::batch::v1::{Job, JobCondition};
use k8s_openapi::api::core::v1::{PodSpec, PodTemplateSpec};
use sha1::{Digest, Sha1};
use soroi_api::labels::{kubernetes as kubernetes_keys, kueue as kueue_keys, volcano as volcano_keys};
use soroi_engine::event::{Millis, Name, TopologyRequest};

use super::{Invalid, millis, pod, some_name, topology};

/// What is worth remembering of a Job: below a kilobyte, its template only as a digest.
#[derive(Clone, Debug, PartialEq)]
pub struct JobFacts {
    /// Its uid.
    pub uid: Name,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The LocalQueue that its label names, unless another than Kubernetes' own controller runs it
    /// (`spec.managedBy`); with one it is ours to manage.
    pub queue: Option<Name>,
    /// The WorkloadPriorityClass that its label names.
    pub priority_class: Option<Name>,
    /// The PriorityClass that its template names.
    pub pod_priority_class: Option<Name>,
    /// The PodGroup that its template names: its gang is that of the group.
    pub group: Option<Name>,
    /// The role in that group that its template names.
    pub role: Option<Name>,
    /// The scheduler that its template names.
    pub scheduler: Name,
    /// Gates that others keep closed (`kueue.x-k8s.io/admission-gated-by`).
    pub gated_by: Option<Name>,
    /// `spec.suspend`: what was asked of the Job controller.
    pub suspend: bool,
    /// `Suspended=True` in its status: what the Job controller did.
    pub suspended: bool,
    /// Pods that are not terminal, by its status.
    pub active: u32,
    /// Pods that are ready, by its status, and those that ended well but are not counted yet.
    pub ready: u32,
    /// Pods that ended well.
    pub succeeded: u32,
    /// Indexes that failed for good.
    pub failed_indexes: u32,
    /// `spec.parallelism`.
    pub parallelism: u32,
    /// `spec.completions`; `None`: a work queue that ends with its first success.
    pub completions: Option<u32>,
    /// How few pods still are worth starting (`kueue.x-k8s.io/job-min-parallelism`).
    pub min_parallelism: Option<u32>,
    /// Started with fewer pods, it has as many completions (`kueue.x-k8s.io/job-completions-equal-parallelism`).
    pub completions_follow: bool,
    /// It is as good as ended: its controller has found that it failed or succeeded (`FailureTarget`,
    /// `SuccessCriteriaMet`), and deletes what still runs of it.
    pub ending: bool,
    /// How it ended.
    pub finished: Option<Finished>,
    /// `status.startTime`.
    pub started_at: Option<Millis>,
    /// It has a deletion timestamp.
    pub terminating_itself: bool,
    /// Its selector is its user's own, so its template carries no generated labels.
    pub manual_selector: bool,
    /// Where its pods must be relative to each other.
    pub topology: TopologyRequest,
    /// Tells whether its template still is what its Workload was made of: [`digest`] of
    /// [`pod_set_template`]. Meaningful while it is suspended and not released.
    pub template_digest: [u8; 20],
    /// What could not be understood or honoured. No Workload can be made of such a Job.
    pub invalid: Option<Invalid>,
}

/// How a Job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finished {
    /// Complete, as opposed to Failed.
    pub succeeded: bool,
    /// The message of its condition.
    pub message: Name,
    /// When.
    pub at: Millis,
}

impl JobFacts {
    /// How many pods its Workload asks for: `min(parallelism, completions)`, as Kueue counts.
    pub fn pods(&self) -> u32 {
        self.completions.map_or(self.parallelism, |completions| completions.min(self.parallelism))
    }

    /// How many pods should run from now on: at most what still has to be completed. A work queue
    /// starts no new ones after its first success (`batch/v1` Job controller).
    pub fn pods_left(&self) -> u32 {
        if self.completions.is_none() && self.succeeded > 0 {
            return self.active.min(self.parallelism);
        }
        let done = self.succeeded.saturating_add(self.failed_indexes);
        self.completions
            .map_or(self.parallelism, |completions| completions.saturating_sub(done).min(self.parallelism))
    }

    /// With how few pods it would do, if that is fewer than it asks for.
    pub fn least(&self) -> Option<u32> {
        self.min_parallelism.filter(|least| *least < self.pods()).map(|least| least.max(1))
    }

    /// Whether it may be started with fewer pods. Where its completions would follow, what has been completed
    /// would be counted against the new number of them.
    pub fn may_be_reduced(&self) -> bool {
        self.min_parallelism.is_some() && !(self.completions_follow && self.succeeded > 0)
    }

    /// The API server of Kubernetes 1.36 would accept a change of the template now: suspended on
    /// both sides, and no pod active. (1.34 and 1.35 also want [`Self::started_at`] to be empty.)
    pub fn template_mutable(&self) -> bool {
        self.suspend && self.suspended && self.active == 0
    }

    /// All its pods are ready or have ended well (Kueue's PodsReady).
    pub fn pods_ready(&self) -> bool {
        self.succeeded.saturating_add(self.ready) >= self.pods()
    }
}

/// A Job, managed or not.
///
/// # Errors
/// [`Invalid`] on `metadata.uid`, `metadata.name` or `spec` when they are missing; all else that is
/// wrong is in [`JobFacts::invalid`], so that such a Job still can be followed and explained.
pub fn job(job: &Job) -> Result<JobFacts, Invalid> {
    let meta = &job.metadata;
    let uid = some_name(meta.uid.as_ref()).ok_or_else(|| Invalid::new("metadata.uid", "is missing"))?;
    let name = some_name(meta.name.as_ref()).ok_or_else(|| Invalid::new("metadata.name", "is missing"))?;
    let spec = job.spec.as_ref().ok_or_else(|| Invalid::new("spec", "is missing"))?;
    let empty = PodSpec::default();
    let pod_spec = spec.template.spec.as_ref().unwrap_or(&empty);
    let status = job.status.as_ref();
    let label = |key: &str| some_name(meta.labels.as_ref().and_then(|labels| labels.get(key)));
    let annotation = |key: &str| some_name(meta.annotations.as_ref().and_then(|all| all.get(key)));
    let count = |of: fn(&k8s_openapi::api::batch::v1::JobStatus) -> Option<i32>| {
        u32::try_from(status.and_then(of).unwrap_or(0)).unwrap_or(0)
    };
    let template_meta = spec.template.metadata.as_ref().and_then(|meta| meta.annotations.as_ref());
    let group = [volcano_keys::GROUP_NAME, volcano_keys::GROUP_NAME_VOLCANO]
        .into_iter()
        .find_map(|key| some_name(template_meta.and_then(|all| all.get(key))));
    let failed_indexes = status.and_then(|status| status.failed_indexes.as_deref()).unwrap_or_default();
    let mut wrong = Wrong(None);
    let parallelism = wrong.note(number("spec.parallelism", spec.parallelism));
    let completions = wrong.note(number("spec.completions", spec.completions));
    let min_parallelism = annotation(kueue_keys::JOB_MIN_PARALLELISM)
        .map(|text| text.parse().map_err(|_| not_a_number(kueue_keys::JOB_MIN_PARALLELISM, &text)));
    let min_parallelism = wrong.note(min_parallelism.transpose());
    let near = topology::of_annotations(template_meta);
    let topology = wrong.note(near.map_err(|e| e.within("spec.template.metadata")));
    let queue = label(kueue_keys::QUEUE_NAME).filter(|_| runs_here(spec.managed_by.as_deref()));
    // A Job with a queue has a Workload of its own, also where its pods join a PodGroup.
    if topology.group.is_some() && (group.is_none() || queue.is_some()) {
        let field = format!("spec.template.metadata.annotations[{}]", kueue_keys::PODSET_GROUP_NAME);
        wrong.note::<()>(Err(Invalid::new(field, "a group has exactly 2 pod sets, and a Job has 1")));
    }
    Ok(JobFacts {
        uid,
        namespace: Arc::from(meta.namespace.as_deref().unwrap_or_default()),
        name,
        queue,
        priority_class: label(kueue_keys::PRIORITY_CLASS),
        pod_priority_class: some_name(pod_spec.priority_class_name.as_ref()),
        group,
        role: some_name(template_meta.and_then(|all| all.get(volcano_keys::TASK_SPEC))),
        scheduler: Arc::from(pod::scheduler_name(pod_spec)),
        gated_by: annotation(kueue_keys::ADMISSION_GATED_BY),
        suspend: spec.suspend.unwrap_or(false),
        suspended: condition(job, "Suspended").is_some(),
        active: count(|status| status.active),
        ready: count(|status| status.ready).saturating_add(uncounted(job)),
        succeeded: count(|status| status.succeeded),
        failed_indexes: count_indexes(failed_indexes),
        parallelism: parallelism.unwrap_or(1),
        completions: completions.or(spec.parallelism.is_none().then_some(1)),
        min_parallelism,
        completions_follow: annotation(kueue_keys::JOB_COMPLETIONS_EQUAL_PARALLELISM)
            .is_some_and(|text| ["1", "t", "T", "TRUE", "true", "True"].contains(&&*text)),
        ending: ["FailureTarget", "SuccessCriteriaMet"].iter().any(|kind| condition(job, kind).is_some()),
        finished: finished(job),
        started_at: status.and_then(|status| status.start_time.as_ref()).map(|time| time.0.as_millisecond()),
        terminating_itself: meta.deletion_timestamp.is_some(),
        manual_selector: spec.manual_selector.unwrap_or(false),
        topology,
        template_digest: digest(&pod_set_template(job)),
        invalid: wrong.0,
    })
}

/// Kubernetes' own Job controller runs the Job: what others run they also start and stop.
fn runs_here(managed_by: Option<&str>) -> bool {
    managed_by.is_none_or(|by| by.is_empty() || by == kubernetes_keys::JOB_CONTROLLER)
}

/// The first thing that is wrong with an object; reading goes on with a default.
struct Wrong(Option<Invalid>);

impl Wrong {
    fn note<T: Default>(&mut self, parsed: Result<T, Invalid>) -> T {
        parsed.unwrap_or_else(|invalid| {
            self.0.get_or_insert(invalid);
            T::default()
        })
    }
}

fn uncounted(job: &Job) -> u32 {
    let uncounted = job.status.as_ref().and_then(|status| status.uncounted_terminated_pods.as_ref());
    let succeeded = uncounted.and_then(|pods| pods.succeeded.as_ref()).map_or(0, Vec::len);
    u32::try_from(succeeded).unwrap_or(u32::MAX)
}

fn not_a_number(annotation: &str, text: &str) -> Invalid {
    Invalid::new(format!("metadata.annotations[{annotation}]"), format!("\"{text}\" is no whole number"))
}

fn number(field: &str, value: Option<i32>) -> Result<Option<u32>, Invalid> {
    value
        .map(|value| {
            u32::try_from(value).map_err(|_| Invalid::new(field, format!("{value} must not be negative")))
        })
        .transpose()
}

fn condition<'a>(job: &'a Job, kind: &str) -> Option<&'a JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

fn finished(job: &Job) -> Option<Finished> {
    let (succeeded, condition) = match (condition(job, "Complete"), condition(job, "Failed")) {
        (Some(complete), _) => (true, complete),
        (None, Some(failed)) => (false, failed),
        (None, None) => return None,
    };
    let message = Arc::from(condition.message.as_deref().unwrap_or_default());
    Some(Finished { succeeded, message, at: millis(condition.last_transition_time.as_ref()) })
}

/// How many indexes a text like `1,3-5` names (`batch/v1` JobStatus). A part that is malformed
/// counts as none: to hold quota too long is the harmless mistake.
fn count_indexes(text: &str) -> u32 {
    let each = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        Some(last.checked_sub(first)?.saturating_add(1))
    });
    each.fold(0, u32::saturating_add)
}

/// The Job's template as its Workload shows it: without the labels by which the API server tells
/// one Job's pods from another's (all but `batch.kubernetes.io/job-name`, as Kueue keeps it).
pub fn pod_set_template(job: &Job) -> PodTemplateSpec {
    let mut template = job.spec.as_ref().map(|spec| spec.template.clone()).unwrap_or_default();
    if let Some(meta) = &mut template.metadata {
        meta.creation_timestamp = None;
        if let Some(labels) = &mut meta.labels {
            for key in [
                kubernetes_keys::JOB_NAME_LEGACY,
                kubernetes_keys::CONTROLLER_UID,
                kubernetes_keys::CONTROLLER_UID_LEGACY,
            ] {
                labels.remove(key);
            }
        }
    }
    template
}

/// A short stand-in for a template: equal templates have equal ones, and empty maps are as good as
/// none. SHA-1, as in Workload names.
pub fn digest(template: &PodTemplateSpec) -> [u8; 20] {
    let mut template = template.clone();
    let meta = template.metadata.get_or_insert_default();
    meta.labels = meta.labels.take().filter(|labels| !labels.is_empty());
    meta.annotations = meta.annotations.take().filter(|annotations| !annotations.is_empty());
    // Maps of Kubernetes' types are ordered, so that the text is the same each time.
    let text = serde_json::to_vec(&template).expect("a template is made of strings, numbers and maps");
    Sha1::digest(text).into()
}

#[cfg(test)]
pub(crate) mod tests;
