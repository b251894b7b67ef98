//! What does a cluster of the demo look like at one moment? A few short lines for a narrow column.
//!
//! Reads through the API and draws; changes nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::manifests::{GPU, GPUS_PER_WORKER, QUOTA};
use super::site::Hands;
use super::story::{self, Beat, GANG, gpus_held, is_member, members, node_of, phase};
use crate::show::Tone;

/// A line and what it says about the world.
pub(crate) type Line = (String, Tone);

/// A job of the demo: its object, the name it is shown by, the letter of its GPUs, its pods.
struct Known {
    job: &'static str,
    shown: &'static str,
    letter: char,
    pods: usize,
}

/// The large job is created anew for the last steps: finished Jobs do not run again.
const JOBS: [Known; 4] = [
    Known { job: "train", shown: "train", letter: 'T', pods: GANG },
    Known { job: "second", shown: "second", letter: 'S', pods: 2 },
    Known { job: "train-2", shown: "train", letter: 'T', pods: GANG },
    Known { job: "train-3", shown: "train", letter: 'T', pods: GANG },
];

/// The letters, for people.
pub(crate) const LEGEND: &str =
    "One letter is one GPU: H hog, T train, S second, . free; one group is one worker.";

/// The workers' GPUs, what the step's jobs do, and how much quota is held.
pub(crate) async fn seen(hands: &Hands, beat: Beat) -> anyhow::Result<Vec<Line>> {
    let pods = hands.all_pods().await?;
    let mut lines = vec![(gpus(hands, &pods).await?, Tone::Strong)];
    let mut held = 0;
    let mut works = false;
    for known in JOBS.iter().filter(|known| beat.jobs().contains(&known.job)) {
        if hands.job(known.job).await?.is_none() {
            continue;
        }
        held += hands.workload_of(known.job).await?.as_ref().map_or(0, gpus_held);
        let (text, tone) = match story::outcome(hands, known.job).await? {
            Some("Failed") => ("failed".to_owned(), Tone::Bad),
            Some(_) => ("done".to_owned(), Tone::Faint),
            None => state(&members(hands, known.job).await?, known.pods),
        };
        works |= tone == Tone::Good;
        lines.push((format!("{}: {text}", known.shown), tone));
    }
    // Quota that nobody works with is what the story is about.
    let tone = if held > 0 && !works { Tone::Bad } else { Tone::Faint };
    lines.push((format!("quota held: {held} of {QUOTA}"), tone));
    Ok(lines)
}

/// What an unfinished job does, by its pods.
fn state(pods: &[Pod], size: usize) -> (String, Tone) {
    let running = pods.iter().filter(|pod| phase(pod) == "Running").count();
    match (running, pods.len()) {
        (0, 0) => ("waits, no pods".to_owned(), Tone::Faint),
        (0, waiting) => (format!("{waiting} pods wait"), Tone::Faint),
        (running, _) if running == size => (format!("all {size} run"), Tone::Good),
        // Some of a gang run and do nothing but wait for the others.
        (running, there) if there > running => {
            (format!("{running} run, {} wait", there - running), Tone::Bad)
        }
        (running, _) => (format!("{running} of {size} run"), Tone::Bad),
    }
}

/// `HT TT`: the GPUs of each worker that has any.
async fn gpus(hands: &Hands, pods: &[Pod]) -> anyhow::Result<String> {
    let mut workers: BTreeMap<String, String> =
        hands.gpu_nodes().await?.into_iter().map(|name| (name, String::new())).collect();
    for pod in pods.iter().filter(|pod| !matches!(phase(pod), "Succeeded" | "Failed")) {
        let Some(worker) = node_of(pod).and_then(|node| workers.get_mut(node)) else { continue };
        let letter = JOBS.iter().find(|known| is_member(pod, known.job)).map_or('H', |known| known.letter);
        worker.push(letter);
    }
    let room = usize::try_from(GPUS_PER_WORKER).unwrap_or(0);
    let drawn = workers.into_values().map(|letters| {
        let mut letters: Vec<char> = letters.chars().collect();
        letters.sort_unstable();
        let used: String = letters.into_iter().collect();
        format!("{used:.<room$}")
    });
    Ok(drawn.collect::<Vec<_>>().join(" "))
}

/// Whether a node's status offers GPUs.
pub(crate) fn has_gpus(node: &k8s_openapi::api::core::v1::Node) -> bool {
    let room = node.status.as_ref().and_then(|status| status.allocatable.as_ref());
    room.is_some_and(|room| room.contains_key(GPU))
}
