//! Plans whose gang is gone: which of them are to be looked at?
//!
//! A plan is then all that is left of a gang, and stands until its last bound member has left. Only
//! what changed is looked at: the plan itself, or pods of those whom it names as owners. Never
//! decides anything.

use std::collections::{BTreeMap, BTreeSet};

use soroi_engine::event::{GangId, Name};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Orphans {
    /// Those whose plan stands, with their owners.
    waiting: BTreeMap<GangId, Vec<Name>>,
    by_owner: BTreeMap<Name, BTreeSet<GangId>>,
    changed: BTreeSet<GangId>,
}

impl Orphans {
    /// A gang is gone, or something of it changed since.
    pub(super) fn change(&mut self, gang: GangId) {
        self.changed.insert(gang);
    }

    /// Pods of these owners changed.
    pub(super) fn owners_moved(&mut self, owners: &BTreeSet<Name>) {
        if self.waiting.is_empty() {
            return;
        }
        for gangs in owners.iter().filter_map(|owner| self.by_owner.get(owner)) {
            self.changed.extend(gangs.iter().cloned());
        }
    }

    /// Those that have to be looked at.
    pub(super) fn changed(&self) -> &BTreeSet<GangId> {
        &self.changed
    }

    /// The same, for the last time.
    pub(super) fn take_changed(&mut self) -> BTreeSet<GangId> {
        std::mem::take(&mut self.changed)
    }

    /// Its plan stands, for pods of these owners.
    pub(super) fn wait(&mut self, gang: &GangId, owners: &[Name]) {
        self.forget(gang);
        for owner in owners {
            self.by_owner.entry(owner.clone()).or_default().insert(gang.clone());
        }
        self.waiting.insert(gang.clone(), owners.to_vec());
    }

    /// Its plan is gone, or its gang is there again.
    pub(super) fn forget(&mut self, gang: &GangId) {
        self.changed.remove(gang);
        for owner in self.waiting.remove(gang).into_iter().flatten() {
            if let Some(gangs) = self.by_owner.get_mut(&owner) {
                gangs.remove(gang);
                if gangs.is_empty() {
                    self.by_owner.remove(&owner);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(of: &[&str]) -> Vec<Name> {
        of.iter().map(|name| Name::from(*name)).collect()
    }

    #[test]
    fn only_orphans_of_which_something_changed_are_looked_at() {
        let mut orphans = Orphans::default();
        orphans.wait(&"a".into(), &names(&["job-a", "group"]));
        orphans.wait(&"b".into(), &names(&["job-b", "group"]));
        orphans.owners_moved(&names(&["job-a", "job-c"]).into_iter().collect());
        assert_eq!(orphans.take_changed(), names(&["a"]).into_iter().collect());
        assert_eq!(orphans.take_changed(), BTreeSet::new());
        orphans.forget(&"a".into());
        orphans.owners_moved(&names(&["job-a", "group"]).into_iter().collect());
        assert_eq!(orphans.take_changed(), names(&["b"]).into_iter().collect());
        orphans.forget(&"b".into());
        assert!(orphans.waiting.is_empty() && orphans.by_owner.is_empty());
    }
}
