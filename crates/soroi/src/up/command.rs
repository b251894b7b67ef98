//! A command that is run against the cluster.

use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::Context as _;
use soroi_clock::Clock;

use crate::run::Stop;

/// How often is looked whether the command has ended: too short for a person to notice.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Runs the command to its end; its exit status is ours.
pub(super) async fn run(
    program: &str,
    words: &[String],
    kubeconfig: &Path,
    stop: &mut Stop,
) -> anyhow::Result<ExitCode> {
    let mut child = Command::new(program)
        .args(words)
        .env("KUBECONFIG", kubeconfig)
        .spawn()
        .with_context(|| format!("cannot run {program}"))?;
    let clock = Clock::real();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(code(status));
        }
        tokio::select! {
            biased;
            // Ctrl-C reaches the command, too, which then ends as it sees fit.
            () = stop.terminated() => {
                child.kill().context("cannot end the command")?;
            }
            () = clock.sleep(LOOK_EVERY) => {}
        }
    }
}

/// A signal counts as shells count it.
fn code(status: ExitStatus) -> ExitCode {
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).map_or(ExitCode::FAILURE, ExitCode::from)
}
