//! Why not yet, in words: the one text of each reason, in Kueue's wording where Kueue has one
//! (0.18, conditions and Pending events), and in kube-scheduler's for nodes.
//!
//! Only this module makes text of reasons. It decides nothing.

mod kind;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt::{self, Display, Formatter};

use soroi_quantity::display as quantity;

use crate::event::{ClaimProblem, Taint, TaintEffect, Unserved};
use crate::minima::Lack;
use crate::reason::{
    FlavorProblem, NodeProblem, NotYet, Off, PlaceProblem, QueueInactive, QueueProblem, Reason, UndoReason,
    VolcanoProblem,
};

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotYet(missing) => missing.fmt(f),
            Self::Off(off) => off.fmt(f),
            Self::Queue(problem) => problem.fmt(f),
            Self::NamespaceMismatch => f.write_str("Workload namespace doesn't match ClusterQueue selector"),
            Self::BehindStrictHead { head: (namespace, name) } => {
                write!(f, "waiting behind {namespace}/{name}, the head of its StrictFIFO ClusterQueue")
            }
            Self::BehindPreemptor { head: (namespace, name) } => {
                write!(
                    f,
                    "waiting behind {namespace}/{name} of its ClusterQueue, for which others are leaving"
                )
            }
            Self::BackingOff { .. } => f.write_str("pausing before it is tried again"),
            Self::NoFlavor(sets) => joined(f, "; ", sets, |f, (set, problems)| {
                // Kueue sorts the texts.
                let mut texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
                texts.sort();
                write!(f, "couldn't assign flavors to pod set {set}: {}", texts.join(", "))
            }),
            Self::NoPlace(sets) => joined(f, "; ", sets, |f, (set, problem)| {
                write!(f, "couldn't place pod set {set}: {problem}")
            }),
            Self::VolcanoQueue { queue, problem } => match problem {
                VolcanoProblem::Missing => write!(f, "Queue {queue} doesn't exist"),
                VolcanoProblem::Closed => write!(f, "Queue {queue} is not open"),
                VolcanoProblem::Invalid(text) => write!(f, "Queue {queue} cannot be used: {text}"),
                VolcanoProblem::OverCapability { resource, short } => {
                    let short = quantity(resource, *short);
                    write!(f, "insufficient capability for {resource} in Queue {queue}, {short} more needed")
                }
                VolcanoProblem::Guaranteed { resource, short } => {
                    let short = quantity(resource, *short);
                    write!(
                        f,
                        "insufficient {resource} beside what is guaranteed to other Queues than {queue}, {short} more needed"
                    )
                }
            },
            Self::ForeignScheduler { scheduler, policy } => {
                write!(
                    f,
                    "pods name the scheduler {scheduler}, but placement policy {policy:?} needs Soroi's"
                )
            }
            // Kueue tells of its flavors and then of the victims.
            Self::Preempting { without, victims } => {
                write!(f, "{without}. Pending the preemption of {victims} workload(s)")
            }
            Self::NotAdmittedWith { pod_set } => write!(
                f,
                "the group was admitted without pod set {pod_set}: its pods start with the group's next admission"
            ),
        }
    }
}

impl Display for NotYet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::JobNotSuspended => {
                f.write_str("waiting for the Job to be suspended and without active pods")
            }
            Self::MembersMissing(Lack { role: None, have, need }) => {
                write!(f, "waiting for pods of the group: {have} of {need} exist")
            }
            Self::MembersMissing(Lack { role: Some(role), have, need }) => {
                write!(f, "waiting for pods of role {role}: {have} of {need} exist")
            }
            Self::Gated(gate) => write!(f, "Admission is gated by: {gate}"),
            Self::WorkloadBehind => f.write_str("its Workload is being written"),
            Self::ChecksPending => f.write_str("waiting for admission checks"),
            Self::OthersNotReady => {
                f.write_str("waiting for all admitted workloads to be in PodsReady condition")
            }
            Self::StillLeaving => f.write_str("waiting for its own pods to end after a preemption"),
            Self::AdmissionNotProven => {
                f.write_str("waiting until Soroi's admission policy is known to be in force")
            }
            Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl Display for Off {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Deactivated => "The workload is deactivated",
            Self::SuspendedByUser => "The job is suspended by its user",
            Self::Finished => "The job has finished",
            Self::CheckRetry(message) => message,
        })
    }
}

impl Display for QueueProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::LocalQueueMissing(name) => write!(f, "LocalQueue {name} doesn't exist"),
            Self::LocalQueueStopped(name) => write!(f, "LocalQueue {name} is inactive"),
            Self::ClusterQueueMissing(name) => write!(f, "ClusterQueue {name} doesn't exist"),
            Self::ClusterQueueInactive(name, why) => match why {
                QueueInactive::Stopped => write!(f, "ClusterQueue {name} is inactive"),
                why => write!(f, "ClusterQueue {name} is inactive: {why}"),
            },
        }
    }
}

impl Display for QueueInactive {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Terminating => f.write_str("it is being deleted"),
            Self::Stopped => f.write_str("it is stopped"),
            Self::FlavorNotFound(names) => {
                write!(f, "it references missing ResourceFlavor(s): {}", list(names))
            }
            Self::TopologyNotFound(name) => write!(f, "there is no Topology {name}"),
            Self::CheckNotFound(names) => {
                write!(f, "it references missing AdmissionCheck(s): {}", list(names))
            }
            Self::CheckInactive(names) => {
                write!(f, "it references inactive AdmissionCheck(s): {}", list(names))
            }
            Self::CohortCycle(name) => write!(f, "its cohorts form a cycle through {name}"),
            Self::ClusterQueueMissing => f.write_str("its ClusterQueue doesn't exist"),
            Self::ClusterQueueInactive => f.write_str("its ClusterQueue is inactive"),
            Self::Invalid(text) => f.write_str(text),
        }
    }
}

impl Display for FlavorProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::ResourceNotCovered { resource } => {
                write!(f, "resource {resource} unavailable in ClusterQueue")
            }
            Self::UntoleratedTaint { flavor, taint } => {
                write!(f, "untolerated taint {} in flavor {flavor}", go(taint))
            }
            Self::AffinityMismatch { flavor } => write!(f, "flavor {flavor} doesn't match node affinity"),
            Self::ExceedsMaximum { flavor, resource, previous, request, maximum } => {
                let amount = |amount: &i64| quantity(resource, *amount);
                let (previous, request, maximum) = (amount(previous), amount(request), amount(maximum));
                write!(
                    f,
                    "insufficient quota for {resource} in flavor {flavor}, previously considered podsets requests \
                     ({previous}) + current podset request ({request}) > maximum capacity ({maximum})"
                )
            }
            Self::Short { flavor, resource, short } => {
                let short = quantity(resource, *short);
                write!(f, "insufficient unused quota for {resource} in flavor {flavor}, {short} more needed")
            }
            Self::NoTopologyLevel { flavor, level: None } => {
                write!(f, "Flavor \"{flavor}\" does not support TopologyAwareScheduling")
            }
            Self::NoTopologyLevel { flavor, level: Some(level) } => {
                write!(f, "Flavor \"{flavor}\" does not contain the requested level \"{level}\"")
            }
            Self::SliceAbove { flavor, outer, inner } => {
                write!(
                    f,
                    "podset slice topology {inner} is above the podset topology {outer} in flavor {flavor}"
                )
            }
            Self::NoPlace { flavor, problem } => problem.write(f, &format!("nodes of flavor {flavor}")),
        }
    }
}

impl Display for PlaceProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write(f, "nodes")
    }
}

impl PlaceProblem {
    /// In a Topology as Kueue says it; else of `nodes` in the same style, and with
    /// kube-scheduler's counts of nodes for the first pod that does not fit. Soroi's additions
    /// (which domain came closest, whether it could fit at all) come behind that, so that whoever
    /// looks for Kueue's words finds them whole.
    fn write(&self, f: &mut Formatter<'_>, nodes: &str) -> fmt::Result {
        let slice = self.slice.max(1);
        let (asked, fitting) = (self.asked / slice, self.fitting / slice);
        let unit = if slice > 1 { "slice(s)" } else { "pod(s)" };
        match &self.topology {
            Some(topology) if fitting == 0 => {
                write!(f, "topology \"{topology}\" doesn't allow to fit any of {asked} {unit}")?;
            }
            Some(topology) => {
                write!(f, "topology \"{topology}\" allows to fit only {fitting} out of {asked} {unit}")?;
            }
            None if fitting == 0 => write!(f, "{nodes} don't allow to fit any of {asked} {unit}")?,
            None => write!(f, "{nodes} allow to fit only {fitting} out of {asked} {unit}")?,
        }
        match self.topology {
            Some(_) => {
                self.excluded_as_kueue(f)?;
                self.excluded_as_kube_scheduler(f, "; ")?;
            }
            None => self.excluded_as_kube_scheduler(f, ": ")?,
        }
        if let Some(closest) = self.closest_told() {
            write!(f, "; {closest}")?;
        }
        if !self.hints.unlabelled.is_empty() {
            f.write_str("; no node has label ")?;
            joined(f, ", ", &self.hints.unlabelled, |f, label| f.write_str(label))?;
        }
        match self.fitting_if_empty.map(|most| most / slice) {
            Some(most) if most < asked && most == 0 => {
                f.write_str("; none would ever fit, even on empty nodes")?
            }
            Some(most) if most < asked => write!(f, "; even on empty nodes only {most} would ever fit")?,
            _ => {}
        }
        if self.unproven {
            f.write_str("; the search was cut short")?;
        }
        Ok(())
    }

    /// What keeps the first pod that does not fit away from how many nodes, in all.
    pub fn problems(&self) -> BTreeMap<&NodeProblem, u32> {
        let mut all = BTreeMap::new();
        for (problem, count) in self.excluded.iter().chain(&self.full.lacks) {
            let sum: &mut u32 = all.entry(problem).or_default();
            *sum = sum.saturating_add(*count);
        }
        all
    }

    /// Where it came closest, level by level: `the closest domain is r1; one domain of block takes 7 (b1)`.
    pub fn closest_told(&self) -> Option<String> {
        let closest = self.closest.iter().map(|domain| format!("the closest domain is {domain}"));
        let coarser = self
            .hints
            .coarser
            .iter()
            .rev()
            .map(|one| format!("one domain of {} takes {} ({})", one.level, one.fitting, one.domain));
        let told: Vec<String> = closest.chain(coarser).collect();
        (!told.is_empty()).then(|| told.join("; "))
    }

    fn excluded_as_kueue(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.excluded.is_empty() {
            return Ok(());
        }
        write!(f, ". Total nodes: {}; excluded: ", self.nodes)?;
        joined(f, ", ", &self.excluded, |f, (problem, count)| match problem {
            NodeProblem::NotReady => write!(f, "notReady: {count}"),
            NodeProblem::Unschedulable => write!(f, "unschedulable: {count}"),
            NodeProblem::Taint { key, value } => write!(f, "taint \"{key}={value}\": {count}"),
            NodeProblem::Selector => write!(f, "nodeSelector: {count}"),
            NodeProblem::Affinity => write!(f, "affinity: {count}"),
            NodeProblem::Topology | NodeProblem::OtherDomain => write!(f, "topologyDomain: {count}"),
            NodeProblem::NoLevel { label } => write!(f, "label \"{label}\": {count}"),
            NodeProblem::Insufficient { resource } => write!(f, "resource \"{resource}\": {count}"),
            NodeProblem::TooManyPods => write!(f, "resource \"pods\": {count}"),
            NodeProblem::Ports => write!(f, "hostPorts: {count}"),
            NodeProblem::Spread => write!(f, "topologySpread: {count}"),
            NodeProblem::SpreadLabel => write!(f, "topologySpreadLabel: {count}"),
            NodeProblem::PodAffinity => write!(f, "podAffinity: {count}"),
            NodeProblem::PodAntiAffinity => write!(f, "podAntiAffinity: {count}"),
            NodeProblem::ExistingAntiAffinity => write!(f, "existingPodAntiAffinity: {count}"),
            NodeProblem::VolumeAffinity => write!(f, "volumeNodeAffinity: {count}"),
            NodeProblem::VolumeZone => write!(f, "volumeZone: {count}"),
            NodeProblem::VolumeInUse => write!(f, "volumeInUse: {count}"),
            NodeProblem::VolumeLimit => write!(f, "volumeLimit: {count}"),
            NodeProblem::Claim { claim, problem } => {
                write!(f, "persistentvolumeclaim \"{claim}\" {problem}: {count}")
            }
            NodeProblem::Unserved(what) => write!(f, "{what}: {count}"),
        })
    }

    fn excluded_as_kube_scheduler(&self, f: &mut Formatter<'_>, before: &str) -> fmt::Result {
        let problems = self.problems();
        if problems.is_empty() {
            return Ok(());
        }
        let left = self.nodes.saturating_sub(self.out).saturating_sub(self.full.nodes);
        f.write_str(if self.full.nodes > 0 { "; for one more, " } else { before })?;
        write!(f, "{left}/{} nodes are available: ", self.nodes)?;
        joined(f, ", ", &problems, |f, (problem, count)| match problem {
            // The same on every node: kube-scheduler says it once, without a count.
            NodeProblem::Claim { .. } => write!(f, "{problem}"),
            problem => write!(f, "{count} {problem}"),
        })
    }
}

/// As kube-scheduler says it of nodes, behind their number.
impl Display for NodeProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReady => "node(s) were not ready",
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Taint { key, value } => {
                return write!(f, "node(s) had untolerated taint {{{key}: {value}}}");
            }
            Self::Selector | Self::Affinity => "node(s) didn't match Pod's node affinity/selector",
            Self::Topology => "node(s) were outside of the topology domain",
            Self::NoLevel { label } => return write!(f, "node(s) had no label {label}"),
            Self::OtherDomain => "node(s) were in other domains",
            Self::Insufficient { resource } => return write!(f, "Insufficient {resource}"),
            Self::TooManyPods => "Too many pods",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::PodAffinity => "node(s) didn't match pod affinity rules",
            Self::PodAntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Self::VolumeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::VolumeZone => "node(s) had no available volume zone",
            Self::VolumeInUse => {
                "node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode"
            }
            Self::VolumeLimit => "node(s) exceed max volume count",
            Self::Claim { claim, problem } => {
                return write!(f, "persistentvolumeclaim \"{claim}\" {problem}");
            }
            Self::Unserved(what) => return write!(f, "node(s) not judged: {what}"),
        })
    }
}

impl Display for ClaimProblem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "not found",
            Self::Unbound => "is not bound (Soroi does not choose volumes)",
            Self::Lost => "bound to non-existent persistentvolume",
            Self::Leaving => "is being deleted",
            Self::NoVolume => "is bound to a persistentvolume that was not found",
        })
    }
}

impl Display for Unserved {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let what = match self {
            Self::ResourceClaims => "resource claims",
            Self::OwnVolumes => "ephemeral volume claims",
        };
        write!(f, "Soroi does not place pods with {what} yet")
    }
}

impl Display for UndoReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::StartTimeout(lack) => write!(f, "only {lack} were created in time"),
            Self::RecoveryTimeout(lack) => write!(f, "only {lack} could be placed in time"),
            Self::NotReady => f.write_str("its pods were not ready in time"),
            Self::PlacesLost => f.write_str("its places were lost, and there are no others"),
            Self::NoPlaceAfterChecks => {
                f.write_str("its admission checks are ready, and there are no places for it")
            }
            Self::Off(off) => off.fmt(f),
            Self::LocalQueueStopped => f.write_str("The LocalQueue is stopped"),
            Self::ClusterQueueStopped => f.write_str("The ClusterQueue is stopped"),
            Self::Orphaned => f.write_str("it held quota, and there are no places for it"),
            Self::Interrupted => f.write_str("it was being taken back when Soroi was restarted"),
            Self::Preempted(_) => f.write_str("another gang needs what it holds"),
        }
    }
}

impl Display for Lack {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} pods", self.have, self.need)?;
        match &self.role {
            Some(role) => write!(f, " of role {role}"),
            None => Ok(()),
        }
    }
}

/// A taint as Go prints the struct; Kueue's message has it so.
fn go(taint: &Taint) -> String {
    let effect = match taint.effect {
        TaintEffect::NoSchedule => "NoSchedule",
        TaintEffect::PreferNoSchedule => "PreferNoSchedule",
        TaintEffect::NoExecute => "NoExecute",
    };
    format!("{{{} {} {effect} <nil>}}", taint.key, taint.value)
}

fn list(names: &[crate::event::Name]) -> String {
    names.iter().map(|name| &**name).collect::<Vec<_>>().join(",")
}

fn joined<T>(
    f: &mut Formatter<'_>,
    separator: &str,
    items: impl IntoIterator<Item = T>,
    write: impl Fn(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            f.write_str(separator)?;
        }
        write(f, item)?;
    }
    Ok(())
}
