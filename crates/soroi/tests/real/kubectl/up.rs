//! `soroi up` as a process of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A running cluster. Ends when it is dropped.
pub struct Up {
    child: Child,
    pub dir: PathBuf,
    pub kubeconfig: PathBuf,
}

impl Up {
    /// Starts one in a folder of this name, and waits until it is ready.
    pub fn start(name: &str, flags: &[&str]) -> Self {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("up").join(name);
        let _ = std::fs::remove_dir_all(&dir);
        std::fs::create_dir_all(&dir).unwrap();
        let kubeconfig = dir.join("kubeconfig");
        let log = std::fs::File::create(dir.join("log")).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_soroi"))
            .args(["up", "--kubeconfig"])
            .arg(&kubeconfig)
            .args(flags)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
        let ready = lines.any(|line| line == format!("export KUBECONFIG={}", kubeconfig.display()));
        assert!(ready, "it ended: {}", std::fs::read_to_string(dir.join("log")).unwrap());
        Self { child, dir, kubeconfig }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        // As Ctrl-C does; it must end well.
        let pid = self.child.id().to_string();
        let _ = Command::new("kill").args(["-INT", &pid]).status();
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(ended.unwrap().success());
        }
    }
}
