//! Binding members, and letting pods out of the topology gate.

use std::collections::BTreeMap;

use serde_json::json;
use soroi_api::labels::kueue as keys;
use soroi_engine::decision::{Admission, TopologyPlaces};
use soroi_engine::event::{Labels, Name, PodPhase, Policy};

use super::{Composed, Scene};
use crate::call::Call;
use crate::course::Course;
use crate::intake::PodFacts;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::project;

/// Binds whom the engine said to bind, as far as they still can be.
pub(super) fn binds(scene: Scene<'_>, course: &Course) -> Vec<Write> {
    let each = course.binds.iter().filter_map(|(uid, node)| {
        let pod = &scene.world.pods.by_uid(uid)?.facts.pod;
        let open = pod.node.is_none() && !pod.terminating && pod.phase == PodPhase::Pending;
        open.then(|| {
            let binding = project::pod::binding(pod, node, scene.epoch);
            Write { target: pod_target(pod), call: Call::Bind(json!(binding)) }
        })
    });
    each.collect()
}

pub(super) fn pod_target(pod: &soroi_engine::event::Pod) -> Target {
    Target::new(Kind::Pod, &pod.namespace, &pod.name)
}

/// Under TopologyOnly: pins every gated pod to a domain that still has room in the assignment, and
/// lets it go. Whoever was pinned keeps its domain, so the count is taken from the pods.
pub(super) fn ungates(scene: Scene<'_>, gang: &Composed, admission: &Admission) -> Vec<Write> {
    if admission.policy != Policy::TopologyOnly {
        return Vec::new();
    }
    let mut writes = Vec::new();
    for seen in scene.parts(gang) {
        let Some(job) = seen.job else { continue };
        let set = admission.pod_sets.iter().find(|set| super::own_name(seen.part, &set.name).is_some());
        let Some(places) = set.and_then(|set| set.topology.as_ref()) else { continue };
        let members: Vec<&PodFacts> =
            scene.world.members(&job.uid).map(|known| &known.facts).filter(|pod| is_live(pod)).collect();
        writes.extend(assign(&members, places));
    }
    writes
}

fn is_live(pod: &PodFacts) -> bool {
    !pod.pod.terminating && matches!(pod.pod.phase, PodPhase::Pending | PodPhase::Running)
}

/// Gated pods in the order of their completion index, then uid, to domains in order: the same as
/// Kueue's greedy assignment.
fn assign(members: &[&PodFacts], places: &TopologyPlaces) -> Vec<Write> {
    let gated = |pod: &PodFacts| pod.gates.iter().any(|gate| &**gate == keys::GATE_TOPOLOGY);
    let mut free: Vec<u32> = places.domains.iter().map(|domain| domain.count).collect();
    for pod in members.iter().filter(|pod| !gated(pod)) {
        let at = places.domains.iter().position(|domain| is_pinned(pod, &places.levels, &domain.values));
        if let Some(count) = at.and_then(|at| free.get_mut(at)) {
            *count = count.saturating_sub(1);
        }
    }
    let mut waiting: BTreeMap<(Option<u32>, &Name), &PodFacts> = BTreeMap::new();
    for pod in members.iter().filter(|pod| gated(pod)) {
        waiting.insert((pod.pod.index, &pod.pod.uid), pod);
    }
    let mut writes = Vec::new();
    let mut at = 0;
    for pod in waiting.into_values() {
        while free.get(at) == Some(&0) {
            at += 1;
        }
        let (Some(count), Some(domain)) = (free.get_mut(at), places.domains.get(at)) else { break };
        *count -= 1;
        let selector: Labels = places.levels.iter().cloned().zip(domain.values.iter().cloned()).collect();
        if let Some(patch) = project::pod::ungate(pod, &selector) {
            writes.push(Write { target: pod_target(&pod.pod), call: Call::Json(patch) });
        }
    }
    writes
}

fn is_pinned(pod: &PodFacts, levels: &[Name], values: &[Name]) -> bool {
    levels.iter().zip(values).all(|(level, value)| pod.pod.shape.node_selector.get(level) == Some(value))
}
