//! What would be decided now? A cluster as it is at one moment, read once and decided in memory, for people
//! who ask why something waits.
//!
//! Reads as the loop does, through the same watches, intake and world, and asks the same engine; nothing is
//! ever written. Knows what a person may ask about, and which gang that is. Must never know how an answer is
//! shown.

use std::collections::BTreeMap;
use std::time::Duration;

use soroi_clock::Clock;
use soroi_engine::Engine;
use soroi_engine::account::Account;
use soroi_engine::event::{Event, Millis, Name};

use crate::config::Config;
use crate::intake::Schedulers;
use crate::kind::Kind;
use crate::parsed::Context;
use crate::watches::Watches;
use crate::world::World;
use crate::world::gang::Composed;
use crate::world::root::{self, Root};
use crate::world::store::Place;

/// Why a cluster could not be read.
#[derive(Debug, thiserror::Error)]
pub enum Unread {
    /// Lists were not answered in time.
    #[error("the cluster did not list {} within {seconds} s; may you list them?", .kinds.join(", "))]
    NotListed {
        /// Which, in the plural.
        kinds: Vec<&'static str>,
        /// How long was waited.
        seconds: u64,
    },
}

/// A kind of object that a person may ask about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// `batch/v1` Job.
    Job,
    /// Kueue's Workload.
    Workload,
    /// Volcano's PodGroup.
    PodGroup,
    /// A pod.
    Pod,
}

/// What there is to say of an object.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// There is no such object.
    Missing,
    /// It belongs to no gang that waits or runs.
    Outside(Outside),
    /// It belongs to this gang.
    Gang {
        /// The kind of object that people know the gang by.
        kind: &'static str,
        /// Its namespace and name.
        name: (Name, Name),
        /// How it does.
        account: Box<Account>,
    },
}

/// Why an object belongs to no gang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// It has ended, or is being deleted.
    Ended,
    /// It names neither a queue nor a PodGroup, so Soroi leaves it alone.
    NotManaged,
    /// It names a PodGroup that does not exist.
    GroupMissing(Name),
    /// The Workload that stands for it was not made yet. The loop makes it, where one runs.
    WorkloadMissing(Name),
    /// It names a scheduler that is not ours, and no gang claims it.
    OtherScheduler(Name),
    /// Nothing that could start belongs to it yet.
    Empty,
}

/// A cluster at one moment, with what was decided for it.
#[derive(Debug)]
pub struct Snapshot {
    world: World,
    engine: Engine,
    gangs: BTreeMap<Root, Composed>,
    now: Millis,
}

impl Snapshot {
    /// Reads everything that decisions depend on, and decides.
    ///
    /// # Errors
    /// [`Unread`] when a kind was not listed within `patience`.
    pub async fn read(
        client: kube::Client,
        clock: Clock,
        config: &Config,
        patience: Duration,
    ) -> Result<Self, Unread> {
        let schedulers = Schedulers { volcano: config.serve_volcano, ..Schedulers::default() };
        let context = std::sync::Arc::new(Context {
            schedulers,
            charging: config.charging.clone(),
            defaults: Default::default(),
            shared: Default::default(),
        });
        let mut world = World::new(context.clone(), config);
        let mut watches = Watches::start(client, clock.clone(), context, config.seed);
        let listed = clock.timeout(patience, async {
            while !watches.are_listed() {
                for (kind, change) in watches.next().await {
                    world.take(kind, change);
                }
            }
        });
        if listed.await.is_err() {
            let kinds = watches.unlisted().map(Kind::plural).collect();
            return Err(Unread::NotListed { kinds, seconds: patience.as_secs() });
        }
        let now = clock.now_millis();
        let mut engine = Engine::new(config.settings.clone());
        for event in world.take_events() {
            engine.apply(event, now);
        }
        let mut gangs = BTreeMap::new();
        for root in world.take_dirty() {
            if let Some(composed) = world.gang_of(&root) {
                engine.apply(Event::Gang(composed.gang.clone()), now);
                gangs.insert(root, composed);
            }
        }
        engine.decide(now);
        Ok(Self { world, engine, gangs, now })
    }

    /// What there is to say of an object.
    pub fn explain(&self, asked: Asked, namespace: &str, name: &str) -> Answer {
        let place: Place = (namespace.into(), name.into());
        let Some(roots) = self.roots_of(asked, &place) else { return Answer::Missing };
        for composed in roots.iter().filter_map(|root| self.gangs.get(root)) {
            let gang = &composed.gang;
            if let Some(account) = self.engine.explain(&gang.id, self.now) {
                return Answer::Gang {
                    kind: composed.stands_for().0,
                    name: (gang.namespace.clone(), gang.name.clone()),
                    account: Box::new(account),
                };
            }
        }
        Answer::Outside(self.why_outside(asked, &place))
    }

    /// The roots that the object may have a part in; `None`: there is no such object.
    fn roots_of(&self, asked: Asked, place: &Place) -> Option<Vec<Root>> {
        let (namespace, name) = place.clone();
        Some(match asked {
            Asked::Job => root::of_job(&self.world.jobs.get(place)?.facts),
            Asked::PodGroup => {
                self.world.groups.get(place)?;
                vec![Root::Group(namespace, name)]
            }
            Asked::Pod => {
                let (_, root) = self.world.whose(&self.world.pods.get(place)?.facts);
                root.into_iter().collect()
            }
            Asked::Workload => {
                let workload = &self.world.workloads.get(place)?.facts.facts;
                let owner = workload.owner.as_ref();
                let job = owner.and_then(|owner| self.world.jobs.by_uid(&owner.uid));
                let group = owner.and_then(|owner| self.world.groups.by_uid(&owner.uid));
                let of_job = job.map_or(Vec::new(), |job| root::of_job(&job.facts));
                let of_group =
                    group.map(|group| Root::Group(group.meta.namespace.clone(), group.meta.name.clone()));
                of_job.into_iter().chain(of_group).chain([root::of_workload(workload)]).collect()
            }
        })
    }

    fn why_outside(&self, asked: Asked, place: &Place) -> Outside {
        let (jobs, pods) = (&self.world.jobs, &self.world.pods);
        match asked {
            Asked::Job => jobs.get(place).map_or(Outside::Empty, |job| self.why_job(&job.facts)),
            Asked::Workload => Outside::Ended,
            Asked::PodGroup => match self.world.groups.get(place) {
                Some(group) if group.facts.facts.terminating => Outside::Ended,
                _ => Outside::Empty,
            },
            Asked::Pod => {
                let Some(pod) = pods.get(place).map(|known| &known.facts) else { return Outside::Empty };
                let job = pod.job.as_ref().and_then(|uid| jobs.by_uid(uid)).map(|known| &known.facts);
                let missing = pod.group.as_ref().filter(|group| {
                    let group = (pod.pod.namespace.clone(), Name::clone(group));
                    self.world.groups.get(&group).is_none()
                });
                match (job, missing) {
                    _ if !pod.pod.is_live() => Outside::Ended,
                    (Some(job), _) if root::is_managed(job) => self.why_job(job),
                    (_, Some(group)) => Outside::GroupMissing(group.clone()),
                    _ if !self.world.context.schedulers.serve(&pod.scheduler) => {
                        Outside::OtherScheduler(pod.scheduler.clone())
                    }
                    _ => Outside::Empty,
                }
            }
        }
    }

    fn why_job(&self, job: &crate::intake::JobFacts) -> Outside {
        let group = job.group.clone().map(|group| (job.namespace.clone(), group));
        let missing = group.filter(|group| self.world.groups.get(group).is_none());
        match missing {
            _ if job.finished.is_some() || job.terminating_itself => Outside::Ended,
            _ if !root::is_managed(job) => Outside::NotManaged,
            Some((_, group)) => Outside::GroupMissing(group),
            None => Outside::WorkloadMissing(root::workload_name(job)),
        }
    }
}
