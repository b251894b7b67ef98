//! Whom pods want near, whom not, and how evenly they are spread.

use serde_json::{Value, json};

use super::super::{Dice, NAMESPACES};

const TOPOLOGY_KEYS: &[&str] =
    &["kubernetes.io/hostname", "kubernetes.io/hostname", "zone", "zone", "rack", "missing"];

pub fn add_affinity(dice: &mut Dice, affinity: &mut Value) {
    for (kind, in_all) in [("podAffinity", 6), ("podAntiAffinity", 4)] {
        let mut own = json!({});
        if dice.chance(1, in_all) {
            let required: Value = (0..dice.between(1, 2)).map(|_| term(dice)).collect();
            own["requiredDuringSchedulingIgnoredDuringExecution"] = required;
        }
        if dice.chance(1, 10) {
            let weighted = json!({"weight": 5, "podAffinityTerm": term(dice)});
            own["preferredDuringSchedulingIgnoredDuringExecution"] = json!([weighted]);
        }
        if own != json!({}) {
            affinity[kind] = own;
        }
    }
}

fn term(dice: &mut Dice) -> Value {
    let mut term = json!({"topologyKey": dice.one(TOPOLOGY_KEYS)});
    if dice.chance(1, 3) {
        term["namespaces"] = dice.some(NAMESPACES).into();
    }
    if dice.chance(1, 3) {
        term["namespaceSelector"] = match dice.between(0, 4) {
            0 => json!({}),
            1 => json!({"matchLabels": {"team": "x"}}),
            2 => json!({"matchLabels": {"kubernetes.io/metadata.name": "ns2"}}),
            3 => json!({"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["y"]}]}),
            _ => json!({"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}),
        };
    }
    if dice.chance(11, 12) {
        term["labelSelector"] = selector(dice);
        // Creation refuses a key that the selector names, too.
        match dice.between(0, 9) {
            0 if !names(&term, "version") => term["matchLabelKeys"] = json!(["version"]),
            1 if !names(&term, "version") => term["mismatchLabelKeys"] = json!(["version"]),
            2 if !names(&term, "app") => term["matchLabelKeys"] = json!(["app", "absent"]),
            _ => {}
        }
    }
    term
}

/// Whether the selector says something of this label.
fn names(term: &Value, label: &str) -> bool {
    let selector = &term["labelSelector"];
    let expressions = selector["matchExpressions"].as_array();
    !selector["matchLabels"][label].is_null()
        || expressions.is_some_and(|all| all.iter().any(|one| one["key"] == label))
}

fn selector(dice: &mut Dice) -> Value {
    let mut selector = json!({});
    if dice.chance(1, 2) {
        selector["matchLabels"] = json!({"app": dice.one(&["a", "b", "c"])});
    }
    if dice.chance(1, 3) {
        let key = dice.one(&["app", "version"]);
        let one = match dice.one(&["In", "NotIn", "Exists", "DoesNotExist"]) {
            "In" => json!({"key": key, "operator": "In", "values": dice.some(&["a", "b", "1", "2"])}),
            "NotIn" => json!({"key": key, "operator": "NotIn", "values": dice.some(&["a", "b", "1"])}),
            other => json!({"key": key, "operator": other}),
        };
        selector["matchExpressions"] = json!([one]);
    }
    selector
}

pub fn add_spread(dice: &mut Dice, spec: &mut Value) {
    if !dice.chance(1, 4) {
        return;
    }
    let mut constraints: Vec<Value> = Vec::new();
    for _ in 0..dice.between(1, 2) {
        let when = if dice.chance(5, 6) { "DoNotSchedule" } else { "ScheduleAnyway" };
        let mut one = json!({
            "topologyKey": dice.one(TOPOLOGY_KEYS), "maxSkew": dice.between(1, 3), "whenUnsatisfiable": when,
        });
        if dice.chance(9, 10) {
            one["labelSelector"] = selector(dice);
            if dice.chance(1, 4) {
                let key = if names(&one, "version") { "absent" } else { dice.one(&["version", "absent"]) };
                one["matchLabelKeys"] = json!([key]);
            }
        }
        if when == "DoNotSchedule" && dice.chance(1, 4) {
            one["minDomains"] = dice.between(1, 5).into();
        }
        for policy in ["nodeAffinityPolicy", "nodeTaintsPolicy"] {
            if dice.chance(1, 3) {
                one[policy] = dice.one(&["Honor", "Ignore"]).into();
            }
        }
        let same =
            |other: &Value| ["topologyKey", "whenUnsatisfiable"].iter().all(|key| other[key] == one[key]);
        if !constraints.iter().any(same) {
            constraints.push(one);
        }
    }
    spec["topologySpreadConstraints"] = constraints.into();
}
