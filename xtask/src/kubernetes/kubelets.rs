//! Builds the simulated kubelets, which are ours, by the same cargo that built this.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

/// The crate and the binary are called the same.
pub(super) const NAME: &str = "soroi-kubelets";

/// The binary, built if it is missing or old; optimised for measurements.
///
/// # Errors
/// When it does not build; cargo has said why.
pub(super) fn binary(release: bool) -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--locked", "--package", NAME])
        .args(["--message-format", "json-render-diagnostics"])
        .args(release.then_some("--release"))
        .current_dir(crate::house::root())
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    if !output.status.success() {
        bail!("the simulated kubelets do not build: cargo build --package {NAME}");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    said.lines().find_map(executable).with_context(|| format!("cargo built no binary {NAME}"))
}

/// The path in cargo's message that the binary is built.
fn executable(message: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(message).ok()?;
    let built = message["reason"] == "compiler-artifact" && message["target"]["name"] == NAME;
    message["executable"].as_str().filter(|_| built).map(PathBuf::from)
}
