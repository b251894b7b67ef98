//! How fast does the engine decide? Through its public front door only.
//!
//! Each measurement builds a fresh engine, tells it of the cluster untimed, and times what a user
//! would wait for: taking in the new facts and deciding.
#![expect(clippy::disallowed_methods, reason = "a benchmark measures the wall clock, not the cluster's time")]

mod admissions;

use std::time::Instant;

use anyhow::ensure;
use soroi_engine::decision::{Decision, Settings};
use soroi_engine::event::{Gang, GangId};
use soroi_engine::{Engine, Event, Outcome};

use super::Figure;
use super::load::{self, GPUS_PER_NODE, GangSize};
use crate::show::grouped;

/// How often one running engine is asked again, per round.
const WAKEUPS: usize = 200;

/// Sizes of the measurements, from the project's targets.
struct Sizes {
    nodes: usize,
    gangs: usize,
    pods_at_once: u32,
    waiting: usize,
    running: usize,
    queues: usize,
}

pub(crate) fn measure(rounds: u32, shrink: u32) -> anyhow::Result<Vec<Figure>> {
    let divide = |size: usize| (size / shrink as usize).max(1);
    let sizes = Sizes {
        nodes: divide(5_000).max(100),
        gangs: divide(1_000),
        pods_at_once: u32::try_from(divide(10_000))?,
        waiting: divide(10_000),
        running: divide(10_000).next_multiple_of(GANGS_PER_NODE * 10),
        queues: divide(1_000),
    };
    let mut placed = Vec::new();
    let mut at_once = Vec::new();
    let mut nobody = Vec::new();
    let mut somebody = Vec::new();
    let mut victims = Vec::new();
    let mut rates = Vec::new();
    for _ in 0..rounds {
        placed.push(place_gangs(&sizes)?);
        at_once.push(place_at_once(&sizes)?);
        nobody.extend(wake(&sizes, Freed::TooLittle)?);
        somebody.extend(wake(&sizes, Freed::Enough)?);
        victims.extend(preempt(&sizes)?);
        rates.push(admissions::measure(sizes.queues)?);
    }
    let nodes = grouped(sizes.nodes as u64);
    Ok(vec![
        Figure::of(
            "place",
            format!(
                "place {} gangs of 8 pods, each in one rack of {nodes} nodes",
                grouped(sizes.gangs as u64)
            ),
            ("pods/s", true, 100_000.0),
            placed,
        ),
        Figure::of(
            "gang",
            format!("decide one gang of {} pods", grouped(u64::from(sizes.pods_at_once))),
            ("ms", false, 100.0),
            at_once,
        ),
        Figure::of(
            "wake-nobody",
            format!("one pod ends, {} gangs wait: none fits yet", grouped(sizes.waiting as u64)),
            ("µs", false, 1_000.0),
            nobody,
        ),
        Figure::of(
            "wake-one",
            format!("one pod ends, {} gangs wait: one starts", grouped(sizes.waiting as u64)),
            ("µs", false, 1_000.0),
            somebody,
        ),
        Figure::of(
            "victims",
            format!(
                "choose victims among {} running gangs on {} nodes, for a gang of 8 whole nodes in one rack",
                grouped(sizes.running as u64),
                grouped(sizes.running as u64 / GANGS_PER_NODE as u64)
            ),
            ("ms", false, 20.0),
            victims,
        ),
        Figure::of(
            "admissions",
            format!(
                "admit in {} queues by quota alone, as many come as end, 20 wait in each",
                grouped(sizes.queues as u64)
            ),
            ("gangs/s", true, 20_000.0),
            rates,
        ),
    ])
}

fn engine(nodes: usize) -> Engine {
    let mut engine = Engine::new(Settings::default());
    for fact in load::cluster(nodes) {
        engine.apply(fact, 0);
    }
    engine.decide(0);
    engine
}

/// Pods placed in a second, from telling of the first gang to the last admission.
fn place_gangs(sizes: &Sizes) -> anyhow::Result<f64> {
    let mut engine = engine(sizes.nodes);
    let gangs: Vec<Event> = (0..sizes.gangs)
        .map(|number| Event::Gang(load::gang(number, GangSize { pods: 8, gpus: 4, one_rack: true })))
        .collect();
    let started = Instant::now();
    for gang in gangs {
        engine.apply(gang, 1);
    }
    let admitted = admissions(&engine.decide(1));
    let secs = started.elapsed().as_secs_f64();
    ensure!(admitted == sizes.gangs, "only {admitted} of {} gangs were placed", sizes.gangs);
    Ok((sizes.gangs * 8) as f64 / secs)
}

/// Milliseconds to decide one large gang.
fn place_at_once(sizes: &Sizes) -> anyhow::Result<f64> {
    let mut engine = engine(sizes.nodes.max(sizes.pods_at_once as usize / 8 + 1));
    let size = GangSize { pods: sizes.pods_at_once, gpus: 1, one_rack: false };
    let gang = Event::Gang(load::gang(0, size));
    let started = Instant::now();
    engine.apply(gang, 1);
    let admitted = admissions(&engine.decide(1));
    let secs = started.elapsed().as_secs_f64();
    ensure!(admitted == 1, "the gang of {} pods was not placed", sizes.pods_at_once);
    Ok(secs * 1e3)
}

/// Of two GPUs and of one: five fill a node.
const GANGS_PER_NODE: usize = 5;
/// How often victims are chosen anew, per round.
const PREEMPTIONS: usize = 20;

/// Milliseconds from telling of a gang of high priority, on a full cluster, to who leaves for it.
fn preempt(sizes: &Sizes) -> anyhow::Result<Vec<f64>> {
    let mut engine = engine(sizes.running / GANGS_PER_NODE);
    engine.apply(load::queue_that_preempts(), 0);
    for number in 0..sizes.running {
        let gpus = if number % GANGS_PER_NODE < 3 { 2 } else { 1 };
        engine.apply(Event::Gang(load::gang(number, GangSize { pods: 1, gpus, one_rack: false })), 0);
    }
    for decision in engine.decide(0) {
        if let Decision::Admit(admission) = decision {
            engine.confirm(Outcome::Committed(admission.gang), 0);
        }
    }
    engine.decide(0);
    let mut millis = Vec::new();
    for number in 0..PREEMPTIONS {
        let now = 60_000 + i64::try_from(number)?;
        let whole_nodes = GangSize { pods: 8, gpus: GPUS_PER_NODE, one_rack: true };
        let gang = Gang { priority: 100, ..load::gang(sizes.running + number, whole_nodes) };
        let id = gang.id.clone();
        let started = Instant::now();
        engine.apply(Event::Gang(gang), now);
        let decisions = engine.decide(now);
        millis.push(started.elapsed().as_secs_f64() * 1e3);
        let held = decisions.iter().find_map(|decision| match decision {
            Decision::Hold { victims, .. } => Some(victims.len()),
            _ => None,
        });
        let expected = 8 * GANGS_PER_NODE;
        ensure!(held == Some(expected), "{held:?} victims were chosen, and {expected} are enough");
        engine.apply(Event::GangGone(id), now);
        engine.decide(now);
    }
    Ok(millis)
}

/// What the pod that ends leaves behind.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Freed {
    /// Room for one member of gangs that need two.
    TooLittle,
    /// Room for the gang that waits longest.
    Enough,
}

/// Microseconds from the end of a pod to the decisions, once per wake-up. The cluster is full of
/// pods that nobody queues; gangs of 100 different needs wait.
fn wake(sizes: &Sizes, freed: Freed) -> anyhow::Result<Vec<f64>> {
    let mut engine = engine(sizes.nodes);
    for number in 0..sizes.nodes {
        engine.apply(Event::Pod(load::hog(number)), 0);
    }
    for number in 0..sizes.waiting {
        engine.apply(Event::Gang(load::gang(number, waiting_size(number, freed))), 0);
    }
    ensure!(admissions(&engine.decide(0)) == 0, "a gang was placed on a full cluster");
    let mut micros = Vec::new();
    for wakeup in 0..WAKEUPS {
        // Another node each time, far from the last one.
        let node = wakeup * 7_919 % sizes.nodes;
        let now = 1_000 * (1 + i64::try_from(wakeup)?);
        let started = Instant::now();
        engine.apply(Event::PodGone(load::hog_uid(node)), now);
        let decisions = engine.decide(now);
        micros.push(started.elapsed().as_secs_f64() * 1e6);
        let expected = usize::from(freed == Freed::Enough);
        ensure!(admissions(&decisions) == expected, "{expected} gangs should have started");
        refill(&mut engine, node, &decisions, freed, now);
    }
    Ok(micros)
}

/// 100 different needs: 2 to 51 pods, in one rack or anywhere. Where one shall start, every need
/// is for one whole node or more, and the first is for exactly one.
fn waiting_size(number: usize, freed: Freed) -> GangSize {
    let need = number % 100;
    let pods = u32::try_from(need / 2).unwrap_or(0);
    let least = if freed == Freed::Enough { 1 } else { 2 };
    GangSize { pods: pods + least, gpus: GPUS_PER_NODE, one_rack: need.is_multiple_of(2) }
}

/// Puts everything back as it was: the node is full, and a gang that started waits again.
fn refill(engine: &mut Engine, node: usize, decisions: &[Decision], freed: Freed, now: i64) {
    let started: Vec<GangId> = decisions
        .iter()
        .filter_map(|decision| match decision {
            Decision::Admit(admission) => Some(admission.gang.clone()),
            _ => None,
        })
        .collect();
    for gang in &started {
        engine.confirm(Outcome::NotCommitted(gang.clone()), now);
        engine.apply(Event::GangGone(gang.clone()), now);
    }
    engine.apply(Event::Pod(load::hog(node)), now);
    for number in started.iter().filter_map(load::number_of) {
        engine.apply(Event::Gang(load::gang(number, waiting_size(number, freed))), now);
    }
    engine.decide(now);
}

fn admissions(decisions: &[Decision]) -> usize {
    decisions.iter().filter(|decision| matches!(decision, Decision::Admit(_))).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The loads are what their names say, at a size that a debug build decides at once.
    #[test]
    fn every_measurement_measures_what_it_says() {
        let figures = measure(1, 100).unwrap();
        let names: Vec<_> = figures.iter().map(|figure| figure.name).collect();
        assert_eq!(names, ["place", "gang", "wake-nobody", "wake-one", "victims", "admissions"]);
        assert!(figures.iter().all(|figure| figure.median > 0.0));
    }
}
