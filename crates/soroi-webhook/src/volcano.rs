//! PodGroups and Queues: what Volcano's webhooks (1.15) say about a single object.
//!
//! Rules that need other objects (a queue's children, the queue of a PodGroup) are the leader's:
//! it shows them as conditions.

use std::collections::BTreeMap;

use serde_json::Value;
use soroi_api::volcano::{DEFAULT_QUEUE, ROOT_QUEUE};
use soroi_quantity::Quantity;

use crate::field::{Denial, Findings};
use crate::json::{entries, items, text};

/// A queue may be reclaimed from unless it says otherwise.
pub(crate) fn default_queue(queue: &Value) -> Option<Value> {
    if !queue["spec"]["reclaimable"].is_null() {
        return None;
    }
    let mut queue = queue.clone();
    queue.as_object_mut()?.entry("spec").or_insert_with(|| Value::Object(Default::default()));
    queue["spec"].as_object_mut()?.insert("reclaimable".to_owned(), true.into());
    Some(queue)
}

/// Everything rests on the two queues that always exist.
pub(crate) fn delete_queue(name: &str) -> Result<(), Denial> {
    if matches!(name, DEFAULT_QUEUE | ROOT_QUEUE) {
        let message =
            format!("queues.scheduling.volcano.sh {name:?} is forbidden: this queue cannot be deleted");
        return Err(Denial { code: 403, reason: "Forbidden", message, causes: Vec::new() });
    }
    Ok(())
}

pub(crate) fn queue(name: &str, queue: &Value, findings: &mut Findings) {
    let spec = &queue["spec"];
    match text(&spec["parent"]) {
        Some(_) if name == ROOT_QUEUE => findings.forbidden("spec.parent", "the root queue has no parent"),
        Some(parent) if parent == name => {
            findings.invalid("spec.parent", &spec["parent"], "a queue cannot be its own parent");
        }
        _ => {}
    }
    let guarantee = amounts(&spec["guarantee"]["resource"]);
    let deserved = amounts(&spec["deserved"]);
    let capability = amounts(&spec["capability"]);
    at_most(("spec.guarantee.resource", &guarantee), ("spec.deserved", &deserved), findings);
    at_most(("spec.deserved", &deserved), ("spec.capability", &capability), findings);
    // With a deserved amount between them, the two rules above have said it already.
    let not_deserved =
        guarantee.into_iter().filter(|(resource, _)| !deserved.contains_key(resource)).collect();
    at_most(("spec.guarantee.resource", &not_deserved), ("spec.capability", &capability), findings);
}

/// Amounts per resource. What is malformed is the schema's to refuse.
fn amounts(resources: &Value) -> BTreeMap<&str, Quantity> {
    let amount = |value: &Value| match value {
        Value::String(text) => text.parse().ok(),
        number => number.to_string().parse().ok(),
    };
    entries(resources).filter_map(|(resource, value)| Some((resource.as_str(), amount(value)?))).collect()
}

type Amounts<'a> = (&'a str, &'a BTreeMap<&'a str, Quantity>);

fn at_most((path, low): Amounts<'_>, (bound_path, high): Amounts<'_>, findings: &mut Findings) {
    for (resource, amount) in low {
        if let Some(bound) = high.get(resource).filter(|bound| amount > bound) {
            let field = format!("{path}[{resource}]");
            let words = format!("must be at most {bound_path}[{resource}] ({bound})");
            findings.invalid(field, &amount.to_string().into(), words);
        }
    }
}

pub(crate) fn pod_group(group: &Value, findings: &mut Findings) {
    for (role, minimum) in entries(&group["spec"]["minTaskMember"]) {
        if minimum.as_i64().is_some_and(|minimum| minimum < 0) {
            findings.invalid(format!("spec.minTaskMember[{role}]"), minimum, "must be at least 0");
        }
    }
    let policies = items(&group["spec"]["subGroupPolicy"]);
    for (ix, policy) in policies.iter().enumerate() {
        let path = format!("spec.subGroupPolicy[{ix}]");
        if text(&policy["name"]).is_some()
            && policies[..ix].iter().any(|other| other["name"] == policy["name"])
        {
            findings.duplicate(format!("{path}.name"), &policy["name"]);
        }
        crate::syntax::selector(&format!("{path}.labelSelector"), &policy["labelSelector"], findings);
    }
}

#[cfg(test)]
mod tests;
