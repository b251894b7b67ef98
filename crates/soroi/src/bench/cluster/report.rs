//! How is it told? One row for each thing that was measured.
//!
//! Knows samples; never where they come from.

use std::fmt;

use serde::Serialize;
use soroi_embedded::table::Table;

use crate::bench::number;

/// Everything that one part measured.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    /// The part.
    pub(super) benchmark: &'static str,
    /// Of the API server, as `/version` says.
    pub(super) kubernetes: String,
    /// Whether this program is a release build.
    pub(super) optimized: bool,
    /// What the table cannot say.
    pub(super) remarks: Vec<String>,
    /// In the order of the table.
    pub(super) rows: Vec<Row>,
}

/// Samples of one thing.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row {
    /// Stable name for programs.
    pub(super) name: String,
    /// For people.
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) median: f64,
    pub(super) p99: f64,
    pub(super) best: f64,
    pub(super) worst: f64,
    pub(super) samples: usize,
    /// What was aimed at.
    pub(super) targets: Vec<Target>,
}

/// Something to reach.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Target {
    /// With its number.
    pub(super) text: String,
    pub(super) met: bool,
}

impl Row {
    /// A row of samples of which fewer are better, in no order.
    pub(super) fn of(name: &str, what: impl Into<String>, unit: &'static str, samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        Self {
            name: name.to_owned(),
            what: what.into(),
            unit,
            median: percentile(&sorted, 50),
            p99: percentile(&sorted, 99),
            best: percentile(&sorted, 0),
            worst: percentile(&sorted, 100),
            samples: sorted.len(),
            targets: Vec::new(),
        }
    }

    /// The same where more is better: then 99 of 100 samples are at least `p99`.
    pub(super) fn rate(name: &str, what: impl Into<String>, unit: &'static str, samples: &[f64]) -> Self {
        let negative: Vec<f64> = samples.iter().map(|sample| -sample).collect();
        let row = Self::of(name, what, unit, &negative);
        Self { median: -row.median, p99: -row.p99, best: -row.best, worst: -row.worst, ..row }
    }

    /// Judges the row.
    pub(super) fn aim(&mut self, text: String, met: bool) {
        self.targets.push(Target { text, met });
    }
}

/// The smallest sample that is at least as large as so many in 100 (nearest rank).
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or(f64::NAN)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.optimized {
            writeln!(f, "This is a debug build: measure with `cargo xtask bench`.\n")?;
        }
        let mut table = Table::new(["WHAT", "MEDIAN", "P99", "BEST", "WORST", "SAMPLES", "TARGET"]);
        for row in &self.rows {
            let targets = row.targets.iter();
            let targets: Vec<String> = targets
                .map(|target| format!("{}: {}", target.text, if target.met { "met" } else { "missed" }))
                .collect();
            table.row([
                row.what.clone(),
                format!("{} {}", number(row.median), row.unit),
                number(row.p99),
                number(row.best),
                number(row.worst),
                row.samples.to_string(),
                targets.join("; "),
            ]);
        }
        write!(f, "{table}")?;
        writeln!(f, "\nKubernetes {}", self.kubernetes)?;
        for remark in &self.remarks {
            writeln!(f, "{remark}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn rows_say_what_was_aimed_at() {
        let samples: Vec<f64> = (1..=100).map(f64::from).collect();
        let mut time = Row::of("soroi", "Soroi", "ms", &samples);
        time.aim("p50 ≤ 51.0 ms".into(), true);
        time.aim("p99 ≤ 90.0 ms".into(), false);
        let rate = Row::rate("loop", "a loop", "binds/s", &[1_000.0, 2_000.0, 3_000.0]);
        let report = Report {
            benchmark: "wakeup",
            kubernetes: "v1.36.1".into(),
            optimized: true,
            remarks: vec!["A remark.".into()],
            rows: vec![time, rate],
        };
        expect![[r#"
            WHAT     MEDIAN          P99     BEST    WORST   SAMPLES   TARGET
            Soroi    50.0 ms         99.0    1.00    100     100       p50 ≤ 51.0 ms: met; p99 ≤ 90.0 ms: missed
            a loop   2,000 binds/s   1,000   3,000   1,000   3

            Kubernetes v1.36.1
            A remark.
        "#]]
        .assert_eq(&report.to_string());
    }

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(percentile(&[1.0, 2.0, 3.0], 50), 2.0);
        assert_eq!(percentile(&[1.0, 2.0], 50), 1.0);
        assert_eq!(percentile(&[1.0], 99), 1.0);
        assert!(percentile(&[], 50).is_nan());
    }
}
