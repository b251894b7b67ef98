//! How do pods look? The one kind whose state is put together from many places.
//!
//! Follows `printPod` of Kubernetes 1.36.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{self, has};
use super::{Cell, Column};
use crate::object;

/// The columns of pods.
pub(super) fn columns() -> Vec<Column> {
    let text = |name, make| Column::new(name, "string", Cell::Made(make));
    vec![
        Column::new("Name", "string", Cell::Text(&["metadata", "name"], "")),
        text("Ready", |pod, _| Summary::of(pod).ready().into()),
        text("Status", |pod, _| Summary::of(pod).status.into()),
        text("Restarts", |pod, now| Summary::of(pod).restarts(now).into()),
        Column::new("Age", "string", Cell::Since(&["metadata", "creationTimestamp"])),
        text("IP", |pod, _| ip(pod).into()).wide(),
        Column::new("Node", "string", Cell::Text(&["spec", "nodeName"], "<none>")).wide(),
        Column::new("Nominated Node", "string", Cell::Text(&["status", "nominatedNodeName"], "<none>"))
            .wide(),
        text("Readiness Gates", |pod, _| gates(pod).into()).wide(),
    ]
}

fn ip(pod: &Value) -> &str {
    let first = object::list(pod, &["status", "podIPs"]).first();
    first.map_or("<none>", |ip| cell::text(ip, &["ip"], "<none>"))
}

fn gates(pod: &Value) -> String {
    let gates = object::list(pod, &["spec", "readinessGates"]);
    if gates.is_empty() {
        return "<none>".to_owned();
    }
    let met = gates.iter().filter(|gate| has(pod, object::text(gate, &["conditionType"]))).count();
    format!("{met}/{}", gates.len())
}

/// A pod in a few words.
struct Summary {
    status: String,
    ready: usize,
    containers: usize,
    restarts: i64,
    /// When a container last ended, of those whose restarts count.
    last_restart: Option<Timestamp>,
}

impl Summary {
    fn of(pod: &Value) -> Self {
        let mut summary = Self {
            status: cell::text(pod, &["status", "reason"], object::text(pod, &["status", "phase"]))
                .to_owned(),
            ready: 0,
            containers: object::list(pod, &["spec", "containers"]).len(),
            restarts: 0,
            last_restart: None,
        };
        let gated = |c: &Value| {
            object::text(c, &["type"]) == "PodScheduled" && object::text(c, &["reason"]) == "SchedulingGated"
        };
        if object::list(pod, &["status", "conditions"]).iter().any(gated) {
            summary.status = "SchedulingGated".to_owned();
        }
        let initializing = summary.initialize(pod);
        if !initializing || has(pod, "Initialized") {
            summary.run(pod);
        }
        summary.end(pod);
        summary
    }

    /// Goes through the init containers. Says whether they are still at work; if not, only the
    /// restarts of those that go on beside the containers count from then on.
    fn initialize(&mut self, pod: &Value) -> bool {
        let specs = object::list(pod, &["spec", "initContainers"]);
        let goes_on = |name: &str| {
            let spec = specs.iter().find(|c| object::text(c, &["name"]) == name);
            spec.is_some_and(|c| object::text(c, &["restartPolicy"]) == "Always")
        };
        self.containers += specs.iter().filter(|c| goes_on(object::text(c, &["name"]))).count();
        let mut beside = (0, None);
        let mut initializing = false;
        for (at, status) in object::list(pod, &["status", "initContainerStatuses"]).iter().enumerate() {
            self.count_restarts(status);
            let sidecar = goes_on(object::text(status, &["name"]));
            if sidecar {
                beside.0 += object::number(status, &["restartCount"]).unwrap_or(0);
                beside.1 = beside.1.max(ended_last(status));
            }
            let exit = object::number(status, &["state", "terminated", "exitCode"]);
            if exit == Some(0) {
                continue;
            }
            if sidecar && object::flag(status, &["started"]) {
                self.ready += usize::from(object::flag(status, &["ready"]));
                continue;
            }
            let waiting = object::text(status, &["state", "waiting", "reason"]);
            self.status = match exit {
                Some(_) => format!("Init:{}", why_ended(status)),
                None if !matches!(waiting, "" | "PodInitializing") => format!("Init:{waiting}"),
                None => format!("Init:{at}/{}", specs.len()),
            };
            initializing = true;
            break;
        }
        if !initializing || has(pod, "Initialized") {
            (self.restarts, self.last_restart) = beside;
        }
        initializing
    }

    /// Goes through the containers, the last one first, as `printPod` does.
    fn run(&mut self, pod: &Value) {
        let (mut running, mut error) = (false, None);
        for status in object::list(pod, &["status", "containerStatuses"]).iter().rev() {
            self.count_restarts(status);
            let waiting = object::text(status, &["state", "waiting", "reason"]);
            if !waiting.is_empty() {
                self.status = waiting.to_owned();
            } else if object::at(status, &["state", "terminated"]).is_some() {
                self.status = why_ended(status);
                if object::number(status, &["state", "terminated", "exitCode"]).unwrap_or(0) != 0 {
                    error = Some(self.status.clone());
                }
            } else if object::flag(status, &["ready"]) && object::at(status, &["state", "running"]).is_some()
            {
                running = true;
                self.ready += 1;
            }
        }
        if self.status == "Completed" {
            if running && has(pod, "Ready") {
                self.status = "Running".to_owned();
            } else if let Some(error) = error {
                self.status = error;
            } else if running {
                self.status = "NotReady".to_owned();
            }
        }
    }

    fn end(&mut self, pod: &Value) {
        if !object::deleting(pod) {
            return;
        }
        if object::text(pod, &["status", "reason"]) == "NodeLost" {
            self.status = "Unknown".to_owned();
        } else if !matches!(object::text(pod, &["status", "phase"]), "Succeeded" | "Failed") {
            self.status = "Terminating".to_owned();
        }
    }

    fn count_restarts(&mut self, status: &Value) {
        self.restarts += object::number(status, &["restartCount"]).unwrap_or(0);
        self.last_restart = self.last_restart.max(ended_last(status));
    }

    fn ready(&self) -> String {
        format!("{}/{}", self.ready, self.containers)
    }

    fn restarts(&self, now: Timestamp) -> String {
        match self.last_restart.filter(|_| self.restarts != 0) {
            Some(then) => format!("{} ({} ago)", self.restarts, cell::between(then, now)),
            None => self.restarts.to_string(),
        }
    }
}

fn ended_last(status: &Value) -> Option<Timestamp> {
    cell::time(status, &["lastState", "terminated", "finishedAt"])
}

/// The reason of a container's end, or what it ended with.
fn why_ended(status: &Value) -> String {
    let number = |key| object::number(status, &["state", "terminated", key]).unwrap_or(0);
    match object::text(status, &["state", "terminated", "reason"]) {
        "" if number("signal") != 0 => format!("Signal:{}", number("signal")),
        "" => format!("ExitCode:{}", number("exitCode")),
        reason => reason.to_owned(),
    }
}
