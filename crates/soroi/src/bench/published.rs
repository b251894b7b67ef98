//! How long does Kueue's published load take? Its runner, played against Soroi.
//!
//! ```text
//! plan: queues, Workloads, when ──▶ owner: creates them, plays their jobs ──▶ figures
//!                                    product: Soroi, in this process, behind a meter
//! ```
//!
//! Only Workload objects: no jobs, no pods. When one is admitted the owner waits for as long as it runs, and
//! marks it finished; when one is evicted it gives its reservation back, and it runs anew.
//!
//! Knows the API alone. Soroi runs in this process, so that no other has to be configured for it.

mod meter;
mod owner;
mod plan;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use kube::client::ClientBuilder;
use serde::Serialize;
use serde_json::Value;
use soroi_clock::Clock;
use soroi_control::config::Config;
use soroi_embedded::table::Table;
use soroi_embedded::{Embedded, Options};
use soroi_engine::decision::Settings;
use tokio::task::JoinSet;
use tower::Layer as _;

use super::number;
use crate::Output;
use crate::run::apply;
use meter::Meter;
use plan::{Made, Plan, Shape};

/// Creations and deletions of queues under way at once.
const IN_FLIGHT: usize = 32;
/// How long deleted namespaces may take on a real cluster.
const PATIENCE: Duration = Duration::from_secs(600);
const JSON: &str = "application/json";

/// What is played, and where.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Which of the published configurations
    #[arg(value_enum)]
    shape: Shape,
    /// A cluster with a real API server and Soroi's resource definitions, on which no Soroi runs [default: the
    /// embedded one]
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Divides the number of Workloads of each kind in each queue, for a quick look
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    shrink: u32,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// What was measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    benchmark: &'static str,
    shape: String,
    kubernetes: String,
    optimized: bool,
    workloads: usize,
    /// From the first creation to the last Workload marked finished.
    wall_seconds: f64,
    admissions_per_second: f64,
    /// From creation to Admitted, by class.
    mean_seconds_to_admission: std::collections::BTreeMap<&'static str, f64>,
    evictions: usize,
    /// The part of the wall time in which Soroi had at least one write on its way.
    share_of_time_waiting_for_api: f64,
    writes: u64,
}

/// Plays it, and leaves nothing behind.
pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    super::report(measure(args), args.output, |report| table(report).to_string(), out)
}

async fn measure(args: &Args) -> anyhow::Result<Report> {
    let clock = Clock::real();
    let meter = Meter::new(clock.clone());
    let plan = Plan::new(args.shape, args.shrink);
    let (client, product, kubernetes, _embedded) = match &args.kubeconfig {
        None => {
            let embedded = Embedded::new(clock.clone(), Options::default());
            let product = kube::Client::new(meter.layer(embedded.service()), "default");
            (embedded.client(), product, "embedded".to_owned(), Some(embedded))
        }
        Some(path) => {
            let access = crate::run::access(Some(path)).await?;
            let client = kube::Client::try_from(access.clone()).context("cannot set up a client")?;
            let product = ClientBuilder::try_from(access).context("cannot set up a client")?;
            let version: Value = apply::get(&client, "/version").await?.unwrap_or_default();
            let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
            (client, product.with_layer(&meter).build(), version, None)
        }
    };
    if args.kubeconfig.is_some() {
        nobody_leads(&client).await?;
        clear(&client, &clock, &plan).await?;
    }
    let settings = Settings { placement: plan.policy(), ..Settings::default() };
    let mut soroi = JoinSet::new();
    let config = Config { settings, ..Config::default() };
    soroi.spawn(soroi_control::run(product, clock.clone(), config));
    let played = tokio::select! {
        ended = soroi.join_next() => bail!("Soroi has ended: {ended:?}"),
        played = play(&client, &clock, &plan, &meter) => played,
    };
    soroi.shutdown().await;
    if args.kubeconfig.is_some() {
        clear(&client, &clock, &plan).await?;
    }
    let played = played?;
    let all = plan.workloads();
    Ok(Report {
        benchmark: "load",
        shape: format!("{:?}", args.shape).to_lowercase(),
        kubernetes,
        optimized: !cfg!(debug_assertions),
        workloads: all,
        wall_seconds: played.wall.as_secs_f64(),
        admissions_per_second: all as f64 / played.wall.as_secs_f64(),
        mean_seconds_to_admission: played.mean_by_class(),
        evictions: played.evictions,
        share_of_time_waiting_for_api: played.waiting.as_secs_f64() / played.wall.as_secs_f64(),
        writes: played.writes,
    })
}

/// Makes the queues, and plays the load.
async fn play(
    client: &kube::Client,
    clock: &Clock,
    plan: &Plan,
    meter: &Meter,
) -> anyhow::Result<owner::Played> {
    create_all(client, plan.ground()).await?;
    let queues: Vec<(String, String)> = plan.queues().collect();
    // A namespace comes before what is in it.
    stream::iter(&queues)
        .map(|(queue, cohort)| async move {
            for made in Plan::queue(queue, cohort) {
                create(client, &made).await?;
            }
            anyhow::Ok(())
        })
        .buffer_unordered(IN_FLIGHT)
        .try_collect::<()>()
        .await?;
    owner::play(client, clock, plan, meter).await
}

async fn create_all(client: &kube::Client, made: Vec<Made>) -> anyhow::Result<()> {
    let each = made.iter().map(|made| create(client, made));
    stream::iter(each).buffer_unordered(IN_FLIGHT).try_collect::<()>().await
}

async fn create(client: &kube::Client, (collection, object): &Made) -> anyhow::Result<()> {
    let made = apply::send(client, "POST", collection, JSON, object).await;
    let made =
        made.with_context(|| format!("cannot create {} at {collection}", object["metadata"]["name"]))?;
    if object["kind"] == "Node" {
        // Creation drops the status.
        let name = made["metadata"]["name"].as_str().unwrap_or_default();
        let status = serde_json::json!({ "status": object["status"] });
        let path = format!("{collection}/{name}/status");
        apply::send(client, "PATCH", &path, "application/merge-patch+json", &status).await?;
        // Creation adds that it is not ready yet.
        let spec = serde_json::json!({ "spec": { "taints": null } });
        let path = format!("{collection}/{name}");
        apply::send(client, "PATCH", &path, "application/merge-patch+json", &spec).await?;
    }
    Ok(())
}

async fn nobody_leads(client: &kube::Client) -> anyhow::Result<()> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/soroi-system/leases/soroi";
    let lease: Option<Value> = apply::get(client, path).await.context("the API server does not answer")?;
    let holder = lease.unwrap_or_default()["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned();
    ensure!(holder.is_empty(), "a Soroi leads on this cluster ({holder}): stop it first");
    Ok(())
}

/// Takes away whatever this or an earlier run left.
async fn clear(client: &kube::Client, clock: &Clock, plan: &Plan) -> anyhow::Result<()> {
    let queues: Vec<(String, String)> = plan.queues().collect();
    let label = plan::LABEL.replace('=', "%3D");
    let delete = async |path: String| match apply::send(client, "DELETE", &path, JSON, &Value::Null).await {
        Err(kube::Error::Api(status)) if status.code == 404 => anyhow::Ok(()),
        done => done.map(drop).with_context(|| format!("cannot delete {path}")),
    };
    let kueue = "/apis/kueue.x-k8s.io/v1beta2";
    for (queue, _) in &queues {
        delete(format!("{kueue}/namespaces/{queue}/workloads")).await?;
        delete(format!("{kueue}/namespaces/{queue}/localqueues")).await?;
        delete(format!("/api/v1/namespaces/{queue}")).await?;
    }
    for collection in ["clusterqueues", "resourceflavors", "topologies"] {
        delete(format!("{kueue}/{collection}?labelSelector={label}")).await?;
    }
    delete(format!("/api/v1/nodes?labelSelector={label}")).await?;
    let until = clock.now() + PATIENCE;
    for (queue, _) in &queues {
        while apply::get::<Value>(client, &format!("/api/v1/namespaces/{queue}")).await?.is_some() {
            ensure!(clock.now() < until, "the namespace {queue} does not go");
            clock.sleep(Duration::from_millis(200)).await;
        }
    }
    Ok(())
}

fn table(report: &Report) -> Table {
    let mut table = Table::new(["WHAT", "VALUE"]);
    let mut row = |what: &str, value: String| table.row([what.to_owned(), value]);
    row("load", format!("{}, {} Workloads, on {}", report.shape, report.workloads, report.kubernetes));
    row("wall time", format!("{} s", number(report.wall_seconds)));
    row("admissions", format!("{} /s", number(report.admissions_per_second)));
    for (class, mean) in &report.mean_seconds_to_admission {
        row(&format!("mean time to admission, {class}"), format!("{} s", number(*mean)));
    }
    row("evictions", report.evictions.to_string());
    row(
        "time with a write of Soroi on its way",
        format!("{:.0} %", 100.0 * report.share_of_time_waiting_for_api),
    );
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundredth of it, on the embedded cluster: all of it runs, and every figure is one.
    #[test]
    fn the_load_is_played_to_its_end() {
        let args = Args { shape: Shape::Baseline, kubeconfig: None, shrink: 100, output: Output::Json };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let report = runtime.block_on(measure(&args)).unwrap();
        runtime.shutdown_background();
        assert_eq!(report.workloads, 30 * 5);
        assert!(report.writes >= 300, "{report:?}");
        assert!(report.wall_seconds > 1.0 && report.admissions_per_second > 1.0, "{report:?}");
        let classes: Vec<&str> = report.mean_seconds_to_admission.keys().copied().collect();
        assert_eq!(classes, ["large", "medium", "small"]);
        assert!((0.0..=1.0).contains(&report.share_of_time_waiting_for_api), "{report:?}");
    }
}
