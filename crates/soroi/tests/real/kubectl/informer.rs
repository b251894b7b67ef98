//! Clients that list and watch, and must list anew when the server no longer knows where they were: a
//! shared informer of client-go, and kube-rs, against `soroi up` and a real API server.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use expect_test::{Expect, expect};
use futures::StreamExt as _;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams, WatchEvent, WatchParams};

use super::steps::{Shell, printed};
use super::up::Up;
use crate::plane::Plane;

/// More changes than `soroi up` remembers of one kind.
const CHANGES: usize = 10_100;
/// How long a line may take: client-go tries again after up to half a minute.
const WITHIN: Duration = Duration::from_secs(60);

/// The program in `kubernetes/informer`.
struct Informer {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    /// Lines that came while another one was waited for.
    early: Vec<String>,
}

impl Informer {
    fn start(kubeconfig: &Path, dir: &Path) -> Self {
        let binaries = PathBuf::from(std::env::var_os("SOROI_KUBERNETES_BIN").unwrap());
        let log = std::fs::File::create(dir.join("informer.log")).unwrap();
        let mut child = Command::new(binaries.join("informer"))
            .arg(kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = sender.send(line);
            }
        });
        Self { child, input, lines, early: Vec::new() }
    }

    /// The next so many lines, in the order of their letters: news of several objects come in any order.
    fn hears(&mut self, count: usize) -> String {
        let mut heard: BTreeSet<String> = self.early.drain(..).collect();
        while heard.len() < count {
            match self.lines.recv_timeout(WITHIN) {
                Ok(line) => heard.insert(line),
                Err(_) => break,
            };
        }
        heard.into_iter().collect::<Vec<_>>().join(", ")
    }

    fn tell(&mut self, command: &str) {
        writeln!(self.input, "{command}").unwrap();
        loop {
            match self.lines.recv_timeout(WITHIN).unwrap().as_str() {
                "ok" => return,
                other => self.early.push(other.to_owned()),
            }
        }
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// kubectl, which must succeed.
fn kubectl(shell: &Shell<'_>, words: &str) {
    let output = shell.run(&format!("kubectl {words}"), "");
    assert!(output.status.success(), "kubectl {words}: {}", printed(&output));
}

fn make(shell: &Shell<'_>, name: &str) {
    kubectl(shell, &format!("create configmap {name} --from-literal=a=1"));
    kubectl(shell, &format!("label configmap {name} informer=yes"));
}

fn set(shell: &Shell<'_>, name: &str, value: u32) {
    kubectl(shell, &format!("patch configmap {name} -p '{{\"data\":{{\"a\":\"{value}\"}}}}'"));
}

/// What the informer hears. `age` makes the server forget what was before.
fn told_by_client_go(shell: &Shell<'_>, dir: &Path, age: impl FnOnce(&mut Informer)) -> String {
    make(shell, "a");
    make(shell, "b");
    let mut informer = Informer::start(shell.kubeconfig, dir);
    let mut told = format!("at first: {}\n", informer.hears(3));
    set(shell, "a", 2);
    let _ = writeln!(told, "changed: {}", informer.hears(1));
    make(shell, "c");
    let _ = writeln!(told, "made: {}", informer.hears(1));
    kubectl(shell, "delete configmap b");
    let _ = writeln!(told, "deleted: {}", informer.hears(1));
    informer.tell("hold");
    set(shell, "a", 3);
    kubectl(shell, "delete configmap c");
    make(shell, "d");
    age(&mut informer);
    informer.tell("release");
    let _ = writeln!(told, "after a long pause: {}", informer.hears(4));
    set(shell, "d", 2);
    let _ = writeln!(told, "goes on: {}", informer.hears(1));
    told
}

/// The same with kube-rs's own list and watch. `age` as before.
fn told_by_kube(kubeconfig: &Path, shell: &Shell<'_>, age: impl FnOnce()) -> String {
    // Whoever was first in this process has installed the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let config = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
    let client = runtime.block_on(async {
        let config = kube::Config::from_custom_kubeconfig(config, &Default::default()).await.unwrap();
        kube::Client::try_from(config).unwrap()
    });
    let configs: Api<ConfigMap> = Api::namespaced(client, "default");
    let list = || {
        let listed = runtime.block_on(configs.list(&ListParams::default().labels("informer=yes"))).unwrap();
        let names: Vec<String> = listed.items.iter().map(|one| one.metadata.name.clone().unwrap()).collect();
        (names.join(" "), listed.metadata.resource_version.unwrap())
    };
    // Two events at most, of which an error is the last.
    let watch = |version: &str| {
        let params = WatchParams::default().labels("informer=yes").timeout(5);
        runtime.block_on(async {
            let stream = configs.watch(&params, version).await?;
            let events: Vec<_> = stream.take(2).collect().await;
            let told = events.into_iter().map(|event| match event {
                Ok(WatchEvent::Added(object)) => format!("added {}", object.metadata.name.unwrap()),
                Ok(WatchEvent::Modified(object)) => format!("modified {}", object.metadata.name.unwrap()),
                Ok(WatchEvent::Deleted(object)) => format!("deleted {}", object.metadata.name.unwrap()),
                Ok(WatchEvent::Bookmark(_)) => "bookmark".to_owned(),
                Ok(WatchEvent::Error(status)) => format!("{} {}", status.code, status.reason),
                Err(error) => error.to_string(),
            });
            Ok::<_, kube::Error>(told.collect::<Vec<_>>().join(", "))
        })
    };
    let (names, version) = list();
    let mut told = format!("there are: {names}\n");
    set(shell, "a", 4);
    kubectl(shell, "delete configmap d");
    let _ = writeln!(told, "since then: {}", watch(&version).unwrap());
    age();
    let late = watch(&version).unwrap_or_else(|error| match error {
        kube::Error::Api(status) => format!("{} {}", status.code, status.reason),
        error => error.to_string(),
    });
    let _ = writeln!(told, "after a long pause: {late}");
    let _ = writeln!(told, "there are: {}", list().0);
    told
}

/// Both servers must give the same.
fn check(seen: &str) {
    let expected: Expect = expect![[r#"
        at first: add a 1, add b 1, synced
        changed: update a 2
        made: add c 1
        deleted: delete b 1
        after a long pause: add d 1, delete c 1, expired, update a 3
        goes on: update d 2
        there are: a d
        since then: modified a, deleted d
        after a long pause: 410 Expired
        there are: a
    "#]];
    expected.assert_eq(seen);
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn clients_survive_a_version_that_is_too_old() {
    let up = Up::start("informer", &["--nodes", "0"]);
    let home = up.dir.join("home");
    let shell = Shell { kubeconfig: &up.kubeconfig, folder: &up.dir, home: &home };
    let churn = |informer: &mut Informer| informer.tell(&format!("churn {CHANGES}"));
    let mut seen = told_by_client_go(&shell, &up.dir, churn);
    seen += &told_by_kube(&up.kubeconfig, &shell, || {
        churn(&mut Informer::start(&up.kubeconfig, &up.dir));
    });
    check(&seen);
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn clients_survive_a_version_that_is_too_old_really() {
    let plane = Plane::bare("informer", &[]);
    let (kubeconfig, home) = (plane.kubeconfig(), plane.dir.join("home"));
    let shell = Shell { kubeconfig: &kubeconfig, folder: &plane.dir, home: &home };
    // What a new process serves watches from begins with its start.
    let mut seen = told_by_client_go(&shell, &plane.dir, |_| plane.restart("kube-apiserver"));
    seen += &told_by_kube(&kubeconfig, &shell, || plane.restart("kube-apiserver"));
    check(&seen);
}
