//! A control plane of one's own, and kubectl.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// A control plane. Ends when it is dropped; its output stays in the folder.
pub struct Plane {
    pub dir: PathBuf,
    xtask: PathBuf,
    kubectl: PathBuf,
}

fn from_environment(name: &str) -> PathBuf {
    match std::env::var_os(name) {
        Some(path) => path.into(),
        None => panic!("{name} is not set: run these tests by `cargo xtask test --real`"),
    }
}

impl Plane {
    /// Starts one with the article's nodes. `name` is that of the story.
    pub fn up(name: &str) -> Self {
        let plane = Self::bare(name, &[]);
        plane.apply(include_str!("nodes.yaml"));
        plane.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=30s"]);
        plane
    }

    /// Starts one without nodes, with flags for `up`.
    pub fn bare(name: &str, flags: &[&str]) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("real").join(name);
        let xtask = from_environment("SOROI_XTASK");
        let kubectl = from_environment("SOROI_KUBERNETES_BIN").join("kubectl");
        let plane = Self { dir, xtask, kubectl };
        if plane.dir.join("pids").exists() {
            plane.xtask("down", &[]);
        }
        let _ = std::fs::remove_dir_all(&plane.dir);
        plane.xtask("up", &[&["--nodes", "0"], flags].concat());
        plane
    }

    fn xtask(&self, chore: &str, arguments: &[&str]) {
        let output = Command::new(&self.xtask)
            .args(["kubernetes", chore, "--dir"])
            .arg(&self.dir)
            .args(arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{chore}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Ends one of its programs and starts it again; returns when the API server answers.
    pub fn restart(&self, program: &str) {
        self.xtask("restart", &[program]);
    }

    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("kubeconfig")
    }

    /// What kubectl prints; it must succeed.
    pub fn kubectl(&self, arguments: &[&str]) -> String {
        self.try_kubectl(arguments, None).unwrap_or_else(|error| panic!("kubectl {arguments:?}: {error}"))
    }

    /// What kubectl prints, or what it complains of.
    pub fn try_kubectl(&self, arguments: &[&str], input: Option<&str>) -> Result<String, String> {
        let mut child = self
            .kubectl_command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.unwrap_or_default().as_bytes()).unwrap();
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
    }

    /// kubectl, talking to this control plane.
    pub fn kubectl_command(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command.arg("--kubeconfig").arg(self.kubeconfig());
        command
    }

    /// Applies a manifest.
    pub fn apply(&self, manifest: &str) {
        self.try_kubectl(&["apply", "-f", "-"], Some(manifest)).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Creates an object that has only a prefix of a name, too.
    pub fn create(&self, object: &Value) {
        self.try_kubectl(&["create", "-f", "-"], Some(&object.to_string()))
            .unwrap_or_else(|error| panic!("{error}"));
    }

    /// Objects of a kind, as JSON; none if the kind is not served.
    pub fn list(&self, kind: &str) -> Vec<Value> {
        let listed = self.try_kubectl(&["get", kind, "--all-namespaces", "-o", "json"], None);
        let Ok(listed) = listed else { return Vec::new() };
        let list: Value = serde_json::from_str(&listed).unwrap();
        list["items"].as_array().cloned().unwrap_or_default()
    }

    /// Waits until it comes true; the time that took.
    pub fn wait(&self, seconds: u64, what: &str, mut happened: impl FnMut() -> bool) -> Duration {
        let began = Instant::now();
        while !happened() {
            assert!(began.elapsed() < Duration::from_secs(seconds), "{what}: not within {seconds} s");
            pause(50);
        }
        began.elapsed()
    }
}

impl Drop for Plane {
    fn drop(&mut self) {
        // A panic in a panic would hide the first one.
        let down = Command::new(&self.xtask).args(["kubernetes", "down", "--dir"]).arg(&self.dir).output();
        if !std::thread::panicking() {
            assert!(down.unwrap().status.success());
        }
    }
}

pub fn pause(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// A Job of this queue, with one GPU per pod.
pub fn job(name: &str, queue: &str, pods: u32, run_for: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {
            "name": name, "namespace": "default", "labels": { "kueue.x-k8s.io/queue-name": queue },
        },
        "spec": {
            "parallelism": pods, "completions": pods,
            "template": {
                "metadata": { "annotations": { "soroi.dev/run-for": run_for } },
                "spec": { "restartPolicy": "Never", "containers": [{
                    "name": "main", "image": "trainer",
                    "resources": {
                        "requests": { "cpu": "10m", "memory": "1Mi" },
                        "limits": { "example.com/gpu": "1" },
                    },
                }] },
            },
        },
    })
}

/// A pod that nobody queues, already on its node, with one GPU.
pub fn hog(node: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": { "name": "hog", "namespace": "default" },
        "spec": { "nodeName": node, "containers": [{
            "name": "main", "image": "hog", "resources": { "limits": { "example.com/gpu": "1" } },
        }] },
    })
}
