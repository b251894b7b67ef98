//! Claims and volumes in every state, and what drivers attach.

use serde_json::{Value, json};

use super::{Dice, NAMESPACES};

/// Claims that pods may name: `c0` and so on in each namespace; some are not there.
pub const CLAIMS: u64 = 4;

/// Volumes, and the claims that they are bound to or that have none.
pub fn volumes(dice: &mut Dice) -> (Vec<Value>, Vec<Value>) {
    let (mut volumes, mut claims) = (Vec::new(), Vec::new());
    for namespace in NAMESPACES {
        for at in 0..CLAIMS {
            if dice.chance(1, 12) {
                continue;
            }
            let name = format!("c{at}");
            let volume = format!("{namespace}-{name}");
            claims.push(claim(dice, namespace, &name, &volume));
            if dice.chance(11, 12) {
                volumes.push(self::volume(dice, namespace, &name, &volume));
            }
        }
    }
    (volumes, claims)
}

fn claim(dice: &mut Dice, namespace: &str, name: &str, volume: &str) -> Value {
    let mode = dice.one(&["ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"]);
    let mut claim = json!({
        "metadata": {
            "name": name, "namespace": namespace,
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": {
            "accessModes": [mode], "volumeName": volume, "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
        "status": {"phase": "Bound"},
    });
    match dice.between(0, 24) {
        // Nobody bound it.
        0 => claim["spec"]["volumeName"] = "".into(),
        // Half bound: the other side does not know yet.
        1 => claim["metadata"]["annotations"] = json!({}),
        2 => claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into(),
        3 => claim["status"]["phase"] = "Lost".into(),
        _ => {}
    }
    claim
}

fn volume(dice: &mut Dice, namespace: &str, claim: &str, name: &str) -> Value {
    let mut labels = json!({});
    if dice.chance(1, 6) {
        let key = dice.one(&["topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"]);
        labels[key] = dice.one(&["z1", "z2", "z1__z3"]).into();
    }
    let mut spec = json!({
        "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"],
        "claimRef": {"name": claim, "namespace": namespace},
    });
    if dice.chance(1, 2) {
        // Few handles: two claims may lead to one volume of the driver.
        spec["csi"] = json!({"driver": dice.one(&["fast", "slow"]), "volumeHandle": dice.one(&["h1", "h2", "h3", "h4"])});
    } else {
        spec["nfs"] = json!({"server": "nfs.example", "path": "/"});
    }
    if dice.chance(1, 3) {
        let term = match dice.between(0, 3) {
            0 => {
                json!({"matchExpressions": [{"key": "zone", "operator": "In", "values": dice.some(&["z1", "z2", "z3"])}]})
            }
            1 => {
                json!({"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["n1", "n2"]}]})
            }
            2 => json!({"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["3"]}]}),
            _ => json!({}),
        };
        spec["nodeAffinity"] = json!({"required": {"nodeSelectorTerms": [term]}});
    }
    json!({"metadata": {"name": name, "labels": labels}, "spec": spec})
}

/// What the drivers of a node attach, if it says so.
pub fn csi_node(dice: &mut Dice, node: &str) -> Option<Value> {
    let mut drivers = Vec::new();
    for name in ["fast", "slow"] {
        if dice.chance(1, 3) {
            let mut driver = json!({"name": name, "nodeID": node, "topologyKeys": null});
            if dice.chance(5, 6) {
                driver["allocatable"] = json!({"count": dice.between(0, 2)});
            }
            drivers.push(driver);
        }
    }
    (!drivers.is_empty()).then(|| json!({"metadata": {"name": node}, "spec": {"drivers": drivers}}))
}
