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
          demo       See the problem and its solution: one cluster, one story, four placement policies
          up         Start a Kubernetes API on this machine, with simulated nodes and Soroi in it
          run        Run on a cluster: admit, place and bind gangs
          adopt      Take over a cluster from Kueue and Volcano, or say what that would change
          explain    Say why a job, Workload, PodGroup or pod waits, and what would help
          crds       Print the custom resource definitions as YAML
          manifests  Print everything to install as YAML
          config     Work on settings: those of a Kueue as Soroi's
          bench      Measure how fast Soroi decides

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

/// The demo end to end: every policy as it is, and Unified as promised.
#[test]
fn the_demo_keeps_what_it_promises() {
    let mut out = Vec::new();
    let code = run(Args::parse_from(["soroi", "demo", "--output", "json"]), &mut out).unwrap();
    assert_eq!(code, ExitCode::SUCCESS);
    let mut facts: Vec<serde_json::Value> = serde_json::from_slice(&out).unwrap();
    for facts in &mut facts {
        // Wall time differs from run to run; that there is one does not.
        let ms = facts["afterHogDeleted"]["msToAllBound"].take();
        facts["afterHogDeleted"]["msToAllBound"] = ms.is_f64().into();
    }
    // What was promised stays as it is; reasons are beside it.
    let reasons = facts.iter_mut().map(|facts| {
        let reasons = facts.as_object_mut().and_then(|facts| facts.remove("reasons")).unwrap();
        format!("{}: {reasons}\n", facts["configuration"])
    });
    expect![[r#"
        "QuotaOnly": {"afterCordon":{},"afterHogDeleted":{"second":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed"},"withHog":{"second":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed","train":"0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient example.com/gpu. no new claims to deallocate, preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, 2 No preemption victims found for incoming pod."}}
        "TopologyOnly": {"afterCordon":{"train-2":"0/4 nodes are available: 1 node(s) had untolerated taint(s), 1 node(s) were unschedulable, 2 node(s) didn't match Pod's node affinity/selector. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling."},"afterHogDeleted":{},"withHog":{"train":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed"}}
        "AfterAdmission": {"afterCordon":{},"afterHogDeleted":{"second":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed"},"withHog":{"second":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed","train":"0/2 nodes are unavailable: 2 Insufficient example.com/gpu."}}
        "Unified": {"afterCordon":{},"afterHogDeleted":{},"withHog":{"train":"couldn't assign flavors to pod set main: insufficient unused quota for example.com/gpu in flavor gpu-flavor, 2 more needed"}}
    "#]].assert_eq(&reasons.collect::<String>());
    let lines: Vec<String> = facts.iter().map(|facts| format!("{facts}\n")).collect();
    expect![[r#"
        {"afterCordon":{"running":4,"whole":true},"afterHogDeleted":{"msToAllBound":true,"running":4},"configuration":"QuotaOnly","withHog":{"admitted":true,"gpuQuotaUsed":4,"pending":1,"running":3,"secondJobRunning":0}}
        {"afterCordon":{"running":3,"whole":false},"afterHogDeleted":{"msToAllBound":true,"running":4},"configuration":"TopologyOnly","withHog":{"admitted":false,"gpuQuotaUsed":0,"pending":0,"running":0,"secondJobRunning":2}}
        {"afterCordon":{"running":4,"whole":true},"afterHogDeleted":{"msToAllBound":true,"running":4},"configuration":"AfterAdmission","withHog":{"admitted":true,"gpuQuotaUsed":4,"pending":4,"running":0,"secondJobRunning":0}}
        {"afterCordon":{"running":4,"whole":true},"afterHogDeleted":{"msToAllBound":true,"running":4},"configuration":"Unified","withHog":{"admitted":false,"gpuQuotaUsed":0,"pending":0,"running":0,"secondJobRunning":2}}
    "#]]
    .assert_eq(&lines.concat());
}
