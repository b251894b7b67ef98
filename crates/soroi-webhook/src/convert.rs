//! Kueue's kinds in their two versions: `v1beta1` as old clients speak it, `v1beta2` as it is stored.
//!
//! Knows what was renamed, and what one version can say and the other cannot (Kueue 0.18,
//! `apis/kueue/v1beta1/*_conversion.go`): that is left out, as Kueue leaves it out. Everything else
//! passes as it is, also what neither has heard of. Must never judge what an object says.

use serde_json::{Map, Value, json};
use soroi_api::kueue::{GROUP, TopologyAssignment, TopologyDomain, V1BETA1, VERSION};

/// An object that cannot be said in the other version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotConvert(pub String);

/// The object in another version of its group. Status, spec and annotations only: metadata stays.
///
/// # Errors
/// A version that is neither of the two, or a field that contradicts itself.
pub fn convert(object: &Value, wanted: &str) -> Result<Value, CannotConvert> {
    let has = object["apiVersion"].as_str().unwrap_or_default();
    let [old, new] = [V1BETA1, VERSION].map(|version| format!("{GROUP}/{version}"));
    let kind = object["kind"].as_str().unwrap_or_default();
    let mut object = object.clone();
    if has != wanted {
        if has == old && wanted == new {
            to_new(kind, &mut object)?;
        } else if has == new && wanted == old {
            to_old(kind, &mut object)?;
        } else {
            return Err(CannotConvert(format!("{kind} of {has:?} cannot be converted to {wanted:?}")));
        }
        object["apiVersion"] = wanted.into();
    }
    Ok(object)
}

fn to_new(kind: &str, object: &mut Value) -> Result<(), CannotConvert> {
    match kind {
        "ClusterQueue" => {
            rename(object, "/spec", "cohort", "cohortName");
            checks_to_new(object);
            for (field, old) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
                let word = object.pointer_mut(&format!("/spec/flavorFungibility/{field}"));
                if let Some(word) = word.filter(|word| *word == old) {
                    *word = "MayStopSearch".into();
                }
            }
            drop_field(object, "/status", "pendingWorkloadsStatus");
            drop_field(object, "/status/fairSharing", "admissionFairSharingStatus");
        }
        "LocalQueue" => {
            rename(object, "/status", "flavorUsage", "flavorsUsage");
            drop_field(object, "/status", "flavors");
        }
        "Workload" => {
            priority_to_new(object);
            rename(object, "/status", PAST_OLD, PAST_NEW);
            each_assignment(object, domains_to_slices)?;
        }
        "AdmissionCheck" => drop_field(object, "/spec", "retryDelayMinutes"),
        _ => {}
    }
    Ok(())
}

fn to_old(kind: &str, object: &mut Value) -> Result<(), CannotConvert> {
    match kind {
        "ClusterQueue" => {
            rename(object, "/spec", "cohortName", "cohort");
            drop_field(object, "/spec", "concurrentAdmissionPolicy");
        }
        "LocalQueue" => rename(object, "/status", "flavorsUsage", "flavorUsage"),
        "Workload" => {
            priority_to_old(object);
            rename(object, "/status", PAST_NEW, PAST_OLD);
            drop_field(object, "/spec", "preemptionGates");
            drop_field(object, "/status", "preemptionGates");
            each_assignment(object, slices_to_domains)?;
            for set in list(object, "/spec/podSets") {
                drop_field(set, "/topologyRequest", "podsetSliceRequiredTopologyConstraints");
            }
        }
        _ => {}
    }
    Ok(())
}

/// The old name is misspelt, and stays so.
const PAST_OLD: &str = "accumulatedPastExexcutionTimeSeconds";
const PAST_NEW: &str = "accumulatedPastExecutionTimeSeconds";

/// Where a Workload's priority is from: the old word, and the group and kind of the new reference.
const SOURCES: [(&str, &str, &str); 2] = [
    ("kueue.x-k8s.io/workloadpriorityclass", "kueue.x-k8s.io", "WorkloadPriorityClass"),
    ("scheduling.k8s.io/priorityclass", "scheduling.k8s.io", "PriorityClass"),
];

fn priority_to_new(object: &mut Value) {
    let Some(spec) = map(object, "/spec") else { return };
    let name = spec.remove("priorityClassName");
    let source = spec.remove("priorityClassSource");
    let source = SOURCES.iter().find(|(word, ..)| source.as_ref().is_some_and(|source| source == word));
    if let (Some((_, group, kind)), Some(name)) = (source, name) {
        spec.insert("priorityClassRef".into(), json!({ "group": group, "kind": kind, "name": name }));
    }
}

fn priority_to_old(object: &mut Value) {
    let Some(spec) = map(object, "/spec") else { return };
    let Some(reference) = spec.remove("priorityClassRef") else { return };
    let of =
        |(_, group, kind): &&(&str, &str, &str)| reference["group"] == *group && reference["kind"] == *kind;
    if let Some((word, ..)) = SOURCES.iter().find(of) {
        spec.insert("priorityClassSource".into(), (*word).into());
        spec.insert("priorityClassName".into(), reference["name"].clone());
    }
}

/// A list of names became a list of rules.
fn checks_to_new(object: &mut Value) {
    let Some(spec) = map(object, "/spec") else { return };
    let Some(Value::Array(names)) = spec.remove("admissionChecks") else { return };
    if !names.is_empty() {
        let rules: Vec<Value> = names.into_iter().map(|name| json!({ "name": name })).collect();
        spec.insert("admissionChecksStrategy".into(), json!({ "admissionChecks": rules }));
    }
}

fn each_assignment(
    object: &mut Value,
    convert: impl Fn(&mut Value) -> Result<(), CannotConvert>,
) -> Result<(), CannotConvert> {
    for set in list(object, "/status/admission/podSetAssignments") {
        if let Some(assignment) = set.get_mut("topologyAssignment").filter(|there| there.is_object()) {
            convert(assignment)?;
        }
    }
    Ok(())
}

fn domains_to_slices(assignment: &mut Value) -> Result<(), CannotConvert> {
    let levels = words(&assignment["levels"]);
    let domain = |domain: &Value| {
        let count = domain["count"].as_i64().and_then(|count| i32::try_from(count).ok());
        TopologyDomain { values: words(&domain["values"]), count: count.unwrap_or_default() }
    };
    let domains: Vec<_> = assignment["domains"].as_array().into_iter().flatten().map(domain).collect();
    if let Some(odd) = domains.iter().position(|domain| domain.values.len() != levels.len()) {
        return Err(CannotConvert(format!(
            "topologyAssignment.domains[{odd}]: values must have one entry per level"
        )));
    }
    *assignment = json!(TopologyAssignment::from_domains(levels, &domains));
    Ok(())
}

fn slices_to_domains(assignment: &mut Value) -> Result<(), CannotConvert> {
    let malformed = |error: String| CannotConvert(format!("topologyAssignment: {error}"));
    let read: TopologyAssignment =
        serde_json::from_value(assignment.clone()).map_err(|error| malformed(error.to_string()))?;
    let domains = read.domains().map_err(|error| malformed(error.to_string()))?;
    let domains: Vec<Value> =
        domains.iter().map(|domain| json!({ "values": domain.values, "count": domain.count })).collect();
    *assignment = json!({ "levels": read.levels, "domains": domains });
    Ok(())
}

fn words(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn map<'a>(object: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    object.pointer_mut(path)?.as_object_mut()
}

fn list<'a>(object: &'a mut Value, path: &str) -> impl Iterator<Item = &'a mut Value> {
    object.pointer_mut(path).and_then(Value::as_array_mut).into_iter().flatten()
}

fn rename(object: &mut Value, path: &str, from: &str, to: &str) {
    if let Some(map) = map(object, path)
        && let Some(value) = map.remove(from)
    {
        map.insert(to.to_owned(), value);
    }
}

fn drop_field(object: &mut Value, path: &str, field: &str) {
    if let Some(map) = map(object, path) {
        map.remove(field);
    }
}

#[cfg(test)]
mod tests;
