//! Binds that come late: sent by a leader that had slept since it decided on them.
//!
//! A lease is no fence (ARCHITECTURE.md, "One leader"): what had passed a leader's own check when it
//! was stopped is sent as it wakes, whoever leads by then. That much harm is allowed, and no more:
//! nothing else is bound by a leader whose term is over. What a late bind overfills is not held against
//! those who could not know of it. Knows sleeps and epochs as the API shows them.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::CROSSING_MAX;
use crate::world::{Nap, World};

/// Annotation of a pod that the product bound: the term in which it did.
const LEADER_EPOCH: &str = "soroi.dev/leader-epoch";
/// What had passed the check is sent as the leader wakes, and nothing after that.
const PAST_THE_CHECK: SignedDuration = SignedDuration::from_millis(100);
/// So long after it woke a leader may not have heard yet what happened meanwhile.
const WAKING: SignedDuration = SignedDuration::from_secs(5);

/// Notes whether a bind that is seen now is late; what is wrong with that, if anything.
pub(super) fn note(world: &mut World, pod: &Value, now: Timestamp) -> Option<String> {
    let epoch = pod["metadata"]["annotations"][LEADER_EPOCH].as_str()?.parse::<i64>().ok()?;
    let of_the_past = epoch < world.epoch;
    let excused = may_be_sent_late(world, now);
    if of_the_past || world.naps.iter().any(|nap| woke(nap, WAKING, now)) {
        let uid = pod["metadata"]["uid"].as_str().unwrap_or_default().to_owned();
        world.late.insert(uid, now);
    }
    (of_the_past && !excused).then(|| {
        let name = pod["metadata"]["name"].as_str().unwrap_or_default();
        format!("pod {name} was bound by a leader whose term was over")
    })
}

fn woke(nap: &Nap, within: SignedDuration, now: Timestamp) -> bool {
    (SignedDuration::ZERO..=within).contains(&now.duration_since(nap.until))
}

/// Whether a leader that slept may still send what it was about to.
pub(super) fn may_be_sent_late(world: &World, now: Timestamp) -> bool {
    world.naps.iter().any(|nap| woke(nap, PAST_THE_CHECK, now))
}

/// Whether a pod was bound late, a short while ago.
pub(super) fn is_late(world: &World, pod: &Value, now: Timestamp) -> bool {
    let at = pod["metadata"]["uid"].as_str().and_then(|uid| world.late.get(uid));
    at.is_some_and(|at| now.duration_since(*at) < CROSSING_MAX)
}
