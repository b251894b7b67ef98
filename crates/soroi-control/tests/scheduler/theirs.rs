//! kube-scheduler's plugins, in a process of their own.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use k8s_openapi::api::core::v1::Pod;
use serde::Deserialize;

use crate::draw::Situation;

/// The program, built.
pub struct Theirs(PathBuf);

/// What it says of a situation.
#[derive(Deserialize)]
pub struct Answer {
    /// The pods that are there, as they were stored; none if it could not be.
    #[serde(default)]
    pub running: Vec<Stored>,
    /// Those that wait.
    #[serde(default)]
    pub waiting: Vec<Verdict>,
    /// Per gang all ways to place it: the node of each pod, sorted among equal pods. `None`: one of its
    /// pods could not be created.
    #[serde(default)]
    pub gangs: Vec<Option<Vec<Vec<String>>>>,
}

/// What became of a pod when it was created.
#[derive(Deserialize)]
pub struct Stored {
    pub pod: Option<Pod>,
}

/// What kube-scheduler thinks of a pod.
#[derive(Deserialize)]
pub struct Verdict {
    /// As it was stored.
    pub pod: Option<Pod>,
    /// Per node: empty, or which plugin says no and why.
    #[serde(default)]
    pub nodes: BTreeMap<String, String>,
}

impl Theirs {
    /// Builds it: seconds when the control plane was built before, from the same modules.
    pub fn build() -> Self {
        let program = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("filters");
        let status = Command::new("go")
            .args(["build", "-mod=readonly", "-o", program.to_str().unwrap(), "./filters"])
            .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../kubernetes"))
            .status()
            .expect("Go is there: the control plane was built by it");
        assert!(status.success(), "go build failed; its output is above");
        Self(program)
    }

    /// Writes a situation down, to be looked at.
    pub fn keep(&self, seed: u64, situation: &Situation) {
        std::fs::write(self.folder().join(format!("seed-{seed}.json")), situation.json().to_string())
            .unwrap();
    }

    /// How to look at it.
    pub fn told(&self) -> String {
        format!(
            "each situation is in {}/seed-N.json; ask {} with it",
            self.folder().display(),
            self.0.display()
        )
    }

    fn folder(&self) -> &Path {
        self.0.parent().unwrap()
    }

    /// Its answers, in the order of the questions.
    pub fn ask(&self, situations: &[Situation]) -> Vec<Answer> {
        let mut child = Command::new(&self.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("it was built just now");
        let mut stdin = child.stdin.take().unwrap();
        let lines: Vec<String> = situations.iter().map(|one| one.json().to_string()).collect();
        // It answers while it reads: both ends must go on.
        let writer = std::thread::spawn(move || {
            // One that gives up reads no further; its status says so.
            lines.iter().try_for_each(|line| writeln!(stdin, "{line}")).ok();
        });
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "it gave up; its words are above");
        writer.join().unwrap();
        let answers: Vec<Answer> = String::from_utf8(output.stdout)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(answers.len(), situations.len());
        answers
    }
}
