//! Which nodes would take a pod? Soroi's answer beside that of kube-scheduler 1.36.1.
//!
//! Clusters and pods are drawn with every field that decides where a pod may be (`draw`). A program of
//! `kubernetes/filters` makes pods of them as an API server does, and asks kube-scheduler's own plugins
//! (`theirs`); Soroi reads the same objects and is asked node by node, as it decides (`ours`). What
//! differs must be on a list, with its reason (`known`).
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that starts processes"
)]

mod draw;
mod gangs;
mod known;
mod ours;
mod theirs;

use std::collections::BTreeMap;
use std::fmt::Write as _;

use draw::{Dice, Situation};
use ours::Ours;
use theirs::Theirs;

/// Clusters, and pods that are asked about in each.
const CLUSTERS: u64 = 2_200;
const PODS: usize = 10;

/// What was compared.
#[derive(Default)]
struct Tally {
    pods: u32,
    refused: u32,
    nodes: u32,
    feasible: u32,
    /// Of nodes that kube-scheduler refuses, how many for which plugin.
    plugins: BTreeMap<String, u32>,
    /// Differences for which there is a reason.
    known: BTreeMap<&'static str, u32>,
    wrong: Vec<String>,
    gangs: gangs::Gangs,
}

#[test]
#[ignore = "needs Go: cargo xtask test --real"]
fn the_same_nodes_as_kube_scheduler() {
    let theirs = Theirs::build();
    let mut tally = Tally::default();
    // Both think at the same time: each batch is one process.
    for batch in (1..=CLUSTERS).collect::<Vec<_>>().chunks(100) {
        let situations: Vec<Situation> =
            batch.iter().map(|seed| Situation::draw(&mut Dice::new(*seed), PODS)).collect();
        let answers = theirs.ask(&situations);
        for ((seed, situation), answer) in batch.iter().zip(&situations).zip(answers) {
            let before = tally.wrong.len() + tally.gangs.wrong.len();
            compare(*seed, situation, &answer, &mut tally);
            if tally.wrong.len() + tally.gangs.wrong.len() > before {
                theirs.keep(*seed, situation);
            }
        }
    }
    println!("{}", tally.told());
    let wrong = [tally.wrong.clone(), tally.gangs.wrong.clone()].concat();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), theirs.told());
    assert!(tally.gangs.missed * 1000 <= tally.gangs.fitting, "at least 99.9 % of what fits is found");
    assert!(tally.gangs.fitting > 500, "only {} gangs fit", tally.gangs.fitting);
    // Who draws nothing but what is refused, or what fits everywhere, compares nothing.
    assert!(tally.pods - tally.refused >= 20_000, "most pods must be valid");
    let share = f64::from(tally.feasible) / f64::from(tally.nodes);
    assert!((0.1..0.9).contains(&share), "{share} of all nodes are feasible");
    // How often each plugin says no at least. Limits of drivers are drawn on few nodes.
    for (plugin, least) in [
        ("NodeUnschedulable", 500),
        ("TaintToleration", 500),
        ("NodeAffinity", 500),
        ("NodePorts", 500),
        ("NodeResourcesFit", 500),
        ("InterPodAffinity", 500),
        ("PodTopologySpread", 500),
        ("VolumeBinding", 500),
        ("VolumeRestrictions", 500),
        ("NodeVolumeLimits", 100),
        ("VolumeZone", 500),
    ] {
        let count = tally.plugins.get(plugin).copied().unwrap_or_default();
        assert!(count > least, "{plugin} says no to {count} only");
    }
}

fn compare(seed: u64, situation: &Situation, answer: &theirs::Answer, tally: &mut Tally) {
    let mut ours = Ours::new(situation, answer);
    gangs::compare(seed, situation, answer, &mut ours, &mut tally.gangs);
    for (at, verdict) in answer.waiting.iter().enumerate() {
        tally.pods += 1;
        let Some(pod) = &verdict.pod else {
            tally.refused += 1;
            continue;
        };
        let reading = ours.read(pod);
        // What was predicted from the template is what the API server made of it.
        let predicted = ours.predict(&situation.waiting[at]);
        if predicted != reading {
            tally.wrong.push(format!("seed {seed}, pod {at}: predicted {predicted:?}, is {reading:?}"));
        }
        let mut feasible = Vec::new();
        for (node, words) in &verdict.nodes {
            tally.nodes += 1;
            let (takes, would) = (words.is_empty(), ours.takes(node, &reading));
            tally.feasible += u32::from(takes);
            if !takes {
                let plugin = words.split(':').next().unwrap().to_owned();
                *tally.plugins.entry(plugin).or_default() += 1;
            }
            if would {
                feasible.push(node.clone());
            }
            if takes != would {
                match known::reason(situation, pod, node, takes) {
                    Some(reason) => *tally.known.entry(reason).or_default() += 1,
                    None => {
                        let said = if takes { "would take it" } else { words };
                        tally.wrong.push(format!(
                            "seed {seed}, pod {at}, node {node}: kube-scheduler: {said}; Soroi {}",
                            if would { "takes it" } else { "does not" }
                        ));
                    }
                }
            }
        }
        // And what comes of it as a whole: the pod is a gang of one.
        let decided = ours.decide(pod);
        let right = match &decided {
            Some(node) => feasible.contains(node),
            None => feasible.is_empty(),
        };
        if !right {
            tally.wrong.push(format!("seed {seed}, pod {at}: decided {decided:?}, of {feasible:?}"));
        }
    }
}

impl Tally {
    fn told(&self) -> String {
        let mut text = format!(
            "{} pods, {} of them refused at creation; {} nodes, {} feasible; {} differences without a reason\n",
            self.pods,
            self.refused,
            self.nodes,
            self.feasible,
            self.wrong.len()
        );
        let gangs = &self.gangs;
        writeln!(
            text,
            "{} gangs, {} of them fit, {} of those not found in time, {} wrong",
            gangs.asked,
            gangs.fitting,
            gangs.missed,
            gangs.wrong.len()
        )
        .unwrap();
        for (plugin, count) in &self.plugins {
            writeln!(text, "  {count:7}  no: {plugin}").unwrap();
        }
        for (reason, count) in &self.known {
            writeln!(text, "  {count:7}  {reason}").unwrap();
        }
        text
    }
}
