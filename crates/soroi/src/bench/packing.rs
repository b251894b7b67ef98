//! How much of a cluster's devices can be given away? A public trace of nodes and pods with GPUs,
//! whole ones and parts of them, filled pod by pod as it was done by others.
//!
//! The rules are those of the simulation in "Beware of Fragmentation" (Weng et al., USENIX ATC
//! 2023): pods are drawn in random order, the list again and again, until what they ask for is so
//! much of all GPUs; whoever does not fit at once is gone. What counts is the share of GPUs that is
//! allocated in the end. Judging nodes is the engine's (`soroi_engine::packing`).

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use serde::Serialize;
use soroi_embedded::table::Table;
use soroi_engine::packing::{DEVICE, Floor, Mix, Needs, Packing, Room};

use crate::Output;

/// The nodes of the trace.
const NODES: &str = "openb_node_list_all_node.csv";
/// Its lists of pods, as `openb_pod_list_<list>.csv`.
const LISTS: [&str; 5] = ["default", "cpu250", "gpushare100", "gpuspec33", "multigpu50"];
/// What is asked for in the end, as a part of all GPUs.
const DEMANDS_PERCENT: [u64; 2] = [100, 130];
/// The seeds begin where the published ones do.
const FIRST_SEED: u64 = 42;
/// What others reach with the list `default` at 100 %, as published.
const PUBLISHED: [(&str, f64); 6] = [
    ("Random", 86.30),
    ("DotProd", 90.62),
    ("Clustering", 91.65),
    ("Packing", 91.78),
    ("BestFit", 92.86),
    ("FGD", 95.23),
];

/// Where the trace is, and how often it is replayed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The folder with the trace: `openb_node_list_all_node.csv` and the lists of pods beside it
    dir: PathBuf,
    /// In how many random orders each list is replayed
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    seeds: u32,
    /// Only these lists
    #[arg(long, value_delimiter = ',')]
    lists: Vec<String>,
    /// How the result is written
    #[arg(long, short, value_enum, default_value_t)]
    output: Output,
}

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct Allocated {
    list: String,
    packing: &'static str,
    demand_percent: u64,
    seeds: u32,
    allocated_percent_mean: f64,
}

pub(crate) fn run(args: &Args, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut kinds = Kinds::default();
    let nodes = nodes(&args.dir, &mut kinds)?;
    let lists = if args.lists.is_empty() { LISTS.map(str::to_owned).to_vec() } else { args.lists.clone() };
    let mut figures = Vec::new();
    for list in lists {
        let pods = pods(&args.dir, &list, &mut kinds)?;
        for (name, packing) in [
            ("Default", Packing::BestFit),
            ("Fragmentation", Packing::Fragmentation),
            ("Spread", Packing::Spread),
        ] {
            let mut sums = [0.0; DEMANDS_PERCENT.len()];
            for seed in 0..args.seeds {
                let allocated = replay(packing, &nodes, &pods, FIRST_SEED + u64::from(seed));
                sums.iter_mut().zip(allocated).for_each(|(sum, percent)| *sum += percent);
            }
            for (demand_percent, sum) in DEMANDS_PERCENT.into_iter().zip(sums) {
                let mean = sum / f64::from(args.seeds);
                let allocated_percent_mean = (mean * 100.0).round() / 100.0;
                let list = list.clone();
                let seeds = args.seeds;
                figures.push(Allocated {
                    list,
                    packing: name,
                    demand_percent,
                    seeds,
                    allocated_percent_mean,
                });
            }
        }
    }
    match args.output {
        Output::Json => {
            serde_json::to_writer_pretty(&mut *out, &figures)?;
            writeln!(out)?;
        }
        Output::Table => write!(out, "{}\n{}\n", table(&figures), published())?,
    }
    Ok(())
}

fn table(figures: &[Allocated]) -> Table {
    let mut table = Table::new(["LIST", "PACKING", "AT 100 %", "AT 130 %"]);
    for pair in figures.chunks(DEMANDS_PERCENT.len()) {
        let [first, .., last] = pair else { continue };
        let percent = |figure: &Allocated| format!("{:.2} %", figure.allocated_percent_mean);
        table.row([first.list.clone(), first.packing.to_owned(), percent(first), percent(last)]);
    }
    table
}

fn published() -> String {
    let each: Vec<String> = PUBLISHED.iter().map(|(name, percent)| format!("{name} {percent:.2}")).collect();
    format!("Published for default at 100 %: {}.", each.join(", "))
}

/// Kinds of devices as bits.
#[derive(Default)]
struct Kinds(BTreeMap<String, u64>);

impl Kinds {
    fn bit(&mut self, name: &str) -> anyhow::Result<u64> {
        let next = u32::try_from(self.0.len())?;
        let bit = 1u64.checked_shl(next).context("more than 64 kinds of GPUs")?;
        Ok(*self.0.entry(name.to_owned()).or_insert(bit))
    }
}

/// The rows of a file, each by column.
fn rows(path: &Path) -> anyhow::Result<Vec<BTreeMap<String, String>>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().context("an empty file")?.split(',').collect();
    let row = |line: &str| {
        header.iter().map(|column| (*column).to_owned()).zip(line.split(',').map(str::to_owned)).collect()
    };
    Ok(lines.filter(|line| !line.is_empty()).map(row).collect())
}

fn number(row: &BTreeMap<String, String>, column: &str) -> anyhow::Result<i64> {
    let text = row.get(column).with_context(|| format!("there is no column {column}"))?;
    if text.is_empty() { Ok(0) } else { text.parse().with_context(|| format!("{column}: {text}")) }
}

fn nodes(dir: &Path, kinds: &mut Kinds) -> anyhow::Result<Vec<Room>> {
    let mut nodes = Vec::new();
    for row in rows(&dir.join(NODES))? {
        let gpus = usize::try_from(number(&row, "gpu")?)?;
        let model = row.get("model").map_or("", String::as_str);
        nodes.push(Room {
            plain: [number(&row, "cpu_milli")?, number(&row, "memory_mib")?].into_iter().collect(),
            devices: std::iter::repeat_n(DEVICE, gpus).collect(),
            kind: if model.is_empty() { 0 } else { kinds.bit(model)? },
        });
    }
    ensure!(nodes.iter().any(|node| !node.devices.is_empty()), "no node has a GPU");
    Ok(nodes)
}

fn pods(dir: &Path, list: &str, kinds: &mut Kinds) -> anyhow::Result<Vec<Needs>> {
    let mut pods = Vec::new();
    for row in rows(&dir.join(format!("openb_pod_list_{list}.csv")))? {
        let devices = u32::try_from(number(&row, "num_gpu")?)?;
        let milli = if devices > 1 { DEVICE } else { u32::try_from(number(&row, "gpu_milli")?)? };
        let models = row.get("gpu_spec").map_or("", String::as_str);
        let mut allowed = 0;
        for model in models.split('|').filter(|model| !model.is_empty()) {
            allowed |= kinds.bit(model)?;
        }
        pods.push(Needs {
            plain: [number(&row, "cpu_milli")?, number(&row, "memory_mib")?].into_iter().collect(),
            devices,
            milli: if devices == 0 { 0 } else { milli.min(DEVICE) },
            kinds: if devices == 0 { 0 } else { allowed },
        });
    }
    ensure!(pods.iter().any(|pod| pod.devices > 0), "no pod of the list {list} needs a GPU");
    Ok(pods)
}

/// Thousandths of devices that a pod asks for.
fn asked(pod: &Needs) -> u64 {
    u64::from(pod.devices) * u64::from(pod.milli)
}

/// The pods of a list as kinds, with how often each comes.
fn mix(pods: &[Needs]) -> Mix {
    let mut counts: BTreeMap<&Needs, u64> = BTreeMap::new();
    pods.iter().for_each(|pod| *counts.entry(pod).or_default() += 1);
    Mix::new(counts.into_iter().map(|(needs, weight)| (needs.clone(), weight)))
}

/// Per cent of the GPUs that are allocated when each of the demands is reached.
#[expect(clippy::cast_precision_loss, reason = "a few thousand GPUs in thousandths")]
fn replay(packing: Packing, nodes: &[Room], pods: &[Needs], seed: u64) -> [f64; DEMANDS_PERCENT.len()] {
    let total: u64 = nodes.iter().map(|node| node.devices.len() as u64 * u64::from(DEVICE)).sum();
    let mut floor = Floor::new(packing, nodes.to_vec(), mix(pods));
    let mut order: Vec<usize> = Vec::new();
    let mut dice = Dice(seed);
    let (mut demand, mut allocated) = (0u64, 0u64);
    DEMANDS_PERCENT.map(|percent| {
        while demand < total * percent / 100 {
            if order.is_empty() {
                order = (0..pods.len()).collect();
                dice.shuffle(&mut order);
            }
            let Some(pod) = order.pop().map(|at| &pods[at]) else { break };
            demand += asked(pod);
            if floor.place(pod).is_some() {
                allocated += asked(pod);
            }
        }
        allocated as f64 * 100.0 / total as f64
    })
}

/// Random numbers that are the same everywhere: SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the length of a list")]
    fn shuffle(&mut self, list: &mut [usize]) {
        for at in (1..list.len()).rev() {
            list.swap(at, (self.next() % (at as u64 + 1)) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    /// Two nodes, and pods that fill them whichever way they are drawn.
    fn folder() -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        write(
            NODES,
            "sn,cpu_milli,memory_mib,gpu,model\na,64000,65536,2,T4\nb,64000,65536,2,G2\nc,8000,65536,0,\n",
        );
        let pods = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\np,1000,1024,1,1000,T4\nq,1000,1024,1,500,\nr,1000,1024,0,0,\n";
        write("openb_pod_list_default.csv", pods);
        dir
    }

    #[test]
    fn a_trace_is_replayed() {
        let dir = folder();
        let args =
            |output| Args { dir: dir.path().to_owned(), seeds: 2, lists: vec!["default".into()], output };
        let shown = |output| {
            let mut out = Vec::new();
            run(&args(output), &mut out).unwrap();
            String::from_utf8(out).unwrap()
        };
        expect![[r#"
            LIST      PACKING         AT 100 %   AT 130 %
            default   Default         56.25 %    68.75 %
            default   Fragmentation   81.25 %    93.75 %
            default   Spread          56.25 %    68.75 %

            Published for default at 100 %: Random 86.30, DotProd 90.62, Clustering 91.65, Packing 91.78, BestFit 92.86, FGD 95.23.
        "#]].assert_eq(&shown(Output::Table));
        let json = shown(Output::Json);
        assert!(json.contains("\"allocatedPercentMean\""), "{json}");
        assert_eq!(json, shown(Output::Json));
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let args = Args { dir: "/nowhere".into(), seeds: 1, lists: Vec::new(), output: Output::Table };
        let problem = run(&args, &mut Vec::new()).unwrap_err();
        assert_eq!(problem.to_string(), "/nowhere/openb_node_list_all_node.csv cannot be read");
    }
}
