//! Whole stories: the control loop of Soroi on an embedded cluster under simulated time. What is
//! compared is what people see.
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test of its own: nothing is public, and a failure is a panic"
)]

mod charging;
mod group;
mod hog;
mod jobless;
mod life;
mod policies;
mod reins;
mod story;
mod trouble;
mod undo;
