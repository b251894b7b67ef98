//! House rules that a machine can check. A rule worth a review comment twice ends up here.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::Value;

/// What each crate may depend on within the workspace. ARCHITECTURE.md explains why.
const ARROWS: &[(&str, &[&str])] = &[
    ("soroi-clock", &[]),
    ("soroi-quantity", &[]),
    ("soroi-model", &[]),
    ("soroi-engine", &["soroi-quantity"]),
    ("soroi-api", &["soroi-quantity"]),
    ("soroi-watch", &["soroi-clock"]),
    ("soroi-webhook", &["soroi-api", "soroi-quantity"]),
    ("soroi-apiserver", &["soroi-clock", "soroi-quantity"]),
    ("soroi-cluster", &["soroi-api", "soroi-clock", "soroi-quantity", "soroi-watch"]),
    ("soroi-kubelets", &["soroi-clock", "soroi-cluster"]),
    ("soroi-control", &["soroi-api", "soroi-clock", "soroi-engine", "soroi-quantity", "soroi-watch"]),
    (
        "soroi-embedded",
        &[
            "soroi-api",
            "soroi-apiserver",
            "soroi-clock",
            "soroi-cluster",
            "soroi-control",
            "soroi-quantity",
            "soroi-watch",
            "soroi-webhook",
        ],
    ),
];

/// What the engine may use from outside: data structures and the derive of its error type.
const ENGINE_OUTSIDE: &[&str] = &["smallvec", "thiserror"];

/// Crates that may know all others (but for the tests' crate): the binary and the tests.
const FREE: &[&str] = &["soroi", "soroi-testkit", "xtask"];

/// Crates whose job is wiring; they alone may use `anyhow`.
const WIRING: &[&str] = &["soroi", "soroi-kubelets", "xtask"];

/// A file longer than this hides more than one idea.
const LINES_MAX: usize = 1_000;

/// Checks all rules.
///
/// # Errors
/// One line per breach.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = root();
    let mut breaches = arrows(&metadata(&root)?);
    let files = sources(&root)?;
    breaches.extend(shapes(&root, &files)?);
    breaches.extend(orphans(&root, &files)?);
    if breaches.is_empty() {
        println!("{} source files keep the house rules", files.len());
        return Ok(());
    }
    bail!("house rules broken:\n  {}", breaches.join("\n  "))
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}

fn metadata(root: &Path) -> anyhow::Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps", "--locked"])
        .current_dir(root)
        .output()
        .context("cannot start cargo metadata")?;
    if !output.status.success() {
        bail!("cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Arrows between crates, as Cargo knows them. Dev-dependencies are free: tests may look anywhere.
fn arrows(metadata: &Value) -> Vec<String> {
    let mut breaches = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let uses: BTreeSet<&str> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str())
            .collect();
        breaches.extend(breaches_of(name, &uses));
    }
    breaches
}

fn breaches_of(name: &str, uses: &BTreeSet<&str>) -> Vec<String> {
    let mut breaches = Vec::new();
    let allowed = ARROWS.iter().find(|(from, _)| *from == name).map(|(_, to)| *to);
    if allowed.is_none() && !FREE.contains(&name) {
        breaches.push(format!("{name} has no arrows yet: say in xtask/src/house.rs what it may know"));
    }
    for &used in uses {
        let inside = used.starts_with("soroi");
        if inside && allowed.is_some_and(|to| !to.contains(&used)) {
            breaches.push(format!("{name} must not depend on {used} (ARCHITECTURE.md, code map)"));
        }
        if used == "soroi-testkit" && name != "soroi-testkit" {
            breaches.push(format!("{name} must use soroi-testkit in tests only"));
        }
        if used == "soroi-model" {
            breaches.push(format!("{name} must not use soroi-model: it checks what others do, from outside"));
        }
        if name == "soroi-engine" && !inside && !ENGINE_OUTSIDE.contains(&used) {
            breaches.push(format!("soroi-engine must stay pure, but depends on {used}"));
        }
        if used == "anyhow" && !WIRING.contains(&name) {
            breaches.push(format!("{name} is a library: it has an error type of its own, not anyhow"));
        }
    }
    breaches
}

/// Every Rust file below `src/` and `tests/` of the workspace.
fn sources(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut left = vec![root.join("crates"), root.join("xtask")];
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))? {
            let path = entry?.path();
            if path.is_dir() && !path.ends_with("target") {
                left.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

fn shapes(root: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in files {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let name = file.strip_prefix(root).unwrap_or(file).display().to_string();
        breaches.extend(shape_of(&name, &text));
    }
    Ok(breaches)
}

fn shape_of(name: &str, text: &str) -> Vec<String> {
    let mut breaches = Vec::new();
    let lines = text.lines().count();
    if lines > LINES_MAX {
        breaches.push(format!("{name}: {lines} lines; split it by idea (at most {LINES_MAX})"));
    }
    if name.ends_with("/mod.rs") {
        breaches.push(format!("{name}: name the file after its module (foo.rs and foo/), not mod.rs"));
    }
    if !text.starts_with("//!") {
        breaches
            .push(format!("{name}: open with `//!`: what this module knows, and what it must never know"));
    }
    // Spelt in two halves so that this file does not find itself.
    for word in
        [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("unimpl", "emented!"), concat!("todo", "!(")]
    {
        if text.contains(word) {
            breaches.push(format!("{name}: `{word}`: finish it, or file an issue and say what is absent"));
        }
    }
    breaches
}

/// Files below `src/` that no module names: they are never compiled.
fn orphans(root: &Path, files: &[PathBuf]) -> anyhow::Result<Vec<String>> {
    let mut breaches = Vec::new();
    for file in files.iter().filter(|file| file.components().any(|part| part.as_os_str() == "src")) {
        let (Some(folder), Some(module)) = (file.parent(), file.file_stem().and_then(|stem| stem.to_str()))
        else {
            continue;
        };
        if matches!(module, "lib" | "main") || folder.ends_with("src/bin") {
            continue;
        }
        let above = [folder.with_extension("rs"), folder.join("lib.rs"), folder.join("main.rs")];
        let mut parents = Vec::new();
        for parent in above.iter().filter(|parent| parent.exists()) {
            parents.push(fs::read_to_string(parent)?);
        }
        if !names_module(&parents, module) {
            let name = file.strip_prefix(root).unwrap_or(file).display();
            breaches.push(format!("{name}: no module names it, so it is never compiled"));
        }
    }
    Ok(breaches)
}

fn names_module(parents: &[String], module: &str) -> bool {
    let declared = format!("mod {module};");
    parents.iter().flat_map(|text| text.lines()).any(|line| line.trim_start().ends_with(&declared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_house_keeps_its_own_rules() {
        check().unwrap();
    }

    #[test]
    fn a_forbidden_arrow_is_seen() {
        let uses = BTreeSet::from(["soroi-control", "tokio", "smallvec"]);
        assert_eq!(
            breaches_of("soroi-engine", &uses),
            [
                "soroi-engine must not depend on soroi-control (ARCHITECTURE.md, code map)",
                "soroi-engine must stay pure, but depends on tokio",
            ]
        );
        assert_eq!(breaches_of("soroi-api", &BTreeSet::from(["anyhow"])).len(), 1);
        assert_eq!(breaches_of("soroi", &BTreeSet::from(["soroi-testkit"])).len(), 1);
        assert_eq!(breaches_of("soroi", &BTreeSet::from(["soroi-model"])).len(), 1);
        assert_eq!(breaches_of("soroi-model", &BTreeSet::from(["soroi-engine"])).len(), 1);
        assert!(breaches_of("soroi", &BTreeSet::from(["soroi-control", "anyhow"])).is_empty());
    }

    #[test]
    fn a_shapeless_file_is_seen() {
        let long = format!("//! Long.\n{}", "\n".repeat(LINES_MAX));
        assert_eq!(shape_of("crates/x/src/long.rs", &long).len(), 1);
        assert_eq!(shape_of("crates/x/src/a/mod.rs", "//! A.\n").len(), 1);
        assert_eq!(shape_of("crates/x/src/bare.rs", "fn bare() {}\n").len(), 1);
        assert_eq!(shape_of("crates/x/src/good.rs", "//! Good.\n"), Vec::<String>::new());
    }

    #[test]
    fn a_file_that_is_not_compiled_is_seen() {
        let parents = ["//! Parent.\nmod other;\npub(crate) mod named;\n".to_owned()];
        assert!(names_module(&parents, "named") && names_module(&parents, "other"));
        assert!(!names_module(&parents, "charge") && !names_module(&[], "named"));
    }

    /// Every crate of the workspace stands in the code map of ARCHITECTURE.md.
    #[test]
    fn the_code_map_is_complete() {
        let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
        let metadata = metadata(&root()).unwrap();
        for package in metadata["packages"].as_array().unwrap() {
            let name = package["name"].as_str().unwrap();
            assert!(text.contains(&format!("`{name}`")), "{name} is missing in ARCHITECTURE.md");
        }
    }
}
