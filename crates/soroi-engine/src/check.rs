//! The invariants of DESIGN section 9 that the engine alone can see. For tests.

use crate::engine::Engine;
use crate::event::Millis;

pub(crate) fn check(engine: &Engine, _now: Millis) -> Result<(), Vec<String>> {
    let found = engine.cluster.discrepancies();
    if found.is_empty() { Ok(()) } else { Err(found) }
}
