//! A real control plane as a stage: `soroi run` is a process, time is real.
//!
//! Knows processes and settings; never what a story is about.

use std::path::Path;
use std::time::{Duration, Instant};

use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use soroi_clock::{Clock, Sleep};
use soroi_testkit::scenario::{Injection, Placement, Settings};
use soroi_testkit::stage::{Pace, Stage};

use crate::plane::Plane;
use crate::product::Product;

/// Time-outs short enough for a story to take less than a minute. The Job controller replaces a
/// failed pod after 10 s at the earliest: recovery must leave it that time.
const SETTINGS: &str = "
leaderElection: {leaseDuration: 4s, renewEvery: 500ms}
requests: {timeout: 2s}
timeouts: {start: 20s, gather: 5s, recovery: 25s, deadPod: 20s}
undoBackoff: {min: 1s, max: 10s}
";
/// The kubeconfig of Soroi's own account, as `Plane::account` writes it.
const ACCOUNT: &str = "account.kubeconfig";
/// Lines of the product's log that a failure shows.
const LOG_MAX: usize = 45;

/// A control plane without nodes, and the product.
pub struct RealStage<'a> {
    plane: &'a Plane,
    client: kube::Client,
    settings: String,
    product: Option<Product>,
    /// When the product goes on that was told to stop.
    wakes_at: Option<Instant>,
    injections: usize,
}

impl<'a> RealStage<'a> {
    /// Starts the product on `plane`.
    pub fn new(plane: &'a Plane, client: kube::Client, placement: Placement, told: &Settings) -> Self {
        let wait = told.wait_for_pods_ready.as_ref();
        let wait = wait.map_or_else(String::new, |wait| wait.configuration(|span| Pace::REAL.wait(span)));
        let settings = format!("placement: {placement}\n{SETTINGS}{wait}");
        let mut stage = Self { plane, client, settings, product: None, wakes_at: None, injections: 0 };
        stage.start_product();
        stage
    }

    /// Has the product go on.
    fn wake(&mut self) {
        if let (Some(_), Some(product)) = (self.wakes_at.take(), &self.product) {
            product.signal("-CONT");
        }
    }

    /// Ends the product as `kill` does, so that the next one need not wait for its lease.
    pub fn end(&mut self) {
        self.wake();
        if let Some(product) = self.product.take() {
            product.terminate();
        }
        for number in 1..=std::mem::take(&mut self.injections) {
            let name = format!("injection-{number}");
            let kinds = "mutatingadmissionpolicies,mutatingadmissionpolicybindings";
            self.plane.kubectl(&["delete", kinds, &name]);
        }
    }
}

/// A client for the control plane, as its administrator. Must be called within a runtime.
pub async fn client(kubeconfig: &Path) -> kube::Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
    kube::Client::try_from(config).unwrap()
}

impl Stage for RealStage<'_> {
    fn clock(&self) -> Clock {
        Clock::real()
    }

    fn pace(&self) -> Pace {
        Pace::REAL
    }

    fn client(&self) -> kube::Client {
        self.client.clone()
    }

    fn start_product(&mut self) {
        if self.product.is_none() {
            let account = self.plane.dir.join(ACCOUNT);
            self.product = Some(Product::under_account(self.plane, "soroi", &self.settings, &account));
        }
    }

    fn stop_product(&mut self) {
        self.wakes_at = None;
        if let Some(product) = self.product.take() {
            product.kill();
        }
    }

    /// A process alone cannot have its clock stopped; time goes on for it.
    fn sleep_product(&mut self, span: Duration, _: Sleep) {
        if let Some(product) = &self.product {
            product.signal("-STOP");
            self.wakes_at = Some(Instant::now() + span);
        }
    }

    fn inject(&mut self, injection: &Injection) {
        self.injections += 1;
        let name = format!("injection-{}", self.injections);
        for object in policy(&name, injection) {
            self.plane.create(&object);
        }
        // The API server looks for new policies about once a second.
        let container = injection.container["name"].as_str().unwrap();
        let probe = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": { "name": "probe", "namespace": "default", "labels": injection.labels },
            "spec": { "containers": [{ "name": "main", "image": "probe" }] },
        });
        let dry = ["create", "-f", "-", "--dry-run=server", "-o", "jsonpath={.spec.containers[*].name}"];
        self.plane.wait(20, "the injection is in force", || {
            let made = self.plane.try_kubectl(&dry, Some(&probe.to_string()));
            made.is_ok_and(|names| names.split(' ').any(|name| name == container))
        });
    }

    fn heal(&mut self) {
        self.wake();
    }

    fn faults(&self) -> u32 {
        0
    }

    fn writes(&self) -> u64 {
        0
    }

    fn log(&self) -> Vec<String> {
        let log = std::fs::read_to_string(self.plane.dir.join("soroi.log")).unwrap_or_default();
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(LOG_MAX)..].iter().map(|line| (*line).to_owned()).collect()
    }

    fn product_died(&mut self) -> Option<String> {
        // Asked all the time, so it is noticed here when the sleep is over.
        if self.wakes_at.is_some_and(|at| at <= Instant::now()) {
            self.wake();
        }
        self.product.as_mut()?.ended().map(|status| status.to_string())
    }
}

/// The policy that adds the container to every new pod with the labels, and its binding.
fn policy(name: &str, injection: &Injection) -> [Value; 2] {
    let api = "admissionregistration.k8s.io/v1";
    let container = cel(&injection.container);
    let absent = format!("object.spec.containers.all(c, c.name != {})", cel(&injection.container["name"]));
    let patch = format!(r#"[JSONPatch{{op: "add", path: "/spec/containers/-", value: {container}}}]"#);
    let policy = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicy", "metadata": { "name": name },
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "objectSelector": { "matchLabels": injection.labels },
                "resourceRules": [{
                    "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"],
                }],
            },
            "matchConditions": [{ "name": "absent", "expression": absent }],
            "mutations": [{ "patchType": "JSONPatch", "jsonPatch": { "expression": patch } }],
        },
    });
    let binding = json!({
        "apiVersion": api, "kind": "MutatingAdmissionPolicyBinding", "metadata": { "name": name },
        "spec": { "policyName": name },
    });
    [policy, binding]
}

/// A value as CEL writes it. Values of different types stand in one map or list as `dyn`.
fn cel(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> =
                fields.iter().map(|(key, value)| format!("{}: dyn({})", json!(key), cel(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| format!("dyn({})", cel(item))).collect();
            format!("[{}]", items.join(", "))
        }
        scalar => scalar.to_string(),
    }
}
