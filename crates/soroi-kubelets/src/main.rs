//! Kubelets for a real control plane that has none: every node is served, pods run and end.
//!
//! The same simulated kubelets that the embedded cluster has (`soroi_cluster`), through a
//! kubeconfig. Nodes and pods direct them by the annotations of `soroi_cluster::annotation`. For
//! tests and for trying things out; `cargo xtask kubernetes up` starts it.
//!
//! Knows how to reach a cluster. It must never know what a kubelet does.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use soroi_clock::Clock;
use soroi_cluster::Options;
use tracing_subscriber::EnvFilter;

/// Plays the kubelet of every node of a cluster, for tests.
#[derive(Debug, Parser)]
#[command(name = "soroi-kubelets", version)]
struct Args {
    /// How to reach the cluster, and as whom
    #[arg(long)]
    kubeconfig: PathBuf,
    /// How often a node's lease is renewed, in seconds
    #[arg(long, default_value_t = 20)]
    heartbeat_secs: u64,
}

#[tokio::main]
async fn main() -> ExitCode {
    let args = Args::parse();
    let filter =
        EnvFilter::builder().with_default_directive(tracing_subscriber::filter::LevelFilter::INFO.into());
    tracing_subscriber::fmt().with_env_filter(filter.from_env_lossy()).with_writer(std::io::stderr).init();
    match run(&args).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(args: &Args) -> anyhow::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .map_err(|_| anyhow::anyhow!("another crypto provider is installed already"))?;
    let file = Kubeconfig::read_from(&args.kubeconfig)
        .with_context(|| format!("cannot read {}", args.kubeconfig.display()))?;
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{} names no usable cluster", args.kubeconfig.display()))?;
    let client = kube::Client::try_from(config).context("cannot set up a client")?;
    let heartbeat = Duration::from_secs(args.heartbeat_secs);
    let options = Options { heartbeat, ..Options::kubelets_only() };
    soroi_cluster::run(client, Clock::real(), options).await;
    anyhow::bail!("the kubelets ended by themselves")
}
