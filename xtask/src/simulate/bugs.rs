//! Can the simulation see? Deliberate mistakes, each of which drawn stories must find within a fixed number of seeds.
//!
//! A mistake is a file of `crates/soroi-testkit/bugs`: a sentence, then lines of the code to take away (`-`), each
//! block of them there exactly once, and those to put in their place (`+`), below the name of their file. They say
//! nothing of what is around them, so that they hold while the code moves; a test says so when one does not.
//!
//! All mistakes are made in one copy of the tree, which is compiled once: in the new lines the word [`SWITCH`] is
//! true while the mistake is played, and false while another is. So the code of the product has no way in for tests.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, bail};
use serde_json::Value;

use crate::house;

/// As many seeds are enough for every mistake.
pub(crate) const SEEDS: u64 = 60;
/// Seeds that are played without a mistake, and must tell of none.
const INNOCENT: u64 = 20;
/// Where the mistakes are.
const FOLDER: &str = "crates/soroi-testkit/bugs";
/// In new lines: whether this mistake is the one that is played.
const SWITCH: &str = "MISTAKE";
/// Names the mistake that is played.
const CHOICE: &str = "SOROI_MISTAKE";
/// The version of our crates in the copy. Cargo takes what it built of one tree for what the same crate of another
/// would give; as it is, it keeps them apart, and builds what comes from elsewhere for both.
const VERSION: &str = "0.1.0-mistaken";

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
    let bugs = all()?;
    let tree = house::root().join("target/bugs/tree");
    copy(&tree, &made(&bugs)?)?;
    let player = build(&tree)?;
    if let Some(how) = found(&play(&player, "", 1, INNOCENT)?)? {
        bail!("without any mistake: {how}");
    }
    let mut unseen = Vec::new();
    let chosen = bugs.into_iter().filter(|bug| name.is_none_or(|name| bug.name.contains(name)));
    for bug in chosen {
        println!("==> {}: {}", bug.name, bug.title);
        match found(&play(&player, &bug.name, from, seeds)?)? {
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
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::parse(&name, &std::fs::read_to_string(path)?).with_context(|| path.display().to_string())
    }

    fn parse(name: &str, text: &str) -> anyhow::Result<Self> {
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
        if changes.is_empty() || !changes.iter().all(|change| change.new.contains(SWITCH)) {
            bail!("every block of new lines asks for {SWITCH}");
        }
        Ok(Self { name: name.to_owned(), title, changes })
    }

    /// The new lines of a change as code: the switch reads once what is played.
    fn switched(&self, change: &Change) -> String {
        let asks = format!(
            "({{ static MADE: std::sync::LazyLock<bool> = std::sync::LazyLock::new(|| \
             std::env::var_os(\"{CHOICE}\").is_some_and(|made| made == \"{}\")); *MADE }})",
            self.name
        );
        change.new.replace(SWITCH, &asks)
    }
}

/// The files with all mistakes in them, by their place in the tree.
fn made(bugs: &[Bug]) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::<&str, (String, Vec<(Range<usize>, String)>)>::new();
    for bug in bugs {
        for change in &bug.changes {
            let (text, edits) = match files.entry(&change.file) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let text = std::fs::read_to_string(house::root().join(&change.file))
                        .with_context(|| format!("{}: {}", bug.name, change.file))?;
                    new.insert((text, Vec::new()))
                }
            };
            let there = text.matches(change.old.as_str()).count();
            let Some(at) = text.find(&change.old).filter(|_| there == 1) else {
                bail!("{}: in {} there are {there} places like\n{}", bug.name, change.file, change.old);
            };
            edits.push((at..at + change.old.len(), bug.switched(change)));
        }
    }
    files
        .into_iter()
        .map(|(file, (text, edits))| Ok((file.to_owned(), edited(file, &text, edits)?)))
        .collect()
}

fn edited(file: &str, text: &str, mut edits: Vec<(Range<usize>, String)>) -> anyhow::Result<String> {
    edits.sort_by_key(|(range, _)| range.start);
    let (mut whole, mut upto) = (String::new(), 0);
    for (range, new) in edits {
        if range.start < upto {
            bail!("in {file} two mistakes change the same lines:\n{}", &text[range]);
        }
        whole.push_str(&text[upto..range.start]);
        whole.push_str(&new);
        upto = range.end;
    }
    whole.push_str(&text[upto..]);
    Ok(whole)
}

/// The files of the tree, and those that are mistaken; what did not change keeps its time, so that it need not be
/// compiled again.
fn copy(tree: &Path, mistaken: &BTreeMap<String, String>) -> anyhow::Result<()> {
    let root = house::root();
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(&root)
        .output()?;
    let names = String::from_utf8(listed.stdout)?;
    for name in names.split('\0').filter(|name| !name.is_empty() && root.join(name).is_file()) {
        let bytes = match (mistaken.get(name), name) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, "Cargo.toml") => versioned(&std::fs::read_to_string(root.join(name))?).into_bytes(),
            (None, _) => std::fs::read(root.join(name))?,
        };
        let to = tree.join(name);
        if name == "Cargo.lock" && to.is_file() || std::fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        std::fs::create_dir_all(to.parent().context("a file is in a folder")?)?;
        std::fs::write(to, bytes)?;
    }
    Ok(())
}

/// The manifest of the workspace with the version of the copy.
fn versioned(manifest: &str) -> String {
    manifest.replacen("version = \"0.1.0\"", &format!("version = \"{VERSION}\""), 1)
}

/// Compiles the player in the copy; its path.
fn build(tree: &Path) -> anyhow::Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["test", "--profile", "sim", "--offline", "--package", "soroi-testkit", "--test", "simulate"])
        .args(["--no-run", "--message-format", "json-render-diagnostics"])
        .current_dir(tree)
        .stderr(Stdio::inherit())
        .output()
        .context("cannot start cargo")?;
    let messages = String::from_utf8_lossy(&output.stdout).into_owned();
    let programs = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let player = programs
        .filter(|message| message["target"]["name"] == "simulate")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    player.filter(|_| output.status.success()).context("the code with the mistakes does not compile")
}

/// Plays seeds until the first failure.
fn play(player: &Path, mistake: &str, from: u64, seeds: u64) -> anyhow::Result<Output> {
    Command::new(player)
        .args(["--first", "--seeds", &seeds.to_string(), "--from", &from.to_string()])
        .env(CHOICE, mistake)
        .output()
        .with_context(|| format!("cannot start {}", player.display()))
}

/// What the failing seed showed; `None`: none failed.
fn found(played: &Output) -> anyhow::Result<Option<String>> {
    let text = String::from_utf8_lossy(&played.stdout);
    let failed = text.lines().find(|line| line.starts_with("seed ") && line.contains(" failed: "));
    match failed {
        Some(line) => Ok(Some(line.to_owned())),
        None if played.status.success() => Ok(None),
        None => bail!("{}", String::from_utf8_lossy(&played.stderr).trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mistake_can_be_made_in_the_code_as_it_is() {
        let bugs = all().unwrap();
        assert!(bugs.len() >= 10);
        let files = made(&bugs).unwrap();
        for bug in &bugs {
            let asks = format!("made == \"{}\"", bug.name);
            assert!(files.values().any(|text| text.contains(&asks)), "{}", bug.name);
        }
    }

    #[test]
    fn mistakes_stand_side_by_side_and_those_that_meet_are_refused() {
        let edit = |range: Range<usize>, new: &str| (range, new.to_owned());
        let text = "one\ntwo\nthree\n";
        let apart = edited("a file", text, vec![edit(8..14, "3\n"), edit(0..4, "1\n")]);
        assert_eq!(apart.unwrap(), "1\ntwo\n3\n");
        assert!(edited("a file", text, vec![edit(0..8, "1 2\n"), edit(4..8, "2\n")]).is_err());
    }

    #[test]
    fn a_mistake_that_cannot_be_switched_off_is_none() {
        let text = |new: &str| format!("A mistake.\n\nfile a.rs\n-old\n+{new}\n");
        assert!(Bug::parse("a", &text("if MISTAKE {}")).is_ok());
        assert!(Bug::parse("a", &text("new")).is_err());
    }

    #[test]
    fn the_copy_is_of_another_version() {
        let manifest = std::fs::read_to_string(house::root().join("Cargo.toml")).unwrap();
        assert_ne!(versioned(&manifest), manifest);
    }
}
