//! How much memory does Soroi need on a large cluster?

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{bail, ensure};
use serde_json::{Value, json};

use super::objects::{self, BATCH, Gang, PODS};
use super::product::Soroi;
use super::report::{Report, Row};
use super::site::Site;
use crate::bench::number;
use crate::show::grouped;

const MIB_MAX: f64 = 500.0 * 1e6 / MIB;
const MIB: f64 = 1_048_576.0;

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How many nodes there are
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    nodes: u32,
    /// How many pods there are, bound when they are created
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pods: u32,
    /// Creations under way at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
    /// A shell command after which every watch has to list anew, such as one that restarts the API
    /// server; without it, only the first list is measured
    #[arg(long, value_name = "COMMAND")]
    relist: Option<String>,
    /// How long to wait after each list: what follows from it has its peak then, in seconds
    #[arg(long, default_value_t = 15)]
    rest_secs: u64,
}

/// Measures it.
pub(super) async fn measure(site: &Site, args: &Args, kubeconfig: Option<&Path>) -> anyhow::Result<Report> {
    if let Some(leader) = site.leader().await? {
        bail!("{leader} leads on this cluster; stop it first, or what it needs is not seen");
    }
    let (nodes, pods) = (args.nodes as usize, args.pods as usize);
    site.nodes(nodes, args.pods.div_ceil(args.nodes)).await?;
    eprintln!("{nodes} nodes are ready");
    // Silent kubelets leave the pods as they are created: while pods change, a watch may go on after
    // a restart of the API server, and nothing would be listed anew.
    site.silence(nodes, true).await?;
    site.create_all((0..pods).map(|at| (PODS, bound_pod(at, at % nodes + 1))), args.in_flight as usize)
        .await?;
    eprintln!("{pods} pods are there");
    let rest = Duration::from_secs(args.rest_secs);
    let soroi = Soroi::start(kubeconfig)?;
    soroi.wait_listed(site, 1, pods).await?;
    site.clock.sleep(rest).await;
    let listed = soroi.memory()?;
    eprintln!("after the first list: peak {:.0} MiB, now {:.0} MiB", listed.peak, listed.now);
    let mut rows = vec![row("list", "after the first list", listed.peak)];
    if let Some(command) = &args.relist {
        let status = Command::new("sh").args(["-c", command]).stdout(Stdio::null()).status()?;
        ensure!(status.success(), "the command of --relist failed: {command}");
        soroi.wait_listed(site, 2, pods).await?;
        site.clock.sleep(rest).await;
        rows.push(row("relist", "after everything was listed anew", soroi.memory()?.peak));
    }
    rows.push(Row::of("rest", "resident memory at rest, afterwards", "MiB", &[soroi.memory()?.now]));
    let size = format!("{} nodes and {} pods, bound", grouped(nodes as u64), grouped(pods as u64));
    Ok(Report {
        benchmark: "memory",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks: vec![format!("{size}. Peaks are VmHWM of the process, in MiB of 1,048,576 bytes.")],
        rows,
    })
}

fn row(name: &str, what: &str, peak: f64) -> Row {
    let mut row = Row::of(name, format!("peak {what}"), "MiB", &[peak]);
    row.aim(format!("< {} (500 MB)", number(MIB_MAX)), peak < MIB_MAX);
    row
}

/// A pod as they are found on clusters: with labels, variables, probes and volumes.
fn bound_pod(at: usize, node: usize) -> Value {
    let batch = format!("group-{}", at / 100);
    let mut pod = objects::pod(&format!("pod-{at:06}"), &batch, &Gang::None);
    pod["metadata"]["labels"] = json!({
        BATCH: batch, "app.kubernetes.io/name": "trainer", "app.kubernetes.io/instance": batch,
        "app.kubernetes.io/managed-by": "bench", "team": "research",
    });
    pod["metadata"]["annotations"] = json!({
        "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
        "checksum/config": "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
    });
    pod["spec"]["nodeName"] = objects::node_name(node).into();
    let variables = (0..10).map(|at| json!({ "name": format!("SETTING_{at}"), "value": "some/value/of/it" }));
    let container = &mut pod["spec"]["containers"][0];
    container["env"] = variables.collect();
    container["args"] = json!(["--config=/etc/trainer/config.yaml", "--verbosity=2"]);
    container["readinessProbe"] = json!({ "httpGet": { "path": "/ready", "port": 9090 } });
    container["volumeMounts"] = json!([{ "name": "scratch", "mountPath": "/scratch" }]);
    pod["spec"]["volumes"] = json!([{ "name": "scratch", "emptyDir": {} }]);
    pod
}
