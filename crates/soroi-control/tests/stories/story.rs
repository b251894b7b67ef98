//! The stage: an embedded cluster, the product on it, and the board that people look at.

use std::fmt::Write as _;
use std::time::Duration;

use expect_test::Expect;
use kube::Client;
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_control::Config;
use soroi_embedded::{Embedded, Options};
use soroi_testkit::wire::Wire;
use tokio::task::JoinSet;

/// A cluster in a story.
pub struct Story {
    pub clock: Clock,
    pub client: Client,
    embedded: Embedded,
    cluster: JoinSet<()>,
    product: JoinSet<()>,
    config: Config,
}

/// Plays a story under simulated time.
pub fn play<F: Future<Output = ()>>(config: Config, story: impl FnOnce(Story) -> F) {
    play_on(config, Options::default(), story);
}

/// The same on a cluster with these options.
pub fn play_on<F: Future<Output = ()>>(config: Config, options: Options, story: impl FnOnce(Story) -> F) {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let embedded = Embedded::new(clock.clone(), options);
        let client = embedded.client();
        let mut cluster = JoinSet::new();
        cluster.spawn(embedded.run_cluster());
        let mut played = Story { clock, client, embedded, cluster, product: JoinSet::new(), config };
        played.start();
        story(played).await;
    });
}

impl Story {
    /// Starts the product.
    pub fn start(&mut self) {
        let client = self.embedded.client();
        self.start_with(client);
    }

    /// Starts the product at the end of a wire.
    pub fn start_on(&mut self, wire: &Wire) {
        let client = wire.client(self.embedded.service());
        self.start_with(client);
    }

    /// Starts the product with this client.
    pub fn start_with(&mut self, client: Client) {
        let run = soroi_control::run(client, self.clock.clone(), self.config.clone());
        self.product.spawn(async move { run.await.unwrap() });
    }

    /// Starts the product with these switches.
    pub fn start_steered(&mut self, reins: soroi_control::Reins) {
        let client = self.embedded.client();
        let run = soroi_control::run_with(client, self.clock.clone(), self.config.clone(), reins);
        self.product.spawn(async move { run.await.unwrap() });
    }

    /// Waits until the product ends by itself.
    pub async fn ends(&mut self) {
        self.product.join_next().await.unwrap().unwrap();
    }

    /// Kills the product, as a crash does.
    pub async fn crash(&mut self) {
        self.product.shutdown().await;
    }

    /// Lets time pass. A part that panicked ends the story.
    pub async fn wait(&mut self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
        for tasks in [&mut self.cluster, &mut self.product] {
            if let Some(ended) = tasks.try_join_next() {
                ended.unwrap();
                panic!("a part ended");
            }
        }
    }

    /// Creates the objects of a manifest.
    pub async fn apply(&self, manifest: &str) {
        let documents: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
        for object in documents {
            self.create(&object).await;
        }
    }

    pub async fn create(&self, object: &Value) {
        let collection = collection(object["apiVersion"].as_str().unwrap(), object["kind"].as_str().unwrap());
        let namespaced = !matches!(
            object["kind"].as_str().unwrap(),
            "Node"
                | "Namespace"
                | "ResourceFlavor"
                | "ClusterQueue"
                | "Topology"
                | "Queue"
                | "AdmissionCheck"
        );
        let namespace = object["metadata"]["namespace"].as_str().unwrap_or("default");
        let path = match collection.rsplit_once('/') {
            Some((group, plural)) if namespaced => format!("{group}/namespaces/{namespace}/{plural}"),
            _ => collection,
        };
        self.send("POST", &path, "application/json", object).await;
        if object["kind"] == "Node" {
            let path = format!("{path}/{}/status", object["metadata"]["name"].as_str().unwrap());
            let body = json!({ "status": object["status"] });
            self.send("PATCH", &path, "application/merge-patch+json", &body).await;
        }
    }

    pub async fn patch(&self, path: &str, body: &Value) {
        self.send("PATCH", path, "application/merge-patch+json", body).await;
    }

    pub async fn delete(&self, path: &str) {
        self.send("DELETE", path, "application/json", &json!({})).await;
    }

    async fn send(&self, method: &str, path: &str, content: &str, body: &Value) -> Value {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header("content-type", content)
            .body(body.to_string().into_bytes())
            .unwrap();
        match self.client.request(request).await {
            Ok(answer) => answer,
            Err(error) => panic!("{method} {path}: {error}"),
        }
    }

    pub async fn list(&self, collection: &str) -> Vec<Value> {
        let request = http::Request::get(collection).body(Vec::new()).unwrap();
        let list: Value = self.client.request(request).await.unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// What people see.
    pub async fn board(&self) -> String {
        let mut board = String::new();
        let mut pods = Vec::new();
        for pod in self.list("/api/v1/pods").await {
            let name = text(&pod["metadata"]["name"]);
            let node = text(&pod["spec"]["nodeName"]);
            let state = if pod["metadata"]["deletionTimestamp"].is_null() { "" } else { ", leaving" };
            let phase = text(&pod["status"]["phase"]);
            let mut one = String::new();
            let node = if node.is_empty() { "-" } else { node };
            line(&mut one, "pod", &[&shorten(name), node, &format!("{phase}{state}")]);
            pods.push(one);
        }
        // Names end with random letters, so their order says nothing.
        pods.sort();
        board.push_str(&pods.concat());
        for job in self.list("/apis/batch/v1/jobs").await {
            let status = &job["status"];
            let suspend = if job["spec"]["suspend"] == true { "suspended" } else { "released" };
            let counts =
                format!("active {} succeeded {}", number(&status["active"]), number(&status["succeeded"]));
            line(&mut board, "job", &[text(&job["metadata"]["name"]), suspend, &counts]);
        }
        for workload in self.list("/apis/kueue.x-k8s.io/v1beta2/workloads").await {
            let mut shown = Vec::new();
            for condition in workload["status"]["conditions"].as_array().into_iter().flatten() {
                let mark = if condition["status"] == "True" { "" } else { "not " };
                shown.push(format!("{mark}{} ({})", text(&condition["type"]), text(&condition["message"])));
            }
            line(&mut board, "workload", &[&shorten(text(&workload["metadata"]["name"])), &shown.join("; ")]);
        }
        for group in self.list("/apis/scheduling.volcano.sh/v1beta1/podgroups").await {
            let condition = group["status"]["conditions"].as_array().and_then(|all| all.last().cloned());
            let message = condition.map(|one| format!("{}: {}", text(&one["type"]), text(&one["message"])));
            let phase = text(&group["status"]["phase"]);
            line(
                &mut board,
                "podgroup",
                &[text(&group["metadata"]["name"]), phase, &message.unwrap_or_default()],
            );
        }
        for plan in self.list("/apis/soroi.dev/v1alpha1/gangplans").await {
            let gang = shorten(text(&plan["spec"]["gang"]["name"]));
            line(
                &mut board,
                "plan",
                &[&gang, text(&plan["status"]["phase"]), &format!("{} pods", plan["spec"]["pods"])],
            );
        }
        for queue in self.list("/apis/kueue.x-k8s.io/v1beta2/clusterqueues").await {
            let status = &queue["status"];
            let usage = status["flavorsUsage"][0]["resources"].as_array().cloned().unwrap_or_default();
            let gpu = usage.iter().find(|one| one["name"] == "example.com/gpu");
            let used = gpu.map(|one| text(&one["total"]).to_owned()).unwrap_or_else(|| "-".into());
            let counts = format!(
                "pending {} admitted {} gpu {used}",
                number(&status["pendingWorkloads"]),
                number(&status["admittedWorkloads"])
            );
            line(&mut board, "queue", &[text(&queue["metadata"]["name"]), &counts]);
        }
        calm(&board)
    }

    /// The events of an object, oldest first: reason and message, with the count if more than one.
    pub async fn events(&self, kind: &str, name: &str) -> String {
        let mut events = self.list("/apis/events.k8s.io/v1/events").await;
        events.retain(|event| {
            event["regarding"]["kind"] == kind && shorten(text(&event["regarding"]["name"])) == name
        });
        let mut lines: Vec<(String, String)> = Vec::new();
        for event in &events {
            let count =
                event["series"]["count"].as_i64().map(|count| format!(" (x{count})")).unwrap_or_default();
            let note = calm(text(&event["note"]));
            let line = format!("{:<7} {}: {note}{count}\n", text(&event["type"]), text(&event["reason"]));
            lines.push((text(&event["metadata"]["creationTimestamp"]).to_owned(), line));
        }
        // Within a second the order is that of the text.
        lines.sort();
        lines.into_iter().map(|(_, line)| line).collect()
    }

    pub async fn see(&self, expected: Expect) {
        expected.assert_eq(&self.board().await);
    }
}

fn line(board: &mut String, kind: &str, cells: &[&str]) {
    let _ = write!(board, "{kind:<9}");
    for cell in cells {
        let _ = write!(board, " {cell:<12}");
    }
    while board.ends_with(' ') {
        board.pop();
    }
    board.push('\n');
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn number(value: &Value) -> i64 {
    value.as_i64().unwrap_or(0)
}

/// A text without what is drawn at random: the ends of generated names, and uids.
pub fn calm(text: &str) -> String {
    let part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let mut calmed = String::new();
    let mut rest = text;
    while let Some(start) = rest.find(part) {
        let end = rest[start..].find(|c| !part(c)).map_or(rest.len(), |end| start + end);
        calmed.push_str(&rest[..start]);
        calmed.push_str(&shorten(&rest[start..end]));
        rest = &rest[end..];
    }
    calmed + rest
}

/// A name without the random part at its end.
fn shorten(name: &str) -> String {
    let uid = |text: &str| text.len() == 36 && text.matches('-').count() == 4;
    if name.len() >= 36 && name.is_ascii() && uid(&name[name.len() - 36..]) {
        return format!("{}…", &name[..name.len() - 36]);
    }
    match name.rsplit_once('-') {
        Some((base, end)) if end.len() == 5 && is_random(end) => format!("{base}-…"),
        _ => name.to_owned(),
    }
}

/// Generated names have no vowels, hashes have digits (nearly always).
fn is_random(end: &str) -> bool {
    end.contains(|c: char| c.is_ascii_digit()) || !end.contains(['a', 'e', 'i', 'o', 'u'])
}

fn collection(api_version: &str, kind: &str) -> String {
    let plural = match kind {
        "ClusterQueue" => "clusterqueues".to_owned(),
        "LocalQueue" => "localqueues".to_owned(),
        "Topology" => "topologies".to_owned(),
        other => format!("{}s", other.to_lowercase()),
    };
    let base = if api_version.contains('/') { "/apis" } else { "/api" };
    format!("{base}/{api_version}/{plural}")
}

/// The article's cluster: two workers with two GPUs each, and a queue with a quota of four.
pub const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: worker1, labels: {kubernetes.io/hostname: worker1}}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110", example.com/gpu: "2"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110", example.com/gpu: "2"}
---
apiVersion: v1
kind: Node
metadata: {name: worker2, labels: {kubernetes.io/hostname: worker2}}
status:
  capacity: {cpu: "8", memory: 32Gi, pods: "110", example.com/gpu: "2"}
  allocatable: {cpu: "8", memory: 32Gi, pods: "110", example.com/gpu: "2"}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ResourceFlavor
metadata: {name: default-flavor}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {name: gpu-queue}
spec:
  namespaceSelector: {}
  resourceGroups:
  - coveredResources: ["cpu", "memory", "example.com/gpu"]
    flavors:
    - name: default-flavor
      resources:
      - {name: cpu, nominalQuota: 16}
      - {name: memory, nominalQuota: 32Gi}
      - {name: example.com/gpu, nominalQuota: 4}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {name: team-a, namespace: default}
spec: {clusterQueue: gpu-queue}
"#;

/// A pod that nobody queues and that holds one GPU.
pub const HOG: &str = r#"
apiVersion: v1
kind: Pod
metadata: {name: gpu-hog, namespace: default}
spec:
  nodeName: worker1
  containers:
  - name: hog
    image: pause
    resources: {requests: {example.com/gpu: "1"}, limits: {example.com/gpu: "1"}}
"#;

/// A PodGroup.
pub fn group(name: &str, min_member: u32) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minMember": min_member },
    })
}

/// A pod of a group, with one GPU.
pub fn member(group: &str, index: u32) -> Value {
    let mut pod = job(group, 1)["spec"]["template"].clone();
    pod["apiVersion"] = "v1".into();
    pod["kind"] = "Pod".into();
    pod["metadata"] = json!({
        "name": format!("{group}-{index}"), "namespace": "default",
        "annotations": { "scheduling.k8s.io/group-name": group },
    });
    pod["spec"]["schedulerName"] = "volcano".into();
    pod
}

/// A Job of some pods with one GPU each.
pub fn job(name: &str, pods: u32) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "default",
            "labels": { "kueue.x-k8s.io/queue-name": "team-a" },
        },
        "spec": {
            "parallelism": pods, "completions": pods, "suspend": true, "backoffLimit": 0,
            "template": { "spec": {
                "restartPolicy": "Never",
                "containers": [{
                    "name": "trainer", "image": "pause",
                    "resources": {
                        "requests": { "cpu": "500m", "memory": "128Mi", "example.com/gpu": "1" },
                        "limits": { "example.com/gpu": "1" },
                    },
                }],
            }},
        },
    })
}
