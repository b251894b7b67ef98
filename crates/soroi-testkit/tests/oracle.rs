//! Plays the situations of `tests/oracle/`, and compares what Soroi decides with what Kueue 0.18.1 was
//! seen to decide.
//!
//! ```text
//! cargo test -p soroi-testkit --test oracle                          all of them
//! cargo test -p soroi-testkit --test oracle -- borrow                those whose name contains it
//! cargo test -p soroi-testkit --test oracle -- more.jsonl            another file, in the same format
//! SOROI_COMPARE=status cargo test …      counters of ClusterQueues too (`all`: also texts and shares)
//! SOROI_SHOW=1 cargo test …              what was expected and seen in the step that differs
//! ```
//!
//! It fails when a situation differs that is not in [`KNOWN`], and when one of those does not any more.
#![allow(
    clippy::disallowed_methods,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test runner: it reports to a person, measures wall time and ends on its own faults"
)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::time::Instant;

use soroi_testkit::oracle::compare::View;
use soroi_testkit::oracle::play::play;
use soroi_testkit::oracle::situation::Situation;
use soroi_testkit::oracle::{Verdict, judge};

/// Situations in which Soroi decides otherwise than Kueue did, and why (`docs/quota.md`).
const KNOWN: &[(&str, &str)] = &[
    ("classic-1-062", STRICT),
    ("classic-1-105", "Kueue does not look at one that fits after its ClusterQueue was resumed"),
    ("classic-1-122", "not yet explained: a victim that finds another flavor later"),
    ("classic-1-135", "perhaps as fair-1-139; that is a guess"),
    ("classic-1-234", TWICE),
    ("fair-1-139", EARLY),
    ("podsets-1-043", EARLY),
    ("stop-lq-hold-and-drain", "Kueue does not notice that draining a LocalQueue gave quota back"),
];
const STRICT: &str =
    "Kueue asks a StrictFIFO head a second before all others: it starts and is evicted at once";
const EARLY: &str =
    "recorded with a Workload that was created while Kueue was still busy with the one before";
const TWICE: &str = "Kueue starts a victim again before it wakes those who wait, and evicts it a second time";

/// Runs do nothing but compute.
const THREADS_MAX: usize = 8;

struct Played {
    file: String,
    situation: Situation,
    verdict: Verdict,
    seen: Vec<serde_json::Value>,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let (paths, filters): (Vec<_>, Vec<_>) = words.into_iter().partition(|word| word.ends_with(".jsonl"));
    let paths = if paths.is_empty() { own_files() } else { paths.into_iter().map(PathBuf::from).collect() };
    let mut all = Vec::new();
    for path in paths {
        let file = path.file_stem().unwrap().to_string_lossy().into_owned();
        let text =
            std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let situations = Situation::read(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let chosen = |situation: &Situation| {
            filters.is_empty() || filters.iter().any(|word| situation.name.contains(word))
        };
        all.extend(situations.into_iter().filter(chosen).map(|situation| (file.clone(), situation)));
    }
    if std::env::args().any(|argument| argument == "--list") {
        all.iter().for_each(|(_, situation)| println!("{}: test", situation.name));
        return ExitCode::SUCCESS;
    }
    let view = std::env::var("SOROI_COMPARE").map_or(View::Decisions, |name| {
        View::named(&name).unwrap_or_else(|| panic!("SOROI_COMPARE: there is no view {name}"))
    });
    let started = Instant::now();
    let played = play_all(all, view);
    let failed = report(&played, view);
    println!(
        "\n{} situations, {failed} not as expected, {:.1} s",
        played.len(),
        started.elapsed().as_secs_f64()
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn own_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle");
    let files = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|it| it == "jsonl")).collect();
    files.sort();
    files
}

fn play_all(all: Vec<(String, Situation)>, view: View) -> Vec<Played> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    let queue = Mutex::new(all.into_iter().enumerate());
    let done = Mutex::new(BTreeMap::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some((at, (file, situation))) = queue.lock().unwrap().next() else { break };
                    let played = std::panic::catch_unwind(|| play(&situation));
                    let (verdict, seen) = match played {
                        Ok(Ok(seen)) => (judge(&situation, &seen, view), seen),
                        Ok(Err(error)) => (Verdict::Broken(error), Vec::new()),
                        Err(_) => (Verdict::Broken("panic".to_owned()), Vec::new()),
                    };
                    done.lock().unwrap().insert(at, Played { file, situation, verdict, seen });
                }
            });
        }
    });
    done.into_inner().unwrap().into_values().collect()
}

/// Prints how many are the same, and what differs. Returns how many are not as expected.
fn report(played: &[Played], view: View) -> usize {
    let show = std::env::var_os("SOROI_SHOW").is_some();
    let mut failed = 0;
    let mut files: BTreeMap<&str, [usize; 4]> = BTreeMap::new();
    for Played { file, situation, verdict, seen } in played {
        let sums = files.entry(file).or_default();
        let (same, strict) = (*verdict == Verdict::Same, situation.agreeing.is_none());
        sums[0] += usize::from(same);
        sums[1] += 1;
        sums[2] += usize::from(same && strict);
        sums[3] += usize::from(strict);
        let known = KNOWN.iter().find(|(name, _)| *name == situation.name).map(|(_, why)| *why);
        let note = match (known, same) {
            (None, true) => continue,
            (Some(why), false) => format!("known: {why}"),
            (Some(_), true) => {
                failed += 1;
                "SAME NOW: take it off the list".to_owned()
            }
            (None, false) => {
                failed += 1;
                "NOT KNOWN".to_owned()
            }
        };
        println!("{:<40} [{note}] {verdict}", situation.name);
        if let (true, Verdict::Different { step, .. }) = (show, verdict) {
            println!("  expected {}", view.of(&situation.pictures()[*step]));
            println!(
                "  seen     {}",
                seen.get(*step).map_or_else(|| "nothing".into(), |it| view.of(it).to_string())
            );
        }
    }
    println!();
    for (file, [same, all, strict_same, strict]) in files {
        let percent = 100.0 * strict_same as f64 / strict.max(1) as f64;
        println!(
            "{file:<12} {same:>3} of {all:>3} the same; on which all recordings agree: {strict_same:>3} of {strict:>3} ({percent:.1} %)"
        );
    }
    failed
}
