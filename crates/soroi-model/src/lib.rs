//! Can a gang ever be left half started? The commit protocol (ARCHITECTURE.md, "Carrying it out" and
//! "One leader") as a small state machine, of which every reachable state is visited.
//!
//! ```text
//! state     what the API server has, what each leader has seen and decided, what is under way
//! steps     everything that may happen next: to a leader, between leader and server, around them
//! promises  what must hold in every state, and what must be reachable from each of them
//! explore   visits all states, the nearest first; what breaks is told as the shortest story
//! rules     how much may go wrong, and deliberate mistakes, by which the model shows that it can see
//! ```
//!
//! It is written after `soroi_control::{carry, cycle, lanes, lease}` and `soroi_engine::decide`, and
//! knows none of them: a mistake that is in both was made twice. Two gangs of two members want the
//! same places or the same quota. Numbers, names and times are left out; a time-out may strike
//! whenever what it waits for is missing.
//!
//! The explorer is our own because the promise that matters most, "from here it always can come to
//! rest", asks for the whole graph of states, which checkers that keep fingerprints do not have.

pub mod explore;
pub mod promises;
pub mod rules;
pub mod state;
pub mod steps;
pub mod symmetry;
