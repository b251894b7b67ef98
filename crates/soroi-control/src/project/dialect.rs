//! In whose words is it said why a Workload waits? Kueue 0.18 has a few reasons for `QuotaReserved=False`;
//! 0.19 tells them apart (its gate `UnadmittedWorkloadsObservability`), and what reads them must know which.
//!
//! Knows the reasons of the engine and Kueue's words for them; never how a condition is set.

use std::collections::BTreeMap;

use soroi_api::conditions::workload::reason as word;
use soroi_engine::event::Name;
use soroi_engine::reason::{FlavorProblem, NotYet, Off, QueueProblem, Reason, VolcanoProblem};

/// The release of Kueue whose reasons are used in conditions and events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Pending, Inadmissible, Waiting, AdmissionGated; UnsatisfiedChecks.
    #[default]
    Kueue018,
    /// WaitingForQuota, TopologyPlacementFailed and so on; UnsatisfiedAdmissionChecks.
    Kueue019,
}

impl Dialect {
    /// The one word that goes with a reason for waiting (QuotaReserved=False).
    pub fn pending_word(self, reason: &Reason) -> &'static str {
        match self {
            Self::Kueue018 => coarse(reason),
            Self::Kueue019 => granular(reason),
        }
    }

    /// The word for what 0.18 calls so.
    pub(super) fn translated(self, word: &str) -> &str {
        match (self, word) {
            (Self::Kueue019, word::PENDING) => word::PENDING_EVALUATION,
            (Self::Kueue019, word::UNSATISFIED_CHECKS) => word::UNSATISFIED_ADMISSION_CHECKS,
            (Self::Kueue019, word::NO_RESERVATION_UNSATISFIED_CHECKS) => word::NO_RESERVATION,
            _ => word,
        }
    }
}

fn coarse(reason: &Reason) -> &'static str {
    match reason {
        Reason::Off(Off::Deactivated) => word::PENDING,
        Reason::Queue(_) | Reason::Off(_) => word::INADMISSIBLE,
        Reason::NotYet(NotYet::Gated(_)) => word::ADMISSION_GATED,
        Reason::NotYet(NotYet::OthersNotReady) => word::WAITING,
        _ => word::PENDING,
    }
}

/// As Kueue 0.19 does (`workload_controller.go`, `scheduler.go`): what is wrong with the Workload or its queues
/// comes before what it lacks.
fn granular(reason: &Reason) -> &'static str {
    match reason {
        Reason::Off(Off::Deactivated | Off::SuspendedByUser) => word::DEACTIVATED,
        Reason::Queue(QueueProblem::LocalQueueStopped(_) | QueueProblem::ClusterQueueInactive(..))
        | Reason::VolcanoQueue { problem: VolcanoProblem::Closed, .. } => word::SUSPENDED,
        Reason::VolcanoQueue {
            problem: VolcanoProblem::OverCapability { .. } | VolcanoProblem::Guaranteed { .. },
            ..
        } => word::WAITING_FOR_QUOTA,
        Reason::Queue(_)
        | Reason::VolcanoQueue { .. }
        | Reason::NamespaceMismatch
        | Reason::NotYet(NotYet::Invalid(_))
        | Reason::ForeignScheduler { .. } => word::MISCONFIGURED,
        Reason::NotYet(NotYet::Gated(_)) => word::ADMISSION_GATED,
        Reason::NotYet(NotYet::OthersNotReady) => word::WAITING_FOR_PODS_READY,
        Reason::NoFlavor(sets) => {
            let worst = sets.iter().map(|(_, problems)| of_pod_set(problems)).max();
            worst.unwrap_or(Lack::Quota).word()
        }
        Reason::NoPlace(_) => word::TOPOLOGY_PLACEMENT_FAILED,
        Reason::Preempting { .. } => word::WAITING_FOR_PREEMPTED_WORKLOADS,
        _ => word::PENDING_EVALUATION,
    }
}

/// What a flavor lacks, the least severe first (Kueue 0.19, `reasonSeverity`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Lack {
    Places,
    Quota,
    QuotaForEver,
    Match,
}

impl Lack {
    fn of(problem: &FlavorProblem) -> (Option<&Name>, Self) {
        match problem {
            FlavorProblem::ResourceNotCovered { .. } => (None, Self::Match),
            FlavorProblem::UntoleratedTaint { flavor, .. }
            | FlavorProblem::AffinityMismatch { flavor }
            | FlavorProblem::NoTopologyLevel { flavor, .. }
            | FlavorProblem::SliceAbove { flavor, .. } => (Some(flavor), Self::Match),
            FlavorProblem::ExceedsMaximum { flavor, .. } => (Some(flavor), Self::QuotaForEver),
            FlavorProblem::Short { flavor, .. } => (Some(flavor), Self::Quota),
            FlavorProblem::NoPlace { flavor, .. } => (Some(flavor), Self::Places),
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Places => word::TOPOLOGY_PLACEMENT_FAILED,
            Self::Quota => word::WAITING_FOR_QUOTA,
            Self::QuotaForEver => word::EXCEEDS_MAX_QUOTA,
            Self::Match => word::NO_MATCHING_FLAVOR,
        }
    }
}

/// A pod set lacks what its best flavor lacks; a flavor lacks the worst of what it lacks.
fn of_pod_set(problems: &[FlavorProblem]) -> Lack {
    let mut flavors: BTreeMap<Option<&Name>, Lack> = BTreeMap::new();
    for (flavor, lack) in problems.iter().map(Lack::of) {
        let worst = flavors.entry(flavor).or_insert(lack);
        *worst = (*worst).max(lack);
    }
    let uncovered = flavors.remove(&None);
    uncovered.or_else(|| flavors.into_values().min()).unwrap_or(Lack::Quota)
}

#[cfg(test)]
mod tests;
