//! How soon does a Soroi that starts anew decide, on a cluster full of gangs that are decided?

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::future::try_join;
use jiff::Timestamp;
use serde_json::Value;

use super::eyes::{Eyes, Seen};
use super::objects::{self, GROUPS, Gang, PLANS, PODS};
use super::product::Soroi;
use super::report::{Report, Row};
use super::site::Site;
use crate::bench::number;
use crate::show::grouped;

/// How long it may take until all gangs run, or the new one.
const PATIENCE: Duration = Duration::from_secs(900);
/// How long the cluster is left alone before Soroi is killed: whatever is on its way is written then.
const REST: Duration = Duration::from_secs(3);
/// How often it is looked whether the new gang is decided.
const LOOK: Duration = Duration::from_millis(2);
/// Within so many seconds of the last list.
const SECONDS_MAX: f64 = 3.0;
/// The batch of the gangs that run, and the gang that comes while nobody looks.
const RUNNING: &str = "running";
const NEW: &str = "new";

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many gangs run
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    gangs: u32,
    /// Pods of each
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pods: u32,
    /// Nodes that they are on
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: u32,
    /// How often Soroi is started anew
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
    /// Creations under way at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
}

/// Measures it.
pub(super) async fn measure(
    site: &Site,
    args: &Args,
    kubeconfig: Option<&Path>,
    keep: bool,
) -> anyhow::Result<Report> {
    if let Some(leader) = site.leader().await? {
        bail!("{leader} leads on this cluster; stop it first, or it decides what a new one should");
    }
    let (gangs, size) = (args.gangs as usize, args.pods as usize);
    // Room for one gang more.
    let per_node = ((gangs + 1) * size).div_ceil(args.nodes as usize);
    ensure!(per_node <= 150, "{} pods are too many for {} nodes", gangs * size, args.nodes);
    site.nodes(args.nodes as usize, u32::try_from(per_node)?).await?;
    // Silent kubelets leave the pods as they are: bound, and nothing else happens to them.
    site.silence(args.nodes as usize, true).await?;
    let mut bench = Bench { site, eyes: site.eyes().await?, kubeconfig, args };
    bench.fill().await?;
    let mut samples = Vec::new();
    for round in 1..=args.rounds {
        let sample = bench.round(round == args.rounds && !keep).await?;
        eprintln!("start {round}: decided {:.2} s after the last list", sample.decided);
        samples.push(sample);
    }
    let of = |value: fn(&Sample) -> f64| samples.iter().map(value).collect::<Vec<_>>();
    let mut decided =
        Row::of("decision", "the first new decision is written down", "s", &of(|sample| sample.decided));
    let met = decided.worst < SECONDS_MAX;
    decided.aim(format!("< {}", number(SECONDS_MAX)), met);
    let bound = Row::of("bound", "the last pod of that gang is bound", "s", &of(|sample| sample.bound));
    let lists = Row::of(
        "lists",
        "for comparison: from the beginning of its term to its last list",
        "s",
        &of(|one| one.lists),
    );
    let size = format!("{} gangs and {} pods", grouped(gangs as u64), grouped((gangs * size) as u64));
    Ok(Report {
        benchmark: "restart",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks: vec![format!(
            "{size} are decided and bound, kubelets silent. Soroi is killed, a gang comes, and Soroi is started anew. \
             Counted from the end of its last list, by its own log."
        )],
        rows: vec![decided, bound, lists],
    })
}

/// One start: seconds from the end of the last list.
struct Sample {
    decided: f64,
    bound: f64,
    /// From the beginning of the term to the last list.
    lists: f64,
}

struct Bench<'a> {
    site: &'a Site,
    eyes: Eyes,
    kubeconfig: Option<&'a Path>,
    args: &'a Args,
}

impl Bench<'_> {
    /// Has all gangs run, and leaves them without a Soroi.
    async fn fill(&mut self) -> anyhow::Result<()> {
        let (site, gangs, size) = (self.site, self.args.gangs as usize, self.args.pods as usize);
        let soroi = Soroi::start(self.kubeconfig)?;
        let bound = |seen: &Seen| seen.batch(RUNNING).bound.len() == gangs * size;
        let created = site.create_all(gangs_of(gangs, size), self.args.in_flight as usize);
        try_join(created, self.eyes.until("all gangs run", PATIENCE, bound)).await?;
        eprintln!("{gangs} gangs of {size} pods run");
        site.clock.sleep(REST).await;
        drop(soroi);
        let plans = site.count(PLANS).await?;
        ensure!(plans == gangs, "there are {plans} GangPlans for {gangs} gangs");
        Ok(())
    }

    /// A gang comes, and Soroi is started. `clear`: all gangs go at the end, while somebody can let go of them.
    async fn round(&mut self, clear: bool) -> anyhow::Result<Sample> {
        let (site, size) = (self.site, self.args.pods as usize);
        let group = site.create(GROUPS, &objects::group(NEW, size)).await?;
        site.create_all(members(NEW, NEW, size), self.args.in_flight as usize).await?;
        let soroi = Soroi::start(self.kubeconfig)?;
        let plan_at = first_seen(site, &group).await?;
        let all = |seen: &Seen| seen.batch(NEW).bound.len() == size;
        self.eyes.until("the new gang runs", PATIENCE, all).await?;
        let ran_at = site.clock.now();
        let listed = soroi.listed_at()?.into_iter().filter(|at| *at <= plan_at);
        let times = soroi.began_at()?.zip(listed.max());
        let (began, last) = times.context("its log does not say what was listed")?;
        if clear {
            site.delete(GROUPS).await?;
            site.delete(PODS).await?;
            site.wait("Soroi has let go of the gangs", async || Ok(site.count(PLANS).await? == 0)).await?;
            soroi.end()?;
        } else {
            drop(soroi);
        }
        site.delete(&format!("{GROUPS}/{NEW}")).await?;
        site.delete(&format!("{PODS}?labelSelector={}={NEW}", objects::BATCH)).await?;
        let none = |seen: &Seen| seen.batch(NEW).there.is_empty();
        self.eyes.until("its pods are gone", PATIENCE, none).await?;
        self.eyes.seen.forget(NEW);
        let after = |from: Timestamp, to: Timestamp| to.duration_since(from).as_secs_f64();
        Ok(Sample { decided: after(last, plan_at), bound: after(last, ran_at), lists: after(began, last) })
    }
}

/// When the plan of a group is there.
async fn first_seen(site: &Site, group: &Value) -> anyhow::Result<Timestamp> {
    let uid = group["metadata"]["uid"].as_str().context("a group has a uid")?;
    let path = format!("{PLANS}/{uid}");
    let began = site.clock.now();
    while site.find(&path).await?.is_none() {
        let waited = site.clock.now().duration_since(began).unsigned_abs();
        ensure!(waited < PATIENCE, "the new gang was not decided within {PATIENCE:?}");
        site.clock.sleep(LOOK).await;
    }
    Ok(site.clock.now())
}

/// Each group before its pods.
fn gangs_of(gangs: usize, size: usize) -> impl Iterator<Item = (&'static str, Value)> {
    (0..gangs).flat_map(move |at| {
        let group = format!("{RUNNING}-{at:04}");
        let pods = members(&group, RUNNING, size);
        std::iter::once((GROUPS, objects::group(&group, size))).chain(pods)
    })
}

fn members(group: &str, batch: &str, size: usize) -> Vec<(&'static str, Value)> {
    let gang = Gang::Soroi(group.to_owned());
    (0..size).map(|at| (PODS, objects::pod(&format!("{group}-{at:03}"), batch, &gang))).collect()
}
