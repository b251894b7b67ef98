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

/// How long a gang may wait although it fits, in a lull. Less than the 5 s after which the engine gives those
/// who sleep new numbers: whoever asks for these finds out what he should have been woken for.
const VAIN_MAX: SignedDuration = SignedDuration::from_secs(3);
/// How much longer, while it says that it pauses: the longest pause after an undo.
const PAUSE_MAX: SignedDuration = SignedDuration::from_secs(60);
/// What it says then.
const PAUSES: &str = "pausing before it is tried again";

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Vain {
    /// All is settled, and nothing goes wrong.
    lull: bool,
    /// Since when each waits, and whether it pauses.
    since: BTreeMap<GangRef, (bool, Timestamp)>,
    /// Who waits in vain, how and with which words, and at which turn of the world that was found.
    found: Option<(u64, fits::InVain)>,
}

impl World {
    /// Whether all is settled, and nothing goes wrong.
    pub(super) fn is_in_lull(&self) -> bool {
        self.vain.lull
    }

    /// A lull begins, in which everything is settled, or ends.
    pub(crate) fn lull(&mut self, begins: bool) {
        self.vain = Vain { lull: begins, ..Vain::default() };
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
    let turns = world.turns();
    let found = world.vain.found.take().filter(|(at, _)| *at == turns);
    let (_, waiting) = found.unwrap_or_else(|| (turns, fits::in_vain(world, limits)));
    let known = std::mem::take(&mut world.vain.since);
    let mut late = Vec::new();
    for (gang, how, told) in &waiting {
        if fits::pauses(world, gang, now, limits) {
            continue;
        }
        let pauses = told.contains(PAUSES);
        let since = known.get(gang).filter(|(paused, _)| *paused == pauses).map_or(now, |(_, since)| *since);
        let most = if pauses { PAUSE_MAX + VAIN_MAX } else { VAIN_MAX };
        if now.duration_since(since) > most {
            late.push(format!("gang {} was not woken although it fits{how}: {told}", gang.name));
        }
        world.vain.since.insert(gang.clone(), (pauses, since));
    }
    world.vain.found = Some((turns, waiting));
    late
}
