//! Builds the control plane once into `target/kubernetes/bin`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

/// The version that the binaries report; the module pins the same.
const VERSION: &str = "v1.36.1";

/// Package and name of each binary. etcd's package would give a binary called `server`.
const PROGRAMS: &[(&str, &str)] = &[
    ("go.etcd.io/etcd/server/v3", "etcd"),
    ("k8s.io/kubernetes/cmd/kube-apiserver", "kube-apiserver"),
    ("k8s.io/kubernetes/cmd/kube-controller-manager", "kube-controller-manager"),
    ("k8s.io/kubernetes/cmd/kube-scheduler", "kube-scheduler"),
    ("k8s.io/kubernetes/cmd/kubectl", "kubectl"),
    ("soroi.dev/kubernetes/informer", "informer"),
];

/// The one program that is ours: a client that tests compare API servers with.
const OURS: (&str, &str) = ("informer", "informer/main.go");

/// The folder with all binaries, built if one is missing or older than the pins.
///
/// # Errors
/// When Go is missing or a build fails.
pub(super) fn binaries() -> anyhow::Result<PathBuf> {
    let (module, folder) = (module(), folder());
    let missing = missing();
    if missing.is_empty() {
        return Ok(folder);
    }
    need_go()?;
    eprintln!(
        "building {} of {} programs with Kubernetes {VERSION} (minutes, once)",
        missing.len(),
        PROGRAMS.len()
    );
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    for (package, name) in missing {
        eprintln!("  {name}");
        build(&module, package, &folder.join(name), written(name))?;
    }
    Ok(folder)
}

/// Programs that are not there, or older than the pins.
pub(super) fn missing() -> Vec<&'static (&'static str, &'static str)> {
    let folder = folder();
    PROGRAMS.iter().filter(|(_, name)| modified(&folder.join(name)) < written(name)).collect()
}

/// When what a program is made of was last changed.
fn written(name: &str) -> std::time::SystemTime {
    let pinned = modified(&module().join("go.sum"));
    if name == OURS.0 { pinned.max(modified(&module().join(OURS.1))) } else { pinned }
}

fn module() -> PathBuf {
    crate::house::root().join("kubernetes")
}

fn folder() -> PathBuf {
    crate::house::root().join("target/kubernetes/bin")
}

fn build(module: &Path, package: &str, target: &Path, written: std::time::SystemTime) -> anyhow::Result<()> {
    let base = "k8s.io/component-base/version";
    let flags = format!(
        "-s -w -X {base}.gitVersion={VERSION} -X {base}.gitMajor=1 -X {base}.gitMinor=36 \
         -X {base}.gitTreeState=clean"
    );
    let status = Command::new("go")
        .args(["build", "-mod=readonly", "-ldflags", &flags, "-o"])
        .arg(target)
        .arg(package)
        .current_dir(module)
        .status()
        .context("cannot start go")?;
    if !status.success() {
        bail!("go build {package} failed; its output is above");
    }
    // An up-to-date binary is not rewritten by go; its time says when it was last known good.
    let file = std::fs::File::options().append(true).open(target)?;
    file.set_modified(written + std::time::Duration::from_secs(1))?;
    Ok(())
}

fn modified(path: &Path) -> std::time::SystemTime {
    std::fs::metadata(path).and_then(|data| data.modified()).unwrap_or(std::time::UNIX_EPOCH)
}

/// # Errors
/// No Go, or one that is too old.
pub(super) fn need_go() -> anyhow::Result<()> {
    let output = Command::new("go").arg("version").output();
    let Ok(output) = output else {
        bail!("Go is missing: install Go 1.26 or newer (https://go.dev/dl), then run this again");
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let minor = said.split("go1.").nth(1).and_then(|rest| rest.split(['.', ' ']).next()?.parse::<u32>().ok());
    if minor.is_none_or(|minor| minor < 26) {
        bail!("Kubernetes {VERSION} needs Go 1.26 or newer; `go version` says: {}", said.trim());
    }
    Ok(())
}
