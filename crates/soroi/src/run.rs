//! The product on a cluster: `soroi run`.
//!
//! ```text
//! configuration ──▶ install ──▶ elect ──▶ lead: soroi_control on a fenced client
//!                                  │         (again after every loss of leadership)
//!                                  ├──▶ admission: do pods of a release get our scheduler?
//!                                  ├──▶ rivals: do Kueue or Volcano run here?
//!                                  ├──▶ webhooks: admission and conversion over HTTPS
//!                                  └──▶ health, readiness, metrics over HTTP
//! ```
//!
//! Knows how the parts are wired, started and stopped. Must never know what is decided.

pub(crate) mod admission;
pub(crate) mod apply;
pub(crate) mod config;
pub(crate) mod install;
mod lead;
mod metrics;
pub(crate) mod rivals;
mod serve;
pub(crate) mod webhooks;

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use kube::config::{KubeConfigOptions, Kubeconfig};
use soroi_clock::Clock;
use soroi_control::lease::Standing;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tracing_subscriber::EnvFilter;

use config::Configuration;
use metrics::Metrics;
use rivals::Rivals;

/// Arguments of `soroi run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How to reach the cluster, and as whom [default: as kubectl does, or as the pod that this is]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Settings: a `soroi.dev/v1alpha1` Configuration in YAML [default: those of an empty one]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Whether to create what Soroi needs on the cluster: resource definitions, a namespace for its
    /// lease, admission policies
    #[arg(long, value_enum, default_value_t, value_name = "WHEN")]
    install: Install,
    /// How messages are written to standard error
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    log: Log,
}

/// When something is created on the cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Install {
    /// What is missing or old, at start
    #[default]
    Auto,
    /// Nothing; somebody else has done it
    Never,
}

/// How messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Log {
    /// A line for people
    #[default]
    Text,
    /// A JSON object per line
    Json,
}

/// Runs until a signal ends it.
pub(crate) fn run(args: &Args) -> anyhow::Result<ExitCode> {
    start_log(args.log);
    let configuration = match &args.config {
        Some(path) => config::read(path)?,
        None => Configuration::default(),
    };
    install_crypto()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(run_on(args, configuration));
    // What still runs then waits for nothing that matters.
    runtime.shutdown_background();
    ended.map(|()| ExitCode::SUCCESS)
}

/// TLS needs to know whose cryptography it uses; once per process.
pub(crate) fn install_crypto() -> anyhow::Result<()> {
    let provider = rustls::crypto::ring::default_provider();
    provider.install_default().map_err(|_| anyhow::anyhow!("another crypto provider is installed already"))
}

/// Only what goes wrong, for commands that a person sits in front of.
pub(crate) fn start_quiet_log() {
    start_log_at(Log::Text, tracing_subscriber::filter::LevelFilter::WARN);
}

fn start_log(log: Log) {
    start_log_at(log, tracing_subscriber::filter::LevelFilter::INFO);
}

fn start_log_at(log: Log, level: tracing_subscriber::filter::LevelFilter) {
    let filter = EnvFilter::builder().with_default_directive(level.into()).from_env_lossy();
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    match log {
        Log::Text => builder.init(),
        Log::Json => builder.json().flatten_event(true).init(),
    }
}

async fn run_on(args: &Args, configuration: Configuration) -> anyhow::Result<()> {
    let clock = Clock::real();
    let access = access(args.kubeconfig.as_deref()).await?;
    tracing::info!(server = %access.cluster_url, version = env!("CARGO_PKG_VERSION"), "starting");
    let client = kube::Client::try_from(access.clone()).context("cannot set up a client")?;
    let metrics = Arc::new(Metrics::default());
    let (tell_standing, standing) = watch::channel(Standing::Following(None));
    let (tell_webhooks, answered) = watch::channel(configuration.webhooks.is_none());
    let state = serve::State {
        metrics: Arc::clone(&metrics),
        standing: standing.clone(),
        webhooks: answered,
        clock: clock.clone(),
    };
    let (address, served) = serve::serve(configuration.http.bind_address, state.clone()).await?;
    tracing::info!(%address, "health, readiness and metrics are served");

    let mut stop = Stop::new()?;
    let prepared = async {
        rivals::refuse_beside_kueue(&client, &clock).await?;
        if args.install == Install::Auto {
            install::install(&client, &clock, &configuration).await?;
        }
        anyhow::Ok(())
    };
    tokio::select! {
        biased;
        () = stop.asked() => return Ok(()),
        prepared = prepared => prepared?,
    }
    state.metrics.prepared();

    let (tell_admission, admission) = watch::channel(false);
    let (tell_rivals, rivals) = watch::channel(Rivals { volcano: true });
    let mut parts: JoinSet<anyhow::Result<()>> = JoinSet::new();
    parts.spawn(served);
    if let Some(settings) = configuration.webhooks.clone() {
        let (address, server) = webhooks::Server::bind(
            client.clone(),
            clock.clone(),
            &configuration,
            settings,
            Arc::clone(&metrics),
            tell_webhooks,
        )
        .await?;
        tracing::info!(%address, "webhooks are served");
        parts.spawn(server.run());
    }
    let namespace = configuration.leader_election.namespace.clone();
    parts.spawn(admission::watch(
        client.clone(),
        clock.clone(),
        namespace,
        tell_admission,
        Arc::clone(&metrics),
    ));
    parts.spawn(rivals::watch(client, clock.clone(), tell_rivals));
    let mut leader = lead::Leader { access, clock, configuration, metrics, admission, rivals, standing };
    let elected = leader.elect(tell_standing)?;
    let ended = tokio::select! {
        biased;
        ended = parts.join_next() => match ended {
            Some(ended) => ended?,
            None => Ok(()),
        },
        ended = leader.lead(&mut stop) => ended,
    };
    elected.resign().await;
    ended
}

/// How the cluster is reached.
pub(crate) async fn access(kubeconfig: Option<&std::path::Path>) -> anyhow::Result<kube::Config> {
    let Some(path) = kubeconfig else {
        return kube::Config::infer().await.map_err(|error| {
            // Its own text has the cause in it, which would be said twice.
            let cause = std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
            anyhow::anyhow!(
                "no cluster is configured; give one with --kubeconfig FILE, or set KUBECONFIG ({cause})"
            )
        });
    };
    let file = Kubeconfig::read_from(path).with_context(|| format!("cannot read {}", path.display()))?;
    kube::Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
        .await
        .with_context(|| format!("{} names no usable cluster", path.display()))
}

/// The signals that ask us to end.
pub(crate) struct Stop {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    pub(crate) fn new() -> anyhow::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    /// Waits for one of them.
    pub(crate) async fn asked(&mut self) {
        tokio::select! {
            biased;
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits for the one that no key on a keyboard sends.
    pub(crate) async fn terminated(&mut self) {
        self.terminate.recv().await;
    }
}
