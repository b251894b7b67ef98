//! Taking in what the world tells. Facts are stored, nodes and quota trees follow at once; what
//! follows for gangs is left to the next decision, so that the order of arrival does not matter.

use std::collections::{BTreeMap, BTreeSet};

use crate::cluster::Occupant;
use crate::engine::Engine;
use crate::event::{
    Amount, Event, Gang, GangId, LocalQueue, Millis, Name, Node, Plan, Pod, PodPhase, PodUid,
};
use crate::quota::Sum;

impl Engine {
    pub(crate) fn take_in(&mut self, event: Event, now: Millis) {
        match event {
            Event::Node(node) => self.node(&node, now),
            Event::NodeGone(name) => self.node_gone(&name, now),
            Event::Pod(pod) => self.pod(pod, now),
            Event::PodGone(uid) => self.pod_gone(&uid, now),
            Event::Namespace { name, labels } => {
                self.cluster.set_namespace(&name, Some(&labels));
                if self.world.namespaces.insert(name.clone(), labels.clone()) != Some(labels) {
                    self.changed_namespaces.insert(name);
                }
            }
            Event::NamespaceGone(name) => {
                self.cluster.set_namespace(&name, None);
                self.world.namespaces.remove(&name);
                self.changed_namespaces.insert(name);
            }
            Event::Claim(claim) => _ = self.cluster.set_claim(&claim.key, Some(&claim)),
            Event::ClaimGone(key) => _ = self.cluster.set_claim(&key, None),
            Event::Volume(volume) => _ = self.cluster.set_volume(&volume.name, Some(&volume)),
            Event::VolumeGone(name) => _ = self.cluster.set_volume(&name, None),
            Event::VolumeLimits { node, limits } => _ = self.cluster.set_volume_limits(&node, &limits),
            Event::LocalQueue(queue) => self.local_queue(queue),
            Event::LocalQueueGone { namespace, name } => {
                self.world.local_queues.remove(&(namespace.clone(), name.clone()));
                self.changed_doors.insert((namespace, name));
            }
            Event::Gang(gang) => self.gang(gang, now),
            Event::GangGone(id) => self.gang_gone(&id),
            Event::Plan(plan) => self.plan(plan),
            Event::PlanGone(id) => self.plan_gone(&id),
            rules => self.reconfigured |= self.rules(rules),
        }
    }

    /// Objects on which anything may depend; they change seldom. Tells whether one did.
    fn rules(&mut self, event: Event) -> bool {
        match event {
            Event::Flavor(flavor) => {
                self.world.flavors.insert(flavor.name.clone(), flavor.clone()) != Some(flavor)
            }
            Event::FlavorGone(name) => self.world.flavors.remove(&name).is_some(),
            Event::Topology(topology) => {
                self.cluster.upsert_topology(&topology.name, &topology.levels);
                self.world.topologies.insert(topology.name.clone(), topology.clone()) != Some(topology)
            }
            Event::TopologyGone(name) => {
                self.cluster.remove_topology(&name);
                self.world.topologies.remove(&name).is_some()
            }
            Event::Cohort(cohort) => self.quotas.kueue.set_cohort(cohort),
            Event::CohortGone(name) => self.quotas.kueue.remove_cohort(&name),
            Event::ClusterQueue(queue) => {
                self.news.cluster_queues.insert(queue.name.clone());
                self.quotas.kueue.set_queue(queue)
            }
            Event::ClusterQueueGone(name) => self.quotas.kueue.remove_queue(&name),
            Event::VolcanoQueue(queue) => self.quotas.volcano.set(queue),
            Event::VolcanoQueueGone(name) => self.quotas.volcano.remove(&name),
            _ => false,
        }
    }

    fn node(&mut self, node: &Node, now: Millis) {
        if node.ready {
            self.world.unready_since.remove(&node.name);
        } else {
            self.world.unready_since.entry(node.name.clone()).or_insert(now);
        }
        let (before, after) = (usable(self.cluster.node(&node.name)), usable(Some(node)));
        // Most of what is heard of nodes changes neither.
        let change = (before != after).then(|| (owned(before), owned(after)));
        if self.cluster.upsert_node(node) {
            self.touch_lingering();
        }
        if let Some((before, after)) = change {
            self.there_is(&before, &after);
        }
    }

    /// Tells the trees what there is in all.
    fn there_is(&mut self, before: &BTreeMap<Name, Amount>, now: &BTreeMap<Name, Amount>) {
        let amount = |of: &BTreeMap<Name, Amount>, name: &Name| Sum::from(of.get(name).copied().unwrap_or(0));
        let named: BTreeSet<&Name> = before.keys().chain(now.keys()).collect();
        for name in named {
            self.quotas.volcano.change_total(name, amount(now, name) - amount(before, name));
        }
    }

    fn node_gone(&mut self, name: &Name, now: Millis) {
        let before = owned(usable(self.cluster.node(name)));
        if self.cluster.remove_node(name) {
            self.there_is(&before, &BTreeMap::new());
            self.world.unready_since.entry(name.clone()).or_insert(now);
            self.touch_lingering();
        }
    }

    fn pod(&mut self, pod: Pod, now: Millis) {
        let uid = pod.uid.clone();
        let owner = self.world.gang_of(&pod).cloned();
        let (occupies, shape) = (pod.occupies().cloned(), pod.shape.clone());
        let (who, leaving) = (pod.who.clone(), pod.terminating);
        let fresh = Seen::of(&pod);
        let old = self.world.set_pod(pod);
        match occupies {
            Some(node) => self.cluster.charge_as(Occupant::Pod(uid.clone()), &node, &shape, &who, leaving),
            None => _ = self.cluster.uncharge(&Occupant::Pod(uid.clone())),
        }
        let before = old.as_ref().and_then(|old| self.world.gang_of(old)).cloned();
        if old.as_ref().map(Seen::of).as_ref() == Some(&fresh) && before == owner {
            return;
        }
        for id in owner.into_iter().chain(before) {
            self.member_moved(&id, &uid, now);
        }
    }

    fn pod_gone(&mut self, uid: &PodUid, now: Millis) {
        self.cluster.uncharge(&Occupant::Pod(uid.clone()));
        let Some(old) = self.world.remove_pod(uid) else { return };
        if let Some(id) = self.world.gang_of(&old).cloned() {
            self.member_moved(&id, uid, now);
        }
    }

    /// Something was heard of a member: that is progress, and whatever was refused may work now.
    fn member_moved(&mut self, id: &GangId, uid: &PodUid, now: Millis) {
        if let Some(held) = self.gangs.get_mut(id).and_then(|gang| gang.held.as_mut()) {
            held.progressed_at = now;
            held.refused.remove(uid);
        }
        self.touched.entry(id.clone()).or_default().insert(uid.clone());
    }

    fn local_queue(&mut self, queue: LocalQueue) {
        let key = (queue.namespace.clone(), queue.name.clone());
        if self.world.local_queues.insert(key.clone(), queue.clone()) != Some(queue) {
            self.changed_doors.insert(key);
        }
    }

    fn gang(&mut self, fact: Gang, now: Millis) {
        let id = fact.id.clone();
        let state = self.gangs.entry(id.clone()).or_default();
        let priority = state.fact.as_ref().map(|before| before.priority);
        let easier = priority.is_some_and(|before| before > fact.priority);
        let was_gone = std::mem::take(&mut state.gone);
        if state.fact.as_ref() == Some(&fact) && !was_gone {
            return;
        }
        if let Some(before) = &state.fact
            && before.pod_sets != fact.pod_sets
        {
            let shape = |gang: &Gang, name: &Name| {
                gang.pod_sets.iter().find(|s| s.name == *name).map(|s| s.shape.clone())
            };
            let held = state.held.as_ref();
            let earlier = |name: &Name| held?.sets.iter().find(|s| s.name == *name)?.shape.clone();
            // A set that is not named has no pods now; what is known of them stands.
            let same = |name: &Name| match shape(&fact, name) {
                Some(now) => shape(before, name).or_else(|| earlier(name)) == Some(now),
                None => held.is_some(),
            };
            state.learnt.retain(|set, _| same(set));
            if let Some(held) = &mut state.held {
                held.progressed_at = now;
            }
        }
        state.status_echoes &= fact.admitted.is_some();
        let before = std::mem::replace(&mut state.owners, fact.owners.clone());
        state.fact = Some(fact);
        self.note_payer(&id);
        if easier {
            self.note_easier(&id);
        }
        let state = self.gangs.get(&id).expect("just told of");
        let owners = state.owners.clone();
        self.touch(&id);
        if before != owners || was_gone {
            self.world.set_owners(&id, &before, &owners);
            for gone in self.world.gone_with(&owners) {
                self.touch(&gone);
            }
            let members = self.world.members(&id, &owners).map(|pod| pod.uid.clone());
            self.touched.entry(id.clone()).or_default().extend(members);
        }
    }

    fn gang_gone(&mut self, id: &GangId) {
        // Told again, it is no news: nothing of it is looked at, and nothing else put off for it.
        if let Some(state) = self.gangs.get_mut(id)
            && !std::mem::replace(&mut state.gone, true)
        {
            self.world.step_back(id, &state.owners);
            self.touch(id);
        }
    }

    fn plan(&mut self, plan: Plan) {
        let id = plan.gang.clone();
        let state = self.gangs.entry(id.clone()).or_default();
        if state.owners.is_empty() && !plan.owners.is_empty() {
            state.owners = plan.owners.clone();
            self.world.set_owners(&id, &[], &plan.owners);
        }
        self.plans.insert(id.clone(), plan);
        self.touch(&id);
    }

    fn plan_gone(&mut self, id: &GangId) {
        self.plans.remove(id);
        if let Some(state) = self.gangs.get_mut(id) {
            // The end of an admission that is over takes nothing from the next one.
            if !std::mem::take(&mut state.plan_echoes) {
                self.plans_lost.insert(id.clone());
            }
            self.touch(id);
        }
    }

    /// Gangs whose quota waits for pods to end look again.
    pub(crate) fn touch_lingering(&mut self) {
        for id in self.lingering.clone() {
            self.touch(&id);
        }
    }

    /// Has the next decision look at this gang.
    pub(crate) fn touch(&mut self, id: &GangId) {
        if !self.touched.contains_key(id) {
            self.touched.insert(id.clone(), BTreeSet::new());
        }
    }
}

/// What matters of a pod to its gang. A pod's status is written often, mostly without a change of
/// this.
#[derive(PartialEq)]
struct Seen {
    node: Option<Name>,
    ended: Option<PodPhase>,
    terminating: bool,
    bindable: bool,
    shape: std::sync::Arc<crate::event::Shape>,
    pod_set: Option<Name>,
    index: Option<u32>,
}

impl Seen {
    fn of(pod: &Pod) -> Self {
        Self {
            node: pod.node.clone(),
            ended: Some(pod.phase).filter(|_| pod.is_terminal()),
            terminating: pod.terminating,
            bindable: pod.bindable,
            shape: pod.shape.clone(),
            pod_set: pod.pod_set.clone(),
            index: pod.index,
        }
    }
}

/// What a node has for pods; nothing while it is not ready.
fn usable(node: Option<&Node>) -> Option<&BTreeMap<Name, Amount>> {
    node.filter(|node| node.ready).map(|node| &node.allocatable)
}

fn owned(amounts: Option<&BTreeMap<Name, Amount>>) -> BTreeMap<Name, Amount> {
    amounts.cloned().unwrap_or_default()
}
