//! What time is it? The one clock that every component is given.
//!
//! A [`Clock`] is real, scaled (`60x`: a minute of the cluster in a second of ours) or simulated.
//! The simulated one stands on tokio's paused time: one thread, and time jumps to the next timer
//! as soon as nobody has anything left to do, so that an hour of the cluster takes milliseconds
//! and the same seed gives the same run. Everything that waits or stamps an object asks this
//! clock; the functions that would bypass it are banned by `clippy.toml`.
//!
//! This crate knows nothing of Kubernetes.
#![allow(clippy::disallowed_methods, reason = "this is the one place that may ask for the time")]

use std::future::Future;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// The time that a component lives in. Cheap to clone; all clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// What `started` corresponds to, on the clock's own face.
    origin: Timestamp,
    /// When the clock was made, in tokio's time (which a simulation pauses).
    started: Instant,
    /// How many of the clock's seconds pass in one of tokio's.
    pace: u32,
}

/// A future did not end within the time that it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed;

impl std::fmt::Display for Elapsed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("deadline has elapsed")
    }
}

impl std::error::Error for Elapsed {}

impl Clock {
    /// The wall clock. Must be called within a tokio runtime.
    pub fn real() -> Self {
        Self { origin: Timestamp::now(), started: Instant::now(), pace: 1 }
    }

    /// A wall clock that runs `pace` times as fast (at least once).
    pub fn scaled(pace: u32) -> Self {
        Self { pace: pace.max(1), ..Self::real() }
    }

    /// A clock that starts at `origin` and follows tokio's time, which the runtime of
    /// [`simulated_runtime`] has paused.
    pub fn simulated(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now(), pace: 1 }
    }

    /// The time now, on this clock's face.
    pub fn now(&self) -> Timestamp {
        let passed = self.started.elapsed().saturating_mul(self.pace);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Milliseconds since 1970 on this clock's face: the form in which the engine takes time.
    pub fn now_millis(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// Waits for a span of this clock's time.
    pub async fn sleep(&self, span: Duration) {
        tokio::time::sleep(span / self.pace).await;
    }

    /// Waits until this clock shows `when`; returns at once when that has passed.
    pub async fn sleep_until(&self, when: Timestamp) {
        let left = when.duration_since(self.now());
        self.sleep(Duration::try_from(left).unwrap_or(Duration::ZERO)).await;
    }

    /// Runs `work` for at most `span` of this clock's time.
    ///
    /// # Errors
    /// [`Elapsed`] when it did not end by then; `work` is dropped.
    pub async fn timeout<F: Future>(&self, span: Duration, work: F) -> Result<F::Output, Elapsed> {
        tokio::time::timeout(span / self.pace, work).await.map_err(|_| Elapsed)
    }
}

/// A runtime for simulations: one thread, and time that moves only when nobody has work.
///
/// # Errors
/// When the operating system refuses what a runtime needs.
pub fn simulated_runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_hour_of_simulated_time_costs_nothing() {
        let runtime = simulated_runtime().unwrap();
        runtime.block_on(async {
            let clock = Clock::simulated(Timestamp::UNIX_EPOCH);
            let before = std::time::Instant::now();
            clock.sleep(Duration::from_secs(3600)).await;
            assert_eq!(clock.now().as_second(), 3600);
            assert!(before.elapsed() < Duration::from_secs(5));
        });
    }

    #[test]
    fn a_scaled_clock_runs_faster() {
        let runtime = simulated_runtime().unwrap();
        runtime.block_on(async {
            let clock = Clock { pace: 60, ..Clock::simulated(Timestamp::UNIX_EPOCH) };
            let outer = Instant::now();
            clock.sleep(Duration::from_secs(60)).await;
            assert_eq!(clock.now().as_second(), 60);
            assert_eq!(outer.elapsed(), Duration::from_secs(1));
            clock.sleep_until(Timestamp::from_second(30).unwrap()).await;
            assert_eq!(clock.now().as_second(), 60);
            let late = clock.timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
            assert_eq!(late, Err(Elapsed));
        });
    }
}
