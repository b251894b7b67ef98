//! The project's chores: `cargo xtask --help`.
//!
//! `cargo xtask test` is the one command that says whether a change is good; `.ci/run` calls it.
#![allow(clippy::print_stdout, reason = "a chore talks to the person who started it")]

mod bench;
mod house;
mod kubernetes;
mod simulate;
mod test;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Chores of the Soroi project.
#[derive(Parser)]
#[command(name = "cargo xtask", disable_help_subcommand = true)]
struct Args {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Checks everything: house rules, format, lints, all tests, documentation, and a selection of
    /// the stories on a real control plane
    ///
    /// Stops at the first step that fails and names it. Needs the Rust toolchain (with rustfmt and
    /// clippy), the crates of Cargo.lock, and Go 1.26 once, to build the control plane.
    Test {
        #[command(flatten)]
        extent: test::Extent,
        /// With --real: only stories whose name contains this, also those outside the selection
        #[arg(requires = "real")]
        story: Option<String>,
    },
    /// The real control plane that tests compare with: build, up, down
    #[command(subcommand)]
    Kubernetes(kubernetes::Chore),
    /// Measures Soroi on a real control plane, beside rivals; every figure of the README
    ///
    /// Builds the release program, starts a control plane with what each part needs, measures, and
    /// takes it down. --quick measures small sizes, to see that it works. Go 1.26 is needed once.
    Bench(bench::Args),
    /// Plays stories that nobody wrote, each from its seed, in a storm of faults and crashes
    ///
    /// Shows the first seed that breaks a promise as a story, as small as it could be made in a minute,
    /// and ends with the totals. The status is non-zero if a seed failed. Builds an optimised program
    /// first (a quarter of an hour from cold on two cores).
    ///
    /// With --bugs they are played with deliberate mistakes in the code, and every one must be found.
    ///
    /// Example: cargo xtask simulate --seeds 1000 --from 1
    Simulate(simulate::Args),
    /// Checks the house rules alone: arrows between crates, file sizes, words (seconds)
    Tidy,
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Test { extent, story } => test::run(extent, story.as_deref()),
        Chore::Kubernetes(chore) => kubernetes::run(chore),
        Chore::Bench(args) => bench::run(&args),
        Chore::Simulate(args) => simulate::run(&args),
        Chore::Tidy => house::check(),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
