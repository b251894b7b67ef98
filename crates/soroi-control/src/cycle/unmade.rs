//! Jobs and PodGroups of which no Workload can be made, as things are: a class that they name does not
//! exist, say.
//!
//! Asking again would only be refused again, and said again. So they are left alone until what the Workload
//! is made of changes, or something that this is understood by. Knows roots and what Workloads are made of;
//! never writes.

use std::collections::{BTreeMap, BTreeSet};

use soroi_engine::event::Name;

use crate::call::Call;
use crate::draft::Draft;
use crate::intake::GroupFacts;
use crate::intake::group::GroupPodSet;
use crate::world::World;
use crate::world::root::Root;

/// What a Workload is made of: as long as this is the same, so is the Workload.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum MadeOf {
    /// Of a Job in this version.
    Job(Name),
    /// Of the pods of a PodGroup.
    Group(Box<(GroupFacts, Name, Vec<GroupPodSet>)>),
}

/// What the Workload is made of that this call makes, if it makes one.
pub(super) fn made_of(world: &World, call: &Call) -> Option<MadeOf> {
    let of = call.makes_workload_of()?;
    let place = (of.namespace.clone(), of.name.clone());
    let Call::Draft(draft) = call else { return None };
    match &**draft {
        Draft::GroupWorkload { queue, sets, .. } => {
            // How far it is changes with every pod that runs, and is no part of its Workload.
            let facts = world.groups.get(&place)?.facts.facts.clone();
            let facts = GroupFacts { phase: None, succeeded: 0, ..facts };
            let sets = sets.iter().map(|(set, _)| set.clone()).collect();
            Some(MadeOf::Group(Box::new((facts, queue.clone(), sets))))
        }
        _ => Some(MadeOf::Job(world.jobs.get(&place)?.meta.version.clone())),
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Unmade {
    /// Counts the changes of what Jobs and pods are understood by.
    changes: u64,
    /// When a Workload was last asked for, in such changes, and of what.
    asked: BTreeMap<Root, (u64, MadeOf)>,
    /// Those that were refused, and why.
    refused: BTreeMap<Root, (MadeOf, Name)>,
}

impl Unmade {
    /// Its Workload is asked for.
    pub(super) fn ask(&mut self, root: &Root, made_of: MadeOf) {
        self.asked.insert(root.clone(), (self.changes, made_of));
    }

    /// It was refused, by what it is made of and how that is understood.
    pub(super) fn is_refused(&mut self, root: &Root, why: &str) {
        // What changed while the answer was under way may not be in it.
        if let Some((changes, made_of)) = self.asked.remove(root)
            && changes == self.changes
        {
            self.refused.insert(root.clone(), (made_of, why.into()));
        }
    }

    /// Whether to ask now would be in vain.
    pub(super) fn is_in_vain(&self, root: &Root, made_of: &MadeOf) -> bool {
        self.refused.get(root).is_some_and(|(refused, _)| refused == made_of)
    }

    /// Why it was refused.
    pub(super) fn why(&self, root: &Root) -> Option<&Name> {
        self.refused.get(root).map(|(_, why)| why)
    }

    /// It wants no Workload made.
    pub(super) fn forget(&mut self, root: &Root) {
        self.asked.remove(root);
        self.refused.remove(root);
    }

    /// Something that Jobs and pods are understood by changed. Returns those that are worth asking for again.
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
        let version = |version: &str| MadeOf::Job(version.into());
        let mut unmade = Unmade::default();
        unmade.ask(&root, version("7"));
        unmade.is_refused(&root, "no such class");
        assert_eq!(unmade.why(&root).map(|why| &**why), Some("no such class"));
        assert!(unmade.is_in_vain(&root, &version("7")) && !unmade.is_in_vain(&root, &version("8")));
        assert_eq!(unmade.all_may_differ(), BTreeSet::from([root.clone()]));
        assert!(!unmade.is_in_vain(&root, &version("7")));
        unmade.ask(&root, version("7"));
        assert_eq!(unmade.all_may_differ(), BTreeSet::new());
        unmade.is_refused(&root, "no such class");
        assert_eq!(unmade.why(&root), None);
        assert!(!unmade.is_in_vain(&root, &version("7")));
    }
}
