//! The status of a PodGroup in Volcano's phases and byte formats (1.15), with two differences. Of its conditions
//! Unschedulable and Scheduled only the one that holds is True. And where
//! Volcano speaks of whichever pod its hash map gives first, the first one by name is meant here, so
//! that a message changes only when something did.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use sha1::{Digest, Sha1};
use soroi_api::conditions::pod_group::{SCHEDULED, UNSCHEDULABLE, reason as word};
use soroi_api::volcano::{PodGroupCondition, PodGroupPhase, PodGroupStatus};
use soroi_engine::event::{Name, PodPhase};
use soroi_engine::reason::{NodeProblem, PlaceProblem};

use crate::intake::PodFacts;

/// Where a member stands, in Volcano's words for tasks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TaskStatus {
    /// It waits for a place.
    Pending,
    /// It has a place and is being bound.
    Binding,
    /// It is bound and does not run yet.
    Bound,
    /// It runs.
    Running,
    /// It is being deleted.
    Releasing,
    /// It ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}

impl TaskStatus {
    fn word(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Binding => "Binding",
            Self::Bound => "Bound",
            Self::Running => "Running",
            Self::Releasing => "Releasing",
            Self::Succeeded => "Succeeded",
            Self::Failed => "Failed",
        }
    }

    /// It has a node, now or until it ended.
    fn is_scheduled(self) -> bool {
        matches!(self, Self::Bound | Self::Running | Self::Succeeded | Self::Failed)
    }
}

/// A member of the group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub name: Name,
    /// Where it stands.
    pub status: TaskStatus,
    /// It is being deleted, having had a node: it still counts as scheduled.
    pub had_node: bool,
    /// Its role.
    pub role: Option<Name>,
}

impl Member {
    /// It has a node, is about to get one, or has done its part (Volcano's `ScheduledStatus`).
    pub fn is_scheduled(&self) -> bool {
        self.status.is_scheduled() || self.had_node
    }

    /// A member that ended well, and whose pod is gone since.
    pub fn gone(role: Option<Name>) -> Self {
        Self { name: Name::from(""), role, status: TaskStatus::Succeeded, had_node: false }
    }

    /// A member as its pod shows it. `placed`: a place was decided for it, and its bind is under way.
    pub fn of(pod: &PodFacts, placed: bool) -> Self {
        let bound = pod.pod.node.is_some();
        let status = match pod.pod.phase {
            PodPhase::Succeeded => TaskStatus::Succeeded,
            PodPhase::Failed => TaskStatus::Failed,
            _ if pod.pod.terminating => TaskStatus::Releasing,
            PodPhase::Running => TaskStatus::Running,
            PodPhase::Pending if bound => TaskStatus::Bound,
            PodPhase::Pending if placed => TaskStatus::Binding,
            PodPhase::Pending => TaskStatus::Pending,
        };
        Self {
            name: pod.pod.name.clone(),
            status,
            had_node: bound && status == TaskStatus::Releasing,
            role: pod.pod.role.clone(),
        }
    }
}

/// What is to be said of a group now.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict<'a> {
    /// It has its places (or needs none any more).
    Ready,
    /// It is admitted, and its members are gathered or bound: nothing new to be said.
    Underway,
    /// Fewer pods exist than its minimum.
    TooFewPods,
    /// A role has fewer pods than its minimum.
    TooFewPodsOfRole,
    /// The places do not suffice for members of this role: `fitting` of those that wait would find
    /// one.
    NoPlace(Option<Name>, &'a PlaceProblem),
    /// Something about the group as a whole, such as its queue; in words.
    Other(&'a str),
}

/// A PodGroup's new status, and the text of the event that goes with it (`Unschedulable`), if it
/// cannot start.
///
/// `admitted` says that its gang holds what it needs: under Unified with its places, under
/// AfterAdmission with its quota. Then it is Inqueue, else Pending, until its minimum of members is
/// scheduled; `members` are all its pods.
pub fn status(
    uid: &str,
    min_member: u32,
    members: &[Member],
    admitted: bool,
    verdict: &Verdict<'_>,
    before: Option<&PodGroupStatus>,
    now: Timestamp,
) -> (PodGroupStatus, Option<String>) {
    let count = |of: TaskStatus| members.iter().filter(|member| member.status == of).count();
    let some = |count: usize| (count > 0).then(|| i32::try_from(count).unwrap_or(i32::MAX));
    let unschedulable = unschedulable(min_member, members, verdict);
    let mut status = before.cloned().unwrap_or_default();
    status.phase = Some(phase(min_member, members, admitted, unschedulable.is_some()));
    status.running = some(count(TaskStatus::Running));
    status.succeeded = some(count(TaskStatus::Succeeded));
    status.failed = some(count(TaskStatus::Failed));
    if let Some(told) = &unschedulable {
        set(&mut status.conditions, UNSCHEDULABLE, told.reason, &told.condition, uid, now);
        unset(&mut status.conditions, SCHEDULED, told.reason, uid, now);
    } else if *verdict == Verdict::Ready {
        set(&mut status.conditions, SCHEDULED, word::READY, "", uid, now);
        unset(&mut status.conditions, UNSCHEDULABLE, word::READY, uid, now);
    }
    (status, unschedulable.map(|told| told.event))
}

/// Volcano's rules (`framework/session.go`), with the admission in place of its enqueue action.
fn phase(min_member: u32, members: &[Member], admitted: bool, unschedulable: bool) -> PodGroupPhase {
    let min_member = usize::try_from(min_member).unwrap_or(usize::MAX);
    let running = members.iter().any(|member| member.status == TaskStatus::Running);
    let scheduled = members.iter().filter(|member| member.is_scheduled()).count();
    let ended = |member: &&Member| matches!(member.status, TaskStatus::Succeeded | TaskStatus::Failed);
    let completed = members.iter().filter(ended).count();
    if running && unschedulable {
        PodGroupPhase::Unknown
    } else if scheduled > 0 && scheduled >= min_member {
        if scheduled == completed { PodGroupPhase::Completed } else { PodGroupPhase::Running }
    } else if admitted {
        PodGroupPhase::Inqueue
    } else {
        PodGroupPhase::Pending
    }
}

struct Unschedulable {
    reason: &'static str,
    condition: String,
    event: String,
}

fn unschedulable(min_member: u32, members: &[Member], verdict: &Verdict<'_>) -> Option<Unschedulable> {
    let pending = members.iter().filter(|member| member.status == TaskStatus::Pending).count();
    let invalid = |reason, text: String| Unschedulable { reason, condition: text.clone(), event: text };
    let told = match verdict {
        Verdict::Ready | Verdict::Underway => return None,
        Verdict::TooFewPods => invalid(
            word::NOT_ENOUGH_TASKS,
            format!(
                "Not enough valid tasks for gang-scheduling, valid: {}, min: {min_member}",
                members.iter().filter(|member| member.status != TaskStatus::Releasing).count()
            ),
        ),
        Verdict::TooFewPodsOfRole => invalid(
            word::NOT_ENOUGH_PODS_OF_TASK,
            "Not enough valid pods of each task for gang-scheduling".into(),
        ),
        Verdict::NoPlace(..) | Verdict::Other(_) => {
            let fitting = match verdict {
                Verdict::NoPlace(_, problem) => {
                    usize::try_from(problem.fitting).unwrap_or(usize::MAX).min(pending)
                }
                _ => 0,
            };
            let ready = members.iter().filter(|member| member.status.is_scheduled()).count();
            let missing = i64::from(min_member)
                .saturating_sub(i64::try_from(fitting.saturating_add(ready)).unwrap_or(i64::MAX));
            let why = fit_error(min_member, members, fitting, verdict);
            let all = members.len();
            Unschedulable {
                reason: word::NOT_ENOUGH_RESOURCES,
                condition: format!("{missing}/{all} tasks in gang unschedulable: {why}"),
                event: format!("{pending}/{all} tasks in gang unschedulable: {why}"),
            }
        }
    };
    Some(told)
}

/// Volcano's account of a gang (`api.JobInfo.FitError`): how many tasks are in which status, what
/// became of the pending ones, and the reason of the first that fits nowhere. Counts are sorted as
/// texts.
pub fn fit_error(min_member: u32, members: &[Member], fitting: usize, verdict: &Verdict<'_>) -> String {
    let mut statuses: BTreeMap<&str, usize> =
        BTreeMap::from([("minAvailable", usize::try_from(min_member).unwrap_or(usize::MAX))]);
    for member in members {
        *statuses.entry(member.status.word()).or_default() += 1;
    }
    let mut pending: Vec<&Member> = members.iter().filter(|one| one.status == TaskStatus::Pending).collect();
    pending.sort_by_key(|member| &member.name);
    let mut text = format!("pod group is not ready, {}", histogram(statuses));
    if !pending.is_empty() {
        let mut reasons = BTreeMap::new();
        for (reason, count) in [("Schedulable", fitting), ("Unschedulable", pending.len() - fitting)] {
            if count > 0 {
                reasons.insert(reason, count);
            }
        }
        text.push_str(&format!("; Pending: {}", histogram(reasons)));
    }
    match verdict {
        Verdict::Other(why) => text.push_str(&format!(". Origin reason is: {why}")),
        Verdict::NoPlace(role, problem) => {
            let of_role = pending.iter().filter(|member| member.role == *role);
            if let Some(origin) = of_role.clone().nth(fitting).or_else(|| pending.get(fitting)) {
                text.push_str(&format!(". Origin reason is {}: {}", origin.name, nodes_error(problem)));
                if let Some(closest) = problem.closest_told() {
                    text.push_str(&format!(" Of domains, {closest}."));
                }
            }
        }
        _ => {}
    }
    text
}

fn histogram(counts: BTreeMap<&str, usize>) -> String {
    let mut texts: Vec<String> = counts.into_iter().map(|(what, count)| format!("{count} {what}")).collect();
    texts.sort();
    texts.join(", ")
}

/// Why a pod fits nowhere, in Volcano's words: `0/3 nodes are unavailable: 3 Insufficient cpu.`
pub fn nodes_error(problem: &PlaceProblem) -> String {
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    for (why, nodes) in problem.problems() {
        let count = counts.entry(node_problem(why)).or_default();
        *count = count.saturating_add(nodes);
    }
    let nodes = problem.out.saturating_add(problem.full.nodes);
    let mut texts: Vec<String> = counts.into_iter().map(|(why, count)| format!("{count} {why}")).collect();
    texts.sort();
    if texts.is_empty() {
        return format!("0/{} nodes are unavailable.", problem.nodes);
    }
    format!("0/{nodes} nodes are unavailable: {}.", texts.join(", "))
}

/// Mostly as kube-scheduler.
fn node_problem(problem: &NodeProblem) -> String {
    match problem {
        NodeProblem::Topology => "node(s) were outside the topology".into(),
        NodeProblem::TooManyPods => "node(s) pod number exceeded".into(),
        other => other.to_string(),
    }
}

/// Sets a condition. What says the same as before is left as it is; every other one is new, with
/// the time and an id of its own. (Volcano's ids are those of its sessions.)
fn set(
    conditions: &mut Vec<PodGroupCondition>,
    kind: &str,
    reason: &str,
    message: &str,
    uid: &str,
    now: Timestamp,
) {
    let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
    let same = |one: &&mut PodGroupCondition| one.type_.as_deref() == Some(kind);
    let there = conditions.iter_mut().find(same);
    if there.as_ref().is_some_and(|there| {
        there.status.as_deref() == Some("True")
            && there.reason.as_deref() == Some(reason)
            && there.message.as_deref().unwrap_or_default() == message
    }) {
        return;
    }
    let new = PodGroupCondition {
        type_: text(kind),
        status: text("True"),
        transition_id: Some(transition_id(&[uid, kind, reason, message, &now.to_string()])),
        last_transition_time: Some(Time(now)),
        reason: text(reason),
        message: text(message),
    };
    match there {
        Some(there) => *there = new,
        None => conditions.push(new),
    }
}

/// What a condition says does not hold any more. (Volcano leaves both standing, so that a group that runs is shown as
/// Unschedulable for ever; what waits for either is not misled by this.)
fn unset(conditions: &mut [PodGroupCondition], kind: &str, reason: &str, uid: &str, now: Timestamp) {
    let there = conditions.iter_mut().find(|one| one.type_.as_deref() == Some(kind));
    let Some(there) = there.filter(|there| there.status.as_deref() == Some("True")) else { return };
    *there = PodGroupCondition {
        type_: there.type_.take(),
        status: Some("False".into()),
        transition_id: Some(transition_id(&[uid, kind, reason, "", &now.to_string()])),
        last_transition_time: Some(Time(now)),
        reason: Some(reason.into()),
        message: None,
    };
}

/// An id in the form of a uuid that follows from what is said and when.
fn transition_id(parts: &[&str]) -> String {
    let hash = Sha1::digest(parts.join("\n").as_bytes());
    let hex: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

#[cfg(test)]
mod tests;
