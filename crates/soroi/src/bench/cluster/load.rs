//! How long do many gangs take, from the first create to the last bind?

use std::str::FromStr;
use std::time::Duration;

use anyhow::Context as _;
use clap::ValueEnum;
use futures::future::try_join;
use serde_json::Value;

use super::eyes::{self, Eyes, Seen};
use super::objects::{self, GROUPS, Gang, NATIVE_GROUPS, PLANS, PODS};
use super::report::{Report, Row};
use super::site::Site;
use crate::show::grouped;

/// Enough for any size on any number of nodes.
const GPUS_PER_NODE: u32 = 150;
/// How long a rival may take; one that does not make it in time is reported so.
const PATIENCE: Duration = Duration::from_secs(300);

/// How it is measured.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// GANGSxPODS@NODES; the nodes must not become fewer from one to the next
    #[arg(long, value_delimiter = ',', default_value = "100x20@200,10x500@200,1x5000@200,500x20@1000")]
    sizes: Vec<Size>,
    /// How often each is repeated
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: u32,
    /// Who takes part
    #[arg(long, value_enum, value_delimiter = ',', default_value = "nobody,soroi")]
    rivals: Vec<Rival>,
    /// Creations under way at once
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=1024))]
    in_flight: u32,
}

/// How many gangs of how many pods on how many nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Size {
    gangs: usize,
    pods: usize,
    nodes: usize,
}

impl FromStr for Size {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let parts = text.split_once('x').and_then(|(gangs, rest)| {
            let (pods, nodes) = rest.split_once('@')?;
            Some(Self { gangs: gangs.parse().ok()?, pods: pods.parse().ok()?, nodes: nodes.parse().ok()? })
        });
        parts
            .filter(|size| size.gangs > 0 && size.pods > 0 && size.nodes > 0)
            .with_context(|| format!("\"{text}\" is not GANGSxPODS@NODES, as 100x20@200 is"))
    }
}

/// Who places the pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Rival {
    /// Nobody: the time that creating them takes
    Nobody,
    /// Soroi
    Soroi,
    /// kube-scheduler, with its own gangs
    Native,
    /// kube-scheduler, pod by pod: no gangs at all
    Single,
}

impl Rival {
    fn word(self) -> &'static str {
        match self {
            Self::Nobody => "nobody",
            Self::Soroi => "soroi",
            Self::Native => "native",
            Self::Single => "single",
        }
    }
}

/// Measures it.
pub(super) async fn measure(site: &Site, args: &Args) -> anyhow::Result<Report> {
    if args.rivals.contains(&Rival::Soroi) {
        site.needs_leader().await?;
    }
    let mut load = Load { site, eyes: site.eyes().await?, in_flight: args.in_flight as usize };
    let mut rows = Vec::new();
    for size in &args.sizes {
        site.nodes(size.nodes, GPUS_PER_NODE).await?;
        let mut samples: Vec<(Rival, Vec<f64>)> =
            args.rivals.iter().map(|rival| (*rival, Vec::new())).collect();
        for round in 1..=args.rounds {
            for (rival, samples) in &mut samples {
                let batch = format!("{}-{}x{}-{round}", rival.word(), size.gangs, size.pods);
                let took = load.round(*rival, *size, &batch).await;
                let took = took.with_context(|| format!("in the round {batch}"))?;
                eprintln!("{batch}: {took:.2?}");
                samples.push(took.as_secs_f64());
            }
        }
        rows.extend(judged(*size, &samples));
    }
    Ok(Report {
        benchmark: "gangs",
        kubernetes: site.version.clone(),
        optimized: !cfg!(debug_assertions),
        remarks: vec![format!(
            "{} creations under way at once. The creation alone ends with its last answer, the others with the event \
             that shows the last node.",
            args.in_flight
        )],
        rows,
    })
}

fn judged(size: Size, samples: &[(Rival, Vec<f64>)]) -> Vec<Row> {
    let what = |rival: Rival| {
        let size = format!(
            "{} × {} pods, {} nodes",
            grouped(size.gangs as u64),
            grouped(size.pods as u64),
            grouped(size.nodes as u64)
        );
        match rival {
            Rival::Nobody => format!("{size}: creating the pods alone"),
            Rival::Soroi => format!("{size}: Soroi"),
            Rival::Native => format!("{size}: kube-scheduler's gangs"),
            Rival::Single => format!("{size}: kube-scheduler, no gangs"),
        }
    };
    let name = |rival: Rival| format!("{}x{}@{}-{}", size.gangs, size.pods, size.nodes, rival.word());
    let rows = samples.iter().map(|(rival, samples)| Row::of(&name(*rival), what(*rival), "s", samples));
    let mut rows: Vec<Row> = rows.collect();
    let alone = samples.iter().position(|(rival, _)| *rival == Rival::Nobody);
    let alone = alone.and_then(|at| rows.get(at)).map(|row| row.median);
    for ((rival, _), row) in samples.iter().zip(&mut rows) {
        if *rival != Rival::Nobody
            && let Some(alone) = alone
        {
            row.what = format!("{}, {:.1} × the creation", row.what, row.median / alone);
        }
    }
    rows
}

struct Load<'a> {
    site: &'a Site,
    eyes: Eyes,
    in_flight: usize,
}

impl Load<'_> {
    async fn round(&mut self, rival: Rival, size: Size, batch: &str) -> anyhow::Result<Duration> {
        let (site, eyes) = (self.site, &mut self.eyes);
        let all = size.gangs * size.pods;
        let objects = objects_of(rival, size, batch);
        let began = eyes::now();
        let created = async {
            site.create_all(objects, self.in_flight).await?;
            anyhow::Ok(eyes::now())
        };
        let seen = |seen: &Seen| match rival {
            Rival::Nobody => seen.batch(batch).there.len() == all,
            Rival::Soroi | Rival::Native | Rival::Single => seen.batch(batch).bound.len() == all,
        };
        let looked = eyes.until("all pods are seen as they should be", PATIENCE, seen);
        let (created, ()) = try_join(created, looked).await?;
        let last = eyes.seen.batch(batch).first_and_last().map(|(_, last)| last);
        let ended = last.filter(|_| rival != Rival::Nobody).unwrap_or(created);
        self.sweep(rival, batch).await?;
        Ok(ended.duration_since(began))
    }

    async fn sweep(&mut self, rival: Rival, batch: &str) -> anyhow::Result<()> {
        let site = self.site;
        match rival {
            Rival::Nobody | Rival::Single => {}
            Rival::Soroi => site.delete(GROUPS).await?,
            Rival::Native => site.delete(NATIVE_GROUPS).await?,
        }
        let none = |seen: &Seen| seen.batch(batch).there.is_empty();
        let gone = self.eyes.until("the pods are gone", PATIENCE, none);
        try_join(site.delete(PODS), gone).await?;
        self.eyes.seen.forget(batch);
        site.wait("Soroi has let go of the gangs", async || Ok(site.count(PLANS).await? == 0)).await
    }
}

/// Each group before its pods, one gang after the other.
fn objects_of(rival: Rival, size: Size, batch: &str) -> Vec<(&'static str, Value)> {
    let gangs = (0..size.gangs).flat_map(|number| {
        let group = format!("{batch}-{number}");
        let (head, gang) = match rival {
            Rival::Nobody => (None, Gang::None),
            Rival::Single => (None, Gang::Single),
            Rival::Soroi => (Some((GROUPS, objects::group(&group, size.pods))), Gang::Soroi(group.clone())),
            Rival::Native => {
                (Some((NATIVE_GROUPS, objects::native_group(&group, size.pods))), Gang::Native(group.clone()))
            }
        };
        let pod = move |at: usize| (PODS, objects::pod(&format!("{group}-{at}"), batch, &gang));
        head.into_iter().chain((0..size.pods).map(pod))
    });
    gangs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_read_as_it_is_written() {
        assert_eq!("100x20@200".parse::<Size>().unwrap(), Size { gangs: 100, pods: 20, nodes: 200 });
        for wrong in ["100x20", "100@20", "0x20@1", "x@", "1x1@-1"] {
            assert!(wrong.parse::<Size>().unwrap_err().to_string().contains(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_group_comes_before_its_pods() {
        let size = Size { gangs: 2, pods: 2, nodes: 1 };
        let objects = objects_of(Rival::Soroi, size, "b");
        let names: Vec<_> = objects.iter().map(|(_, object)| object["metadata"]["name"].clone()).collect();
        assert_eq!(names, ["b-0", "b-0-0", "b-0-1", "b-1", "b-1-0", "b-1-1"]);
        assert_eq!(objects_of(Rival::Nobody, size, "b").len(), 4);
    }
}
