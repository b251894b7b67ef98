//! Workloads: what may change while they hold quota, and statuses that add up.
//!
//! One rule of Kueue's is left out on purpose: that `status.admission` may be set and unset but not
//! edited. A status that contradicts a committed plan is rewritten from the plan, in one write.

use serde_json::Value;
use soroi_api::conditions::workload::QUOTA_RESERVED;
use soroi_quantity::Quantity;

use crate::field::Findings;
use crate::json::{condition_is_true, items, named};
use crate::syntax;

pub(super) fn state(workload: &Value, findings: &mut Findings) {
    for (ix, set) in items(&workload["spec"]["podSets"]).iter().enumerate() {
        pod_set(&format!("spec.podSets[{ix}]"), set, findings);
    }
    groups(items(&workload["spec"]["podSets"]), findings);
    assignments(workload, findings);
    check_updates(workload, findings);
}

pub(crate) fn change(new: &Value, old: &Value, findings: &mut Findings) {
    if condition_is_true(old, QUOTA_RESERVED) {
        pod_sets_stay(new, old, findings);
        if condition_is_true(new, QUOTA_RESERVED) {
            reclaimable_pods_only_grow(new, old, findings);
        }
    }
    updates_of_ready_checks_stay(new, old, findings);
}

/// A PodGroup is as its pods are: its Workload may ask for more pods when they join. All others ask for
/// what they were given quota for (Kueue, webhook of Workloads).
fn pod_sets_stay(new: &Value, old: &Value, findings: &mut Findings) {
    let (after, before) = (items(&new["spec"]["podSets"]), items(&old["spec"]["podSets"]));
    let of_group = items(&old["metadata"]["ownerReferences"]).iter().any(|owner| owner["kind"] == "PodGroup");
    let without_count = |set: &Value| {
        let mut set = set.clone();
        set["count"] = Value::Null;
        set
    };
    let grown = |(after, before): (&Value, &Value)| {
        after["count"].as_i64() >= before["count"].as_i64() && without_count(after) == without_count(before)
    };
    if after != before && !of_group {
        findings.forbidden("spec.podSets", "is immutable while quota is reserved");
    } else if after.len() < before.len() || !after.iter().zip(before).all(grown) {
        findings.forbidden("spec.podSets", "can only grow while quota is reserved");
    }
}

fn pod_set(path: &str, set: &Value, findings: &mut Findings) {
    let request = &set["topologyRequest"];
    let made: Vec<&str> = ["required", "preferred", "unconstrained"]
        .into_iter()
        .filter(|wish| !request[*wish].is_null() && request[*wish] != false)
        .collect();
    if let [first, second, ..] = made.as_slice() {
        findings.forbidden(
            format!("{path}.topologyRequest.{second}"),
            format!("must not be used together with {first}"),
        );
    }
    slices(&format!("{path}.topologyRequest"), request, findings);
    let spec = &set["template"]["spec"];
    syntax::labels(&format!("{path}.template.spec.nodeSelector"), &spec["nodeSelector"], findings);
    syntax::node_affinity(&format!("{path}.template.spec.affinity"), &spec["affinity"], findings);
    // Pod slots are counted by themselves, one for each pod.
    for list in ["initContainers", "containers"] {
        for (at, container) in items(&spec[list]).iter().enumerate() {
            for part in ["requests", "limits"] {
                if !container["resources"][part]["pods"].is_null() {
                    let field = format!("{path}.template.spec.{list}[{at}].resources.{part}[pods]");
                    findings.forbidden(field, "the resource pods is reserved: every pod counts as one");
                }
            }
        }
    }
}

/// Parts that belong together, of a size that means something.
fn slices(path: &str, request: &Value, findings: &mut Findings) {
    let (level, size) = ("podSetSliceRequiredTopology", "podSetSliceSize");
    let layers = "podsetSliceRequiredTopologyConstraints";
    match (request[level].is_null(), request[size].is_null()) {
        (false, true) => findings.required(format!("{path}.{size}"), format!("must be given with {level}")),
        (true, false) => {
            findings.forbidden(format!("{path}.{size}"), format!("must not be given without {level}"))
        }
        _ => {}
    }
    if request[size].as_i64().is_some_and(|pods| pods < 1) {
        findings.invalid(format!("{path}.{size}"), &request[size], "must be a number of pods of at least 1");
    }
    let list = items(&request[layers]);
    let two_levels = !request[level].is_null() || !request[size].is_null();
    if two_levels && !list.is_empty() {
        findings.forbidden(format!("{path}.{layers}"), format!("must not be used together with {level}"));
    }
    for (at, pair) in list.windows(2).enumerate() {
        let sizes = (pair[0]["size"].as_i64().unwrap_or(0), pair[1]["size"].as_i64().unwrap_or(0));
        if sizes.1 > 0 && sizes.0 % sizes.1 != 0 {
            let field = format!("{path}.{layers}[{}].size", at + 1);
            findings.invalid(
                field,
                &pair[1]["size"],
                format!("must evenly divide the parent layer size {}", sizes.0),
            );
        }
    }
    let sliced = !list.is_empty() || !request[level].is_null();
    if sliced && !request["podSetGroupName"].is_null() {
        findings.forbidden(format!("{path}.podSetGroupName"), "must not be used together with slices");
    }
}

/// Pod sets that share a domain: a leader and its workers, with one wish (Kueue,
/// `ValidatePodSetGroupingTopology`).
fn groups(sets: &[Value], findings: &mut Findings) {
    let group = |set: &Value| set["topologyRequest"]["podSetGroupName"].as_str().map(str::to_owned);
    for (ix, set) in sets.iter().enumerate() {
        let Some(name) = group(set) else { continue };
        let field = format!("spec.podSets[{ix}].topologyRequest.podSetGroupName");
        let members: Vec<&Value> = sets.iter().filter(|other| group(other).as_ref() == Some(&name)).collect();
        let wish = |set: &Value, level: &str| set["topologyRequest"][level].clone();
        let problem = if name.parse::<u64>().is_ok() {
            "must not be a number".to_owned()
        } else if members.len() != 2 {
            format!("a group has exactly 2 pod sets, and this one has {}", members.len())
        } else if members.iter().all(|set| set["count"].as_i64().unwrap_or(1) != 1) {
            "one of the pod sets of a group must have 1 pod".to_owned()
        } else if wish(set, "required").is_null() && wish(set, "preferred").is_null() {
            "needs a required or a preferred level".to_owned()
        } else if ["required", "preferred"]
            .iter()
            .any(|level| wish(members[0], level) != wish(members[1], level))
        {
            "all pod sets of a group must ask for the same level".to_owned()
        } else {
            continue;
        };
        findings.invalid(field, &name.into(), problem);
    }
}

/// What was assigned names the pod sets there are, and can be divided among their pods.
fn assignments(workload: &Value, findings: &mut Findings) {
    for (ix, assignment) in items(&workload["status"]["admission"]["podSetAssignments"]).iter().enumerate() {
        let path = format!("status.admission.podSetAssignments[{ix}]");
        let Some(set) = named(&workload["spec"]["podSets"], &assignment["name"]) else {
            findings.not_found(format!("{path}.name"), &assignment["name"], "there is no such pod set");
            continue;
        };
        let count = assignment["count"].as_i64().or_else(|| set["count"].as_i64()).unwrap_or(1);
        for (resource, usage) in crate::json::entries(&assignment["resourceUsage"]) {
            let text = usage.as_str().map_or_else(|| usage.to_string(), str::to_owned);
            if text.parse::<Quantity>().is_ok_and(|amount| !divisible(resource, &amount, count)) {
                let field = format!("{path}.resourceUsage[{resource}]");
                findings.invalid(field, usage, format!("must be divisible by the count of pods, {count}"));
            }
        }
    }
}

fn divisible(resource: &str, amount: &Quantity, count: i64) -> bool {
    count <= 0 || soroi_quantity::base_units(resource, amount) % count == 0
}

fn check_updates(workload: &Value, findings: &mut Findings) {
    for (ix, check) in items(&workload["status"]["admissionChecks"]).iter().enumerate() {
        for (at, update) in items(&check["podSetUpdates"]).iter().enumerate() {
            if named(&workload["spec"]["podSets"], &update["name"]).is_none() {
                let field = format!("status.admissionChecks[{ix}].podSetUpdates[{at}].name");
                findings.not_found(field, &update["name"], "there is no such pod set");
            }
        }
    }
}

/// Quota that was given back may be somebody else's by now.
fn reclaimable_pods_only_grow(new: &Value, old: &Value, findings: &mut Findings) {
    let pods =
        |list: &Value, name: &Value| named(list, name).and_then(|entry| entry["count"].as_i64()).unwrap_or(0);
    for entry in items(&old["status"]["reclaimablePods"]) {
        let before = entry["count"].as_i64().unwrap_or(0);
        let now = pods(&new["status"]["reclaimablePods"], &entry["name"]);
        if now < before {
            let name = entry["name"].as_str().unwrap_or_default();
            findings.forbidden(
                format!("status.reclaimablePods[{name}]"),
                format!("cannot fall from {before} to {now} while quota is reserved"),
            );
        }
    }
}

/// Pods were started with what the check said.
fn updates_of_ready_checks_stay(new: &Value, old: &Value, findings: &mut Findings) {
    for (ix, check) in items(&new["status"]["admissionChecks"]).iter().enumerate() {
        let before = named(&old["status"]["admissionChecks"], &check["name"]);
        let ready = |check: &Value| check["state"] == "Ready";
        if before
            .is_some_and(|old| ready(old) && ready(check) && old["podSetUpdates"] != check["podSetUpdates"])
        {
            findings.forbidden(
                format!("status.admissionChecks[{ix}].podSetUpdates"),
                "is immutable while the check is Ready",
            );
        }
    }
}
