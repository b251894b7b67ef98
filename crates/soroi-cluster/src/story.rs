//! Stories for tests: a whole cluster under simulated time, told step by step and drawn as text.

use std::fmt::Write as _;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use soroi_apiserver::ApiServer;
use soroi_clock::Clock;

use crate::write::{Api, Outcome, Request};
use crate::{Options, Parts};

/// A running cluster.
pub(crate) struct Story {
    pub(crate) clock: Clock,
    api: Api,
}

/// Runs a story on a cluster with these parts.
pub(crate) fn tell<F>(parts: Parts, story: impl FnOnce(Story) -> F) -> String
where
    F: Future<Output = String>,
{
    tell_with(Options { parts, ..Options::default() }, story)
}

/// Runs a story on a cluster that is set up in a special way.
pub(crate) fn tell_with<F>(options: Options, story: impl FnOnce(Story) -> F) -> String
where
    F: Future<Output = String>,
{
    tell_to(options, |server, _| kube::Client::new(server.service(), "default"), story)
}

/// Runs a story on a cluster that reaches its API server in a special way.
pub(crate) fn tell_to<F>(
    options: Options,
    connect: impl FnOnce(&ApiServer, Clock) -> kube::Client,
    story: impl FnOnce(Story) -> F,
) -> String
where
    F: Future<Output = String>,
{
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated(Timestamp::from_second(1_700_000_000).unwrap());
        let server_options =
            soroi_apiserver::Options { seed: options.seed, ..soroi_apiserver::Options::default() };
        let server = ApiServer::new(clock.clone(), server_options);
        let told_by = Story::of(kube::Client::new(server.service(), "default"), clock.clone());
        let cluster = crate::run(connect(&server, clock.clone()), clock.clone(), options);
        tokio::select! {
            biased;
            told = story(told_by) => told,
            () = cluster => String::from("the cluster has ended"),
        }
    })
}

impl Story {
    /// A story that is told by whoever runs the cluster.
    pub(crate) fn of(client: kube::Client, clock: Clock) -> Self {
        Self { api: Api::new(client, clock.clone()), clock }
    }

    /// Sends a request that must succeed.
    pub(crate) async fn send(&self, request: Request) -> Value {
        match self.api.send(request.clone()).await {
            Outcome::Done(body) => serde_json::from_str(&body).unwrap(),
            other => panic!("{request:?}: {other:?}"),
        }
    }

    /// Sends a request, whatever becomes of it.
    pub(crate) async fn try_send(&self, request: Request) -> Outcome {
        self.api.send(request).await
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.send(Request::get(path)).await
    }

    /// Whether there is something at a path.
    pub(crate) async fn exists(&self, path: &str) -> bool {
        matches!(self.api.send(Request::get(path)).await, Outcome::Done(_))
    }

    pub(crate) async fn create(&self, collection: &str, object: Value) -> Value {
        self.send(Request::post(collection, object)).await
    }

    pub(crate) async fn patch(&self, path: &str, patch: Value) -> Value {
        self.send(Request::merge(path, patch)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> Value {
        self.send(Request::delete(path, json!({}))).await
    }

    /// Lets the cluster's time pass.
    pub(crate) async fn seconds(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    pub(crate) async fn millis(&self, millis: u64) {
        self.clock.sleep(Duration::from_millis(millis)).await;
    }

    /// A node with these resources, e.g. `cpu=4 example.com/gpu=2`.
    pub(crate) async fn node(&self, name: &str, capacity: &str) {
        let capacity = resources(capacity);
        let node = json!({
            "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": name, "labels": { "kubernetes.io/hostname": name } },
            "status": { "capacity": capacity },
        });
        self.create("/api/v1/nodes", node).await;
        self.patch(&format!("/api/v1/nodes/{name}/status"), json!({ "status": { "capacity": capacity } }))
            .await;
    }

    /// Creates a pod with these annotations, merged with `extra`.
    pub(crate) async fn pod(&self, name: &str, requests: &str, extra: Value) {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": name, "namespace": "default" },
            "spec": {
                "restartPolicy": "Never",
                "containers": [{ "name": "main", "image": "app", "resources": asked(requests) }],
            },
        });
        merge(&mut pod, &extra);
        self.create("/api/v1/namespaces/default/pods", pod).await;
    }

    /// All pods of the namespace `default`, a line each.
    pub(crate) async fn pods(&self) -> String {
        let list = self.get("/api/v1/namespaces/default/pods").await;
        let mut lines = String::new();
        for pod in list["items"].as_array().unwrap() {
            let text = |path: &str| pod.pointer(path).and_then(Value::as_str).unwrap_or("-").to_owned();
            let conditions = pod["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True");
            let restarts = pod["status"]["containerStatuses"][0]["restartCount"].as_i64().unwrap_or(0);
            let mut notes = Vec::new();
            notes.extend(ready.then(|| "ready".to_owned()));
            notes.extend((restarts > 0).then(|| format!("restarts={restarts}")));
            notes.extend(pod["metadata"]["deletionTimestamp"].is_string().then(|| "terminating".to_owned()));
            notes.extend(pod["status"]["reason"].as_str().map(str::to_owned));
            let line =
                [text("/metadata/name"), text("/spec/nodeName"), text("/status/phase"), notes.join(" ")];
            lines += line.join(" ").trim_end();
            lines += "\n";
        }
        if lines.is_empty() { "no pods\n".into() } else { lines }
    }

    /// Ready condition and taints of every node, a line each.
    pub(crate) async fn nodes(&self) -> String {
        let list = self.get("/api/v1/nodes").await;
        let mut lines = String::new();
        for node in list["items"].as_array().unwrap() {
            let conditions = node["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let ready = conditions.iter().find(|c| c["type"] == "Ready");
            let ready = ready.and_then(|ready| ready["status"].as_str()).unwrap_or("-");
            let taints = node["spec"]["taints"].as_array().cloned().unwrap_or_default();
            let taint = |taint: &Value| {
                format!("{}:{}", taint["key"].as_str().unwrap(), taint["effect"].as_str().unwrap())
            };
            let taints: Vec<_> = taints.iter().map(taint).collect();
            let name = node["metadata"]["name"].as_str().unwrap();
            writeln!(lines, "{}", format!("{name} Ready={ready} {}", taints.join(" ")).trim_end()).unwrap();
        }
        lines
    }

    /// Events about objects of the namespace `default` and about nodes: level, reason, object,
    /// message and how often it was said.
    pub(crate) async fn events(&self) -> String {
        let list = self.get("/api/v1/namespaces/default/events").await;
        let mut lines: Vec<(String, String)> = Vec::new();
        for event in list["items"].as_array().unwrap() {
            let text = |field: &str| event[field].as_str().unwrap_or_default();
            let name = event["involvedObject"]["name"].as_str().unwrap_or_default();
            let count = event["count"].as_i64().unwrap_or(1);
            let line = format!("{} {} {name}: {} (x{count})", text("type"), text("reason"), text("message"));
            lines.push((event["metadata"]["name"].as_str().unwrap().to_owned(), line));
        }
        lines.sort_by(|a, b| a.0.rsplit('.').next().cmp(&b.0.rsplit('.').next()));
        lines.into_iter().map(|(_, line)| line + "\n").collect()
    }
}

/// `cpu=4 example.com/gpu=2` as a resource list.
pub(crate) fn resources(text: &str) -> Value {
    let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
    Value::Object(pairs.map(|(name, amount)| (name.to_owned(), amount.into())).collect())
}

/// Requests; also limits for extended resources, which cannot be overcommitted.
pub(crate) fn asked(text: &str) -> Value {
    let requests = resources(text);
    let mut limits = requests.clone();
    limits.as_object_mut().unwrap().retain(|name, _| name.contains('/'));
    json!({ "requests": requests, "limits": limits })
}

fn merge(value: &mut Value, extra: &Value) {
    match (value, extra) {
        (Value::Object(value), Value::Object(extra)) => {
            for (key, extra) in extra {
                merge(value.entry(key.clone()).or_insert(Value::Null), extra);
            }
        }
        (value, extra) => *value = extra.clone(),
    }
}
