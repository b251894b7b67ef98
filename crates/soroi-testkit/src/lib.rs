//! Builders, the scenario harness, the fault layer and seeds; for tests only.

pub mod kind;
pub mod look;
pub mod rule;
pub mod scenario;
pub mod wire;
pub mod world;
