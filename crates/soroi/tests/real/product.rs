//! `soroi run` as a process of its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::plane::{Plane, pause};

/// A lease that is short, so that a successor need not be waited for; 3 s at most.
pub const SHORT: &str = "
leaderElection: {leaseDuration: 2s, renewEvery: 400ms}
requests: {timeout: 1s}
";

/// A running product. Killed when it is dropped.
pub struct Product {
    child: Child,
    address: String,
    pub log: PathBuf,
}

/// The command, not started: with settings beside those that every test has.
fn command(plane: &Plane, name: &str, settings: &str, kubeconfig: &Path) -> Command {
    let config = plane.dir.join(format!("{name}.yaml"));
    let head = "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nhttp: {bindAddress: '127.0.0.1:0'}\n";
    std::fs::write(&config, format!("{head}identity: {name}\n{settings}")).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_soroi"));
    command.arg("run").arg("--kubeconfig").arg(kubeconfig).arg("--config").arg(config);
    command.stdin(Stdio::null()).env("RUST_LOG", "info,soroi_control=debug");
    command
}

impl Product {
    /// Starts one as the cluster's administrator and waits until it is ready.
    pub fn start(plane: &Plane, name: &str, settings: &str) -> Self {
        Self::started(plane, name, command(plane, name, settings, &plane.kubeconfig()))
    }

    /// The same as one whose wall clock is wrong by so many seconds.
    ///
    /// The C compiler that links Rust programs makes what wraps the clock, since Soroi has no switch
    /// for such a thing.
    pub fn with_wrong_clock(plane: &Plane, name: &str, settings: &str, wrong_by_secs: i64) -> Self {
        let wrapper = plane.dir.join("wrong_clock.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/wrong_clock.c");
        let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&wrapper, &source]).status();
        assert!(compiled.unwrap().success());
        let mut command = command(plane, name, settings, &plane.kubeconfig());
        command.env("LD_PRELOAD", wrapper).env("CLOCK_WRONG_BY_SECS", wrong_by_secs.to_string());
        let product = Self::started(plane, name, command);
        let said = product.said();
        let first: jiff::Timestamp = said.split_whitespace().next().unwrap().parse().unwrap();
        let off = first.duration_since(jiff::Timestamp::now()).as_secs() - wrong_by_secs;
        assert!((-60..=0).contains(&off), "its clock is {off} s from where it should be");
        product
    }

    /// The same with the rights of this kubeconfig only, on a cluster where all is installed.
    pub fn under_account(plane: &Plane, name: &str, settings: &str, kubeconfig: &Path) -> Self {
        let mut command = command(plane, name, settings, kubeconfig);
        command.arg("--install=never");
        Self::started(plane, name, command)
    }

    fn started(plane: &Plane, name: &str, mut command: Command) -> Self {
        let log = plane.dir.join(format!("{name}.log"));
        let file = File::options().create(true).append(true).open(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        let mut product = Self { child, address: String::new(), log };
        // The last start in a log that several share.
        let began = Instant::now();
        let text = |product: &Self| std::fs::read_to_string(&product.log).unwrap();
        loop {
            let said = text(&product);
            let last = said.rsplit("starting server=").next().unwrap_or_default();
            if let Some((_, rest)) = last.split_once("are served address=") {
                product.address = rest.lines().next().unwrap_or_default().trim().to_owned();
            }
            if !product.address.is_empty() && product.get("/readyz").contains("200 OK") {
                return product;
            }
            let ended = product.ended();
            assert!(ended.is_none() && began.elapsed() < Duration::from_secs(60), "not ready: {said}");
            pause(50);
        }
    }

    /// Runs one that must end by itself: what it says, and whether it was content.
    pub fn refused(plane: &Plane, name: &str, settings: &str) -> (String, ExitStatus) {
        let output = command(plane, name, settings, &plane.kubeconfig()).output().unwrap();
        (String::from_utf8_lossy(&output.stderr).into_owned(), output.status)
    }

    /// The answer to an HTTP request, headers included.
    pub fn get(&self, path: &str) -> String {
        let mut answer = String::new();
        let asked = TcpStream::connect(&self.address).and_then(|mut stream| {
            write!(stream, "GET {path} HTTP/1.1\r\nHost: soroi\r\nConnection: close\r\n\r\n")?;
            stream.read_to_string(&mut answer)
        });
        asked.map(|_| answer).unwrap_or_default()
    }

    /// Whether it leads.
    pub fn leads(&self) -> bool {
        self.get("/readyz").contains("ok: leading")
    }

    /// Its log.
    pub fn said(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap()
    }

    /// How it ended, if it did so by itself.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
    }

    /// As `kill -9`.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// As `kill`: how it ended, and how long that took.
    pub fn terminate(mut self) -> (ExitStatus, Duration) {
        let began = Instant::now();
        Command::new("kill").arg(self.child.id().to_string()).status().unwrap();
        (self.child.wait().unwrap(), began.elapsed())
    }
}

impl Drop for Product {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("what the product said is in {}", self.log.display());
        }
    }
}
