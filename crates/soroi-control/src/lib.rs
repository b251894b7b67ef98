//! How does the world reach the engine, and decisions the world?

mod call;
pub mod config;
pub mod intake;
mod kind;
mod lanes;
pub mod project;
