//! What happens in the demo, step by step, and what is read at each?
//!
//! The same steps for every policy, through the API alone. Knows the story; never how it is shown.
#![expect(clippy::disallowed_methods, reason = "msToAllBound is wall time: simulated time would be 0")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures::StreamExt as _;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use serde::Serialize;
use soroi_api::kueue::{ClusterQueue, LocalQueue, ResourceFlavor, Topology, Workload};
use soroi_engine::event::Policy;

use super::manifests::{self, GPU};
use super::site::Hands;

/// Pods of the large job.
pub(crate) const GANG: usize = 4;
/// Enough for everything that happens at once to have happened; less than the second job runs.
const SETTLE: Duration = Duration::from_secs(10);
/// How long the demo waits for what should happen soon.
const SOON: Duration = Duration::from_secs(180);
/// How long the demo waits for the jobs to finish: the large one runs 10 minutes, and the second
/// may have to wait for it.
const LONG: Duration = Duration::from_secs(3_600);

/// A step of the story.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beat {
    Hog,
    Train,
    Second,
    SecondEnds,
    HogLeaves,
    JobsFinish,
    ThirdWorker,
    NodeCordoned,
    NoSpareTries,
}

impl Beat {
    pub(crate) const ALL: [Self; 9] = [
        Self::Hog,
        Self::Train,
        Self::Second,
        Self::SecondEnds,
        Self::HogLeaves,
        Self::JobsFinish,
        Self::ThirdWorker,
        Self::NodeCordoned,
        Self::NoSpareTries,
    ];

    /// The jobs that the step is about.
    pub(crate) fn jobs(self) -> &'static [&'static str] {
        match self {
            Self::ThirdWorker | Self::NodeCordoned => &["train-2"],
            Self::NoSpareTries => &["train-3"],
            _ => &["train", "second"],
        }
    }

    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Hog => "A hog takes one GPU: a pod that no queue knows of",
            Self::Train => "The job `train` arrives: 4 pods with 1 GPU each, for 10 minutes; 3 GPUs are free",
            Self::Second => "The job `second` arrives: 2 pods with 1 GPU each, for 30 seconds",
            Self::SecondEnds => "40 seconds later",
            Self::HogLeaves => "The hog is deleted; nothing else happens",
            Self::JobsFinish => "The jobs finish",
            Self::ThirdWorker => "A third worker joins, and `train` runs again",
            Self::NodeCordoned => "A node of `train` is cordoned and one pod there deleted",
            Self::NoSpareTries => "The same with `backoffLimit: 0`: any lost pod fails the job, everywhere",
        }
    }
}

/// What the demo is about, per policy. The field names are the output's.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Facts {
    pub(crate) configuration: &'static str,
    pub(crate) with_hog: WithHog,
    pub(crate) after_hog_deleted: AfterHogDeleted,
    pub(crate) after_cordon: AfterCordon,
    /// Why jobs waited, at the moments that the facts above are of.
    pub(crate) reasons: Reasons,
    /// What Soroi says about the waiting job; shown, not part of the output.
    #[serde(skip)]
    pub(crate) why: String,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WithHog {
    pub(crate) running: usize,
    pub(crate) pending: usize,
    pub(crate) admitted: bool,
    pub(crate) gpu_quota_used: i64,
    pub(crate) second_job_running: usize,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AfterHogDeleted {
    pub(crate) running: usize,
    pub(crate) ms_to_all_bound: Option<f64>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AfterCordon {
    pub(crate) running: usize,
    pub(crate) whole: bool,
}

/// By job: why it, or some of its pods, waited. Who did not wait is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Reasons {
    pub(crate) with_hog: BTreeMap<&'static str, String>,
    pub(crate) after_hog_deleted: BTreeMap<&'static str, String>,
    pub(crate) after_cordon: BTreeMap<&'static str, String>,
}

impl Facts {
    pub(crate) fn new(policy: Policy) -> Self {
        Self {
            configuration: policy_name(policy),
            with_hog: WithHog::default(),
            after_hog_deleted: AfterHogDeleted::default(),
            after_cordon: AfterCordon::default(),
            reasons: Reasons::default(),
            why: String::new(),
        }
    }
}

/// The policy's name in configuration and output.
pub(crate) fn policy_name(policy: Policy) -> &'static str {
    match policy {
        Policy::Unified => "Unified",
        Policy::TopologyOnly => "TopologyOnly",
        Policy::AfterAdmission => "AfterAdmission",
        Policy::QuotaOnly => "QuotaOnly",
    }
}

/// Puts nodes and queues in place.
pub(crate) async fn prepare(hands: Hands) -> anyhow::Result<()> {
    for node in manifests::nodes() {
        hands.create::<Node>(node).await?;
    }
    hands.create::<Topology>(manifests::topology()).await?;
    hands.create::<ResourceFlavor>(manifests::flavor()).await?;
    hands.create::<ClusterQueue>(manifests::cluster_queue()).await?;
    hands.create::<LocalQueue>(manifests::local_queue()).await?;
    hands.wait(SETTLE).await;
    Ok(())
}

/// Plays one step, and notes what it shows.
pub(crate) async fn play(beat: Beat, hands: Hands, mut facts: Facts) -> anyhow::Result<Facts> {
    match beat {
        Beat::Hog => {
            hands.create::<Pod>(manifests::hog()).await?;
            hands.wait(SETTLE).await;
        }
        Beat::Train => {
            hands.create::<Job>(manifests::job("train", 4, "10m", None)).await?;
            hands.wait(SETTLE).await;
            facts.why = why(&hands, "train").await?;
        }
        Beat::Second => {
            hands.create::<Job>(manifests::job("second", 2, "30s", None)).await?;
            hands.wait(SETTLE).await;
            facts.with_hog = with_hog(&hands).await?;
            facts.reasons.with_hog = waiting(&hands, beat).await?;
        }
        Beat::SecondEnds => hands.wait(Duration::from_secs(40)).await,
        Beat::HogLeaves => {
            let ms_to_all_bound = delete_hog(&hands).await?;
            hands.wait(SETTLE).await;
            let running = in_phase(&members(&hands, "train").await?, "Running");
            facts.after_hog_deleted = AfterHogDeleted { running, ms_to_all_bound };
            facts.reasons.after_hog_deleted = waiting(&hands, beat).await?;
        }
        Beat::JobsFinish => {
            for job in ["train", "second"] {
                let finished = hands.until(LONG, || finished(&hands, job)).await?;
                ensure!(finished, "job {job} did not finish");
            }
        }
        Beat::ThirdWorker => {
            hands.create::<Node>(manifests::worker("worker-3")).await?;
            hands.wait(SETTLE).await;
            run_whole(&hands, "train-2", None).await?;
        }
        Beat::NodeCordoned => {
            let node = lose_one(&hands, "train-2").await?;
            let whole = hands.until(SOON, || whole(&hands, "train-2")).await?;
            let running = in_phase(&members(&hands, "train-2").await?, "Running");
            facts.after_cordon = AfterCordon { running, whole };
            facts.reasons.after_cordon = waiting(&hands, beat).await?;
            hands.uncordon(&node).await?;
        }
        Beat::NoSpareTries => {
            let finished_before = hands.until(LONG, || finished(&hands, "train-2")).await?;
            if finished_before {
                run_whole(&hands, "train-3", Some(0)).await?;
                lose_one(&hands, "train-3").await?;
                hands.until(SOON, || finished(&hands, "train-3")).await?;
            }
        }
    }
    Ok(facts)
}

/// Creates a gang and waits until it runs as a whole; nothing is in its way.
async fn run_whole(hands: &Hands, job: &str, backoff_limit: Option<u32>) -> anyhow::Result<()> {
    hands.create::<Job>(manifests::job(job, 4, "10m", backoff_limit)).await?;
    let runs = hands.until(SOON, || whole(hands, job)).await?;
    ensure!(runs, "job {job} does not run although all its GPUs are free: {}", why(hands, job).await?);
    Ok(())
}

/// Cordons a node of the job and deletes one of its pods there. Returns the node.
async fn lose_one(hands: &Hands, job: &str) -> anyhow::Result<String> {
    let pods = members(hands, job).await?;
    let pod = pods.first().context("the job has no pod to lose")?;
    let node = node_of(pod).context("the pod has no node")?.to_owned();
    hands.cordon(&node).await?;
    hands.delete_pod(pod.metadata.name.as_deref().unwrap_or_default()).await?;
    // The deleted pod must not count as one that runs.
    hands.wait(Duration::from_secs(5)).await;
    Ok(node)
}

/// Deletes the hog, and measures how long it takes until all pods of the job are bound.
async fn delete_hog(hands: &Hands) -> anyhow::Result<Option<f64>> {
    let mut pods = hands.follow_pods().await?;
    let started = Instant::now();
    hands.delete_pod("hog").await?;
    let all_bound = async {
        let mut bound = BTreeSet::new();
        while let Some(pod) = pods.next().await {
            let pod = pod?;
            if is_member(&pod, "train")
                && node_of(&pod).is_some()
                && pod.metadata.deletion_timestamp.is_none()
            {
                bound.insert(pod.metadata.uid.clone());
            }
            if bound.len() == GANG {
                return Ok(Some(started.elapsed().as_secs_f64() * 1e3));
            }
        }
        anyhow::Ok(None)
    };
    hands.within(SOON, all_bound).await.unwrap_or(Ok(None))
}

async fn with_hog(hands: &Hands) -> anyhow::Result<WithHog> {
    let train = members(hands, "train").await?;
    let workload = hands.workload_of("train").await?;
    Ok(WithHog {
        running: in_phase(&train, "Running"),
        pending: in_phase(&train, "Pending"),
        admitted: workload.as_ref().is_some_and(|workload| has_condition(workload, "Admitted")),
        gpu_quota_used: workload.as_ref().map_or(0, gpus_held),
        second_job_running: in_phase(&members(hands, "second").await?, "Running"),
    })
}

/// Pods of a job that have not ended.
pub(crate) async fn members(hands: &Hands, job: &str) -> anyhow::Result<Vec<Pod>> {
    let pods = hands.all_pods().await?;
    let alive = |pod: &Pod| {
        !matches!(phase(pod), "Succeeded" | "Failed") && pod.metadata.deletion_timestamp.is_none()
    };
    Ok(pods.into_iter().filter(|pod| is_member(pod, job) && alive(pod)).collect())
}

/// Whether the pod belongs to the job.
pub(crate) fn is_member(pod: &Pod, job: &str) -> bool {
    let owners = pod.metadata.owner_references.iter().flatten();
    owners.into_iter().any(|owner| owner.kind == "Job" && owner.name == job)
}

/// The pod's phase.
pub(crate) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or("Pending")
}

/// The node that the pod is bound to.
pub(crate) fn node_of(pod: &Pod) -> Option<&str> {
    pod.spec.as_ref()?.node_name.as_deref()
}

fn in_phase(pods: &[Pod], wanted: &str) -> usize {
    pods.iter().filter(|pod| phase(pod) == wanted).count()
}

async fn whole(hands: &Hands, job: &str) -> anyhow::Result<bool> {
    Ok(in_phase(&members(hands, job).await?, "Running") == GANG)
}

/// Whether the job completed or failed.
pub(crate) async fn finished(hands: &Hands, job: &str) -> anyhow::Result<bool> {
    Ok(outcome(hands, job).await?.is_some())
}

/// `Complete` or `Failed`, once the job is one of them.
pub(crate) async fn outcome(hands: &Hands, job: &str) -> anyhow::Result<Option<&'static str>> {
    let job = hands.job(job).await?;
    let conditions = job.and_then(|job| job.status).and_then(|status| status.conditions).unwrap_or_default();
    let is_true = |kind: &str| conditions.iter().any(|found| found.type_ == kind && found.status == "True");
    Ok(["Complete", "Failed"].into_iter().find(|kind| is_true(kind)))
}

/// Whether a condition of the Workload is True.
pub(crate) fn has_condition(workload: &Workload, kind: &str) -> bool {
    let conditions = workload.status.as_ref().map(|status| status.conditions.as_slice()).unwrap_or_default();
    conditions.iter().any(|found| found.type_ == kind && found.status == "True")
}

/// GPUs of quota that the Workload holds.
pub(crate) fn gpus_held(workload: &Workload) -> i64 {
    if !has_condition(workload, "QuotaReserved") || has_condition(workload, "Finished") {
        return 0;
    }
    let admission = workload.status.as_ref().and_then(|status| status.admission.as_ref());
    let assignments = admission.map(|admission| admission.pod_set_assignments.as_slice()).unwrap_or_default();
    assignments.iter().filter_map(|pod_set| pod_set.resource_usage.get(GPU)?.base_units(GPU).ok()).sum()
}

/// Why jobs of this step wait, of those that do.
async fn waiting(hands: &Hands, beat: Beat) -> anyhow::Result<BTreeMap<&'static str, String>> {
    let mut reasons = BTreeMap::new();
    for job in beat.jobs() {
        let mut reason = why(hands, job).await?;
        if reason.is_empty() {
            reason = why_a_pod_waits(hands, job).await?;
        }
        if !reason.is_empty() && !finished(hands, job).await? {
            reasons.insert(*job, reason);
        }
    }
    Ok(reasons)
}

/// What is said about the first pod of a job, by name, that waits for a node.
async fn why_a_pod_waits(hands: &Hands, job: &str) -> anyhow::Result<String> {
    let said = members(hands, job).await?.into_iter().filter_map(|pod| {
        let conditions = pod.status?.conditions?;
        let waits =
            conditions.into_iter().find(|one| one.type_ == "PodScheduled" && one.status == "False")?;
        Some((pod.metadata.name, waits.message?))
    });
    Ok(said.min().map(|(_, message)| message).unwrap_or_default())
}

/// What Soroi says about a waiting job.
async fn why(hands: &Hands, job: &str) -> anyhow::Result<String> {
    let workload = hands.workload_of(job).await?;
    let conditions =
        workload.and_then(|workload| workload.status).map(|status| status.conditions).unwrap_or_default();
    let waiting =
        conditions.into_iter().find(|found| found.type_ == "QuotaReserved" && found.status == "False");
    Ok(waiting.map(|found| found.message).unwrap_or_default())
}
