//! Who is on which roll? Pods, counted by the Job that controls them and the PodGroup that they name.
//!
//! A pod is on one roll, also when its Job feeds the group that it names; so rolls can be read together
//! without counting anybody twice. Must never know what the counts are for.

use std::collections::{BTreeMap, BTreeSet};

use soroi_engine::event::Name;

use super::World;
use crate::intake::group::{Roll, Rolls};
use crate::intake::{self, GroupFacts, JobFacts, PodFacts};

/// The rolls of all pods that a Job or a PodGroup may count as its own.
#[derive(Debug, Default)]
pub(super) struct Counted {
    /// By the key of the group and the uid of the Job, either of them empty where there is none.
    rolls: BTreeMap<(Name, Name), Roll>,
    /// By uid of a Job: the keys of the groups that its pods name, empty for those that name none.
    groups: BTreeMap<Name, BTreeSet<Name>>,
}

/// On which roll a pod is; on none if it belongs to nobody.
fn home(pod: &PodFacts) -> Option<(Name, Name)> {
    let none = || Name::from("");
    let group = pod.group.as_ref().map(|group| intake::group_key(&pod.pod.namespace, group));
    (group.is_some() || pod.job.is_some())
        .then(|| (group.unwrap_or_else(none), pod.job.clone().unwrap_or_else(none)))
}

impl Counted {
    /// A pod is there.
    pub(super) fn add(&mut self, pod: &PodFacts) {
        let Some(home) = home(pod) else { return };
        if pod.job.is_some() {
            self.groups.entry(home.1.clone()).or_default().insert(home.0.clone());
        }
        self.rolls.entry(home).or_default().add(pod);
    }

    /// It is not, or not like this any more.
    pub(super) fn remove(&mut self, pod: &PodFacts) {
        let Some(home) = home(pod) else { return };
        let Some(roll) = self.rolls.get_mut(&home) else { return };
        roll.remove(pod);
        if roll.is_empty() {
            self.rolls.remove(&home);
            super::seen::remove_from(&mut self.groups, &home.1, &home.0);
        }
    }

    fn of_group<'a>(&'a self, key: &'a Name) -> impl Iterator<Item = &'a Roll> {
        let all = self.rolls.range((key.clone(), Name::from(""))..);
        all.take_while(move |((group, _), _)| group == key).map(|(_, roll)| roll)
    }

    /// The pods of a Job, but for those that name this group.
    fn of_job<'a>(&'a self, job: &'a Name, but: &'a str) -> impl Iterator<Item = &'a Roll> {
        let groups = self.groups.get(job).into_iter().flatten().filter(move |group| ***group != *but);
        groups.filter_map(|group| self.rolls.get(&(group.clone(), job.clone())))
    }
}

impl World {
    /// The pods that name a group, by its key.
    pub(crate) fn roll_of_group<'a>(&'a self, key: &'a Name) -> Rolls<'a> {
        self.counted.of_group(key).collect()
    }

    /// The pods that a group counts: those that name it, and those of the Jobs that feed it.
    pub(crate) fn group_roll<'a>(&'a self, group: &'a GroupFacts, feeders: &[&'a JobFacts]) -> Rolls<'a> {
        let fed = feeders.iter().flat_map(|job| self.counted.of_job(&job.uid, &group.key));
        self.counted.of_group(&group.key).chain(fed).collect()
    }

    /// The pods of owners, each a Job by its uid or a group by its key; without those of the Jobs `but`.
    pub(crate) fn owners_roll(&self, owners: &[Name], but: &[&Name]) -> Rolls<'_> {
        let mut homes = BTreeSet::new();
        for owner in owners {
            let groups = self.counted.groups.get(owner).into_iter().flatten();
            homes.extend(groups.map(|group| (group.clone(), owner.clone())));
            let of_group = self.counted.rolls.range((owner.clone(), Name::from(""))..);
            homes.extend(of_group.map(|(home, _)| home.clone()).take_while(|(group, _)| group == owner));
        }
        homes.retain(|(_, job)| !but.contains(&job));
        homes.iter().filter_map(|home| self.counted.rolls.get(home)).collect()
    }
}
