//! The whole check, step by step, each one announced with its command so that it can be repeated.

use std::process::Command;

use anyhow::{Context, bail};

use crate::{house, kubernetes};

/// What is run, in this order: the cheap steps first.
const STEPS: &[(&str, &[&str])] = &[
    ("format", &["fmt", "--all", "--check"]),
    ("lints", &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"]),
    ("tests", &["test", "--workspace", "--locked"]),
    ("documentation", &["doc", "--workspace", "--no-deps", "--locked"]),
];

/// Runs all steps.
///
/// # Errors
/// The first step that fails, or a tool that is missing.
pub(crate) fn run() -> anyhow::Result<()> {
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
    println!("==> all good");
    Ok(())
}

/// Stories that run side by side: more would only take each other's time on two cores.
const REAL_THREADS: &str = "2";

/// Plays the stories on a real control plane.
///
/// # Errors
/// What does not build, or the stories that failed.
pub(crate) fn real(story: Option<&str>) -> anyhow::Result<()> {
    let binaries = kubernetes::prepare()?;
    let mut arguments = vec!["test", "--package", "soroi", "--test", "real", "--locked", "--", "--ignored"];
    arguments.extend(["--test-threads", REAL_THREADS]);
    arguments.extend(story);
    println!("==> stories on a real control plane: cargo {}", arguments.join(" "));
    let status = Command::new(env!("CARGO"))
        .args(&arguments)
        .env("SOROI_XTASK", std::env::current_exe()?)
        .env("SOROI_KUBERNETES_BIN", binaries)
        .current_dir(house::root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("a story failed; play it alone with: cargo xtask test --real NAME");
    }
    println!("==> all good");
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
