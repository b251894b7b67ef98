//! What of the cluster's objects cannot be used?
//!
//! An object that is there never counts as gone for what is wrong with it where that would give quota away
//! or leave gangs without a reason: its queue is inactive and names the field, and so does an event.

use soroi_engine::event::{self, Name};
use soroi_engine::reason::QueueInactive;

use super::World;
use super::store::{Meta, Source};
use crate::intake::{self, Invalid};
use crate::kind::Kind;
use crate::parsed::{CohortState, QueueState, What};

/// An object with what is wrong with it.
#[derive(Clone, Debug)]
pub(crate) struct Complaint {
    pub(crate) kind: Kind,
    pub(crate) meta: Meta,
    pub(crate) invalid: Invalid,
}

impl World {
    /// Something of an object cannot be used; `None`: all of it can.
    pub(super) fn note_wrong(&mut self, kind: Kind, meta: &Meta, wrong: Option<Invalid>) {
        let Some(invalid) = wrong else {
            self.wrong.remove(&meta.uid);
            return;
        };
        if self.wrong.insert(meta.uid.clone(), invalid.clone()).as_ref() == Some(&invalid) {
            return;
        }
        let (namespace, name) = (&meta.namespace, &meta.name);
        tracing::warn!(kind = kind.plural(), %namespace, %name, %invalid, "invalid object");
        self.complaints.push(Complaint { kind, meta: meta.clone(), invalid });
    }

    /// What is wrong since the last call.
    pub(crate) fn take_complaints(&mut self) -> Vec<Complaint> {
        std::mem::take(&mut self.complaints)
    }

    /// An object of which nothing could be understood but its name. What others look for stays there;
    /// the rest counts as gone.
    pub(super) fn set_invalid(&mut self, kind: Kind, meta: Meta, invalid: Invalid, source: Source) {
        match kind {
            Kind::Topology => self.set_plain(kind, meta, What::Topology(Err(invalid)), source),
            Kind::Cohort => {
                let cohort = intake::queue::cohort_without_quota(&meta.name);
                self.set_plain(
                    kind,
                    meta,
                    What::Cohort(Box::new(CohortState { cohort, share: None, unread: None })),
                    source,
                );
            }
            Kind::AdmissionCheck => self.set_check(meta, false, source),
            _ => self.gone(kind, &meta.uid),
        }
    }

    /// Notes whether a Topology can be understood.
    pub(super) fn note_topology(&mut self, name: &Name, invalid: Option<Invalid>) {
        let before = match invalid.clone() {
            Some(invalid) => self.broken_topologies.insert(name.clone(), invalid),
            None => self.broken_topologies.remove(name),
        };
        if before != invalid {
            self.tell_cluster_queues();
        }
    }

    /// A ClusterQueue with the reason for which it cannot admit, as far as that is seen in objects.
    pub(super) fn cluster_queue_fact(&self, state: &QueueState) -> event::ClusterQueue {
        let mut fact = intake::cluster_queue(&state.queue, &self.checks_by_name());
        let unread = state.unread.as_ref().map(Invalid::reason);
        let known = matches!(fact.inactive, Some(QueueInactive::Terminating | QueueInactive::Invalid(_)));
        let why = match known {
            true => unread.filter(|_| fact.inactive != Some(QueueInactive::Terminating)),
            false => unread.or_else(|| self.broken_flavor(&fact)),
        };
        if let Some(why) = why {
            fact.inactive = Some(QueueInactive::Invalid(why));
        }
        fact
    }

    /// What is wrong with a flavor of this queue, or with the topology of one.
    fn broken_flavor(&self, queue: &event::ClusterQueue) -> Option<Name> {
        let flavors = queue.groups.iter().flat_map(|group| &group.flavors).map(|flavor| &flavor.flavor);
        flavors.into_iter().find_map(|name| {
            let known = self.flavors.get(&(Name::from(""), name.clone()))?;
            let text = match &known.facts.flavor {
                Err(invalid) => format!("ResourceFlavor \"{name}\": {invalid}"),
                Ok(flavor) => {
                    let topology = flavor.topology.as_ref()?;
                    format!("Topology \"{topology}\": {}", self.broken_topologies.get(topology)?)
                }
            };
            Some(text.into())
        })
    }
}

#[cfg(test)]
mod tests;
