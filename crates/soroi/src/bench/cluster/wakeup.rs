//! How soon does a gang start when its place becomes free?

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use futures::future::try_join;
use serde_json::Value;

use super::bare::{self, Recipe};
use super::eyes::{Eyes, Seen};
use super::objects::{self, GROUPS, Gang, JOBS, NATIVE_GROUPS, PLANS, PODS, WORKLOADS};
use super::report::{Report, Row};
use super::site::Site;
use crate::bench::number;
use crate::run::admission;

/// Pods of the gang.
pub(super) const MEMBERS: usize = 4;
const NODES: usize = 2;
const GPUS_PER_NODE: u32 = 2;
/// How long anything of a round may take.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// kube-scheduler looks at a gang that did not fit no sooner than 1 s after it has tried: without a
/// pause longer than that its back-off would be measured.
const NATIVE_PAUSE: Duration = Duration::from_millis(1_500);
/// How many milliseconds Soroi may take beyond the bare client.
const BEYOND_BARE_MS: f64 = 3.0;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How often each rival has its turn
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,
    /// Who takes part
    #[arg(long, value_enum, value_delimiter = ',', default_values_t = Rival::value_variants().to_vec())]
    rivals: Vec<Rival>,
    /// How long the cluster is left alone before each event, in milliseconds
    #[arg(long, default_value_t = 300)]
    pause_ms: u64,
}

/// Who starts the gang.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
enum Rival {
    BareJob,
    SoroiJob,
    BareGroup,
    SoroiGroup,
    NativeGroup,
}

impl Rival {
    fn word(self) -> &'static str {
        match self {
            Self::BareJob => "bare-job",
            Self::SoroiJob => "soroi-job",
            Self::BareGroup => "bare-group",
            Self::SoroiGroup => "soroi-group",
            Self::NativeGroup => "native-group",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::BareJob => "a Job: the same writes, plan known",
            Self::SoroiJob => "a Job: Soroi",
            Self::BareGroup => "pods exist: the same writes, plan known",
            Self::SoroiGroup => "pods exist: Soroi",
            Self::NativeGroup => "pods exist: kube-scheduler's gangs",
        }
    }

    fn is_job(self) -> bool {
        matches!(self, Self::BareJob | Self::SoroiJob)
    }
}

/// Measures it.
pub(super) async fn measure(site: &Site, args: &Args) -> anyhow::Result<Report> {
    site.needs_leader().await?;
    site.nodes(NODES, GPUS_PER_NODE).await?;
    for (collection, object) in objects::queues(MEMBERS) {
        site.create(collection, &object).await?;
    }
    let policies = admission::are_served(&site.client).await?;
    bare::install(site, policies).await?;
    let mut remarks = vec![
        "From the DELETED event of the pod in the way to the event that shows the last of 4 nodes, by one watch."
            .to_owned(),
    ];
    let mut rivals = args.rivals.clone();
    rivals.sort();
    rivals.dedup();
    if rivals.contains(&Rival::NativeGroup) && site.find(NATIVE_GROUPS).await?.is_none() {
        rivals.retain(|rival| *rival != Rival::NativeGroup);
        remarks.push("scheduling.k8s.io/v1alpha2 is not served: no native gangs.".to_owned());
    }
    if !policies {
        rivals.retain(|rival| *rival != Rival::BareJob);
        remarks.push(
            "No mutating admission policies are served: no bare client for Jobs, whose pods get their scheduler by one."
                .to_owned(),
        );
    }
    let mut bench = Wakeup {
        site,
        eyes: site.eyes().await?,
        pause: Duration::from_millis(args.pause_ms),
        recipes: BTreeMap::new(),
    };
    for rival in [Rival::SoroiJob, Rival::SoroiGroup] {
        // Not counted: nothing is warm yet, and the bare client learns.
        bench.round(rival, 0).await?;
    }
    let mut samples: BTreeMap<Rival, Vec<f64>> = BTreeMap::new();
    for round in 1..=args.rounds {
        for rival in &rivals {
            let took = bench.round(*rival, round).await?;
            samples.entry(*rival).or_default().push(took.as_secs_f64() * 1e3);
        }
        if round.is_multiple_of(10) {
            eprintln!("round {round} of {}", args.rounds);
        }
    }
    Ok(report(site, remarks, &samples))
}

struct Wakeup<'a> {
    site: &'a Site,
    eyes: Eyes,
    pause: Duration,
    /// Whether for Jobs, and what Soroi wrote for one.
    recipes: BTreeMap<bool, Recipe>,
}

impl Wakeup<'_> {
    /// One gang, from its creation to its removal.
    async fn round(&mut self, rival: Rival, number: u32) -> anyhow::Result<Duration> {
        let batch = format!("{}-{number}", rival.word());
        let took = self.play(rival, &batch).await.with_context(|| format!("in the round {batch}"))?;
        self.sweep(rival, &batch).await.with_context(|| format!("after the round {batch}"))?;
        Ok(took)
    }

    async fn play(&mut self, rival: Rival, batch: &str) -> anyhow::Result<Duration> {
        let (site, hog) = (self.site, format!("hog-{batch}"));
        site.create(PODS, &objects::hog(&hog, 1)).await?;
        let runs = |seen: &Seen| !seen.batch(&hog).running.is_empty();
        self.eyes.until("the pod in the way runs", PATIENCE, runs).await?;
        let bare = self.create(rival, batch).await?;
        self.waits(rival, batch).await?;
        let pause = if rival == Rival::NativeGroup { self.pause.max(NATIVE_PAUSE) } else { self.pause };
        site.clock.sleep(pause).await;

        let path = format!("{PODS}/{hog}");
        let eyes = &mut self.eyes;
        let started = async {
            let gone = |seen: &Seen| seen.batch(&hog).gone.is_some();
            eyes.until("the pod in the way is gone", PATIENCE, gone).await?;
            if let Some(round) = &bare {
                round.act(site, eyes).await?;
            }
            let all = |seen: &Seen| seen.batch(batch).bound.len() == MEMBERS;
            eyes.until("the gang is bound", PATIENCE, all).await
        };
        // Nobody waits for the answer to the deletion: it may come after the event.
        try_join(site.delete(&path), started).await?;
        let began = self.eyes.seen.batch(&hog).gone.context("it is gone")?;
        let (_, last) = self.eyes.seen.batch(batch).first_and_last().context("it is bound")?;
        if matches!(rival, Rival::SoroiJob | Rival::SoroiGroup) && !self.recipes.contains_key(&rival.is_job())
        {
            // What Soroi shows is complete a moment later.
            site.clock.sleep(Duration::from_millis(500)).await;
            let recipe = bare::learn(site, rival.is_job().then_some(batch)).await?;
            self.recipes.insert(rival.is_job(), recipe);
        }
        if let Some(round) = bare {
            round.clear(site).await?;
        }
        Ok(last.duration_since(began))
    }

    /// Creates the gang; for the bare client also what it will write.
    async fn create(&self, rival: Rival, batch: &str) -> anyhow::Result<Option<bare::Round>> {
        let site = self.site;
        let mut job = None;
        let gang = match rival {
            Rival::BareJob | Rival::SoroiJob => {
                let wanted = objects::job(batch, MEMBERS, rival == Rival::SoroiJob);
                job = Some(site.create(JOBS, &wanted).await?);
                None
            }
            Rival::BareGroup => Some(Gang::None),
            Rival::SoroiGroup => {
                site.create(GROUPS, &objects::group(batch, MEMBERS)).await?;
                Some(Gang::Soroi(batch.to_owned()))
            }
            Rival::NativeGroup => {
                site.create(NATIVE_GROUPS, &objects::native_group(batch, MEMBERS)).await?;
                Some(Gang::Native(batch.to_owned()))
            }
        };
        if let Some(gang) = gang {
            let pods = (0..MEMBERS).map(|at| (PODS, objects::pod(&format!("{batch}-{at}"), batch, &gang)));
            site.create_all(pods, MEMBERS).await?;
        }
        if !matches!(rival, Rival::BareJob | Rival::BareGroup) {
            return Ok(None);
        }
        let recipe = self.recipes.get(&rival.is_job()).context("Soroi's writes are learnt first")?;
        bare::Round::prepare(site, recipe, batch, job.as_ref()).await.map(Some)
    }

    /// Waits until whoever is to start the gang has tried in vain.
    async fn waits(&mut self, rival: Rival, batch: &str) -> anyhow::Result<()> {
        let site = self.site;
        match rival {
            Rival::SoroiJob => {
                site.wait("the Workload says why it waits", async || {
                    let list = site.find(WORKLOADS).await?.unwrap_or_default();
                    Ok(says(&list["items"][0], "QuotaReserved"))
                })
                .await
            }
            Rival::SoroiGroup => {
                let told = |seen: &Seen| seen.batch(batch).waiting.len() == MEMBERS;
                self.eyes.until("the pods are called unschedulable", PATIENCE, told).await
            }
            Rival::NativeGroup => {
                let path = format!("{NATIVE_GROUPS}/{batch}");
                site.wait("the group is called unschedulable", async || {
                    Ok(says(&site.find(&path).await?.unwrap_or_default(), "PodGroupScheduled"))
                })
                .await
            }
            Rival::BareJob | Rival::BareGroup => {
                let (wanted, batch) = (if rival.is_job() { 0 } else { MEMBERS }, batch.to_owned());
                let there = move |seen: &Seen| seen.batch(&batch).there.len() == wanted;
                self.eyes.until("the pods are there", PATIENCE, there).await
            }
        }
    }

    /// Takes the gang away and waits until nothing is left of it.
    async fn sweep(&mut self, rival: Rival, batch: &str) -> anyhow::Result<()> {
        let site = self.site;
        match rival {
            Rival::BareJob | Rival::SoroiJob => site.delete(&format!("{JOBS}/{batch}")).await?,
            Rival::SoroiGroup => site.delete(&format!("{GROUPS}/{batch}")).await?,
            Rival::NativeGroup => site.delete(&format!("{NATIVE_GROUPS}/{batch}")).await?,
            Rival::BareGroup => {}
        }
        site.delete(PODS).await?;
        let none = |seen: &Seen| seen.batch(batch).there.is_empty();
        self.eyes.until("the pods are gone", PATIENCE, none).await?;
        self.eyes.seen.forget(batch);
        self.eyes.seen.forget(&format!("hog-{batch}"));
        for collection in [PLANS, WORKLOADS] {
            site.wait("Soroi has let go of the gang", async || Ok(site.count(collection).await? == 0))
                .await?;
        }
        Ok(())
    }
}

/// The node of each member.
pub(super) fn nodes_of_members() -> impl Iterator<Item = usize> {
    (1..=NODES).flat_map(|node| std::iter::repeat_n(node, GPUS_PER_NODE as usize))
}

/// Whether a condition of this type is False.
fn says(object: &Value, condition: &str) -> bool {
    let conditions = object["status"]["conditions"].as_array();
    conditions.into_iter().flatten().any(|one| one["type"] == condition && one["status"] == "False")
}

fn report(site: &Site, remarks: Vec<String>, samples: &BTreeMap<Rival, Vec<f64>>) -> Report {
    let mut rows: BTreeMap<Rival, Row> = samples
        .iter()
        .map(|(rival, samples)| (*rival, Row::of(rival.word(), rival.what(), "ms", samples)))
        .collect();
    let median = |rival: Rival, rows: &BTreeMap<Rival, Row>| rows.get(&rival).map(|row| row.median);
    if let (Some(bare), Some(row)) = (median(Rival::BareJob, &rows), rows.get_mut(&Rival::SoroiJob)) {
        let (soon, late) = (bare + BEYOND_BARE_MS, 2.0 * bare);
        row.aim(format!("median ≤ {}", number(soon)), row.median <= soon);
        row.aim(format!("p99 ≤ {}", number(late)), row.p99 <= late);
    }
    if let (Some(native), Some(row)) = (median(Rival::NativeGroup, &rows), rows.get_mut(&Rival::SoroiGroup)) {
        row.aim(format!("median ≤ {}", number(native)), row.median <= native);
    }
    Report {
        benchmark: "wakeup",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks,
        rows: rows.into_values().collect(),
    }
}
