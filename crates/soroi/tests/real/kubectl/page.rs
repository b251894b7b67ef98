//! Pages: Markdown with `console` blocks whose outputs are checked, as `scenarios/` has them, but with
//! any command of a shell.
//!
//! Outputs are compared without what differs from run to run. A command that only looks is repeated
//! until it shows what the page says, for a while. An `article` block says what somebody else's page
//! shows for the command before it, and that must be something else. `UPDATE_EXPECT=1` writes what was
//! seen.

use std::path::Path;
use std::time::{Duration, Instant};

use super::normal::normal;
use super::steps::{Shell, printed};
use crate::plane::pause;

/// How long what must be seen may take: a real controller manager, which takes away what a deleted Job
/// owned, looks for new kinds of objects every 30 s.
const WITHIN: Duration = Duration::from_secs(45);

/// Plays the page in the file.
pub fn play(file: &Path, shell: &Shell<'_>) {
    let text = std::fs::read_to_string(file).unwrap();
    let (mut written, mut wrong) = (String::new(), String::new());
    let mut lines = text.lines().peekable();
    let (mut inside, mut last) = (false, (String::new(), String::new()));
    while let Some(line) = lines.next() {
        written.push_str(line);
        written.push('\n');
        match line {
            "```console" => inside = true,
            "```article" => {
                let article = until(&mut lines, |line| line == "```");
                written.push_str(&article);
                let (command, seen) = &last;
                if same(seen, &article) {
                    wrong.push_str(&format!("$ {command}\nis as in the article, unlike what is said\n"));
                }
            }
            "```" => inside = false,
            _ => {}
        }
        let Some(command) = line.strip_prefix("$ ").filter(|_| inside) else { continue };
        let expected = until(&mut lines, |line| line.starts_with("$ ") || line == "```");
        let seen = seen(shell, command, &expected);
        if same(&seen, &expected) {
            written.push_str(&expected);
        } else {
            wrong.push_str(&format!("$ {command}\nexpected:\n{expected}seen:\n{seen}\n"));
            written.push_str(&seen);
        }
        last = (command.to_owned(), seen);
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(file, written).unwrap();
        return;
    }
    assert!(wrong.is_empty(), "{}:\n{wrong}", file.display());
}

/// The lines up to the one that ends them, which is left.
fn until<'a>(
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'a str>>,
    ends: impl Fn(&str) -> bool,
) -> String {
    let mut text = String::new();
    while let Some(line) = lines.next_if(|line| !ends(line)) {
        text.push_str(line);
        text.push('\n');
    }
    text
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
