//! How fast is `soroi up`? Ready, creating over loopback while somebody watches, and showing it all.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::AsyncBufReadExt as _;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use http::Request;
use kube::Client;
use serde::Deserialize;
use soroi_apiserver::serve::{Door, serve};
use soroi_clock::Clock;
use soroi_embedded::{Embedded, Options};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use super::{Figure, spread};
use crate::Output;
use crate::show::grouped;

/// Tasks that create side by side: more than processors would only take each other's time.
const CREATORS: u32 = 4;
/// Requests that each of them has under way.
const IN_FLIGHT: usize = 16;
/// The page that kubectl asks for.
const PAGE: u32 = 500;
const PATIENCE: Duration = Duration::from_secs(120);
const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pods that are created and shown
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pods: u32,
    /// How often each measurement is repeated
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Show as many pods of this cluster, too; they must be in its namespace `default`
    #[arg(long, value_name = "KUBECONFIG")]
    beside: Option<PathBuf>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    pub(super) output: Output,
}

impl Args {
    /// How often each measurement is repeated.
    pub(super) fn rounds(&self) -> u32 {
        self.rounds
    }
}

/// Measures it.
pub(super) fn measure(args: &Args) -> anyhow::Result<Vec<Figure>> {
    let (mut ready, mut created, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..args.rounds {
        ready.push(until_ready()?);
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut beside = Vec::new();
    if let Some(path) = &args.beside {
        crate::run::install_crypto()?;
        let config = runtime.block_on(crate::run::access(Some(path)))?;
        let client = runtime.block_on(async { Client::try_from(config) })?;
        for _ in 0..args.rounds {
            beside.push(runtime.block_on(show(&client, args.pods))?);
        }
    }
    for _ in 0..args.rounds {
        let (rate, millis) = runtime.block_on(on_loopback(args.pods))?;
        created.push(rate);
        shown.push(millis);
    }
    let pods = grouped(u64::from(args.pods));
    let mut figures = vec![
        Figure::of("ready", "soroi up -- true, from start to end".into(), ("ms", false, 300.0), ready),
        Figure::of(
            "create",
            format!("create {pods} pods over loopback, one watcher"),
            ("pods/s", true, 10_000.0),
            created,
        ),
    ];
    if !beside.is_empty() {
        let (real, ..) = spread(beside, false);
        let what = format!("get {pods} pods, in pages as kubectl");
        figures.push(Figure::of("get", what, ("ms", false, real * 1.5), shown));
    }
    Ok(figures)
}

#[allow(clippy::disallowed_methods, reason = "it measures real time")]
fn now() -> Instant {
    Instant::now()
}

/// Milliseconds of a whole `soroi up` that runs nothing.
fn until_ready() -> anyhow::Result<f64> {
    let began = now();
    let status = Command::new(std::env::current_exe()?)
        .args(["up", "--", "true"])
        .stdin(Stdio::null())
        .status()
        .context("cannot start `soroi up`")?;
    ensure!(status.success(), "`soroi up -- true` failed");
    Ok(began.elapsed().as_secs_f64() * 1e3)
}

/// A fresh server on a socket: pods per second, and milliseconds to show them all.
async fn on_loopback(pods: u32) -> anyhow::Result<(f64, f64)> {
    let clock = Clock::real();
    let embedded = Embedded::new(clock.clone(), Options::default());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let mut server = JoinSet::new();
    server.spawn(serve(listener, Door::open(embedded.service()), clock.clone()));
    let uri = format!("http://{address}").parse().context("the server's own address")?;
    let client = Client::try_from(kube::Config::new(uri))?;
    let began = now();
    let watched = watch(client.clone(), pods);
    let watched = tokio::spawn(async move { clock.timeout(PATIENCE, watched).await });
    let mut creators = JoinSet::new();
    for creator in 0..CREATORS {
        let (client, mine) = (client.clone(), (creator..pods).step_by(CREATORS as usize));
        creators.spawn(create(client, mine.collect()));
    }
    while let Some(ended) = creators.join_next().await {
        ended??;
    }
    watched.await?.context("the watcher did not see all pods")??;
    let rate = f64::from(pods) / began.elapsed().as_secs_f64();
    let millis = show(&client, pods).await?;
    server.shutdown().await;
    Ok((rate, millis))
}

async fn create(client: Client, numbers: Vec<u32>) -> anyhow::Result<()> {
    let client = Arc::new(client);
    stream::iter(numbers)
        .map(|number| {
            let client = Arc::clone(&client);
            async move {
                let body = format!(
                    r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"pod-{number}"}},"spec":{{"schedulerName":"nobody","containers":[{{"name":"main","image":"trainer"}}]}}}}"#
                );
                let request = Request::post("/api/v1/namespaces/default/pods")
                    .header("content-type", "application/json")
                    .body(body.into_bytes())?;
                client.request_text(request).await?;
                anyhow::Ok(())
            }
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect()
        .await
}

/// Reads the events of so many new pods.
async fn watch(client: Client, pods: u32) -> anyhow::Result<()> {
    let request =
        Request::get("/api/v1/namespaces/default/pods?watch=1&resourceVersion=0").body(Vec::new())?;
    let mut lines = client.request_stream(request).await?.lines();
    for _ in 0..pods {
        lines.next().await.context("the watch ended early")??;
    }
    Ok(())
}

#[derive(Deserialize)]
struct Page {
    metadata: PageMetadata,
    rows: Vec<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct PageMetadata {
    #[serde(default, rename = "continue")]
    next: String,
}

/// Milliseconds until all pods are there as a table.
async fn show(client: &Client, pods: u32) -> anyhow::Result<f64> {
    let began = now();
    let (mut next, mut rows) = (String::new(), 0);
    loop {
        let path = format!("/api/v1/namespaces/default/pods?limit={PAGE}&continue={next}");
        let request = Request::get(path).header("accept", TABLE).body(Vec::new())?;
        let page: Page = serde_json::from_str(&client.request_text(request).await?)?;
        rows += page.rows.len();
        next = page.metadata.next;
        if next.is_empty() {
            break;
        }
    }
    ensure!(rows == pods as usize, "{rows} pods are there instead of {pods}");
    Ok(began.elapsed().as_secs_f64() * 1e3)
}
