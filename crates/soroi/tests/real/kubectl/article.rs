//! The article "gang scheduling with Kueue and Volcano", command by command, in Soroi's four policies.

use std::path::Path;

use super::page;
use super::steps::Shell;
use super::up::Up;

fn play(name: &str, placement: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/kubectl/article");
    let nodes = folder.join("../nodes.yaml");
    let up = Up::start(name, &["--placement", placement, "--load", nodes.to_str().unwrap()]);
    let home = up.dir.join("home");
    let shell = Shell { kubeconfig: &up.kubeconfig, folder: &folder, home: &home };
    page::play(&folder.join(format!("{name}.md")), &shell);
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn the_article_with_quota_only() {
    play("kueue-alone", "QuotaOnly");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn the_article_with_a_topology() {
    play("topology", "TopologyOnly");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn the_article_with_volcano() {
    play("volcano", "AfterAdmission");
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn the_article_unified() {
    play("unified", "Unified");
}
