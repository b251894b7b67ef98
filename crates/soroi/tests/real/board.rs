//! What people see, in one picture.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use expect_test::Expect;
use serde_json::Value;

use crate::plane::{Plane, pause};

impl Plane {
    /// Waits until the board is as expected, at most so many seconds.
    pub fn see(&self, seconds: u64, expected: &Expect) {
        let began = Instant::now();
        let wanted = bare(expected.data());
        loop {
            let board = self.board();
            if bare(&board) == wanted {
                return;
            }
            if began.elapsed() > Duration::from_secs(seconds) {
                expected.assert_eq(&board);
                return;
            }
            pause(50);
        }
    }

    /// The board must be as it is for so many seconds.
    pub fn stays(&self, seconds: u64) {
        let (began, before) = (Instant::now(), self.board());
        while began.elapsed() < Duration::from_secs(seconds) {
            assert_eq!(self.board(), before);
            pause(200);
        }
    }

    /// Pods, jobs, workloads, plans and queues.
    pub fn board(&self) -> String {
        let mut board = String::new();
        let mut pods: Vec<String> = self.list("pods").iter().map(pod).collect();
        pods.sort();
        board.push_str(&pods.concat());
        for job in self.list("jobs") {
            let status = &job["status"];
            let suspended = if job["spec"]["suspend"] == true { "suspended" } else { "released" };
            let ended = ["Complete", "Failed"].into_iter().find(|kind| holds(&job, kind)).unwrap_or("");
            let counts =
                format!("active {} succeeded {}", number(&status["active"]), number(&status["succeeded"]));
            line(&mut board, "job", &[name(&job), suspended, &counts, ended]);
        }
        for workload in self.list("workloads") {
            let kinds = ["QuotaReserved", "Admitted", "Evicted", "Finished"];
            let held: Vec<&str> = kinds.into_iter().filter(|kind| holds(&workload, kind)).collect();
            let conditions = workload["status"]["conditions"].as_array().into_iter().flatten();
            let why =
                conditions.clone().find(|one| one["type"] == "QuotaReserved" && one["status"] == "False");
            let why = why.map(|one| text(&one["message"])).unwrap_or_default();
            line(&mut board, "workload", &[base(name(&workload)), &held.join(" "), why]);
        }
        // They are called after uids, which are by chance.
        let mut plans: Vec<String> = self.list("gangplans").iter().map(plan).collect();
        plans.sort();
        board.push_str(&plans.concat());
        for queue in self.list("clusterqueues") {
            let status = &queue["status"];
            let resources =
                status["flavorsReservation"][0]["resources"].as_array().cloned().unwrap_or_default();
            let gpus = resources.iter().find(|one| one["name"] == "example.com/gpu");
            let gpus = gpus.map_or("-", |one| text(&one["total"]));
            let (pending, admitted) =
                (number(&status["pendingWorkloads"]), number(&status["admittedWorkloads"]));
            if queue["metadata"]["labels"]["shown"] != "no" {
                let counts = format!("pending {pending} admitted {admitted} gpu {gpus}");
                line(&mut board, "queue", &[name(&queue), &counts]);
            }
        }
        board
    }
}

fn pod(pod: &Value) -> String {
    let own = text(&pod["metadata"]["labels"]["batch.kubernetes.io/job-name"]);
    let shown = if own.is_empty() { name(pod) } else { own };
    let node = text(&pod["spec"]["nodeName"]);
    let gates = pod["spec"]["schedulingGates"].as_array().map_or("", |_| "gated");
    let leaving = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { "leaving" };
    let mut row = String::new();
    let node = if node.is_empty() { "-" } else { node };
    let scheduler = text(&pod["spec"]["schedulerName"]);
    line(&mut row, "pod", &[shown, node, text(&pod["status"]["phase"]), scheduler, gates, leaving]);
    row
}

fn plan(plan: &Value) -> String {
    let mut row = String::new();
    let gang = base(text(&plan["spec"]["gang"]["name"]));
    line(
        &mut row,
        "plan",
        &[gang, text(&plan["status"]["phase"]), &format!("{} pods", plan["spec"]["pods"])],
    );
    row
}

fn line(board: &mut String, kind: &str, cells: &[&str]) {
    let _ = write!(board, "{kind:<9}");
    for cell in cells.iter().filter(|cell| !cell.is_empty()) {
        let _ = write!(board, " {cell:<12}");
    }
    board.truncate(board.trim_end().len());
    board.push('\n');
}

/// The lines without their indentation.
fn bare(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

pub fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

/// A generated name without its end.
fn base(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(base, _)| base)
}

pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// Whether a condition is True.
pub fn holds(object: &Value, kind: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == kind && one["status"] == "True")
}
