//! How fast are places found on a cluster in use? 60 % of its GPUs are taken, three levels of topology.
//!
//! Through the engine's front door, but for one figure: what one pod costs per level is asked of the cluster itself,
//! which is all that a pod changes.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock, not the cluster's time")]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::ensure;
use soroi_engine::cluster::{Cluster, Occupant};
use soroi_engine::decision::Settings;
use soroi_engine::event::{
    Expression, Gang, Name, Neighbours, Operator, PodSelector, PodSet, PodTerm, Shape, TopologyRequest, Who,
};
use soroi_engine::fit::Ask;
use soroi_engine::{Decision, Engine, Event};

use super::load::{self, GangSize, LEVELS, Site};
use super::process::Memory;
use super::{Figure, spread};
use crate::show::grouped;

/// How often each gang is decided anew, per round.
const AGAIN: usize = 20;
/// How often a pod comes and goes, per round.
const PODS_MOVED: usize = 2_000;
/// As large as clusters are said to be before they are divided.
const NODES_MANY: usize = 20_000;
/// How many times as many that is.
const TIMES: usize = 4;

/// All figures; `shrink` divides the numbers of nodes and pods.
pub(super) fn measure(rounds: u32, shrink: u32) -> anyhow::Result<Vec<Figure>> {
    let divide = |size: usize| (size / shrink as usize).max(1);
    let nodes = divide(NODES_MANY / TIMES).max(100);
    let (racked, wide) = (u32::try_from(divide(512))?, u32::try_from(divide(10_000).min(nodes * 3))?);
    let workers = u32::try_from(63.min(nodes / 10))?;
    let mut samples: [Vec<f64>; 6] = Default::default();
    for _ in 0..rounds {
        let mut engine = in_use(nodes);
        samples[0].extend(decide_again(&mut engine, &Wanted::Racked(racked), 1e3)?);
        samples[1].extend(decide_again(&mut engine, &Wanted::Anywhere(wide), 1e3)?);
        samples[2].extend(decide_again(&mut engine, &Wanted::Apart(workers), 1e3)?);
        samples[3].extend(move_pods(nodes)?);
        let few = decide_again(&mut engine, &Wanted::Racked(8), 1e6)?;
        drop(engine);
        let before = Memory::of("self")?.now;
        let mut larger = in_use(nodes * TIMES);
        let many = decide_again(&mut larger, &Wanted::Racked(8), 1e6)?;
        samples[4].push(median(many) / median(few));
        samples[5].push((Memory::of("self")?.now - before).max(0.0));
    }
    let [racked_ms, wide_ms, apart_ms, pod_micros, growth, memory] = samples;
    let (few, many) = (grouped(nodes as u64), grouped((nodes * TIMES) as u64));
    Ok(vec![
        Figure::of(
            "used-rack",
            format!(
                "decide one gang of {racked} pods, all in one rack, on {few} nodes of which 60 % is taken"
            ),
            ("ms", false, 1.0),
            racked_ms,
        ),
        Figure::of(
            "used-anywhere",
            format!("the same for {} pods anywhere", grouped(u64::from(wide))),
            ("ms", false, 50.0),
            wide_ms,
        ),
        Figure::of(
            "used-apart",
            format!("the same for a leader and {workers} workers in one block, one on each node"),
            ("ms", false, 5.0),
            apart_ms,
        ),
        Figure::of(
            "pod",
            "one pod comes or goes, per level of the topology".into(),
            ("µs", false, 5.0),
            pod_micros,
        ),
        Figure::of(
            "growth",
            format!("a gang of 8 on {many} nodes takes so many times as long as on {few}"),
            ("×", false, 4.0),
            growth,
        ),
        Figure::of(
            "memory",
            format!("an engine with {many} nodes and a pod on each takes"),
            ("MiB", false, 500.0),
            memory,
        ),
    ])
}

/// Which gang is decided.
enum Wanted {
    /// So many pods in one rack.
    Racked(u32),
    /// So many pods.
    Anywhere(u32),
    /// A leader and so many workers in one block, each on a node of its own.
    Apart(u32),
}

/// A cluster of large racks in use: of five nodes, one is full and the others have 2 to 6 of 8 GPUs left.
fn in_use(nodes: usize) -> Engine {
    let mut engine = Engine::new(Settings::default());
    for fact in load::cluster_of(nodes, Site::LARGE_RACKS) {
        engine.apply(fact, 0);
    }
    for (number, gpus) in taken(nodes) {
        engine.apply(Event::Pod(load::pod_of(number, gpus)), 0);
    }
    engine.decide(0);
    engine
}

/// GPUs that are taken of each node: 60 % of all.
fn taken(nodes: usize) -> impl Iterator<Item = (usize, i64)> {
    (0..nodes).map(|number| (number, [8, 6, 5, 3, 2][number % 5]))
}

/// How long it takes from telling of the gang to its admission, once warm; the gang goes again each time.
fn decide_again(engine: &mut Engine, wanted: &Wanted, unit: f64) -> anyhow::Result<Vec<f64>> {
    let mut samples = Vec::new();
    for number in 0..=AGAIN {
        let gang = wanted.gang(number);
        let id = gang.id.clone();
        let now = 1_000 * (1 + i64::try_from(number)?);
        let started = Instant::now();
        engine.apply(Event::Gang(gang), now);
        let decisions = engine.decide(now);
        let secs = started.elapsed().as_secs_f64();
        let admitted = decisions.iter().any(|decision| matches!(decision, Decision::Admit(_)));
        ensure!(
            admitted,
            "the gang was not placed: {:?}",
            engine.reason(&id).map(|reason| reason.to_string())
        );
        engine.confirm(soroi_engine::Outcome::NotCommitted(id.clone()), now);
        engine.apply(Event::GangGone(id), now);
        engine.decide(now);
        // The first one builds the indexes of its shapes.
        if number > 0 {
            samples.push(secs * unit);
        }
    }
    Ok(samples)
}

impl Wanted {
    fn gang(&self, number: usize) -> Gang {
        match *self {
            Self::Racked(pods) => load::gang(number, GangSize { pods, gpus: 1, one_rack: true }),
            Self::Anywhere(pods) => load::gang(number, GangSize { pods, gpus: 1, one_rack: false }),
            Self::Apart(workers) => apart(number, workers),
        }
    }
}

fn apart(number: usize, workers: u32) -> Gang {
    let gang = load::gang(number, GangSize { pods: 1, gpus: 1, one_rack: false });
    let app: (Name, Name) = ("app".into(), gang.name.clone());
    let ours = vec![Expression { key: app.0.clone(), op: Operator::In(vec![app.1.clone()]) }];
    let nobody_of_us = PodTerm {
        topology_key: LEVELS[2].into(),
        pods: PodSelector {
            namespaces: vec![gang.namespace.clone()],
            namespace_selector: None,
            labels: Some(ours),
        },
    };
    let neighbours = Neighbours { anti_affinity: vec![nobody_of_us], ..Neighbours::default() };
    let who = Arc::new(Who { namespace: gang.namespace.clone(), labels: BTreeMap::from([app]) });
    let set = |name: &str, count: u32, gpus: i64| {
        let requests = BTreeMap::from([(load::GPU.into(), gpus)]);
        let neighbours = Some(Arc::new(neighbours.clone()));
        PodSet {
            name: name.into(),
            role: None,
            count,
            least: None,
            shape: Arc::new(Shape { requests, neighbours, ..Shape::default() }),
            charged: None,
            topology: TopologyRequest {
                group: Some("ring".into()),
                ..TopologyRequest::required(LEVELS[0].into())
            },
            who: who.clone(),
        }
    };
    Gang { pod_sets: vec![set("leader", 1, 2), set("worker", workers, 1)], ..gang }
}

/// Microseconds per level for one pod that comes or goes, with what the domains take counted anew each time.
fn move_pods(nodes: usize) -> anyhow::Result<Vec<f64>> {
    let mut cluster = Cluster::default();
    let levels: Vec<Name> = LEVELS.iter().map(|level| Name::from(*level)).collect();
    let topology = Name::from("default");
    cluster.upsert_topology(&topology, &levels);
    for number in 0..nodes {
        cluster.upsert_node(&load::node_at(number, Site::LARGE_RACKS));
    }
    let shape = load::shape(1);
    let ask = Ask::plain(&shape);
    let whole = cluster.capacity(&ask, Some(&topology), &[]);
    ensure!(whole > 0, "the cluster takes no pod");
    let mut samples = Vec::new();
    for number in 0..PODS_MOVED {
        let node = load::node_name(number * 7_919 % nodes);
        let occupant = Occupant::Pod(format!("pod-{number}").into());
        let started = Instant::now();
        cluster.charge(occupant.clone(), &node, &shape);
        let with = cluster.capacity(&ask, Some(&topology), &[]);
        cluster.uncharge(&occupant);
        let without = cluster.capacity(&ask, Some(&topology), &[]);
        let secs = started.elapsed().as_secs_f64();
        ensure!(with < whole && without == whole, "a pod takes room and gives it back");
        samples.push(secs * 1e6 / 2.0 / levels.len() as f64);
    }
    Ok(samples)
}

fn median(samples: Vec<f64>) -> f64 {
    spread(samples, false).0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The gangs are placed as their names say, at a size that a debug build decides at once.
    #[test]
    fn every_measurement_measures_what_it_says() {
        let figures = measure(1, 50).unwrap();
        let names: Vec<_> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["used-rack", "used-anywhere", "used-apart", "pod", "growth", "memory"]);
        assert!(figures.iter().all(|figure| figure.median >= 0.0));
    }
}
