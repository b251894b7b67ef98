//! How many pods are bound in a second, when nothing else has to be done?

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};

use super::eyes::{Eyes, Seen};
use super::objects::{self, GROUPS, Gang, PLANS, PODS};
use super::report::{Report, Row};
use super::site::Site;
use crate::bench::number;
use crate::show::grouped;

const PATIENCE: Duration = Duration::from_secs(120);
/// How long the cluster is left alone before it begins.
const REST: Duration = Duration::from_secs(1);
/// The share of the loop's rate that is aimed at.
const SHARE: f64 = 0.8;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pods of the gang
    #[arg(long, default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(2..=20_000))]
    pods: u32,
    /// Nodes that they go to
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: u32,
    /// How often each rival has its turn
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Bindings that the loop has under way at once; Soroi: `requests.inFlight`
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rival {
    Bare,
    Soroi,
}

/// Measures it.
pub(super) async fn measure(site: &Site, args: &Args) -> anyhow::Result<Report> {
    site.needs_leader().await?;
    let gpus = args.pods.div_ceil(args.nodes);
    anyhow::ensure!(gpus <= 150, "{} pods are too many for {} nodes", args.pods, args.nodes);
    site.nodes(args.nodes as usize, gpus).await?;
    let mut bench = Bench { site, eyes: site.eyes().await?, args };
    let (mut bare, mut soroi) = (Vec::new(), Vec::new());
    for round in 1..=args.rounds {
        bare.push(bench.round(Rival::Bare, round).await?);
        soroi.push(bench.round(Rival::Soroi, round).await?);
    }
    let pods = grouped(u64::from(args.pods));
    let bare = Row::rate("bare", format!("bind {pods} pods: a loop"), "binds/s", &bare);
    let mut soroi = Row::rate("soroi", format!("bind {pods} pods: Soroi"), "binds/s", &soroi);
    let least = SHARE * bare.median;
    soroi.aim(format!("median ≥ {}", number(least)), soroi.median >= least);
    Ok(Report {
        benchmark: "bind",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks: vec![format!(
            "{} bindings under way at once in the loop; between the first and the last bind that the watch shows; \
             kubelets silent.",
            args.in_flight
        )],
        rows: vec![bare, soroi],
    })
}

struct Bench<'a> {
    site: &'a Site,
    eyes: Eyes,
    args: &'a Args,
}

impl Bench<'_> {
    async fn round(&mut self, rival: Rival, round: u32) -> anyhow::Result<f64> {
        let word = if rival == Rival::Bare { "bare" } else { "soroi" };
        let batch = format!("{word}-{round}");
        let rate = self.play(rival, &batch).await.with_context(|| format!("in the round {batch}"))?;
        eprintln!("{batch}: {rate:.0} binds/s");
        Ok(rate)
    }

    async fn play(&mut self, rival: Rival, batch: &str) -> anyhow::Result<f64> {
        let (site, count) = (self.site, self.args.pods as usize);
        let gang = if rival == Rival::Soroi { Gang::Soroi(batch.to_owned()) } else { Gang::None };
        let pods = (0..count).map(|at| (PODS, objects::pod(&format!("{batch}-{at:05}"), batch, &gang)));
        let there = |seen: &Seen| seen.batch(batch).there.len() == count;
        let looked = self.eyes.until("the pods are there", PATIENCE, there);
        try_join(site.create_all(pods, 64), looked).await?;
        site.silence(self.args.nodes as usize, true).await?;
        // Whatever the creation has set off comes to rest.
        site.clock.sleep(REST).await;
        let pods = self.eyes.seen.batch(batch).there.clone();
        let begun = async {
            match rival {
                Rival::Soroi => site.create(GROUPS, &objects::group(batch, count)).await.map(|_| ()),
                Rival::Bare => bind_all(site, self.args, &pods).await,
            }
        };
        let bound = |seen: &Seen| seen.batch(batch).bound.len() == count;
        try_join(begun, self.eyes.until("the pods are bound", PATIENCE, bound)).await?;
        let (first, last) = self.eyes.seen.batch(batch).first_and_last().context("they are bound")?;
        site.silence(self.args.nodes as usize, false).await?;
        self.sweep(batch).await?;
        Ok((count - 1) as f64 / last.duration_since(first).as_secs_f64())
    }

    async fn sweep(&mut self, batch: &str) -> anyhow::Result<()> {
        let site = self.site;
        site.delete(GROUPS).await?;
        let none = |seen: &Seen| seen.batch(batch).there.is_empty();
        try_join(site.delete(PODS), self.eyes.until("the pods are gone", PATIENCE, none)).await?;
        self.eyes.seen.forget(batch);
        site.wait("Soroi has let go of the gang", async || Ok(site.count(PLANS).await? == 0)).await
    }
}

/// Node by node, as Soroi fills them.
async fn bind_all(site: &Site, args: &Args, pods: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let per_node = args.pods.div_ceil(args.nodes) as usize;
    let each = pods.iter().enumerate().map(|(at, (pod, uid))| site.bind(pod, uid, at / per_node + 1));
    stream::iter(each).buffer_unordered(args.in_flight as usize).try_collect::<()>().await
}
