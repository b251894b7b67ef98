//! When is it time to show how a group does?
//!
//! What a PodGroup's status says changes with every one of its pods, thousands of times while it starts.
//! So it rests for a moment after the first change, and longer while gangs have requests under way: then
//! one write says it all, and does not get between a gang and its start. Knows roots and times; never
//! writes.

use jiff::{SignedDuration, Timestamp};
use soroi_engine::event::Millis;

use super::agenda::Agenda;
use crate::world::root::Root;

/// How long a change rests.
const REST: SignedDuration = SignedDuration::from_millis(100);
/// How long it rests at most while requests are under way: people do not notice a second.
const REST_MAX: SignedDuration = SignedDuration::from_secs(1);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Rests {
    /// Since when groups may not show how they do.
    since: Agenda<Timestamp>,
}

impl Rests {
    /// Something of this root changed.
    pub(super) fn begin(&mut self, root: &Root, now: Timestamp) {
        if matches!(root, Root::Group(..)) && self.since.time(root).is_none() {
            self.since.set(root, Some(now));
        }
    }

    /// Those that have rested. `busy`: gangs have requests under way.
    pub(super) fn take_due(&mut self, now: Timestamp, busy: bool) -> Vec<Root> {
        let roots = self.since.take_due(now.saturating_sub(rest(busy)).unwrap_or(Timestamp::MIN));
        roots.iter().for_each(|root| self.since.set(root, None));
        roots
    }

    /// When the next one has rested.
    pub(super) fn next_due(&self, busy: bool) -> Option<Millis> {
        let due = self.since.next()?.saturating_add(rest(busy)).unwrap_or(Timestamp::MAX);
        // Rounded up: what is due in a part of a millisecond is not due yet.
        Some(due.as_millisecond().saturating_add(1))
    }
}

/// How long a change rests.
fn rest(busy: bool) -> SignedDuration {
    if busy { REST_MAX } else { REST }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_rests_from_its_first_change_and_longer_while_others_are_busy() {
        let at = |millis| Timestamp::from_millisecond(millis).unwrap();
        let root = |name: &str| Root::Group("ns".into(), name.into());
        let mut rests = Rests::default();
        rests.begin(&root("b"), at(0));
        rests.begin(&root("a"), at(50));
        rests.begin(&root("b"), at(90));
        rests.begin(&Root::Pod("p".into()), at(0));
        assert_eq!((rests.next_due(false), rests.next_due(true)), (Some(101), Some(1_001)));
        assert_eq!(rests.take_due(at(99), false), vec![]);
        assert_eq!(rests.take_due(at(149), false), vec![root("b")]);
        assert_eq!(rests.take_due(at(1_049), true), vec![]);
        assert_eq!(rests.take_due(at(1_050), true), vec![root("a")]);
        assert_eq!(rests.next_due(false), None);
    }
}
