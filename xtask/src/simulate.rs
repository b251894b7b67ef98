//! Any number of drawn stories, in an optimised build; and whether they can see ([`bugs`]). The stories are
//! `soroi_testkit::simulate`'s.

use std::process::Command;

use anyhow::{Context, bail};

use crate::house;

pub(crate) mod bugs;

/// Which seeds.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds [default: 1000; with --bugs at most 60 for each mistake]
    #[arg(long)]
    seeds: Option<u64>,
    /// The first one
    #[arg(long, default_value_t = 1)]
    from: u64,
    /// Plays them with each of the deliberate mistakes of crates/soroi-testkit/bugs in turn, in a copy of
    /// the tree: every one must be found
    #[arg(long)]
    bugs: bool,
    /// With --bugs: only mistakes whose name contains this
    #[arg(requires = "bugs")]
    name: Option<String>,
}

/// Seeds of a run that says no number.
const SEEDS: u64 = 1_000;

/// Plays them on all cores.
///
/// # Errors
/// A seed failed, or cargo cannot be started; with `--bugs`: a mistake was not found.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    if args.bugs {
        return bugs::find(args.from, args.seeds.unwrap_or(bugs::SEEDS), args.name.as_deref());
    }
    play(args.from, args.seeds.unwrap_or(SEEDS))
}

/// Plays so many seeds.
///
/// # Errors
/// A seed failed, or cargo cannot be started.
pub(crate) fn play(from: u64, seeds: u64) -> anyhow::Result<()> {
    let status = Command::new(env!("CARGO"))
        .args(["test", "--profile", "sim", "--locked", "--package", "soroi-testkit", "--test", "simulate"])
        .args(["--", "--seeds", &seeds.to_string(), "--from", &from.to_string()])
        .current_dir(house::root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("a drawn story broke a promise");
    }
    Ok(())
}
