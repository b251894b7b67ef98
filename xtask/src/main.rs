//! The project's chores: `cargo xtask --help`.
//!
//! `cargo xtask test` is the one command that says whether a change is good; `.ci/run` calls it.
#![allow(clippy::print_stdout, reason = "a chore talks to the person who started it")]

mod house;
mod kubernetes;
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
    /// Checks everything: house rules, format, lints, all tests, documentation
    ///
    /// Stops at the first step that fails and names it. Needs nothing but the Rust toolchain
    /// (with rustfmt and clippy) and the crates of Cargo.lock.
    Test {
        /// Play the stories on a real control plane instead: needs Go 1.26 once, to build it
        #[arg(long)]
        real: bool,
        /// With --real: only stories whose name contains this
        #[arg(requires = "real")]
        story: Option<String>,
    },
    /// The real control plane that tests compare with: build, up, down
    #[command(subcommand)]
    Kubernetes(kubernetes::Chore),
    /// Checks the house rules alone: arrows between crates, file sizes, words (seconds)
    Tidy,
}

fn main() -> ExitCode {
    let done = match Args::parse().chore {
        Chore::Test { real: false, .. } => test::run(),
        Chore::Test { real: true, story } => test::real(story.as_deref()),
        Chore::Kubernetes(chore) => kubernetes::run(chore),
        Chore::Tidy => house::check(),
    };
    let Err(error) = done else { return ExitCode::SUCCESS };
    eprintln!("error: {error:#}");
    ExitCode::FAILURE
}
