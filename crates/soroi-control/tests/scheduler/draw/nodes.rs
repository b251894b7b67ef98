//! Nodes: labels that are missing or no numbers, taints, cordons, what is allocatable.

use serde_json::{Value, json};

use super::Dice;

/// Values of `cores`: `Gt` and `Lt` compare them as whole numbers, if they are some.
pub const CORES: &[&str] = &["2", "8", "16", "007", "many", "99999999999999999999"];

/// `unsettled`: what follows from other fields may not have followed yet.
pub fn node(dice: &mut Dice, at: u64, unsettled: bool) -> Value {
    let name = format!("n{at}");
    let mut node = json!({
        "metadata": {"name": name, "labels": labels(dice, &name)},
        "spec": {},
        "status": {"conditions": [{"type": "Ready", "status": "True"}]},
    });
    let amounts = amounts(dice);
    // Without an allocatable, the capacity is it.
    let field = if dice.chance(1, 8) { "capacity" } else { "allocatable" };
    node["status"][field] = amounts;
    let mut taints = Vec::new();
    if dice.chance(1, 12) {
        node["spec"]["unschedulable"] = true.into();
        if !unsettled || dice.chance(1, 2) {
            taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
        }
    } else if unsettled && dice.chance(1, 16) {
        taints.push(json!({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}));
    }
    if unsettled && dice.chance(1, 8) {
        node["status"]["conditions"][0]["status"] = dice.one(&["False", "Unknown"]).into();
    }
    for key in ["dedicated", "cost"] {
        if dice.chance(1, 7) {
            let value = dice.one(&["", "a", "b", "5"]);
            let effect = dice.one(&["NoSchedule", "NoSchedule", "NoExecute", "PreferNoSchedule"]);
            taints.push(json!({"key": key, "value": value, "effect": effect}));
        }
    }
    if !taints.is_empty() {
        node["spec"]["taints"] = taints.into();
    }
    node
}

fn labels(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({});
    // Mostly its name; sometimes another node's, or none.
    if dice.chance(9, 10) {
        labels["kubernetes.io/hostname"] = if dice.chance(9, 10) { name.into() } else { "n1".into() };
    }
    if dice.chance(5, 6) {
        labels["zone"] = dice.one(&["z1", "z2", "z3"]).into();
    }
    if dice.chance(3, 4) {
        labels["rack"] = dice.one(&["r1", "r2", "r3", ""]).into();
    }
    if dice.chance(1, 4) {
        labels["topology.kubernetes.io/zone"] = dice.one(&["z1", "z2", "z3"]).into();
    }
    if dice.chance(1, 10) {
        labels["failure-domain.beta.kubernetes.io/zone"] = dice.one(&["z1", "z2"]).into();
    }
    if dice.chance(3, 4) {
        labels["cores"] = dice.one(CORES).into();
    }
    if dice.chance(1, 3) {
        labels["runtime"] = dice.one(&["sandbox", "plain"]).into();
    }
    labels
}

fn amounts(dice: &mut Dice) -> Value {
    let mut amounts = json!({
        "cpu": dice.one(&["4", "8", "3900m", "7.5", "16"]),
        "memory": dice.one(&["8Gi", "16Gi", "4000000000", "7935784Ki"]),
        "pods": dice.one(&["110", "110", "110", "9", "5", "3", "1"]),
    });
    if dice.chance(5, 6) {
        amounts["ephemeral-storage"] = dice.one(&["10Gi", "20G", "1Gi", "0"]).into();
    }
    if dice.chance(1, 2) {
        amounts["hugepages-2Mi"] = dice.one(&["64Mi", "8Mi", "0"]).into();
    }
    if dice.chance(1, 2) {
        amounts["example.com/gpu"] = dice.one(&["8", "2", "1", "0"]).into();
    }
    amounts
}
