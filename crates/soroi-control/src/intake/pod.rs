//! What is this pod, and whose?

use std::sync::Arc;

use k8s_openapi::api::core::v1::{Pod, PodSpec};
use soroi_api::labels::{kubernetes as kubernetes_keys, kueue as kueue_keys, volcano as volcano_keys};
use soroi_engine::event::{self, Millis, Name, PodPhase, Shape, TopologyRequest, Who};

use super::neighbours::neighbours;
use super::preferences::preferences;
use super::{Invalid, group_key, labels, millis, request, selector, some_name, topology, volume};

/// Which pods we may bind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedulers {
    /// The `schedulerName` that is ours.
    pub ours: String,
    /// `volcano` is served too, because no Volcano scheduler runs.
    pub volcano: bool,
}

impl Schedulers {
    /// Whether a pod that names this scheduler is ours to bind.
    pub fn serve(&self, name: &str) -> bool {
        name == self.ours || (self.volcano && name == "volcano")
    }
}

impl Default for Schedulers {
    fn default() -> Self {
        Self { ours: "soroi".into(), volcano: false }
    }
}

/// A pod as the engine sees it, and what else is worth remembering of it: well below a kilobyte.
#[derive(Clone, Debug, PartialEq)]
pub struct PodFacts {
    /// The engine's fact. Its `owner` follows the rule of [`crate::intake`].
    pub pod: event::Pod,
    /// The uid of the Job that controls it.
    pub job: Option<Name>,
    /// The uid of whatever controls it, a Job included: names the PodGroup that Volcano makes for
    /// pods without one.
    pub controller: Option<Name>,
    /// The PodGroup that its annotation names.
    pub group: Option<Name>,
    /// The LocalQueue that its label names.
    pub queue: Option<Name>,
    /// Where its annotations want it, relative to the pods that it starts with.
    pub topology: TopologyRequest,
    /// What it asks for and nobody here would honour, or could understand.
    pub invalid: Option<Invalid>,
    /// `spec.schedulerName`.
    pub scheduler: Name,
    /// `spec.priority`, 0 if none.
    pub priority: i32,
    /// When it was created.
    pub created_at: Millis,
    /// Its scheduling gates.
    pub gates: Vec<Name>,
    /// Its condition PodScheduled.
    pub scheduled: Option<ScheduledCondition>,
    /// It has conditions at all.
    pub has_conditions: bool,
    /// The Ready condition is True.
    pub ready: bool,
}

/// What a pod's condition PodScheduled says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduledCondition {
    /// Its place in the list of conditions.
    pub at: usize,
    /// It is False.
    pub is_false: bool,
    /// Its reason.
    pub reason: Name,
    /// Its message.
    pub message: Name,
}

impl PodFacts {
    /// It is ours to bind, may be bound now, and is not.
    pub fn waits_to_be_bound(&self) -> bool {
        let pod = &self.pod;
        pod.bindable && pod.node.is_none() && !pod.terminating && pod.phase == PodPhase::Pending
    }

    /// Why it is not scheduled, as it says itself: the kind of that reason.
    pub fn shown_reason(&self) -> Option<Name> {
        let shown = self.scheduled.as_ref()?;
        let says = shown.is_false && &*shown.reason == UNSCHEDULABLE;
        says.then(|| without_numbers(&shown.message).into())
    }

    /// The engine's fact of a pod that no gang claims: it is its own owner.
    #[must_use]
    pub fn alone(&self) -> event::Pod {
        event::Pod { owner: Some(self.pod.uid.clone()), ..self.pod.clone() }
    }
}

/// The reason of a condition PodScheduled that is False.
pub const UNSCHEDULABLE: &str = "Unschedulable";

/// A reason without its numbers: its kind.
pub fn without_numbers(message: &str) -> String {
    message.chars().filter(|c| !c.is_ascii_digit()).collect()
}

/// A pod, managed or not.
///
/// # Errors
/// [`Invalid`] on `metadata.uid`, `metadata.name`, `spec` or a quantity within.
pub fn pod(pod: &Pod, schedulers: &Schedulers) -> Result<PodFacts, Invalid> {
    let meta = &pod.metadata;
    let uid = some_name(meta.uid.as_ref()).ok_or_else(|| Invalid::new("metadata.uid", "is missing"))?;
    let name = some_name(meta.name.as_ref()).ok_or_else(|| Invalid::new("metadata.name", "is missing"))?;
    let namespace: Name = Arc::from(meta.namespace.as_deref().unwrap_or_default());
    let spec = pod.spec.as_ref().ok_or_else(|| Invalid::new("spec", "is missing"))?;
    // What it asks for counts wherever it is, also when nobody could say where that may be: then no
    // node is right for it.
    let charged = request::charged(pod)?;
    let who = Who { namespace: Arc::clone(&namespace), labels: labels(meta.labels.as_ref()) };
    let (shape, astray) = match shape(spec, charged.clone(), &who) {
        Ok(shape) => (shape, None),
        Err(invalid) => {
            let node_affinity = Some(Vec::new());
            (Shape { requests: charged, node_affinity, ..Shape::default() }, Some(invalid))
        }
    };
    let label = |key: &str| some_name(meta.labels.as_ref().and_then(|labels| labels.get(key)));
    let annotation = |key: &str| some_name(meta.annotations.as_ref().and_then(|all| all.get(key)));
    let controller = meta.owner_references.iter().flatten().find(|owner| owner.controller == Some(true));
    let job = controller
        .filter(|owner| owner.kind == "Job" && owner.api_version.starts_with("batch/"))
        .map(|owner| Arc::from(owner.uid.as_str()));
    let group = annotation(volcano_keys::GROUP_NAME).or_else(|| annotation(volcano_keys::GROUP_NAME_VOLCANO));
    let owner =
        job.clone().or_else(|| Some(group_key(&namespace, group.as_ref()?))).unwrap_or_else(|| uid.clone());
    let scheduler: Name = Arc::from(scheduler_name(spec));
    let gates: Vec<Name> =
        spec.scheduling_gates.iter().flatten().map(|gate| Arc::from(gate.name.as_str())).collect();
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    let text = |text: &Option<String>| -> Name { Arc::from(text.as_deref().unwrap_or_default()) };
    let (near, unheard) = match topology::of_annotations(meta.annotations.as_ref()) {
        Ok(topology) => (topology, None),
        Err(invalid) => (TopologyRequest::NONE, Some(invalid.within("metadata"))),
    };
    let scheduled = conditions.iter().enumerate().find(|(_, condition)| condition.type_ == "PodScheduled");
    Ok(PodFacts {
        pod: event::Pod {
            uid,
            namespace,
            name,
            node: some_name(spec.node_name.as_ref()),
            shape: Arc::new(shape),
            who: Arc::new(who),
            owner: Some(owner),
            pod_set: label(kueue_keys::PODSET),
            role: annotation(volcano_keys::TASK_SPEC),
            index: annotation(kubernetes_keys::JOB_COMPLETION_INDEX)
                .or_else(|| label(kubernetes_keys::JOB_COMPLETION_INDEX))
                .and_then(|index| index.parse().ok()),
            phase: phase(status.and_then(|status| status.phase.as_deref())),
            terminating: meta.deletion_timestamp.is_some(),
            bindable: schedulers.serve(&scheduler) && gates.is_empty(),
        },
        job,
        controller: controller.map(|owner| Arc::from(owner.uid.as_str())),
        group,
        queue: label(kueue_keys::QUEUE_NAME),
        topology: near,
        invalid: astray.or(unheard),
        scheduler,
        priority: spec.priority.unwrap_or(0),
        created_at: millis(meta.creation_timestamp.as_ref()),
        gates,
        scheduled: scheduled.map(|(at, condition)| ScheduledCondition {
            at,
            is_false: condition.status == "False",
            reason: text(&condition.reason),
            message: text(&condition.message),
        }),
        has_conditions: !conditions.is_empty(),
        ready: conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True"),
    })
}

/// What placement must know of a pod with this specification.
pub(super) fn shape(
    spec: &PodSpec,
    requests: std::collections::BTreeMap<Name, event::Amount>,
    who: &Who,
) -> Result<Shape, Invalid> {
    selector::node_selector(spec.node_selector.as_ref()).map_err(|e| e.within("spec"))?;
    let (claims, own_volumes) = volume::claims(spec, &who.namespace);
    let devices = spec.resource_claims.as_ref().is_some_and(|claims| !claims.is_empty());
    Ok(Shape {
        requests,
        node_selector: labels(spec.node_selector.as_ref()),
        node_affinity: selector::node_affinity(spec.affinity.as_ref()).map_err(|e| e.within("spec"))?,
        tolerations: selector::tolerations(spec.tolerations.as_ref()).map_err(|e| e.within("spec"))?,
        neighbours: neighbours(spec, who).map_err(|e| e.within("spec"))?,
        prefers: preferences(spec, who).map_err(|e| e.within("spec"))?,
        claims,
        unserved: devices.then_some(event::Unserved::ResourceClaims).or(own_volumes),
    })
}

/// The scheduler that a pod names; the API server fills in the default one.
pub(super) fn scheduler_name(spec: &PodSpec) -> &str {
    spec.scheduler_name.as_deref().filter(|name| !name.is_empty()).unwrap_or("default-scheduler")
}

fn phase(phase: Option<&str>) -> PodPhase {
    match phase {
        None | Some("" | "Pending") => PodPhase::Pending,
        Some("Succeeded") => PodPhase::Succeeded,
        Some("Failed") => PodPhase::Failed,
        // Unknown: its node does not answer, and what runs there may still run.
        Some(_) => PodPhase::Running,
    }
}
