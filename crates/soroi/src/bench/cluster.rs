//! How fast on a real API server? One client that creates, looks on and measures.
//!
//! ```text
//! site: a namespace, nodes and a queue of its own ──▶ part: wakeup, load, bind, … ──▶ report
//!                                                     │ eyes: when did which pod get its node?
//!                                                     └ bare: the writes alone, the plan known
//! ```
//!
//! Knows the API alone: what is measured is what any client sees. Must never know how Soroi works
//! inside; the bare client repeats the writes that it has seen Soroi make.

mod bare;
mod bind;
mod eyes;
mod load;
mod memory;
mod objects;
mod product;
mod report;
mod restart;
mod site;
mod undo;
mod wakeup;

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Subcommand;

use crate::Output;
use site::Site;

/// Arguments of `soroi bench cluster`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    part: Part,
    /// How to reach the cluster, and as whom [default: as kubectl does]
    #[arg(long, value_name = "FILE", global = true)]
    kubeconfig: Option<PathBuf>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t, global = true)]
    output: Output,
    /// Leave the namespace, the nodes and the queue behind, to look at them
    #[arg(long, global = true)]
    keep: bool,
}

/// What is measured.
#[derive(Debug, Subcommand)]
enum Part {
    /// From the DELETED event of a pod in the way to the whole gang bound
    ///
    /// Two nodes with 2 GPUs; a pod that nobody queues holds one, a gang of 4 waits. The clock runs
    /// from the DELETED event of that pod to the event that shows the node of the last member, both
    /// as this client's watch sees them. The rivals take turns in every round:
    ///
    /// soroi-job: a Job under a queue; its pods are made by kube-controller-manager after the release.
    /// bare-job: this client makes the writes that Soroi was seen to make, knowing the plan: the
    /// record, the release of the Job beside the status of its Workload, the bindings once all pods
    /// are there. Its pods pass the same admission.
    /// soroi-group: a PodGroup whose pods exist. bare-group: the record and the bindings alone.
    /// native-group: kube-scheduler with its own gangs (left out where the API server does not
    /// serve scheduling.k8s.io/v1alpha2).
    Wakeup(wakeup::Args),
    /// Many gangs at once: from the first create to the last bind, beside creating the pods alone
    ///
    /// This client creates PodGroups and their pods, with as many requests under way as
    /// --in-flight says. A size is GANGSxPODS@NODES.
    #[command(visible_alias = "load")]
    Gangs(load::Args),
    /// Binds in a second, beside a loop that does nothing else
    ///
    /// The pods exist and their kubelets are silent. Soroi is given the PodGroup last; the rate is
    /// that between the first and the last bind that this client's watch shows, and so it is for the
    /// loop.
    Bind(bind::Args),
    /// The peak memory of `soroi run` on a large cluster
    ///
    /// Creates nodes and bound pods, starts `soroi run` (no other may lead), waits until it has read
    /// everything, makes it read everything again with --relist, and asks Linux for the peak
    /// (VmHWM).
    Memory(memory::Args),
    /// From switching a large gang off to the last trace of it
    ///
    /// A Job and a PodGroup under a queue, each of --pods pods that run. Its Workload is made inactive;
    /// it counts until its GangPlan is gone: the Job is suspended, its pods are gone, its template is
    /// as it was, its quota is back.
    Undo(undo::Args),
    /// A new leader's first decision on a cluster full of gangs
    ///
    /// Starts `soroi run` (no other may lead), lets it place --gangs PodGroups, kills it, creates
    /// one more, and starts it anew: from the end of its last list to the new gang's GangPlan.
    Restart(restart::Args),
}

/// Measures, and leaves nothing behind.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    super::report(measure(args), args.output, ToString::to_string, out)
}

async fn measure(args: &Args) -> anyhow::Result<report::Report> {
    let access = crate::run::access(args.kubeconfig.as_deref()).await?;
    let client = kube::Client::try_from(access).context("cannot set up a client")?;
    let site = Site::begin(client).await?;
    let measured = match &args.part {
        Part::Wakeup(part) => wakeup::measure(&site, part).await,
        Part::Gangs(part) => load::measure(&site, part).await,
        Part::Bind(part) => bind::measure(&site, part).await,
        Part::Memory(part) => memory::measure(&site, part, args.kubeconfig.as_deref()).await,
        Part::Undo(part) => undo::measure(&site, part).await,
        Part::Restart(part) => restart::measure(&site, part, args.kubeconfig.as_deref(), args.keep).await,
    };
    if args.keep {
        return measured;
    }
    // Also after a failure; that one is the one to tell of.
    let cleared = site.clear().await;
    let report = measured?;
    cleared?;
    Ok(report)
}
