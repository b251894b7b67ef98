//! `soroi explain`: why does it wait, and what would help?
//!
//! Knows arguments and how an answer is asked for. The answer is found by `soroi_control::snapshot`; how it
//! reads is known by `text` and `json`.

mod json;
mod text;

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use soroi_clock::Clock;
use soroi_control::snapshot::{Answer, Asked, Snapshot};

use crate::Output;
use crate::run::config::{self, Configuration};

/// Arguments of `soroi explain`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  soroi explain job/train
  soroi explain workload/job-train-3f2a1 --namespace team-a
  soroi explain pg/ring --output json
  kubectl get workloads | grep -v True     # whom to ask about

How to read it: a gang starts when one flavor has both quota and room for all of its pods. `nodes` are those that
take no pod beside the ones that fit, by reason. What would help is tried out, one change at a time; a change that
is not enough by itself is marked as such. The exit status is 1 when there is no such object.")]
pub(crate) struct Args {
    /// What to explain: job, workload (wl), podgroup (pg) or pod (po), a slash, and its name
    #[arg(value_name = "KIND/NAME", value_parser = object)]
    object: Object,
    /// The namespace of the object [default: that of the kubeconfig's context]
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// How to reach the cluster, and as whom [default: as kubectl does]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The settings of the Soroi that decides there: the file of `soroi run --config`
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// How the answer is written
    #[arg(long, short, value_enum, default_value_t, value_name = "FORMAT")]
    output: Output,
}

/// What is asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Object {
    kind: Asked,
    name: String,
}

/// How long the cluster may take to be listed. Thousands of pods take a second.
const PATIENCE: Duration = Duration::from_secs(30);

fn object(text: &str) -> Result<Object, String> {
    let (kind, name) = text.split_once('/').ok_or("must be KIND/NAME, such as job/train")?;
    // Names of resources may come with their group, as kubectl prints them.
    let kind = match kind.split('.').next().unwrap_or_default().to_ascii_lowercase().as_str() {
        "job" | "jobs" => Asked::Job,
        "workload" | "workloads" | "wl" => Asked::Workload,
        "podgroup" | "podgroups" | "pg" => Asked::PodGroup,
        "pod" | "pods" | "po" => Asked::Pod,
        other => return Err(format!("{other:?} is none of job, workload, podgroup and pod")),
    };
    match name {
        "" => Err("the name is missing".into()),
        name => Ok(Object { kind, name: name.to_owned() }),
    }
}

/// Reads, decides, shows.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    crate::run::start_quiet_log();
    let configuration = match &args.config {
        Some(path) => config::read(path)?,
        None => Configuration::default(),
    };
    crate::run::install_crypto()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (namespace, answer) = runtime.block_on(ask(args, &configuration))?;
    if answer == Answer::Missing {
        bail!("there is no {} {namespace}/{}", text::kind(args.object.kind), args.object.name);
    }
    let text = match args.output {
        Output::Table => text::page(args.object.kind, (&namespace, &args.object.name), &answer),
        Output::Json => json::page(args.object.kind, (&namespace, &args.object.name), &answer)?,
    };
    out.write_all(text.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

async fn ask(args: &Args, configuration: &Configuration) -> anyhow::Result<(String, Answer)> {
    let access = crate::run::access(args.kubeconfig.as_deref()).await?;
    let namespace = args.namespace.clone().unwrap_or_else(|| access.default_namespace.clone());
    let server = access.cluster_url.clone();
    let client = kube::Client::try_from(access).context("cannot set up a client")?;
    // Who cannot be reached should say so at once, not after the patience for long lists.
    client.apiserver_version().await.with_context(|| format!("cannot reach {server}"))?;
    let config = configuration.control(0, true, "explain");
    let snapshot = Snapshot::read(client, Clock::real(), &config, PATIENCE).await?;
    let answer = snapshot.explain(args.object.kind, &namespace, &args.object.name);
    Ok((namespace, answer))
}

#[cfg(test)]
mod tests;
