//! Plays every story of `scenarios/`: plain, from seeds, and with a crash after each write.
//!
//! ```text
//! cargo test -p soroi-testkit --test scenarios                       all of them
//! cargo test -p soroi-testkit --test scenarios -- wake               those whose name contains it
//! cargo test -p soroi-testkit --test scenarios -- wake/Unified/seed-7
//! UPDATE_EXPECT=1 cargo test …          writes what was seen into the pages; read the diff
//! SOROI_SEEDS=9 SOROI_CRASHES=99        from more seeds than 3, with more crash points than 12
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test runner: it reports to a person, measures wall time and ends on its own faults"
)]

use std::collections::BTreeMap;
use std::fs;
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use soroi_testkit::book::{Case, cases};
use soroi_testkit::play::Failure;
use soroi_testkit::run::{Kind, crash_points, run};
use soroi_testkit::scenario::Scenario;

/// Seeds that every story is played from.
const SEEDS: u64 = 3;
/// Crash points of every story; more writes than that are sampled evenly.
const CRASHES: u64 = 12;
/// Runs do nothing but compute.
const THREADS_MAX: usize = 8;

fn main() -> ExitCode {
    let filters: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let cases = match cases(&filters) {
        Ok(cases) => cases,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    if std::env::args().any(|argument| argument == "--list") {
        for case in &cases {
            println!("{}: test", case.name());
        }
        return ExitCode::SUCCESS;
    }
    let started = Instant::now();
    let count = cases.len();
    let (runs, failures) = play_all(cases);
    for failure in &failures {
        println!("\n{failure}");
    }
    let secs = started.elapsed().as_secs_f64();
    println!("\n{count} stories, {runs} runs, {} failed, {secs:.1} s", failures.len());
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn play_all(cases: Vec<Case>) -> (usize, Vec<String>) {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let queue = Mutex::new(cases.into_iter());
    let done = Mutex::new((0, Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(case) = queue.lock().unwrap().next() else { break };
                    let started = Instant::now();
                    let (runs, failures) = play_case(&case);
                    let verdict = if failures.is_empty() { "ok" } else { "FAILED" };
                    let secs = started.elapsed().as_secs_f64();
                    println!("{:<60} {verdict:>6}  {runs:>3} runs {secs:>6.1} s", case.name());
                    let mut done = done.lock().unwrap();
                    done.0 += runs;
                    done.1.extend(failures);
                }
            });
        }
    });
    done.into_inner().unwrap()
}

/// All runs of a case; the first failure of each kind of run ends that kind.
fn play_case(case: &Case) -> (usize, Vec<String>) {
    let mut runs = 0;
    let mut failures = Vec::new();
    let update = std::env::var_os("UPDATE_EXPECT").is_some_and(|value| value == "1");
    let mut one = |kind: Kind| {
        runs += 1;
        let outcome = run(&case.scenario, case.placement, kind, update);
        match outcome {
            Ok(outcome) => {
                if update {
                    rewrite(case, &outcome.seen);
                }
                Some(outcome)
            }
            Err(failure) => {
                failures.push(told(case, kind, &failure));
                None
            }
        }
    };
    if let Some(kind) = case.only {
        one(kind);
        return (runs, failures);
    }
    let Some(plain) = one(Kind::Plain) else { return (runs, failures) };
    if update {
        return (runs, failures);
    }
    let seeds = (1..=setting("SOROI_SEEDS", SEEDS)).map(Kind::Seed);
    let crashes = crash_points(plain.writes, setting("SOROI_CRASHES", CRASHES)).into_iter().map(Kind::Crash);
    let kinds: [(&str, Vec<Kind>); 2] = [("seeds", seeds.collect()), ("crashes", crashes.collect())];
    for (name, kinds) in kinds {
        if case.scenario.settings.skip.contains_key(name) {
            continue;
        }
        for kind in kinds {
            if one(kind).is_none() {
                break;
            }
        }
    }
    (runs, failures)
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

fn told(case: &Case, kind: Kind, failure: &Failure) -> String {
    let run = kind.to_string();
    let again = format!("cargo test -p soroi-testkit --test scenarios -- {}/{run}", case.name());
    case.told(&run, failure, &again)
}

/// Writes what was seen into the page. Policies of one page are played at the same time.
fn rewrite(case: &Case, seen: &BTreeMap<usize, Vec<String>>) {
    static PAGES: Mutex<()> = Mutex::new(());
    if seen.is_empty() {
        return;
    }
    let _guard = PAGES.lock().unwrap();
    let text = fs::read_to_string(&case.path).unwrap();
    // Another policy may have rewritten the page meanwhile; its lines are only safe to change when
    // the page is still the one that was parsed.
    match Scenario::parse(&case.scenario.name, &text) {
        Ok(now) if now.steps.len() == case.scenario.steps.len() => {
            let moved: BTreeMap<usize, Vec<String>> = case
                .scenario
                .steps
                .iter()
                .zip(&now.steps)
                .filter_map(|(then, now)| Some((now.line, seen.get(&then.line)?.clone())))
                .collect();
            fs::write(&case.path, now.rewrite(&text, &moved)).unwrap();
        }
        _ => eprintln!("scenarios/{}.md has changed meanwhile: not rewritten", case.scenario.name),
    }
}
