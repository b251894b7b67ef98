//! What should happen now? The pure decision engine of Soroi.
//!
//! ```text
//! Event, Outcome ──▶ Engine::apply ──▶ state ──▶ Engine::decide(now) ──▶ Decision
//! ```
//!
//! The engine knows nodes, pods, queues and gangs as plain data and answers with plain data. It
//! never knows Kubernetes objects, the network, a clock, a thread or the order of a hash map: the
//! same events in the same order give the same decisions, byte for byte. Time is an argument.
//!
//! Architecture invariant: objects of *different* types may arrive in any order (a pod before its
//! gang, a queue before its flavor); events are idempotent; what is not known yet is waited for.

pub mod account;
mod check;
pub mod cluster;
mod decide;
pub mod decision;
pub mod engine;
pub mod event;
mod explain;
pub mod fit;
pub mod minima;
pub mod packing;
pub mod place;
pub mod preempt;
pub mod queue;
pub mod quota;
pub mod reason;
pub mod resources;
mod topology;
mod world;

pub use decide::grow::{PAID_POD_SETS_MAX, POD_SETS_MAX};
pub use decision::{Admission, Decision, PodSetAdmission, TopologyDomain, TopologyPlaces};
pub use engine::Engine;
pub use event::{Event, Outcome};
pub use minima::Minima;
pub use reason::Reason;
