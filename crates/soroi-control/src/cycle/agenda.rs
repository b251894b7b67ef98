//! Which root has its turn at which time?
//!
//! Each root has one time at most. Once that has come it is not told again, and stands until it is moved.
//! Knows roots and times; what they mean is known by whoever keeps them.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::root::Root;

/// See the module. `T`: a point in time.
#[derive(Debug)]
pub(super) struct Agenda<T> {
    times: BTreeMap<Root, T>,
    /// Those that were not told yet, the first one first.
    due: BTreeSet<(T, Root)>,
}

impl<T> Default for Agenda<T> {
    fn default() -> Self {
        Self { times: BTreeMap::new(), due: BTreeSet::new() }
    }
}

impl<T: Ord + Copy> Agenda<T> {
    /// The time of a root from now on; `None`: it has none. The same as before is no news.
    pub(super) fn set(&mut self, root: &Root, time: Option<T>) {
        if self.time(root) == time {
            return;
        }
        if let Some(before) = self.times.remove(root) {
            self.due.remove(&(before, root.clone()));
        }
        if let Some(time) = time {
            self.times.insert(root.clone(), time);
            self.due.insert((time, root.clone()));
        }
    }

    /// The time of a root, whether it has come or not.
    pub(super) fn time(&self, root: &Root) -> Option<T> {
        self.times.get(root).copied()
    }

    /// The next time that was not told yet.
    pub(super) fn next(&self) -> Option<T> {
        self.due.first().map(|(time, _)| *time)
    }

    /// Roots whose time is not after `now`, each once, in the order of their times.
    pub(super) fn take_due(&mut self, now: T) -> Vec<Root> {
        let mut roots = Vec::new();
        while self.next().is_some_and(|time| time <= now) {
            roots.extend(self.due.pop_first().map(|(_, root)| root));
        }
        roots
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_once_and_may_be_moved() {
        let root = |name: &str| Root::Workload("ns".into(), name.into());
        let mut agenda = Agenda::default();
        agenda.set(&root("a"), Some(10));
        agenda.set(&root("b"), Some(20));
        agenda.set(&root("a"), Some(30));
        assert_eq!((agenda.next(), agenda.take_due(19)), (Some(20), Vec::new()));
        assert_eq!(agenda.take_due(20), vec![root("b")]);
        // Told again, it is no news.
        agenda.set(&root("b"), Some(20));
        assert_eq!((agenda.time(&root("b")), agenda.next()), (Some(20), Some(30)));
        agenda.set(&root("a"), None);
        assert_eq!((agenda.next(), agenda.take_due(99)), (None, Vec::new()));
    }
}
