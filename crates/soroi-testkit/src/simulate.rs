//! Does the promise hold in stories that nobody wrote? Clusters, jobs and misfortune from a seed.
//!
//! A seed draws a page of the same language as those in `scenarios/` ([`draw`]), which is then played
//! in a storm ([`Trouble::Storm`]): requests and replies are lost, refused, delayed, watches cut, and
//! Soroi is killed between any two writes and comes back. No step says what must be seen. What must
//! hold is what holds always: the rules at every change, and after the storm that everything at rest
//! is whole or empty, that nothing waits although it fits ([`fits`]), that a fresh start finds nothing
//! to do, and that nothing is left in the end.
//!
//! What fails is a story like any other: [`shrink`] takes away what it does not need, and the page can
//! be kept.
//!
//! [`Trouble::Storm`]: crate::wire::Trouble::Storm

mod draw;
pub mod fits;

use std::ops::ControlFlow;

use crate::play::{Failure, Outcome};
use crate::run::{Kind, broken, run};
use crate::scenario::{Placement, Scenario};

pub use draw::draw;

/// A drawn story.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drawn {
    /// What it and its storm were drawn from.
    pub seed: u64,
    /// The policy that it is played under.
    pub placement: Placement,
    /// How many replicas of Soroi there are.
    pub replicas: u64,
    /// How far their clocks may be off, as a span in words.
    pub astray: &'static str,
    /// What the page's settings say of `waitForPodsReady`; empty: nothing.
    pub wait: &'static str,
    /// Whether queues share fairly.
    pub fair: bool,
    /// The cluster and what is done to it, one step a line.
    pub steps: Vec<String>,
}

impl Drawn {
    /// The story as a page of `scenarios/`.
    pub fn page(&self) -> String {
        let steps: String = self.steps.iter().map(|step| format!("$ {step}\n")).collect();
        let Self { seed, placement, replicas, astray, wait, fair, .. } = self;
        let wait = if wait.is_empty() { String::new() } else { format!("waitForPodsReady: {wait}\n") };
        let fair = if *fair { "fairSharing: true\n" } else { "" };
        format!(
            "# Seed {seed}\n\n```yaml settings\nplacements: [{placement}]\nreplicas: {replicas}\n\
             astray: {astray}\n{wait}{fair}```\n\n```console\n{steps}```\n"
        )
    }

    /// Plays it once.
    ///
    /// # Errors
    /// The first thing that was not as it must be.
    pub fn play(&self) -> Result<Outcome, Box<Failure>> {
        let name = format!("seed-{}", self.seed);
        let scenario = Scenario::parse(&name, &self.page()).map_err(|error| broken(error.to_string()))?;
        run(&scenario, self.placement, Kind::Storm(self.seed), false)
    }
}

/// What a failure is about, without the names and numbers in it.
fn kind_of(failure: &Failure) -> String {
    let line = failure.what.lines().next().unwrap_or_default();
    let words = line.split_whitespace().filter(|word| !word.contains(|letter: char| letter.is_ascii_digit()));
    words.take(6).collect::<Vec<_>>().join(" ")
}

/// A story that fails in the same way with less in it, and how it fails then. It stops
/// when `enough` says so.
pub fn shrink(drawn: &Drawn, failure: Box<Failure>, enough: &dyn Fn() -> bool) -> (Drawn, Box<Failure>) {
    let kind = kind_of(&failure);
    let mut least = (drawn.clone(), failure);
    let mut width = drawn.steps.len().div_ceil(2);
    while width > 0 {
        match without_some(&least.0, width, &kind, enough) {
            ControlFlow::Break(smaller) => {
                width = width.min(smaller.0.steps.len().div_ceil(2));
                least = smaller;
            }
            ControlFlow::Continue(()) => width /= 2,
        }
    }
    least
}

/// The first way to leave `width` neighbouring steps out and still fail.
fn without_some(
    drawn: &Drawn,
    width: usize,
    kind: &str,
    enough: &dyn Fn() -> bool,
) -> ControlFlow<(Drawn, Box<Failure>)> {
    let mut at = 0;
    while at < drawn.steps.len() && !enough() {
        let mut smaller = drawn.clone();
        smaller.steps.drain(at..drawn.steps.len().min(at + width));
        if smaller.steps.is_empty() {
            break;
        }
        if let Err(failure) = smaller.play()
            && kind_of(&failure) == kind
        {
            return ControlFlow::Break((smaller, failure));
        }
        at += width;
    }
    ControlFlow::Continue(())
}
