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
