//! The article "gang scheduling with Kueue and Volcano", command by command, in Soroi's four policies:
//! the same pages against `soroi up`, and against `soroi run` on a real control plane.

use std::path::{Path, PathBuf};

use super::page;
use super::steps::Shell;
use super::up::Up;
use crate::plane::Plane;
use crate::product::Product;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/kubectl/article")
}

fn embedded(name: &str, placement: &str) {
    let page = std::fs::read_to_string(folder().join(format!("{name}.md"))).unwrap();
    let command = format!("soroi up --placement {placement} --load nodes.yaml");
    assert!(page.contains(&command), "{name} says how its cluster is started");
    let nodes = folder().join("nodes.yaml");
    let up = Up::start(name, &["--placement", placement, "--load", nodes.to_str().unwrap()]);
    play(name, &up.kubeconfig, &up.dir);
}

fn real(name: &str, placement: &str) {
    let plane = Plane::bare(&format!("article-{name}"), &[]);
    plane.apply(include_str!("article/nodes.yaml"));
    plane.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=30s"]);
    let _product = Product::start(&plane, "soroi", &format!("placement: {placement}"));
    play(name, &plane.kubeconfig(), &plane.dir);
}

fn play(name: &str, kubeconfig: &Path, dir: &Path) {
    let (folder, home) = (folder(), dir.join("home"));
    let shell = Shell { kubeconfig, folder: &folder, home: &home };
    page::play(&folder.join(format!("{name}.md")), &shell);
}

macro_rules! pages {
    ($($test:ident, $real:ident: $name:literal under $placement:literal;)*) => {$(
        #[test]
        #[ignore = "needs kubectl: cargo xtask test --real"]
        fn $test() {
            embedded($name, $placement);
        }

        #[test]
        #[ignore = "needs a real control plane: cargo xtask test --real"]
        fn $real() {
            real($name, $placement);
        }
    )*};
}

pages! {
    the_article_with_quota_only, the_article_with_quota_only_really: "kueue-alone" under "QuotaOnly";
    the_article_with_a_topology, the_article_with_a_topology_really: "topology" under "TopologyOnly";
    the_article_with_volcano, the_article_with_volcano_really: "volcano" under "AfterAdmission";
    the_article_unified, the_article_unified_really: "unified" under "Unified";
}

#[test]
#[ignore = "needs kubectl: cargo xtask test --real"]
fn what_is_not_there_is_said() {
    let up = Up::start("not-served", &["--nodes", "1"]);
    let (folder, home) = (up.dir.clone(), up.dir.join("home"));
    let shell = Shell { kubeconfig: &up.kubeconfig, folder: &folder, home: &home };
    page::play(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/kubectl/not-served.md"), &shell);
}
