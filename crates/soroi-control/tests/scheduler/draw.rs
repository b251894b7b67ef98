//! Clusters and pods, drawn: every field that decides where a pod may be, few enough values that they
//! meet, and strange ones among them.

mod nodes;
mod pods;
mod volumes;

use serde_json::{Value, json};
use soroi_watch::SplitMix64;

/// What there is, and who waits: objects as somebody would create them.
pub struct Situation {
    pub namespaces: Vec<Value>,
    pub nodes: Vec<Value>,
    pub runtime_classes: Vec<Value>,
    pub volumes: Vec<Value>,
    pub claims: Vec<Value>,
    pub csi_nodes: Vec<Value>,
    pub running: Vec<Value>,
    pub waiting: Vec<Value>,
    /// Gangs of these pods: which ones, equal ones side by side.
    pub gangs: Vec<Vec<usize>>,
}

impl Situation {
    pub fn draw(dice: &mut Dice, waiting: usize) -> Self {
        let namespaces = NAMESPACES.iter().map(|name| namespace(dice, name)).collect();
        let unsettled = dice.chance(1, 3);
        let nodes: Vec<Value> = (1..=dice.between(1, 7)).map(|at| nodes::node(dice, at, unsettled)).collect();
        let (volumes, claims) = volumes::volumes(dice);
        let csi_nodes =
            (1..=nodes.len()).filter_map(|at| volumes::csi_node(dice, &format!("n{at}"))).collect();
        let mut running = Vec::new();
        for at in 0..dice.between(0, 12) {
            let node = dice.between(1, nodes.len() as u64);
            running.push(pods::running(dice, at, &format!("n{node}")));
        }
        let waiting = (0..waiting).map(|at| pods::waiting(dice, at)).collect();
        // One of equal pods, one of two kinds.
        let equal = vec![0; if dice.chance(1, 2) { 2 } else { 3 }];
        let mixed = if dice.chance(1, 2) { vec![1, 2] } else { vec![1, 1, 2] };
        let gangs = vec![equal, mixed];
        let runtime_classes = pods::runtime_classes();
        Self { namespaces, nodes, runtime_classes, volumes, claims, csi_nodes, running, waiting, gangs }
    }

    /// As the other side reads it.
    pub fn json(&self) -> Value {
        json!({
            "namespaces": self.namespaces,
            "nodes": self.nodes,
            "runtimeClasses": self.runtime_classes,
            "volumes": self.volumes,
            "claims": self.claims,
            "csiNodes": self.csi_nodes,
            "running": self.running,
            "waiting": self.waiting,
            "gangs": self.gangs,
        })
    }
}

const NAMESPACES: &[&str] = &["ns1", "ns2", "ns3"];

fn namespace(dice: &mut Dice, name: &str) -> Value {
    let mut labels = json!({});
    if dice.chance(2, 3) {
        labels["team"] = dice.one(&["x", "y"]).into();
    }
    json!({"metadata": {"name": name, "labels": labels}})
}

/// A source of choices.
pub struct Dice(SplitMix64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.0.below(most - least + 1)
    }

    pub fn chance(&mut self, of: u64, in_all: u64) -> bool {
        self.0.below(in_all) < of
    }

    pub fn one<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[usize::try_from(self.0.below(of.len() as u64)).unwrap()]
    }

    /// Some of these, at least one, in their order.
    pub fn some<'a>(&mut self, of: &[&'a str]) -> Vec<&'a str> {
        let mut some: Vec<&str> = of.iter().copied().filter(|_| self.chance(1, 3)).collect();
        if some.is_empty() {
            some.push(self.one(of));
        }
        some
    }
}
