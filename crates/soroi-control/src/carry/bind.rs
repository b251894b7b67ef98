//! Binding members, and letting pods out of the topology gate.

use std::collections::{BTreeMap, BTreeSet};

use soroi_api::labels::kueue as keys;
use soroi_engine::decision::{Admission, TopologyPlaces};
use soroi_engine::event::{Labels, Name, PodPhase, PodUid, Policy};

use super::{Composed, Next, PODS_AT_ONCE, Scene};
use crate::call::{Binding, Call};
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
            let binding = Binding { pod: uid.clone(), node: node.clone(), epoch: scene.epoch };
            Write { target: pod_target(pod), call: Call::Bind(binding) }
        })
    });
    each.take(PODS_AT_ONCE).collect()
}

/// Where requests about a pod go.
pub(crate) fn pod_target(pod: &soroi_engine::event::Pod) -> Target {
    Target::new(Kind::Pod, &pod.namespace, &pod.name)
}

/// Under TopologyOnly: pins every gated pod to a domain that still has room in the assignment, and
/// lets it go. Whoever was pinned keeps its domain, so the count is taken from the pods, and from
/// the pins whose requests may still be under way.
pub(super) fn ungate(
    scene: Scene<'_>,
    gang: &Composed,
    admission: &Admission,
    course: &Course,
    next: &mut Next,
) {
    if admission.policy != Policy::TopologyOnly {
        return;
    }
    for seen in scene.parts(gang) {
        let Some(job) = seen.job else { continue };
        let set = admission.pod_sets.iter().find(|set| super::own_name(seen.part, &set.name).is_some());
        let Some(places) = set.and_then(|set| set.topology.as_ref()) else { continue };
        let members: Vec<&PodFacts> =
            scene.world.members(&job.uid).map(|known| &known.facts).filter(|pod| pod.pod.is_live()).collect();
        let pins = assign(&members, places, &course.pins);
        let waiting = members.iter().filter_map(|pod| Some((pod, pins.get(&pod.pod.uid)?)));
        let writes = waiting.filter_map(|(pod, values)| {
            let selector: Labels = places.levels.iter().cloned().zip(values.iter().cloned()).collect();
            let patch = project::pod::ungate(pod, &selector)?;
            Some(Write { target: pod_target(&pod.pod), call: Call::Json(patch) })
        });
        next.writes.extend(writes.take(PODS_AT_ONCE));
        next.pins.extend(pins);
    }
}

/// The domain of every gated pod: those that have one already keep it, the others, in the order of
/// their completion index, then uid, get what is left in the order of the domains: the same as
/// Kueue's greedy assignment.
fn assign(
    members: &[&PodFacts],
    places: &TopologyPlaces,
    known: &BTreeMap<PodUid, Vec<Name>>,
) -> BTreeMap<PodUid, Vec<Name>> {
    let gated = |pod: &PodFacts| pod.gates.iter().any(|gate| &**gate == keys::GATE_TOPOLOGY);
    let mut free: Vec<u32> = places.domains.iter().map(|domain| domain.count).collect();
    let mut pins = BTreeMap::new();
    let mut waiting: BTreeSet<(Option<u32>, &PodUid)> = BTreeSet::new();
    for pod in members {
        let uid = &pod.pod.uid;
        let at = match known.get(uid).filter(|_| gated(pod)) {
            Some(values) => places.domains.iter().position(|domain| domain.values == *values),
            None => places.domains.iter().position(|domain| is_pinned(pod, &places.levels, &domain.values)),
        };
        let room = at.and_then(|at| free.get_mut(at)).filter(|count| **count > 0);
        match (room, at.and_then(|at| places.domains.get(at))) {
            (Some(count), Some(domain)) => {
                *count -= 1;
                if gated(pod) {
                    pins.insert(uid.clone(), domain.values.clone());
                }
            }
            _ if gated(pod) => {
                waiting.insert((pod.pod.index, uid));
            }
            _ => {}
        }
    }
    let left = places.domains.iter().zip(&free);
    let left = left.flat_map(|(domain, count)| std::iter::repeat_n(&domain.values, *count as usize));
    pins.extend(waiting.into_iter().zip(left).map(|((_, uid), values)| (uid.clone(), values.clone())));
    pins
}

fn is_pinned(pod: &PodFacts, levels: &[Name], values: &[Name]) -> bool {
    levels.iter().zip(values).all(|(level, value)| pod.pod.shape.node_selector.get(level) == Some(value))
}
