//! Which belong together? Members by what they have in common: pods by node, dependents by owner.

use std::collections::{BTreeMap, BTreeSet};

/// Members of groups; a group without members does not exist.
#[derive(Debug)]
pub(crate) struct Groups<G, M> {
    members: BTreeMap<G, BTreeSet<M>>,
}

impl<G, M> Default for Groups<G, M> {
    fn default() -> Self {
        Self { members: BTreeMap::new() }
    }
}

impl<G: Ord + Clone, M: Ord> Groups<G, M> {
    pub(crate) fn add(&mut self, group: &G, member: M) {
        match self.members.get_mut(group) {
            Some(members) => {
                members.insert(member);
            }
            None => {
                self.members.insert(group.clone(), BTreeSet::from([member]));
            }
        }
    }

    /// Takes a member out; whether that was the last of its group.
    pub(crate) fn remove(&mut self, group: &G, member: &M) -> bool {
        let Some(members) = self.members.get_mut(group) else { return false };
        members.remove(member);
        let empty = members.is_empty();
        if empty {
            self.members.remove(group);
        }
        empty
    }

    /// The members of a group, in their order.
    pub(crate) fn of(&self, group: &G) -> impl Iterator<Item = &M> + use<'_, G, M> {
        self.members.get(group).into_iter().flatten()
    }
}
