//! Gangs that may run for so long: when is their time over?
//!
//! Knows roots and times; what follows is told by the Workloads themselves.

use std::collections::{BTreeMap, BTreeSet};

use soroi_engine::event::Millis;

use crate::world::root::Root;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    of: BTreeMap<Root, Millis>,
    /// Those that have not come.
    due: BTreeSet<(Millis, Root)>,
}

impl Deadlines {
    /// A gang may run until then; `None`: it does not run, or may for ever.
    pub(super) fn set(&mut self, root: &Root, until: Option<Millis>) {
        if self.of.get(root).copied() == until {
            return;
        }
        if let Some(before) = self.of.remove(root) {
            self.due.remove(&(before, root.clone()));
        }
        if let Some(until) = until {
            self.of.insert(root.clone(), until);
            self.due.insert((until, root.clone()));
        }
    }

    /// Those whose time is over since the last call.
    pub(super) fn take_due(&mut self, now: Millis) -> Vec<Root> {
        let mut roots = Vec::new();
        while self.next_due().is_some_and(|due| due <= now) {
            roots.extend(self.due.pop_first().map(|(_, root)| root));
        }
        roots
    }

    /// When the next one's is.
    pub(super) fn next_due(&self) -> Option<Millis> {
        self.due.first().map(|(due, _)| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_comes_once_and_may_be_moved() {
        let root = |name: &str| Root::Workload("ns".into(), name.into());
        let mut deadlines = Deadlines::default();
        deadlines.set(&root("a"), Some(10));
        deadlines.set(&root("b"), Some(20));
        deadlines.set(&root("a"), Some(30));
        assert_eq!((deadlines.next_due(), deadlines.take_due(19)), (Some(20), Vec::new()));
        assert_eq!(deadlines.take_due(20), vec![root("b")]);
        // Told again, it is no news.
        deadlines.set(&root("b"), Some(20));
        assert_eq!(deadlines.next_due(), Some(30));
        deadlines.set(&root("a"), None);
        assert_eq!((deadlines.next_due(), deadlines.take_due(99)), (None, Vec::new()));
    }
}
