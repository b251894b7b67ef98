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

use jiff::Timestamp;
use soroi_engine::event::{self, Event, GangId, Name};
use soroi_watch::Change;

use crate::config::{Config, Dialect, Requeuing, WaitForPodsReady};
use crate::intake::{self, Defaults, PlanFacts, PodFacts};
use crate::kind::{Kind, Target};
use crate::parsed::{
    Context, FlavorState, GroupState, LocalQueueState, Parsed, QueueState, VolcanoState, WorkloadState,
};
use crate::project::status::At;

pub(crate) mod done;
pub(crate) mod gang;
mod gone;
pub(crate) mod kept;
mod ready;
mod rolls;
pub(crate) mod root;
mod seen;
pub(crate) mod store;
pub(crate) mod wrong;

use root::Root;
use store::{Known, Meta, Place, Source, Store};
use wrong::Complaint;

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
    /// The term of which this is the leader's world, once everything was read.
    begun_in: Option<i64>,
    /// Plans of earlier leaders that came after that.
    late_plans: BTreeSet<Name>,
    /// The namespace of each plan.
    plan_in: BTreeMap<GangId, Name>,
    pub(crate) groups: Store<GroupState>,
    pub(crate) jobs: Store<intake::JobFacts>,
    pub(crate) workloads: Store<WorkloadState>,
    pub(crate) pods: Store<PodFacts>,
    /// Pods by whom they belong to: uid of their Job, or key of their PodGroup.
    members: BTreeMap<Name, BTreeSet<Name>>,
    /// The same pods, counted.
    counted: rolls::Counted,
    /// Jobs by the PodGroup that their template names.
    feeders: BTreeMap<Place, BTreeSet<Name>>,
    /// Jobs by the name that their Workload has or will have.
    standing: BTreeMap<Place, Name>,
    /// Workloads by the uid of their owner.
    owned: BTreeMap<Name, BTreeSet<Name>>,
    /// Workloads whose owner was seen to go.
    abandoned: BTreeSet<Name>,
    /// By uid of a group with a plan: members that ended well and whose pods are gone.
    done_and_gone: BTreeMap<Name, done::Gone>,
    events: Vec<Event>,
    dirty: BTreeSet<Root>,
    looked: BTreeSet<Root>,
    /// Owners of pods that changed.
    moved: BTreeSet<Name>,
    stale: BTreeSet<Target>,
    /// What objects are understood by has changed.
    redefined: bool,
    touched_queues: BTreeSet<Target>,
    /// By uid: what was found wrong with objects that are there.
    wrong: BTreeMap<Name, intake::Invalid>,
    /// What of that was not told yet.
    complaints: Vec<Complaint>,
    /// Topologies that could not be understood.
    broken_topologies: BTreeMap<Name, intake::Invalid>,
    /// By Cohort: the weighted share that its status shows.
    pub(crate) shares: BTreeMap<Name, Option<i64>>,
    /// Pods of a release are known to get our scheduler.
    pub(crate) admission_works: bool,
    /// The policy of queues that name none.
    placement: event::Policy,
    /// How long pods may take to be ready.
    waits: Option<WaitForPodsReady>,
    /// Whose words are used.
    dialect: Dialect,
}

impl World {
    pub(crate) fn new(context: Arc<Context>, config: &Config) -> Self {
        Self {
            context,
            plain: BTreeMap::new(),
            checks: Store::default(),
            flavors: Store::default(),
            cluster_queues: Store::default(),
            local_queues: Store::default(),
            volcano_queues: Store::default(),
            plans: Store::default(),
            begun_in: None,
            late_plans: BTreeSet::new(),
            plan_in: BTreeMap::new(),
            groups: Store::default(),
            jobs: Store::default(),
            workloads: Store::default(),
            pods: Store::default(),
            members: BTreeMap::new(),
            counted: rolls::Counted::default(),
            feeders: BTreeMap::new(),
            standing: BTreeMap::new(),
            owned: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            done_and_gone: BTreeMap::new(),
            events: Vec::new(),
            dirty: BTreeSet::new(),
            looked: BTreeSet::new(),
            moved: BTreeSet::new(),
            stale: BTreeSet::new(),
            redefined: false,
            touched_queues: BTreeSet::new(),
            wrong: BTreeMap::new(),
            complaints: Vec::new(),
            broken_topologies: BTreeMap::new(),
            shares: BTreeMap::new(),
            admission_works: true,
            placement: config.settings.placement,
            waits: config.wait_for_pods_ready.clone(),
            dialect: config.dialect,
        }
    }

    /// How things are told now.
    pub(crate) fn at(&self, now: Timestamp) -> At {
        At { now, dialect: self.dialect }
    }

    /// How a Workload is put back whose pods were not ready in time, where they have a time.
    pub(crate) fn requeuing(&self) -> Option<&Requeuing> {
        self.waits.as_ref().map(|rules| &rules.requeuing)
    }

    /// Whether pods of a release are known to get our scheduler.
    pub(crate) fn set_admission(&mut self, works: bool) {
        if self.admission_works != works {
            self.admission_works = works;
            self.touch_workloads();
        }
    }

    pub(super) fn touch_workloads(&mut self) {
        let open = self.workloads.iter().filter(|known| !known.facts.facts.finished);
        let open: Vec<_> = open.map(|known| known.facts.facts.clone()).collect();
        for workload in &open {
            self.touch_workload(workload);
        }
    }

    /// Something that matters to the gang of this root changed elsewhere.
    pub(crate) fn touch(&mut self, root: Root) {
        self.dirty.insert(root);
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
            // Nothing says which object it is. What is known of it is more than nothing.
            Change::Unreadable { namespace, name, error } => {
                tracing::warn!(kind = kind.plural(), %namespace, %name, %error, "unreadable object");
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
        let Some(known) = self.pods.by_uid_mut(pod).filter(|known| known.facts.pod.node.is_none()) else {
            return;
        };
        self.counted.remove(&known.facts);
        known.facts.pod.node = Some(node.clone());
        self.counted.add(&known.facts);
        let facts = known.facts.clone();
        self.look_at_pod(&facts);
    }

    /// Everything was read, and the leader of this term begins to decide.
    pub(crate) fn begin(&mut self, epoch: i64) {
        self.begun_in = Some(epoch);
    }

    /// Whether a plan is an earlier leader's and came when we led already: it is taken back.
    pub(crate) fn is_late(&self, plan: &Known<PlanFacts>) -> bool {
        self.late_plans.contains(&plan.meta.uid)
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

    /// Owners of pods that changed since the last call.
    pub(crate) fn take_moved(&mut self) -> BTreeSet<Name> {
        std::mem::take(&mut self.moved)
    }

    /// Objects that have to be read again, because what they are understood by has changed.
    pub(crate) fn take_stale(&mut self) -> BTreeSet<Target> {
        std::mem::take(&mut self.stale)
    }

    /// Whether what objects are understood by has changed since the last call: classes, limits.
    pub(crate) fn take_redefined(&mut self) -> bool {
        std::mem::take(&mut self.redefined)
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

    /// The same as facts, for a PodGroup that is there.
    pub(crate) fn feeding(&self, group: &intake::GroupFacts) -> Vec<&intake::JobFacts> {
        let place = (group.namespace.clone(), group.name.clone());
        self.feeders(&place).map(|known| &known.facts).collect()
    }

    /// Workloads of this owner, in order of their uids.
    pub(crate) fn owned<'a>(&'a self, owner: &str) -> impl Iterator<Item = &'a Known<WorkloadState>> {
        let uids = self.owned.get(owner).into_iter().flatten();
        uids.filter_map(|uid| self.workloads.by_uid(uid))
    }

    /// Whether a Workload stands for nothing any more: it was made for something that is gone.
    pub(crate) fn is_left_behind(&self, workload: &WorkloadState) -> bool {
        workload.facts.orphaned || self.abandoned.contains(&workload.facts.uid)
    }

    /// The plan of a gang. Plans are named after gangs.
    pub(crate) fn plan(&self, namespace: &Name, gang: &GangId) -> Option<&Known<PlanFacts>> {
        self.plans.get(&(namespace.clone(), gang.clone()))
    }

    /// The plan of a gang that may be gone, wherever it is.
    pub(crate) fn plan_of(&self, gang: &GangId) -> Option<&Known<PlanFacts>> {
        self.plan(self.plan_in.get(gang)?, gang)
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

    /// Whether an object of a kind that is only known to exist does.
    pub(crate) fn exists(&self, kind: Kind, name: &Name) -> Option<&Meta> {
        let place = (Name::from(""), name.clone());
        self.plain.get(&kind)?.get(&place).map(|known| &known.meta)
    }
}
