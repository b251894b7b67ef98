//! What is out there? Everything that is remembered of the cluster, and what each change means.
//!
//! ```text
//! changes, answers ──▶ World::take ──▶ facts by kind ──▶ engine events
//!                                            │
//!                                            └─▶ roots whose gang has to be put together anew
//! ```
//!
//! Knows which object belongs to which. Must never know what was decided.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use soroi_api::labels;
use soroi_engine::event::{self, Event, GangId, Name};
use soroi_watch::Change;

use crate::intake::{self, Defaults, PlanFacts, PodFacts, queue::Checks};
use crate::kind::{Kind, Target};
use crate::parsed::{
    Context, FlavorState, GroupState, LocalQueueState, Parsed, QueueState, VolcanoState, What, WorkloadState,
};

pub(crate) mod gang;
pub(crate) mod root;
pub(crate) mod store;

use root::Root;
use store::{Known, Meta, Place, Source, Store, Took};

/// Everything that is remembered.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) context: Arc<Context>,
    /// Kinds of which only existence matters here; the engine has the rest.
    plain: BTreeMap<Kind, Store<()>>,
    checks: Store<bool>,
    pub(crate) flavors: Store<FlavorState>,
    pub(crate) cluster_queues: Store<QueueState>,
    pub(crate) local_queues: Store<LocalQueueState>,
    pub(crate) volcano_queues: Store<VolcanoState>,
    pub(crate) plans: Store<PlanFacts>,
    pub(crate) groups: Store<GroupState>,
    pub(crate) jobs: Store<intake::JobFacts>,
    pub(crate) workloads: Store<WorkloadState>,
    pub(crate) pods: Store<PodFacts>,
    /// Pods by whom they belong to: uid of their Job, or key of their PodGroup.
    members: BTreeMap<Name, BTreeSet<Name>>,
    /// Jobs by the PodGroup that their template names.
    feeders: BTreeMap<Place, BTreeSet<Name>>,
    /// Jobs by the name that their Workload has or will have.
    standing: BTreeMap<Place, Name>,
    /// Workloads by the uid of their owner.
    owned: BTreeMap<Name, BTreeSet<Name>>,
    events: Vec<Event>,
    dirty: BTreeSet<Root>,
    looked: BTreeSet<Root>,
    stale: BTreeSet<Target>,
    touched_queues: BTreeSet<Target>,
    /// Pods of a release are known to get our scheduler.
    pub(crate) admission_works: bool,
    /// The policy of queues that name none.
    placement: event::Policy,
}

impl World {
    pub(crate) fn new(context: Arc<Context>, placement: event::Policy) -> Self {
        Self {
            context,
            plain: BTreeMap::new(),
            checks: Store::default(),
            flavors: Store::default(),
            cluster_queues: Store::default(),
            local_queues: Store::default(),
            volcano_queues: Store::default(),
            plans: Store::default(),
            groups: Store::default(),
            jobs: Store::default(),
            workloads: Store::default(),
            pods: Store::default(),
            members: BTreeMap::new(),
            feeders: BTreeMap::new(),
            standing: BTreeMap::new(),
            owned: BTreeMap::new(),
            events: Vec::new(),
            dirty: BTreeSet::new(),
            looked: BTreeSet::new(),
            stale: BTreeSet::new(),
            touched_queues: BTreeSet::new(),
            admission_works: true,
            placement,
        }
    }

    /// Whether pods of a release are known to get our scheduler.
    pub(crate) fn set_admission(&mut self, works: bool) {
        if self.admission_works != works {
            self.admission_works = works;
            self.touch_workloads();
        }
    }

    fn touch_workloads(&mut self) {
        let open = self.workloads.iter().filter(|known| !known.facts.facts.finished);
        let open: Vec<_> = open.map(|known| known.facts.facts.clone()).collect();
        for workload in &open {
            self.touch_workload(workload);
        }
    }

    /// Takes in what a watch says.
    pub(crate) fn take(&mut self, kind: Kind, change: Change<Parsed>) {
        match change {
            Change::Set(parsed) => self.set(kind, parsed, Source::Watch),
            Change::Gone(parsed) => self.gone(kind, &parsed.meta.uid),
            Change::Reset(listed) => {
                let uids: BTreeSet<Name> = listed.iter().map(|parsed| parsed.meta.uid.clone()).collect();
                for uid in self.unlisted(kind, &uids) {
                    self.gone(kind, &uid);
                }
                for parsed in listed {
                    self.set(kind, parsed, Source::Watch);
                }
            }
            Change::Unreadable { namespace, name, error } => {
                tracing::warn!(kind = kind.plural(), %namespace, %name, %error, "unreadable object");
                self.gone_at(kind, &(namespace.into(), name.into()));
            }
        }
    }

    /// Takes in the object that a request was answered with.
    pub(crate) fn take_answer(&mut self, kind: Kind, parsed: Parsed) {
        // What a deletion is answered with is the last state; without finalizers it is gone.
        let gone = parsed.meta.terminating && parsed.meta.finalizers.is_empty() && kind != Kind::Pod;
        if gone {
            self.gone(kind, &parsed.meta.uid);
        } else {
            self.set(kind, parsed, Source::Answer);
        }
    }

    /// A request was answered with "no such object".
    pub(crate) fn take_missing(&mut self, target: &Target) {
        self.gone_at(target.kind, &(target.namespace.clone(), target.name.clone()));
    }

    /// The API server accepted a binding: the pod is on this node, whatever the watch still shows.
    pub(crate) fn take_bound(&mut self, pod: &Name, node: &Name) {
        let Some(known) = self.pods.by_uid_mut(pod) else { return };
        known.facts.pod.node.get_or_insert_with(|| node.clone());
        let facts = known.facts.clone();
        self.touch_pod(&facts);
    }

    /// What the engine has not been told yet, in order.
    pub(crate) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Roots that something changed for since the last call.
    pub(crate) fn take_dirty(&mut self) -> BTreeSet<Root> {
        std::mem::take(&mut self.dirty)
    }

    /// Roots whose gang is the same, but whose members went on.
    pub(crate) fn take_looked(&mut self) -> BTreeSet<Root> {
        std::mem::take(&mut self.looked)
    }

    /// Objects that have to be read again, because what they are understood by has changed.
    pub(crate) fn take_stale(&mut self) -> BTreeSet<Target> {
        std::mem::take(&mut self.stale)
    }

    /// Queues, flavors and topologies whose finalizer or status may have to change.
    pub(crate) fn take_touched_queues(&mut self) -> BTreeSet<Target> {
        std::mem::take(&mut self.touched_queues)
    }

    /// Members of a Job (by uid) or PodGroup (by key), in order of their uids.
    pub(crate) fn members<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Known<PodFacts>> {
        let uids = self.members.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.pods.by_uid(uid))
    }

    /// Jobs whose template names this PodGroup, in order of their uids.
    pub(crate) fn feeders<'a>(&'a self, group: &Place) -> impl Iterator<Item = &'a Known<intake::JobFacts>> {
        let uids = self.feeders.get(group).into_iter().flatten();
        uids.filter_map(|uid| self.jobs.by_uid(uid))
    }

    /// Workloads of this owner, in order of their uids.
    pub(crate) fn owned<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Known<WorkloadState>> {
        let uids = self.owned.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.workloads.by_uid(uid))
    }

    /// The plan of a gang. Plans are named after gangs.
    pub(crate) fn plan(&self, namespace: &Name, gang: &GangId) -> Option<&Known<PlanFacts>> {
        self.plans.get(&(namespace.clone(), gang.clone()))
    }

    /// Asks about classes and defaults.
    pub(crate) fn with_defaults<T>(&self, ask: impl FnOnce(&Defaults) -> T) -> T {
        ask(&self.context.defaults.read().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    fn unlisted(&mut self, kind: Kind, listed: &BTreeSet<Name>) -> Vec<Name> {
        match kind {
            Kind::AdmissionCheck => self.checks.unlisted(listed),
            Kind::Flavor => self.flavors.unlisted(listed),
            Kind::ClusterQueue => self.cluster_queues.unlisted(listed),
            Kind::LocalQueue => self.local_queues.unlisted(listed),
            Kind::VolcanoQueue => self.volcano_queues.unlisted(listed),
            Kind::GangPlan => self.plans.unlisted(listed),
            Kind::PodGroup => self.groups.unlisted(listed),
            Kind::Job => self.jobs.unlisted(listed),
            Kind::Workload => self.workloads.unlisted(listed),
            Kind::Pod => self.pods.unlisted(listed),
            plain => self.plain.entry(plain).or_default().unlisted(listed),
        }
    }

    fn gone_at(&mut self, kind: Kind, place: &Place) {
        let uid = |meta: &Meta| meta.uid.clone();
        let uid = match kind {
            Kind::AdmissionCheck => self.checks.get(place).map(|known| uid(&known.meta)),
            Kind::Flavor => self.flavors.get(place).map(|known| uid(&known.meta)),
            Kind::ClusterQueue => self.cluster_queues.get(place).map(|known| uid(&known.meta)),
            Kind::LocalQueue => self.local_queues.get(place).map(|known| uid(&known.meta)),
            Kind::VolcanoQueue => self.volcano_queues.get(place).map(|known| uid(&known.meta)),
            Kind::GangPlan => self.plans.get(place).map(|known| uid(&known.meta)),
            Kind::PodGroup => self.groups.get(place).map(|known| uid(&known.meta)),
            Kind::Job => self.jobs.get(place).map(|known| uid(&known.meta)),
            Kind::Workload => self.workloads.get(place).map(|known| uid(&known.meta)),
            Kind::Pod => self.pods.get(place).map(|known| uid(&known.meta)),
            plain => self.plain.entry(plain).or_default().get(place).map(|known| uid(&known.meta)),
        };
        if let Some(uid) = uid {
            self.gone(kind, &uid);
        }
    }

    fn set(&mut self, kind: Kind, parsed: Parsed, source: Source) {
        let Parsed { meta, what } = parsed;
        match what {
            What::Invalid(invalid) => self.set_invalid(kind, &meta, &invalid),
            What::GangPlan(plan) => self.set_plan(meta, *plan, source),
            What::PodGroup(group) => self.set_group(meta, *group, source),
            What::Job(job) => self.set_job(meta, *job, source),
            What::Workload(workload) => self.set_workload(meta, *workload, source),
            What::Pod(pod) => self.set_pod(meta, *pod, source),
            What::ClusterQueue(queue) => self.set_cluster_queue(meta, *queue, source),
            What::LocalQueue(queue) => self.set_local_queue(meta, *queue, source),
            What::VolcanoQueue(queue) => self.set_volcano_queue(meta, *queue, source),
            What::Flavor(flavor) => self.set_flavor(meta, *flavor, source),
            What::AdmissionCheck(active) => {
                if self.checks.set(meta, active, source) != Took::Nothing {
                    self.tell_cluster_queues();
                }
            }
            plain => self.set_plain(kind, meta, plain, source),
        }
    }

    /// An object that cannot be understood at all counts as gone; workloads, groups and queues
    /// never are, since their facts carry what is wrong with them.
    fn set_invalid(&mut self, kind: Kind, meta: &Meta, invalid: &intake::Invalid) {
        let (namespace, name) = (&meta.namespace, &meta.name);
        tracing::warn!(kind = kind.plural(), %namespace, %name, %invalid, "invalid object");
        self.gone(kind, &meta.uid);
    }

    fn set_plain(&mut self, kind: Kind, meta: Meta, what: What, source: Source) {
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
            What::Topology(topology) => self.events.push(Event::Topology(topology)),
            What::Cohort(cohort) => self.events.push(Event::Cohort(*cohort)),
            What::Node(node) => self.events.push(Event::Node(node)),
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
    fn change_defaults(&mut self, namespace: Option<&Name>, change: impl FnOnce(&mut Defaults)) {
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

    fn set_flavor(&mut self, meta: Meta, flavor: FlavorState, source: Source) {
        let target = Target::new(Kind::Flavor, &meta.namespace, &meta.name);
        let fact = flavor.flavor.clone();
        if self.flavors.set(meta, flavor, source) != Took::Nothing {
            self.events.push(Event::Flavor(fact));
            self.touched_queues.insert(target);
        }
    }

    fn set_cluster_queue(&mut self, meta: Meta, queue: QueueState, source: Source) {
        let target = Target::new(Kind::ClusterQueue, &meta.namespace, &meta.name);
        let fact = intake::cluster_queue(&queue.queue, &self.checks_by_name());
        if self.cluster_queues.set(meta, queue, source) != Took::Nothing {
            self.events.push(Event::ClusterQueue(fact));
            self.touched_queues.insert(target);
            self.touch_hindered();
        }
    }

    /// Which policy a queue names matters to Workloads only while admission does not work.
    fn touch_hindered(&mut self) {
        if !self.admission_works {
            self.touch_workloads();
        }
    }

    fn checks_by_name(&self) -> Checks {
        self.checks.iter().map(|known| (known.meta.name.clone(), known.facts)).collect()
    }

    /// Admission checks changed: so may what queues can admit.
    fn tell_cluster_queues(&mut self) {
        let checks = self.checks_by_name();
        let facts = self.cluster_queues.iter();
        let facts =
            facts.map(|known| Event::ClusterQueue(intake::cluster_queue(&known.facts.queue, &checks)));
        self.events.extend(facts.collect::<Vec<_>>());
    }

    fn set_local_queue(&mut self, meta: Meta, queue: LocalQueueState, source: Source) {
        let target = Target::new(Kind::LocalQueue, &meta.namespace, &meta.name);
        let fact = queue.queue.clone();
        if self.local_queues.set(meta, queue, source) != Took::Nothing {
            self.events.push(Event::LocalQueue(fact));
            self.touched_queues.insert(target);
            self.touch_hindered();
        }
    }

    fn set_volcano_queue(&mut self, meta: Meta, queue: VolcanoState, source: Source) {
        let target = Target::new(Kind::VolcanoQueue, &meta.namespace, &meta.name);
        let fact = queue.queue.clone();
        if self.volcano_queues.set(meta, queue, source) != Took::Nothing {
            self.events.push(Event::VolcanoQueue(fact));
            self.touched_queues.insert(target);
        }
    }

    fn set_plan(&mut self, meta: Meta, plan: PlanFacts, source: Source) {
        let (gang, fact) = (meta.name.clone(), plan.plan.clone());
        if self.plans.set(meta, plan, source) != Took::Nothing {
            self.events.push(Event::Plan(fact));
            self.dirty.insert(Root::Plan(gang));
        }
    }

    fn set_group(&mut self, meta: Meta, group: GroupState, source: Source) {
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
    fn touch_group(&mut self, place: Place) {
        let feeders: Vec<Root> = self.feeders(&place).flat_map(|known| root::of_job(&known.facts)).collect();
        self.dirty.extend(feeders);
        self.dirty.insert(Root::Group(place.0, place.1));
    }

    fn set_job(&mut self, meta: Meta, job: intake::JobFacts, source: Source) {
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
            Took::Replaced(before) => self.forget_feeder(&before.facts),
        }
        self.standing.insert(stands, now.uid.clone());
        self.note_feeder(&now);
        self.touch_job(&now);
        self.tell_members(&now.uid);
    }

    fn note_feeder(&mut self, job: &intake::JobFacts) {
        if let Some(group) = &job.group {
            let place = (job.namespace.clone(), group.clone());
            self.feeders.entry(place).or_default().insert(job.uid.clone());
        }
    }

    fn forget_feeder(&mut self, job: &intake::JobFacts) {
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

    fn touch_job(&mut self, job: &intake::JobFacts) {
        self.dirty.extend(root::of_job(job));
        let owned: Vec<Root> =
            self.owned(&job.uid).map(|known| root::of_workload(&known.facts.facts)).collect();
        self.dirty.extend(owned);
    }

    /// Tells the engine of a Job's pods again: whose they are may have changed.
    fn tell_members(&mut self, owner: &Name) {
        let facts: Vec<PodFacts> = self.members(owner).map(|known| known.facts.clone()).collect();
        for pod in &facts {
            self.touch_pod(pod);
        }
    }

    fn set_workload(&mut self, meta: Meta, workload: WorkloadState, source: Source) {
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

    fn forget_owned(&mut self, workload: &WorkloadState) {
        if let Some(owner) = &workload.facts.owner {
            remove_from(&mut self.owned, &owner.uid, &workload.facts.uid);
        }
    }

    fn touch_workload(&mut self, workload: &intake::WorkloadFacts) {
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

    fn set_pod(&mut self, meta: Meta, mut pod: PodFacts, source: Source) {
        let known = self.pods.by_uid(&meta.uid);
        if let Some(known) = known {
            // A reading from before a binding that we know was accepted.
            pod.pod.node = pod.pod.node.or_else(|| known.facts.pod.node.clone());
        }
        let now = pod.clone();
        let mut counts_alike = false;
        match self.pods.set(meta, pod, source) {
            Took::Nothing => return,
            Took::New => {}
            Took::Changed(before) => {
                counts_alike = counts_as(&before.facts) == counts_as(&now);
                if owners(&before.facts) != owners(&now) {
                    self.forget_member(&before.facts);
                }
            }
            Took::Replaced(before) => self.pod_gone(&before.facts),
        }
        for owner in owners(&now) {
            self.members.entry(owner).or_default().insert(now.pod.uid.clone());
        }
        if counts_alike {
            let (fact, root) = self.whose(&now);
            self.events.push(Event::Pod(fact));
            self.looked.extend(root);
        } else {
            self.touch_pod(&now);
        }
    }

    fn touch_pod(&mut self, pod: &PodFacts) {
        let (fact, root) = self.whose(pod);
        self.events.push(Event::Pod(fact));
        self.dirty.extend(root);
    }

    /// The engine's fact of a pod, and whose gang it concerns.
    fn whose(&self, pod: &PodFacts) -> (event::Pod, Option<Root>) {
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

    fn forget_member(&mut self, pod: &PodFacts) {
        for owner in owners(pod) {
            remove_from(&mut self.members, &owner, &pod.pod.uid);
        }
        let (_, root) = self.whose(pod);
        self.dirty.extend(root);
    }

    fn pod_gone(&mut self, pod: &PodFacts) {
        self.forget_member(pod);
        self.events.push(Event::PodGone(pod.pod.uid.clone()));
    }

    fn gone(&mut self, kind: Kind, uid: &Name) {
        match kind {
            Kind::AdmissionCheck => {
                self.checks.remove(uid);
                self.tell_cluster_queues();
            }
            Kind::Flavor => {
                if let Some(known) = self.flavors.remove(uid) {
                    self.tell_gone(kind, &known.meta);
                }
            }
            Kind::ClusterQueue => {
                if let Some(known) = self.cluster_queues.remove(uid) {
                    self.tell_gone(kind, &known.meta);
                }
            }
            Kind::LocalQueue => {
                if let Some(known) = self.local_queues.remove(uid) {
                    self.tell_gone(kind, &known.meta);
                }
            }
            Kind::VolcanoQueue => {
                if let Some(known) = self.volcano_queues.remove(uid) {
                    let target = Target::new(kind, &known.meta.namespace, &known.meta.name);
                    self.touched_queues.insert(target);
                    self.tell_gone(kind, &known.meta);
                }
            }
            Kind::GangPlan => {
                if let Some(known) = self.plans.remove(uid) {
                    self.events.push(Event::PlanGone(known.meta.name.clone()));
                    self.dirty.insert(Root::Plan(known.meta.name));
                }
            }
            Kind::PodGroup => {
                if let Some(known) = self.groups.remove(uid) {
                    self.touch_group(known.meta.place());
                }
            }
            Kind::Job => {
                if let Some(known) = self.jobs.remove(uid) {
                    let place = (known.meta.namespace.clone(), root::workload_name(&known.facts));
                    self.standing.remove(&place);
                    self.forget_feeder(&known.facts);
                    self.touch_job(&known.facts);
                    self.tell_members(uid);
                }
            }
            Kind::Workload => {
                if let Some(known) = self.workloads.remove(uid) {
                    self.forget_owned(&known.facts);
                    self.touch_workload(&known.facts.facts);
                }
            }
            Kind::Pod => {
                if let Some(known) = self.pods.remove(uid) {
                    self.pod_gone(&known.facts);
                }
            }
            plain => {
                if let Some(known) = self.plain.entry(plain).or_default().remove(uid) {
                    self.tell_gone(plain, &known.meta);
                }
            }
        }
    }

    fn tell_gone(&mut self, kind: Kind, meta: &Meta) {
        let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
        match kind {
            Kind::Namespace => self.events.push(Event::NamespaceGone(name)),
            Kind::Topology => self.events.push(Event::TopologyGone(name)),
            Kind::Flavor => self.events.push(Event::FlavorGone(name)),
            Kind::Cohort => self.events.push(Event::CohortGone(name)),
            Kind::ClusterQueue => self.events.push(Event::ClusterQueueGone(name)),
            Kind::LocalQueue => self.events.push(Event::LocalQueueGone { namespace, name }),
            Kind::VolcanoQueue => self.events.push(Event::VolcanoQueueGone(name)),
            Kind::Node => self.events.push(Event::NodeGone(name)),
            Kind::LimitRange => {
                self.change_defaults(Some(&namespace), |all| all.remove_limit_range(&namespace, &name));
            }
            Kind::RuntimeClass => self.change_defaults(None, |all| all.remove_runtime_class(&name)),
            Kind::PriorityClass => self.change_defaults(None, |all| all.remove_priority_class(&name)),
            Kind::WorkloadPriorityClass => {
                self.change_defaults(None, |all| all.remove_workload_priority_class(&name));
            }
            _ => {}
        }
    }

    /// Whether an object of a kind that is only known to exist does.
    pub(crate) fn exists(&self, kind: Kind, name: &Name) -> Option<&Meta> {
        let place = (Name::from(""), name.clone());
        self.plain.get(&kind)?.get(&place).map(|known| &known.meta)
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
        (pod.pod.shape.clone(), pod.role.clone(), pod.queue.clone()),
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

fn remove_from<K: Ord>(index: &mut BTreeMap<K, BTreeSet<Name>>, key: &K, uid: &Name) {
    if let Some(uids) = index.get_mut(key) {
        uids.remove(uid);
        if uids.is_empty() {
            index.remove(key);
        }
    }
}
