//! The real control plane for tests: built from its Go modules, started and stopped.
//!
//! `kubernetes/go.mod` pins what is built. Nothing of it is ours, and nothing of it is committed but
//! the list; the binaries live in a cache below `target/`.

mod build;
mod kubectl;
mod kubelets;
pub(crate) mod nodes;
pub(crate) mod up;

use std::path::PathBuf;

use clap::Subcommand;

/// What can be done with the real control plane.
#[derive(Subcommand)]
pub(crate) enum Chore {
    /// Builds kubectl, kube-apiserver, kube-controller-manager, kube-scheduler and etcd
    ///
    /// Takes about five minutes on two cores the first time and seconds afterwards. Needs Go 1.26.
    /// The last line is the folder of the binaries.
    Build,
    /// Starts a control plane with nodes and prints the path of its kubeconfig as the last line
    ///
    /// Simulated kubelets serve every node, also those that are created later: pods that are bound
    /// start to run, and deleted ones end. All processes are detached and write to files in the
    /// folder; `down` ends them.
    Up {
        /// Where keys, data and output go; made if missing
        #[arg(long)]
        dir: Option<PathBuf>,
        /// How many nodes there are from the beginning
        #[arg(long, default_value_t = 2)]
        nodes: usize,
        /// How many `example.com/gpu` each of them has
        #[arg(long, default_value_t = 2)]
        gpus: u32,
        #[command(flatten)]
        manner: up::Manner,
    },
    /// Ends one program of a control plane and starts it again as it was
    Restart {
        /// The folder given to `up`
        #[arg(long)]
        dir: Option<PathBuf>,
        /// Which one
        #[arg(default_value = "kube-apiserver")]
        program: String,
    },
    /// Ends the control plane that `up` started in this folder
    Down {
        /// The folder given to `up`
        #[arg(long)]
        dir: Option<PathBuf>,
    },
}

/// Does it.
///
/// # Errors
/// A missing tool, a failed build, or a process that does not come up; the message says which file
/// holds its output.
pub(crate) fn run(chore: Chore) -> anyhow::Result<()> {
    match chore {
        Chore::Build => {
            println!("{}", build::binaries()?.display());
            Ok(())
        }
        Chore::Up { dir, nodes, gpus, manner } => {
            let wanted = nodes::Wanted { nodes, gpus };
            let kubeconfig = up::up(&dir.unwrap_or_else(default_dir), wanted, manner)?;
            println!("{}", kubeconfig.display());
            Ok(())
        }
        Chore::Restart { dir, program } => up::restart(&dir.unwrap_or_else(default_dir), &program),
        Chore::Down { dir } => up::down(&dir.unwrap_or_else(default_dir)),
    }
}

/// Says what is missing to build a control plane that is not built yet.
///
/// # Errors
/// No Go, or one that is too old.
pub(crate) fn need_tools() -> anyhow::Result<()> {
    if build::missing().is_empty() { Ok(()) } else { build::need_go() }
}

/// Builds everything that a control plane needs; the folder of Kubernetes' binaries.
///
/// # Errors
/// A missing tool or a failed build.
pub(crate) fn prepare() -> anyhow::Result<PathBuf> {
    kubelets::binary(false)?;
    build::binaries()
}

fn default_dir() -> PathBuf {
    crate::house::root().join("target/kubernetes/default")
}
