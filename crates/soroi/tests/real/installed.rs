//! Soroi as `soroi manifests` installs it, and the account that it has then.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use crate::plane::Plane;

/// The head of every settings file.
pub const HEAD: &str = "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n";

/// Settings without webhooks: a product that may be down at any time, and an API server that must not
/// wait for it.
#[allow(dead_code, reason = "stories that are told by kubectl have them")]
pub const WITHOUT_WEBHOOKS: &str = "webhooks: null\n";

/// Settings with webhooks that the API server can reach: there is no network of Services.
#[allow(dead_code, reason = "stories of `scenarios/` do without")]
pub fn webhooks(more: &str) -> String {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    format!("webhooks: {{url: 'https://127.0.0.1:{free}', bindAddress: '0.0.0.0:{free}'{more}}}\n")
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
