//! Measures on a real control plane: what has to run for each part of `soroi bench cluster`.
//!
//! Knows processes; what is measured, and how, is Soroi's own `bench cluster`.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::ValueEnum;

use crate::house;
use crate::kubernetes::nodes::Wanted;
use crate::kubernetes::up::{self, Manner, Patience};

/// How long `soroi run` may take until it leads.
const LEADS_SECS_MAX: u64 = 60;

/// What is measured, and how much of it.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Which parts [default: all]
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Small sizes and few rounds, to see that it works
    #[arg(long)]
    quick: bool,
    /// Where the control plane has its keys, data and output
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Handed on to `soroi bench cluster PART`, after `--`
    #[arg(last = true)]
    flags: Vec<String>,
}

/// As in `soroi bench cluster`.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    Wakeup,
    Load,
    Bind,
    Memory,
    Undo,
    Restart,
}

impl Part {
    fn word(self) -> &'static str {
        match self {
            Self::Wakeup => "wakeup",
            Self::Load => "load",
            Self::Bind => "bind",
            Self::Memory => "memory",
            Self::Undo => "undo",
            Self::Restart => "restart",
        }
    }

    /// Sizes at which all of it takes minutes.
    fn quick(self) -> &'static [&'static str] {
        match self {
            Self::Wakeup => &["--rounds=5"],
            Self::Load => &["--rounds=1", "--sizes=20x5@20,2x50@20"],
            Self::Bind => &["--rounds=2", "--pods=300", "--nodes=10"],
            Self::Memory => &["--nodes=100", "--pods=1000"],
            Self::Undo => &["--rounds=1", "--pods=100", "--nodes=5"],
            Self::Restart => &["--rounds=1", "--gangs=50", "--pods=10", "--nodes=10"],
        }
    }

    fn manner(self) -> Manner {
        let patience = if self.starts_soroi() { Patience::LONG } else { Patience::USUAL };
        Manner { patience, native_gangs: !self.starts_soroi(), release: true }
    }

    /// Whether it starts `soroi run` by itself, when everything is there, on nodes that are silent.
    fn starts_soroi(self) -> bool {
        matches!(self, Self::Memory | Self::Restart)
    }
}

/// Measures.
///
/// # Errors
/// What does not build, come up or answer.
pub(crate) fn run(args: &Args) -> anyhow::Result<()> {
    let this = std::env::current_exe()?;
    let program = program()?;
    let dir = args.dir.clone().unwrap_or_else(|| house::root().join("target/kubernetes/bench"));
    let parts = if args.parts.is_empty() { Part::value_variants() } else { &args.parts };
    let mut failed = Vec::new();
    for part in parts {
        println!("\n==> {}: repeat it with: {}\n", part.word(), again(*part, args));
        if let Err(error) = measure(*part, args, &dir, &this, &program) {
            eprintln!("error: {}: {error:#}", part.word());
            failed.push(part.word());
        }
    }
    if !failed.is_empty() {
        bail!("not measured: {}; see the files in {}", failed.join(", "), dir.display());
    }
    Ok(())
}

fn again(part: Part, args: &Args) -> String {
    let quick = if args.quick { " --quick" } else { "" };
    let flags = if args.flags.is_empty() { String::new() } else { format!(" -- {}", args.flags.join(" ")) };
    format!("cargo xtask bench {}{quick}{flags}", part.word())
}

fn measure(part: Part, args: &Args, dir: &Path, this: &Path, program: &Path) -> anyhow::Result<()> {
    let kubeconfig = up::up(dir, Wanted { nodes: 0, gpus: 0 }, part.manner())?;
    let measured = measure_on(part, args, &kubeconfig, this, program);
    let down = up::down(dir);
    measured.and(down)
}

fn measure_on(part: Part, args: &Args, kubeconfig: &Path, this: &Path, program: &Path) -> anyhow::Result<()> {
    let mut command = Command::new(program);
    command.args(["bench", "cluster", part.word(), "--kubeconfig"]).arg(kubeconfig);
    if args.quick {
        command.args(part.quick());
    }
    let mut soroi = None;
    if part == Part::Memory {
        let dir = kubeconfig.parent().unwrap_or(Path::new("."));
        let restart = format!("'{}' kubernetes restart --dir '{}'", this.display(), dir.display());
        command.args(["--relist", &restart]);
    }
    if part.starts_soroi() {
        // The control plane is thrown away; nothing needs to be taken off it.
        command.arg("--keep");
    } else {
        soroi = Some(Soroi::start(program, kubeconfig)?);
    }
    let status = command.args(&args.flags).status().context("cannot start soroi")?;
    drop(soroi);
    if !status.success() {
        bail!("soroi bench cluster {} failed", part.word());
    }
    Ok(())
}

/// The optimised program, built if it is missing or old.
fn program() -> anyhow::Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--locked", "--package", "soroi"])
        .current_dir(house::root())
        .status()
        .context("cannot start cargo")?;
    if !status.success() {
        bail!("soroi does not build: cargo build --release --package soroi");
    }
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| house::root().join("target"), PathBuf::from);
    Ok(target.join("release/soroi"))
}

/// A running `soroi run`. Killed when it is dropped.
struct Soroi(Child);

impl Soroi {
    /// Starts one and waits until it leads.
    fn start(program: &Path, kubeconfig: &Path) -> anyhow::Result<Self> {
        let dir = kubeconfig.parent().unwrap_or(Path::new("."));
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = dir.join("soroi.yaml");
        let settings = format!(
            "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nhttp: {{bindAddress: '{address}'}}\n"
        );
        fs::write(&config, settings)?;
        let log = File::create(dir.join("soroi.log"))?;
        let child = Command::new(program)
            .arg("run")
            .arg("--kubeconfig")
            .arg(kubeconfig)
            .arg("--config")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .context("cannot start soroi run")?;
        let soroi = Self(child);
        for _ in 0..LEADS_SECS_MAX * 10 {
            if leads(address) {
                return Ok(soroi);
            }
            pause();
        }
        bail!("soroi run did not lead within {LEADS_SECS_MAX} s; see {}", dir.join("soroi.log").display())
    }
}

impl Drop for Soroi {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn leads(address: SocketAddr) -> bool {
    let mut answer = String::new();
    let asked = TcpStream::connect(address).and_then(|mut stream| {
        write!(stream, "GET /readyz HTTP/1.1\r\nHost: soroi\r\nConnection: close\r\n\r\n")?;
        stream.read_to_string(&mut answer)
    });
    asked.is_ok() && answer.contains("ok: leading")
}

#[allow(clippy::disallowed_methods, reason = "a chore waits for real processes")]
fn pause() {
    std::thread::sleep(Duration::from_millis(100));
}
