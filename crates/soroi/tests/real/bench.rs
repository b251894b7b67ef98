//! The benchmarks, small: that each part measures what it says and leaves nothing behind.

use std::process::Command;

use serde_json::Value;

use crate::plane::Plane;
use crate::product::{Product, SHORT};

/// What a part measured.
fn measured(plane: &Plane, part: &str, flags: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_soroi"))
        .args(["bench", "cluster", part, "--output=json", "--kubeconfig"])
        .arg(plane.kubeconfig())
        .args(flags)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "bench cluster {part}: {said}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Names and numbers of samples of all rows; every figure must be one.
fn rows(report: &Value) -> Vec<(String, u64)> {
    let rows = report["rows"].as_array().unwrap();
    let each = rows.iter().map(|row| {
        assert!(row["median"].as_f64().is_some_and(|median| median > 0.0), "{row:#}");
        (row["name"].as_str().unwrap().to_owned(), row["samples"].as_u64().unwrap())
    });
    each.collect()
}

fn pairs(names: &[&str], samples: u64) -> Vec<(String, u64)> {
    names.iter().map(|name| ((*name).to_owned(), samples)).collect()
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn every_part_of_the_bench_measures() {
    let plane = Plane::bare("bench", &["--native-gangs"]);
    let product = Product::start(&plane, "soroi", SHORT);
    let wakeup = measured(&plane, "wakeup", &["--rounds=1", "--pause-ms=50"]);
    let rivals = ["bare-job", "soroi-job", "bare-group", "soroi-group", "native-group"];
    assert_eq!(rows(&wakeup), pairs(&rivals, 1));
    let load = measured(&plane, "load", &["--rounds=1", "--sizes=3x4@3"]);
    assert_eq!(rows(&load), pairs(&["3x4@3-nobody", "3x4@3-soroi"], 1));
    let bind = measured(&plane, "bind", &["--rounds=1", "--pods=20", "--nodes=2"]);
    assert_eq!(rows(&bind), pairs(&["bare", "soroi"], 1));
    let undo = measured(&plane, "undo", &["--rounds=1", "--pods=12", "--nodes=2"]);
    assert_eq!(rows(&undo), pairs(&["job", "group"], 1));
    for kind in ["nodes", "clusterqueues", "resourceflavors", "gangplans", "pods"] {
        assert_eq!(plane.list(kind), Vec::<Value>::new(), "{kind}");
    }
    // It gives its lease back: the next part has a Soroi of its own.
    product.terminate();
    let relist = format!(
        "'{}' kubernetes restart --dir '{}'",
        std::env::var("SOROI_XTASK").unwrap(),
        plane.dir.display()
    );
    let flags = ["--rounds=1", "--gangs=3", "--pods=4", "--nodes=2"];
    assert_eq!(rows(&measured(&plane, "restart", &flags)), pairs(&["decision", "bound", "lists"], 1));
    let flags = ["--nodes=5", "--pods=40", "--rest-secs=1", "--keep", "--relist", &relist];
    assert_eq!(rows(&measured(&plane, "memory", &flags)), pairs(&["list", "relist", "rest"], 1));
}
