//! The same commands against the embedded API server and a real one: what kubectl prints, and how it
//! ends, is the same, or the difference is written beside the command with its reason.
//!
//! A script is a list of lines `$ COMMAND`; where a command ends in `<<<`, the lines below it are its
//! input. `~ REASON` below a command says why the outputs differ: then they must.

use std::fmt::Write as _;
use std::path::Path;

use super::normal::normal;
use super::steps::Shell;
use super::up::Up;
use crate::plane::Plane;
use crate::product::Product;

/// One command of a script.
struct Step {
    line: String,
    input: String,
    /// Why the outputs differ, if they do.
    differs: Option<String>,
}

fn script(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    for line in text.lines() {
        if let Some(line) = line.strip_prefix("$ ") {
            steps.push(Step { line: line.to_owned(), input: String::new(), differs: None });
            continue;
        }
        let Some(step) = steps.last_mut() else { continue };
        if let Some(reason) = line.strip_prefix("~ ") {
            step.differs = Some(reason.to_owned());
        } else if step.line.contains("<<<") {
            step.input.push_str(line);
            step.input.push('\n');
        }
    }
    steps
}

/// What a person sees of a command, without what differs from run to run.
fn seen(shell: &Shell<'_>, step: &Step) -> String {
    let output = shell.run(&step.line.replace("<<<", ""), &step.input);
    let text = |bytes: &[u8]| {
        let text = normal(&String::from_utf8_lossy(bytes));
        if !step.line.contains("| sort") {
            return text;
        }
        // Lines with made-up names are in order only without these.
        let mut lines: Vec<&str> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n") + "\n"
    };
    format!("exit {}\n{}{}", output.status.code().unwrap_or(-1), text(&output.stdout), text(&output.stderr))
}

/// Lines of one side that the other does not have.
fn difference(ours: &str, real: &str) -> String {
    let mut text = String::new();
    let (ours, real): (Vec<&str>, Vec<&str>) = (ours.lines().collect(), real.lines().collect());
    for line in real.iter().filter(|line| !ours.contains(line)) {
        let _ = writeln!(text, "      real: {line}");
    }
    for line in ours.iter().filter(|line| !real.contains(line)) {
        let _ = writeln!(text, "      ours: {line}");
    }
    if text.is_empty() { "      the lines stand in another order\n".to_owned() } else { text }
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn kubectl_sees_the_same_as_on_a_real_api_server() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/kubectl");
    let nodes = folder.join("nodes.yaml");
    let plane = Plane::bare("twin", &[]);
    let _product = Product::start(&plane, "soroi", "");
    plane.kubectl(&["apply", "-f", nodes.to_str().unwrap()]);
    plane.kubectl(&["wait", "--for=condition=Ready", "nodes", "--all", "--timeout=30s"]);
    let up = Up::start("twin", &["--load", nodes.to_str().unwrap()]);
    let real_kubeconfig = plane.kubeconfig();
    let (our_home, real_home) = (up.dir.join("home"), plane.dir.join("home"));
    let ours = Shell { kubeconfig: &up.kubeconfig, folder: &folder, home: &our_home };
    let real = Shell { kubeconfig: &real_kubeconfig, folder: &folder, home: &real_home };
    let (mut report, mut commands) = (String::new(), 0);
    for (name, text) in [
        ("objects", include_str!("twin/objects.txt")),
        ("pods", include_str!("twin/pods.txt")),
        ("jobs", include_str!("twin/jobs.txt")),
        ("budgets", include_str!("twin/budgets.txt")),
        ("more", include_str!("twin/more.txt")),
        ("kueue", include_str!("twin/kueue.txt")),
    ] {
        for step in script(text) {
            commands += 1;
            let (ours, real) = (seen(&ours, &step), seen(&real, &step));
            match (&step.differs, ours == real) {
                (None, true) | (Some(_), false) => {}
                (None, false) => {
                    let _ = write!(report, "{name}: $ {}\n{}", step.line, difference(&ours, &real));
                }
                (Some(reason), true) => {
                    let _ =
                        writeln!(report, "{name}: $ {}\n      does not differ any more: {reason}", step.line);
                }
            }
        }
    }
    assert!(commands >= 150, "only {commands} commands are compared");
    assert!(report.is_empty(), "{report}");
}
