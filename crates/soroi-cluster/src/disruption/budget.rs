//! What does a budget allow now? Counts of pods, and the status that says them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::policy::v1::{PodDisruptionBudgetSpec, PodDisruptionBudgetStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector, Time};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::Deserialize;
use serde_json::json;

use crate::cache::{Key, Seen};
use crate::due::after;
use crate::events::Level;
use crate::seen::{Meta, Pod};
use crate::write::Request;

/// How long an evicted pod is believed to be about to be deleted (`DeletionTimeout`).
const DELETION_MAX: Duration = Duration::from_secs(120);
const ALLOWED: &str = "DisruptionAllowed";

/// One PodDisruptionBudget.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(super) struct Budget {
    pub(super) meta: Meta,
    spec: PodDisruptionBudgetSpec,
    status: PodDisruptionBudgetStatus,
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
    #[serde(default)]
    spec: PodDisruptionBudgetSpec,
    #[serde(default)]
    status: Option<PodDisruptionBudgetStatus>,
}

impl From<Wire> for Budget {
    fn from(wire: Wire) -> Self {
        let mut status = wire.status.unwrap_or_default();
        // Nobody is nobody, however it is written.
        status.disrupted_pods = status.disrupted_pods.filter(|pods| !pods.is_empty());
        Self { meta: wire.metadata, spec: wire.spec, status }
    }
}

impl Seen for Budget {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

/// What was found out about a budget.
pub(super) struct Counted<'a> {
    pub(super) status: PodDisruptionBudgetStatus,
    /// What is told of it: level, reason, message.
    pub(super) said: Vec<(Level, &'static str, String)>,
    /// Pods that were evicted and yet are there.
    pub(super) not_deleted: Vec<&'a Pod>,
    pub(super) look_again: Option<Timestamp>,
}

impl Budget {
    /// Whether the pod is one of its own. An empty selector means every pod of the namespace, none
    /// means no pod.
    pub(super) fn covers(&self, pod: &Pod) -> bool {
        let selector = self.spec.selector.as_ref();
        pod.meta.key.namespace == self.meta.key.namespace
            && selector.is_some_and(|selector| selects(selector, &pod.meta.labels))
    }

    /// Its status as it should be, given the pods that it covers.
    pub(super) fn count<'a>(&self, pods: &[&'a Arc<Pod>], now: Timestamp) -> Counted<'a> {
        let mut said = Vec::new();
        if pods.is_empty() {
            said.push((Level::Normal, "NoPods", "No matching pods found".to_owned()));
        }
        let (expected, desired, unmanaged) = match self.expected(pods) {
            Ok(expected) => expected,
            Err(why) => {
                let text = format!("Failed to calculate the number of expected pods: {why}");
                said.push((Level::Warning, "CalculateExpectedPodCountFailed", text));
                let mut status = self.status.clone();
                status.disruptions_allowed = Some(0);
                for count in
                    [&mut status.current_healthy, &mut status.desired_healthy, &mut status.expected_pods]
                {
                    count.get_or_insert(0);
                }
                self.condition(&mut status, "SyncFailed", &why, now);
                return Counted { status, said, not_deleted: Vec::new(), look_again: None };
            }
        };
        if unmanaged {
            said.push((Level::Warning, "UnmanagedPods", self.unmanaged()));
        }
        let (disrupted, not_deleted) = self.disrupted(pods, now);
        let going =
            |pod: &&&Arc<Pod>| pod.meta.deleting.is_some() || disrupted.contains_key(&pod.meta.key.name);
        let healthy = pods.iter().filter(|pod| !going(pod) && pod.ready()).count();
        let healthy = i32::try_from(healthy).unwrap_or(i32::MAX);
        let spare = healthy.saturating_sub(desired).max(0);
        let allowed = if expected > 0 { spare } else { 0 };
        // Just behind the last moment at which it may still be deleted.
        let wait = DELETION_MAX + Duration::from_millis(1);
        let look_again = disrupted.values().map(|time| after(time.0, wait)).min();
        let mut status = PodDisruptionBudgetStatus {
            current_healthy: Some(healthy),
            desired_healthy: Some(desired),
            expected_pods: Some(expected),
            disruptions_allowed: Some(allowed),
            disrupted_pods: Some(disrupted).filter(|disrupted| !disrupted.is_empty()),
            observed_generation: Some(self.meta.generation),
            conditions: self.status.conditions.clone(),
        };
        let reason = if allowed > 0 { "SufficientPods" } else { "InsufficientPods" };
        self.condition(&mut status, reason, "", now);
        Counted { status, said, not_deleted, look_again }
    }

    /// How many pods there should be, how many of them must be well, and whether some have no
    /// controller that could say the former.
    fn expected(&self, pods: &[&Arc<Pod>]) -> Result<(i32, i32, bool), String> {
        let all = i32::try_from(pods.len()).unwrap_or(i32::MAX);
        match (&self.spec.max_unavailable, &self.spec.min_available) {
            (Some(most), _) => {
                let unmanaged = scales(pods)?;
                Ok((0, 0_i32.saturating_sub(part(most, 0)?).max(0), unmanaged))
            }
            (None, Some(IntOrString::Int(least))) => Ok((all, *least, false)),
            (None, Some(least)) => {
                let unmanaged = scales(pods)?;
                Ok((0, part(least, 0)?, unmanaged))
            }
            (None, None) => Ok((0, 0, false)),
        }
    }

    /// Pods whose eviction was granted and that are still there: those that may yet be deleted, and
    /// those that should have been.
    fn disrupted<'a>(&self, pods: &[&'a Arc<Pod>], now: Timestamp) -> (BTreeMap<String, Time>, Vec<&'a Pod>) {
        let (mut going, mut not_deleted) = (BTreeMap::new(), Vec::new());
        let Some(granted) = &self.status.disrupted_pods else { return (going, not_deleted) };
        for pod in pods.iter().filter(|pod| pod.meta.deleting.is_none()) {
            let name = &pod.meta.key.name;
            match granted.get(name) {
                Some(time) if after(time.0, DELETION_MAX) < now => not_deleted.push(&***pod),
                Some(time) => {
                    going.insert(name.clone(), time.clone());
                }
                None => {}
            }
        }
        (going, not_deleted)
    }

    fn unmanaged(&self) -> String {
        let selector = self.spec.selector.as_ref().map(go).unwrap_or_default();
        format!(
            "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a \
             result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. \
             To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
        )
    }

    fn condition(&self, status: &mut PodDisruptionBudgetStatus, reason: &str, message: &str, now: Timestamp) {
        let conditions = status.conditions.get_or_insert_default();
        let truth = if reason == "SufficientPods" { "True" } else { "False" };
        let old = conditions.iter().find(|one| one.type_ == ALLOWED && one.status == truth);
        let since = old.map_or(Time(now), |old| old.last_transition_time.clone());
        let new = Condition {
            type_: ALLOWED.into(),
            status: truth.into(),
            reason: reason.into(),
            message: message.into(),
            last_transition_time: since,
            observed_generation: status.observed_generation,
        };
        match conditions.iter_mut().find(|one| one.type_ == ALLOWED) {
            Some(old) => *old = new,
            None => conditions.push(new),
        }
    }

    /// The request that writes the status, if it says anything new.
    pub(super) fn written(&self, status: &PodDisruptionBudgetStatus) -> Option<Request> {
        if *status == self.status {
            return None;
        }
        let mut new = json!(status);
        // A merge patch keeps what it does not name.
        let gone = self.status.disrupted_pods.iter().flatten();
        let gone =
            gone.filter(|(pod, _)| status.disrupted_pods.as_ref().is_none_or(|now| !now.contains_key(*pod)));
        for (pod, _) in gone {
            new["disruptedPods"][pod] = json!(null);
        }
        let Key { namespace, name } = &self.meta.key;
        let path = format!("/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets/{name}/status");
        Some(Request::merge(path, json!({ "metadata": self.meta.precondition(), "status": new })))
    }
}

/// The controllers' scales in all; every one that could be asked here has none. Whether there are
/// pods without a controller.
fn scales(pods: &[&Arc<Pod>]) -> Result<bool, String> {
    for pod in pods {
        let Some(owner) = pod.meta.controller() else { continue };
        let (group, _) = owner.api_version.split_once('/').unwrap_or(("", ""));
        if group == "apps" || owner.kind == "ReplicationController" {
            return Err(format!("found no controllers for pod \"{}\"", pod.meta.key.name));
        }
        let plural = format!("{}s", owner.kind.to_lowercase());
        let resource = if group.is_empty() { plural } else { format!("{plural}.{group}") };
        return Err(format!("{resource} does not implement the scale subresource"));
    }
    Ok(!pods.is_empty())
}

/// An amount of pods, or a percentage of `total`, rounded up.
fn part(amount: &IntOrString, total: i32) -> Result<i32, String> {
    match amount {
        IntOrString::Int(count) => Ok(*count),
        IntOrString::String(text) => {
            let percent = text.strip_suffix('%').and_then(|number| number.parse::<i64>().ok());
            let percent = percent.ok_or_else(|| format!("invalid value for IntOrString: {text}"))?;
            let scaled = percent.saturating_mul(i64::from(total)).saturating_add(99) / 100;
            Ok(i32::try_from(scaled).unwrap_or(i32::MAX))
        }
    }
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let equal = selector.match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    let holds = |one: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelectorRequirement| {
        let there = labels.get(&one.key);
        let among = || there.is_some_and(|value| one.values.iter().flatten().any(|other| other == value));
        match one.operator.as_str() {
            "In" => among(),
            "NotIn" => !among(),
            "Exists" => there.is_some(),
            "DoesNotExist" => there.is_none(),
            _ => false,
        }
    };
    equal && selector.match_expressions.iter().flatten().all(holds)
}

/// A selector as Go prints it.
fn go(selector: &LabelSelector) -> String {
    let labels = selector.match_labels.iter().flatten();
    let labels: String = labels.map(|(key, value)| format!("{key}: {value},")).collect();
    let rules = selector.match_expressions.iter().flatten().map(|one| {
        let values = one.values.iter().flatten().cloned().collect::<Vec<_>>().join(" ");
        format!("LabelSelectorRequirement{{Key:{},Operator:{},Values:[{values}],}},", one.key, one.operator)
    });
    let rules: String = rules.collect();
    format!(
        "&LabelSelector{{MatchLabels:map[string]string{{{labels}}},MatchExpressions:[]LabelSelectorRequirement{{{rules}}},}}"
    )
}
