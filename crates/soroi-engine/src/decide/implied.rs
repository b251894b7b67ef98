//! Members that are bound although nothing says why: an implied commit.
//!
//! Somebody bound them: an earlier leader whose plan is lost, another scheduler before Soroi took
//! over, a user. They run, so the gang holds what they need, is completed if that is possible, and
//! leaves as a whole otherwise. A gang that must be suspended first is not ready and therefore
//! never one of these: a job that was resumed by hand does not get past its queue this way.

use std::collections::BTreeMap;

use super::gang::Phase;
use super::restore::paid;
use crate::decision::{Admission, Decision, PodSetAdmission};
use crate::engine::Engine;
use crate::event::{ClusterQueue, Gang, Labels, Millis, Name, Pod, PodSet, Readiness};
use crate::reason::NotYet;

impl Engine {
    /// Holds what a gang's bound members need, if there are any.
    pub(super) fn adopt_bound(&mut self, fact: &Gang, now: Millis, out: &mut Vec<Decision>) {
        let ready = matches!(fact.readiness, Readiness::Ready | Readiness::NotYet(NotYet::MembersMissing(_)));
        if !ready || !self.policy_of(fact).soroi_binds() || fact.foreign_scheduler.is_some() {
            return;
        }
        let Some(admission) = self.implied_admission(fact) else { return };
        let pays = admission.cluster_queue.is_some();
        self.waiting.leave(&fact.id);
        self.hold(admission, Phase::Committed, now);
        if let Some(held) = self.gangs.get_mut(&fact.id).and_then(|state| state.held.as_mut()) {
            // Its places are where its members are, not to be found when checks are passed.
            held.parked = false;
        }
        if pays {
            self.write_places(&fact.id, now, out);
        }
    }

    /// What the bound members show; `None` if there are none, or if no flavor of their queue means
    /// the nodes on which they are.
    fn implied_admission(&self, fact: &Gang) -> Option<Admission> {
        let members = self.world.members(&fact.id, &fact.owners);
        let bound: Vec<&Pod> = members.filter(|pod| pod.is_live() && pod.node.is_some()).collect();
        if bound.is_empty() {
            return None;
        }
        let queue = match &fact.local_queue {
            Some(_) => {
                let door = self.local_queue_of(fact)?;
                Some(self.quotas.kueue.queue(&door.cluster_queue)?)
            }
            None => None,
        };
        let nodes: Vec<&Labels> = bound
            .iter()
            .filter_map(|pod| self.cluster.node(pod.node.as_ref()?))
            .map(|node| &node.labels)
            .collect();
        let pod_sets = fact.pod_sets.iter().map(|set| self.implied_set(set, queue, &nodes));
        Some(Admission {
            gang: fact.id.clone(),
            policy: self.policy_of(fact),
            cluster_queue: queue.map(|queue| queue.name.clone()),
            pod_sets: pod_sets.collect::<Option<_>>()?,
        })
    }

    fn implied_set(
        &self,
        set: &PodSet,
        queue: Option<&ClusterQueue>,
        nodes: &[&Labels],
    ) -> Option<PodSetAdmission> {
        let mut flavors: BTreeMap<Name, Name> = BTreeMap::new();
        for group in queue.into_iter().flat_map(|queue| &queue.groups) {
            let asked = group.covered.iter().filter(|resource| {
                &***resource == crate::resources::PODS_NAME || set.charged().requests.contains_key(*resource)
            });
            let asked: Vec<&Name> = asked.collect();
            if asked.is_empty() {
                continue;
            }
            // In the queue's order of preference, as it would have been decided.
            let flavor = group.flavors.iter().map(|quotas| &quotas.flavor).find(|flavor| {
                let Some(flavor) = self.world.flavors.get(*flavor) else { return false };
                let mine = |labels: &&Labels| {
                    flavor.node_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
                };
                nodes.iter().all(mine)
            })?;
            flavors.extend(asked.into_iter().map(|resource| (resource.clone(), flavor.clone())));
        }
        Some(paid(set, set.count, flavors))
    }
}
