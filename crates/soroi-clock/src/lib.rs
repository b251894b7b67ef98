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

mod boot;
mod machine;

use std::future::Future;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

pub use machine::{Machine, Sleep};

/// The time that a component lives in. Cheap to clone; all clones show the same time.
#[derive(Clone, Debug)]
pub struct Clock {
    /// What `started` corresponds to, on the clock's own face.
    origin: Timestamp,
    /// When the clock was made, in tokio's time (which a simulation pauses).
    started: Instant,
    /// The same in the machine's own time, which goes on while that is suspended; `None` in a simulation.
    up_at: Option<Duration>,
    /// How many of the clock's seconds pass in one of tokio's.
    pace: u32,
    /// The machine that it belongs to, if that can sleep.
    machine: Option<Machine>,
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
        let up_at = Some(boot::uptime());
        Self { origin: Timestamp::now(), started: Instant::now(), up_at, pace: 1, machine: None }
    }

    /// A wall clock that runs `pace` times as fast (at least once).
    pub fn scaled(pace: u32) -> Self {
        Self { pace: pace.max(1), ..Self::real() }
    }

    /// A clock that starts at `origin` and follows tokio's time, which the runtime of
    /// [`simulated_runtime`] has paused.
    pub fn simulated(origin: Timestamp) -> Self {
        Self { origin, started: Instant::now(), up_at: None, pace: 1, machine: None }
    }

    /// The same on a machine that can be put to sleep. While it sleeps no timer of this clock ends.
    pub fn on_machine(origin: Timestamp) -> (Self, Machine) {
        let machine = Machine::new();
        (Self { machine: Some(machine.clone()), ..Self::simulated(origin) }, machine)
    }

    /// How much of its time has passed since it was made.
    fn passed(&self) -> Duration {
        let passed = self.up_at.map(|up_at| boot::uptime().saturating_sub(up_at));
        passed.unwrap_or_else(|| self.started.elapsed()).saturating_mul(self.pace)
    }

    /// The same without the time in which its machine was suspended: so far its timers are.
    fn awake(&self) -> Duration {
        let lost = self.machine.as_ref().map_or(Duration::ZERO, Machine::lost);
        self.started.elapsed().saturating_sub(lost).saturating_mul(self.pace)
    }

    /// The time now, on this clock's face. It goes on while the machine is suspended, so that whoever compares it
    /// with the end of a term is not misled; timers do not count that time, and end late.
    pub fn now(&self) -> Timestamp {
        let passed = self.passed();
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.origin.saturating_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Milliseconds since 1970 on this clock's face: the form in which the engine takes time.
    pub fn now_millis(&self) -> i64 {
        self.now().as_millisecond()
    }

    /// Waits for a span of this clock's time.
    pub async fn sleep(&self, span: Duration) {
        let Some(machine) = &self.machine else { return tokio::time::sleep(span / self.pace).await };
        let until = self.awake().saturating_add(span);
        loop {
            tokio::time::sleep(until.saturating_sub(self.awake()) / self.pace).await;
            machine.awake().await;
            if self.awake() >= until {
                return;
            }
        }
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
        if self.machine.is_none() {
            return tokio::time::timeout(span / self.pace, work).await.map_err(|_| Elapsed);
        }
        tokio::select! {
            biased;
            done = work => Ok(done),
            () = self.sleep(span) => Err(Elapsed),
        }
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
    fn on_a_machine_that_sleeps_no_timer_ends() {
        let seconds = |clock: &Clock| clock.now().as_second();
        for (how, woken_at, after) in [(Sleep::TimersRun, 30, 30), (Sleep::TimersStand, 30, 35)] {
            simulated_runtime().unwrap().block_on(async {
                let world = Clock::simulated(Timestamp::UNIX_EPOCH);
                let (clock, machine) = Clock::on_machine(Timestamp::UNIX_EPOCH);
                let outside = async {
                    world.sleep(Duration::from_secs(5)).await;
                    machine.sleep(how);
                    world.sleep(Duration::from_secs(25)).await;
                    assert!(!machine.is_awake());
                    machine.wake();
                    seconds(&clock)
                };
                let inside = async {
                    let late = clock.timeout(Duration::from_secs(10), std::future::pending::<()>()).await;
                    assert_eq!(late, Err(Elapsed));
                    seconds(&clock)
                };
                assert_eq!(tokio::join!(outside, inside), (woken_at, after), "{how:?}");
            });
        }
    }

    #[test]
    fn the_real_clock_goes_with_the_wall() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(async {
            let (clock, wall) = (Clock::real(), Timestamp::now());
            clock.sleep(Duration::from_millis(30)).await;
            let (by_clock, by_wall) =
                (clock.now().duration_since(wall), Timestamp::now().duration_since(wall));
            assert!(by_clock >= SignedDuration::from_millis(30), "{by_clock}");
            assert!((by_wall - by_clock).abs() < SignedDuration::from_secs(1), "{by_clock} {by_wall}");
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
