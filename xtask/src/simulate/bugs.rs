//! Can the simulation see? Deliberate mistakes, made one after the other in a copy of the tree, each of which
//! drawn stories must find within a fixed number of seeds.
//!
//! A mistake is a file of `crates/soroi-testkit/bugs`: a sentence, then lines of the code to take away (`-`), each
//! block of them there exactly once, and those to put in their place (`+`), below the name of their file. They say
//! nothing of what is around them, so that they hold while the code moves; a test says so when one does not.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, bail};

use crate::house;

/// As many seeds are enough for every mistake.
pub(crate) const SEEDS: u64 = 60;
/// Where the mistakes are.
const FOLDER: &str = "crates/soroi-testkit/bugs";

/// A deliberate mistake.
struct Bug {
    /// What its file is called, without the ending.
    name: String,
    /// What is wrong, in a sentence.
    title: String,
    changes: Vec<Change>,
}

/// Some lines of a file in place of others.
struct Change {
    file: String,
    old: String,
    new: String,
}

/// Plays seeds with each mistake whose name contains `name`, until one fails.
///
/// # Errors
/// A mistake was not found, or cannot be made, or does not compile.
pub(crate) fn find(from: u64, seeds: u64, name: Option<&str>) -> anyhow::Result<()> {
    let scratch = house::root().join("target/bugs");
    let tree = scratch.join("tree");
    copy(&tree)?;
    let mut unseen = Vec::new();
    for bug in all()?.into_iter().filter(|bug| name.is_none_or(|name| bug.name.contains(name))) {
        println!("==> {}: {}", bug.name, bug.title);
        let changed = bug.made()?;
        for (file, text) in &changed {
            std::fs::write(tree.join(file), text)?;
        }
        let played = play(&tree, &scratch.join("build"), from, seeds);
        for (file, _) in &changed {
            std::fs::copy(house::root().join(file), tree.join(file))?;
        }
        match found(&played?)? {
            Some(how) => println!("    found: {how}"),
            None => {
                println!("    not found");
                unseen.push(bug.name);
            }
        }
    }
    if !unseen.is_empty() {
        bail!("not found within {seeds} seeds: {}", unseen.join(", "));
    }
    println!("==> all found");
    Ok(())
}

/// All mistakes, by name.
fn all() -> anyhow::Result<Vec<Bug>> {
    let folder = house::root().join(FOLDER);
    let entries = std::fs::read_dir(&folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<PathBuf>>>()?;
    paths.sort();
    paths.iter().map(|path| Bug::read(path)).collect()
}

impl Bug {
    fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path)?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut lines = text.lines();
        let title = lines.next().unwrap_or_default().to_owned();
        let (mut file, mut changes) = (String::new(), Vec::<Change>::new());
        let mut before = ' ';
        for line in lines {
            let (kind, rest) = line.split_at_checked(1).unwrap_or((" ", ""));
            match kind {
                "f" => rest.trim_start_matches("ile ").clone_into(&mut file),
                "-" => {
                    if before != '-' {
                        changes.push(Change { file: file.clone(), old: String::new(), new: String::new() });
                    }
                    let change = changes.last_mut().context("a block was begun")?;
                    change.old.extend([rest, "\n"]);
                }
                "+" => {
                    let change = changes.last_mut().context("lines are added in place of others")?;
                    change.new.extend([rest, "\n"]);
                }
                _ => {}
            }
            before = kind.chars().next().unwrap_or(' ');
        }
        Ok(Self { name, title, changes })
    }

    /// The files with the mistake in them.
    fn made(&self) -> anyhow::Result<Vec<(String, String)>> {
        let mut files: Vec<(String, String)> = Vec::new();
        for Change { file, old, new } in &self.changes {
            if !files.iter().any(|(known, _)| known == file) {
                files.push((file.clone(), std::fs::read_to_string(house::root().join(file))?));
            }
            let (_, text) = files.iter_mut().find(|(known, _)| known == file).context("just read")?;
            let there = text.matches(old.as_str()).count();
            if there != 1 {
                bail!("{}: in {file} there are {there} places like\n{old}", self.name);
            }
            *text = text.replacen(old.as_str(), new, 1);
        }
        Ok(files)
    }
}

/// The files of the tree as they are now; those that did not change keep their time, so that they need not be
/// compiled again.
fn copy(tree: &Path) -> anyhow::Result<()> {
    let root = house::root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.split('\0').filter(|name| !name.is_empty() && root.join(name).is_file()) {
        let (from, to) = (root.join(name), tree.join(name));
        let bytes = std::fs::read(&from)?;
        if std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        std::fs::write(to, bytes)?;
    }
    Ok(())
}

/// Plays seeds until the first failure. The copy has a target folder of its own: cargo takes what it built of
/// one tree for what the same crate of another would give.
fn play(tree: &Path, build: &Path, from: u64, seeds: u64) -> anyhow::Result<Output> {
    Command::new(env!("CARGO"))
        .args(["test", "--quiet", "--locked", "--package", "soroi-testkit", "--test", "simulate", "--"])
        .args(["--first", "--seeds", &seeds.to_string(), "--from", &from.to_string()])
        .env("CARGO_TARGET_DIR", build)
        .current_dir(tree)
        .output()
        .context("cannot start cargo")
}

/// What the failing seed showed; `None`: none failed.
fn found(played: &Output) -> anyhow::Result<Option<String>> {
    let text = String::from_utf8_lossy(&played.stdout);
    let failed = text.lines().find(|line| line.starts_with("seed ") && line.contains(" failed: "));
    match failed {
        Some(line) => Ok(Some(line.to_owned())),
        None if played.status.success() => Ok(None),
        // It does not even compile.
        None => bail!("{}", String::from_utf8_lossy(&played.stderr).trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_can_be_made_in_the_code_as_it_is() {
        let bugs = all().unwrap();
        assert!(!bugs.is_empty());
        for bug in bugs {
            let files = bug.made().unwrap();
            assert!(!files.is_empty(), "{}", bug.name);
        }
    }
}
