//! What does a cluster of the demo look like at one moment? A few short lines for a narrow column.
//!
//! Reads through the API and draws; changes nothing.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::manifests::{GPU, GPUS_PER_WORKER, QUOTA};
use super::site::Hands;
use super::story::{self, GANG, gpus_held, is_member, members, node_of, phase};
use crate::show::Tone;

/// A line and what it says about the world.
pub(crate) type Line = (String, Tone);

/// The jobs of the demo, with the letter of their GPUs and their number of pods.
const JOBS: &[(&str, char, usize)] =
    &[("train", 'T', GANG), ("second", 'S', 2), ("train-2", 'T', GANG), ("train-3", 'T', GANG)];

/// The letters, for people.
pub(crate) const LEGEND: &str =
    "One letter is one GPU: H hog, T train, S second, . free; one group is one worker.";

/// The workers' GPUs, what each unfinished job does, and who holds quota.
pub(crate) async fn seen(hands: &Hands) -> anyhow::Result<Vec<Line>> {
    let pods = hands.all_pods().await?;
    let mut lines = vec![(gpus(hands, &pods).await?, Tone::Strong)];
    let mut held = 0;
    for (name, _, size) in JOBS {
        if hands.job(name).await?.is_none() {
            continue;
        }
        let workload = hands.workload_of(name).await?;
        held += workload.as_ref().map_or(0, gpus_held);
        let state = match story::outcome(hands, name).await? {
            Some("Failed") => ("failed".to_owned(), Tone::Bad),
            // A job that is done is worth a line once; the story goes on with the next one.
            Some(_) => ("done".to_owned(), Tone::Faint),
            None => state(&members(hands, name).await?, *size),
        };
        lines.push((format!("{name}: {}", state.0), state.1));
    }
    let idle = held > 0
        && !pods.iter().any(|pod| phase(pod) == "Running" && pod.metadata.name.as_deref() != Some("hog"));
    let tone = if idle { Tone::Bad } else { Tone::Faint };
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
        let letter =
            JOBS.iter().find(|(job, _, _)| is_member(pod, job)).map_or('H', |(_, letter, _)| *letter);
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
