//! What do the containers of a pod do? A small state machine over time, and what it shows.
//!
//! Pure: it knows a pod, its script and the time. It must never know of requests or of other pods.

use std::time::Duration;

use jiff::Timestamp;

use crate::annotation::{self, Span};
use crate::due::after;
use crate::need::Amounts;
use crate::seen::{Phase, Pod, Restart, State};

/// The exit code of a container that is told to stop and has no handler for it (128 + SIGTERM).
const STOPPED: i32 = 143;
/// The exit code of a container whose machine went down under it (128 + SIGKILL).
pub(crate) const KILLED: i32 = 137;
/// Crash back-off: from 10 seconds, doubling, up to 5 minutes (kubelet 1.36).
const CRASH_WAIT: Duration = Duration::from_secs(10);
const CRASH_WAIT_MAX: Duration = Duration::from_secs(300);

/// What a pod's annotations say that its containers do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Script {
    pub(crate) start_after: Span,
    pub(crate) ready_after: Span,
    pub(crate) run_for: Span,
    pub(crate) exit_code: i32,
    pub(crate) stop_after: Span,
}

impl Script {
    /// Reads the annotations; what cannot be read counts as absent and is named.
    pub(crate) fn of(pod: &Pod, start_latency: Duration) -> (Self, Vec<&'static str>) {
        let mut unreadable = Vec::new();
        let mut span = |name: &'static str, default| match pod.meta.annotation(name) {
            None => default,
            Some(text) => annotation::span(text).unwrap_or_else(|| {
                unreadable.push(name);
                default
            }),
        };
        let start_after = span(annotation::START_AFTER, Span::For(start_latency));
        let ready_after = span(annotation::READY_AFTER, Span::For(Duration::ZERO));
        let run_for = span(annotation::RUN_FOR, Span::Never);
        let stop_after = span(annotation::STOP_AFTER, Span::For(Duration::ZERO));
        let exit_code = match pod.meta.annotation(annotation::EXIT_CODE).map(str::parse) {
            None => 0,
            Some(Ok(code)) => code,
            Some(Err(_)) => {
                unreadable.push(annotation::EXIT_CODE);
                0
            }
        };
        (Self { start_after, ready_after, run_for, exit_code, stop_after }, unreadable)
    }
}

/// What the containers are doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// Being started.
    Starting {
        at: Option<Timestamp>,
    },
    Running {
        since: Timestamp,
    },
    /// Ended, and to be started again.
    Crashed {
        exit: i32,
        since: Timestamp,
        ended: Timestamp,
        again: Timestamp,
    },
    /// Ended for good.
    Ended {
        exit: i32,
        since: Option<Timestamp>,
        ended: Timestamp,
    },
}

/// A pod that its kubelet has taken in.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) uid: String,
    /// What it occupies; nothing once it has ended.
    pub(crate) held: Amounts,
    pub(crate) process: Process,
    pub(crate) restarts: i32,
    /// When the containers will have stopped, once they were told to.
    stops: Option<Stop>,
    /// The kubelet has asked the API server to remove it.
    pub(crate) removed: bool,
}

/// When something will have happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    At(Timestamp),
    Never,
}

/// What to do about a pod now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing, until something else happens.
    Rest,
    /// Nothing until then.
    Wait(Timestamp),
    /// Its status does not show what its containers do.
    Show,
    /// Its containers are gone; the API server may forget it.
    Remove,
}

impl Life {
    /// A pod that has been admitted just now, or that an earlier kubelet had admitted.
    pub(crate) fn begin(pod: &Pod, script: &Script, now: Timestamp) -> Self {
        let running = pod.statuses.iter().find_map(|status| match status.state {
            State::Running { since } => Some(since.or(pod.started).unwrap_or(now)),
            State::Waiting | State::Ended { .. } => None,
        });
        let process = match (pod.phase, running) {
            (Phase::Running, Some(since)) => Process::Running { since },
            // Set to Running by somebody who wrote no container statuses: it runs.
            (Phase::Running, None) if pod.statuses.is_empty() => {
                Process::Running { since: pod.started.unwrap_or(now) }
            }
            (Phase::Running, None) => Process::Crashed { exit: 1, since: now, ended: now, again: now },
            _ => Process::Starting { at: until(now, script.start_after) },
        };
        let restarts = pod.statuses.iter().map(|status| status.restarts).max().unwrap_or(0);
        let (uid, held) = (pod.meta.uid.clone(), pod.need.clone());
        Self { uid, held, process, restarts, stops: None, removed: false }
    }

    /// Lets time pass and says what to do then.
    pub(crate) fn step(&mut self, pod: &Pod, script: &Script, now: Timestamp) -> Step {
        if pod.meta.deleting.is_some() {
            return self.stop(pod, script, now);
        }
        if pod.ended() {
            return Step::Rest;
        }
        let change = self.advance(pod.restart, script, now);
        if self.shown(pod, script, now) {
            let ready = match self.process {
                Process::Running { since } if !self.ready(script, now) => until(since, script.ready_after),
                _ => None,
            };
            match change.into_iter().chain(ready).min() {
                Some(at) => Step::Wait(at),
                None => Step::Rest,
            }
        } else {
            Step::Show
        }
    }

    /// The way out: stop, show the end if anybody waits for it, be removed.
    fn stop(&mut self, pod: &Pod, script: &Script, now: Timestamp) -> Step {
        if self.removed || pod.meta.grace == Some(0) {
            return Step::Rest;
        }
        if !pod.ended() {
            if matches!(self.process, Process::Running { .. } | Process::Crashed { .. }) {
                let slow = |finalizer: &String| {
                    annotation::SLOW_EXIT_FINALIZERS.iter().any(|slow| finalizer.ends_with(slow))
                };
                if pod.meta.finalizers.iter().any(slow) {
                    return Step::Rest;
                }
                let stops = || until(now, script.stop_after).map_or(Stop::Never, Stop::At);
                match *self.stops.get_or_insert_with(stops) {
                    Stop::Never => return Step::Rest,
                    Stop::At(at) if now < at => return Step::Wait(at),
                    Stop::At(_) => {}
                }
            }
            self.end(STOPPED, now);
            // Nobody can see the end of a pod that vanishes in the same moment.
            if !pod.meta.finalizers.is_empty() {
                return Step::Show;
            }
        }
        Step::Remove
    }

    /// The containers end now, whatever their script says.
    pub(crate) fn end(&mut self, exit: i32, now: Timestamp) {
        let since = match self.process {
            Process::Starting { .. } => None,
            Process::Running { since } | Process::Crashed { since, .. } => Some(since),
            Process::Ended { .. } => return,
        };
        self.process = Process::Ended { exit, since, ended: now };
    }

    /// The containers die now; whether they come back is up to the restart policy.
    pub(crate) fn crash(&mut self, restart: Restart, exit: i32, now: Timestamp) {
        if let Process::Running { since } = self.process {
            self.exit(restart, exit, since, now);
        }
    }

    fn exit(&mut self, restart: Restart, exit: i32, since: Timestamp, ended: Timestamp) {
        let again = match restart {
            Restart::Always => true,
            Restart::OnFailure => exit != 0,
            Restart::Never => false,
        };
        self.process = if again {
            Process::Crashed { exit, since, ended, again: after(ended, crash_wait(self.restarts)) }
        } else {
            Process::Ended { exit, since: Some(since), ended }
        };
    }

    /// Brings the containers to where they are at `now`; when they change next.
    fn advance(&mut self, restart: Restart, script: &Script, now: Timestamp) -> Option<Timestamp> {
        loop {
            let next = match self.process {
                Process::Starting { at } => at?,
                Process::Running { since } => until(since, script.run_for)?,
                Process::Crashed { again, .. } => again,
                Process::Ended { .. } => return None,
            };
            if now < next {
                return Some(next);
            }
            match self.process {
                Process::Starting { .. } => self.process = Process::Running { since: now },
                Process::Running { since } => self.exit(restart, script.exit_code, since, next),
                Process::Crashed { .. } => {
                    self.restarts = self.restarts.saturating_add(1);
                    self.process = Process::Running { since: now };
                }
                Process::Ended { .. } => return None,
            }
        }
    }

    /// Whether its readiness probe would succeed.
    pub(crate) fn ready(&self, script: &Script, now: Timestamp) -> bool {
        match self.process {
            Process::Running { since } => until(since, script.ready_after).is_some_and(|at| at <= now),
            _ => false,
        }
    }

    /// The phase that follows from what the containers do.
    pub(crate) fn phase(&self) -> Phase {
        match self.process {
            Process::Starting { .. } => Phase::Pending,
            Process::Running { .. } | Process::Crashed { .. } => Phase::Running,
            Process::Ended { exit: 0, since: Some(_), .. } => Phase::Succeeded,
            Process::Ended { .. } => Phase::Failed,
        }
    }

    /// Whether the pod's status says what its containers do.
    fn shown(&self, pod: &Pod, script: &Script, now: Timestamp) -> bool {
        if matches!(self.process, Process::Starting { .. }) {
            return true;
        }
        let waiting = matches!(self.process, Process::Crashed { .. });
        let told = pod
            .statuses
            .iter()
            .all(|status| status.restarts == self.restarts && waiting == (status.state == State::Waiting));
        told && pod.phase == self.phase() && pod.ready() == self.ready(script, now)
    }
}

/// How long a container that was restarted so often waits before it is restarted again.
fn crash_wait(restarts: i32) -> Duration {
    match u32::try_from(restarts).unwrap_or(0) {
        0 => Duration::ZERO,
        restarts => CRASH_WAIT.saturating_mul(1 << (restarts - 1).min(8)).min(CRASH_WAIT_MAX),
    }
}

fn until(start: Timestamp, span: Span) -> Option<Timestamp> {
    match span {
        Span::For(span) => Some(after(start, span)),
        Span::Never => None,
    }
}
