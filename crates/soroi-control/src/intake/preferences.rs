//! What would a pod like, and can do without? Preferred affinities, and topology spread that should be even,
//! in the engine's form.
//!
//! Like what is demanded (`neighbours`), templates are read as the API server would make pods of them.

use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, PreferredSchedulingTerm, WeightedPodAffinityTerm};
use soroi_engine::event::{NodeSelectorTerm, PodTerm, Preferences, Who};

use super::neighbours::{SHOULD, spread, term};
use super::{Invalid, selector};

/// The weights that the API takes.
const WEIGHTS: std::ops::RangeInclusive<i32> = 1..=100;

/// What the pod would like; `None` if nothing.
///
/// # Errors
/// [`Invalid`] on the field, within the pod's `spec`.
pub(super) fn preferences(spec: &PodSpec, who: &Who) -> Result<Option<Arc<Preferences>>, Invalid> {
    let affinity = spec.affinity.as_ref();
    let of_nodes = affinity.and_then(|affinity| affinity.node_affinity.as_ref());
    let near = affinity.and_then(|affinity| affinity.pod_affinity.as_ref());
    let apart = affinity.and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let near = near.and_then(|near| near.preferred_during_scheduling_ignored_during_execution.as_ref());
    let apart = apart.and_then(|apart| apart.preferred_during_scheduling_ignored_during_execution.as_ref());
    let prefers = Preferences {
        nodes: nodes(
            of_nodes.and_then(|nodes| nodes.preferred_during_scheduling_ignored_during_execution.as_ref()),
        )?,
        near: pods("affinity.podAffinity", near, who)?,
        apart: pods("affinity.podAntiAffinity", apart, who)?,
        spread: spread(spec, who, SHOULD)?,
    };
    Ok((!prefers.is_empty()).then(|| Arc::new(prefers)))
}

/// A term without expressions means nothing (kube-scheduler, `NewPreferredSchedulingTerms`).
fn nodes(list: Option<&Vec<PreferredSchedulingTerm>>) -> Result<Vec<(u32, NodeSelectorTerm)>, Invalid> {
    let mut all = Vec::new();
    for (at, one) in list.into_iter().flatten().enumerate() {
        let field = format!("affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[{at}]");
        let weight = weight(one.weight).map_err(|e| e.within(&field))?;
        let term = selector::node_term(&one.preference);
        let term = term.map_err(|e| e.within(&format!("{field}.preference")))?;
        if !(term.labels.is_empty() && term.fields.is_empty()) {
            all.push((weight, term));
        }
    }
    all.sort();
    Ok(all)
}

fn pods(
    field: &str,
    list: Option<&Vec<WeightedPodAffinityTerm>>,
    who: &Who,
) -> Result<Vec<(u32, PodTerm)>, Invalid> {
    let mut all = Vec::new();
    for (at, one) in list.into_iter().flatten().enumerate() {
        let within =
            |e: Invalid| e.within(&format!("{field}.preferredDuringSchedulingIgnoredDuringExecution[{at}]"));
        let weight = weight(one.weight).map_err(within)?;
        let term = term(&one.pod_affinity_term, who);
        all.push((weight, term.map_err(|e| within(e.within("podAffinityTerm")))?));
    }
    all.sort();
    Ok(all)
}

fn weight(weight: i32) -> Result<u32, Invalid> {
    match u32::try_from(weight) {
        Ok(number) if WEIGHTS.contains(&weight) => Ok(number),
        _ => Err(Invalid::new("weight", format!("{weight} must be between 1 and 100"))),
    }
}

#[cfg(test)]
mod tests;
