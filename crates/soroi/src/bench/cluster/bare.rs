//! What does it cost at least? A client that makes the writes of Soroi, knowing the plan.
//!
//! It learns the writes from what Soroi has left on the cluster, and makes them again on kinds with
//! the same schemas in a group of the bench's own, so that Soroi has no part in it. Pods of its Jobs
//! get their scheduler as Soroi's do: by a policy of the same text.

use anyhow::{Context as _, ensure};
use futures::future::{try_join, try_join_all};
use serde_json::{Value, json};

use super::eyes::{Eyes, Seen};
use super::objects::{self, Gang, JOBS, NAME, NOBODY, PLANS, PODS, WORKLOADS};
use super::site::Site;
use super::wakeup::{MEMBERS, PATIENCE, nodes_of_members};
use crate::run::admission;

/// The group of the copied kinds.
const GROUP: &str = "bench.soroi.dev";
/// The label that a release gives pods, in that group.
const GANG: &str = "bench.soroi.dev/gang";
const POLICY: &str = "pods.bench.soroi.dev";
const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
/// The kinds that Soroi writes between the event and the last bind.
const COPIED: [&str; 2] = ["gangplans.soroi.dev", "workloads.kueue.x-k8s.io"];
const PLAN_COPIES: &str = "/apis/bench.soroi.dev/v1alpha1/namespaces/soroi-bench/gangplans";
const WORKLOAD_COPIES: &str = "/apis/bench.soroi.dev/v1beta2/namespaces/soroi-bench/workloads";

/// What Soroi was seen to write for a gang.
pub(super) struct Recipe {
    plan: Value,
    /// Of a gang that is a Job.
    job: Option<JobWrites>,
}

struct JobWrites {
    /// The Workload with its status.
    workload: Value,
    /// The template of the Job as it was released.
    template: Value,
}

/// Makes the copies of the kinds, and with `policy` that of the policy for pods.
pub(super) async fn install(site: &Site, policy: bool) -> anyhow::Result<()> {
    for crd in soroi_api::crds::all() {
        let crd = serde_json::to_value(crd)?;
        if COPIED.iter().any(|name| crd["metadata"]["name"] == *name) {
            site.create(CRDS, &copied(crd)).await?;
        }
    }
    for collection in [PLAN_COPIES, WORKLOAD_COPIES] {
        site.wait("the copied kinds are served", async || Ok(site.find(collection).await?.is_some())).await?;
    }
    if !policy {
        return Ok(());
    }
    for (path, object) in admission::like_ours(POLICY, GANG, NOBODY) {
        let collection = path.strip_suffix(POLICY).unwrap_or(&path).trim_end_matches('/');
        site.create(collection, &object).await?;
    }
    let mut pod = objects::pod("probe", "probe", &Gang::Single);
    pod["metadata"]["labels"][GANG] = "probe".into();
    let probe = format!("{PODS}?dryRun=All");
    site.wait("the copied policy is in force", async || {
        Ok(site.create(&probe, &pod).await?["spec"]["schedulerName"] == NOBODY)
    })
    .await
}

/// The same kind in the bench's group.
fn copied(mut crd: Value) -> Value {
    crd["spec"]["group"] = GROUP.into();
    crd["spec"]["names"]["categories"] = Value::Null;
    crd["spec"]["names"]["shortNames"] = Value::Null;
    crd["spec"]["conversion"] = Value::Null;
    let name = format!("{}.{GROUP}", crd["spec"]["names"]["plural"].as_str().unwrap_or_default());
    crd["metadata"] = json!({ "name": name });
    crd
}

/// Takes the copies away.
pub(super) async fn clear(site: &Site) -> anyhow::Result<()> {
    for (path, _) in admission::like_ours(POLICY, GANG, NOBODY) {
        site.delete(&path).await?;
    }
    for name in COPIED {
        let plural = name.split('.').next().unwrap_or_default();
        let path = format!("{CRDS}/{plural}.{GROUP}");
        site.delete(&path).await?;
        site.wait("the copied kinds are gone", async || Ok(site.find(&path).await?.is_none())).await?;
    }
    Ok(())
}

/// Reads what Soroi wrote for the only gang that there is.
pub(super) async fn learn(site: &Site, job: Option<&str>) -> anyhow::Result<Recipe> {
    let plan = only(site, PLANS).await?;
    let Some(job) = job else { return Ok(Recipe { plan, job: None }) };
    let workload = only(site, WORKLOADS).await?;
    let job = site.find(&format!("{JOBS}/{job}")).await?.context("the Job is gone")?;
    let template = job["spec"]["template"].clone();
    Ok(Recipe { plan, job: Some(JobWrites { workload, template }) })
}

async fn only(site: &Site, collection: &str) -> anyhow::Result<Value> {
    let list = site.find(collection).await?.unwrap_or_default();
    let items = list["items"].as_array().cloned().unwrap_or_default();
    ensure!(items.len() == 1, "{} objects at {collection}, and not the one of the gang", items.len());
    Ok(items.into_iter().next().unwrap_or_default())
}

/// A copy of an object, under another name and in the bench's group.
fn copy(of: &Value, version: &str, name: &str) -> Value {
    json!({
        "apiVersion": format!("{GROUP}/{version}"), "kind": of["kind"],
        "metadata": { "name": name, "namespace": NAME },
        "spec": of["spec"], "status": of["status"],
    })
}

/// Everything that one round writes, ready to be sent.
pub(super) struct Round {
    batch: String,
    plan: Value,
    job: Option<Release>,
}

struct Release {
    job: Value,
    status: Value,
}

impl Round {
    /// Prepares a round: what exists before it, and what will be sent. `job`: as it was created.
    pub(super) async fn prepare(
        site: &Site,
        recipe: &Recipe,
        batch: &str,
        job: Option<&Value>,
    ) -> anyhow::Result<Self> {
        let mut plan = copy(&recipe.plan, "v1alpha1", batch);
        // Soroi moves it on after the last bind, which is not waited for.
        plan["status"]["phase"] = "Committed".into();
        let mut round = Self { batch: batch.to_owned(), plan, job: None };
        if let (Some(writes), Some(job)) = (&recipe.job, job) {
            let workload = copy(&writes.workload, "v1beta2", batch);
            site.create(WORKLOAD_COPIES, &workload).await?;
            let status = json!({ "status": writes.workload["status"] });
            round.job = Some(Release { job: release(job, &writes.template, batch), status });
        }
        Ok(round)
    }

    /// Makes the writes, in Soroi's order.
    pub(super) async fn act(&self, site: &Site, eyes: &mut Eyes) -> anyhow::Result<()> {
        site.create(PLAN_COPIES, &self.plan).await?;
        let Some(Release { job, status }) = &self.job else { return self.bind(site, eyes).await };
        let path = format!("{WORKLOAD_COPIES}/{}/status", self.batch);
        let show = site.patch(&path, "merge-patch", status);
        let start = async {
            site.patch(&format!("{JOBS}/{}", self.batch), "json-patch", job).await?;
            self.bind(site, eyes).await
        };
        try_join(start, async { show.await.map(|_| ()) }).await.map(|_| ())
    }

    /// Binds the members, once all of them are there.
    async fn bind(&self, site: &Site, eyes: &mut Eyes) -> anyhow::Result<()> {
        let all = |seen: &Seen| seen.batch(&self.batch).there.len() == MEMBERS;
        eyes.until("the pods of the bare client are there", PATIENCE, all).await?;
        let pods = eyes.seen.batch(&self.batch).there.clone();
        let binds = pods.iter().zip(nodes_of_members()).map(|((pod, uid), node)| site.bind(pod, uid, node));
        try_join_all(binds).await.map(|_| ())
    }

    /// Takes away what was written beside the pods.
    pub(super) async fn clear(&self, site: &Site) -> anyhow::Result<()> {
        site.delete(&format!("{PLAN_COPIES}/{}", self.batch)).await?;
        site.delete(&format!("{WORKLOAD_COPIES}/{}", self.batch)).await
    }
}

/// The patch that starts a Job: what Soroi's has, with labels that Soroi does not know.
fn release(job: &Value, released: &Value, batch: &str) -> Value {
    let mut metadata = released["metadata"].clone();
    for part in ["labels", "annotations"] {
        let foreign = metadata[part].as_object().into_iter().flatten().filter_map(|(key, value)| {
            // The Job's own, which the API server made for it.
            let own = job["spec"]["template"]["metadata"][part].get(key);
            let key = key.replace("kueue.x-k8s.io", GROUP).replace("soroi.dev/gang", GANG);
            match own {
                Some(own) => Some((key, own.clone())),
                None if key.starts_with(GROUP) => Some((key, value.clone())),
                None => None,
            }
        });
        metadata[part] = foreign.collect::<serde_json::Map<_, _>>().into();
    }
    metadata["labels"][super::objects::BATCH] = batch.into();
    json!([
        { "op": "test", "path": "/metadata/uid", "value": job["metadata"]["uid"] },
        { "op": "test", "path": "/spec/suspend", "value": true },
        { "op": "add", "path": "/spec/template/metadata", "value": metadata },
        { "op": "add", "path": "/spec/template/spec/nodeSelector", "value": released["spec"]["nodeSelector"] },
        { "op": "add", "path": "/spec/suspend", "value": false },
    ])
}
