//! What is the gang of this root? Puts a gang together from the objects that describe it.
//!
//! A pure function of the world: it is asked again whenever one of the objects changes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soroi_api::conditions::{self, workload as condition};
use soroi_api::kueue::CheckState;
use soroi_api::plan::PlanUndo;
use soroi_engine::event::{
    self, Admitted, Amount, Millis, Name, PodPhase, PodSet, PodsReady, Policy, Readiness,
};
use soroi_engine::reason::{NotYet, Off};

use super::World;
use super::root::{self, Root};
use super::store::{Known, Place};
use crate::intake::charge::Charging;
use crate::intake::{self, GroupFacts, JobFacts, PodFacts, WorkloadFacts, group};
use crate::parsed::{GroupState, QueueState, WorkloadState};
use crate::project;

/// The scheduler of every cluster.
const DEFAULT_SCHEDULER: &str = "default-scheduler";

/// A gang and the objects that it is made of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Composed {
    pub(crate) gang: event::Gang,
    /// The Workloads, with their jobs. Empty for single pods and for groups without a queue.
    pub(crate) parts: Vec<Part>,
    /// The uid of its PodGroup.
    pub(crate) group: Option<Name>,
    /// The uid of the pod that is all of it.
    pub(crate) pod: Option<Name>,
}

impl Composed {
    /// The kind of object that people know it by, and that kind's API version.
    pub(crate) fn stands_for(&self) -> (&'static str, &'static str) {
        match (&self.group, &self.pod) {
            (Some(_), _) => ("PodGroup", "scheduling.volcano.sh/v1beta1"),
            (None, Some(_)) => ("Pod", "v1"),
            (None, None) => ("Workload", "kueue.x-k8s.io/v1beta2"),
        }
    }
}

/// A Workload of a gang.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// Its uid.
    pub(crate) workload: Name,
    /// The uid of the Job that it stands for.
    pub(crate) job: Option<Name>,
    /// For each of its pod sets: its name in the Workload, its name in the gang.
    pub(crate) pod_sets: Vec<(Name, Name)>,
    /// For each of its pod sets: how many pods will not run again.
    pub(crate) ended: Vec<u32>,
}

impl World {
    /// The gang of this root, if there is one now.
    pub(crate) fn gang_of(&self, root: &Root) -> Option<Composed> {
        let mut composed = self.composed(root)?;
        let sent_back = composed.parts.iter().filter_map(|part| self.workloads.by_uid(&part.workload));
        let to_the_back = self.puts_to_the_back();
        let sent_back = sent_back.filter_map(|known| known.facts.facts.sent_back_at(to_the_back)).max();
        composed.gang.queued_at = sent_back.unwrap_or(composed.gang.queued_at);
        composed.gang.pods_ready = self.pods_ready(&composed);
        if composed.gang.local_queue.is_some() {
            composed.gang.pod_sets.iter_mut().for_each(|set| self.context.charging.apply(set));
        }
        Some(composed)
    }

    /// Pod sets of a Workload as they are charged to quota.
    pub(crate) fn charged<'a>(&self, sets: &'a [PodSet]) -> Cow<'a, [PodSet]> {
        if self.context.charging == Charging::default() {
            return Cow::Borrowed(sets);
        }
        let mut sets = sets.to_vec();
        sets.iter_mut().for_each(|set| self.context.charging.apply(set));
        Cow::Owned(sets)
    }

    fn composed(&self, root: &Root) -> Option<Composed> {
        match root {
            Root::Workload(namespace, name) => {
                let workload = self.workloads.get(&(namespace.clone(), name.clone()))?;
                self.gang_of_workload(workload)
            }
            Root::Group(namespace, name) => {
                let group = self.groups.get(&(namespace.clone(), name.clone()))?;
                self.gang_of_group(group)
            }
            Root::Pod(uid) => self.gang_of_pod(&self.pods.by_uid(uid)?.facts),
            Root::Plan(_) => None,
        }
    }

    fn gang_of_workload(&self, workload: &Known<WorkloadState>) -> Option<Composed> {
        let facts = &workload.facts.facts;
        if facts.finished || facts.terminating {
            return None;
        }
        let owner = facts.owner.as_ref();
        if owner.is_some_and(|owner| &*owner.kind == "PodGroup") {
            return None;
        }
        let of_job = owner.filter(|owner| &*owner.kind == "Job" && owner.api_version.starts_with("batch/"));
        let job = match of_job {
            None => None,
            Some(owner) => Some(&self.jobs.by_uid(&owner.uid)?.facts),
        };
        if let Some(job) = job
            && (job.finished.is_some()
                || job.terminating_itself
                || (job.group.is_some() && self.group_of(job).is_some()))
        {
            return None;
        }
        let missing_group = job.and_then(|job| job.group.as_ref()).map(|group| {
            let field = "spec.template.metadata.annotations[scheduling.k8s.io/group-name]";
            intake::Invalid::new(field, format!("PodGroup \"{group}\" not found"))
        });
        let readiness = match missing_group {
            Some(problem) => Readiness::NotYet(NotYet::Invalid(problem.reason())),
            None => self.readiness(&facts.uid, facts, job),
        };
        let gang = event::Gang {
            id: facts.uid.clone(),
            namespace: facts.namespace.clone(),
            name: facts.name.clone(),
            owners: owner.map(|owner| owner.uid.clone()).into_iter().collect(),
            local_queue: facts.queue.clone(),
            volcano_queue: None,
            priority: facts.priority,
            queued_at: facts.created_at,
            not_before: facts.requeue_at,
            pod_sets: pod_sets(facts, job, false),
            minima: None,
            readiness,
            checks: self.unpassed_checks(facts),
            policy: job.is_none().then(|| self.imposed_policy(facts)),
            foreign_scheduler: job.and_then(|job| self.foreign(&job.scheduler)),
            admitted: facts.admitted.clone(),
            pods_ready: PodsReady::default(),
        };
        Some(Composed { gang, parts: vec![part(facts, job, false)], group: None, pod: None })
    }

    fn group_of(&self, job: &JobFacts) -> Option<&Known<GroupState>> {
        self.groups.get(&(job.namespace.clone(), job.group.clone()?))
    }

    fn foreign(&self, scheduler: &Name) -> Option<Name> {
        let known = &**scheduler == DEFAULT_SCHEDULER || self.context.schedulers.serve(scheduler);
        (!known).then(|| scheduler.clone())
    }

    /// Whether a Workload may be decided. A Job may only when the API server would accept the
    /// patch that releases it (ARCHITECTURE.md, "Carrying it out"); once it has its quota, that is past.
    fn readiness(&self, gang: &Name, workload: &WorkloadFacts, job: Option<&JobFacts>) -> Readiness {
        if !workload.active {
            return Readiness::Off(Off::Deactivated);
        }
        if let Some(invalid) = &workload.invalid {
            return Readiness::NotYet(NotYet::Invalid(invalid.reason()));
        }
        let gate = workload.gated_by.as_ref().or_else(|| job?.gated_by.as_ref());
        if let Some(gate) = gate {
            return Readiness::NotYet(NotYet::Gated(gate.clone()));
        }
        let decided = workload.admitted.is_some() || self.plan(&workload.namespace, gang).is_some();
        if let Some(job) = job.filter(|_| !decided) {
            if job.ending {
                return Readiness::Off(Off::Finished);
            }
            // A suspended Job has no pods but those that leave: what is known of it is older than they are.
            if !job.template_mutable() || self.has_live_pods(job) {
                return Readiness::NotYet(NotYet::JobNotSuspended);
            }
            if !crate::jobs::batch::in_step(job, workload) {
                return Readiness::NotYet(NotYet::WorkloadBehind);
            }
        }
        if let Some(job) = job
            && !decided
            && self.needs_admission(job)
            && self.is_bound_by_us(workload)
        {
            return Readiness::NotYet(NotYet::AdmissionNotProven);
        }
        if let Some(message) = workload.retry.as_ref().filter(|_| decided) {
            return Readiness::Off(Off::CheckRetry(message.clone()));
        }
        // What it got waits with it until its checks are ready: their controllers begin their work
        // when quota is reserved, and no time-out runs meanwhile.
        if decided && !self.has_passed_checks(workload) {
            return Readiness::NotYet(NotYet::ChecksPending);
        }
        Readiness::Ready
    }

    /// Whether pods of a Job are there that neither ended nor are on their way out.
    fn has_live_pods(&self, job: &JobFacts) -> bool {
        let lives = |phase| matches!(phase, PodPhase::Pending | PodPhase::Running);
        self.members(&job.uid).any(|known| lives(known.facts.pod.phase) && !known.facts.pod.terminating)
    }

    /// Whether a Job's pods would not get our scheduler now, although they should.
    pub(crate) fn needs_admission(&self, job: &JobFacts) -> bool {
        !self.admission_works && &*job.scheduler == DEFAULT_SCHEDULER
    }

    /// The policy of a Workload whose pods somebody else starts and binds: by quota alone, unless its queue pins
    /// pods to domains, which whoever starts them follows.
    fn imposed_policy(&self, workload: &WorkloadFacts) -> Policy {
        let queue = self.cluster_queue_of(workload);
        match queue.map_or(self.placement, |queue| self.policy_in(&queue.meta.name)) {
            Policy::TopologyOnly => Policy::TopologyOnly,
            _ => Policy::QuotaOnly,
        }
    }

    /// Whether Soroi has to bind the pods of a Workload, as far as its queue says.
    fn is_bound_by_us(&self, workload: &WorkloadFacts) -> bool {
        let queue = self.cluster_queue_of(workload);
        queue.map_or(self.placement, |queue| self.policy_in(&queue.meta.name)).soroi_binds()
    }

    /// The policy of a ClusterQueue.
    pub(crate) fn policy_in(&self, cluster_queue: &Name) -> Policy {
        let queue = self.cluster_queues.get(&("".into(), cluster_queue.clone()));
        queue.and_then(|known| intake::queue::own_placement(&known.facts.queue)).unwrap_or(self.placement)
    }

    /// How a Workload says that it is being evicted.
    pub(crate) fn eviction(&self, workload: &Name) -> Option<PlanUndo> {
        let status = &self.workloads.by_uid(workload)?.facts.status;
        let evicted = conditions::get(&status.conditions, conditions::workload::EVICTED)?;
        let (reason, message) = (evicted.reason.clone(), evicted.message.clone());
        let preempted = conditions::get(&status.conditions, conditions::workload::PREEMPTED);
        let cause = preempted.filter(|there| there.status == "True").map(|there| there.reason.clone());
        (evicted.status == "True").then_some(PlanUndo { reason, message, started: true, cause })
    }

    /// When the first Workload of a gang has run for as long as it may.
    pub(crate) fn runs_until(&self, parts: &[Part]) -> Option<Millis> {
        let workloads = parts.iter().filter_map(|part| self.workloads.by_uid(&part.workload));
        workloads.filter_map(|known| known.facts.facts.runs_until).min()
    }

    /// Why a Workload of a gang was deactivated, if not by hand: reason and message of its eviction, in
    /// Kueue's words.
    pub(crate) fn deactivation(&self, parts: &[Part]) -> Option<(String, String)> {
        let workloads = parts.iter().filter_map(|part| self.workloads.by_uid(&part.workload));
        let mut targets = workloads.filter_map(|known| {
            let shown = &known.facts.status.conditions;
            conditions::get(shown, condition::DEACTIVATION_TARGET).filter(|there| there.status == "True")
        });
        let target = targets.next()?;
        Some(project::status::deactivation((&target.reason, &target.message)))
    }

    /// What the pod sets of a gang pay by what their Workloads show, by name and resource.
    pub(crate) fn usage_shown(&self, parts: &[Part]) -> BTreeMap<Name, BTreeMap<Name, Amount>> {
        let each = parts.iter().filter_map(|part| {
            let admission = self.workloads.by_uid(&part.workload)?.facts.status.admission.as_ref()?;
            Some(admission.pod_set_assignments.iter().filter_map(|given| {
                let (_, name) = part.pod_sets.iter().find(|(name, _)| **name == *given.name)?;
                let usage = given.resource_usage.iter();
                let usage = usage.map(|(resource, amount)| {
                    (resource.as_str().into(), amount.base_units(resource).unwrap_or(0))
                });
                Some((name.clone(), usage.collect()))
            }))
        });
        each.flatten().collect()
    }

    /// The ClusterQueue that pays for a Workload: the one that admitted it, else the one that its
    /// LocalQueue leads to.
    fn cluster_queue_of(&self, workload: &WorkloadFacts) -> Option<&Known<QueueState>> {
        let admitted = workload.admitted.as_ref().map(|held| held.cluster_queue.clone());
        let name = admitted.or_else(|| {
            let place = (workload.namespace.clone(), workload.queue.clone()?);
            Some(self.local_queues.get(&place)?.facts.queue.cluster_queue.clone())
        })?;
        self.cluster_queues.get(&("".into(), name))
    }

    /// The admission checks that a Workload has to pass: those of its ClusterQueue, and of these
    /// only those of the flavors that it got; while it has none, all.
    pub(crate) fn required_checks(&self, workload: &WorkloadFacts, got: &BTreeSet<Name>) -> Vec<Name> {
        let queue = self.cluster_queue_of(workload);
        let spec = queue.and_then(|known| known.facts.queue.spec.admission_checks_strategy.as_ref());
        let applies = |on: &[String]| {
            got.is_empty() || on.is_empty() || on.iter().any(|flavor| got.contains(flavor.as_str()))
        };
        let checks = spec.into_iter().flat_map(|spec| &spec.admission_checks);
        checks.filter(|check| applies(&check.on_flavors)).map(|check| check.name.as_str().into()).collect()
    }

    /// Whether a Workload has passed the checks of what it got. Checks that it lists and that are
    /// not asked for any more do not count.
    pub(crate) fn has_passed_checks(&self, workload: &WorkloadFacts) -> bool {
        let held = workload.admitted.iter().flat_map(|held| &held.pod_sets);
        let got = held.flat_map(|(_, _, flavors)| flavors.values().cloned()).collect();
        let ready = |check: &Name| {
            workload.checks.iter().any(|(name, state)| name == check && *state == CheckState::Ready)
        };
        self.required_checks(workload, &got).iter().all(ready)
    }

    /// For each check that a Workload has not passed yet: the flavors that it is asked for, none if for all.
    fn unpassed_checks(&self, workload: &WorkloadFacts) -> BTreeSet<BTreeSet<Name>> {
        let queue = self.cluster_queue_of(workload);
        let spec = queue.and_then(|known| known.facts.queue.spec.admission_checks_strategy.as_ref());
        let ready = |check: &str| {
            workload.checks.iter().any(|(name, state)| **name == *check && *state == CheckState::Ready)
        };
        let checks = spec.into_iter().flat_map(|spec| &spec.admission_checks);
        let open = checks.filter(|check| !ready(&check.name));
        open.map(|check| check.on_flavors.iter().map(|flavor| flavor.as_str().into()).collect()).collect()
    }

    fn gang_of_group(&self, group: &Known<GroupState>) -> Option<Composed> {
        let facts = &group.facts.facts;
        if facts.terminating {
            return None;
        }
        let feeders = self.feeding(facts);
        let managed = || feeders.iter().copied().filter(|job| job.queue.is_some());
        if managed().next().is_some() {
            return self.gang_of_jobs(facts, &managed().collect::<Vec<_>>());
        }
        let owned = self.owned(&facts.uid).find(|known| !known.facts.facts.terminating);
        self.gang_of_members(facts, &feeders, owned.map(|known| &known.facts.facts))
    }

    /// Jobs whose templates name the group: one gang, its pod sets from their Workloads, its
    /// minimum from the group. Nothing is decided before all of them can be.
    fn gang_of_jobs(&self, group: &GroupFacts, jobs: &[&JobFacts]) -> Option<Composed> {
        let live: Vec<&JobFacts> =
            jobs.iter().copied().filter(|job| job.finished.is_none() && !job.terminating_itself).collect();
        let done: Vec<Counted> = jobs.iter().map(|job| (job.role.as_ref(), job.succeeded)).collect();
        let mut gang = self.group_gang(group, &done);
        let mut parts = Vec::new();
        let mut readiness = Readiness::Ready;
        if live.is_empty() {
            return None;
        }
        for job in live {
            gang.owners.push(job.uid.clone());
            let name = root::workload_name(job);
            let workload = self.workloads.get(&(job.namespace.clone(), name));
            let Some(workload) = workload.map(|known| &known.facts.facts).filter(|facts| !facts.terminating)
            else {
                readiness = Readiness::NotYet(NotYet::WorkloadBehind);
                continue;
            };
            if readiness == Readiness::Ready {
                readiness = self.readiness(&group.uid, workload, Some(job));
            }
            gang.foreign_scheduler = gang.foreign_scheduler.or_else(|| self.foreign(&job.scheduler));
            gang.priority =
                if parts.is_empty() { workload.priority } else { gang.priority.max(workload.priority) };
            gang.local_queue = gang.local_queue.or_else(|| workload.queue.clone());
            gang.not_before = gang.not_before.max(workload.requeue_at);
            gang.checks.extend(self.unpassed_checks(workload));
            gang.pod_sets.extend(pod_sets(workload, Some(job), true));
            if let Some(admitted) = &workload.admitted {
                merge(&mut gang.admitted, admitted, &workload.name);
            }
            parts.push(part(workload, Some(job), true));
        }
        gang.readiness = gather(group, gang.readiness, readiness, &gang.pod_sets, &done);
        (!gang.pod_sets.is_empty()).then(|| Composed {
            gang,
            parts,
            group: Some(group.uid.clone()),
            pod: None,
        })
    }

    /// Pods that name the group: one pod set per role and shape. With a queue-name, a Workload
    /// that the group owns stands for them.
    fn gang_of_members(
        &self,
        group: &GroupFacts,
        feeders: &[&JobFacts],
        workload: Option<&WorkloadFacts>,
    ) -> Option<Composed> {
        let members = self.group_roll(group, feeders);
        let sets = group::pod_sets(&members, &self.named(group, workload));
        let refused = group::refused(&members, &sets);
        let gone = self.done_and_gone(group);
        let present = members.by_role(|phase| phase == PodPhase::Succeeded);
        let done: Vec<Counted> = present.chain(gone.by_role()).collect();
        let mut gang = self.group_gang(group, &done);
        gang.owners.extend(feeders.iter().map(|job| job.uid.clone()));
        gang.pod_sets = sets
            .into_iter()
            .map(|set| PodSet {
                name: set.name,
                role: set.role,
                count: set.count,
                least: None,
                shape: set.shape,
                charged: None,
                topology: set.topology,
                who: self.who(&set.example),
            })
            .collect();
        // They exist: nobody gives them another scheduler any more, not even in the place of the default one.
        let serve = |named: &&Name| self.context.schedulers.serve(named);
        gang.foreign_scheduler = members.schedulers().into_iter().find(|named| !serve(named)).cloned();
        gang.local_queue = gang.local_queue.or_else(|| members.queue().cloned());
        if gang.local_queue.is_none() {
            // The annotations are Kueue's, and without its queues there is no Topology.
            gang.pod_sets.iter_mut().for_each(|set| set.topology = event::TopologyRequest::NONE);
        }
        if group.priority_class.is_none() {
            gang.priority = members.priority().unwrap_or(0);
        }
        let mut parts = Vec::new();
        let mut readiness = Readiness::Ready;
        // A finished Workload is of an earlier life of the group, and is opened again first.
        if let Some(workload) = workload.filter(|workload| !workload.finished) {
            readiness = self.readiness(&group.uid, workload, None);
            let counts = gang.pod_sets.iter().map(|set| (&set.name, set.count));
            let decided = workload.admitted.is_some() || self.plan(&group.namespace, &group.uid).is_some();
            if readiness == Readiness::Ready
                && !decided
                && !crate::jobs::podgroup::in_step(counts, gang.local_queue.as_ref(), workload)
            {
                readiness = Readiness::NotYet(NotYet::WorkloadBehind);
            }
            gang.priority = workload.priority;
            gang.not_before = workload.requeue_at;
            gang.checks = self.unpassed_checks(workload);
            gang.admitted = workload.admitted.clone();
            let succeeded = members.succeeded();
            let ended = group::ended(&workload.pod_sets, succeeded, gone.all(), &gang.pod_sets);
            parts.push(Part { ended, ..part(workload, None, false) });
        } else if gang.local_queue.is_some() {
            readiness = Readiness::NotYet(NotYet::WorkloadBehind);
        }
        if let Some(refused) = refused.filter(|_| gang.local_queue.is_some() && gang.admitted.is_none()) {
            readiness = Readiness::NotYet(NotYet::Invalid(refused.reason()));
        }
        gang.readiness = gather(group, gang.readiness, readiness, &gang.pod_sets, &done);
        (!gang.pod_sets.is_empty()).then(|| Composed {
            gang,
            parts,
            group: Some(group.uid.clone()),
            pod: None,
        })
    }

    /// The pods of a group that no managed Job feeds.
    pub(crate) fn group_members<'a>(
        &'a self,
        group: &GroupFacts,
        feeders: &[&JobFacts],
    ) -> Vec<&'a PodFacts> {
        let fed = feeders.iter().flat_map(|job| self.members(&job.uid)).map(|known| &known.facts);
        let direct = self.members(&group.key).map(|known| &known.facts);
        let direct = direct.filter(|pod| !feeders.iter().any(|job| pod.job.as_ref() == Some(&job.uid)));
        direct.chain(fed).collect()
    }

    /// The pod sets of a group that was decided: as its plan has them, else as its Workload does.
    pub(crate) fn named(&self, group: &GroupFacts, workload: Option<&WorkloadFacts>) -> Vec<group::Named> {
        if let Some(plan) = self.plan(&group.namespace, &group.uid) {
            return plan.facts.named.clone();
        }
        let admitted = workload.filter(|workload| workload.admitted.is_some());
        let sets = admitted.into_iter().flat_map(|workload| &workload.pod_sets);
        sets.map(|set| (set.name.clone(), group::fingerprint(&set.shape))).collect()
    }

    /// Whether pods of this group already have their node.
    pub(crate) fn has_bound_members(&self, root: &Root) -> bool {
        let Root::Group(namespace, name) = root else { return false };
        let key = intake::group_key(namespace, name);
        self.members(&key).any(|known| known.facts.pod.node.is_some())
    }

    /// As whom others mean the pod of this uid.
    fn who(&self, uid: &Name) -> Arc<event::Who> {
        self.pods.by_uid(uid).map(|known| known.facts.pod.who.clone()).unwrap_or_default()
    }

    /// The pods that wait for us to bind them and name this group.
    pub(crate) fn waiting_for_group<'a>(&'a self, place: &Place) -> impl Iterator<Item = &'a PodFacts> {
        let key = intake::group_key(&place.0, &place.1);
        let members = self.members.get(&key).into_iter().flatten().filter_map(|uid| self.pods.by_uid(uid));
        members.map(|known| &known.facts).filter(|pod| pod.waits_to_be_bound())
    }

    /// Whether there are such pods, and no such group.
    pub(crate) fn waits_for_its_group(&self, root: &Root) -> bool {
        let Root::Group(namespace, name) = root else { return false };
        let place = (namespace.clone(), name.clone());
        self.groups.get(&place).is_none()
            && self.roll_of_group(&intake::group_key(namespace, name)).any_waits()
    }

    fn group_gang(&self, group: &GroupFacts, done: &[Counted]) -> event::Gang {
        // Members that succeeded have done their part.
        let mut left = group.minima().beside(done.iter().copied());
        left.members = left.members.max(1);
        let class = group.priority_class.as_deref();
        let readiness = match &group.invalid {
            Some(invalid) => Readiness::NotYet(NotYet::Invalid(invalid.reason())),
            None => Readiness::Ready,
        };
        event::Gang {
            id: group.uid.clone(),
            namespace: group.namespace.clone(),
            name: group.name.clone(),
            owners: vec![group.key.clone()],
            local_queue: group.queue.clone(),
            volcano_queue: Some(group.volcano_queue.clone()),
            priority: class.and_then(|class| self.with_defaults(|all| all.pod_priority(class))).unwrap_or(0),
            queued_at: group.created_at,
            not_before: 0,
            pod_sets: Vec::new(),
            minima: Some(left),
            readiness,
            checks: BTreeSet::new(),
            policy: None,
            foreign_scheduler: None,
            admitted: None,
            pods_ready: PodsReady::default(),
        }
    }

    /// A pod that belongs to nobody, from its creation until it is bound.
    fn gang_of_pod(&self, pod: &PodFacts) -> Option<Composed> {
        let (fact, root) = self.whose(pod);
        if root != Some(Root::Pod(fact.uid.clone())) || fact.node.is_some() || !fact.is_live() {
            return None;
        }
        if &*pod.scheduler == soroi_api::labels::volcano::SCHEDULER_NAME {
            // A PodGroup is made for it first, as Volcano does.
            return None;
        }
        let gate = pod.gates.first().cloned();
        let gang = event::Gang {
            id: fact.uid.clone(),
            namespace: fact.namespace.clone(),
            name: fact.name.clone(),
            owners: vec![fact.uid.clone()],
            local_queue: pod.queue.clone(),
            volcano_queue: None,
            priority: pod.priority,
            queued_at: pod.created_at,
            not_before: 0,
            pod_sets: vec![PodSet {
                name: soroi_api::labels::kueue::MAIN_POD_SET.into(),
                role: None,
                count: 1,
                least: None,
                shape: fact.shape.clone(),
                charged: None,
                topology: event::TopologyRequest::NONE,
                who: fact.who.clone(),
            }],
            minima: None,
            readiness: gate.map_or(Readiness::Ready, |gate| Readiness::NotYet(NotYet::Gated(gate))),
            checks: BTreeSet::new(),
            policy: Some(Policy::Unified),
            foreign_scheduler: None,
            admitted: None,
            pods_ready: PodsReady::default(),
        };
        Some(Composed { gang, parts: Vec::new(), group: None, pod: Some(fact.uid.clone()) })
    }
}

/// Members of a role.
type Counted<'a> = (Option<&'a Name>, u32);

/// A group waits for its minimum of members before anything else.
fn gather(
    group: &GroupFacts,
    own: Readiness,
    parts: Readiness,
    pod_sets: &[PodSet],
    done: &[Counted],
) -> Readiness {
    let live = pod_sets.iter().map(|set| (set.role.as_ref(), set.count));
    let lack = group.minima().lack(live.chain(done.iter().copied()));
    if pod_sets.len() > soroi_engine::POD_SETS_MAX {
        let (kinds, most) = (pod_sets.len(), soroi_engine::POD_SETS_MAX);
        let problem = format!("its pods are of {kinds} distinct kinds, of which a gang may have {most}");
        let problem = intake::Invalid::new("metadata.annotations[scheduling.k8s.io/group-name]", problem);
        return Readiness::NotYet(NotYet::Invalid(problem.reason()));
    }
    match (own, lack, parts) {
        // Before there are enough members no Workload is written for a group: then it is not that which lacks.
        (Readiness::Ready, Some(lack), Readiness::Ready | Readiness::NotYet(NotYet::WorkloadBehind)) => {
            Readiness::NotYet(NotYet::MembersMissing(lack))
        }
        (Readiness::Ready, _, parts) => parts,
        (own, ..) => own,
    }
}

/// How many pods a pod set has: as many as were admitted, else as many as are asked for.
fn size(workload: &WorkloadFacts, set: &PodSet) -> u32 {
    workload.admitted_count(&set.name).unwrap_or(set.count)
}

/// Of these, the pods that should run now: a Job says so itself; for others somebody says in the
/// Workload's status how many of those that are asked for will not run again.
fn left(workload: &WorkloadFacts, job: Option<&JobFacts>, set: &PodSet) -> u32 {
    let back = workload.reclaimable.get(&set.name).copied().unwrap_or(0);
    let left = job.map_or_else(|| set.count.saturating_sub(back), JobFacts::pods_left);
    left.min(size(workload, set))
}

/// The pod sets of a Workload, as many pods as should run now.
fn pod_sets(workload: &WorkloadFacts, job: Option<&JobFacts>, in_group: bool) -> Vec<PodSet> {
    let named = workload.pod_sets.iter().map(|set| PodSet {
        name: root::pod_set_name(&set.name, &workload.name, in_group),
        count: left(workload, job, set),
        role: job.and_then(|job| job.role.clone()),
        // Several Jobs of a group are one gang, which is as large as the group says.
        least: set.least.filter(|_| !in_group && job.is_none_or(JobFacts::may_be_reduced)),
        ..set.clone()
    });
    named.collect()
}

fn part(workload: &WorkloadFacts, job: Option<&JobFacts>, in_group: bool) -> Part {
    let names = workload
        .pod_sets
        .iter()
        .map(|set| (set.name.clone(), root::pod_set_name(&set.name, &workload.name, in_group)));
    let ended = workload.pod_sets.iter().map(|set| size(workload, set) - left(workload, job, set));
    Part {
        workload: workload.uid.clone(),
        job: job.map(|job| job.uid.clone()),
        pod_sets: names.collect(),
        ended: ended.collect(),
    }
}

/// What several Workloads of one gang hold, together.
fn merge(all: &mut Option<Admitted>, one: &Admitted, workload: &Name) {
    let all = all.get_or_insert_with(|| Admitted {
        cluster_queue: one.cluster_queue.clone(),
        reserved_at: one.reserved_at,
        leaving: false,
        pod_sets: Vec::new(),
        topology: Default::default(),
    });
    all.leaving |= one.leaving;
    for (name, count, flavors) in &one.pod_sets {
        all.pod_sets.push((root::pod_set_name(name, workload, true), *count, flavors.clone()));
    }
    for (name, places) in &one.topology {
        all.topology.insert(root::pod_set_name(name, workload, true), places.clone());
    }
}
