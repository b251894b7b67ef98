//! Where is it measured? A namespace and nodes of the bench's own, and the way to them.

use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};
use soroi_clock::Clock;

use super::eyes::Eyes;
use super::objects::{self, CLUSTER_QUEUES, FLAVORS, NAME, NODE_LABEL, PODS};
use crate::run::apply;

/// How long nodes may take until they are ready, and objects until they are gone.
const PATIENCE: Duration = Duration::from_secs(300);
const NODES: &str = "/api/v1/nodes";
const NAMESPACES: &str = "/api/v1/namespaces";
const JSON: &str = "application/json";

/// The bench's part of the cluster.
pub(super) struct Site {
    pub(super) client: kube::Client,
    pub(super) clock: Clock,
    /// Of the API server.
    pub(super) version: String,
}

impl Site {
    /// Makes the namespace, after whatever an earlier run left is gone.
    pub(super) async fn begin(client: kube::Client) -> anyhow::Result<Self> {
        let version: Value = apply::get(&client, "/version")
            .await
            .context("the API server does not answer")?
            .unwrap_or_default();
        let version = version["gitVersion"].as_str().unwrap_or("unknown").to_owned();
        let site = Self { client, clock: Clock::real(), version };
        site.clear().await?;
        let namespace = json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": NAME } });
        site.create(NAMESPACES, &namespace).await?;
        let account = format!("{NAMESPACES}/{NAME}/serviceaccounts/default");
        site.wait("the namespace has its service account", async || Ok(site.find(&account).await?.is_some()))
            .await?;
        Ok(site)
    }

    /// Opens a watch of the bench's pods.
    pub(super) async fn eyes(&self) -> anyhow::Result<Eyes> {
        Eyes::open(self.client.clone(), NAME).await
    }

    /// What is at a path.
    pub(super) async fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        apply::get(&self.client, path).await.with_context(|| format!("cannot read {path}"))
    }

    /// How many objects a collection has.
    pub(super) async fn count(&self, path: &str) -> anyhow::Result<usize> {
        let list = self.find(path).await?.unwrap_or_default();
        Ok(list["items"].as_array().map_or(0, Vec::len))
    }

    pub(super) async fn create(&self, collection: &str, object: &Value) -> anyhow::Result<Value> {
        let made = apply::send(&self.client, "POST", collection, JSON, object).await;
        made.with_context(|| format!("cannot create {} at {collection}", object["metadata"]["name"]))
    }

    /// Creates all of them, in order, with so many requests under way.
    pub(super) async fn create_all(
        &self,
        objects: impl IntoIterator<Item = (&'static str, Value)>,
        in_flight: usize,
    ) -> anyhow::Result<()> {
        let each = objects
            .into_iter()
            .map(|(collection, object)| async move { self.create(collection, &object).await.map(|_| ()) });
        stream::iter(each).buffer_unordered(in_flight).try_collect::<()>().await
    }

    /// `content`: `merge-patch` or `json-patch`.
    pub(super) async fn patch(&self, path: &str, content: &str, patch: &Value) -> anyhow::Result<Value> {
        let content = format!("application/{content}+json");
        let patched = apply::send(&self.client, "PATCH", path, &content, patch).await;
        patched.with_context(|| format!("cannot patch {path}"))
    }

    /// Binds a pod.
    pub(super) async fn bind(&self, pod: &str, uid: &str, node: usize) -> anyhow::Result<()> {
        let path = format!("{PODS}/{pod}/binding");
        let bound = apply::send(&self.client, "POST", &path, JSON, &objects::binding(pod, uid, node)).await;
        bound.map(|_| ()).with_context(|| format!("cannot bind {pod}"))
    }

    /// Deletes an object at once, or all of a collection; it may be gone already. A large collection
    /// takes longer than the API server lets a request take: it is asked for until it is answered.
    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<()> {
        let began = self.clock.now();
        loop {
            let answer = self.delete_once(path).await;
            let waited = self.clock.now().duration_since(began).unsigned_abs();
            match answer {
                Err(error) if is_cut_off(&error) && waited < PATIENCE => {
                    self.clock.sleep(Duration::from_secs(1)).await;
                }
                answer => return answer.with_context(|| format!("cannot delete {path}")),
            }
        }
    }

    async fn delete_once(&self, path: &str) -> Result<(), kube::Error> {
        let options = json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0,
            "propagationPolicy": "Background",
        });
        match apply::send(&self.client, "DELETE", path, JSON, &options).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Waits until it is so.
    pub(super) async fn wait(
        &self,
        what: &str,
        mut happened: impl AsyncFnMut() -> anyhow::Result<bool>,
    ) -> anyhow::Result<()> {
        let began = self.clock.now();
        while !happened().await? {
            let waited = self.clock.now().duration_since(began).unsigned_abs();
            ensure!(waited < PATIENCE, "{what}: not within {PATIENCE:?}");
            self.clock.sleep(Duration::from_millis(20)).await;
        }
        Ok(())
    }

    /// Makes nodes until there are so many, and waits until they are ready.
    pub(super) async fn nodes(&self, count: usize, gpus: u32) -> anyhow::Result<()> {
        let selector = format!("{NODES}?labelSelector={NODE_LABEL}");
        let there = self.count(&selector).await?;
        let missing = (there + 1..=count).map(|number| (NODES, objects::node(number, gpus)));
        self.create_all(missing, 16).await?;
        let ready = self.wait("the nodes are ready", async || {
            let list = self.find(&selector).await?.unwrap_or_default();
            let ready = list["items"].as_array().into_iter().flatten().filter(|node| is_ready(node)).count();
            if ready < count {
                self.clock.sleep(Duration::from_millis(200)).await;
            }
            Ok(ready >= count)
        });
        ready.await.context("who plays their kubelets? Start the cluster with: cargo xtask kubernetes up")
    }

    /// Lets the kubelets of all the bench's nodes fall silent, or come back.
    pub(super) async fn silence(&self, nodes: usize, silent: bool) -> anyhow::Result<()> {
        let word = if silent { "unreachable" } else { "alive" };
        let patch = json!({ "metadata": { "annotations": { soroi_cluster::annotation::KUBELET: word } } });
        let each = (1..=nodes).map(|number| {
            let (path, patch) = (format!("{NODES}/{}", objects::node_name(number)), &patch);
            async move { self.patch(&path, "merge-patch", patch).await.map(|_| ()) }
        });
        stream::iter(each).buffer_unordered(16).try_collect::<()>().await
    }

    /// Refuses to measure Soroi where none leads.
    pub(super) async fn needs_leader(&self) -> anyhow::Result<()> {
        if self.leader().await?.is_none() {
            bail!("no Soroi leads on this cluster; start one: soroi run");
        }
        Ok(())
    }

    /// Who holds the lease of Soroi's leader, by its default name.
    pub(super) async fn leader(&self) -> anyhow::Result<Option<String>> {
        let lease = self.find("/apis/coordination.k8s.io/v1/namespaces/soroi-system/leases/soroi").await?;
        let holder = lease.unwrap_or_default()["spec"]["holderIdentity"].as_str().map(str::to_owned);
        Ok(holder.filter(|holder| !holder.is_empty()))
    }

    /// Takes everything away again.
    pub(super) async fn clear(&self) -> anyhow::Result<()> {
        let namespace = format!("{NAMESPACES}/{NAME}");
        if self.find(&namespace).await?.is_some() {
            // First the pods: nobody but their kubelets would do that as fast.
            self.delete(PODS).await?;
        }
        self.delete(&namespace).await?;
        self.delete(&format!("{CLUSTER_QUEUES}/{NAME}")).await?;
        self.delete(&format!("{FLAVORS}/{NAME}")).await?;
        super::bare::clear(self).await?;
        self.delete(&format!("{NODES}?labelSelector={NODE_LABEL}")).await?;
        self.wait("the namespace of the bench is gone", async || Ok(self.find(&namespace).await?.is_none()))
            .await
    }
}

/// The API server gave up on a request that took too long.
fn is_cut_off(error: &kube::Error) -> bool {
    match error {
        kube::Error::Api(status) => status.code == 504,
        kube::Error::Service(_) | kube::Error::HyperError(_) => true,
        _ => false,
    }
}

/// The API server gives every new node a taint, which kube-controller-manager takes away when the
/// node is Ready.
fn is_ready(node: &Value) -> bool {
    let all = |path: &str| node.pointer(path).and_then(Value::as_array).into_iter().flatten();
    let mut taints = all("/spec/taints");
    all("/status/conditions").any(|condition| condition["type"] == "Ready" && condition["status"] == "True")
        && !taints.any(|taint| taint["key"] == "node.kubernetes.io/not-ready")
}
