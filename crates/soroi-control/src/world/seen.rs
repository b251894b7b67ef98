//! What does it mean that an object is there, or has changed?
//!
//! Keeps the indexes, tells the engine, and names the roots whose gang has to be put together anew.

use std::collections::{BTreeMap, BTreeSet};

use soroi_api::labels;
use soroi_engine::event::{self, Event, Name};

use super::World;
use super::root::{self, Root};
use super::store::{Known, Meta, Place, Source, Took};
use crate::intake::{self, Defaults, PlanFacts, PodFacts, queue::Checks};
use crate::kind::{Kind, Target};
use crate::parsed::{
    FlavorState, GroupState, LocalQueueState, Parsed, QueueState, VolcanoState, What, WorkloadState,
};

impl World {
    pub(super) fn set(&mut self, kind: Kind, parsed: Parsed, source: Source) {
        let Parsed { meta, what, wrong } = parsed;
        self.note_wrong(kind, &meta, wrong);
        match what {
            What::Invalid(invalid) => self.set_invalid(kind, meta, invalid, source),
            What::GangPlan(plan) => self.set_plan(meta, *plan, source),
            What::PodGroup(group) => self.set_group(meta, *group, source),
            What::Job(job) => self.set_job(meta, *job, source),
            What::Workload(workload) => self.set_workload(meta, *workload, source),
            What::Pod(pod) => self.set_pod(meta, *pod, source),
            What::ClusterQueue(queue) => self.set_cluster_queue(meta, *queue, source),
            What::LocalQueue(queue) => self.set_local_queue(meta, *queue, source),
            What::VolcanoQueue(queue) => self.set_volcano_queue(meta, *queue, source),
            What::Flavor(flavor) => self.set_flavor(meta, *flavor, source),
            What::AdmissionCheck { active, .. } => self.set_check(meta, active, source),
            plain => self.set_plain(kind, meta, plain, source),
        }
    }

    pub(super) fn set_check(&mut self, meta: Meta, active: bool, source: Source) {
        if self.checks.set(meta, active, source) != Took::Nothing {
            self.tell_cluster_queues();
        }
    }

    pub(super) fn set_plain(&mut self, kind: Kind, meta: Meta, what: What, source: Source) {
        let place = meta.place();
        match self.plain.entry(kind).or_default().set(meta, (), source) {
            Took::Nothing => return,
            Took::Replaced(before) => self.tell_gone(kind, &before.meta),
            Took::New | Took::Changed(_) => {}
        }
        if kind == Kind::Topology {
            self.touched_queues.insert(Target::new(kind, &place.0, &place.1));
        }
        let name = place.1.clone();
        match what {
            What::Namespace(labels) => self.events.push(Event::Namespace { name, labels }),
            What::Topology(Ok(topology)) => {
                self.events.push(Event::Topology(topology));
                self.note_topology(&name, None);
            }
            What::Topology(Err(invalid)) => {
                self.events.push(Event::TopologyGone(name.clone()));
                self.note_topology(&name, Some(invalid));
            }
            What::Cohort(state) => {
                self.shares.insert(name.clone(), state.share);
                self.touched_queues.insert(Target::new(kind, &place.0, &name));
                self.events.push(Event::Cohort(state.cohort));
            }
            What::Node(node) => self.events.push(Event::Node(node)),
            What::VolumeLimits(limits) => self.events.push(Event::VolumeLimits { node: name, limits }),
            What::Volume(volume) => self.events.push(Event::Volume(volume)),
            What::Claim(claim) => self.events.push(Event::Claim(claim)),
            What::LimitRange(range) => {
                self.change_defaults(Some(&place.0), |defaults| defaults.set_limit_range(&range));
            }
            What::RuntimeClass(class) => self.change_defaults(None, |all| all.set_runtime_class(&class)),
            What::PriorityClass(class) => self.change_defaults(None, |all| all.set_priority_class(&class)),
            What::WorkloadPriorityClass(value) => {
                self.change_defaults(None, |all| all.set_workload_priority_class(&name, value));
            }
            other => debug_assert!(false, "{other:?} has a store of its own"),
        }
    }

    /// Changes what Workloads are understood by, and has those read again that it may concern.
    pub(super) fn change_defaults(&mut self, namespace: Option<&Name>, change: impl FnOnce(&mut Defaults)) {
        self.redefined = true;
        change(&mut self.context.defaults.write().unwrap_or_else(std::sync::PoisonError::into_inner));
        let waiting = self.workloads.iter().filter(|known| {
            namespace.is_none_or(|namespace| *namespace == known.meta.namespace)
                && known.facts.facts.admitted.is_none()
                && !known.facts.facts.finished
        });
        let targets =
            waiting.map(|known| Target::new(Kind::Workload, &known.meta.namespace, &known.meta.name));
        self.stale.extend(targets.collect::<Vec<_>>());
    }

    pub(super) fn set_flavor(&mut self, meta: Meta, flavor: FlavorState, source: Source) {
        let target = Target::new(Kind::Flavor, &meta.namespace, &meta.name);
        let fact = flavor.flavor.clone();
        let took = self.flavors.set(meta, flavor, source);
        if took == Took::Nothing {
            return;
        }
        let was_broken = match &took {
            Took::Changed(before) | Took::Replaced(before) => before.facts.flavor.is_err(),
            Took::New | Took::Nothing => false,
        };
        let is_broken = fact.is_err();
        self.events.push(match fact {
            Ok(flavor) => Event::Flavor(flavor),
            Err(_) => Event::FlavorGone(target.name.clone()),
        });
        self.touched_queues.insert(target);
        // The queues that a broken flavor or topology stops say so.
        if was_broken || is_broken || !self.broken_topologies.is_empty() {
            self.tell_cluster_queues();
        }
    }

    pub(super) fn set_cluster_queue(&mut self, meta: Meta, queue: QueueState, source: Source) {
        let target = Target::new(Kind::ClusterQueue, &meta.namespace, &meta.name);
        let fact = self.cluster_queue_fact(&queue);
        let checks = |state: &QueueState| state.queue.spec.admission_checks_strategy.clone();
        let asked = checks(&queue);
        let took = self.cluster_queues.set(meta, queue, source);
        if took != Took::Nothing {
            self.events.push(Event::ClusterQueue(fact));
            self.touched_queues.insert(target);
            self.touch_hindered();
        }
        if let Took::Changed(before) | Took::Replaced(before) = took
            && checks(&before.facts) != asked
        {
            // Whoever waits for checks may wait for others now, or for none.
            self.touch_workloads();
        }
    }

    /// Which policy a queue names matters to Workloads only while admission does not work.
    pub(super) fn touch_hindered(&mut self) {
        if !self.admission_works {
            self.touch_workloads();
        }
    }

    pub(super) fn checks_by_name(&self) -> Checks {
        self.checks.iter().map(|known| (known.meta.name.clone(), known.facts)).collect()
    }

    /// What queues refer to changed: so may what they can admit.
    pub(super) fn tell_cluster_queues(&mut self) {
        let facts = self.cluster_queues.iter();
        let facts = facts.map(|known| Event::ClusterQueue(self.cluster_queue_fact(&known.facts)));
        self.events.extend(facts.collect::<Vec<_>>());
    }

    pub(super) fn set_local_queue(&mut self, meta: Meta, queue: LocalQueueState, source: Source) {
        let target = Target::new(Kind::LocalQueue, &meta.namespace, &meta.name);
        let fact = queue.queue.clone();
        if self.local_queues.set(meta, queue, source) != Took::Nothing {
            self.events.push(Event::LocalQueue(fact));
            self.touched_queues.insert(target);
            self.touch_hindered();
        }
    }

    pub(super) fn set_volcano_queue(&mut self, meta: Meta, queue: VolcanoState, source: Source) {
        let target = Target::new(Kind::VolcanoQueue, &meta.namespace, &meta.name);
        let fact = queue.queue.clone();
        if self.volcano_queues.set(meta, queue, source) != Took::Nothing {
            self.events.push(Event::VolcanoQueue(fact));
            self.touched_queues.insert(target);
        }
    }

    pub(super) fn set_plan(&mut self, meta: Meta, plan: PlanFacts, source: Source) {
        let (gang, mut fact) = (meta.name.clone(), plan.plan.clone());
        if self.comes_late(&meta, &plan) {
            self.late_plans.insert(meta.uid.clone());
        }
        if self.late_plans.contains(&meta.uid) {
            fact.phase = event::PlanPhase::Undoing;
        }
        let namespace = meta.namespace.clone();
        if self.plans.set(meta, plan, source) != Took::Nothing {
            self.plan_in.insert(gang.clone(), namespace);
            self.events.push(Event::Plan(fact));
            self.dirty.insert(Root::Plan(gang));
        }
    }

    /// Whether a leader that we replaced decided this, and its write arrived after we had read everything. What
    /// it knew we did not hear of, and what it gave to the gang we may have given to somebody else.
    fn comes_late(&self, meta: &Meta, plan: &PlanFacts) -> bool {
        self.begun_in.is_some_and(|epoch| plan.epoch < epoch) && self.plans.by_uid(&meta.uid).is_none()
    }

    pub(super) fn set_group(&mut self, meta: Meta, group: GroupState, source: Source) {
        let place = meta.place();
        match self.groups.set(meta, group, source) {
            Took::Nothing => {}
            Took::Changed(_) => {
                self.dirty.insert(Root::Group(place.0, place.1));
            }
            Took::New | Took::Replaced(_) => self.touch_group(place),
        }
    }

    /// A group came or went: so did the reason for which Jobs that name it may wait.
    pub(super) fn touch_group(&mut self, place: Place) {
        let feeders: Vec<Root> = self.feeders(&place).flat_map(|known| root::of_job(&known.facts)).collect();
        self.dirty.extend(feeders);
        self.moved.insert(intake::group_key(&place.0, &place.1));
        self.dirty.insert(Root::Group(place.0, place.1));
    }

    pub(super) fn set_job(&mut self, meta: Meta, job: intake::JobFacts, source: Source) {
        let now = job.clone();
        let stands = (now.namespace.clone(), root::workload_name(&now));
        match self.jobs.set(meta, job, source) {
            Took::Nothing => return,
            Took::New => {}
            Took::Changed(before) => {
                if before.facts.group != now.group {
                    self.forget_feeder(&before.facts);
                }
                if before.facts.queue.is_some() == now.queue.is_some() {
                    self.note_feeder(&now);
                    return self.touch_job(&now);
                }
            }
            Took::Replaced(before) => self.job_gone(&before.facts),
        }
        self.standing.insert(stands, now.uid.clone());
        self.note_feeder(&now);
        self.touch_job(&now);
        self.tell_members(&now.uid);
    }

    pub(super) fn note_feeder(&mut self, job: &intake::JobFacts) {
        if let Some(group) = &job.group {
            let place = (job.namespace.clone(), group.clone());
            self.feeders.entry(place).or_default().insert(job.uid.clone());
        }
    }

    pub(super) fn forget_feeder(&mut self, job: &intake::JobFacts) {
        if let Some(group) = &job.group {
            let place = (job.namespace.clone(), group.clone());
            remove_from(&mut self.feeders, &place, &job.uid);
            self.dirty.insert(Root::Group(place.0, place.1));
        }
    }

    /// The Job that a Workload of this name stands for.
    pub(crate) fn job_of(&self, workload: &Place) -> Option<&Known<intake::JobFacts>> {
        self.jobs.by_uid(self.standing.get(workload)?)
    }

    pub(super) fn touch_job(&mut self, job: &intake::JobFacts) {
        self.dirty.extend(root::of_job(job));
        let owned: Vec<Root> =
            self.owned(&job.uid).map(|known| root::of_workload(&known.facts.facts)).collect();
        self.dirty.extend(owned);
    }

    /// Tells the engine of a Job's pods again: whose they are may have changed.
    pub(super) fn tell_members(&mut self, owner: &Name) {
        let facts: Vec<PodFacts> = self.members(owner).map(|known| known.facts.clone()).collect();
        for pod in &facts {
            self.touch_pod(pod);
        }
    }

    pub(super) fn set_workload(&mut self, meta: Meta, workload: WorkloadState, source: Source) {
        let now = workload.facts.clone();
        match self.workloads.set(meta, workload, source) {
            Took::Nothing => return,
            Took::New => {}
            Took::Changed(before) | Took::Replaced(before) => self.forget_owned(&before.facts),
        }
        if let Some(owner) = &now.owner {
            self.owned.entry(owner.uid.clone()).or_default().insert(now.uid.clone());
        }
        self.touch_workload(&now);
    }

    pub(super) fn forget_owned(&mut self, workload: &WorkloadState) {
        if let Some(owner) = &workload.facts.owner {
            remove_from(&mut self.owned, &owner.uid, &workload.facts.uid);
        }
    }

    pub(super) fn touch_workload(&mut self, workload: &intake::WorkloadFacts) {
        self.dirty.insert(root::of_workload(workload));
        let Some(owner) = &workload.owner else { return };
        match &*owner.kind {
            "Job" => {
                if let Some(job) = self.jobs.by_uid(&owner.uid) {
                    let roots = root::of_job(&job.facts);
                    self.dirty.extend(roots);
                }
            }
            "PodGroup" => {
                self.dirty.insert(Root::Group(workload.namespace.clone(), owner.name.clone()));
            }
            _ => {}
        }
    }

    pub(super) fn set_pod(&mut self, meta: Meta, mut pod: PodFacts, source: Source) {
        let known = self.pods.by_uid(&meta.uid);
        if let Some(known) = known {
            // A reading from before a binding that we know was accepted.
            pod.pod.node = pod.pod.node.or_else(|| known.facts.pod.node.clone());
        }
        let ended = |pod: &PodFacts| pod.pod.phase == event::PodPhase::Succeeded;
        if known.is_some_and(|known| !ended(&known.facts)) && ended(&pod) {
            self.note_done(&pod, false);
        }
        let now = pod.clone();
        let mut counts_alike = false;
        match self.pods.set(meta, pod, source) {
            Took::Nothing => return,
            Took::New => self.counted.add(&now),
            Took::Changed(before) => {
                self.counted.remove(&before.facts);
                self.counted.add(&now);
                counts_alike = counts_as(&before.facts) == counts_as(&now);
                if owners(&before.facts) != owners(&now) {
                    self.forget_member(&before.facts);
                }
            }
            Took::Replaced(before) => {
                self.pod_gone(&before.facts);
                self.counted.add(&now);
            }
        }
        for owner in owners(&now) {
            self.moved.insert(owner.clone());
            self.members.entry(owner).or_default().insert(now.pod.uid.clone());
        }
        if counts_alike {
            self.look_at_pod(&now);
        } else {
            self.touch_pod(&now);
        }
    }

    /// A pod went on, and its gang is the same: where members are is no part of a gang, except of one
    /// that is a single pod.
    pub(super) fn look_at_pod(&mut self, pod: &PodFacts) {
        let (fact, root) = self.whose(pod);
        self.events.push(Event::Pod(fact));
        match root {
            Some(Root::Pod(_)) => self.dirty.extend(root),
            root => self.looked.extend(root),
        }
    }

    pub(super) fn touch_pod(&mut self, pod: &PodFacts) {
        let (fact, root) = self.whose(pod);
        self.events.push(Event::Pod(fact));
        self.dirty.extend(root);
    }

    /// The engine's fact of a pod, and whose gang it concerns.
    pub(crate) fn whose(&self, pod: &PodFacts) -> (event::Pod, Option<Root>) {
        let job = pod.job.as_ref().and_then(|uid| self.jobs.by_uid(uid));
        match (&pod.job, job) {
            // A Job's pod whose Job is not known (yet, or any more) waits for it.
            (Some(_), None) => (pod.pod.clone(), None),
            (Some(_), Some(job)) if root::is_managed(&job.facts) => {
                // A Job has one pod set; its pods need not say so.
                let main = pod.pod.pod_set.clone().unwrap_or_else(|| labels::kueue::MAIN_POD_SET.into());
                let workload = root::workload_name(&job.facts);
                let in_group = job.facts.group.is_some() && job.facts.queue.is_some();
                let pod_set =
                    (job.facts.queue.is_some()).then(|| root::pod_set_name(&main, &workload, in_group));
                (event::Pod { pod_set, ..pod.pod.clone() }, root::of_job(&job.facts).into_iter().next())
            }
            (Some(_), Some(_)) | (None, _) => match &pod.group {
                Some(group) => {
                    let namespace = pod.pod.namespace.clone();
                    let owner = Some(intake::group_key(&namespace, group));
                    (event::Pod { owner, ..pod.pod.clone() }, Some(Root::Group(namespace, group.clone())))
                }
                None => (pod.alone(), root::of_single(pod, &self.context.schedulers)),
            },
        }
    }

    pub(super) fn forget_member(&mut self, pod: &PodFacts) {
        for owner in owners(pod) {
            remove_from(&mut self.members, &owner, &pod.pod.uid);
            self.moved.insert(owner);
        }
        let (_, root) = self.whose(pod);
        self.dirty.extend(root);
    }

    pub(super) fn pod_gone(&mut self, pod: &PodFacts) {
        self.counted.remove(pod);
        self.forget_member(pod);
        if pod.pod.phase == event::PodPhase::Succeeded {
            self.note_done(pod, true);
        }
        self.events.push(Event::PodGone(pod.pod.uid.clone()));
    }
}

/// What of a pod matters to the gang that it belongs to: where it is and how it does is no part of
/// that, except for a pod that is a gang of its own.
fn counts_as(pod: &PodFacts) -> impl PartialEq {
    use event::PodPhase;
    let live = matches!(pod.pod.phase, PodPhase::Pending | PodPhase::Running);
    let single = pod.job.is_none() && pod.group.is_none();
    (
        (live, pod.pod.phase == PodPhase::Succeeded, pod.pod.terminating),
        (pod.pod.shape.clone(), pod.pod.role.clone(), pod.queue.clone()),
        (pod.topology.clone(), pod.invalid.clone()),
        (pod.scheduler.clone(), pod.priority, pod.gates.is_empty()),
        single.then(|| pod.pod.node.clone()),
        (pod.job.clone(), pod.group.clone()),
    )
}

/// Under which owners a pod is found: its Job, or itself; and the group that it names.
fn owners(pod: &PodFacts) -> BTreeSet<Name> {
    let group = pod.group.as_ref().map(|group| intake::group_key(&pod.pod.namespace, group));
    pod.pod.owner.iter().cloned().chain(group).collect()
}

pub(super) fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Name>>, key: &K, uid: &Name) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}
