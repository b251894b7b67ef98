//! What does the API show? Objects as the recordings describe them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::world::{condition, is_true};

/// Names by uid.
pub type Names = BTreeMap<String, String>;

/// A Workload: its state, what it got, why it waits, how it was evicted.
pub fn workload(object: &Value, names: &Names) -> Value {
    let evicted = is_true(object, "Evicted");
    let state = if is_true(object, "Finished") {
        "finished"
    } else if is_true(object, "QuotaReserved") {
        match (evicted, is_true(object, "Admitted")) {
            (true, _) => "evicted",
            (false, true) => "admitted",
            (false, false) => "quotaReserved",
        }
    } else {
        "pending"
    };
    let mut record = json!({ "state": state });
    if object["spec"]["active"] == false {
        record["active"] = false.into();
    }
    if ["quotaReserved", "admitted", "evicted"].contains(&state) {
        record["podSets"] = pod_sets(object);
    }
    if evicted && state != "finished" {
        record["evicted"] = reason(object, "Evicted");
        if record["evicted"] == "Preempted" {
            record["preemption"] = reason(object, "Preempted");
        }
    }
    if state == "pending"
        && let Some(reserved) = condition(object, "QuotaReserved")
    {
        record["reason"] = reserved["reason"].clone();
        record["message"] = without_uids(reserved["message"].as_str().unwrap_or_default(), names).into();
    }
    record
}

fn reason(object: &Value, kind: &str) -> Value {
    condition(object, kind).map_or(Value::Null, |condition| condition["reason"].clone())
}

fn pod_sets(object: &Value) -> Value {
    let sets = object["status"]["admission"]["podSetAssignments"].as_array().into_iter().flatten();
    let one = |set: &Value| {
        let flavors = set.get("flavors").cloned().unwrap_or_else(|| json!({}));
        let name = set["name"].as_str().unwrap_or_default().to_owned();
        (name, json!({ "count": set["count"].as_i64().unwrap_or(0), "flavors": flavors }))
    };
    Value::Object(sets.map(one).collect::<Map<_, _>>())
}

/// An eviction: of whom, why, and for whom or with which text.
pub fn eviction(name: &str, object: &Value, names: &Names) -> Value {
    let evicted = condition(object, "Evicted");
    let message = evicted.and_then(|evicted| evicted["message"].as_str()).unwrap_or_default();
    let mut entry = json!({ "workload": name, "reason": reason(object, "Evicted") });
    if entry["reason"] == "Preempted" {
        entry["preemption"] = reason(object, "Preempted");
        let uid = message.split("UID: ").nth(1).and_then(|rest| rest.split([',', ')']).next());
        entry["by"] = uid.and_then(|uid| names.get(uid)).map_or(Value::Null, |name| name.as_str().into());
    } else {
        entry["message"] = without_uids(message, names).into();
    }
    entry
}

/// A ClusterQueue: its counters. What is zero, empty or the usual is left out.
pub fn cluster_queue(object: &Value) -> Value {
    let status = &object["status"];
    let (used, reserved) = (usage(&status["flavorsUsage"]), usage(&status["flavorsReservation"]));
    let number = |field: &str| status[field].as_i64().unwrap_or(0);
    let admitted = number("admittedWorkloads");
    let mut record = json!({});
    if used != json!({}) {
        record["usage"] = used.clone();
    }
    if reserved != used {
        record["reservation"] = reserved;
    }
    for (key, count, usual) in [
        ("pending", number("pendingWorkloads"), 0),
        ("admitted", admitted, 0),
        ("reserving", number("reservingWorkloads"), admitted),
    ] {
        if count != usual {
            record[key] = count.into();
        }
    }
    if !is_true(object, "Active") {
        record["inactive"] = reason(object, "Active");
    }
    if let Some(share) = status["fairSharing"].get("weightedShare") {
        record["share"] = share.clone();
    }
    record
}

fn usage(flavors: &Value) -> Value {
    let mut record = Map::new();
    for flavor in flavors.as_array().into_iter().flatten() {
        for resource in flavor["resources"].as_array().into_iter().flatten() {
            let amount = |field: &str| match &resource[field] {
                Value::Null => "0".to_owned(),
                Value::String(text) => text.clone(),
                number => number.to_string(),
            };
            let (total, borrowed) = (amount("total"), amount("borrowed"));
            let text = match borrowed.as_str() {
                "0" if total == "0" => continue,
                "0" => total,
                borrowed => format!("{total} borrowed {borrowed}"),
            };
            let name = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            record.insert(format!("{}/{}", name(&flavor["name"]), name(&resource["name"])), text.into());
        }
    }
    record.into()
}

fn without_uids(text: &str, names: &Names) -> String {
    names.iter().fold(text.to_owned(), |text, (uid, name)| text.replace(uid, &format!("<{name}>")))
}
