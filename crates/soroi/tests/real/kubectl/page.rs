//! Pages: Markdown with `console` blocks whose outputs are checked, as `scenarios/` has them, but with
//! any command of a shell.
//!
//! Outputs are compared without what differs from run to run. A command that only looks is repeated
//! until it shows what the page says, for a while. `UPDATE_EXPECT=1` writes what was seen.

use std::path::Path;
use std::time::{Duration, Instant};

use super::normal::normal;
use super::steps::{Shell, printed};
use crate::plane::pause;

/// How long what must be seen may take.
const WITHIN: Duration = Duration::from_secs(10);

/// Plays the page in the file.
pub fn play(file: &Path, shell: &Shell<'_>) {
    let text = std::fs::read_to_string(file).unwrap();
    let (mut written, mut wrong) = (String::new(), String::new());
    let mut lines = text.lines().peekable();
    let mut inside = false;
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        match line {
            "```console" => inside = true,
            "```" => inside = false,
            _ => {}
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        let mut expected = String::new();
        while let Some(line) = lines.next_if(|line| !line.starts_with("$ ") && *line != "```") {
            expected.push_str(line);
            expected.push('\n');
        }
        let seen = seen(shell, command, &expected);
        if same(&seen, &expected) {
            written.push_str(&expected);
        } else {
            wrong.push_str(&format!("$ {command}\nexpected:\n{expected}seen:\n{seen}\n"));
            written.push_str(&seen);
        }
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(file, written).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}:\n{wrong}", file.display());
}

fn seen(shell: &Shell<'_>, command: &str, expected: &str) -> String {
    let began = Instant::now();
    let looks = ["kubectl get", "kubectl describe"].iter().any(|verb| command.starts_with(verb));
    // Filling in has nothing to compare with: what is seen at rest is written.
    let filling = expected.is_empty() && std::env::var_os("UPDATE_EXPECT").is_some();
    if looks && filling {
        pause(2_000);
    }
    loop {
        let seen = printed(&shell.run(command, ""));
        if same(&seen, expected) || !looks || filling || began.elapsed() > WITHIN {
            return seen;
        }
        pause(50);
    }
}

/// Rows of names that the cluster makes up come in any order.
fn same(seen: &str, expected: &str) -> bool {
    let sorted = |text: &str| {
        let text = normal(text);
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    sorted(seen) == sorted(expected)
}
