//! Visits every state that can be reached, the nearest first.
//!
//! Knows that there are states, steps and promises. Must never know what they mean.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::hash::{BuildHasherDefault, Hash, Hasher};

use crate::promises::{self, Promise};
use crate::rules::{Bounds, Mistakes};
use crate::state::State;
use crate::steps::{self, Step};
use crate::symmetry::representative;

/// What was found.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How many states were visited.
    pub states: usize,
    /// How many steps lead from one of them to another.
    pub steps: usize,
    /// How far the farthest is.
    pub depth: usize,
    /// How many of them are at rest.
    pub rests: usize,
    /// Promises that sleepers strain: what is not promised under them happened.
    pub strained: BTreeSet<Promise>,
    /// A shortest history that breaks a promise.
    pub broken: Option<Story>,
}

/// How a promise comes to be broken.
#[derive(Clone, Debug)]
pub struct Story {
    /// Which.
    pub promise: Promise,
    /// Step by step, from the beginning.
    pub steps: Vec<Step>,
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.steps.iter().enumerate() {
            writeln!(f, "{:>3}. {step}", at + 1)?;
        }
        write!(f, "     and {} is broken", self.promise)
    }
}

/// The graph so far.
struct Graph {
    states: Vec<State>,
    /// From which one each state was reached first.
    reached: Vec<Option<u32>>,
    depth: Vec<u32>,
    /// By hash; of two states with one hash the second is at the next number that is free.
    index: HashMap<u64, u32, BuildHasherDefault<Mix>>,
    /// Steps that are no faults, as (from, to).
    edges: Vec<(u32, u32)>,
    /// Whether some step that is no fault leads on.
    goes_on: Vec<bool>,
}

/// Visits all states of a world.
///
/// # Panics
/// When there are more than four billion states.
pub fn explore(bounds: &Bounds, mistakes: &Mistakes) -> Report {
    let mut graph = Graph::new();
    let mut left = VecDeque::from([graph.add(representative(&State::first()), None).0]);
    let mut steps = 0;
    let mut strained = BTreeSet::new();
    while let Some(at) = left.pop_front() {
        if let Some(promise) = promises::broken(bounds, &graph.states[at as usize]) {
            let broken = Some(graph.story(bounds, mistakes, promise, at));
            return graph.report(Report { steps, strained, broken, ..Report::default() });
        }
        strained.extend(promises::strained(bounds, &graph.states[at as usize]));
        for (step, then) in steps::all(bounds, mistakes, &graph.states[at as usize].clone()) {
            steps += 1;
            let (to, is_new) = graph.add(representative(&then), Some(at));
            if is_new {
                left.push_back(to);
            }
            if !step.is_fault() && to != at {
                graph.edges.push((at, to));
                graph.goes_on[at as usize] = true;
            }
        }
    }
    let rests: Vec<u32> = graph.numbers().filter(|at| !graph.goes_on[*at as usize]).collect();
    let bad = rests.iter().find(|at| !promises::is_good_rest(&graph.states[**at as usize]));
    let broken = match bad {
        Some(at) => Some((Promise::WholeAtRest, *at)),
        None => graph.without_a_way_to(&rests).map(|at| (Promise::ComesToRest, at)),
    };
    let broken = broken.map(|(promise, at)| graph.story(bounds, mistakes, promise, at));
    graph.report(Report { steps, rests: rests.len(), strained, broken, ..Report::default() })
}

impl Graph {
    fn new() -> Self {
        Self {
            states: Vec::new(),
            reached: Vec::new(),
            depth: Vec::new(),
            index: HashMap::default(),
            edges: Vec::new(),
            goes_on: Vec::new(),
        }
    }

    fn numbers(&self) -> std::ops::Range<u32> {
        0..u32::try_from(self.states.len()).expect("states are numbered with 32 bits")
    }

    /// The number of a state, and whether it is new.
    fn add(&mut self, state: State, reached: Option<u32>) -> (u32, bool) {
        let next = self.numbers().end;
        let mut mix = Mix::default();
        state.hash(&mut mix);
        let mut key = mix.finish();
        while let Some(number) = self.index.get(&key) {
            if self.states[*number as usize] == state {
                return (*number, false);
            }
            key = key.wrapping_add(1);
        }
        self.index.insert(key, next);
        self.states.push(state);
        self.depth.push(reached.map_or(0, |from| self.depth[from as usize] + 1));
        self.reached.push(reached);
        self.goes_on.push(false);
        (next, true)
    }

    /// The nearest state from which none of these can be reached without a fault.
    fn without_a_way_to(&self, rests: &[u32]) -> Option<u32> {
        let mut before = vec![0_u32; self.states.len() + 1];
        self.edges.iter().for_each(|(_, to)| before[*to as usize + 1] += 1);
        (1..before.len()).for_each(|at| before[at] += before[at - 1]);
        let mut place = before.clone();
        let mut sources = vec![0_u32; self.edges.len()];
        for (from, to) in &self.edges {
            sources[place[*to as usize] as usize] = *from;
            place[*to as usize] += 1;
        }
        let mut leads = vec![false; self.states.len()];
        let mut left: Vec<u32> = rests.to_vec();
        while let Some(at) = left.pop() {
            if !std::mem::replace(&mut leads[at as usize], true) {
                let from = before[at as usize] as usize..before[at as usize + 1] as usize;
                left.extend(&sources[from]);
            }
        }
        self.numbers().find(|at| !leads[*at as usize])
    }

    /// The report with the numbers of the graph.
    fn report(&self, report: Report) -> Report {
        let depth = self.depth.last().copied().unwrap_or(0) as usize;
        Report { states: self.states.len(), depth, ..report }
    }

    /// The steps to a state, told with the names that things have in the beginning.
    fn story(&self, bounds: &Bounds, mistakes: &Mistakes, promise: Promise, at: u32) -> Story {
        let mut path: Vec<u32> = std::iter::successors(Some(at), |at| self.reached[*at as usize]).collect();
        path.reverse();
        let mut now = State::first();
        let mut story = Story { promise, steps: Vec::new() };
        for next in &path[1..] {
            let wanted = &self.states[*next as usize];
            let mut all = steps::all(bounds, mistakes, &now).into_iter();
            let (step, then) = all
                .find(|(_, then)| representative(then) == *wanted)
                .expect("what can be done can be done under other names");
            now = then;
            story.steps.push(step);
        }
        story
    }
}

/// A fast hash of small fields, the same in every run.
#[derive(Default)]
struct Mix(u64);

impl Mix {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.add(u64::from(*byte)));
    }

    fn write_u8(&mut self, byte: u8) {
        self.add(u64::from(byte));
    }

    fn write_u64(&mut self, word: u64) {
        self.add(word);
    }

    fn write_u16(&mut self, word: u16) {
        self.add(u64::from(word));
    }

    fn write_isize(&mut self, word: isize) {
        self.add(word as u64);
    }

    fn write_usize(&mut self, word: usize) {
        self.add(word as u64);
    }
}
