//! What does a PodGroup want, and what do its pods look like?

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use sha1::{Digest, Sha1};
use soroi_api::labels::kueue as kueue_keys;
use soroi_api::names;
use soroi_api::volcano::{self, NetworkTopologyMode, PodGroupPhase};
use soroi_engine::Minima;
use soroi_engine::event::{Millis, Name, PodSet, Shape, TopologyRequest};

use super::workload::Owner;
use super::{Invalid, group_key, millis, some_name};

pub mod roll;

pub use roll::{Kind, Roll, Rolls};

/// What is worth remembering of a PodGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupFacts {
    /// Its uid.
    pub uid: Name,
    /// Its namespace.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// What its pods' owner says: [`group_key`].
    pub key: Name,
    /// The job that made it, if one did.
    pub owner: Option<Owner>,
    /// How many pods must start together; at least one.
    pub min_member: u32,
    /// The same per role that has a minimum. Empty when its sum exceeds `min_member`: Volcano ignores
    /// it then (`JobInfo.CheckTaskValid`, 1.15).
    pub min_per_role: BTreeMap<Name, u32>,
    /// Its seat in Volcano's tree.
    pub volcano_queue: Name,
    /// The LocalQueue that its label names.
    pub queue: Option<Name>,
    /// Its PriorityClass.
    pub priority_class: Option<Name>,
    /// Where its status says it stands.
    pub phase: Option<PodGroupPhase>,
    /// How many of its members ended well, as its status says.
    pub succeeded: u32,
    /// When it was created.
    pub created_at: Millis,
    /// It has a deletion timestamp.
    pub terminating: bool,
    /// What could not be understood or honoured. Such a group waits, with this reason.
    pub invalid: Option<Invalid>,
}

impl GroupFacts {
    /// How few members are worth running.
    pub fn minima(&self) -> Minima {
        Minima { members: self.min_member, roles: self.min_per_role.clone() }
    }
}

/// A PodGroup.
///
/// # Errors
/// [`Invalid`] on `metadata.uid` or `metadata.name`; all else is in [`GroupFacts::invalid`].
pub fn group(group: &volcano::PodGroup) -> Result<GroupFacts, Invalid> {
    let meta = &group.metadata;
    let spec = &group.spec;
    let uid = some_name(meta.uid.as_ref()).ok_or_else(|| Invalid::new("metadata.uid", "is missing"))?;
    let name = some_name(meta.name.as_ref()).ok_or_else(|| Invalid::new("metadata.name", "is missing"))?;
    let namespace: Name = Arc::from(meta.namespace.as_deref().unwrap_or_default());
    let min_member = u32::try_from(spec.min_member.unwrap_or(0));
    let roles: BTreeMap<Name, u32> = spec
        .min_task_member
        .iter()
        .map(|(role, least)| (Arc::from(role.as_str()), u32::try_from(*least).unwrap_or(0)))
        .filter(|(_, least)| *least > 0)
        .collect();
    let needed = roles.values().fold(0_u32, |sum, least| sum.saturating_add(*least));
    let negative = min_member.is_err().then(|| Invalid::new("spec.minMember", "must not be negative"));
    let min_member = min_member.unwrap_or(0);
    let min_per_role = if needed <= min_member { roles } else { BTreeMap::new() };
    let succeeded = group.status.as_ref().and_then(|status| status.succeeded);
    Ok(GroupFacts {
        key: group_key(&namespace, &name),
        uid,
        namespace,
        name,
        owner: Owner::of(meta),
        // Who asks for none at once is content with one: nothing is no gang.
        min_member: min_member.max(1),
        min_per_role,
        volcano_queue: Arc::from(spec.queue()),
        queue: some_name(meta.labels.as_ref().and_then(|labels| labels.get(kueue_keys::QUEUE_NAME))),
        priority_class: some_name(spec.priority_class_name.as_ref()),
        phase: group.status.as_ref().and_then(|status| status.phase),
        succeeded: u32::try_from(succeeded.unwrap_or(0)).unwrap_or(0),
        created_at: millis(meta.creation_timestamp.as_ref()),
        terminating: meta.deletion_timestamp.is_some(),
        invalid: negative.or_else(|| unsupported(spec)),
    })
}

/// What the group asks for and nobody here would honour; to start it nevertheless would be wrong.
fn unsupported(spec: &volcano::PodGroupSpec) -> Option<Invalid> {
    let hard = spec.network_topology.as_ref().is_some_and(|topology| {
        topology.mode.unwrap_or(NetworkTopologyMode::Hard) == NetworkTopologyMode::Hard
    });
    if hard {
        Some(Invalid::new("spec.networkTopology", "mode hard is not supported"))
    } else if !spec.sub_group_policy.is_empty() {
        Some(Invalid::new("spec.subGroupPolicy", "is not supported"))
    } else {
        None
    }
}

/// Equal pods of a PodGroup.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupPodSet {
    /// Its name: the role where the pods name one, else `main`, with a number where that would not
    /// be unique.
    pub name: Name,
    /// The role that its pods name.
    pub role: Option<Name>,
    /// What each needs.
    pub shape: Arc<Shape>,
    /// Where they must be relative to each other, as [`Self::example`] says.
    pub topology: TopologyRequest,
    /// How many there are.
    pub count: u32,
    /// The uid of the first of them: stands for all where a template is needed.
    pub example: Name,
}

/// A pod set that was decided before: its name, and the fingerprint of its pods' shape.
pub type Named = (Name, Name);

/// What a shape is recognised by later: equal for equal shapes. The text that it is made of may
/// change with a version of ours; pod sets are then told apart as if they were new.
pub fn fingerprint(shape: &Shape) -> Name {
    let digest = Sha1::digest(format!("{shape:?}"));
    digest.iter().take(5).map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

/// The living members of a PodGroup by role and shape. Pods that have ended, or are being deleted, are no
/// part of them.
///
/// The order is that of role, then shape, so that it does not depend on the order of the pods. What
/// was decided keeps its name, whatever comes later: `known`.
pub fn pod_sets(members: &Rolls<'_>, known: &[Named]) -> Vec<GroupPodSet> {
    let mut used: BTreeSet<Name> = known.iter().map(|(name, _)| name.clone()).collect();
    let each = members.live().into_iter().map(|((role, shape), (count, example, topology))| {
        let base = role.clone().filter(|role| names_a_pod_set(role)).unwrap_or_else(|| Arc::from("main"));
        let name = known_name(known, &base, shape).unwrap_or_else(|| {
            let numbered = (2..).map(|number| Arc::from(format!("{base}-{number}")));
            let mut names = std::iter::once(base.clone()).chain(numbered);
            names.find(|name| used.insert(name.clone())).expect("there are numbers enough")
        });
        GroupPodSet {
            name,
            role: role.clone(),
            shape: shape.clone(),
            topology: topology.clone(),
            count,
            example: example.clone(),
        }
    });
    each.collect()
}

/// The name under which pods of this shape were decided, if they were.
fn known_name(known: &[Named], base: &str, shape: &Shape) -> Option<Name> {
    let of_base = |name: &str| {
        let number = name.strip_prefix(base).map(|rest| rest.strip_prefix('-').unwrap_or(rest));
        number.is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
    };
    if known.is_empty() {
        return None;
    }
    let print = fingerprint(shape);
    known.iter().find(|(name, of)| *of == print && of_base(name)).map(|(name, _)| name.clone())
}

/// Why no Workload can stand for these members, if none can: the first pod (by name) that asks for what
/// nobody here would honour or for another topology than its like, or more pod sets than a Workload
/// may have.
pub fn refused(members: &Rolls<'_>, sets: &[GroupPodSet]) -> Option<Invalid> {
    let elsewhere = sets.iter().filter_map(|set| {
        let name = members.elsewhere(set.role.as_ref(), &set.shape, &set.topology)?;
        let problem = "ask for another topology than those of a pod of the same role and shape";
        Some((name, Invalid::new("metadata.annotations", problem)))
    });
    let invalid = members.invalid().map(|(name, invalid)| (name, invalid.clone()));
    // Of two of one name, the first is kept.
    let wrong = invalid.into_iter().chain(elsewhere).min_by_key(|(name, _)| *name);
    let wrong = wrong.map(|(name, invalid)| invalid.within(&format!("pods[{name}]")));
    wrong.or_else(|| {
        let (kinds, most) = (sets.len(), kueue_keys::POD_SETS_MAX);
        let problem = format!("the group has {kinds} distinct kinds of pods, a Workload at most {most}");
        (kinds > most).then(|| Invalid::new("spec.podSets", problem))
    })
}

/// How many pods of each pod set of the group's Workload will not run again: those that ended well,
/// `gone` of them without a trace but that pods are missing. `now`: the pod sets of those that live.
pub fn ended<'a>(
    planned: &[PodSet],
    succeeded: impl IntoIterator<Item = (&'a Kind, u32)>,
    mut gone: u32,
    now: &[PodSet],
) -> Vec<u32> {
    let mut ended = vec![0_u32; planned.len()];
    for ((role, shape), count) in succeeded {
        let named = |set: &PodSet| role.as_ref() == Some(&set.name);
        let alike = |set: &PodSet| set.shape == *shape;
        let at = planned.iter().position(|set| named(set) && alike(set));
        let at = at.or_else(|| planned.iter().position(alike)).or_else(|| planned.iter().position(named));
        if let Some(ended) = ended.get_mut(at.unwrap_or(0)) {
            *ended = ended.saturating_add(count);
        }
    }
    for (set, ended) in planned.iter().zip(&mut ended) {
        let live = now.iter().find(|there| there.name == set.name).map_or(0, |there| there.count);
        let more = set.count.saturating_sub(live).saturating_sub(*ended).min(gone);
        *ended = ended.saturating_add(more).min(set.count);
        gone -= more;
    }
    ended
}

/// Whether a role may be a pod set's name: room is left for a number.
fn names_a_pod_set(role: &str) -> bool {
    role.len() <= 58 && names::is_label(role)
}

#[cfg(test)]
mod tests;
