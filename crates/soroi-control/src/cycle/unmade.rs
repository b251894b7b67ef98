//! Jobs of which no Workload can be made, as things are: a class that they name does not exist, say.
//!
//! Asking again would only be refused again, and said again. So they are left alone until the Job
//! changes, or something that Jobs are understood by. Knows roots and versions; never writes.

use std::collections::{BTreeMap, BTreeSet};

use soroi_engine::event::Name;

use crate::world::root::Root;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unmade {
    /// Counts the changes of what Jobs are understood by.
    changes: u64,
    /// When the Workload of a Job was last asked for, in such changes, and the Job's version then.
    asked: BTreeMap<Root, (u64, Name)>,
    /// Those that were refused, with the version of the Job.
    refused: BTreeMap<Root, Name>,
}

impl Unmade {
    /// Its Workload is asked for, the Job being known in this version.
    pub(super) fn ask(&mut self, root: &Root, version: &Name) {
        self.asked.insert(root.clone(), (self.changes, version.clone()));
    }

    /// It was refused, by what the Job is and how it is understood.
    pub(super) fn is_refused(&mut self, root: &Root) {
        // What changed while the answer was under way may not be in it.
        if let Some((changes, version)) = self.asked.remove(root)
            && changes == self.changes
        {
            self.refused.insert(root.clone(), version);
        }
    }

    /// Whether to ask now would be in vain.
    pub(super) fn is_in_vain(&self, root: &Root, version: &Name) -> bool {
        self.refused.get(root) == Some(version)
    }

    /// It wants no Workload made.
    pub(super) fn forget(&mut self, root: &Root) {
        self.asked.remove(root);
        self.refused.remove(root);
    }

    /// Something that Jobs are understood by changed. Returns those that are worth asking for again.
    pub(super) fn all_may_differ(&mut self) -> BTreeSet<Root> {
        self.changes = self.changes.wrapping_add(1);
        std::mem::take(&mut self.refused).into_keys().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_refused_is_asked_for_again_when_something_changed() {
        let root = Root::Workload("ns".into(), "job-a".into());
        let mut unmade = Unmade::default();
        unmade.ask(&root, &"7".into());
        unmade.is_refused(&root);
        assert!(unmade.is_in_vain(&root, &"7".into()) && !unmade.is_in_vain(&root, &"8".into()));
        assert_eq!(unmade.all_may_differ(), BTreeSet::from([root.clone()]));
        assert!(!unmade.is_in_vain(&root, &"7".into()));
        unmade.ask(&root, &"7".into());
        assert_eq!(unmade.all_may_differ(), BTreeSet::new());
        unmade.is_refused(&root);
        assert!(!unmade.is_in_vain(&root, &"7".into()));
    }
}
