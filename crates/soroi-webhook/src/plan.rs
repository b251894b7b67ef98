//! GangPlans: whose one is never changes, and what it says can be read.

use serde_json::Value;
use soroi_api::names;
use soroi_api::plan::{GangPlanSpec, PlannedPodSet};

use crate::Review;
use crate::field::Findings;

pub(crate) fn state(review: &Review<'_>, plan: &Value, findings: &mut Findings) {
    let gang = &plan["spec"]["gang"];
    if gang["uid"].as_str().is_some_and(|uid| names::gang_plan(uid) != review.name) {
        findings.invalid("metadata.name", &review.name.into(), "must be the uid of the gang");
    }
    if gang["namespace"].as_str().is_some_and(|namespace| namespace != review.namespace) {
        findings.invalid("spec.gang.namespace", &gang["namespace"], "must be the plan's own namespace");
    }
    // A plan that cannot be read after a crash is worse than one that was never written.
    match serde_json::from_value::<GangPlanSpec>(plan["spec"].clone()) {
        Err(error) => findings.malformed("spec", error.to_string()),
        Ok(spec) => pod_sets(&spec.pod_sets, findings),
    }
}

pub(crate) fn change(new: &Value, old: &Value, findings: &mut Findings) {
    if new["spec"]["gang"] != old["spec"]["gang"] {
        findings.forbidden("spec.gang", "is immutable: another gang has another plan");
    }
}

fn pod_sets(pod_sets: &[PlannedPodSet], findings: &mut Findings) {
    for (ix, set) in pod_sets.iter().enumerate() {
        let path = format!("spec.podSets[{ix}]");
        if let Err(error) = set.nodes() {
            findings.malformed(path.clone(), error.to_string());
        }
        if let Some(Err(error)) = set.topology.as_ref().map(|topology| topology.domains()) {
            findings.malformed(path, error.to_string());
        }
    }
}
