//! Asking the control plane by its own kubectl.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

/// A kubectl that talks to one control plane.
pub(super) struct Kubectl {
    pub(super) program: PathBuf,
    pub(super) kubeconfig: PathBuf,
}

impl Kubectl {
    /// What it prints, given `input`.
    ///
    /// # Errors
    /// When it cannot be started, or says no: its own words.
    pub(super) fn run(&self, arguments: &[&str], input: Option<&str>) -> anyhow::Result<String> {
        let mut child = Command::new(&self.program)
            .arg("--kubeconfig")
            .arg(&self.kubeconfig)
            .args(arguments)
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start kubectl")?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.as_bytes()).context("kubectl did not read its input")?;
        }
        let output = child.wait_with_output()?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            bail!("kubectl {}: {}", arguments.join(" "), said.trim());
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}
