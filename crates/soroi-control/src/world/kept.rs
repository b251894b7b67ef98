//! How long does a Workload stay that nobody needs any more?
//!
//! Knows what is configured (Kueue 0.18, `objectRetentionPolicies.workloads`); what time it is, is said by who asks.

use soroi_engine::event::Millis;

use super::World;
use super::root::Root;
use super::store::Known;
use crate::config::Retention;
use crate::intake::workload::Over;
use crate::jobs::podgroup;
use crate::parsed::WorkloadState;

/// A Workload that is over, and until when it stays.
pub(crate) struct Kept<'a> {
    pub(crate) workload: &'a Known<WorkloadState>,
    pub(crate) until: Millis,
    /// What there is to do then.
    pub(crate) then: Then,
}

/// What goes when the time has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The Workload.
    Workload,
    /// Its Job, and the Workload with it: the Job would be given another one.
    Job,
}

impl World {
    /// The Workload of a root, if it is over and does not stay for ever.
    pub(crate) fn kept(&self, root: &Root, retention: Retention) -> Option<Kept<'_>> {
        let workload = match root {
            Root::Workload(namespace, name) => self.workloads.get(&(namespace.clone(), name.clone()))?,
            Root::Group(namespace, name) => {
                let group = &self.groups.get(&(namespace.clone(), name.clone()))?.facts.facts;
                self.workloads.get(&(namespace.clone(), podgroup::workload_name(group)))?
            }
            Root::Pod(_) | Root::Plan(_) => return None,
        };
        if workload.meta.terminating {
            return None;
        }
        let (since, span, then) = match workload.facts.facts.over? {
            Over::Finished(since) => (since, retention.after_finished?, Then::Workload),
            Over::Deactivated(since) => (since, retention.after_deactivated?, Then::Job),
        };
        Some(Kept { workload, until: since.saturating_add(span), then })
    }
}
