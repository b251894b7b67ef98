//! How many members make a gang worth running: in all, and of each role.
//!
//! Knows counts and the names of roles. Must never know where members are or whose they are.

use std::collections::BTreeMap;

use crate::event::Name;

/// How few members are worth running (a PodGroup's `minMember` and `minTaskMember`).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Minima {
    /// In all.
    pub members: u32,
    /// Of each role that has a minimum of its own.
    pub roles: BTreeMap<Name, u32>,
}

/// What is missing from a minimum.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lack {
    /// The role that lacks members; `None`: the whole does.
    pub role: Option<Name>,
    /// Members there.
    pub have: u32,
    /// Members needed.
    pub need: u32,
}

impl Minima {
    /// A minimum over all members alone.
    pub fn of(members: u32) -> Self {
        Self { members, roles: BTreeMap::new() }
    }

    /// The first minimum that members, counted by role, do not meet. Roles come before the whole, as
    /// in Volcano (`plugins/gang`, 1.15).
    pub fn lack<'a>(&self, counts: impl IntoIterator<Item = (Option<&'a Name>, u32)>) -> Option<Lack> {
        let (all, by_role) = self.count(counts);
        let of_role = self.roles.iter().find_map(|(role, need)| {
            let have = by_role.get(role).copied().unwrap_or(0);
            (have < *need).then(|| Lack { role: Some(role.clone()), have, need: *need })
        });
        of_role.or_else(|| (all < self.members).then_some(Lack { role: None, have: all, need: self.members }))
    }

    /// Whether members, counted by role, meet all minima.
    pub fn are_met<'a>(&self, counts: impl IntoIterator<Item = (Option<&'a Name>, u32)>) -> bool {
        self.lack(counts).is_none()
    }

    /// What is left to be met beside these members.
    pub fn beside<'a>(&self, counts: impl IntoIterator<Item = (Option<&'a Name>, u32)>) -> Self {
        let (all, by_role) = self.count(counts);
        let left = |(role, need): (&Name, &u32)| {
            let left = need.saturating_sub(by_role.get(role).copied().unwrap_or(0));
            (left > 0).then(|| (role.clone(), left))
        };
        Self {
            members: self.members.saturating_sub(all),
            roles: self.roles.iter().filter_map(left).collect(),
        }
    }

    /// The fewest members that could meet all of them.
    pub fn total(&self) -> u32 {
        self.roles.values().fold(0, |sum: u32, need| sum.saturating_add(*need)).max(self.members)
    }

    /// Members in all, and of the roles that have a minimum.
    fn count<'a>(
        &self,
        counts: impl IntoIterator<Item = (Option<&'a Name>, u32)>,
    ) -> (u32, BTreeMap<&'a Name, u32>) {
        let (mut all, mut by_role) = (0u32, BTreeMap::new());
        for (role, count) in counts {
            all = all.saturating_add(count);
            if let Some(role) = role.filter(|role| self.roles.contains_key(*role)) {
                let sum: &mut u32 = by_role.entry(role).or_default();
                *sum = sum.saturating_add(count);
            }
        }
        (all, by_role)
    }
}
