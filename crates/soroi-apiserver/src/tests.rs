//! Stories told to the server by the real kube client, under simulated time.
//!
//! A transcript is a text of requests. Each is sent and answered by one line:
//!
//! ```text
//! POST pods {metadata: {name: a}, spec: {containers: [{name: c, image: i}]}} | .status.phase
//! 201 Pod a "Pending"
//! ```
//!
//! Short paths lie in the namespace `default`; `PATCH:merge` and the like choose the format;
//! bodies are YAML; what follows ` | ` is shown of the answer.

use std::time::Duration;

use http::Request;
use jiff::Timestamp;
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use soroi_clock::Clock;

use crate::{ApiServer, Options};

mod admission;
mod apply;
mod bounds;
mod crds;
mod crud;
mod deletion;
mod events;
mod jobs;
mod kubectl;
mod misc;
mod nonsense;
mod pods;
mod properties;
mod speed;
mod watching;

/// A server and its client.
pub(crate) struct World {
    pub(crate) server: ApiServer,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
}

impl World {
    fn new(options: Options) -> Self {
        let clock = Clock::simulated(Timestamp::from_second(1_767_225_600).unwrap());
        let server = ApiServer::new(clock.clone(), options);
        let client = Client::new(server.service(), "default");
        Self { server, client, clock }
    }

    /// Sends one request; gives the status code and the answer.
    pub(crate) async fn send(&self, verb: &str, path: &str, body: &str) -> (u16, Value, Vec<String>) {
        let (method, format) = verb.split_once(':').unwrap_or((verb, ""));
        let media = match format {
            "json" => "application/json-patch+json",
            "merge" => "application/merge-patch+json",
            "strategic" => "application/strategic-merge-patch+json",
            "apply" => "application/apply-patch+yaml",
            _ => "application/json",
        };
        let body = match body {
            "" => String::new(),
            text => {
                serde_saphyr::from_str::<Value>(text).unwrap_or_else(|e| panic!("{text}: {e}")).to_string()
            }
        };
        let request = Request::builder()
            .method(method)
            .uri(full_path(path))
            .header("content-type", media)
            .header("user-agent", "tests/1")
            .header("accept", accepted(format))
            .body(Body::from(body.into_bytes()))
            .unwrap();
        let response = self.client.send(request).await.unwrap();
        let code = response.status().as_u16();
        let warnings =
            response.headers().get_all("warning").iter().map(|w| w.to_str().unwrap().to_owned()).collect();
        let bytes = response.into_body().collect_bytes().await.unwrap();
        let value = serde_json::from_slice(&bytes).unwrap_or_else(|_| String::from_utf8_lossy(&bytes).into());
        (code, value, warnings)
    }

    /// Tells a story; gives it back with the answers.
    pub(crate) async fn tell(&self, story: &str) -> String {
        let mut out = String::new();
        for line in story.lines().map(str::trim) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(secs) = line.strip_prefix("SLEEP ") {
                self.clock.sleep(Duration::from_secs(secs.parse().unwrap())).await;
                continue;
            }
            let (request, shown) = line.rsplit_once(" | ").unwrap_or((line, ""));
            let mut parts = request.splitn(3, ' ');
            let (verb, path, body) =
                (parts.next().unwrap(), parts.next().unwrap_or(""), parts.next().unwrap_or(""));
            let (code, value, warnings) = self.send(verb, path, body).await;
            out.push_str(&format!("{line}\n    {code} {}", describe(&value)));
            for field in shown.split_whitespace() {
                out.push_str(&format!(" {}", pick(&value, field)));
            }
            for warning in warnings {
                out.push_str(&format!("\n    {warning}"));
            }
            out.push('\n');
        }
        out
    }
}

/// What is asked for by `GET:table` and the like.
fn accepted(format: &str) -> &'static str {
    match format {
        "table" => "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
        "aggregated" => {
            "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
        }
        "metadata" => {
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
        }
        _ => "application/json",
    }
}

/// `pods/a` lies in `default`; the group is found by the plural.
fn full_path(path: &str) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    let plural = path.split(['/', '?']).next().unwrap();
    let (base, namespaced) = match plural {
        "jobs" => ("/apis/batch/v1", true),
        "deployments" => ("/apis/apps/v1", true),
        "leases" => ("/apis/coordination.k8s.io/v1", true),
        "poddisruptionbudgets" => ("/apis/policy/v1", true),
        "priorityclasses" => ("/apis/scheduling.k8s.io/v1", false),
        "runtimeclasses" => ("/apis/node.k8s.io/v1", false),
        "customresourcedefinitions" => ("/apis/apiextensions.k8s.io/v1", false),
        "queues" => ("/apis/example.com/v1", true),
        "nodes" | "namespaces" | "persistentvolumes" => ("/api/v1", false),
        _ => ("/api/v1", true),
    };
    if namespaced { format!("{base}/namespaces/default/{path}") } else { format!("{base}/{path}") }
}

fn describe(value: &Value) -> String {
    let text = |path: &[&str]| crate::object::text(value, path).to_owned();
    match value["kind"].as_str() {
        Some("Status") if value["status"] == "Failure" => {
            format!("{} {}", text(&["reason"]), text(&["message"]))
        }
        Some("Status") => "Success".to_owned(),
        Some(kind) if kind.ends_with("List") && value["items"].is_array() => {
            let names = value["items"].as_array().unwrap().iter();
            let names: Vec<&str> = names.map(|i| i["metadata"]["name"].as_str().unwrap_or("?")).collect();
            format!("{kind} [{}]", names.join(" "))
        }
        Some(kind) => format!("{kind} {}", text(&["metadata", "name"])).trim_end().to_owned(),
        None => value.to_string(),
    }
}

/// The value at a path like `.spec.containers.0.name`; keys with dots are written in brackets.
fn pick(value: &Value, path: &str) -> String {
    let mut here = value;
    let mut rest = path.trim_start_matches('.');
    while !rest.is_empty() {
        let (key, after) = match rest.strip_prefix('[') {
            Some(inner) => inner.split_once(']').unwrap(),
            None => rest.split_at(rest.find(['.', '[']).unwrap_or(rest.len())),
        };
        here = match (key.parse::<usize>(), here) {
            (Ok(index), Value::Array(items)) => items.get(index).unwrap_or(&Value::Null),
            _ => here.get(key).unwrap_or(&Value::Null),
        };
        rest = after.trim_start_matches('.');
    }
    here.as_str().filter(|s| s.contains('\n')).map_or_else(|| here.to_string(), str::to_owned)
}

/// Runs a story against a fresh server and compares it.
pub(crate) fn check(story: &str, expected: expect_test::Expect) {
    check_with(Options::default(), story, expected);
}

pub(crate) fn check_with(options: Options, story: &str, expected: expect_test::Expect) {
    run(options, async |world| expected.assert_eq(&world.tell(story).await));
}

/// Runs something against a fresh server under simulated time.
pub(crate) fn run(options: Options, test: impl AsyncFnOnce(World)) {
    soroi_clock::simulated_runtime().unwrap().block_on(async {
        test(World::new(options)).await;
    });
}
