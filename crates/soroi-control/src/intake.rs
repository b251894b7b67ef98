//! What do Kubernetes' objects say? Parses each object once, at the edge, into the engine's facts.
//!
//! Knows the fields, defaults and formulas of Kubernetes 1.36, Kueue and Volcano objects. Never
//! knows the state of the engine, a clock or a client: the same object always gives the same fact.
//!
//! Architecture invariant: an object that cannot be understood is an [`Invalid`] value that names
//! the field. It becomes the reason of its own gang or queue, and never stops another object.
//!
//! # Who owns a pod
//!
//! [`event::Pod::owner`] is one key, [`event::Gang::owners`] a list, so whoever composes gangs must
//! use the same keys:
//!
//! 1. A pod that a `batch/v1` Job controls belongs to the **Job's uid**, also when its annotation
//!    names a PodGroup. So the gang of a PodGroup that Jobs feed lists the uids of these Jobs
//!    ([`job::JobFacts::group`]), and a stranger that only carries the annotation stays outside.
//! 2. Else a pod whose annotation names a PodGroup belongs to [`group_key`].
//! 3. Else a pod belongs to itself: its own uid.
//!
//! Pods of a Job that turns out to be nobody's business (no queue, no group) are single pods: the
//! caller passes [`pod::PodFacts::alone`] on instead.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use soroi_engine::event::{self, Millis, Name};

pub mod amount;
pub mod charge;
pub mod defaults;
pub mod group;
pub mod job;
mod neighbours;
pub mod node;
pub mod plan;
pub mod pod;
mod preferences;
pub mod queue;
mod request;
pub mod selector;
pub mod shared;
pub mod topology;
pub mod volume;
pub mod workload;

pub use defaults::{Defaults, template};
pub use group::{GroupFacts, group};
pub use job::{JobFacts, job};
pub use node::node;
pub use plan::{PlanFacts, plan};
pub use pod::{PodFacts, Schedulers, pod};
pub use queue::{cluster_queue, cohort, flavor, local_queue, namespace, volcano_queue};
pub use shared::Shared;
pub use workload::{WorkloadFacts, workload};

/// The most pods of one gang: Kubernetes is made for clusters of up to 150,000. Every pod takes a
/// place in memory, so that without a bound a count of 2147483647 in a queue with enough quota would
/// take all of it.
pub const GANG_PODS_MAX: u32 = 150_000;

/// A field of an object that could not be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}")]
pub struct Invalid {
    /// The field's path within its object, as `kubectl explain` takes it (`spec.nodeName`).
    pub field: String,
    /// What is wrong with it, with the value.
    pub problem: String,
}

impl Invalid {
    /// A problem with one field.
    pub fn new(field: impl Into<String>, problem: impl std::fmt::Display) -> Self {
        Self { field: field.into(), problem: problem.to_string() }
    }

    /// The same problem, seen from the object around it: `spec` and `resources.limits[cpu]` give
    /// `spec.resources.limits[cpu]`.
    #[must_use]
    pub fn within(self, parent: &str) -> Self {
        Self { field: format!("{parent}.{}", self.field), problem: self.problem }
    }

    /// The text that [`soroi_engine::reason::NotYet::Invalid`] and
    /// [`soroi_engine::reason::QueueInactive::Invalid`] carry.
    pub fn reason(&self) -> Name {
        Arc::from(self.to_string())
    }
}

/// What is wrong with so many pods in one gang, if anything is.
pub(crate) fn too_many_pods(field: &str, counts: impl Iterator<Item = u32>) -> Option<Invalid> {
    let pods = counts.fold(0_u32, u32::saturating_add);
    let problem = || format!("{pods} pods are more than the {GANG_PODS_MAX} that a gang may have");
    (pods > GANG_PODS_MAX).then(|| Invalid::new(field, problem()))
}

/// The key of a PodGroup's members in [`event::Pod::owner`] and [`event::Gang::owners`].
pub fn group_key(namespace: &str, group: &str) -> Name {
    Arc::from(format!("podgroup:{namespace}/{group}"))
}

/// A time stamp as the engine counts it; 0 for an object that has none yet.
pub(crate) fn millis(time: Option<&Time>) -> Millis {
    time.map_or(0, |time| time.0.as_millisecond())
}

/// A name that is there and not empty: Kubernetes reads an empty string as none.
pub(crate) fn some_name(text: Option<&String>) -> Option<Name> {
    text.filter(|text| !text.is_empty()).map(|text| Arc::from(text.as_str()))
}

/// A map of labels, or a node selector.
pub(crate) fn labels(map: Option<&std::collections::BTreeMap<String, String>>) -> event::Labels {
    map.into_iter()
        .flatten()
        .map(|(key, value)| (Arc::from(key.as_str()), Arc::from(value.as_str())))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests;
