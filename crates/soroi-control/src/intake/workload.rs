//! What does a Workload ask for, and what does it hold?

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, ObjectMeta, Time};
use soroi_api::conditions::workload::reason as word;
use soroi_api::kueue::{self, AdmissionCheckState, CheckState, MalformedAssignment, PriorityClassKind};
use soroi_api::labels::kueue as kueue_keys;
use soroi_engine::decision::{TopologyDomain, TopologyPlaces};
use soroi_engine::event::{self, Admitted, Millis, Name, Shape, TopologyRequest};

use super::{Defaults, Invalid, job, millis, some_name, template, too_many_pods, topology};

/// The object that owns a Workload: the job it stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// Its API group and version.
    pub api_version: Name,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Name,
}

impl Owner {
    /// The controller of an object, if it has one.
    pub fn of(meta: &ObjectMeta) -> Option<Self> {
        let owner = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))?;
        Some(Self {
            api_version: Arc::from(owner.api_version.as_str()),
            kind: Arc::from(owner.kind.as_str()),
            name: Arc::from(owner.name.as_str()),
            uid: Arc::from(owner.uid.as_str()),
        })
    }
}

/// Why nobody needs a Workload any more, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Over {
    /// It ended.
    Finished(Millis),
    /// It was deactivated, and not by its user (the reason of Evicted is `DeactivatedDueTo` something); it still is.
    Deactivated(Millis),
}

/// What is worth remembering of a Workload: its parts, ready to be put together into a
/// [`event::Gang`] with what its job says.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFacts {
    /// Its uid: the gang's identity.
    pub uid: Name,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// The job it stands for.
    pub owner: Option<Owner>,
    /// It was made for a job, and has no owner any more: that was deleted without what it owned.
    pub orphaned: bool,
    /// The LocalQueue.
    pub queue: Option<Name>,
    /// The priority; larger goes first.
    pub priority: i32,
    /// The WorkloadPriorityClass that it is from.
    pub priority_class: Option<Name>,
    /// `spec.active`.
    pub active: bool,
    /// Gates that others keep closed (`kueue.x-k8s.io/admission-gated-by`).
    pub gated_by: Option<Name>,
    /// When it was created.
    pub created_at: Millis,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// Its pod sets with predicted shapes, in order.
    pub pod_sets: Vec<event::PodSet>,
    /// [`job::digest`] of each pod set's template.
    pub template_digests: Vec<[u8; 20]>,
    /// What its status says it holds (QuotaReserved is True).
    pub admitted: Option<Admitted>,
    /// By pod set: pods that will not run again and need no quota (`status.reclaimablePods`).
    pub reclaimable: BTreeMap<Name, u32>,
    /// Its condition Admitted is True.
    pub is_admitted: bool,
    /// The reason of its condition Evicted, while that is True.
    pub evicted: Option<Name>,
    /// Since when that is; 0: it is not.
    pub evicted_at: Millis,
    /// It has ended.
    pub finished: bool,
    /// It ended, or was deactivated for a reason that was not its user's; and since when that is.
    pub over: Option<Over>,
    /// For how many seconds it may run (`spec.maximumExecutionTimeSeconds`).
    pub most_seconds: Option<i32>,
    /// When it has run for as long as it may; `None` while it does not run, or may for ever.
    pub runs_until: Option<Millis>,
    /// Until when it pauses after an eviction (`status.requeueState.requeueAt`); 0: it does not.
    pub requeue_at: Millis,
    /// The answers of its admission checks.
    pub checks: Vec<(Name, CheckState)>,
    /// What its eviction says, if a check has it start anew.
    pub retry: Option<Name>,
    /// What could not be understood. Such a Workload waits, with this reason.
    pub invalid: Option<Invalid>,
}

impl WorkloadFacts {
    /// All admission checks that it has are Ready.
    pub fn checks_ready(&self) -> bool {
        self.checks.iter().all(|(_, state)| *state == CheckState::Ready)
    }

    /// When it was sent to the back of its queue: its time stamp there is that of its eviction then, else that of its
    /// creation (Kueue, `workload.Ordering`). `when_not_ready`: also because its pods were not ready in time.
    pub fn sent_back_at(&self, when_not_ready: bool) -> Option<Millis> {
        let sent_back = match self.evicted.as_deref()? {
            word::PODS_READY_TIMEOUT => when_not_ready,
            word::ADMISSION_CHECK => true,
            _ => false,
        };
        sent_back.then_some(self.evicted_at)
    }

    /// How many pods of a pod set were admitted.
    pub fn admitted_count(&self, pod_set: &Name) -> Option<u32> {
        let mut admitted = self.admitted.iter().flat_map(|held| &held.pod_sets);
        admitted.find(|(name, ..)| name == pod_set).map(|(_, count, _)| *count)
    }

    /// A check rejects it: it must be deactivated.
    pub fn is_rejected(&self) -> bool {
        self.checks.iter().any(|(_, state)| *state == CheckState::Rejected)
    }
}

/// A Workload. What cannot be understood in its pod sets or status is kept in
/// [`WorkloadFacts::invalid`], so that it still is a gang that says why it waits.
///
/// # Errors
/// [`Invalid`] on `metadata.uid` or `metadata.name`.
pub fn workload(workload: &kueue::Workload, defaults: &Defaults) -> Result<WorkloadFacts, Invalid> {
    let meta = &workload.metadata;
    let spec = &workload.spec;
    let uid = some_name(meta.uid.as_ref()).ok_or_else(|| Invalid::new("metadata.uid", "is missing"))?;
    let name = some_name(meta.name.as_ref()).ok_or_else(|| Invalid::new("metadata.name", "is missing"))?;
    let namespace: Name = Arc::from(meta.namespace.as_deref().unwrap_or_default());
    let conditions = workload.status.as_ref().map_or(&[][..], |status| &status.conditions);
    let mut invalid = spec.pod_sets.is_empty().then(|| Invalid::new("spec.podSets", "is empty"));
    let mut pod_sets = Vec::new();
    for (at, one) in spec.pod_sets.iter().enumerate() {
        let (mut parsed, problem) = pod_set(one, &namespace, defaults);
        let problem = problem.or(update(&mut parsed, workload).err());
        invalid = invalid.or(problem.map(|problem| problem.within(&format!("spec.podSets[{at}]"))));
        pod_sets.push(parsed);
    }
    let mut admitted = admitted(workload).unwrap_or_else(|problem| {
        invalid = invalid.take().or(Some(problem));
        None
    });
    if let Some(problem) = too_many(&pod_sets, admitted.as_ref()) {
        // Places are never made for so many, not even when somebody else admitted them.
        invalid = Some(problem);
        admitted = None;
    }
    let status = workload.status.as_ref();
    Ok(WorkloadFacts {
        uid,
        namespace,
        name,
        owner: Owner::of(meta),
        orphaned: meta.owner_references.as_ref().is_none_or(Vec::is_empty)
            && some_name(meta.labels.as_ref().and_then(|labels| labels.get(kueue_keys::JOB_UID))).is_some(),
        queue: some_name(spec.queue_name.as_ref()),
        priority: spec.priority.unwrap_or(0),
        priority_class: spec
            .priority_class_ref
            .as_ref()
            .filter(|class| class.kind == PriorityClassKind::WorkloadPriorityClass)
            .map(|class| Arc::from(class.name.as_str())),
        active: spec.is_active(),
        gated_by: some_name(
            meta.annotations.as_ref().and_then(|all| all.get(kueue_keys::ADMISSION_GATED_BY)),
        ),
        created_at: millis(meta.creation_timestamp.as_ref()),
        terminating: meta.deletion_timestamp.is_some(),
        pod_sets,
        template_digests: spec.pod_sets.iter().map(|set| job::digest(&set.template)).collect(),
        admitted,
        reclaimable: status
            .iter()
            .flat_map(|status| &status.reclaimable_pods)
            .map(|back| (Arc::from(back.name.as_str()), u32::try_from(back.count).unwrap_or(0)))
            .collect(),
        is_admitted: is_true(conditions, "Admitted").is_some(),
        evicted: is_true(conditions, "Evicted").map(|condition| Arc::from(condition.reason.as_str())),
        evicted_at: is_true(conditions, "Evicted")
            .map_or(0, |condition| millis(Some(&condition.last_transition_time))),
        finished: is_true(conditions, "Finished").is_some(),
        over: over(workload, conditions),
        most_seconds: spec.maximum_execution_time_seconds,
        runs_until: runs_until(workload, conditions),
        requeue_at: status
            .and_then(|status| status.requeue_state.as_ref()?.requeue_at.as_ref())
            .map_or(0, |time: &Time| time.0.as_millisecond()),
        checks: status
            .iter()
            .flat_map(|status| &status.admission_checks)
            .map(|check| (Arc::from(check.name.as_str()), check.state))
            .collect(),
        retry: retry(status.map_or(&[], |status| &status.admission_checks)),
        invalid,
    })
}

fn over(workload: &kueue::Workload, conditions: &[Condition]) -> Option<Over> {
    let since = |condition: &Condition| millis(Some(&condition.last_transition_time));
    if let Some(finished) = is_true(conditions, "Finished") {
        return Some(Over::Finished(since(finished)));
    }
    let evicted = is_true(conditions, "Evicted").filter(|_| !workload.spec.is_active())?;
    evicted.reason.starts_with(word::DEACTIVATED_DUE_TO).then(|| Over::Deactivated(since(evicted)))
}

/// Why a Workload is evicted of which a check says Retry (Kueue 0.18, `reconcileCheckBasedEviction`).
fn retry(checks: &[AdmissionCheckState]) -> Option<Name> {
    let check = checks.iter().find(|check| check.state == CheckState::Retry)?;
    let message =
        format!("Evicted due to AdmissionCheck in Retry state: \"{}\" ({})", check.name, check.message);
    Some(message.into())
}

/// Since it was admitted, with the time that it was admitted before (Kueue, `maximumExecutionTimeSeconds`).
fn runs_until(workload: &kueue::Workload, conditions: &[Condition]) -> Option<Millis> {
    let most = workload.spec.maximum_execution_time_seconds?;
    if !workload.spec.is_active() || is_true(conditions, "Finished").is_some() {
        return None;
    }
    let began = is_true(conditions, "Admitted")?.last_transition_time.0.as_millisecond();
    let past = workload.status.as_ref()?.accumulated_past_execution_time_seconds.unwrap_or(0);
    let left = i64::from(most).saturating_sub(i64::from(past)).max(0);
    Some(began.saturating_add(left.saturating_mul(1_000)))
}

fn too_many(pod_sets: &[event::PodSet], admitted: Option<&Admitted>) -> Option<Invalid> {
    let asked = too_many_pods("spec.podSets", pod_sets.iter().map(|set| set.count));
    let got = admitted.iter().flat_map(|admitted| &admitted.pod_sets).map(|(_, count, _)| *count);
    asked.or_else(|| too_many_pods("status.admission.podSetAssignments", got))
}

fn positive(count: Option<i32>) -> Option<u32> {
    count.and_then(|count| u32::try_from(count).ok())
}

fn is_true<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind && condition.status == "True")
}

/// A pod set, and what could not be understood in it.
fn pod_set(set: &kueue::PodSet, namespace: &str, defaults: &Defaults) -> (event::PodSet, Option<Invalid>) {
    let (shape, shape_problem) = match template(&set.template, namespace, defaults) {
        Ok(shape) => (shape, None),
        Err(problem) => (Shape::default(), Some(problem)),
    };
    let (near, topology_problem) = match topology::of_pod_set(set.topology_request.as_ref()) {
        Ok(request) => (request, None),
        Err(problem) => (TopologyRequest::NONE, Some(problem)),
    };
    let parsed = event::PodSet {
        name: Arc::from(set.name.as_str()),
        role: None,
        count: u32::try_from(set.count).unwrap_or(0),
        least: positive(set.min_count),
        shape: Arc::new(shape),
        charged: None,
        topology: near,
        who: Arc::new(super::defaults::who(&set.template, namespace)),
    };
    let negative = (set.count < 0).then(|| Invalid::new("count", "must not be negative"));
    (parsed, negative.or(shape_problem).or(topology_problem))
}

/// Takes in what admission checks that are passed add to the pods of a set: they are placed as they will be.
/// (Pods of a PodGroup exist already, and stay as they are.)
fn update(set: &mut event::PodSet, workload: &kueue::Workload) -> Result<(), Invalid> {
    if Owner::of(&workload.metadata).is_some_and(|owner| &*owner.kind == "PodGroup") {
        return Ok(());
    }
    let checks = workload.status.iter().flat_map(|status| &status.admission_checks);
    let passed = checks.filter(|check| check.state == CheckState::Ready);
    for update in passed.flat_map(|check| &check.pod_set_updates).filter(|update| *update.name == *set.name) {
        let selector = update.node_selector.iter();
        let selector = selector.map(|(key, value)| (key.as_str().into(), value.as_str().into()));
        let tolerations = super::selector::tolerations(Some(&update.tolerations))?;
        let shape = Arc::make_mut(&mut set.shape);
        shape.node_selector.extend(selector);
        shape.tolerations.extend(tolerations);
    }
    Ok(())
}

/// What the status says that the Workload holds.
fn admitted(workload: &kueue::Workload) -> Result<Option<Admitted>, Invalid> {
    let Some(status) = &workload.status else { return Ok(None) };
    let Some(admission) = &status.admission else { return Ok(None) };
    let Some(reserved) = is_true(&status.conditions, "QuotaReserved") else { return Ok(None) };
    let reserved_at = reserved.last_transition_time.0.as_millisecond();
    let leaving = is_true(&status.conditions, "Evicted").is_some();
    let mut pod_sets = Vec::new();
    let mut topology = BTreeMap::new();
    for (at, assignment) in admission.pod_set_assignments.iter().enumerate() {
        let name: Name = Arc::from(assignment.name.as_str());
        let asked = workload.spec.pod_sets.iter().find(|set| set.name == assignment.name);
        let count = positive(assignment.count.or(asked.map(|set| set.count))).unwrap_or(0);
        let flavors = assignment.flavors.iter();
        let flavors = flavors.map(|(resource, flavor)| (resource.as_str().into(), flavor.as_str().into()));
        pod_sets.push((name.clone(), count, flavors.collect()));
        if let Some(places) = &assignment.topology_assignment {
            let field = format!("status.admission.podSetAssignments[{at}].topologyAssignment");
            let places = topology_places(places).map_err(|problem| Invalid::new(field, problem))?;
            topology.insert(name, places);
        }
    }
    let cluster_queue = Arc::from(admission.cluster_queue.as_str());
    Ok(Some(Admitted { cluster_queue, reserved_at, leaving, pod_sets, topology }))
}

/// Places by topology domain out of Kueue's compact encoding.
///
/// # Errors
/// The encoding contradicts itself.
pub fn topology_places(places: &kueue::TopologyAssignment) -> Result<TopologyPlaces, MalformedAssignment> {
    let name = |text: &String| -> Name { Arc::from(text.as_str()) };
    let domains = places.domains()?.into_iter().map(|domain| TopologyDomain {
        values: domain.values.iter().map(name).collect(),
        count: u32::try_from(domain.count).unwrap_or(0),
    });
    Ok(TopologyPlaces { levels: places.levels.iter().map(name).collect(), domains: domains.collect() })
}

#[cfg(test)]
pub(crate) mod tests;
