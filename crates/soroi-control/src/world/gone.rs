//! What does it mean that an object is gone?
//!
//! The opposite of [`super::seen`]: whatever was remembered for it is forgotten.

use std::collections::BTreeMap;

use soroi_engine::event::{ClaimKey, Event, Name};

use super::World;
use super::root::{self, Root};
use super::store::Meta;
use crate::intake::JobFacts;
use crate::kind::{Kind, Target};

impl World {
    pub(super) fn gone(&mut self, kind: Kind, uid: &Name) {
        self.wrong.remove(uid);
        match kind {
            Kind::AdmissionCheck => {
                self.checks.remove(uid);
                self.tell_cluster_queues();
            }
            Kind::Flavor => {
                if let Some(known) = self.flavors.remove(uid) {
                    self.tell_gone(kind, &known.meta);
                    if known.facts.flavor.is_err() {
                        self.tell_cluster_queues();
                    }
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
                    self.late_plans.remove(uid);
                    self.plan_in.remove(&known.meta.name);
                    self.done_and_gone.remove(&known.meta.name);
                    self.events.push(Event::PlanGone(known.meta.name.clone()));
                    self.dirty.insert(Root::Plan(known.meta.name));
                }
            }
            Kind::PodGroup => {
                if let Some(known) = self.groups.remove(uid) {
                    self.abandon(uid);
                    self.touch_group(known.meta.place());
                }
            }
            Kind::Job => {
                if let Some(known) = self.jobs.remove(uid) {
                    self.abandon(uid);
                    self.job_gone(&known.facts);
                }
            }
            Kind::Workload => {
                if let Some(known) = self.workloads.remove(uid) {
                    self.forget_owned(&known.facts);
                    self.abandoned.remove(uid);
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

    /// Notes that the owner of Workloads is gone. Only who saw it go says so: who does not know it may not have
    /// heard of it yet.
    fn abandon(&mut self, owner: &Name) {
        let left: Vec<(Name, Root)> = self
            .owned(owner)
            .map(|known| (known.meta.uid.clone(), root::of_workload(&known.facts.facts)))
            .collect();
        for (uid, root) in left {
            self.abandoned.insert(uid);
            self.dirty.insert(root);
        }
    }

    /// Whatever hung on a Job is told.
    pub(super) fn job_gone(&mut self, job: &JobFacts) {
        self.standing.remove(&(job.namespace.clone(), root::workload_name(job)));
        self.forget_feeder(job);
        self.touch_job(job);
        self.tell_members(&job.uid);
    }

    pub(super) fn tell_gone(&mut self, kind: Kind, meta: &Meta) {
        let (namespace, name) = (meta.namespace.clone(), meta.name.clone());
        match kind {
            Kind::Namespace => self.events.push(Event::NamespaceGone(name)),
            Kind::Topology => {
                self.events.push(Event::TopologyGone(name.clone()));
                self.note_topology(&name, None);
            }
            Kind::Flavor => self.events.push(Event::FlavorGone(name)),
            Kind::Cohort => {
                self.shares.remove(&name);
                self.events.push(Event::CohortGone(name));
            }
            Kind::ClusterQueue => self.events.push(Event::ClusterQueueGone(name)),
            Kind::LocalQueue => self.events.push(Event::LocalQueueGone { namespace, name }),
            Kind::VolcanoQueue => self.events.push(Event::VolcanoQueueGone(name)),
            Kind::Node => self.events.push(Event::NodeGone(name)),
            Kind::VolumeLimits => {
                self.events.push(Event::VolumeLimits { node: name, limits: BTreeMap::new() });
            }
            Kind::Volume => self.events.push(Event::VolumeGone(name)),
            Kind::Claim => self.events.push(Event::ClaimGone(ClaimKey { namespace, name })),
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
}
