//! Does Soroi decide as Kueue does? Situations of queues and Workloads with what Kueue 0.18.1 was
//! seen to decide after each step, played against the embedded cluster.
//!
//! A situation ([`situation`]) is played ([`play`]) under simulated time and the policy QuotaOnly:
//! Workloads without jobs, no nodes, no pods. What the API shows ([`picture`]) is compared with what
//! was recorded ([`compare`]).
//!
//! Knows objects of Kueue's API and how Kueue's records name them. Must never know how Soroi decides.

pub mod compare;
pub mod picture;
pub mod play;
pub mod situation;

use compare::{View, difference};
use situation::Situation;

/// How a situation went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As recorded, in all of its steps.
    Same,
    /// Otherwise.
    Different {
        /// The first step that went otherwise, from 0.
        step: usize,
        /// What the step does.
        act: &'static str,
        /// The first difference: a path within the picture, what was recorded, what was seen.
        what: String,
    },
    /// It could not be played.
    Broken(String),
}

impl std::fmt::Display for Verdict {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Same => f.write_str("same"),
            Self::Different { step, act, what } => write!(f, "step {step} ({act}) {what}"),
            Self::Broken(why) => write!(f, "could not be played: {why}"),
        }
    }
}

/// Compares what was seen after each step with what was recorded, as far as `view` goes.
pub fn judge(situation: &Situation, seen: &[serde_json::Value], view: View) -> Verdict {
    let expected = situation.pictures();
    for (step, (expected, seen)) in expected.iter().zip(seen).enumerate() {
        if let Some(what) = difference(&view.of(expected), &view.of(seen)) {
            return Verdict::Different { step, act: situation.steps[step].act.name(), what };
        }
    }
    match seen.len() < expected.len() {
        true => Verdict::Different {
            step: seen.len(),
            act: situation.steps[seen.len()].act.name(),
            what: "never comes to rest".to_owned(),
        },
        false => Verdict::Same,
    }
}
