//! Plays the stories of `scenarios/` on a real control plane, with `soroi run` as a process.
//!
//! ```text
//! cargo xtask test --real                          a selection
//! cargo xtask test --real -- wake                  those whose name contains it
//! cargo xtask test --all                           all of them
//! ```
//!
//! The pages are the same as on the embedded cluster, and so are harness and rules
//! (`soroi_testkit`). Soroi has the rights of the account that `soroi manifests` installs, no more,
//! and asks for nothing that is forbidden. Several stories are played side by side, each on a control plane of its own
//! that is cleaned for the next one.
#![allow(
    unreachable_pub,
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests of real processes in real time; the runner reports to a person"
)]

mod clean;
#[path = "../real/installed.rs"]
mod installed;
#[path = "../real/plane.rs"]
#[allow(dead_code, reason = "shared with the stories that are told by kubectl")]
mod plane;
#[path = "../real/product.rs"]
#[allow(dead_code, reason = "shared with the stories that are told by kubectl")]
mod product;
mod stage;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use soroi_testkit::book::{Case, cases};
use soroi_testkit::play::{Mode, play};
use soroi_testkit::rule::Limits;
use soroi_testkit::stage::Stage as _;

use plane::Plane;
use stage::RealStage;

/// Played without `--all`: each mechanism that the embedded cluster imitates at least once.
const SELECTION: &[&str] = &[
    "article-",
    "wake-by-deletion/",
    "wake-by-label/",
    "podgroup-of-bare-pods/",
    "several-jobs-one-group/",
    "restart-while-binding/",
    "sidecar-injected/",
    "failed-pod-keeps-its-slot/",
    "notready-blip/",
    "resumed-by-hand/",
    "job-suspended/AfterAdmission",
    "quota-cut-under-use/TopologyOnly",
    "bad-input/",
];
/// Stories spend most of their time waiting, so more are played than there are processors.
const SIDE_BY_SIDE_PER_CPU: usize = 2;
const SIDE_BY_SIDE_MAX: usize = 4;
/// A story that is not marked `slow` should take less.
const USUAL_MAX: Duration = Duration::from_secs(60);
/// For `up`: nodes are given up soon enough to be waited for.
const UP: &[&str] = &["--heartbeat-secs", "2", "--node-grace-secs", "8", "--toleration-secs", "30"];

fn main() -> ExitCode {
    if std::env::var_os("SOROI_XTASK").is_none() {
        println!("not played: these stories need a real control plane (cargo xtask test --real)");
        return ExitCode::SUCCESS;
    }
    let (flags, filters): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|argument| argument.starts_with('-'));
    let all = flags.iter().any(|flag| flag == "--all");
    let chosen = match chosen(all, filters) {
        Ok(chosen) => chosen,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let began = Instant::now();
    let count = chosen.len();
    let failures = play_all(chosen);
    for failure in &failures {
        println!("\n{failure}");
    }
    let secs = began.elapsed().as_secs_f64();
    println!("\n{count} stories on a real control plane, {} failed, {secs:.0} s", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is to be played; says what is not, and why.
fn chosen(all: bool, filters: Vec<String>) -> Result<Vec<Case>, String> {
    let selected = filters.is_empty() && !all;
    let filters = if selected { SELECTION.iter().map(|&name| name.to_owned()).collect() } else { filters };
    let mut chosen = Vec::new();
    for case in cases(&filters)? {
        let settings = &case.scenario.settings;
        let why = settings.skip.get("real").or_else(|| settings.slow.as_ref().filter(|_| selected));
        match why {
            Some(why) => println!("{:<50} not played: {why}", case.name()),
            None => chosen.push(case),
        }
    }
    Ok(chosen)
}

fn play_all(cases: Vec<Case>) -> Vec<String> {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = (processors * SIDE_BY_SIDE_PER_CPU).min(SIDE_BY_SIDE_MAX).min(cases.len());
    let queue = Mutex::new(cases.into_iter());
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (queue, failures) = (&queue, &failures);
            scope.spawn(move || {
                let mut planes = (0..).map(|number| format!("stories-{thread}-{number}"));
                let mut plane = None;
                loop {
                    let Some(case) = queue.lock().unwrap().next() else { break };
                    let now = plane.get_or_insert_with(|| installed_plane(&planes.next().unwrap()));
                    if let Err(failure) = play_one(&case, now) {
                        // What it has left there stays, to be looked at; the next one gets another.
                        plane = None;
                        failures.lock().unwrap().push(failure);
                    }
                }
            });
        }
    });
    failures.into_inner().unwrap()
}

/// A control plane on which Soroi is installed as users do it.
fn installed_plane(name: &str) -> Plane {
    let plane = Plane::bare(name, UP);
    plane.install(&installed::manifests(&plane, installed::WITHOUT_WEBHOOKS, &[]));
    plane.account();
    plane
}

fn play_one(case: &Case, plane: &Plane) -> Result<(), String> {
    let began = Instant::now();
    let played = catch_unwind(AssertUnwindSafe(|| play_on(case, plane)));
    let result = played.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("of unknown cause");
        Err(format!("FAILED {}\npanic: {text}", case.name()))
    });
    let took = began.elapsed();
    let verdict = if result.is_ok() { "ok" } else { "FAILED" };
    let long = took > USUAL_MAX && case.scenario.settings.slow.is_none();
    let remark = if long { "  (long; mark it slow?)" } else { "" };
    println!("{:<50} {verdict:>6} {:>6.1} s{remark}", case.name(), took.as_secs_f64());
    result.map_err(|failure| format!("{failure}\nlogs: {}", plane.dir.display()))
}

fn play_on(case: &Case, plane: &Plane) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    runtime.unwrap().block_on(async {
        let client = stage::client(&plane.kubeconfig()).await;
        let before = plane.forbidden();
        let settings = &case.scenario.settings;
        let mut stage = RealStage::new(plane, client.clone(), case.placement, settings);
        let limits = Limits {
            placement: case.placement,
            recovery: settings.recovery,
            slack: Duration::ZERO,
            patience: Duration::ZERO,
            stale: false,
            one_gets_ready: settings.wait_for_pods_ready.as_ref().is_some_and(|wait| wait.block_admission),
            astray: settings.astray,
        };
        let played = play(&case.scenario, &mut stage, limits, Mode::PLAIN).await;
        let again = format!("cargo xtask test --real {}", case.name());
        played.map_err(|failure| case.told("real", &failure, &again))?;
        let after = plane.forbidden();
        if after != before {
            return Err(format!("FAILED {}\nforbidden: {after:#?}\nbefore: {before:#?}", case.name()));
        }
        clean::clean(&client, &stage.clock())
            .await
            .map_err(|left| format!("FAILED {}\n{left}", case.name()))?;
        stage.end();
        Ok(())
    })
}
