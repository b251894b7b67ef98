//! Soroi under its own account: what `soroi manifests` installs is enough, and nothing is forbidden.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::board::{holds, text};
use crate::plane::{Plane, hog, job, pause};

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
    fn forbidden(&self) -> Vec<String> {
        let metrics = self.kubectl(&["get", "--raw", "/metrics"]);
        let of = |line: &&str| line.starts_with("apiserver_request_total{") && line.contains("code=\"403\"");
        let of_jobs = |line: &&str| {
            let all = ["dry_run=\"\"", "resource=\"pods\"", "subresource=\"\"", "verb=\"POST\""];
            all.iter().all(|label| line.contains(label))
        };
        metrics.lines().filter(of).filter(|line| !of_jobs(line)).map(str::to_owned).collect()
    }
}

/// `soroi run --install=never`; killed when dropped.
pub struct Account {
    child: Child,
    pub log: PathBuf,
}

impl Account {
    pub fn start(plane: &Plane, kubeconfig: &Path, settings: &str) -> Self {
        let (log, config) = (plane.dir.join("account.log"), plane.dir.join("account.yaml"));
        let head =
            "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nhttp: {bindAddress: '127.0.0.1:0'}\n";
        std::fs::write(&config, format!("{head}{settings}")).unwrap();
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_soroi"))
            .args(["run", "--install=never", "--kubeconfig"])
            .arg(kubeconfig)
            .arg("--config")
            .arg(config)
            .env("RUST_LOG", "info,soroi_control=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file)
            .spawn()
            .unwrap();
        Self { child, log }
    }

    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("what the product said is in {}", self.log.display());
        }
    }
}

fn group(name: &str, members: u32) -> Value {
    json!({
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": { "name": name, "namespace": "default" },
        "spec": { "minMember": members },
    })
}

/// `keys`: the group, and the LocalQueue that pays, if any.
fn member(name: &str, group: Option<&str>, queue: Option<&str>) -> Value {
    let scheduler = if group.is_some() { "soroi" } else { "volcano" };
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": name, "namespace": "default", "labels": {}, "annotations": {} },
        "spec": { "schedulerName": scheduler, "containers": [{
            "name": "main", "image": "trainer",
            "resources": {
                "requests": { "cpu": "10m", "memory": "1Mi" }, "limits": { "example.com/gpu": "1" },
            },
        }] },
    });
    if let Some(group) = group {
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] = group.into();
    }
    if let Some(queue) = queue {
        pod["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = queue.into();
    }
    pod
}

fn bound(plane: &Plane) -> usize {
    plane.list("pods").iter().filter(|pod| !text(&pod["spec"]["nodeName"]).is_empty()).count()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn what_is_installed_is_enough_and_nothing_is_forbidden() {
    let plane = Plane::up("account");
    plane.install(&manifests(&[]));
    let before = plane.forbidden();
    let settings = "
leaderElection: {leaseDuration: 2s, renewEvery: 400ms}
requests: {timeout: 1s}
timeouts: {start: 2s}
undoBackoff: {min: 30s, max: 60s}
";
    let product = Account::start(&plane, &plane.account(), settings);
    plane.wait(30, "admission works", || product.said().contains("admission works"));
    plane.apply(include_str!("queues.yaml"));

    // A Job waits for the hog, starts as a whole, is switched off and leaves.
    plane.create(&hog("worker1"));
    plane.create(&job("train", "team-a", 4, "1h"));
    let pending = || {
        plane.list("workloads").iter().any(|one| text(&one["status"]["conditions"][0]["reason"]) == "Pending")
    };
    plane.wait(20, "it waits", pending);
    plane.kubectl(&["delete", "pod", "hog", "--wait=false"]);
    plane.wait(20, "the gang runs", || bound(&plane) == 4 && plane.list("gangplans").len() == 1);
    let workload = text(&plane.list("workloads")[0]["metadata"]["name"]).to_owned();
    plane.kubectl(&["patch", "workload", &workload, "--type=merge", "-p", r#"{"spec":{"active":false}}"#]);
    let left = || plane.list("gangplans").is_empty() && plane.list("jobs")[0]["spec"]["suspend"] == true;
    plane.wait(20, "it has left", left);
    plane.kubectl(&["delete", "job", "train"]);
    // Garbage collection learns of new kinds every 30 s.
    plane.wait(60, "its Workload is gone", || plane.list("workloads").is_empty());

    // A group that pays in a queue, and one that does not; a pod of Volcano's for which a group is made.
    plane.create(&group("paid", 2));
    for name in ["paid-0", "paid-1"] {
        plane.create(&member(name, Some("paid"), Some("team-a")));
    }
    plane.wait(20, "the paid group runs", || bound(&plane) == 2);
    plane.create(&group("free", 1));
    plane.create(&member("free-0", Some("free"), None));
    plane.create(&member("alone", None, None));
    plane.wait(20, "all run", || bound(&plane) == 4);
    assert!(plane.list("podgroups").len() == 3);
    // One of the paid group's pods goes and is not replaced: the rest is taken back.
    plane.kubectl(&["delete", "pod", "paid-0"]);
    plane.kubectl(&["delete", "podgroup", "--all"]);
    plane.kubectl(&["delete", "pods", "--all"]);
    plane.wait(30, "nothing is left", || {
        plane.list("gangplans").is_empty() && plane.list("workloads").is_empty()
    });

    // A gang that does not come about: half of its pods are refused.
    plane.apply("{apiVersion: v1, kind: ResourceQuota, metadata: {name: few, namespace: default}, spec: {hard: {pods: '2'}}}");
    plane.create(&job("half", "team-b", 4, "1h"));
    let undone = || {
        plane.list("jobs").iter().any(|job| holds(job, "Suspended"))
            && product.said().contains("StartTimeout")
    };
    plane.wait(30, "it was released", || plane.list("gangplans").len() == 1);
    plane.wait(30, "it was taken back", || plane.list("gangplans").is_empty() && undone());
    plane.kubectl(&["delete", "job", "half"]);

    // What was used can be taken away.
    for kind in ["localqueue", "clusterqueue", "resourceflavor", "topology"] {
        plane.kubectl(&["delete", kind, "--all", "--timeout=30s"]);
    }
    pause(1_000);
    assert_eq!(plane.forbidden(), before, "{}", product.said());
}
