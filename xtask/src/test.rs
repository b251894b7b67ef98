//! The whole check, step by step, each one announced with its command so that it can be repeated.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::{house, kubernetes, simulate};

/// What is run, in this order: the cheap steps first.
const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--locked"]),
];

/// Drawn stories that are played in an optimised build, beside the few of the usual tests.
const DRAWN: u64 = 1_000;

/// How much is run.
#[derive(Clone, Copy, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Extent {
    /// All but what needs a real control plane: no Go, no other processes
    #[arg(long)]
    embedded: bool,
    /// Only what needs a real control plane
    #[arg(long)]
    real: bool,
    /// All, with every story on the real control plane, the slow ones too, more drawn stories, and the
    /// deliberate mistakes that those must find
    #[arg(long)]
    all: bool,
}

/// Runs what `extent` says.
///
/// # Errors
/// The first step that fails, or a tool that is missing.
pub(crate) fn run(extent: Extent, story: Option<&str>) -> anyhow::Result<()> {
    // Asked for now: a program that was built anew meanwhile has no path any more.
    let this = std::env::current_exe()?;
    if !extent.embedded {
        // Better known now than after everything else.
        kubernetes::need_tools()?;
    }
    if !extent.real {
        steps()?;
    }
    if extent.all {
        fresh_properties()?;
        println!("==> drawn stories: cargo xtask simulate --seeds {DRAWN}");
        simulate::play(1, DRAWN)?;
        println!("==> deliberate mistakes: cargo xtask simulate --bugs");
        simulate::bugs::find(1, simulate::bugs::SEEDS, None)?;
    }
    if !extent.embedded {
        real(&this, extent.all, story)?;
    }
    println!("==> all good");
    Ok(())
}

fn steps() -> anyhow::Result<()> {
    need_component("rustfmt", "fmt")?;
    need_component("clippy", "clippy")?;
    println!("==> house rules: cargo xtask tidy");
    house::check()?;
    for (name, arguments) in STEPS {
        println!("==> {name}: cargo {}", arguments.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(*arguments)
            .env("RUSTDOCFLAGS", "-D warnings")
            .status()
            .with_context(|| format!("cannot start cargo for the step `{name}`"))?;
        if !status.success() {
            bail!("the step `{name}` failed; repeat it with: cargo {}", arguments.join(" "));
        }
    }
    Ok(())
}

/// Asks the properties of the engine for other cases than the usual ones.
fn fresh_properties() -> anyhow::Result<()> {
    let seed = std::time::SystemTime::UNIX_EPOCH.elapsed().map_or(2, |age| age.as_secs()).to_string();
    let arguments = ["test", "--package", "soroi-engine", "--lib", "--locked"];
    let repeat = format!("{SEED_OF_PROPERTIES}={seed} cargo {}", arguments.join(" "));
    println!("==> fresh cases of the properties: {repeat}");
    let status = Command::new(env!("CARGO"))
        .args(arguments)
        .env(SEED_OF_PROPERTIES, seed)
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("properties of the engine do not hold; repeat it with: {repeat}");
    }
    Ok(())
}

/// Read by proptest; `.cargo/config.toml` has the usual one.
const SEED_OF_PROPERTIES: &str = "PROPTEST_RNG_SEED";

/// Tests that are told by kubectl and run side by side: more would only take each other's time on
/// two cores.
const TOLD_THREADS: &str = "2";

/// Tests that wait long for what they tell: a lease of the usual length, a server that is away.
/// Played by `--all`, or by name.
const TOLD_SLOWLY: &[&str] = &[
    "the_other_replica_finishes_what_a_killed_leader_began",
    "a_clock_that_is_ten_minutes_wrong_delays_nothing",
    "a_leader_that_wakes_up_late_does_no_harm",
    "etcd_may_be_silent_for_twenty_seconds",
    "gangs_start_whole_in_a_crowd_of_single_pods",
];

/// Plays stories on a real control plane: those that only a real one can tell, and those of
/// `scenarios/`.
fn real(this: &Path, all: bool, story: Option<&str>) -> anyhow::Result<()> {
    let binaries = kubernetes::prepare()?;
    let mut told = vec!["--ignored", "--test-threads", TOLD_THREADS];
    if !all && story.is_none() {
        told.extend(TOLD_SLOWLY.iter().flat_map(|name| ["--skip", name]));
    }
    let pages: &[&str] = if all { &["--all"] } else { &[] };
    let mut failed = Vec::new();
    // Beside stories: what needs Go alone.
    let targets =
        [("soroi-control", "scheduler", &*told), ("soroi", "real", &*told), ("soroi", "stories", pages)];
    for (package, target, flags) in targets {
        let mut arguments = vec!["test", "--package", package, "--test", target, "--locked", "--"];
        arguments.extend(flags);
        arguments.extend(story);
        println!("==> on a real control plane: cargo {}", arguments.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(&arguments)
            .env("SOROI_XTASK", this)
            .env("SOROI_KUBERNETES_BIN", &binaries)
            .current_dir(house::root())
            .status()
            .context("cannot start cargo")?;
        if !status.success() {
            failed.push(target);
        }
    }
    if !failed.is_empty() {
        bail!("stories failed; play one alone with: cargo xtask test --real NAME");
    }
    Ok(())
}

/// Says what to install when a cargo component is missing, instead of failing somewhere later.
fn need_component(component: &str, command: &str) -> anyhow::Result<()> {
    let there = Command::new(env!("CARGO")).args([command, "--version"]).output();
    if !there.is_ok_and(|output| output.status.success()) {
        bail!("{component} is missing; install it with: rustup component add {component}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told_slowly_is_there() {
        let folder = house::root().join("crates/soroi/tests/real");
        let files = std::fs::read_dir(folder).unwrap();
        let text: String =
            files.filter_map(|file| std::fs::read_to_string(file.unwrap().path()).ok()).collect();
        for name in TOLD_SLOWLY {
            assert!(text.contains(&format!("fn {name}()")), "{name}");
        }
    }
}
