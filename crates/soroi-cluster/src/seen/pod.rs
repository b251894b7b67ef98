//! A pod, as kubelets, schedulers and controllers see it.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Affinity, NodeAffinity, PodCondition, Toleration};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde::Deserialize;

use super::Meta;
use crate::cache::{Key, Seen};
use crate::need::{self, Amounts, Asked, Part};

/// One pod.
#[derive(Clone, Debug, Deserialize)]
#[serde(from = "Wire")]
pub(crate) struct Pod {
    pub(crate) meta: Meta,
    /// Where it is bound; none until then.
    pub(crate) node: Option<String>,
    pub(crate) scheduler: String,
    pub(crate) priority: i32,
    /// It has scheduling gates: nobody may place it yet.
    pub(crate) gated: bool,
    pub(crate) restart: Restart,
    pub(crate) selector: BTreeMap<String, String>,
    pub(crate) affinity: Option<NodeAffinity>,
    pub(crate) tolerations: Vec<Toleration>,
    /// What it occupies on a node.
    pub(crate) need: Amounts,
    /// Protocol, address and number of the ports that it takes on its node.
    pub(crate) host_ports: Vec<(String, String, i32)>,
    pub(crate) containers: Vec<Container>,
    pub(crate) phase: Phase,
    pub(crate) started: Option<Timestamp>,
    pub(crate) conditions: Vec<PodCondition>,
    pub(crate) statuses: Vec<Status>,
    pub(crate) init_statuses: Vec<Status>,
}

/// `spec.restartPolicy`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Restart {
    #[default]
    Always,
    OnFailure,
    Never,
}

/// `status.phase`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(crate) enum Phase {
    #[default]
    Pending,
    Unknown,
    Running,
    Succeeded,
    Failed,
}

/// What a container is called and made of.
#[derive(Clone, Debug, Default)]
pub(crate) struct Container {
    pub(crate) name: String,
    pub(crate) image: String,
}

/// What has become of one container.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) name: String,
    pub(crate) restarts: i32,
    pub(crate) state: State,
}

/// What a container does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Waiting,
    Running { since: Option<Timestamp> },
    Ended { exit: i32, at: Option<Timestamp> },
}

impl Seen for Pod {
    fn meta(&self) -> &Meta {
        &self.meta
    }
}

impl Pod {
    /// It succeeded or failed: it occupies nothing any more and never changes again.
    pub(crate) fn ended(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Neither ended nor on its way out.
    pub(crate) fn active(&self) -> bool {
        !self.ended() && self.meta.deleting.is_none()
    }

    pub(crate) fn condition(&self, kind: &str) -> Option<&PodCondition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }

    pub(crate) fn ready(&self) -> bool {
        self.condition("Ready").is_some_and(|ready| ready.status == "True")
    }

    /// Its conditions with one changed or added; the time moves only when the status does.
    pub(crate) fn conditions_with(&self, new: PodCondition) -> Vec<PodCondition> {
        with_condition(&self.conditions, new)
    }

    /// Where it lives in the API.
    pub(crate) fn path(&self) -> String {
        let Key { namespace, name } = &self.meta.key;
        format!("/api/v1/namespaces/{namespace}/pods/{name}")
    }
}

/// `conditions` with one changed or added; the transition time moves only when the status does.
pub(crate) fn with_condition(conditions: &[PodCondition], mut new: PodCondition) -> Vec<PodCondition> {
    let mut all = conditions.to_vec();
    match all.iter_mut().find(|condition| condition.type_ == new.type_) {
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone().or(new.last_transition_time);
            }
            *old = new;
        }
        None => all.push(new),
    }
    all
}

#[derive(Deserialize)]
struct Wire {
    metadata: Meta,
    #[serde(default)]
    spec: SpecWire,
    #[serde(default)]
    status: StatusWire,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct SpecWire {
    node_name: Option<String>,
    scheduler_name: Option<String>,
    priority: Option<i32>,
    scheduling_gates: Option<Vec<serde::de::IgnoredAny>>,
    restart_policy: Option<Restart>,
    node_selector: Option<BTreeMap<String, String>>,
    affinity: Option<Affinity>,
    tolerations: Option<Vec<Toleration>>,
    containers: Option<Vec<ContainerWire>>,
    init_containers: Option<Vec<ContainerWire>>,
    resources: Option<Asked>,
    overhead: Option<BTreeMap<String, Quantity>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerWire {
    name: String,
    image: Option<String>,
    restart_policy: Option<String>,
    resources: Option<Asked>,
    ports: Option<Vec<PortWire>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PortWire {
    #[serde(rename = "hostPort")]
    host_port: Option<i32>,
    #[serde(rename = "hostIP")]
    host_ip: Option<String>,
    protocol: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct StatusWire {
    phase: Option<Phase>,
    start_time: Option<Time>,
    conditions: Option<Vec<PodCondition>>,
    container_statuses: Option<Vec<ContainerStatusWire>>,
    init_container_statuses: Option<Vec<ContainerStatusWire>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatusWire {
    name: String,
    restart_count: Option<i32>,
    state: Option<StateWire>,
    resources: Option<Asked>,
    allocated_resources: Option<BTreeMap<String, Quantity>>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct StateWire {
    running: Option<RunningWire>,
    terminated: Option<TerminatedWire>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct RunningWire {
    started_at: Option<Time>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct TerminatedWire {
    exit_code: i32,
    finished_at: Option<Time>,
}

impl From<Wire> for Pod {
    fn from(Wire { metadata, spec, status }: Wire) -> Self {
        let containers = spec.containers.unwrap_or_default();
        let inits = spec.init_containers.unwrap_or_default();
        let conditions = status.conditions.unwrap_or_default();
        let statuses = status.container_statuses.unwrap_or_default();
        let init_statuses = status.init_container_statuses.unwrap_or_default();
        let infeasible = conditions.iter().any(|condition| {
            condition.type_ == "PodResizePending" && condition.reason.as_deref() == Some("Infeasible")
        });
        let parts = |containers: &[ContainerWire], statuses: &[ContainerStatusWire]| -> Vec<Part> {
            let part = |container| part(container, statuses, infeasible);
            containers.iter().map(part).collect()
        };
        let whole = spec.resources.map(|asked| asked.amounts()).unwrap_or_default();
        let overhead = spec.overhead.as_ref().map(need::amounts).unwrap_or_default();
        let need =
            need::pod(&parts(&containers, &statuses), &parts(&inits, &init_statuses), &whole, &overhead);
        let name = |container: ContainerWire| Container {
            name: container.name,
            image: container.image.unwrap_or_default(),
        };
        let host_ports = containers.iter().chain(&inits).flat_map(host_ports).collect();
        Self {
            meta: metadata,
            node: spec.node_name.filter(|node| !node.is_empty()),
            scheduler: spec.scheduler_name.unwrap_or_default(),
            priority: spec.priority.unwrap_or(0),
            gated: spec.scheduling_gates.is_some_and(|gates| !gates.is_empty()),
            restart: spec.restart_policy.unwrap_or_default(),
            selector: spec.node_selector.unwrap_or_default(),
            affinity: spec.affinity.and_then(|affinity| affinity.node_affinity),
            tolerations: spec.tolerations.unwrap_or_default(),
            need,
            host_ports,
            containers: containers.into_iter().map(name).collect(),
            phase: status.phase.unwrap_or_default(),
            started: status.start_time.map(|time| time.0),
            conditions,
            statuses: statuses.into_iter().map(Status::from).collect(),
            init_statuses: init_statuses.into_iter().map(Status::from).collect(),
        }
    }
}

/// What a container needs: while a resize is under way the larger of what it asks for and what it
/// has, unless the kubelet has said that it will never get it.
fn part(container: &ContainerWire, statuses: &[ContainerStatusWire], infeasible: bool) -> Part {
    let sidecar = container.restart_policy.as_deref() == Some("Always");
    let wanted = container.resources.as_ref().map(Asked::amounts).unwrap_or_default();
    let status = statuses.iter().find(|status| status.name == container.name);
    let Some(actual) = status.and_then(|status| status.resources.as_ref()) else {
        return Part { asked: wanted, sidecar };
    };
    let mut asked = actual.amounts();
    if let Some(allocated) = status.and_then(|status| status.allocated_resources.as_ref()) {
        need::raise(&mut asked, &need::amounts(allocated));
    }
    if !infeasible {
        need::raise(&mut asked, &wanted);
    }
    Part { asked, sidecar }
}

fn host_ports(container: &ContainerWire) -> impl Iterator<Item = (String, String, i32)> + '_ {
    let taken = container.ports.iter().flatten().filter_map(|port| {
        let number = port.host_port.filter(|number| *number > 0)?;
        let protocol = port.protocol.clone().unwrap_or_else(|| "TCP".into());
        Some((protocol, port.host_ip.clone().unwrap_or_default(), number))
    });
    taken.collect::<Vec<_>>().into_iter()
}

impl From<ContainerStatusWire> for Status {
    fn from(wire: ContainerStatusWire) -> Self {
        let state = match wire.state.unwrap_or_default() {
            StateWire { terminated: Some(end), .. } => {
                State::Ended { exit: end.exit_code, at: end.finished_at.map(|time| time.0) }
            }
            StateWire { running: Some(run), .. } => {
                State::Running { since: run.started_at.map(|time| time.0) }
            }
            StateWire { .. } => State::Waiting,
        };
        Self { name: wire.name, restarts: wire.restart_count.unwrap_or(0), state }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_being_resized_needs_the_larger_size() {
        let pod = |reason: &str| -> Pod {
            serde_json::from_value(serde_json::json!({
                "metadata": { "name": "p", "namespace": "d" },
                "spec": { "containers": [{ "name": "c", "resources": { "requests": { "cpu": "1", "memory": "4" } } }] },
                "status": {
                    "conditions": [{ "type": "PodResizePending", "status": "True", "reason": reason }],
                    "containerStatuses": [{
                        "name": "c",
                        "resources": { "requests": { "cpu": "2", "memory": "2" } },
                        "allocatedResources": { "memory": "3" }
                    }]
                }
            }))
            .unwrap()
        };
        let need =
            |cpu, memory| Amounts::from([("cpu".into(), cpu), ("memory".into(), memory), ("pods".into(), 1)]);
        assert_eq!(pod("Deferred").need, need(2000, 4));
        assert_eq!(pod("Infeasible").need, need(2000, 3));
    }

    #[test]
    fn an_empty_pod_is_pending_and_nulls_are_nothing() {
        let pod: Pod = serde_json::from_str(
            r#"{"metadata":{"name":"p","labels":null},"spec":{"containers":null,"nodeName":""},"status":{"phase":null}}"#,
        )
        .unwrap();
        assert_eq!((pod.phase, pod.node.clone(), pod.active()), (Phase::Pending, None, true));
        assert_eq!(pod.path(), "/api/v1/namespaces//pods/p");
    }
}
