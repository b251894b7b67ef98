//! One embedded cluster of the demo, and what can be done and read there.
//!
//! Each cluster has a simulated runtime of its own: its time stands still while another cluster's
//! turn is shown, and what it does takes no time but computing.

use std::time::Duration;

use anyhow::{Context as _, bail};
use futures::{Stream, StreamExt as _, TryStreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use soroi_api::kueue::Workload;
use soroi_clock::Clock;
use soroi_control::config::Config;
use soroi_embedded::{Embedded, Options};
use soroi_engine::decision::Settings;
use soroi_engine::event::Policy;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// The cluster's clock starts here, so that two runs of the demo show the same.
const STARTED: &str = "2026-01-01T00:00:00Z";
/// A condition is looked at this often in the span that is waited for: nobody sees the difference,
/// and each look costs a request.
const LOOKS: u32 = 400;

/// A running cluster under one policy.
pub(crate) struct Site {
    runtime: Runtime,
    tasks: JoinSet<&'static str>,
    pub(crate) hands: Hands,
}

/// A client of the cluster, and its clock.
#[derive(Clone)]
pub(crate) struct Hands {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

impl Site {
    /// Starts a cluster without nodes, and Soroi in it.
    pub(crate) fn start(policy: Policy) -> anyhow::Result<Self> {
        let runtime = soroi_clock::simulated_runtime().context("cannot start a runtime")?;
        let started: Timestamp = STARTED.parse().context("the demo's start time")?;
        let (tasks, hands) = runtime.block_on(async {
            let clock = Clock::simulated(started);
            let embedded = Embedded::new(clock.clone(), Options::default());
            let settings = Settings { placement: policy, ..Settings::default() };
            let config = Config { settings, ..Config::default() };
            let client = embedded.client();
            let control = soroi_control::run(embedded.client(), clock.clone(), config);
            let cluster = embedded.run_cluster();
            let mut tasks = JoinSet::new();
            tasks.spawn(async move {
                cluster.await;
                "the embedded cluster"
            });
            tasks.spawn(async move {
                // Only its end matters here: neither part is meant to return.
                let _ = control.await;
                "Soroi's control"
            });
            (tasks, Hands { client, clock })
        });
        Ok(Self { runtime, tasks, hands })
    }

    /// Lets the cluster live until `work` is done.
    pub(crate) fn play<F: Future>(&mut self, work: impl FnOnce(Hands) -> F) -> anyhow::Result<F::Output> {
        let output = self.runtime.block_on(work(self.hands.clone()));
        match self.tasks.try_join_next() {
            Some(Ok(part)) => bail!("{part} ended by itself"),
            Some(Err(error)) => Err(error).context("a part of the embedded cluster broke"),
            None => Ok(output),
        }
    }
}

impl Hands {
    /// Creates an object of a namespaced kind in `default`, or of a cluster-scoped one.
    pub(crate) async fn create<K>(&self, manifest: Value) -> anyhow::Result<()>
    where
        K: Resource<DynamicType = ()> + Clone + Serialize + DeserializeOwned + std::fmt::Debug,
    {
        let path = match manifest["metadata"]["namespace"].as_str() {
            Some(namespace) => K::url_path(&(), Some(namespace)),
            None => K::url_path(&(), None),
        };
        let request = kube::core::Request::new(path)
            .create(&PostParams::default(), manifest.to_string().into_bytes())
            .context("cannot form a request")?;
        let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
        let what = format!("cannot create {} {name}", K::kind(&()));
        self.client.request::<Value>(request).await.map(drop).context(what)
    }

    /// Lets simulated time pass.
    pub(crate) async fn wait(&self, span: Duration) {
        self.clock.sleep(span).await;
    }

    /// Lets time pass until `done`, but no longer than `most`. Says whether it was done.
    pub(crate) async fn until<F>(&self, most: Duration, mut done: impl FnMut() -> F) -> anyhow::Result<bool>
    where
        F: Future<Output = anyhow::Result<bool>>,
    {
        let until = self.clock.now() + most;
        while !done().await? {
            if self.clock.now() >= until {
                return Ok(false);
            }
            self.clock.sleep(most / LOOKS).await;
        }
        Ok(true)
    }

    fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client.clone(), "default")
    }

    /// All pods.
    pub(crate) async fn all_pods(&self) -> anyhow::Result<Vec<Pod>> {
        Ok(self.pods().list(&ListParams::default()).await.context("cannot list pods")?.items)
    }

    /// The job, if it is there.
    pub(crate) async fn job(&self, name: &str) -> anyhow::Result<Option<Job>> {
        let jobs: Api<Job> = Api::namespaced(self.client.clone(), "default");
        jobs.get_opt(name).await.context("cannot read a job")
    }

    /// The Workload of a job, if there is one.
    pub(crate) async fn workload_of(&self, job: &str) -> anyhow::Result<Option<Workload>> {
        let workloads: Api<Workload> = Api::namespaced(self.client.clone(), "default");
        let list = workloads.list(&ListParams::default()).await.context("cannot list workloads")?;
        let owned = |workload: &Workload| {
            let owners = workload.metadata.owner_references.iter().flatten();
            owners.into_iter().any(|owner| owner.kind == "Job" && owner.name == job)
        };
        Ok(list.items.into_iter().find(owned))
    }

    /// Deletes a pod, as `kubectl delete pod --wait=false` does.
    pub(crate) async fn delete_pod(&self, name: &str) -> anyhow::Result<()> {
        self.pods().delete(name, &DeleteParams::default()).await.map(drop).context("cannot delete a pod")
    }

    /// Cordons a node.
    pub(crate) async fn cordon(&self, node: &str) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        nodes.cordon(node).await.map(drop).context("cannot cordon a node")
    }

    /// Names of the nodes that have GPUs.
    pub(crate) async fn gpu_nodes(&self) -> anyhow::Result<Vec<String>> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let list = nodes.list(&ListParams::default()).await.context("cannot list nodes")?;
        let gpu_nodes = list.items.into_iter().filter(super::board::has_gpus);
        Ok(gpu_nodes.filter_map(|node| node.metadata.name).collect())
    }

    /// Makes a node schedulable again.
    pub(crate) async fn uncordon(&self, node: &str) -> anyhow::Result<()> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let patch = Patch::Merge(serde_json::json!({"spec": {"unschedulable": null}}));
        nodes.patch(node, &PatchParams::default(), &patch).await.map(drop).context("cannot uncordon a node")
    }

    /// Every state of every pod from now on, the present ones first.
    pub(crate) async fn follow_pods(
        &self,
    ) -> anyhow::Result<impl Stream<Item = anyhow::Result<Pod>> + Unpin> {
        let pods = self.pods();
        let list = pods.list(&ListParams::default()).await.context("cannot list pods")?;
        let version = list.metadata.resource_version.clone().unwrap_or_default();
        let changes = pods.watch(&WatchParams::default(), &version).await.context("cannot watch pods")?;
        let changes = changes.map_err(anyhow::Error::from).try_filter_map(|event| async move {
            Ok(match event {
                WatchEvent::Added(pod) | WatchEvent::Modified(pod) | WatchEvent::Deleted(pod) => Some(pod),
                WatchEvent::Bookmark(_) => None,
                WatchEvent::Error(status) => bail!("the watch of pods broke: {}", status.message),
            })
        });
        Ok(futures::stream::iter(list.items.into_iter().map(Ok)).chain(changes).boxed_local())
    }

    /// Gives `work` at most `span` of the cluster's time; `None` when it did not end by then.
    pub(crate) async fn within<F: Future>(&self, span: Duration, work: F) -> Option<F::Output> {
        self.clock.timeout(span, work).await.ok()
    }
}
