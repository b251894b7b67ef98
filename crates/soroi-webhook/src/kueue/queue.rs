//! ClusterQueues and Cohorts: quotas that can be counted, and flavors that mean one thing.

use std::collections::BTreeMap;

use serde_json::Value;
use soroi_api::labels::soroi;
use soroi_api::plan::{PackingPolicy, PlacementPolicy};

use crate::field::Findings;
use crate::json::{annotation, items};
use crate::syntax;

/// The most flavors that a queue may have, over all groups (Kueue 0.18).
const FLAVORS_MAX: usize = 256;
/// The most resources, over all groups (Kueue 0.18).
const RESOURCES_MAX: usize = 256;
/// The most quotas, flavors times resources, in one group (Kueue 0.18).
const QUOTAS_PER_GROUP_MAX: usize = 512;

pub(super) fn cluster_queue(queue: &Value, findings: &mut Findings) {
    let spec = &queue["spec"];
    resource_groups(&spec["resourceGroups"], findings);
    syntax::selector("spec.namespaceSelector", &spec["namespaceSelector"], findings);
    admission_checks(spec, findings);
    if let Some(word) = annotation(queue, soroi::PACKING)
        && word.parse::<PackingPolicy>().is_err()
    {
        let words: Vec<&str> = PackingPolicy::ALL.iter().map(|packing| packing.as_str()).collect();
        findings.not_supported(format!("metadata.annotations[{}]", soroi::PACKING), &word.into(), &words);
    }
    if let Some(word) = annotation(queue, soroi::PLACEMENT)
        && word.parse::<PlacementPolicy>().is_err()
    {
        let policies: Vec<&str> = PlacementPolicy::ALL.iter().map(|policy| policy.as_str()).collect();
        findings.not_supported(
            format!("metadata.annotations[{}]", soroi::PLACEMENT),
            &word.into(),
            &policies,
        );
    }
}

pub(super) fn cohort(cohort: &Value, findings: &mut Findings) {
    resource_groups(&cohort["spec"]["resourceGroups"], findings);
    let parent = &cohort["spec"]["parentName"];
    if parent.is_string() && *parent == cohort["metadata"]["name"] {
        // Kueue accepts it, and stops admission: so do we, but not silently.
        findings.warn("spec.parentName: a cohort below itself is a cycle; its queues will not admit");
    }
}

fn resource_groups(groups: &Value, findings: &mut Findings) {
    let mut group_of: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut flavors_all, mut resources_all) = (0, 0);
    for (ix, group) in items(groups).iter().enumerate() {
        let path = format!("spec.resourceGroups[{ix}]");
        let flavors = items(&group["flavors"]);
        let resources = items(&group["coveredResources"]).len();
        flavors_all += flavors.len();
        resources_all += resources;
        if flavors.len().saturating_mul(resources) > QUOTAS_PER_GROUP_MAX {
            findings.forbidden(
                format!("{path}.flavors"),
                format!("flavors times coveredResources must be at most {QUOTAS_PER_GROUP_MAX}"),
            );
        }
        for (at, flavor) in flavors.iter().enumerate() {
            // Twice in one group is the schema's to refuse.
            let Some(name) = flavor["name"].as_str() else { continue };
            if *group_of.entry(name).or_insert(ix) != ix {
                findings.duplicate(format!("{path}.flavors[{at}].name"), &flavor["name"]);
            }
        }
    }
    if flavors_all > FLAVORS_MAX {
        findings.too_many("spec.resourceGroups[*].flavors", flavors_all, FLAVORS_MAX);
    }
    if resources_all > RESOURCES_MAX {
        findings.too_many("spec.resourceGroups[*].coveredResources", resources_all, RESOURCES_MAX);
    }
}

/// A check for a flavor that the queue does not have would never be asked.
fn admission_checks(spec: &Value, findings: &mut Findings) {
    let has_flavor = |name: &Value| {
        items(&spec["resourceGroups"])
            .iter()
            .flat_map(|group| items(&group["flavors"]))
            .any(|flavor| flavor["name"] == *name)
    };
    for (ix, check) in items(&spec["admissionChecksStrategy"]["admissionChecks"]).iter().enumerate() {
        for (at, flavor) in items(&check["onFlavors"]).iter().enumerate() {
            if !has_flavor(flavor) {
                let path = format!("spec.admissionChecksStrategy.admissionChecks[{ix}].onFlavors[{at}]");
                findings.not_found(path, flavor, "the queue has no such flavor");
            }
        }
    }
}
