//! Taking over a cluster from Kueue and Volcano: `soroi adopt`.
//!
//! ```text
//! look ──▶ plan (pure) ──▶ show
//!                      └──▶ save ──▶ carry out        undo: from what was saved
//! ```
//!
//! Knows the order of these. What another product leaves on a cluster is known by `plan` and
//! `unserved`; how it is read and written, by `look`, `carry` and `undo`. None of them may know
//! what Soroi decides later.

mod carry;
mod look;
mod object;
mod plan;
mod save;
mod show;
mod undo;
mod unserved;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Context as _;
use soroi_clock::Clock;

use crate::Output;
use plan::Plan;
use save::Folder;

/// The exit status of an adoption that is possible, but not without `--accept-unserved`.
const UNSERVED: u8 = 3;

/// Arguments of `soroi adopt`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  soroi adopt --check
      what would change, and what Soroi does not serve yet; changes nothing
  soroi adopt --save-to before-soroi
      take over; keep what is removed or replaced as files
  soroi adopt --undo --save-to before-soroi
      put it back, after Soroi was stopped

Exit status: 0 if it is possible (or done), 1 if not, 3 if --accept-unserved is needed.")]
pub(crate) struct Args {
    /// How to reach the cluster, and as whom [default: as kubectl does]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Say what would change, and change nothing
    #[arg(long, conflicts_with_all = ["undo", "accept_unserved"])]
    check: bool,
    /// Put back what an adoption removed or replaced
    #[arg(long)]
    undo: bool,
    /// Where what is removed or replaced is kept, one file per object
    #[arg(long, value_name = "DIR", required_unless_present = "check")]
    save_to: Option<PathBuf>,
    /// Take over although some objects use what Soroi does not serve yet
    #[arg(long)]
    accept_unserved: bool,
    /// How the answer is written
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

/// Checks, takes over, or undoes that.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    crate::run::install_crypto()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let access = crate::run::access(args.kubeconfig.as_deref()).await?;
        let client = kube::Client::try_from(access).context("cannot set up a client")?;
        run_on(&client, &Clock::real(), args, out).await
    })
}

async fn run_on(
    client: &kube::Client,
    clock: &Clock,
    args: &Args,
    out: &mut dyn Write,
) -> anyhow::Result<ExitCode> {
    let folder = args.save_to.as_deref().map(Folder::new);
    if let (true, Some(folder)) = (args.undo, &folder) {
        let done = undo::undo(client, clock, folder).await?;
        show::undone(&done, args.output, out)?;
        return Ok(ExitCode::SUCCESS);
    }
    let plan = plan::plan(&look::look(client, clock).await?)?;
    show::plan(&plan, args.output, out)?;
    let Some(folder) = folder.filter(|_| !args.check) else {
        return Ok(verdict(&plan, false));
    };
    let verdict = verdict(&plan, args.accept_unserved);
    if verdict == ExitCode::SUCCESS {
        carry::carry(client, clock, &plan, &folder).await?;
    }
    show::ended(verdict == ExitCode::SUCCESS, &folder, args.output, out)?;
    Ok(verdict)
}

/// Whether a plan may be carried out.
fn verdict(plan: &Plan, accept_unserved: bool) -> ExitCode {
    if !plan.blocked.is_empty() {
        ExitCode::FAILURE
    } else if !plan.unserved.is_empty() && !accept_unserved {
        ExitCode::from(UNSERVED)
    } else {
        ExitCode::SUCCESS
    }
}

#[cfg(test)]
mod tests;
