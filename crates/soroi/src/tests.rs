//! What a person sees who types a command.

use clap::{CommandFactory as _, Parser as _};
use expect_test::expect;

use super::*;

#[test]
fn the_arguments_are_consistent() {
    Args::command().debug_assert();
}

#[test]
fn help_teaches_the_commands() {
    let mut command = Args::command();
    expect![[r#"
        Soroi, a gang scheduler for Kubernetes: a job starts when all of its pods can run, and until then it holds nothing

        Usage: soroi <COMMAND>

        Commands:
          demo   See the problem and its solution: one cluster, one story, four placement policies
          crds   Print the custom resource definitions as YAML
          bench  Measure how fast Soroi decides

        Options:
          -h, --help     Print help
          -V, --version  Print version

        Start with `soroi demo`: it needs no cluster and takes a few seconds.
    "#]]
    .assert_eq(&command.render_help().to_string());
}

#[test]
fn crds_are_printed_as_yaml() {
    let mut out = Vec::new();
    let code = run(Args::parse_from(["soroi", "crds"]), &mut out).unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
    let text = String::from_utf8(out).unwrap();
    for kind in ["ClusterQueue", "PodGroup", "GangPlan"] {
        assert!(text.contains(&format!("kind: {kind}\n")), "{kind} is missing");
    }
}
