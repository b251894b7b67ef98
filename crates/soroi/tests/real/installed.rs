//! Soroi as `soroi manifests` installs it, and the account that it has then.

use std::path::PathBuf;
use std::process::Command;

use crate::plane::Plane;

/// What is printed for this namespace.
pub fn manifests(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_soroi")).arg("manifests").args(arguments).output().unwrap();
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
