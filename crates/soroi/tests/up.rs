//! `soroi up` as people use it: a command against a fresh cluster, files to begin with, and who may come in.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    clippy::panic,
    reason = "tests of a real process in real time"
)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn soroi_up(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soroi"))
        .arg("up")
        .args(words)
        .env("OTHER", "kept")
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A GET on the server that a kubeconfig names, by hand.
fn get(kubeconfig: &Path, path: &str) -> String {
    let config: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(kubeconfig).unwrap()).unwrap();
    let server = config["clusters"][0]["cluster"]["server"].as_str().unwrap();
    let mut stream = TcpStream::connect(server.strip_prefix("http://").unwrap()).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_command_runs_against_a_cluster_and_its_status_is_ours() {
    let script = "test -s \"$KUBECONFIG\" && echo \"$KUBECONFIG $OTHER\" && exit 3";
    let output = soroi_up(&["--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(3), "{}", text(&output.stderr));
    let said = text(&output.stdout);
    let (kubeconfig, other) = said.trim().split_once(' ').unwrap();
    assert_eq!(other, "kept", "nothing else is printed, and the environment is kept");
    assert!(!Path::new(kubeconfig).exists(), "{kubeconfig} is removed at the end");

    let output = soroi_up(&["--", "sh", "-c", "kill -KILL $$"]);
    assert_eq!(output.status.code(), Some(128 + 9), "as a shell counts it");
    let output = soroi_up(&["--", "/nothing/there"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("cannot run /nothing/there"));
}

#[test]
fn it_begins_with_what_files_say_and_ends_on_ctrl_c() {
    let dir = tempfile::tempdir().unwrap();
    let (file, kubeconfig) = (dir.path().join("objects.yaml"), dir.path().join("kubeconfig"));
    std::fs::write(
        &file,
        "
apiVersion: v1
kind: Node
metadata: {name: mine}
status: {capacity: {cpu: '4', example.com/gpu: '3'}, allocatable: {cpu: '4', example.com/gpu: '3'}}
---
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: team}}
- {apiVersion: kueue.x-k8s.io/v1beta2, kind: LocalQueue, metadata: {name: q, namespace: team}, spec: {clusterQueue: c}}
",
    )
    .unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_soroi"))
        .args(["up", "--load"])
        .arg(&file)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let said: Vec<String> =
        lines.take_while(|line| !line.starts_with("export ")).filter(|line| !line.is_empty()).collect();
    assert!(said[0].starts_with("A cluster of 1 simulated node, with Soroi in it, at http://127.0.0.1:"));
    let nodes = get(&kubeconfig, "/api/v1/nodes");
    assert!(nodes.contains("\"example.com/gpu\":\"3\"") && nodes.contains("KubeletReady"), "{nodes}");
    let lease = get(&kubeconfig, "/apis/coordination.k8s.io/v1/namespaces/soroi-system/leases/soroi");
    assert!(lease.contains("\"holderIdentity\":\"soroi-up\""), "nobody else may lead here: {lease}");
    let queue = get(&kubeconfig, "/apis/kueue.x-k8s.io/v1beta2/namespaces/team/localqueues/q");
    assert!(queue.starts_with("HTTP/1.1 200 OK"), "{queue}");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn what_cannot_be_done_is_said_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("broken.yaml");
    std::fs::write(&file, "apiVersion: v1\nkind: Nothing\nmetadata: {name: x}\n").unwrap();
    let file = file.to_str().unwrap().to_owned();
    let settings = dir.path().join("settings.yaml");
    std::fs::write(&settings, "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nplacment: QuotaOnly\n")
        .unwrap();
    let settings = settings.to_str().unwrap().to_owned();
    let short = dir.path().join("token");
    std::fs::write(&short, "short\n").unwrap();
    let short = short.to_str().unwrap().to_owned();
    for (words, expected) in [
        (vec!["--load", &file, "--", "true"], "broken.yaml: cannot load Nothing x: v1 has no kind Nothing"),
        (vec!["--config", &settings, "--", "true"], "unknown field `placment`"),
        (vec!["--load", "/nothing", "--", "true"], "cannot read /nothing"),
        (vec!["--address", "0.0.0.0", "--", "true"], "--token-file <FILE>"),
        (vec!["--address", "0.0.0.0", "--token-file", &short, "--", "true"], "a token has at least 16"),
        (vec!["--pace", "soon", "--", "true"], "a factor such as `60x`"),
        (vec!["--placement", "Anywhere", "--", "true"], "possible values: Unified"),
    ] {
        let output = soroi_up(&words);
        assert!(!output.status.success(), "{words:?}");
        assert!(text(&output.stderr).contains(expected), "{words:?}: {}", text(&output.stderr));
    }
}
