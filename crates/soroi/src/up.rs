//! `soroi up`: a Kubernetes API on this machine, with simulated nodes and Soroi in it.
//!
//! Knows how the embedded cluster comes onto a socket, and what it begins with. Must never know what
//! the API answers or what is decided.

mod command;
mod files;
mod kubeconfig;
mod lease;
mod nodes;
mod secure;

use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, bail, ensure};
use futures::FutureExt as _;
use soroi_apiserver::serve::{Door, serve};
use soroi_clock::Clock;
use soroi_embedded::{Embedded, Options};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::run::Stop;
use crate::run::config::{self, Configuration, Placement};
use kubeconfig::Written;
use nodes::Wanted;

/// Arguments of `soroi up`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many nodes there are at first [default: 2, or those of `--load`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    nodes: Option<u32>,
    /// GPUs of each of these nodes, as `example.com/gpu`
    #[arg(long, value_name = "N", default_value_t = 2)]
    gpus: u32,
    /// Manifests that are there from the start, in this order: nodes with their status, queues, jobs
    #[arg(long, value_name = "FILE", num_args = 1..)]
    load: Vec<PathBuf>,
    /// Settings, as `soroi run` takes them; what concerns its own process (requests, http, webhooks) is left aside
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The placement policy of queues that name none [default: that of `--config`, or Unified]
    #[arg(long, value_enum, ignore_case = true, value_name = "POLICY")]
    placement: Option<Placement>,
    /// How fast the cluster's time runs, e.g. `60x`: a minute in a second. Ages that kubectl reckons by
    /// its own clock are then wrong
    #[arg(long, value_name = "FACTOR", default_value = "1x", value_parser = pace)]
    pace: u32,
    /// Where to listen [default: a free port]
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    port: u16,
    /// Listen on another address than loopback, under TLS: whoever reaches it and has the token may do
    /// everything in this cluster
    #[arg(long, value_name = "ADDRESS", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST), requires = "token_file")]
    address: IpAddr,
    /// A file with the token that clients must show
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Where to write the kubeconfig [default: a file of its own, removed at the end]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Run this command with `KUBECONFIG` set, then end with its exit status
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

fn pace(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('x').unwrap_or(text).parse().ok();
    number.filter(|n| (1..=100_000).contains(n)).ok_or_else(|| "a factor such as `60x`, up to 100000x".into())
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    crate::run::start_quiet_log();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let ended = runtime.block_on(up(args, out));
    // The cluster's parts hold nothing that would have to be put away.
    runtime.shutdown_background();
    ended
}

async fn up(args: &Args, out: &mut dyn Write) -> anyhow::Result<ExitCode> {
    let loaded = files::read(&args.load)?;
    let configuration = configuration(args)?;
    let wanted = Wanted::new(args.nodes, args.gpus, &loaded);
    let mut stop = Stop::new()?;
    let clock = Clock::scaled(args.pace);
    let embedded = Embedded::new(clock.clone(), Options { seed: seed(), ..Options::default() });
    let (listener, address) = listen(args).await?;
    let token = args.token_file.as_deref().map(secure::token).transpose()?;
    let door = match &token {
        Some(token) => Door::guarded(embedded.service(), token),
        None => Door::open(embedded.service()),
    };
    let mut parts: JoinSet<&'static str> = JoinSet::new();
    // Clients send a token under TLS only, so one goes with the other.
    let authority = if token.is_none() {
        ensure!(address.ip().is_loopback(), "{} can be reached by others: give a --token-file", address.ip());
        let served = serve(listener, door, clock.clone());
        parts.spawn(served.map(|()| "the server"));
        None
    } else {
        let (authority, acceptor) = secure::certificate(address.ip(), clock.now())?;
        let served = secure::serve(listener, door, acceptor, clock.clone());
        parts.spawn(served.map(|()| "the server"));
        Some(authority)
    };
    let written = Written::new(args.kubeconfig.as_deref(), address, token.as_deref(), authority.as_deref())?;
    let client = embedded.client();
    lease::take(&client, &clock, &configuration.leader_election).await?;
    start_parts(&embedded, &configuration, &clock, &mut parts);
    let prepared = async {
        nodes::create(&client, &wanted).await?;
        files::load(&client, loaded).await?;
        nodes::ready(&client).await
    };
    let count = tokio::select! {
        biased;
        () = stop.asked() => return Ok(ExitCode::SUCCESS),
        part = parts.join_next() => bail!("{} ended by itself", part_name(part)),
        count = prepared => count?,
    };
    let running = async {
        match args.command.split_first() {
            Some((program, words)) => command::run(program, words, written.path(), &mut stop).await,
            None => {
                say(out, address, count, written.path(), authority.is_some())?;
                stop.asked().await;
                Ok(ExitCode::SUCCESS)
            }
        }
    };
    tokio::select! {
        biased;
        part = parts.join_next() => bail!("{} ended by itself", part_name(part)),
        ended = running => ended,
    }
}

/// What is configured; what the command line says comes before what the file says.
fn configuration(args: &Args) -> anyhow::Result<Configuration> {
    let mut configuration = args.config.as_deref().map(config::read).transpose()?.unwrap_or_default();
    configuration.placement = args.placement.unwrap_or(configuration.placement);
    Ok(configuration)
}

fn part_name(part: Option<Result<&'static str, tokio::task::JoinError>>) -> &'static str {
    part.and_then(Result::ok).unwrap_or("a part of the cluster")
}

/// Another one each time, so that names which a user saw before are not given out again.
fn seed() -> u64 {
    u64::from(std::process::id())
}

async fn listen(args: &Args) -> anyhow::Result<(TcpListener, SocketAddr)> {
    let wanted = SocketAddr::new(args.address, args.port);
    let listener = TcpListener::bind(wanted)
        .await
        .with_context(|| format!("cannot listen on {wanted} (without --port a free one is taken)"))?;
    let address = listener.local_addr()?;
    Ok((listener, address))
}

fn start_parts(
    embedded: &Embedded,
    configuration: &Configuration,
    clock: &Clock,
    parts: &mut JoinSet<&'static str>,
) {
    parts.spawn(embedded.run_cluster().map(|()| "the simulated cluster"));
    let config = configuration.control(1, true, "soroi-0");
    let control = soroi_control::run(embedded.client(), clock.clone(), config);
    parts.spawn(async move {
        if let Err(error) = control.await {
            tracing::error!(%error, "Soroi's control ended");
        }
        "Soroi's control"
    });
}

/// Tells what is there, and the line that a shell needs.
fn say(
    out: &mut dyn Write,
    address: SocketAddr,
    nodes: usize,
    kubeconfig: &std::path::Path,
    secure: bool,
) -> anyhow::Result<()> {
    let scheme = if secure { "https" } else { "http" };
    let plural = if nodes == 1 { "" } else { "s" };
    writeln!(out, "A cluster of {nodes} simulated node{plural}, with Soroi in it, at {scheme}://{address}")?;
    writeln!(out, "Its state lives in memory: it is gone when this command ends (Ctrl-C).")?;
    writeln!(out)?;
    writeln!(out, "export KUBECONFIG={}", kubeconfig.display())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests;
