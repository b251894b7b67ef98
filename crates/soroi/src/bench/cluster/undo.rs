//! How soon is a large gang gone that has to leave?

use std::time::Duration;

use anyhow::Context as _;
use futures::future::try_join;
use serde_json::{Value, json};

use super::eyes::{self, Eyes, Seen};
use super::objects::{self, GROUPS, Gang, JOBS, NAME, PLANS, PODS, WORKLOADS};
use super::report::{Report, Row};
use super::site::Site;
use crate::bench::number;
use crate::show::grouped;

/// How long it may take until all pods run.
const PATIENCE: Duration = Duration::from_secs(300);
/// How long the cluster is left alone before the gang is switched off.
const REST: Duration = Duration::from_secs(2);
/// Within so many seconds.
const SECONDS_MAX: f64 = 5.0;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Pods of the gang
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=20_000))]
    pods: u32,
    /// Nodes that they are on
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    nodes: u32,
    /// How often each kind of gang has its turn
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// What the gang is made of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A Job: Soroi suspends it, and kube-controller-manager deletes its pods.
    Job,
    /// A PodGroup of pods: Soroi deletes them.
    Group,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Self::Job => "job",
            Self::Group => "group",
        }
    }
}

/// Measures it.
pub(super) async fn measure(site: &Site, args: &Args) -> anyhow::Result<Report> {
    site.needs_leader().await?;
    let per_node = args.pods.div_ceil(args.nodes);
    anyhow::ensure!(per_node <= 150, "{} pods are too many for {} nodes", args.pods, args.nodes);
    site.nodes(args.nodes as usize, per_node).await?;
    for (collection, object) in objects::queues(args.pods as usize) {
        site.create(collection, &object).await?;
    }
    let mut bench = Bench { site, eyes: site.eyes().await?, pods: args.pods as usize };
    let mut rows = Vec::new();
    let pods = grouped(u64::from(args.pods));
    for (kind, what) in [
        (
            Kind::Job,
            format!("a Job of {pods} pods: suspended, its pods gone, its quota back, no record left"),
        ),
        (Kind::Group, format!("a PodGroup of {pods} pods: evicted, its quota back, no record left")),
    ] {
        let mut samples = Vec::new();
        for round in 1..=args.rounds {
            let batch = format!("{}-{round}", kind.word());
            let took = bench.round(kind, &batch).await.with_context(|| format!("in the round {batch}"))?;
            eprintln!("{batch}: {took:.2?}");
            samples.push(took.as_secs_f64());
        }
        let mut row = Row::of(kind.word(), what, "s", &samples);
        let met = row.worst < SECONDS_MAX;
        row.aim(format!("< {}", number(SECONDS_MAX)), met);
        rows.push(row);
    }
    Ok(Report {
        benchmark: "undo",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks: vec![
            "From the patch that sets its Workload's spec.active to false to the deletion of its GangPlan, which is \
             the last of it; grace period 0, kubelets answer at once."
                .to_owned(),
        ],
        rows,
    })
}

struct Bench<'a> {
    site: &'a Site,
    eyes: Eyes,
    pods: usize,
}

impl Bench<'_> {
    async fn round(&mut self, kind: Kind, batch: &str) -> anyhow::Result<Duration> {
        let (site, count) = (self.site, self.pods);
        let created = async {
            match kind {
                Kind::Job => site.create(JOBS, &objects::job(batch, count, true)).await.map(|_| ()),
                Kind::Group => {
                    let mut group = objects::group(batch, count);
                    group["metadata"]["labels"] = json!({ "kueue.x-k8s.io/queue-name": NAME });
                    site.create(GROUPS, &group).await?;
                    let gang = Gang::Soroi(batch.to_owned());
                    let pods =
                        (0..count).map(|at| (PODS, objects::pod(&format!("{batch}-{at:05}"), batch, &gang)));
                    site.create_all(pods, 64).await
                }
            }
        };
        let run = |seen: &Seen| seen.batch(batch).running.len() == count;
        try_join(created, self.eyes.until("all pods run", PATIENCE, run)).await?;
        site.clock.sleep(REST).await;
        let list = site.find(WORKLOADS).await?.unwrap_or_default();
        let name = list["items"][0]["metadata"]["name"].as_str().context("it has a Workload")?.to_owned();
        let workload = format!("{WORKLOADS}/{name}");
        let began = eyes::now();
        site.patch(&workload, "merge-patch", &json!({ "spec": { "active": false } })).await?;
        site.wait("nothing is left of the admission", async || Ok(site.count(PLANS).await? == 0)).await?;
        let took = eyes::now().duration_since(began);
        self.is_undone(kind, batch, &workload).await?;
        self.sweep(kind, batch).await?;
        Ok(took)
    }

    /// Whether all of it is taken back, as the record's end says.
    async fn is_undone(&mut self, kind: Kind, batch: &str, workload: &str) -> anyhow::Result<()> {
        let site = self.site;
        let none = |seen: &Seen| seen.batch(batch).there.is_empty();
        self.eyes.until("its pods are gone", Duration::from_secs(1), none).await?;
        let workload = site.find(workload).await?.unwrap_or_default();
        anyhow::ensure!(workload["status"]["admission"].is_null(), "it still has its quota: {workload}");
        if kind == Kind::Job {
            let job = site.find(&format!("{JOBS}/{batch}")).await?.unwrap_or_default();
            anyhow::ensure!(is_at_rest(&job), "its Job is not as it was: {}", job["status"]);
        }
        Ok(())
    }

    async fn sweep(&mut self, kind: Kind, batch: &str) -> anyhow::Result<()> {
        let site = self.site;
        match kind {
            Kind::Job => site.delete(&format!("{JOBS}/{batch}")).await?,
            Kind::Group => site.delete(&format!("{GROUPS}/{batch}")).await?,
        }
        self.eyes.seen.forget(batch);
        site.wait("its Workload is gone", async || Ok(site.count(WORKLOADS).await? == 0)).await
    }
}

/// Suspended, without active pods, and without the node labels of a flavor.
fn is_at_rest(job: &Value) -> bool {
    job["spec"]["suspend"] == true
        && job["status"]["active"].as_u64().unwrap_or(0) == 0
        && job["spec"]["template"]["spec"]["nodeSelector"].is_null()
}
