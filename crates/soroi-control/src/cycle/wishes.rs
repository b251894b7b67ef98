//! What does the job behind a root lack beside decisions? And which lane is whose?
//!
//! Reads what is known, and changes nothing.

use jiff::Timestamp;
use soroi_engine::event::Name;

use super::Cycle;
use crate::carry::{self, Scene};
use crate::course::Course;
use crate::jobs;
use crate::kind::{Kind, Target};
use crate::lanes::Write;
use crate::world::kept::Then;
use crate::world::root::Root;
use crate::world::store::Place;

impl Cycle {
    /// What the job behind a root lacks beside decisions.
    pub(super) fn job_writes(&self, root: &Root, now: Timestamp) -> Vec<Write> {
        let parts = self.units.get(root).into_iter().flat_map(|unit| &unit.composed.parts);
        let workloads = parts.filter_map(|part| self.world.workloads.by_uid(&part.workload));
        let over = workloads.filter_map(|known| jobs::batch::deactivated(known, self.world.at(now)));
        let writes: Vec<Write> = over.collect();
        match (writes.is_empty(), self.outlived(root, now)) {
            (false, _) => writes,
            (true, Some(write)) => vec![write],
            (true, None) => self.wanted_writes(root, now),
        }
    }

    /// Removes what has been over for as long as is configured.
    fn outlived(&self, root: &Root, now: Timestamp) -> Option<Write> {
        let kept = self.world.kept(root, self.config.retention)?;
        if kept.until > now.as_millisecond() {
            return None;
        }
        match kept.then {
            Then::Workload => Some(jobs::batch::removed(kept.workload)),
            Then::Job => {
                let meta = &kept.workload.meta;
                let job = self.world.job_of(&(meta.namespace.clone(), meta.name.clone()))?;
                (!job.facts.terminating_itself).then(|| jobs::batch::given_up(&job.facts))
            }
        }
    }

    fn wanted_writes(&self, root: &Root, now: Timestamp) -> Vec<Write> {
        match root {
            Root::Workload(namespace, name) => self.batch_writes(&(namespace.clone(), name.clone()), now),
            Root::Group(namespace, name) => self.group_writes(root, &(namespace.clone(), name.clone()), now),
            Root::Pod(uid) => self.world.pods.by_uid(uid).map_or_else(Vec::new, |known| {
                let pod = &known.facts;
                let group = (pod.pod.namespace.clone(), jobs::podgroup::group_name(pod));
                jobs::podgroup::adopt(pod, self.world.groups.get(&group).is_some())
            }),
            Root::Plan(_) => Vec::new(),
        }
    }

    fn batch_writes(&self, place: &Place, now: Timestamp) -> Vec<Write> {
        let workload = self.world.workloads.get(place);
        match (self.world.job_of(place), workload) {
            (Some(job), workload) => {
                let own = workload.and_then(|known| self.gangs.get(&known.meta.uid));
                let group = job.facts.group.as_ref().map(|group| Root::Group(place.0.clone(), group.clone()));
                let unit = own.or(group.as_ref()).and_then(|root| self.units.get(root));
                let held = unit.is_some_and(|unit| unit.course.has_begun());
                jobs::batch::wants(job, workload, held, self.world.at(now))
            }
            (None, Some(workload)) if workload.meta.terminating => {
                let finalizer = soroi_api::labels::kueue::RESOURCE_IN_USE;
                jobs::batch::let_go(&workload.meta, Kind::Workload, finalizer).into_iter().collect()
            }
            (None, Some(workload)) if self.world.is_left_behind(&workload.facts) => {
                vec![jobs::batch::left_behind(workload)]
            }
            (None, _) => Vec::new(),
        }
    }

    fn group_writes(&self, root: &Root, place: &Place, now: Timestamp) -> Vec<Write> {
        let Some(known) = self.world.groups.get(place) else {
            let told = self.missing.is_told(root, now);
            let scene = Scene { world: &self.world, now, epoch: self.config.epoch };
            return if told { carry::show::group_missing(scene, place) } else { Vec::new() };
        };
        let group = &known.facts.facts;
        let course = self.units.get(root).map(|unit| &unit.course);
        let feeders = self.world.feeding(group);
        if feeders.iter().any(|job| job.queue.is_some()) {
            return Vec::new();
        }
        let workload = (place.0.clone(), jobs::podgroup::workload_name(group));
        let workload = self.world.workloads.get(&workload);
        let queued = self.units.get(root).is_none_or(|unit| unit.composed.gang.local_queue.is_some());
        if workload.is_none() && !queued {
            return Vec::new();
        }
        let members = self.world.group_roll(group, &feeders);
        let gone = self.world.done_and_gone(group);
        let held = course.is_some_and(Course::has_begun);
        let named = |uid: &Name| self.world.pods.by_uid(uid).map(|known| carry::pod_target(&known.facts.pod));
        jobs::podgroup::wants(group, &members, &gone, workload, held, named, self.world.at(now))
    }

    /// The status of the PodGroup behind a root, if it does not show it.
    pub(super) fn shown_group(&self, root: &Root, now: Timestamp) -> Option<Write> {
        let Root::Group(namespace, name) = root else { return None };
        let known = self.world.groups.get(&(namespace.clone(), name.clone()))?;
        // While a status is on its way, the next one would only be built to be thrown away.
        if self.lanes.is_busy(&Target::new(Kind::PodGroup, namespace, name)) {
            return None;
        }
        let course = self.units.get(root).map(|unit| &unit.course);
        let scene = Scene { world: &self.world, now, epoch: self.config.epoch };
        carry::show::group(scene, known, course).0
    }

    pub(super) fn lane_root(&self, name: &Name) -> Option<Root> {
        let (kind, rest) = name.split_once('/')?;
        let place =
            || rest.split_once('/').map(|(namespace, name)| (Name::from(namespace), Name::from(name)));
        match kind {
            "workload" => place().map(|(namespace, name)| Root::Workload(namespace, name)),
            "group" => place().map(|(namespace, name)| Root::Group(namespace, name)),
            "pod" => Some(Root::Pod(rest.into())),
            "plan" => Some(Root::Plan(rest.into())),
            _ => None,
        }
    }
}

/// The lane of a root.
pub(super) fn lane(root: &Root) -> Name {
    match root {
        Root::Workload(namespace, name) => format!("workload/{namespace}/{name}").into(),
        Root::Group(namespace, name) => format!("group/{namespace}/{name}").into(),
        Root::Pod(uid) => format!("pod/{uid}").into(),
        Root::Plan(gang) => format!("plan/{gang}").into(),
    }
}
