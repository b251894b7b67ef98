//! Stories on a real Kubernetes control plane: `soroi run` as users run it, told by kubectl.
//!
//! What is compared is what people see. The control plane is started by `cargo xtask kubernetes up`;
//! it needs Go once, to be built. So these tests are ignored by `cargo test` and run by
//! `cargo xtask test --real`.
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests of real processes in real time"
)]

mod account;
mod admission;
mod adopt;
mod bad_days;
mod bad_input;
mod bench;
mod board;
mod chart;
mod hog;
mod image;
mod installed;
mod kubectl;
mod left;
mod parts;
mod plane;
mod product;
mod race;
mod replicas;
mod restart;
mod undo;
mod webhooks;
