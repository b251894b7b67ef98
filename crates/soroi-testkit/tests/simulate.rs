//! Plays stories that nobody wrote, each from its seed, and shows the first that breaks a promise.
//!
//! ```text
//! cargo test -p soroi-testkit --test simulate                            a fixed few
//! cargo xtask simulate --seeds 10000 --from 1                            as many as wanted, optimised
//! cargo test -p soroi-testkit --test simulate -- --seeds 1 --from 17 --page    shows seed 17's page,
//!                                                and all that happened instead of a smaller story
//! … -- --seeds 200 --first                        ends with the first failure, as it is
//! ```
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test runner: it reports to a person, measures wall time and ends on its own faults"
)]

use std::io::IsTerminal as _;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use soroi_testkit::play::Failure;
use soroi_testkit::simulate::{Drawn, draw, shrink};

/// Seeds of a run that says no number: as many as take half a minute on two cores in a development build.
const SEEDS: u64 = 24;
/// How long at most the first failure is made smaller.
const SHRINKING: Duration = Duration::from_secs(60);
/// How often progress is shown.
const PROGRESS: Duration = Duration::from_secs(10);

struct Wanted {
    seeds: u64,
    from: u64,
    page: bool,
    /// The first failure is enough, and is not made smaller.
    first: bool,
}

/// What all runs together did.
#[derive(Default)]
struct Totals {
    seeds: u64,
    steps: u64,
    writes: u64,
    faults: u64,
    requests: u64,
    failures: Vec<(Drawn, Box<Failure>)>,
}

fn main() -> ExitCode {
    let wanted = match wanted(std::env::args().skip(1)) {
        Ok(Some(wanted)) => wanted,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let started = Instant::now();
    // A panic is a failure like others and is told with its story.
    std::panic::set_hook(Box::new(|_| {}));
    let totals = play_all(&wanted, started);
    if let Some((drawn, failure)) = totals.failures.iter().min_by_key(|(drawn, _)| drawn.seed) {
        match wanted.first {
            true => println!("seed {} failed: {}", drawn.seed, failure.what),
            false => tell(drawn, failure.clone(), wanted.page),
        }
    }
    let mut failed: Vec<u64> = totals.failures.iter().map(|(drawn, _)| drawn.seed).collect();
    failed.sort_unstable();
    if !failed.is_empty() {
        println!("\nseeds that failed: {failed:?}");
    }
    let Totals { seeds, steps, writes, faults, requests, .. } = totals;
    let (failures, secs) = (failed.len(), started.elapsed().as_secs_f64());
    let busy = processor_secs().unwrap_or(secs);
    let rate = requests as f64 / busy.max(f64::MIN_POSITIVE);
    println!(
        "\n{seeds} seeds, {steps} steps, {writes} writes, {faults} faults, {failures} failures, {secs:.1} s; \
         {requests} API requests, {rate:.0} per second of one core"
    );
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How long this process has computed, on all cores together; `None` where that cannot be read.
fn processor_secs() -> Option<f64> {
    // Linux counts in hundredths of a second, whatever the kernel's own ticks are (proc(5), USER_HZ).
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The name may hold anything but is in parentheses; user and system time are the 12th and 13th word after it.
    let words = stat.rsplit_once(')')?.1.split_whitespace().skip(11).take(2);
    let ticks: Vec<u64> = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    (ticks.len() == 2).then(|| ticks.iter().sum::<u64>() as f64 / 100.0)
}

/// Reads the arguments; `None`: there is nothing to play.
fn wanted(mut arguments: impl Iterator<Item = String>) -> Result<Option<Wanted>, String> {
    let mut wanted = Wanted { seeds: SEEDS, from: 1, page: false, first: false };
    while let Some(argument) = arguments.next() {
        let mut number = || {
            let text = arguments.next().unwrap_or_default();
            text.parse().map_err(|_| format!("{argument}: `{text}` is no number"))
        };
        match argument.as_str() {
            "--seeds" => wanted.seeds = number()?,
            "--from" => wanted.from = number()?,
            "--page" => wanted.page = true,
            "--first" => wanted.first = true,
            "--list" => {
                println!("simulate: test");
                return Ok(None);
            }
            // Other flags of the test runner mean nothing here; a name is a filter.
            flag if flag.starts_with('-') => {}
            filter if "simulate".contains(filter) => {}
            _ => return Ok(None),
        }
    }
    Ok(Some(wanted))
}

fn play_all(wanted: &Wanted, started: Instant) -> Totals {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicU64::new(wanted.from);
    let until = wanted.from.saturating_add(wanted.seeds);
    let totals = Mutex::new(Totals::default());
    let shown = Mutex::new(started);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let enough = wanted.first && !totals.lock().unwrap().failures.is_empty();
                    if seed >= until || enough {
                        break;
                    }
                    let drawn = draw(seed);
                    if wanted.page {
                        println!("{}", drawn.page());
                    }
                    let played = drawn.play();
                    let mut totals = totals.lock().unwrap();
                    totals.seeds += 1;
                    match played {
                        Ok(outcome) => {
                            totals.steps += outcome.changes;
                            totals.writes += outcome.writes;
                            totals.faults += u64::from(outcome.faults);
                            totals.requests += outcome.api_requests;
                        }
                        Err(failure) => totals.failures.push((drawn, failure)),
                    }
                    progress(&totals, wanted.seeds, &mut shown.lock().unwrap());
                }
            });
        }
    });
    totals.into_inner().unwrap()
}

fn progress(totals: &Totals, of: u64, shown: &mut Instant) {
    if shown.elapsed() >= PROGRESS && std::io::stderr().is_terminal() {
        *shown = Instant::now();
        eprintln!("{} of {of} seeds, {} failed", totals.seeds, totals.failures.len());
    }
}

/// The first failure, as small as it could be made.
fn tell(drawn: &Drawn, failure: Box<Failure>, in_full: bool) {
    let seed = drawn.seed;
    if in_full {
        println!("\nseed {seed} failed: {failure:#}");
        return;
    }
    println!("\nseed {seed} failed: {failure}");
    println!("making it smaller ({} steps) …", drawn.steps.len());
    let began = Instant::now();
    let (least, failure) = shrink(drawn, failure, &|| began.elapsed() > SHRINKING);
    println!("\n{}\n{failure}", least.page());
    println!("again: cargo xtask simulate --seeds 1 --from {seed}");
}
