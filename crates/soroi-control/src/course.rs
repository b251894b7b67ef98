//! How far is a gang? What was decided for it, and how much of that is known to stand.
//!
//! Knows decisions and the records of them. Must never know how anything is written.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use soroi_api::plan::{PlanUndo, PlanVictim};
use soroi_engine::decision::{Admission, PodSetAdmission};
use soroi_engine::event::{Admitted, Amount, Name, PlanPhase, PodUid, Policy};
use soroi_engine::reason::Reason;

use crate::intake::PlanFacts;
use crate::world::gang::Composed;

/// Where a gang stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Stage {
    /// Nothing was decided for it.
    #[default]
    Waiting,
    /// It was admitted.
    Admitted {
        /// What it got.
        admission: Arc<Admission>,
        /// That is written down.
        committed: bool,
        /// All its members are bound.
        settled: bool,
    },
    /// It starts when others have left.
    Holding {
        /// What is kept for it.
        admission: Arc<Admission>,
        /// Who leaves.
        victims: Arc<Vec<PlanVictim>>,
        /// That is written down.
        written: bool,
    },
    /// Its admission is being taken back.
    Leaving {
        /// Why, and whether members ran.
        undo: PlanUndo,
        /// All is taken back; only the record is left.
        undone: bool,
    },
}

/// A gang on its way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Course {
    pub(crate) stage: Stage,
    /// Why it waits: for its admission, or as an admitted gang for its places.
    pub(crate) told: Option<Told>,
    /// Members that are to be bound, and where.
    pub(crate) binds: BTreeMap<PodUid, Name>,
    /// Domains of members that are still seen behind the topology gate. The request may be under
    /// way, so a domain that was given once is not given to another pod.
    pub(crate) pins: BTreeMap<PodUid, Vec<Name>>,
    /// How many pods of each set it pays for now; empty: for all that it was admitted with.
    pub(crate) paid: Vec<u32>,
}

/// A reason as it is to be shown.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Told {
    /// In one word.
    pub(crate) word: &'static str,
    /// For people.
    pub(crate) message: String,
    /// With its numbers.
    pub(crate) reason: Reason,
}

impl Course {
    /// How many pods of each set it was admitted with and does not pay for any more.
    pub(crate) fn unpaid(&self, admission: &Admission) -> BTreeMap<Name, u32> {
        let each = self.paid.iter().zip(&admission.pod_sets);
        each.map(|(paid, set)| (set.name.clone(), set.count.saturating_sub(*paid))).collect()
    }

    /// The admission without members of a group that were lost and are not waited for: beyond its
    /// minimum they come and go. (Those that ended well stay in it, and are told as
    /// `reclaimablePods`.)
    pub(crate) fn without_lost<'a>(&self, gang: &Composed, admission: &'a Admission) -> Cow<'a, Admission> {
        let of_pods = gang.group.is_some() && gang.parts.iter().all(|part| part.job.is_none());
        let ended = |set: &Name| -> u32 {
            let named = gang.parts.iter().flat_map(|part| part.pod_sets.iter().zip(&part.ended));
            named.filter(|((_, name), _)| name == set).map(|(_, ended)| *ended).sum()
        };
        let mut lost = self.unpaid(admission);
        for (set, unpaid) in &mut lost {
            *unpaid = unpaid.saturating_sub(ended(set));
        }
        lost.retain(|_, lost| *lost > 0);
        if !of_pods || lost.is_empty() {
            return Cow::Borrowed(admission);
        }
        let mut left = admission.clone();
        for set in &mut left.pod_sets {
            let all = Amount::from(set.count.max(1));
            set.count -= lost.get(&set.name).copied().unwrap_or(0);
            set.usage.values_mut().for_each(|amount| *amount = *amount / all * Amount::from(set.count));
        }
        Cow::Owned(left)
    }

    /// It got other places. Members whose node did not change are bound there all the same, once the
    /// new record stands.
    pub(crate) fn replace(&mut self, admission: Admission) {
        let binds = std::mem::take(&mut self.binds);
        self.admit(admission);
        self.binds = binds;
    }

    /// Something of it is written that speaks of its Workloads as they are.
    pub(crate) fn has_begun(&self) -> bool {
        self.stage != Stage::Waiting
    }

    /// It was admitted.
    pub(crate) fn admit(&mut self, admission: Admission) {
        let admission = Arc::new(admission);
        self.stage = Stage::Admitted { admission, committed: false, settled: false };
        self.told = None;
        self.binds.clear();
        self.pins.clear();
    }

    /// Others leave for it.
    pub(crate) fn wait_for(&mut self, admission: Admission, victims: Vec<PlanVictim>) {
        let (admission, victims) = (Arc::new(admission), Arc::new(victims));
        self.stage = Stage::Holding { admission, victims, written: false };
        self.binds.clear();
        self.pins.clear();
    }

    /// Its admission is taken back.
    pub(crate) fn leave(&mut self, undo: PlanUndo) {
        self.stage = Stage::Leaving { undo, undone: false };
        self.told = None;
        self.binds.clear();
        self.pins.clear();
    }

    /// Takes up what an earlier run wrote down, if nothing was decided since. Otherwise a decision
    /// would be known to the engine, which read the same record, and to nobody who carries it out.
    pub(crate) fn adopt_plan(&mut self, plan: &PlanFacts) {
        if self.stage != Stage::Waiting {
            return;
        }
        self.stage = match plan.plan.phase {
            PlanPhase::Undoing => {
                Stage::Leaving { undo: plan.undo.clone().unwrap_or_default(), undone: false }
            }
            PlanPhase::Holding => Stage::Holding {
                admission: Arc::new(plan.plan.admission.clone()),
                victims: Arc::new(plan.victims.clone()),
                written: true,
            },
            PlanPhase::Committed | PlanPhase::Settled => Stage::Admitted {
                admission: Arc::new(plan.plan.admission.clone()),
                committed: true,
                settled: plan.plan.phase == PlanPhase::Settled,
            },
        };
    }

    /// The same from a Workload's status, for policies whose commit that is.
    pub(crate) fn adopt_status(
        &mut self,
        gang: &Name,
        policy: Policy,
        held: &Admitted,
        usage: &BTreeMap<Name, BTreeMap<Name, Amount>>,
        evicted: Option<PlanUndo>,
    ) {
        if self.stage != Stage::Waiting {
            return;
        }
        self.stage = match evicted {
            Some(undo) => Stage::Leaving { undo, undone: false },
            None => Stage::Admitted {
                admission: Arc::new(admission_of(gang, policy, held, usage)),
                committed: true,
                settled: false,
            },
        };
    }
}

/// The admission that a Workload's status shows. `usage`: what each pod set pays, by resource.
fn admission_of(
    gang: &Name,
    policy: Policy,
    held: &Admitted,
    usage: &BTreeMap<Name, BTreeMap<Name, Amount>>,
) -> Admission {
    let pod_sets = held.pod_sets.iter().map(|(name, count, flavors)| PodSetAdmission {
        name: name.clone(),
        count: *count,
        flavors: flavors.clone(),
        usage: usage.get(name).cloned().unwrap_or_default(),
        nodes: Vec::new(),
        topology: held.topology.get(name).cloned(),
    });
    Admission {
        gang: gang.clone(),
        policy,
        cluster_queue: Some(held.cluster_queue.clone()),
        pod_sets: pod_sets.collect(),
    }
}

/// Whether an admission needs a plan: it decides places, and Soroi binds there. (Under TopologyOnly
/// the Workload's status holds them, and another scheduler binds.)
pub(crate) fn needs_plan(admission: &Admission) -> bool {
    admission.policy.soroi_binds() && admission.pod_sets.iter().any(|set| !set.nodes.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_places_for_some_keep_the_bindings_of_the_rest() {
        let admission = Admission {
            gang: "g".into(),
            policy: Policy::Unified,
            cluster_queue: None,
            pod_sets: Vec::new(),
        };
        let mut course = Course::default();
        course.binds.insert("a".into(), "n1".into());
        course.replace(admission.clone());
        assert_eq!(course.binds.len(), 1);
        course.admit(admission);
        assert_eq!(course.binds.len(), 0);
    }
}
