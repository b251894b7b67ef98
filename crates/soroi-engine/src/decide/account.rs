//! The account of one gang: where it stands, what it finds, and what would help.
//!
//! Decides nothing. What would help is tried out on a copy of the whole state, by the same decision that
//! everybody else gets: so "this would be enough" means that the gang would start, whoever is before it.

use std::collections::{BTreeMap, BTreeSet};

use super::search::Search;
use super::victims::Paying;
use super::wanted::{Start, Wanted};
use crate::account::{Account, Remedy, SetAccount, Standing, Step};
use crate::engine::Engine;
use crate::event::{Amount, Event, GangId, Millis, Name, Node, Pod};
use crate::fit::Ask;
use crate::quota::FlavorResource;
use crate::reason::NodeProblem;

/// Steps of one kind that are tried out: each costs a decision on a copy of the state.
const TRIED_MAX: usize = 8;

impl Engine {
    pub(crate) fn account_of(&self, id: &GangId, now: Millis) -> Option<Account> {
        let state = self.gangs.get(id)?;
        let fact = state.fact.as_ref();
        let mut account = Account {
            cluster_queue: fact
                .and_then(|fact| self.local_queue_of(fact))
                .map(|door| door.cluster_queue.clone()),
            volcano_queue: fact.and_then(|fact| fact.volcano_queue.clone()),
            standing: self.stands_at(id),
            pod_sets: Vec::new(),
            remedies: Vec::new(),
        };
        let waits = self.waiting.stand(id).map(|(_, want)| self.waiting.ask(want));
        if let Some(Wanted::Start(start)) = waits {
            let start = start.clone();
            account.pod_sets = self.clone().survey(&start);
            account.remedies = self.remedies(id, &account.pod_sets, now);
        }
        Some(account)
    }

    fn stands_at(&self, id: &GangId) -> Standing {
        let state = &self.gangs[id];
        if let Some(held) = &state.held {
            let pods = held.admission.pod_sets.iter().fold(0u32, |sum, set| sum.saturating_add(set.count));
            let members = self.world.members(id, &state.owners);
            let bound = members.filter(|pod| pod.occupies().is_some()).count();
            return Standing::Admitted { pods, bound: u32::try_from(bound).unwrap_or(u32::MAX) };
        }
        let before = self.waiting.stand(id).map(|(_, want)| {
            let line = self.waiting.line(self.waiting.line_of(want));
            let before = line.take_while(|(turn, _)| turn.id != *id).count();
            u32::try_from(before).unwrap_or(u32::MAX)
        });
        Standing::Waits { reason: self.reason(id), before, until: state.due }
    }

    fn survey(&mut self, start: &Start) -> Vec<SetAccount> {
        let room = (&mut self.cluster, &mut self.ceilings);
        let lenient = self.settings.ignore_undeclared;
        Search::of(&self.world, &self.quotas.kueue, room, start, lenient).survey()
    }

    /// Steps that might help, each tried out; those that suffice first.
    fn remedies(&self, id: &GangId, sets: &[SetAccount], now: Millis) -> Vec<Remedy> {
        let mut steps = self.quota_steps(id, sets);
        steps.extend(self.node_steps(id, sets));
        let mut remedies: Vec<Remedy> = Vec::new();
        let leaving = self.leaving_steps(id, sets);
        for step in steps.iter().chain(&leaving) {
            let enough = self.starts_after(id, &self.events_of(std::slice::from_ref(step)), now);
            remedies.push(Remedy { step: step.clone(), enough });
        }
        steps.extend(leaving.into_iter().filter(|step| matches!(step, Step::PodLeaves { .. })));
        let needs_all = steps.len() > 1 && remedies.iter().all(|remedy| !remedy.enough);
        let all = needs_all && self.starts_after(id, &self.events_of(&steps), now);
        // Of what could end there may be much: it is worth telling if it is enough, or a part of that.
        remedies.retain(|remedy| match &remedy.step {
            Step::GangEnds { .. } => remedy.enough,
            Step::PodLeaves { .. } => remedy.enough || all,
            _ => true,
        });
        remedies.sort_by_key(|remedy| !remedy.enough);
        if all {
            remedies.push(Remedy { step: Step::All, enough: true });
        }
        remedies
    }

    /// Whether the gang would start if this had happened.
    fn starts_after(&self, id: &GangId, events: &[Event], now: Millis) -> bool {
        if events.is_empty() {
            return false;
        }
        let mut other = self.clone();
        for event in events {
            other.apply(event.clone(), now);
        }
        other.decide(now);
        other.gangs.get(id).is_some_and(|state| state.held.is_some())
    }

    /// The quota that each flavor lacks: for all pod sets together.
    fn quota_steps(&self, id: &GangId, sets: &[SetAccount]) -> Vec<Step> {
        let Some(queue) = self.gangs[id].fact.as_ref().and_then(|fact| self.local_queue_of(fact)) else {
            return Vec::new();
        };
        let mut short: BTreeMap<FlavorResource, Amount> = BTreeMap::new();
        for flavor in sets.iter().flat_map(|set| &set.flavors).filter(|flavor| flavor.problem.is_none()) {
            for quota in flavor.quota.iter().filter(|quota| quota.short > 0) {
                let what = FlavorResource { flavor: flavor.flavor.clone(), resource: quota.resource.clone() };
                let most = short.entry(what).or_default();
                *most = (*most).max(quota.short);
            }
        }
        let step = |(what, more): (FlavorResource, Amount)| Step::Quota {
            queue: queue.cluster_queue.clone(),
            flavor: what.flavor,
            resource: what.resource,
            more,
        };
        short.into_iter().take(TRIED_MAX).map(step).collect()
    }

    /// Nodes that would take pods if somebody did something about them.
    fn node_steps(&self, id: &GangId, sets: &[SetAccount]) -> Vec<Step> {
        let named = self.gangs[id].fact.iter().flat_map(|fact| &fact.pod_sets);
        let asks: Vec<Ask> = named.map(|set| Ask::plain(&set.shape)).collect();
        let (mut single, mut taints) = (BTreeSet::new(), BTreeMap::new());
        let mut labels: BTreeMap<(Name, Name), BTreeSet<Name>> = BTreeMap::new();
        for places in places_of(sets) {
            for (problem, nodes) in &places.nodes {
                // A node that has no room for a pod helps nobody.
                let useful = nodes.iter().filter(|node| self.might_take(node, &asks));
                match problem {
                    NodeProblem::Unschedulable => {
                        single.extend(useful.take(TRIED_MAX).cloned().map(Step::Uncordon));
                    }
                    NodeProblem::NotReady => {
                        single.extend(useful.take(TRIED_MAX).cloned().map(Step::Ready));
                    }
                    NodeProblem::Taint { key, value } => {
                        let tainted: &mut BTreeSet<Name> =
                            taints.entry((key.clone(), value.clone())).or_default();
                        tainted.extend(useful.cloned());
                    }
                    NodeProblem::Selector => {
                        for node in useful {
                            for pair in self.selected_in_vain(node, &asks) {
                                labels.entry(pair).or_default().insert(node.clone());
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        let tolerations = taints.into_iter().filter(|(_, nodes)| !nodes.is_empty());
        let tolerations = tolerations.map(|((key, value), nodes)| Step::Tolerate {
            key,
            value,
            nodes: nodes.into_iter().collect(),
        });
        let labels = labels.into_iter().map(|((label, value), nodes)| Step::Label {
            label,
            value,
            nodes: nodes.into_iter().collect(),
        });
        let single = single.into_iter().take(TRIED_MAX);
        single.chain(tolerations.take(TRIED_MAX)).chain(labels.take(TRIED_MAX)).collect()
    }

    /// Labels that pods select and the node has not.
    fn selected_in_vain(&self, node: &Name, asks: &[Ask]) -> Vec<(Name, Name)> {
        let Some(facts) = self.cluster.node(node) else { return Vec::new() };
        let selected = asks.iter().flat_map(|ask| &ask.shape.node_selector);
        let missing = selected.filter(|(label, value)| facts.labels.get(*label) != Some(*value));
        missing.map(|(label, value)| (label.clone(), value.clone())).collect()
    }

    fn might_take(&self, node: &Name, asks: &[Ask]) -> bool {
        let Some(ix) = self.cluster.node_ix(node) else { return false };
        let space = &self.cluster.slot_of(ix).space;
        let mut names = self.cluster.resource_names().clone();
        asks.iter().any(|ask| {
            let requests = crate::resources::Requests::of_pod(&ask.shape.requests, &mut names);
            space.fit_count(&requests) > 0
        })
    }

    /// Who would leave room, or quota, if it were gone: on the nodes that lack least, and in the gang's own
    /// queue.
    fn leaving_steps(&self, id: &GangId, sets: &[SetAccount]) -> Vec<Step> {
        let mut pods: BTreeSet<Step> = BTreeSet::new();
        let mut gangs: BTreeSet<Step> = BTreeSet::new();
        for places in places_of(sets).filter(|places| places.problem.is_some()) {
            for short in &places.short {
                for pod in self.pods_on(&short.node) {
                    if !pod.shape.requests.keys().any(|resource| short.short.contains_key(resource)) {
                        continue;
                    }
                    match self.world.gang_of(pod).filter(|gang| self.gangs.contains_key(*gang)) {
                        Some(gang) => gangs.extend(self.ends(gang)),
                        None => _ = pods.insert(leaves(pod, &short.node)),
                    }
                }
                if pods.len() + gangs.len() >= 2 * TRIED_MAX {
                    break;
                }
            }
        }
        let lacks_quota =
            sets.iter().flat_map(|set| &set.flavors).flat_map(|flavor| &flavor.quota).any(|q| q.short > 0);
        let queue = self.gangs[id].fact.as_ref().and_then(|fact| self.local_queue_of(fact));
        if let Some(queue) = queue.filter(|_| lacks_quota) {
            let payers = self.payers.get(&queue.cluster_queue).into_iter().flat_map(Paying::gangs);
            gangs.extend(payers.filter_map(|gang| self.ends(gang)));
        }
        pods.into_iter().take(TRIED_MAX).chain(gangs.into_iter().take(TRIED_MAX)).collect()
    }

    fn pods_on<'a>(&'a self, node: &'a Name) -> impl Iterator<Item = &'a Pod> {
        self.world.pods.values().filter(move |pod| pod.occupies() == Some(node))
    }

    fn ends(&self, gang: &GangId) -> Option<Step> {
        let fact = self.gangs.get(gang)?.fact.as_ref()?;
        Some(Step::GangEnds { namespace: fact.namespace.clone(), name: fact.name.clone() })
    }

    /// What the engine would hear if these steps were taken.
    fn events_of(&self, steps: &[Step]) -> Vec<Event> {
        let mut nodes: BTreeMap<Name, Node> = BTreeMap::new();
        let mut events = Vec::new();
        let mut change = |name: &Name, change: &dyn Fn(&mut Node)| {
            let known = nodes.get(name).or_else(|| self.cluster.node(name)).cloned();
            if let Some(mut node) = known {
                change(&mut node);
                nodes.insert(name.clone(), node);
            }
        };
        for step in steps {
            match step {
                Step::Uncordon(node) => change(node, &|node| node.unschedulable = false),
                Step::Ready(node) => change(node, &|node| node.ready = true),
                Step::Tolerate { key, value, nodes } => {
                    for node in nodes {
                        change(node, &|node| {
                            node.taints.retain(|taint| taint.key != *key || taint.value != *value);
                        });
                    }
                }
                Step::Label { label, value, nodes } => {
                    for node in nodes {
                        change(node, &|node| _ = node.labels.insert(label.clone(), value.clone()));
                    }
                }
                Step::Quota { .. } | Step::All => {}
                Step::PodLeaves { namespace, name, .. } => {
                    let pods = self.world.pods.values();
                    let gone = pods.filter(|pod| pod.namespace == *namespace && pod.name == *name);
                    events.extend(gone.map(|pod| Event::PodGone(pod.uid.clone())));
                }
                Step::GangEnds { namespace, name } => events.extend(self.end_of(namespace, name)),
            }
        }
        events.extend(nodes.into_values().map(Event::Node));
        events.extend(self.raised_queues(steps).into_iter().map(Event::ClusterQueue));
        events
    }

    fn end_of(&self, namespace: &Name, name: &Name) -> Vec<Event> {
        let is_it = |fact: &crate::event::Gang| fact.namespace == *namespace && fact.name == *name;
        let gangs = self.gangs.iter().filter(|(_, state)| state.fact.as_ref().is_some_and(is_it));
        gangs
            .flat_map(|(id, state)| {
                let pods = self.world.members(id, &state.owners).map(|pod| Event::PodGone(pod.uid.clone()));
                pods.chain([Event::GangGone(id.clone()), Event::PlanGone(id.clone())]).collect::<Vec<_>>()
            })
            .collect()
    }

    fn raised_queues(&self, steps: &[Step]) -> Vec<crate::event::ClusterQueue> {
        let mut raised: BTreeMap<Name, crate::event::ClusterQueue> = BTreeMap::new();
        for step in steps {
            let Step::Quota { queue, flavor, resource, more } = step else { continue };
            let Some(known) = self.quotas.kueue.queue(queue) else { continue };
            let queue = raised.entry(queue.clone()).or_insert_with(|| known.clone());
            let flavors = queue.groups.iter_mut().flat_map(|group| &mut group.flavors);
            let quotas = flavors.filter(|it| it.flavor == *flavor).flat_map(|it| &mut it.quotas);
            for quota in quotas.filter(|quota| quota.resource == *resource) {
                quota.nominal = quota.nominal.saturating_add(*more);
            }
        }
        raised.into_values().collect()
    }
}

fn leaves(pod: &Pod, node: &Name) -> Step {
    Step::PodLeaves { namespace: pod.namespace.clone(), name: pod.name.clone(), node: node.clone() }
}

fn places_of(sets: &[SetAccount]) -> impl Iterator<Item = &crate::account::PlacesAccount> {
    sets.iter().flat_map(|set| {
        let of_flavors = set.flavors.iter().filter_map(|flavor| flavor.places.as_ref());
        of_flavors.chain(&set.places)
    })
}

#[cfg(test)]
mod tests;
