//! How does the world reach the engine, and decisions the world?
//!
//! ```text
//!            watches ──▶ parsed ──▶ world ──▶ engine events ──▶ engine
//!  API server   ▲                     ▲                            │ decisions
//!            lanes ◀── carry ◀── course ◀─────────────────────────┘
//! ```
//!
//! [`run`] is the controllers and the scheduler of Soroi: one sequential loop that takes in what
//! watches and answers say, asks the engine, and has carried out what it decided. It is the same
//! against a real cluster and the embedded one; both are a [`kube::Client`].
//!
//! Architecture invariants: `intake` turns objects into facts, and whatever decides knows facts
//! only; `carry` is pure; only `call` writes to the objects of gangs and queues. Nothing is decided
//! before every plan and bound pod was read. Dropping the future of [`run`] stops everything at
//! once, and what it leaves behind is what a crash leaves behind.

pub mod access;
mod call;
mod carry;
pub mod config;
mod course;
mod cycle;
mod draft;
pub mod events;
pub mod intake;
mod jobs;
mod kind;
mod lanes;
pub mod lease;
pub mod observe;
mod parsed;
pub mod project;
mod queues;
mod reins;
pub mod snapshot;
mod spoken;
mod voice;
mod watches;
mod world;

pub use config::Config;
pub use reins::Reins;

use soroi_clock::Clock;

/// Why [`run`] ended. It does not end by itself: whatever a cluster does is survived.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A task of the loop panicked, which is a bug.
    #[error("a task of the control loop ended unexpectedly")]
    Task,
}

/// Runs the controllers and the scheduler of Soroi until the future is dropped.
///
/// # Errors
/// [`Error`] when something of it ended that never should.
pub async fn run(client: kube::Client, clock: Clock, config: Config) -> Result<(), Error> {
    run_with(client, clock, config, Reins::default()).await
}

/// The same, steered and watched from outside. Ends well when `reins` say so: nothing new was decided
/// then, and what was under way has been answered.
///
/// # Errors
/// [`Error`] when something of it ended that never should.
pub async fn run_with(client: kube::Client, clock: Clock, config: Config, reins: Reins) -> Result<(), Error> {
    cycle::Cycle::new(client, clock, config, reins).run().await
}
