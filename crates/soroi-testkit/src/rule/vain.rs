//! Does somebody wait although he fits, while nothing goes wrong? Then no event has woken him.
//!
//! In a storm a crash hides what was forgotten: whoever starts anew asks everything anew. So a story has lulls,
//! in which requests are carried and processes live, and whatever makes room then must be seen at once.
//! Knows what the API shows; never why nobody was woken.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::Limits;
use crate::scenario::GangRef;
use crate::simulate::fits;
use crate::world::World;

/// How long a gang may wait although it fits, in a lull.
const VAIN_MAX: SignedDuration = SignedDuration::from_secs(5);

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vain {
    /// All is settled, and nothing goes wrong.
    lull: bool,
    /// Since when each waits.
    since: BTreeMap<GangRef, Timestamp>,
}

impl World {
    /// Whether all is settled, and nothing goes wrong.
    pub(super) fn is_in_lull(&self) -> bool {
        self.vain.lull
    }

    /// A lull begins, in which everything is settled, or ends.
    pub(crate) fn lull(&mut self, begins: bool) {
        self.vain = Vain { lull: begins, since: BTreeMap::new() };
    }
}

/// Who has waited for too long.
pub(super) fn check(world: &mut World, now: Timestamp, limits: &Limits) -> Vec<String> {
    if !world.vain.lull {
        return Vec::new();
    }
    if !world.is_seen_to(now) {
        world.vain.since.clear();
        return Vec::new();
    }
    let waiting = fits::in_vain(world, limits.placement);
    let known = std::mem::take(&mut world.vain.since);
    let mut late = Vec::new();
    for (gang, how, told) in waiting {
        let since = known.get(&gang).copied().unwrap_or(now);
        if now.duration_since(since) > VAIN_MAX {
            late.push(format!("gang {} was not woken although it fits{how}: {told}", gang.name));
        }
        world.vain.since.insert(gang, since);
    }
    late
}
