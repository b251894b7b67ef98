//! Pods: what they ask for, whom they want or not, and in which state those are that are there.

use serde_json::{Value, json};

use super::nodes::CORES;
use super::volumes::CLAIMS;
use super::{Dice, NAMESPACES};

mod near;
mod need;

/// A pod that is created now.
pub fn waiting(dice: &mut Dice, at: usize) -> Value {
    pod(dice, &format!("w{at}"))
}

/// A pod on this node, in any state.
pub fn running(dice: &mut Dice, at: u64, node: &str) -> Value {
    let mut pod = pod(dice, &format!("r{at}"));
    // Somewhere that nobody knows, or knows no more.
    pod["spec"]["nodeName"] = if dice.chance(1, 30) { "gone".into() } else { node.into() };
    pod["status"] = need::status(dice, &pod["spec"]);
    if dice.chance(1, 6) {
        pod["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    }
    pod
}

/// What pods may name as theirs.
pub fn runtime_classes() -> Vec<Value> {
    vec![
        json!({
            "metadata": {"name": "sandbox"}, "handler": "sandbox",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
            "scheduling": {
                "nodeSelector": {"runtime": "sandbox"},
                "tolerations": [{"key": "dedicated", "operator": "Equal", "value": "a", "effect": "NoSchedule"}],
            },
        }),
        json!({
            "metadata": {"name": "heavy"}, "handler": "heavy",
            "overhead": {"podFixed": {"cpu": "1", "example.com/gpu": "1", "ephemeral-storage": "1500m"}},
        }),
    ]
}

fn pod(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({});
    if dice.chance(5, 6) {
        labels["app"] = dice.one(&["a", "b", "c"]).into();
    }
    if dice.chance(1, 2) {
        labels["version"] = dice.one(&["1", "2"]).into();
    }
    let mut spec = need::spec(dice);
    if dice.chance(1, 6) {
        spec["nodeSelector"] = node_selector(dice);
    }
    if dice.chance(1, 3) {
        spec["tolerations"] = (0..dice.between(1, 3)).map(|_| toleration(dice)).collect();
    }
    if dice.chance(1, 12) {
        spec["runtimeClassName"] = dice.one(&["sandbox", "heavy"]).into();
    }
    if dice.chance(1, 4) {
        spec["volumes"] = (0..dice.between(1, 2)).map(|at| mount(dice, at)).collect();
    }
    let mut affinity = json!({});
    if dice.chance(1, 3) {
        affinity["nodeAffinity"] = node_affinity(dice);
    }
    near::add_affinity(dice, &mut affinity);
    if affinity != json!({}) {
        spec["affinity"] = affinity;
    }
    near::add_spread(dice, &mut spec);
    json!({
        "metadata": {"name": name, "namespace": dice.one(NAMESPACES), "uid": name, "labels": labels},
        "spec": spec,
    })
}

/// Mostly a claim that is there.
fn mount(dice: &mut Dice, at: u64) -> Value {
    let last = if dice.chance(1, 12) { CLAIMS } else { CLAIMS - 1 };
    let claim = format!("c{}", dice.between(0, last));
    json!({"name": format!("v{at}"), "persistentVolumeClaim": {"claimName": claim}})
}

fn node_selector(dice: &mut Dice) -> Value {
    match dice.between(0, 3) {
        0 => json!({"zone": "z1"}),
        1 => json!({"rack": dice.one(&["r1", ""])}),
        2 => json!({"zone": "z2", "runtime": "plain"}),
        _ => json!({"kubernetes.io/hostname": "n1"}),
    }
}

fn toleration(dice: &mut Dice) -> Value {
    let mut one = json!({});
    match dice.between(0, 20) {
        0 => one["operator"] = "Exists".into(),
        // Behind a gate that is off: refused at creation.
        1 if dice.chance(1, 4) => {
            one = json!({"key": "cost", "operator": dice.one(&["Lt", "Gt"]), "value": "9"});
        }
        2..=4 => one = json!({"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}),
        5..=9 => one = json!({"key": dice.one(&["dedicated", "cost"]), "operator": "Exists"}),
        _ => {
            one["key"] = dice.one(&["dedicated", "cost"]).into();
            if dice.chance(1, 2) {
                one["operator"] = "Equal".into();
            }
            if dice.chance(5, 6) {
                one["value"] = dice.one(&["a", "b", "5", ""]).into();
            }
        }
    }
    if dice.chance(1, 2) {
        one["effect"] = dice.one(&["NoSchedule", "NoExecute", "PreferNoSchedule"]).into();
        if one["effect"] == "NoExecute" && dice.chance(1, 3) {
            one["tolerationSeconds"] = 60.into();
        }
    }
    one
}

fn node_affinity(dice: &mut Dice) -> Value {
    let terms: Value = (0..dice.between(1, 3)).map(|_| node_term(dice)).collect();
    json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}})
}

/// Sometimes an empty one, which matches nothing.
fn node_term(dice: &mut Dice) -> Value {
    let mut term = json!({});
    if dice.chance(7, 8) {
        term["matchExpressions"] = (0..dice.between(1, 2)).map(|_| node_expression(dice)).collect();
    }
    if dice.chance(1, 5) {
        let operator = dice.one(&["In", "NotIn"]);
        term["matchFields"] = json!([{
            "key": "metadata.name", "operator": operator, "values": [dice.one(&["n1", "n2", "n3", "nobody"])],
        }]);
    }
    term
}

fn node_expression(dice: &mut Dice) -> Value {
    let (key, values): (&str, &[&str]) = match dice.between(0, 3) {
        0 => ("zone", &["z1", "z2", "z3"]),
        1 => ("rack", &["r1", "r2", ""]),
        2 => ("cores", CORES),
        _ => ("missing", &["x"]),
    };
    match dice.between(0, 8) {
        0..=2 => json!({"key": key, "operator": "In", "values": dice.some(values)}),
        3..=4 => json!({"key": key, "operator": "NotIn", "values": dice.some(values)}),
        5 => json!({"key": key, "operator": "Exists"}),
        6 => json!({"key": key, "operator": "DoesNotExist"}),
        _ => {
            let bound = dice.one(&["2", "7", "0", "008"]);
            json!({"key": "cores", "operator": dice.one(&["Gt", "Lt"]), "values": [bound]})
        }
    }
}
