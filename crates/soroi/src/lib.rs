//! The command line of Soroi: arguments in, one function per command.
//!
//! Knows how the parts are put together and how their answers are shown to a person; every
//! decision about pods and queues is made elsewhere.

mod adopt;
mod bench;
mod convert;
mod crds;
mod demo;
mod explain;
mod manifests;
mod run;
mod show;
mod up;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Soroi, a gang scheduler for Kubernetes: a job starts when all of its pods can run, and until
/// then it holds nothing.
#[derive(Debug, Parser)]
#[command(
    name = "soroi",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = "Start with `soroi demo`: it needs no cluster and takes a few seconds."
)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// See the problem and its solution: one cluster, one story, four placement policies
    ///
    /// Plays the same story on four embedded clusters, each with another placement policy. The
    /// clusters are real in all that matters: an API server, a Job controller, nodes, a scheduler
    /// that places pods one by one, and Soroi's own controllers, in this process. Time is
    /// simulated, so that waiting costs nothing.
    ///
    /// The exit status says whether the policy Unified kept its promise: nothing held while the gang does
    /// not fit, all of it started when it does.
    Demo(demo::Args),
    /// Start a Kubernetes API on this machine, with simulated nodes and Soroi in it
    ///
    /// A cluster in this process, for any kubectl: no Docker, nothing to install. Its nodes and pods are
    /// simulated, its state lives in memory, and it is gone when the command ends. Writes a kubeconfig
    /// and prints the line that a shell needs to use it; or runs a command with it:
    ///
    ///   soroi up --nodes 4 --gpus 8 -- kubectl get nodes
    #[command(verbatim_doc_comment)]
    Up(up::Args),
    /// Run on a cluster: admit, place and bind gangs
    ///
    /// Takes part in the election of a leader, so that several can run side by side. Ends in good
    /// order on SIGTERM and on ctrl-c.
    Run(run::Args),
    /// Take over a cluster from Kueue and Volcano, or say what that would change
    ///
    /// Kueue and Volcano must be stopped, and their objects left in place. Their resource
    /// definitions become Soroi's, admission and APIs that nobody answers any more are removed, and
    /// so are finalizers that nobody serves. Jobs that run go on. What is removed or replaced is
    /// kept as files, from which `--undo` puts it back.
    Adopt(adopt::Args),
    /// Say why a job, Workload, PodGroup or pod waits, and what would help
    ///
    /// Reads the cluster once, decides in memory as `soroi run` does, and writes nothing. Shows the quota and
    /// the room that each flavor has, which nodes are out for what reason, and the domain that came closest.
    /// Whatever might help (a node that is uncordoned, a taint that is tolerated, a pod that leaves, more quota)
    /// is tried out on a copy of the state: `enough` means that the gang would start.
    Explain(explain::Args),
    /// Print the custom resource definitions as YAML
    ///
    /// For `soroi crds | kubectl apply --server-side -f -`. They are made from the Rust types that
    /// Soroi itself reads and writes.
    Crds,
    /// Print everything to install as YAML
    ///
    /// A namespace, the custom resource definitions, an account with exactly the rights that are
    /// used, the settings, a Deployment of two replicas of which one leads, a PodDisruptionBudget, a
    /// PriorityClass, and the admission policies. For `soroi manifests | kubectl apply --server-side
    /// -f -`; the same again with a newer version is the upgrade.
    Manifests(manifests::Args),
    /// Work on settings: those of a Kueue as Soroi's
    #[command(subcommand)]
    Config(convert::Command),
    /// Measure how fast Soroi decides
    #[command(subcommand)]
    Bench(bench::Command),
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Output {
    /// For people
    #[default]
    Table,
    /// For programs
    Json,
}

/// Does what `args` say; writes what is asked for to `out`.
///
/// # Errors
/// When the command could not be carried out. A command that was carried out and whose answer is
/// "no" is no error: its exit code says so.
pub fn run(args: Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    match args.command {
        Command::Demo(args) => demo::run(&args, out),
        Command::Up(args) => up::run(&args, out),
        Command::Run(args) => run::run(&args),
        Command::Adopt(args) => adopt::run(&args, out),
        Command::Explain(args) => explain::run(&args, out),
        Command::Crds => crds::run(out),
        Command::Manifests(args) => manifests::run(&args, out),
        Command::Config(command) => convert::run(&command, out),
        Command::Bench(command) => bench::run(&command, out),
    }
}

#[cfg(test)]
mod tests;
