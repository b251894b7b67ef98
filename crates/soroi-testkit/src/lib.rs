//! Builders, the scenario harness, the fault layer and seeds; for tests only.

pub mod kind;
pub mod scenario;
