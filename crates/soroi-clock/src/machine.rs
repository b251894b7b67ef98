//! A simulated machine that can be put to sleep: nobody on it is woken until it wakes.
//!
//! A process that is stopped by a signal finds on waking that time went on without it, and that its timers are
//! due; one whose whole machine was suspended, that its timers stood. Both look the same from outside:
//! nothing is heard of it, and then it goes on where it was.
//!
//! Knows clocks. Must never know what runs on the machine.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// What becomes of a machine's timers while it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleep {
    /// They run on: a process that was stopped (`SIGSTOP`).
    TimersRun,
    /// They stand: a machine that was suspended.
    TimersStand,
}

/// A machine that can be put to sleep; clones are the same machine.
#[derive(Clone, Debug)]
pub struct Machine(Arc<watch::Sender<State>>);

#[derive(Clone, Copy, Debug, Default)]
struct State {
    asleep: bool,
    /// Since when its timers stand.
    stopped: Option<Instant>,
    /// How long its timers stood before.
    lost: Duration,
}

impl Machine {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State::default())))
    }

    /// Puts it to sleep, unless it sleeps.
    pub fn sleep(&self, how: Sleep) {
        self.0.send_if_modified(|state| {
            let falls_asleep = !state.asleep;
            if falls_asleep {
                state.asleep = true;
                state.stopped = (how == Sleep::TimersStand).then(Instant::now);
            }
            falls_asleep
        });
    }

    /// Wakes it.
    pub fn wake(&self) {
        self.0.send_modify(|state| {
            let stood = state.stopped.take().map_or(Duration::ZERO, |since| since.elapsed());
            state.lost = state.lost.saturating_add(stood);
            state.asleep = false;
        });
    }

    /// Whether it is awake.
    pub fn is_awake(&self) -> bool {
        !self.0.borrow().asleep
    }

    /// Waits until it is awake.
    pub async fn awake(&self) {
        let mut state = self.0.subscribe();
        // The sender is ours, so the wait ends in no other way.
        let _ = state.wait_for(|state| !state.asleep).await;
    }

    /// How long its timers stood in all.
    pub(crate) fn lost(&self) -> Duration {
        let state = *self.0.borrow();
        state.lost.saturating_add(state.stopped.map_or(Duration::ZERO, |since| since.elapsed()))
    }
}
