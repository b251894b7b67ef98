//! Any number of drawn stories, in an optimised build. The stories are `soroi_testkit::simulate`'s.

use std::process::Command;

use anyhow::{Context, bail};

use crate::house;

/// Which seeds.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many seeds
    #[arg(long, default_value_t = 1_000)]
    seeds: u64,
    /// The first one
    #[arg(long, default_value_t = 1)]
    from: u64,
}

/// Plays them on all cores.
///
/// # Errors
/// A seed failed, or cargo cannot be started.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let (seeds, from) = (args.seeds.to_string(), args.from.to_string());
    let status = Command::new(env!("CARGO"))
        .args(["test", "--release", "--locked", "--package", "soroi-testkit", "--test", "simulate", "--"])
        .args(["--seeds", &seeds, "--from", &from])
        .current_dir(house::root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("a promise was broken; the seed above repeats it");
    }
    Ok(())
}
