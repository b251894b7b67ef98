//! Each kind of reason in both dialects.

use std::sync::Arc;

use soroi_engine::reason::PlaceProblem;
use soroi_engine::reason::QueueInactive;

use super::*;

fn short(flavor: &str) -> FlavorProblem {
    FlavorProblem::Short { flavor: flavor.into(), resource: "cpu".into(), short: 1 }
}

fn too_much(flavor: &str) -> FlavorProblem {
    let (flavor, resource) = (flavor.into(), "cpu".into());
    FlavorProblem::ExceedsMaximum { flavor, resource, previous: 0, request: 9, maximum: 8 }
}

fn no_place(flavor: &str) -> FlavorProblem {
    FlavorProblem::NoPlace { flavor: flavor.into(), problem: PlaceProblem::default() }
}

fn no_match(flavor: &str) -> FlavorProblem {
    FlavorProblem::AffinityMismatch { flavor: flavor.into() }
}

fn set(problems: Vec<FlavorProblem>) -> (Name, Vec<FlavorProblem>) {
    ("main".into(), problems)
}

#[test]
fn every_reason_has_its_word_in_both() {
    let queue = |problem| Reason::Queue(problem);
    let volcano = |problem| Reason::VolcanoQueue { queue: "q".into(), problem };
    let stopped = QueueProblem::ClusterQueueInactive("q".into(), QueueInactive::Stopped);
    for (reason, coarse, granular) in [
        (Reason::Off(Off::Deactivated), "Pending", "Deactivated"),
        (queue(QueueProblem::LocalQueueMissing("q".into())), "Inadmissible", "Misconfigured"),
        (queue(QueueProblem::LocalQueueStopped("q".into())), "Inadmissible", "Suspended"),
        (queue(stopped), "Inadmissible", "Suspended"),
        (volcano(VolcanoProblem::Missing), "Pending", "Misconfigured"),
        (volcano(VolcanoProblem::Closed), "Pending", "Suspended"),
        (Reason::NamespaceMismatch, "Pending", "Misconfigured"),
        (Reason::NotYet(NotYet::Gated("a/b".into())), "AdmissionGated", "AdmissionGated"),
        (Reason::NotYet(NotYet::OthersNotReady), "Waiting", "WaitingForPodsReady"),
        (Reason::NotYet(NotYet::WorkloadBehind), "Pending", "PendingEvaluation"),
        (Reason::NoFlavor(vec![set(vec![short("a")])]), "Pending", "WaitingForQuota"),
        (Reason::NoFlavor(vec![set(vec![too_much("a")])]), "Pending", "ExceedsMaxQuota"),
        (Reason::NoFlavor(vec![set(vec![no_place("a")])]), "Pending", "TopologyPlacementFailed"),
        (Reason::NoFlavor(vec![set(vec![no_match("a")])]), "Pending", "NoMatchingFlavor"),
        (
            Reason::NoPlace(vec![("main".into(), PlaceProblem::default())]),
            "Pending",
            "TopologyPlacementFailed",
        ),
        (
            Reason::Preempting { without: Arc::new(Reason::NamespaceMismatch), victims: 1 },
            "Pending",
            "WaitingForPreemptedWorkloads",
        ),
    ] {
        assert_eq!(Dialect::Kueue018.pending_word(&reason), coarse, "{reason:?}");
        assert_eq!(Dialect::Kueue019.pending_word(&reason), granular, "{reason:?}");
    }
}

#[test]
fn the_best_flavor_of_the_worst_pod_set_counts() {
    for (sets, expected) in [
        // One flavor would do had it quota: the other never matters.
        (vec![vec![no_match("a"), short("b")]], "WaitingForQuota"),
        // A flavor lacks the worst of what it lacks.
        (vec![vec![short("a"), too_much("a")]], "ExceedsMaxQuota"),
        (vec![vec![short("a")], vec![no_place("a")]], "WaitingForQuota"),
        (vec![vec![no_place("a")], vec![no_match("a"), no_match("b")]], "NoMatchingFlavor"),
        (
            vec![vec![FlavorProblem::ResourceNotCovered { resource: "x".into() }, short("a")]],
            "NoMatchingFlavor",
        ),
    ] {
        let reason = Reason::NoFlavor(sets.into_iter().map(set).collect());
        assert_eq!(Dialect::Kueue019.pending_word(&reason), expected, "{reason:?}");
    }
}
