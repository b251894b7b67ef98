//! Commands of a shell, and what came of them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Where commands are run: kubectl on the path, one cluster, one folder.
pub struct Shell<'a> {
    pub kubeconfig: &'a Path,
    /// Commands see files by their names in it.
    pub folder: &'a Path,
    /// kubectl keeps caches in its home; each cluster needs its own.
    pub home: &'a Path,
}

impl Shell<'_> {
    /// Runs a line with an input.
    pub fn run(&self, line: &str, input: &str) -> Output {
        let binaries = std::env::var("SOROI_KUBERNETES_BIN")
            .expect("SOROI_KUBERNETES_BIN is not set: run these tests by `cargo xtask test --real`");
        let path = format!("{binaries}:{}", std::env::var("PATH").unwrap());
        std::fs::create_dir_all(self.home).unwrap();
        let mut child = Command::new("sh")
            .args(["-c", line])
            .current_dir(self.folder)
            .env("PATH", path)
            .env("HOME", self.home)
            .env("KUBECONFIG", self.kubeconfig)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // A command that does not read its input may have ended before it is written.
        let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
        child.wait_with_output().unwrap()
    }
}

/// What a command printed, to both its outputs.
pub fn printed(output: &Output) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    format!("{}{}", text(&output.stdout), text(&output.stderr))
}
