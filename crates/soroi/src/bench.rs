//! How fast is it? Measurements that anyone can repeat.

mod cluster;
mod engine;
mod load;
mod packing;
mod places;
mod process;
mod published;
mod up;

use std::io::Write;
use std::process::ExitCode;

use clap::Subcommand;
use serde::Serialize;
use soroi_embedded::table::Table;

use crate::Output;
use crate::show::grouped;

/// What is measured.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// The decision engine alone: no API server, no network
    ///
    /// Places 1,000 gangs of 8 pods on 5,000 nodes with 8 GPUs in a topology of 3 levels; decides
    /// one gang of 10,000 pods; decides again after one pod ends while 10,000 gangs wait. Then, with
    /// 60 % of the GPUs taken: gangs in one rack, anywhere, and a leader with workers that keep apart in
    /// one block; what one pod changes; and the same on four times as many nodes, with the memory that it
    /// takes. Build with --release, or the figures mean nothing.
    Engine(Args),
    /// The whole of it on a cluster with a real API server, beside rivals
    ///
    /// For a cluster that is made for this: `cargo xtask bench` starts one with what each part
    /// needs, runs all parts and takes it down. Kubelets are simulated there, so that nodes are
    /// plain objects. Everything is done in the namespace `soroi-bench`, on nodes that are made
    /// for it, and taken away at the end.
    Cluster(cluster::Args),
    /// Kueue's published load: 15,000 or 50,000 Workloads in many queues, only Workload objects
    ///
    /// Soroi runs in this process. This client creates the Workloads in their time and plays their
    /// jobs: one that is admitted is marked finished after its time, one that is evicted gives its
    /// reservation back and runs anew. Build with --release.
    Load(published::Args),
    /// How much of a cluster's GPUs can be given away, on a public trace
    ///
    /// Replays pods with GPUs, whole ones and parts of them, on the nodes of the trace, until what
    /// they ask for is all of its GPUs; says how much is allocated then, for each way of packing.
    Packing(packing::Args),
    /// `soroi up`: ready, creating over loopback while somebody watches, showing it all
    ///
    /// Server and client share this machine and this process. Build with --release.
    Up(up::Args),
}

/// How it is measured and shown.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each measurement is repeated on a fresh cluster; the median counts
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Divides the sizes, for a quick look
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    shrink: u32,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// One measurement.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Figure {
    /// Stable name for programs.
    name: &'static str,
    /// For people.
    what: String,
    unit: &'static str,
    median: f64,
    worst: f64,
    best: f64,
    /// The design's target in the same unit.
    target: f64,
    /// Whether more is better.
    more_is_better: bool,
    samples: usize,
}

impl Figure {
    /// From samples, with the unit, whether more is better, and the target.
    fn of(
        name: &'static str,
        what: String,
        (unit, more_is_better, target): (&'static str, bool, f64),
        samples: Vec<f64>,
    ) -> Self {
        let count = samples.len();
        let (median, worst, best) = spread(samples, more_is_better);
        Self { name, what, unit, median, worst, best, target, more_is_better, samples: count }
    }

    fn meets_target(&self) -> bool {
        if self.more_is_better { self.median >= self.target } else { self.median <= self.target }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report<'a> {
    benchmark: &'static str,
    rounds: u32,
    shrink: u32,
    optimized: bool,
    figures: &'a [Figure],
}

pub(crate) fn run(command: &Command, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match command {
        Command::Cluster(args) => cluster::run(args, out)?,
        Command::Load(args) => published::run(args, out)?,
        Command::Packing(args) => packing::run(args, out)?,
        Command::Engine(args) => {
            let mut figures = engine::measure(args.rounds, args.shrink)?;
            figures.extend(places::measure(args.rounds, args.shrink)?);
            show(out, "engine", args.output, (args.rounds, args.shrink), &figures)?;
        }
        Command::Up(args) => show(out, "up", args.output, (args.rounds(), 1), &up::measure(args)?)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures with a runtime of its own, and writes what came of it.
fn report<R: Serialize>(
    measuring: impl Future<Output = anyhow::Result<R>>,
    output: Output,
    table: impl FnOnce(&R) -> String,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    crate::run::install_crypto()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let report = runtime.block_on(measuring);
    runtime.shutdown_background();
    let report = report?;
    match output {
        Output::Json => json(out, &report),
        Output::Table => Ok(write!(out, "{}", table(&report))?),
    }
}

fn json(out: &mut dyn Write, report: &impl Serialize) -> anyhow::Result<()> {
    serde_json::to_writer_pretty(&mut *out, report)?;
    Ok(writeln!(out)?)
}

/// Writes figures, for programs or for people.
fn show(
    out: &mut dyn Write,
    benchmark: &'static str,
    output: Output,
    (rounds, shrink): (u32, u32),
    figures: &[Figure],
) -> anyhow::Result<()> {
    match output {
        Output::Json => {
            let optimized = !cfg!(debug_assertions);
            json(out, &Report { benchmark, rounds, shrink, optimized, figures })?;
        }
        Output::Table => {
            if cfg!(debug_assertions) {
                writeln!(out, "This is a debug build: use `cargo run --release -- bench {benchmark}`.\n")?;
            }
            write!(out, "{}", table(figures))?;
        }
    }
    Ok(())
}

fn table(figures: &[Figure]) -> Table {
    let mut table = Table::new(["WHAT", "MEDIAN", "WORST", "TARGET", ""]);
    for figure in figures {
        let sign = if figure.more_is_better { "≥" } else { "<" };
        table.row([
            figure.what.clone(),
            format!("{} {}", number(figure.median), figure.unit),
            number(figure.worst),
            format!("{sign} {} {}", number(figure.target), figure.unit),
            if figure.meets_target() { "met" } else { "missed" }.to_owned(),
        ]);
    }
    table
}

/// Three significant digits are all that a repeated run confirms.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "only shown, never computed with"
)]
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => grouped(value.round() as u64),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// Median, worst and best of some samples; `more_is_better` says which end is the worst.
fn spread(mut samples: Vec<f64>, more_is_better: bool) -> (f64, f64, f64) {
    samples.sort_by(f64::total_cmp);
    let at = |place: usize| samples.get(place).copied().unwrap_or(f64::NAN);
    let (low, middle, high) = (at(0), at(samples.len() / 2), at(samples.len().saturating_sub(1)));
    if more_is_better { (middle, low, high) } else { (middle, high, low) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn a_figure_is_shown_beside_its_target() {
        let figure = Figure {
            name: "place",
            what: "place 1,000 gangs of 8 pods".into(),
            unit: "pods/s",
            median: 123_456.7,
            worst: 99_000.0,
            best: 130_000.0,
            target: 100_000.0,
            more_is_better: true,
            samples: 5,
        };
        let slow = Figure {
            what: "again".into(),
            unit: "µs",
            median: 1_200.0,
            more_is_better: false,
            target: 1_000.0,
            ..figure.clone()
        };
        expect![[r#"
            WHAT                          MEDIAN           WORST    TARGET
            place 1,000 gangs of 8 pods   123,457 pods/s   99,000   ≥ 100,000 pods/s   met
            again                         1,200 µs         99,000   < 1,000 µs         missed
        "#]]
        .assert_eq(&table(&[figure, slow]).to_string());
    }

    #[test]
    fn the_worst_sample_depends_on_what_is_better() {
        assert_eq!(spread(vec![3.0, 1.0, 2.0], true), (2.0, 1.0, 3.0));
        assert_eq!(spread(vec![3.0, 1.0, 2.0], false), (2.0, 3.0, 1.0));
    }
}
