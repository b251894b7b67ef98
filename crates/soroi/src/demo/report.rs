//! What did the demo show? The comparison at its end, the same facts for programs, and whether
//! Unified kept its promise.
//!
//! Knows facts and words; never a cluster.

use soroi_embedded::table::Table;

use super::story::{Facts, GANG};

/// What stock products did with the same story. Measured once on Kubernetes 1.36.1 with Kueue
/// 0.18.1 and Volcano 1.15.1 on simulated nodes; nothing of it is measured by the demo.
const ELSEWHERE: [[&str; 6]; 4] = [
    ["● Kueue alone", "3 run, 1 waits", "4 GPUs", "waits", "all 4", "(not tried)"],
    ["● Kueue + topology", "no pods", "none", "runs", "no: waits on", "3 of 4"],
    ["● Kueue + Volcano", "4 pods wait", "4 GPUs", "waits", "all 4 in 0.6 s", "all 4"],
    ["● native gangs (1.36)", "4 pods wait", "(no quota)", "(no quota)", "all 4 in 0.02 s", "(not tried)"],
];

/// What the marks in the table mean.
pub(crate) const NOTES: &str = "\
● measured elsewhere: the same story on a real Kubernetes 1.36.1 with Kueue 0.18.1 and Volcano
  1.15.1. Its times include a network and a disk; ours are this process computing, so compare
  what happens, not how fast. Kueue with topology started the gang 3.1 s after somebody labelled
  a node, and not before (Kueue 0.19.2 looks again every few seconds: 7.6 to 9.3 s).
";

/// One row per policy, the stock products' rows below.
pub(crate) fn table(facts: &[Facts]) -> Table {
    let mut table = Table::new(["", "WITH THE HOG", "QUOTA HELD", "2ND JOB", "HOG GONE", "CORDONED"]);
    for facts in facts {
        table.row(row(facts));
    }
    for row in ELSEWHERE {
        table.row(row);
    }
    table
}

fn row(facts: &Facts) -> [String; 6] {
    let with_hog = &facts.with_hog;
    let pods = match (with_hog.running, with_hog.pending) {
        (0, 0) => "no pods".to_owned(),
        (0, pending) => format!("{pending} pods wait"),
        (running, 0) => format!("{running} run"),
        (running, pending) => format!("{running} run, {pending} wait{}", if pending == 1 { "s" } else { "" }),
    };
    let held = match with_hog.gpu_quota_used {
        0 => "none".to_owned(),
        gpus => format!("{gpus} GPUs"),
    };
    let second = if with_hog.second_job_running > 0 { "runs" } else { "waits" };
    let after = match facts.after_hog_deleted.ms_to_all_bound {
        Some(ms) => format!("all {GANG} in {ms:.1} ms"),
        None => format!("no: {} of {GANG}", facts.after_hog_deleted.running),
    };
    let cordon = &facts.after_cordon;
    let cordon = if cordon.whole { format!("all {GANG}") } else { format!("{} of {GANG}", cordon.running) };
    [facts.configuration.to_owned(), pods, held, second.to_owned(), after, cordon]
}

/// What Unified promises and did not keep; empty when all is well.
pub(crate) fn broken_promises(facts: &Facts) -> Vec<String> {
    let (with_hog, after, cordon) = (&facts.with_hog, &facts.after_hog_deleted, &facts.after_cordon);
    let mut broken = Vec::new();
    let mut promise = |kept: bool, text: String| {
        if !kept {
            broken.push(text);
        }
    };
    promise(
        with_hog.running == 0 && with_hog.pending == 0,
        format!(
            "while it does not fit it has {} running and {} waiting pods",
            with_hog.running, with_hog.pending
        ),
    );
    promise(
        !with_hog.admitted && with_hog.gpu_quota_used == 0,
        format!("while it does not fit it holds {} GPUs of quota", with_hog.gpu_quota_used),
    );
    promise(!facts.why.is_empty(), "nothing says why it waits".to_owned());
    promise(
        with_hog.second_job_running == 2,
        format!("{} of 2 pods of the second job run beside it", with_hog.second_job_running),
    );
    promise(
        after.running == GANG && after.ms_to_all_bound.is_some(),
        format!("after the hog is gone {} of {GANG} pods run", after.running),
    );
    promise(
        cordon.whole,
        format!("after a pod on a cordoned node is lost {} of {GANG} pods run", cordon.running),
    );
    broken
}

#[cfg(test)]
mod tests {
    use super::super::story::{AfterCordon, AfterHogDeleted, Reasons, WithHog};
    use super::*;
    use expect_test::expect;

    fn unified() -> Facts {
        Facts {
            configuration: "Unified",
            with_hog: WithHog {
                running: 0,
                pending: 0,
                admitted: false,
                gpu_quota_used: 0,
                second_job_running: 2,
            },
            after_hog_deleted: AfterHogDeleted { running: 4, ms_to_all_bound: Some(1.25) },
            after_cordon: AfterCordon { running: 4, whole: true },
            reasons: Reasons {
                with_hog: [("train", "only 3 out of 4 pod(s) fit".to_owned())].into(),
                ..Reasons::default()
            },
            why: "topology \"gpu-topology\" allows to fit only 3 out of 4 pod(s)".into(),
        }
    }

    #[test]
    fn the_output_has_the_promised_fields_and_the_reasons() {
        expect![[r#"
            {
              "configuration": "Unified",
              "withHog": {
                "running": 0,
                "pending": 0,
                "admitted": false,
                "gpuQuotaUsed": 0,
                "secondJobRunning": 2
              },
              "afterHogDeleted": {
                "running": 4,
                "msToAllBound": 1.25
              },
              "afterCordon": {
                "running": 4,
                "whole": true
              },
              "reasons": {
                "withHog": {
                  "train": "only 3 out of 4 pod(s) fit"
                },
                "afterHogDeleted": {},
                "afterCordon": {}
              }
            }"#]]
        .assert_eq(&serde_json::to_string_pretty(&unified()).unwrap());
    }

    #[test]
    fn the_table_fits_a_terminal_and_marks_what_was_measured_elsewhere() {
        let quota_only = Facts {
            configuration: "QuotaOnly",
            with_hog: WithHog {
                running: 3,
                pending: 1,
                admitted: true,
                gpu_quota_used: 4,
                second_job_running: 0,
            },
            after_hog_deleted: AfterHogDeleted { running: 3, ms_to_all_bound: None },
            after_cordon: AfterCordon { running: 3, whole: false },
            reasons: Reasons::default(),
            why: String::new(),
        };
        let text = table(&[quota_only, unified()]).to_string();
        expect![[r#"
                                    WITH THE HOG     QUOTA HELD   2ND JOB      HOG GONE          CORDONED
            QuotaOnly               3 run, 1 waits   4 GPUs       waits        no: 3 of 4        3 of 4
            Unified                 no pods          none         runs         all 4 in 1.2 ms   all 4
            ● Kueue alone           3 run, 1 waits   4 GPUs       waits        all 4             (not tried)
            ● Kueue + topology      no pods          none         runs         no: waits on      3 of 4
            ● Kueue + Volcano       4 pods wait      4 GPUs       waits        all 4 in 0.6 s    all 4
            ● native gangs (1.36)   4 pods wait      (no quota)   (no quota)   all 4 in 0.02 s   (not tried)
        "#]]
        .assert_eq(&text);
        assert!(text.lines().all(|line| line.chars().count() <= 100));
    }

    #[test]
    fn every_broken_promise_is_named() {
        assert_eq!(broken_promises(&unified()), Vec::<String>::new());
        let broken = Facts {
            with_hog: WithHog {
                running: 3,
                pending: 1,
                admitted: true,
                gpu_quota_used: 4,
                second_job_running: 0,
            },
            after_hog_deleted: AfterHogDeleted::default(),
            after_cordon: AfterCordon::default(),
            why: String::new(),
            ..unified()
        };
        expect![[r#"
            while it does not fit it has 3 running and 1 waiting pods
            while it does not fit it holds 4 GPUs of quota
            nothing says why it waits
            0 of 2 pods of the second job run beside it
            after the hog is gone 0 of 4 pods run
            after a pod on a cordoned node is lost 0 of 4 pods run
        "#]]
        .assert_eq(&broken_promises(&broken).iter().map(|line| format!("{line}\n")).collect::<String>());
    }
}
