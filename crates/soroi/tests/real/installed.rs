//! Soroi as `soroi manifests` installs it, and the account that it has then.

use std::net::{IpAddr, TcpListener, UdpSocket};
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use crate::plane::Plane;

/// The head of every settings file.
pub const HEAD: &str = "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n";

/// Settings without webhooks: a product that may be down at any time, and an API server that must not
/// wait for it.
#[allow(dead_code, reason = "stories that are told by kubectl have them")]
pub const WITHOUT_WEBHOOKS: &str = "webhooks: null\n";

/// Settings with webhooks that the API server reaches without a Service.
#[allow(dead_code, reason = "stories of `scenarios/` do without")]
pub fn webhooks(more: &str) -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("webhooks: {{url: 'https://127.0.0.1:{free}', bindAddress: '0.0.0.0:{free}'{more}}}\n")
}

/// Settings with webhooks behind the Service that is installed, and where they listen. `None`: this machine has no
/// address but loopback, and endpoints must have one.
#[allow(dead_code, reason = "stories of `scenarios/` do without")]
pub fn webhooks_of_a_service() -> Option<(String, IpAddr, u16)> {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    // Nothing is sent: it is asked which address would be.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    let free = TcpListener::bind((address, 0)).ok()?.local_addr().unwrap().port();
    let settings = format!("webhooks: {{bindAddress: '{address}:{free}'}}\n");
    (!address.is_loopback()).then_some((settings, address, free))
}

/// What is printed for these settings.
pub fn manifests(plane: &Plane, settings: &str, arguments: &[&str]) -> String {
    let config = plane.dir.join("manifests.yaml");
    std::fs::write(&config, format!("{HEAD}{settings}")).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_soroi"))
        .args(["manifests", "--config"])
        .arg(config)
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

impl Plane {
    /// Installs as the README says. No Deployment: its pods would be simulated ones.
    pub fn install(&self, manifests: &str) {
        let applied = self.try_kubectl(&["apply", "--server-side", "-f", "-"], Some(manifests));
        applied.unwrap_or_else(|error| panic!("{error}"));
        self.kubectl(&["scale", "deployment", "soroi", "--namespace=soroi-system", "--replicas=0"]);
    }

    /// Gives the Service of the webhooks this endpoint, in the place of its pods.
    #[allow(dead_code, reason = "stories of `scenarios/` do without")]
    pub fn endpoint(&self, address: IpAddr, port: u16) {
        let service = self.kubectl(&["get", "service", "--namespace=soroi-system", "-o", "json"]);
        let service: Value = serde_json::from_str(&service).unwrap();
        let service = &service["items"][0];
        let ports = service["spec"]["ports"].as_array().unwrap();
        let asked = &ports.iter().find(|port| port["port"] == 443).unwrap()["name"];
        let name = service["metadata"]["name"].as_str().unwrap();
        let patch = r#"{"spec":{"selector":null}}"#;
        self.kubectl(&["patch", "service", name, "--namespace=soroi-system", "-p", patch]);
        self.create(&json!({
            "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
            "metadata": {
                "name": name, "namespace": "soroi-system", "labels": { "kubernetes.io/service-name": name },
            },
            "endpoints": [{ "addresses": [address.to_string()], "conditions": { "ready": true } }],
            "ports": [{ "name": asked, "port": port, "protocol": "TCP" }],
        }));
    }

    /// A kubeconfig with a token of the account, asked for as a pod's is.
    pub fn account(&self) -> PathBuf {
        let token = self.kubectl(&["create", "token", "soroi", "--namespace=soroi-system"]);
        let admin = std::fs::read_to_string(self.kubeconfig()).unwrap();
        let (head, _) = admin.split_once("  user: {token:").unwrap();
        let path = self.dir.join("account.kubeconfig");
        std::fs::write(&path, format!("{head}  user: {{token: {token}}}\n")).unwrap();
        path
    }

    /// Requests that the API server has answered with 403 so far. Pods beyond a ResourceQuota are
    /// refused so to the Job controller; ours are only ever created for show.
    pub fn forbidden(&self) -> Vec<String> {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]);
        let of = |line: &&str| line.starts_with("apiserver_request_total{") && line.contains("code=\"403\"");
        let of_jobs = |line: &&str| {
            let all = ["dry_run=\"\"", "resource=\"pods\"", "subresource=\"\"", "verb=\"POST\""];
            all.iter().all(|label| line.contains(label))
        };
        metrics.lines().filter(of).filter(|line| !of_jobs(line)).map(str::to_owned).collect()
    }
}
