//! What may happen next? All of it, from any state.
//!
//! Knows the order of things around a leader: when it begins, what becomes of its requests, what it
//! hears. What it decides is in [`leader`], what the API server makes of a request in [`server`],
//! what others do in [`around`].

pub mod around;
pub mod leader;
pub mod server;

use std::fmt;

use crate::rules::{Bounds, Mistake, Mistakes};
use crate::state::{Kind, Late, Mode, REPLICAS, Replica, State, Target, Write};

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is answered before anything else happens.
    Answered,
    /// It is carried out, and the answer is lost.
    Unheard,
    /// It is on its way while other things happen.
    Delayed,
}

/// One step of the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A replica's term begins.
    Start(usize),
    /// A leader has read all objects of a kind.
    List(usize, Kind),
    /// A watch tells a leader of everything new of a kind.
    Hear(usize, Kind),
    /// A leader reads an object back.
    ReadBack(usize, Target),
    /// A leader is killed, or its term ends.
    Crash(usize),
    /// A leader admits a gang.
    Admit(usize, usize),
    /// A leader gives a gang other places.
    Replan(usize, usize),
    /// A leader takes an admission back, since nothing else can follow.
    Undo(usize, usize),
    /// A leader takes an admission back while its gang still is on its way.
    UndoEarly(usize, usize),
    /// A leader sends a request about a gang.
    Send(usize, usize, Write, Fate),
    /// A request that was on its way arrives.
    Arrive(Late),
    /// A request that was on its way is lost.
    Vanish(Late),
    /// The Job controller creates a member.
    Create(usize, usize),
    /// The Job controller follows a suspension.
    Stop(usize),
    /// A pod that was on its way out is gone.
    Gone(usize, usize),
    /// A kubelet refuses a pod for which its slot has no room.
    Reject(usize, usize),
    /// A pod that nobody queued is bound here.
    HogComes(u8),
    /// It ends.
    HogGoes,
    /// Somebody deletes a member.
    Delete(usize, usize),
    /// Somebody deletes a plan.
    Wipe(usize),
}

impl Step {
    /// Something goes wrong, or somebody outside does something: nothing may depend on it.
    pub fn is_fault(self) -> bool {
        matches!(
            self,
            Self::Crash(_)
                | Self::Send(_, _, _, Fate::Unheard | Fate::Delayed)
                | Self::UndoEarly(..)
                | Self::HogComes(_)
                | Self::HogGoes
                | Self::Delete(..)
                | Self::Wipe(_)
        )
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gang = |at: usize| ["X", "Y"][at];
        match *self {
            Self::Start(by) => write!(f, "leader {by} begins"),
            Self::List(by, kind) => write!(f, "leader {by} lists {kind:?}"),
            Self::Hear(by, kind) => write!(f, "leader {by} hears of {kind:?}"),
            Self::ReadBack(by, target) => write!(f, "leader {by} reads back {target:?}"),
            Self::Crash(by) => write!(f, "leader {by} is gone"),
            Self::Admit(by, at) => write!(f, "leader {by} admits {}", gang(at)),
            Self::Replan(by, at) => write!(f, "leader {by} looks for other places for {}", gang(at)),
            Self::Undo(by, at) | Self::UndoEarly(by, at) => write!(f, "leader {by} takes {} back", gang(at)),
            Self::Send(by, at, what, fate) => {
                let fate = match fate {
                    Fate::Answered => "",
                    Fate::Unheard => ", and the answer is lost",
                    Fate::Delayed => ", which is under way",
                };
                write!(f, "leader {by} sends {what:?} for {}{fate}", gang(at))
            }
            Self::Arrive(late) => {
                write!(f, "{:?} of leader {} for {} arrives", late.write, late.by, gang(late.gang))
            }
            Self::Vanish(late) => {
                write!(f, "{:?} of leader {} for {} is lost", late.write, late.by, gang(late.gang))
            }
            Self::Create(at, member) => write!(f, "pod {member} of {} is created", gang(at)),
            Self::Stop(at) => write!(f, "the Job of {} stops", gang(at)),
            Self::Gone(at, member) => write!(f, "pod {member} of {} is gone", gang(at)),
            Self::Reject(at, member) => write!(f, "pod {member} of {} is refused by its kubelet", gang(at)),
            Self::HogComes(slot) => write!(f, "somebody else's pod takes slot {slot}"),
            Self::HogGoes => write!(f, "somebody else's pod ends"),
            Self::Wipe(at) => write!(f, "somebody deletes the plan of {}", gang(at)),
            Self::Delete(at, member) => write!(f, "somebody deletes pod {member} of {}", gang(at)),
        }
    }
}

/// Everything that may happen in this world, and what follows.
pub fn all(bounds: &Bounds, mistakes: &Mistakes, state: &State) -> Vec<(Step, State)> {
    let mut next = Vec::new();
    around::steps(bounds, state, &mut next);
    for (at, late) in state.late.iter().enumerate() {
        if let Some(late) = *late {
            arrive(mistakes, state, at, late, &mut next);
        }
    }
    for by in 0..REPLICAS {
        match state.replicas[by].mode {
            Mode::Down => start(bounds, mistakes, state, by, &mut next),
            Mode::Listing(read) => list(bounds, mistakes, state, by, read, &mut next),
            Mode::Leading => lead(bounds, mistakes, state, by, &mut next),
        }
    }
    // Time runs out when nothing goes on.
    if next.iter().all(|(step, _)| step.is_fault()) {
        for by in 0..REPLICAS {
            let due = leader::time_outs(state, by);
            next.extend(due.map(|gang| (Step::Undo(by, gang), leader::undo(mistakes, state, by, gang))));
        }
    }
    next
}

/// A term begins when the one before is over, and its last requests have ended one way or the other:
/// unless a sleeper's does not.
fn start(bounds: &Bounds, mistakes: &Mistakes, state: &State, by: usize, next: &mut Vec<(Step, State)>) {
    let free = state.replicas.iter().all(|other| other.mode == Mode::Down);
    let ended = bounds.sleepers || !state.late.iter().flatten().any(|late| late.orphaned);
    // Replicas are alike: without overlap one of them can stand for all.
    if mistakes.contains(&Mistake::OldLeaseNotWaitedOut) || free && ended && by == 0 {
        let mut then = *state;
        then.replicas[by].mode = Mode::Listing(0);
        next.push((Step::Start(by), then));
    }
}

fn list(
    bounds: &Bounds,
    mistakes: &Mistakes,
    state: &State,
    by: usize,
    read: u8,
    next: &mut Vec<(Step, State)>,
) {
    for (at, kind) in Kind::ALL.into_iter().enumerate() {
        if read & (1 << at) != 0 {
            continue;
        }
        let mut then = *state;
        server::see_all(&mut then, by, kind);
        let read = read | (1 << at);
        let skips = mistakes.contains(&Mistake::DecideBeforeListsAreWhole) && read == 0b1110;
        let whole = read == 0b1111 || skips;
        then.replicas[by].mode = if whole { Mode::Leading } else { Mode::Listing(read) };
        leader::take_in(mistakes, &mut then, by);
        next.push((Step::List(by, kind), then));
    }
    crash(bounds, state, by, next);
}

fn lead(bounds: &Bounds, mistakes: &Mistakes, state: &State, by: usize, next: &mut Vec<(Step, State)>) {
    for kind in Kind::ALL {
        if server::has_news(state, by, kind) {
            let mut then = *state;
            server::see_all(&mut then, by, kind);
            leader::take_in(mistakes, &mut then, by);
            next.push((Step::Hear(by, kind), then));
        }
    }
    if !state.replicas[by].unread.is_empty() && !mistakes.contains(&Mistake::NeverReadBack) {
        for target in Kind::ALL.into_iter().flat_map(Target::of) {
            if state.replicas[by].unread.has(target) {
                let mut then = *state;
                server::read_back(mistakes, &mut then, by, target);
                leader::take_in(mistakes, &mut then, by);
                next.push((Step::ReadBack(by, target), then));
            }
        }
    }
    leader::decisions(bounds, mistakes, state, by, next);
    if state.spent.timeouts < bounds.timeouts {
        for gang in leader::time_outs(state, by) {
            let mut then = leader::undo(mistakes, state, by, gang);
            then.spent.timeouts += 1;
            next.push((Step::UndoEarly(by, gang), then));
        }
    }
    for gang in 0..crate::state::GANGS {
        for write in leader::wishes(bounds, mistakes, state, by, gang) {
            if !state.is_busy(by, write.target(gang)) {
                send(bounds, mistakes, state, by, gang, write, next);
            }
        }
    }
    crash(bounds, state, by, next);
}

fn send(
    bounds: &Bounds,
    mistakes: &Mistakes,
    state: &State,
    by: usize,
    gang: usize,
    write: Write,
    next: &mut Vec<(Step, State)>,
) {
    let holds = server::holds(&state.replicas[by], gang, write);
    let mut then = *state;
    let done = server::perform(mistakes, &mut then, gang, write, holds, true);
    answered(mistakes, &mut then, by, gang, write, done);
    next.push((Step::Send(by, gang, write, Fate::Answered), then));
    if state.spent.losses < bounds.losses {
        let mut then = *state;
        then.spent.losses += 1;
        server::perform(mistakes, &mut then, gang, write, holds, true);
        leader::sent(&mut then, by, gang, write);
        leader::unheard(mistakes, &mut then, by, gang, write);
        leader::take_in(mistakes, &mut then, by);
        next.push((Step::Send(by, gang, write, Fate::Unheard), then));
    }
    if state.spent.delays < bounds.delays
        && bounds.only.is_none_or(|only| only == write.errand())
        && let Some(free) = state.late.iter().position(Option::is_none)
    {
        let mut then = *state;
        then.spent.delays += 1;
        leader::sent(&mut then, by, gang, write);
        then.late[free] = Some(Late { by, gang, write, holds, orphaned: false });
        then.late.sort();
        next.push((Step::Send(by, gang, write, Fate::Delayed), then));
    }
}

/// The sender hears what came of it. After a refusal the object is read back.
fn answered(mistakes: &Mistakes, state: &mut State, by: usize, gang: usize, write: Write, done: bool) {
    let target = write.target(gang);
    if done {
        server::see(state, by, target);
    } else {
        state.replicas[by].sent.set(target, false);
        state.replicas[by].unread.set(target, true);
    }
    leader::take_in(mistakes, state, by);
}

fn arrive(mistakes: &Mistakes, state: &State, at: usize, late: Late, next: &mut Vec<(Step, State)>) {
    let Late { by, gang, write, holds, orphaned } = late;
    let mut gone = *state;
    gone.late[at] = None;
    gone.late.sort();
    let mut then = gone;
    let done = server::perform(mistakes, &mut then, gang, write, holds, !orphaned);
    if !orphaned {
        answered(mistakes, &mut then, by, gang, write, done);
    }
    next.push((Step::Arrive(late), then));
    if !orphaned {
        leader::unheard(mistakes, &mut gone, by, gang, write);
        leader::take_in(mistakes, &mut gone, by);
    }
    next.push((Step::Vanish(late), gone));
}

fn crash(bounds: &Bounds, state: &State, by: usize, next: &mut Vec<(Step, State)>) {
    if state.spent.crashes < bounds.crashes {
        let mut then = *state;
        then.spent.crashes += 1;
        then.replicas[by] = Replica::down();
        for late in then.late.iter_mut().flatten().filter(|late| late.by == by) {
            late.orphaned = true;
        }
        then.late.sort();
        next.push((Step::Crash(by), then));
    }
}
