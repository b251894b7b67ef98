//! Which runs does a story get, and what does a failed one say? Plain, from seeds, and with a crash
//! after each write.
//!
//! Knows the embedded stage; the story itself could be played on any.

use std::fmt;
use std::time::Duration;

use jiff::Timestamp;
use soroi_clock::Clock;

use crate::play::{Failure, Mode, Outcome, play};
use crate::rule::Limits;
use crate::scenario::{Placement, Scenario};
use crate::stage::EmbeddedStage;
use crate::wire::Trouble;

/// Every run's clock starts here.
const STARTED: Timestamp = Timestamp::constant(1_767_225_600, 0);

/// The longest that the few requests take on which a gang's end or beginning depends, where each may take
/// two seconds there and two back.
const SLACK: Duration = Duration::from_secs(15);

/// What is special about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Nothing.
    Plain,
    /// Faults from this seed.
    Seed(u64),
    /// The product crashes after its n-th write (from 1).
    Crash(u64),
    /// Faults and crashes from this seed until the story is over. What the API refuses of the story's
    /// steps is noted and passed over, unless no cluster would accept it.
    Storm(u64),
}

impl Kind {
    /// Reads what `Display` writes.
    pub fn parse(text: &str) -> Option<Self> {
        let number = |prefix: &str| text.strip_prefix(prefix)?.parse().ok();
        match text {
            "plain" => Some(Self::Plain),
            _ => number("seed-")
                .map(Self::Seed)
                .or_else(|| number("crash-").map(Self::Crash))
                .or_else(|| number("storm-").map(Self::Storm)),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Plain => f.write_str("plain"),
            Self::Seed(seed) => write!(f, "seed-{seed}"),
            Self::Crash(write) => write!(f, "crash-{write}"),
            Self::Storm(seed) => write!(f, "storm-{seed}"),
        }
    }
}

/// Plays a scenario once, on a fresh embedded cluster under simulated time.
///
/// # Errors
/// What was not as it must be; also a panic or a runtime that cannot be made.
pub fn run(
    scenario: &Scenario,
    placement: Placement,
    kind: Kind,
    update: bool,
) -> Result<Outcome, Box<Failure>> {
    let hindered = kind != Kind::Plain;
    let limits = Limits {
        placement,
        recovery: scenario.settings.recovery,
        slack: if hindered { SLACK } else { Duration::ZERO },
        patience: if hindered { scenario.settings.patience } else { Duration::ZERO },
        stale: matches!(kind, Kind::Seed(_) | Kind::Storm(_)),
        one_gets_ready: scenario
            .settings
            .wait_for_pods_ready
            .as_ref()
            .is_some_and(|wait| wait.block_admission),
        astray: scenario.settings.astray,
    };
    let trouble = match kind {
        Kind::Plain => Trouble::None,
        Kind::Seed(seed) => Trouble::Seed(seed),
        Kind::Crash(write) => Trouble::CrashAfterWrite(write),
        Kind::Storm(seed) => Trouble::Storm(seed),
    };
    let seed = trouble.seed();
    let mode = Mode { trouble, update };
    let work = || {
        let runtime =
            soroi_clock::simulated_runtime().map_err(|error| broken(format!("no runtime: {error}")))?;
        runtime.block_on(async {
            let clock = Clock::simulated(STARTED);
            let mut stage = EmbeddedStage::new(clock, placement, trouble, seed, &scenario.settings);
            play(scenario, &mut stage, limits, mode).await
        })
    };
    match std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)) {
        Ok(result) => result,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
            Err(broken(format!("panic: {text}")))
        }
    }
}

/// A failure before anything could be played.
pub(crate) fn broken(what: String) -> Box<Failure> {
    Box::new(Failure { line: None, what, trace: Vec::new(), requests: Vec::new() })
}

/// Which writes to crash after: all of them, or `most` spread evenly over them.
pub fn crash_points(writes: u64, most: u64) -> Vec<u64> {
    if writes <= most {
        return (1..=writes).collect();
    }
    (0..most).map(|number| 1 + number * (writes - 1) / (most - 1).max(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_points_are_spread_over_all_writes() {
        assert_eq!(crash_points(3, 10), [1, 2, 3]);
        assert_eq!(crash_points(10, 4), [1, 4, 7, 10]);
        assert_eq!(crash_points(10, 1), [1]);
        assert_eq!(crash_points(0, 4), Vec::<u64>::new());
        assert_eq!(crash_points(4, 0), Vec::<u64>::new());
    }

    #[test]
    fn a_run_is_the_same_every_time() {
        let text = include_str!("../../../scenarios/resumed-by-hand.md");
        let scenario = Scenario::parse("resumed-by-hand", text).unwrap();
        for kind in [Kind::Plain, Kind::Seed(1), Kind::Seed(2), Kind::Crash(9)] {
            let requests = || run(&scenario, Placement::Unified, kind, false).unwrap().requests;
            let first = requests();
            assert!(first.len() > 5, "{first:#?}");
            for _ in 0..4 {
                assert_eq!(requests(), first, "{kind}");
            }
        }
    }

    #[test]
    fn kinds_are_read_as_written() {
        for kind in [Kind::Plain, Kind::Seed(7), Kind::Crash(12), Kind::Storm(3)] {
            assert_eq!(Kind::parse(&kind.to_string()), Some(kind));
        }
        assert_eq!(Kind::parse("seed-x"), None);
    }
}
