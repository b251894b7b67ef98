//! `soroi run` as a process of the bench's own: started, asked and killed.
//!
//! Knows the process and what it logs; never what is measured.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use jiff::Timestamp;
use serde_json::json;

use super::site::Site;
use crate::bench::process::Memory;

/// How long it may take to read everything.
const PATIENCE: Duration = Duration::from_secs(300);

/// `soroi run`, of this same program. Killed when it is dropped.
pub(super) struct Soroi {
    child: Child,
    folder: PathBuf,
}

impl Soroi {
    /// Starts it.
    pub(super) fn start(kubeconfig: Option<&Path>) -> anyhow::Result<Self> {
        let folder = std::env::temp_dir().join(format!("soroi-bench-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let config = folder.join("config.yaml");
        // A free port, so that nothing is in the way.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let settings = json!({
            "apiVersion": "soroi.dev/v1alpha1", "kind": "Configuration", "http": { "bindAddress": address },
        });
        fs::write(&config, settings.to_string())?;
        let log = File::create(folder.join("soroi.log"))?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("run").arg("--config").arg(&config);
        if let Some(kubeconfig) = kubeconfig {
            command.arg("--kubeconfig").arg(kubeconfig);
        }
        // The lists are told of at this level.
        command.env("RUST_LOG", "info,soroi_watch=debug");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?;
        Ok(Self { child, folder })
    }

    /// Waits until all pods were listed so many times.
    pub(super) async fn wait_listed(&self, site: &Site, times: usize, pods: usize) -> anyhow::Result<()> {
        let began = site.clock.now();
        loop {
            let said = self.said()?;
            let lists = said.lines().filter(|line| line.contains("listed path=\"/api/v1/pods\""));
            let count = |line: &str| line.split_once("objects=")?.1.split(' ').next()?.parse::<usize>().ok();
            if lists.filter_map(count).filter(|count| *count >= pods).count() >= times {
                return Ok(());
            }
            let waited = site.clock.now().duration_since(began).unsigned_abs();
            ensure!(
                waited < PATIENCE,
                "the pods were not listed within {PATIENCE:?}; see {}",
                self.folder.display()
            );
            site.clock.sleep(Duration::from_millis(200)).await;
        }
    }

    /// What it has logged so far.
    fn said(&self) -> anyhow::Result<String> {
        Ok(fs::read_to_string(self.folder.join("soroi.log"))?)
    }

    /// When it began to lead, by its own log.
    pub(super) fn began_at(&self) -> anyhow::Result<Option<Timestamp>> {
        Ok(self.times_of("the work begins")?.into_iter().min())
    }

    /// When it had read one kind of objects after the other.
    pub(super) fn listed_at(&self) -> anyhow::Result<Vec<Timestamp>> {
        self.times_of("listed path=")
    }

    /// When it logged this.
    fn times_of(&self, what: &str) -> anyhow::Result<Vec<Timestamp>> {
        let said = self.said()?;
        let lines = said.lines().filter(|line| line.contains(what));
        Ok(lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect())
    }

    /// Asks it to end, and waits until it has: it gives its lease back, as one that is killed does not.
    pub(super) fn end(mut self) -> anyhow::Result<()> {
        let asked = Command::new("kill").arg(self.child.id().to_string()).status()?;
        ensure!(asked.success(), "soroi run has ended by itself");
        self.child.wait()?;
        Ok(())
    }

    /// What it holds of the machine's memory.
    pub(super) fn memory(&self) -> anyhow::Result<Memory> {
        Memory::of(&self.child.id().to_string()).context("soroi run has ended")
    }
}

impl Drop for Soroi {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
