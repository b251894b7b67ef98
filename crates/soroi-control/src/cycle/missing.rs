//! Pods that name a PodGroup which does not exist: since when do they wait for it?
//!
//! A pod is often seen before its group. So nothing is said for a while; a group that is there by
//! then has its own reasons. Knows roots and times; never writes.

use jiff::{SignedDuration, Timestamp};

use super::agenda::Agenda;
use crate::world::root::Root;

/// How long pods may wait for their group before they are told that it does not exist: longer than
/// a client takes that creates the two one after the other, and shorter than anybody wonders.
const PATIENCE: SignedDuration = SignedDuration::from_secs(5);

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// When the pods of a group are to be told.
    groups: Agenda<Timestamp>,
}

impl Missing {
    /// Pods wait for this group, which is not there.
    pub(super) fn wait(&mut self, group: &Root, now: Timestamp) {
        if self.groups.time(group).is_none() {
            self.groups.set(group, Some(now.saturating_add(PATIENCE).unwrap_or(Timestamp::MAX)));
        }
    }

    /// It is there, or nobody waits for it any more.
    pub(super) fn end(&mut self, group: &Root) {
        self.groups.set(group, None);
    }

    /// Whether its pods are to be told.
    pub(super) fn is_told(&self, group: &Root, now: Timestamp) -> bool {
        self.groups.time(group).is_some_and(|due| due <= now)
    }

    /// Groups whose time has come since the last call.
    pub(super) fn take_due(&mut self, now: Timestamp) -> Vec<Root> {
        self.groups.take_due(now)
    }

    /// When the next time comes.
    pub(super) fn next_due(&self) -> Option<Timestamp> {
        self.groups.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_missed_after_a_while_and_only_once() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let root = Root::Group("ns".into(), "ring".into());
        let mut missing = Missing::default();
        missing.wait(&root, at(10));
        missing.wait(&root, at(12));
        assert_eq!((missing.next_due(), missing.take_due(at(14))), (Some(at(15)), Vec::new()));
        assert!(!missing.is_told(&root, at(14)));
        assert_eq!(missing.take_due(at(15)), vec![root.clone()]);
        assert_eq!((missing.next_due(), missing.take_due(at(16))), (None, Vec::new()));
        // Pods that come later are told at once.
        missing.wait(&root, at(20));
        assert!(missing.is_told(&root, at(20)));
        missing.end(&root);
        assert!(!missing.is_told(&root, at(30)));
        missing.wait(&root, at(30));
        missing.end(&root);
        assert_eq!(missing.next_due(), None);
    }
}
