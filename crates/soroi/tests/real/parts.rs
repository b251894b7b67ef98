//! Bad days of a control plane: its parts are stopped, killed and started again, and told of at once
//! what happens.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::board::text;
use crate::plane::Plane;

impl Plane {
    /// The lines of the list of processes: number and program.
    fn parts(&self) -> Vec<(String, String)> {
        let list = std::fs::read_to_string(self.dir.join("pids")).unwrap();
        let parts = list.lines().filter_map(|line| line.split_once(' '));
        parts.map(|(pid, program)| (pid.to_owned(), program.to_owned())).collect()
    }

    fn pid(&self, program: &str) -> String {
        let parts = self.parts();
        let found = parts.into_iter().find(|(_, name)| name == program);
        found.unwrap_or_else(|| panic!("no {program} was started")).0
    }

    /// Sends a signal to a part.
    pub fn signal(&self, program: &str, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.pid(program)]).status().unwrap();
        assert!(sent.success(), "{program} does not run");
    }

    /// As `kill -9`; how it was started.
    pub fn kill_part(&self, program: &str) -> Vec<String> {
        let line = std::fs::read(format!("/proc/{}/cmdline", self.pid(program))).unwrap();
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8(word.to_vec()).unwrap());
        let words = words.filter(|word| !word.is_empty()).collect();
        self.signal(program, "-KILL");
        words
    }

    /// Starts what was killed in the same way.
    #[allow(clippy::zombie_processes, reason = "it is ended with all other parts, by its number")]
    pub fn start_part(&self, program: &str, words: &[String]) {
        let path: PathBuf = self.dir.join(format!("{program}.log"));
        let log = std::fs::File::options().append(true).open(path).unwrap();
        let child = Command::new(&words[0])
            .args(&words[1..])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .unwrap();
        let parts = self.parts().into_iter().map(|(pid, name)| {
            let pid = if name == program { child.id().to_string() } else { pid };
            format!("{pid} {name}\n")
        });
        std::fs::write(self.dir.join("pids"), parts.collect::<String>()).unwrap();
    }

    /// Waits until the API server answers.
    pub fn answers(&self) {
        self.wait(60, "the API server answers", || {
            self.try_kubectl(&["get", "--raw", "/readyz"], None).is_ok()
        });
    }

    /// The pods of the default namespace and all that happens to them from now on.
    pub fn watch_pods(&self) -> Watch {
        let mut child = self
            .kubectl_command()
            .args(["get", "--raw", "/api/v1/namespaces/default/pods?watch=true"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        // Ends with its input, which ends with the child.
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Watch { child, lines, bound: BTreeSet::new() }
    }
}

/// A running watch. Ends when it is dropped.
pub struct Watch {
    child: Child,
    lines: Receiver<String>,
    bound: BTreeSet<String>,
}

impl Watch {
    /// Waits until so many pods in all were seen with a node, since the watch began.
    pub fn bound(&mut self, count: usize) {
        let began = Instant::now();
        while self.bound.len() < count {
            let left = Duration::from_secs(60).saturating_sub(began.elapsed());
            let line = self.lines.recv_timeout(left);
            let line = line.unwrap_or_else(|_| panic!("{} of {count} pods were bound", self.bound.len()));
            let event: Value = serde_json::from_str(&line).unwrap();
            if !event["object"]["spec"]["nodeName"].is_null() {
                self.bound.insert(text(&event["object"]["metadata"]["uid"]).to_owned());
            }
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // It may have ended already, with its API server.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
