//! What containers ask for: in requests or limits alone, at the pod or at its containers, in init
//! containers and sidecars, with ports of the node; and what a status says of a resize.

use serde_json::{Value, json};

use super::super::Dice;

pub fn spec(dice: &mut Dice) -> Value {
    let mut spec = json!({});
    let of_node = dice.chance(1, 20);
    if of_node {
        spec["hostNetwork"] = true.into();
    }
    let containers: Vec<Value> =
        (0..dice.between(1, 2)).map(|at| container(dice, &format!("c{at}"), of_node)).collect();
    spec["containers"] = containers.into();
    if dice.chance(1, 4) {
        let mut init = Vec::new();
        for at in 0..dice.between(1, 3) {
            let mut one = container(dice, &format!("i{at}"), of_node);
            if dice.chance(1, 2) {
                one["restartPolicy"] = "Always".into();
            }
            init.push(one);
        }
        spec["initContainers"] = init.into();
    }
    if dice.chance(1, 8) {
        // Above what containers ask for together, mostly: else creation refuses it.
        let mut own = json!({"cpu": dice.one(&["6", "6", "3", "2500m"])});
        if dice.chance(1, 2) {
            own["memory"] = dice.one(&["9Gi", "1Gi"]).into();
        }
        let field = if dice.chance(3, 4) { "requests" } else { "limits" };
        spec["resources"] = json!({field: own});
    }
    spec
}

fn container(dice: &mut Dice, name: &str, of_node: bool) -> Value {
    let mut container =
        json!({"name": name, "image": "registry.example/app:1", "resources": resources(dice)});
    if dice.chance(1, if of_node { 2 } else { 4 }) {
        container["ports"] = json!([port(dice, of_node)]);
    }
    container
}

fn resources(dice: &mut Dice) -> Value {
    let (mut requests, mut limits) = (json!({}), json!({}));
    if dice.chance(5, 6) {
        let cpu = dice.one(&["100m", "1", "1.5", "200m", "0.0001", "1e-1", "0"]);
        // Limits alone become requests.
        if dice.chance(1, 6) { limits["cpu"] = cpu.into() } else { requests["cpu"] = cpu.into() }
    }
    if dice.chance(1, 2) {
        requests["memory"] = dice.one(&["1Gi", "2G", "300000k", "128974848", "0.5", "1Ki"]).into();
    }
    if dice.chance(1, 5) {
        requests["ephemeral-storage"] = dice.one(&["1Gi", "500M", "100m"]).into();
    }
    if dice.chance(1, 10) {
        limits["hugepages-2Mi"] = dice.one(&["4Mi", "16Mi"]).into();
    }
    if dice.chance(1, 8) {
        limits["example.com/gpu"] = dice.one(&["1", "2", "0"]).into();
    }
    let mut resources = json!({});
    for (field, list) in [("requests", requests), ("limits", limits)] {
        if list != json!({}) {
            resources[field] = list;
        }
    }
    resources
}

fn port(dice: &mut Dice, of_node: bool) -> Value {
    let number = dice.between(8000, 8001);
    let mut port = json!({"containerPort": number});
    if !of_node && dice.chance(7, 8) {
        port["hostPort"] = number.into();
    }
    if dice.chance(1, 3) {
        port["protocol"] = dice.one(&["TCP", "UDP", "SCTP"]).into();
    }
    if dice.chance(1, 2) {
        port["hostIP"] = dice.one(&["0.0.0.0", "127.0.0.1", "10.0.0.1", "::", "::1"]).into();
    }
    port
}

/// The status of a pod on a node: its phase, and sometimes a resize that is not done.
pub fn status(dice: &mut Dice, spec: &Value) -> Value {
    let phase = dice.one(&["Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown"]);
    let mut status = json!({"phase": phase});
    if !dice.chance(1, 5) {
        return status;
    }
    let mut containers = Vec::new();
    for container in spec["containers"].as_array().unwrap() {
        let real = json!({"cpu": dice.one(&["50m", "1", "3"])});
        let mut one = json!({
            "name": container["name"], "image": "", "imageID": "", "ready": true, "restartCount": 0,
            "resources": {"requests": real},
        });
        if dice.chance(2, 3) {
            one["allocatedResources"] = json!({"cpu": dice.one(&["50m", "1", "3"])});
        }
        containers.push(one);
    }
    status["containerStatuses"] = containers.into();
    if dice.chance(1, 3) {
        let reason = dice.one(&["Infeasible", "Deferred"]);
        status["conditions"] = json!([{"type": "PodResizePending", "status": "True", "reason": reason}]);
    }
    if dice.chance(1, 4) {
        status["resources"] = json!({"requests": {"cpu": dice.one(&["1", "5"])}});
        status["allocatedResources"] = json!({"cpu": dice.one(&["2", "7"])});
    }
    status
}
