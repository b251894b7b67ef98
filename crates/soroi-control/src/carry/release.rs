//! Letting the Jobs of an admitted gang start.

use soroi_engine::decision::{Admission, PodSetAdmission};
use soroi_engine::event::{Name, Policy};

use super::{Composed, PartSeen, Scene};
use crate::call::Call;
use crate::course::needs_plan;
use crate::draft::{Draft, Release};
use crate::jobs::batch;
use crate::lanes::Write;
use crate::project;

/// Releases every Job of the gang that is suspended and would accept it. A Workload whose admission
/// checks are not all Ready holds its quota and waits.
pub(super) fn releases(scene: Scene<'_>, gang: &Composed, admission: &Admission) -> Vec<Write> {
    let asks = admission.pod_sets.iter().any(|set| set.count > 0);
    if admission.policy == Policy::Unified && asks && !needs_plan(admission) {
        // It has its quota while its checks are pending; its places are decided after that.
        return Vec::new();
    }
    scene.parts(gang).filter_map(|seen| release(scene, gang, admission, &seen)).collect()
}

fn release(scene: Scene<'_>, gang: &Composed, admission: &Admission, seen: &PartSeen<'_>) -> Option<Write> {
    let job = seen.job?;
    let workload = &seen.workload.facts.facts;
    let set = admission.pod_sets.iter().find(|set| super::own_name(seen.part, &set.name).is_some())?;
    if !job.template_mutable() || job.finished.is_some() || !scene.world.has_passed_checks(workload) {
        return None;
    }
    // Other pods than ours would come of it. Also when the decision is older than the doubt.
    if admission.policy.soroi_binds() && scene.world.needs_admission(job) {
        return None;
    }
    let text = |name: Option<&Name>| name.map(|name| name.to_string()).unwrap_or_default();
    let mut release = Release {
        at_once: None,
        job: job.clone(),
        workload: batch::workload_target(&seen.workload.meta),
        gang: admission.policy.soroi_binds().then(|| gang.gang.id.to_string()),
        pod_set: text(super::own_name(seen.part, &set.name)),
        cluster_queue: text(admission.cluster_queue.as_ref()),
        local_queue: text(workload.queue.as_ref()),
        flavors: flavors(scene, set),
        pods: (job.min_parallelism.is_some() && set.count != job.pods_left()).then_some(set.count),
        topology_gate: admission.policy == Policy::TopologyOnly && set.topology.is_some(),
    };
    release.at_once = at_once(scene, seen, &release);
    let call = Call::Draft(Box::new(Draft::Release(Box::new(release))));
    Some(Write { target: batch::job_target(job), call })
}

/// The release without reading anything: when the Job's template is known to be that of its Workload,
/// and what is added depends on nothing that is not known of it.
fn at_once(scene: Scene<'_>, seen: &PartSeen<'_>, release: &Release) -> Option<serde_json::Value> {
    let (state, job) = (&seen.workload.facts, &release.job);
    let checks = state.status.admission_checks.iter();
    let updated =
        checks.flat_map(|check| &check.pod_set_updates).any(|update| update.name == release.pod_set);
    if updated || !batch::is_restored(job, &state.facts) {
        return None;
    }
    let version = &scene.world.jobs.by_uid(&job.uid)?.meta.version;
    let shape = &state.facts.pod_sets.first()?.shape;
    project::job::release_at_once(job, version, &shape.node_selector, &release.content(Vec::new()))
}

/// The flavors of a pod set, each once, in order of their names.
fn flavors(scene: Scene<'_>, set: &PodSetAdmission) -> Vec<soroi_api::kueue::ResourceFlavor> {
    let names: std::collections::BTreeSet<&Name> = set.flavors.values().collect();
    let known = names.into_iter().filter_map(|name| scene.world.flavors.get(&(Name::from(""), name.clone())));
    known.map(|known| known.facts.object.clone()).collect()
}
