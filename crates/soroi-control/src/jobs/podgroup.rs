//! PodGroups whose pods carry a queue-name: the Workload that stands for them, and PodGroups that
//! are made for pods which name `volcano` and no group.

use serde_json::{Value, json};
use soroi_api::kueue::WorkloadStatus;
use soroi_api::labels::kueue as keys;
use soroi_api::labels::volcano as volcano_keys;
use soroi_api::{names, volcano};
use soroi_engine::event::{Name, PodPhase};

use super::batch;
use crate::call::Call;
use crate::draft::Draft;
use crate::intake::group::{GroupPodSet, Rolls, pod_sets, refused};
use crate::intake::{GroupFacts, PodFacts, WorkloadFacts};
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::parsed::WorkloadState;
use crate::project;
use crate::project::status::{At, Moment};
use crate::world::done::Gone;
use crate::world::store::Known;

/// The name of a group's Workload.
pub(crate) fn workload_name(group: &GroupFacts) -> Name {
    names::workload("PodGroup", volcano::GROUP, &group.name, &group.uid).into()
}

/// Whether the Workload still says what the group's pods ask for: only then may it be decided. `sets`:
/// names and counts.
pub(crate) fn in_step<'a>(
    sets: impl Iterator<Item = (&'a Name, u32)>,
    queue: Option<&Name>,
    workload: &'a WorkloadFacts,
) -> bool {
    queue == workload.queue.as_ref() && sets.eq(workload.pod_sets.iter().map(|set| (&set.name, set.count)))
}

/// What a group of pods lacks beside a decision. `gone`: members that ended well and are gone.
/// `held`: something was decided for it. `named`: the pod of this uid.
pub(crate) fn wants(
    group: &GroupFacts,
    members: &Rolls<'_>,
    gone: &Gone,
    workload: Option<&Known<WorkloadState>>,
    held: bool,
    named: impl Fn(&Name) -> Option<Target>,
    at: At,
) -> Vec<Write> {
    let queue = group.queue.as_ref().or_else(|| members.queue());
    if queue.is_none() && workload.is_none() {
        return Vec::new();
    }
    let sets = pod_sets(members, &[]);
    if workload.is_none() && refused(members, &sets).is_some() {
        return Vec::new();
    }
    let enough = group.minima().are_met(members.by_role(|_| true));
    let draft = |queue: &Name| {
        let example = |set: &GroupPodSet| Some((set.clone(), named(&set.example)?));
        let group = Target::new(Kind::PodGroup, &group.namespace, &group.name);
        Draft::GroupWorkload { group, queue: queue.clone(), sets: sets.iter().filter_map(example).collect() }
    };
    let target = Target::new(Kind::Workload, &group.namespace, &workload_name(group));
    let write = |queue| Write { target: target.clone(), call: Call::Draft(Box::new(draft(queue))) };
    let Some(workload) = workload else {
        let wanted = queue.filter(|_| enough && !sets.is_empty() && !group.terminating);
        return wanted.map(write).into_iter().collect();
    };
    let state = &workload.facts;
    let changed = |change: &dyn Fn(&mut WorkloadStatus, Moment)| {
        let mut after = state.status.clone();
        change(&mut after, at.of(workload.meta.generation));
        batch::status(&workload.meta, &state.status, &after)
    };
    if workload.meta.terminating {
        return batch::let_go(&workload.meta, Kind::Workload, keys::RESOURCE_IN_USE).into_iter().collect();
    }
    if state.facts.finished && !members.live().is_empty() {
        // A PodGroup may be filled again, as with Volcano.
        let write = changed(&|after, at| project::status::reopen(after, "The group has new pods", at));
        return write.into_iter().collect();
    }
    if let Some(succeeded) = ended(group, members, gone)
        && !state.facts.finished
    {
        let write = changed(&|after, at| {
            project::status::finish(after, succeeded, "All pods of the group have ended", at)
        });
        return write.into_iter().collect();
    }
    if members.count(goes_on) == 0 && !state.facts.finished {
        // Nothing is left that could hold its quota, or wait for one.
        let write =
            changed(&|after, at| project::status::undo(after, "The group has no pods that could run", at));
        return write.into_iter().collect();
    }
    let free = state.facts.admitted.is_none() && !held && !state.facts.finished && !sets.is_empty();
    let counts = sets.iter().map(|set| (&set.name, set.count));
    match queue {
        Some(queue) if free && !in_step(counts, Some(queue), &state.facts) => {
            // Those that ended are not counted any more, and must not be of pod sets that are not there.
            match changed(&|after, _| after.reclaimable_pods.clear()) {
                Some(first) => vec![first],
                None => vec![write(queue)],
            }
        }
        // It left its queue.
        None if free => vec![Write { target, call: Call::delete(&workload.meta.uid) }],
        _ => Vec::new(),
    }
}

/// Whether a pod in this phase has not ended.
fn goes_on(phase: PodPhase) -> bool {
    !matches!(phase, PodPhase::Succeeded | PodPhase::Failed)
}

/// Whether all pods of a group that had its minimum have ended, and whether enough of them well.
/// `gone`: members that are done and gone.
fn ended(group: &GroupFacts, members: &Rolls<'_>, gone: &Gone) -> Option<bool> {
    let all = members.count(goes_on) == 0 && !members.is_empty();
    let minima = group.minima();
    let by_role = |well: bool| {
        let counted = members.by_role(move |phase| !well || phase == PodPhase::Succeeded);
        counted.chain(gone.by_role())
    };
    let succeeded = members.count(|phase| phase == PodPhase::Succeeded);
    (all && minima.are_met(by_role(false))).then(|| succeeded > 0 && minima.are_met(by_role(true)))
}

/// What a pod that names `volcano` and no group lacks: the group, and then the tie to it
/// (`pkg/controllers/podgroup` of Volcano 1.15).
pub(crate) fn adopt(pod: &PodFacts, group_exists: bool) -> Vec<Write> {
    let fact = &pod.pod;
    if &*pod.scheduler != volcano_keys::SCHEDULER_NAME || pod.group.is_some() || !fact.is_live() {
        return Vec::new();
    }
    let name: Name = names::pod_group(pod.controller.as_ref().unwrap_or(&fact.uid)).into();
    let target = Target::new(Kind::Pod, &fact.namespace, &fact.name);
    if group_exists {
        return vec![Write { target, call: Call::Merge(project::pod::join_group(fact, &name)) }];
    }
    let group = Target::new(Kind::PodGroup, &fact.namespace, &name);
    vec![Write { target: group, call: Call::Draft(Box::new(Draft::GroupOfPod { pod: target })) }]
}

/// The name of the group that is made for a pod.
pub(crate) fn group_name(pod: &PodFacts) -> Name {
    names::pod_group(pod.controller.as_ref().unwrap_or(&pod.pod.uid)).into()
}

/// The PodGroup that Volcano would make for a pod. `owner`: the object that controls it, if that
/// could be read; its annotations may ask for more than one member.
pub(crate) fn group_of_pod(pod: &k8s_openapi::api::core::v1::Pod, owner: Option<&Value>) -> Value {
    let meta = &pod.metadata;
    let annotation = |key: &str| owner.and_then(|owner| owner["metadata"]["annotations"][key].as_str());
    let least = annotation(volcano_keys::GROUP_MIN_MEMBER).and_then(|text| text.parse::<i32>().ok());
    let least = least.filter(|least| *least > 0).unwrap_or(1);
    let uid = meta.uid.clone().unwrap_or_default();
    let controller = meta.owner_references.iter().flatten().find(|one| one.controller == Some(true));
    let owners = match &meta.owner_references {
        Some(owners) if !owners.is_empty() => json!(owners),
        _ => {
            json!([{ "apiVersion": "v1", "kind": "Pod", "name": meta.name, "uid": uid, "controller": true }])
        }
    };
    let own = |key: &str| meta.annotations.as_ref().and_then(|all| all.get(key));
    let inherited: serde_json::Map<String, Value> = owner
        .and_then(|owner| owner["metadata"]["annotations"].as_object())
        .into_iter()
        .flatten()
        .filter(|(key, _)| key.starts_with(volcano_keys::PREFIX))
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    let spec = pod.spec.as_ref();
    let mut group = json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": names::pod_group(controller.map_or(&uid, |one| &one.uid)),
            "namespace": meta.namespace,
            "ownerReferences": owners,
            "annotations": inherited,
        },
        "spec": { "minMember": least, "queue": own(volcano_keys::QUEUE_NAME).map_or("default", |queue| queue) },
        "status": { "phase": "Pending" },
    });
    if let Some(class) = spec.and_then(|spec| spec.priority_class_name.as_ref()) {
        group["spec"]["priorityClassName"] = json!(class);
    }
    if let Some(queue) = meta.labels.as_ref().and_then(|labels| labels.get(keys::QUEUE_NAME)) {
        group["metadata"]["labels"] = json!({ keys::QUEUE_NAME: queue });
    }
    group
}
