//! Who leads, and did he wait? Asked of each write of the lease.
//!
//! Whoever takes a lease over that nobody gave back has seen it unchanged for a term and the longest
//! request: until then its holder may still write. Knows Leases; never a process.

use jiff::{SignedDuration, Timestamp};

use crate::kind;
use crate::world::{Changed, World, text};

/// The product's lease; nodes have some too.
pub(super) const NAME: &str = "soroi";
/// A term, and the longest that a request takes: what `soroi run` does without settings.
const WAITED_OUT: SignedDuration = SignedDuration::from_secs(20);

/// Notes a write of the lease; what is wrong with it.
pub(super) fn check(world: &mut World, changed: &Changed, now: Timestamp) -> Option<String> {
    let key = &changed.key;
    let lease = world.get(key.0, &key.1, &key.2).filter(|_| key.0 == kind::LEASE && key.2 == NAME)?;
    let holder = text(&lease["spec"]["holderIdentity"]).to_owned();
    let term = lease["spec"]["leaseTransitions"].clone();
    let last = world.renewed.replace(now);
    let before = changed.before.as_ref()?;
    if before["spec"]["leaseTransitions"] == term {
        return None;
    }
    world.seeing.term_began(now);
    let was = text(&before["spec"]["holderIdentity"]);
    let waited = now.duration_since(last?);
    let early = !was.is_empty() && was != holder && waited < WAITED_OUT;
    early.then(|| {
        format!("{holder} took the lease over {:.1} s after {was} had renewed it", waited.as_secs_f64())
    })
}
