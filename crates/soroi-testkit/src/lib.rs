//! Builders, the scenario harness, the fault layer and seeds; for tests only.
//!
//! A story ([`scenario`]) is played ([`play`]) on a stage ([`stage`]), looked at ([`look`]) and
//! judged ([`rule`]) from what the API shows ([`world`]); between the product and its API server
//! lies a wire that misbehaves from a seed or stands for a crash ([`wire`]). Stories that nobody
//! wrote are drawn from seeds ([`simulate`]).
//!
//! Nothing here reads the product's memory: what a user cannot see does not count.

pub mod api;
pub mod book;
pub mod diff;
pub mod kind;
pub mod look;
pub mod oracle;
pub mod play;
mod replica;
pub mod rule;
pub mod run;
pub mod scenario;
pub mod simulate;
pub mod stage;
pub mod wire;
pub mod world;
