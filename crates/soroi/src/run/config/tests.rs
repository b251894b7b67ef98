//! What may be written into the file, and what is said about what may not.

use expect_test::{Expect, expect};

use super::*;

fn check(text: &str, expected: Expect) {
    let text = format!("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n{text}");
    let said = match parse(&text) {
        Ok(configuration) => format!("{:?}", configuration.control(7, false, "a").settings),
        Err(error) => format!("{error:#}"),
    };
    expected.assert_eq(&said);
}

#[test]
fn an_empty_one_is_the_default() {
    let empty = parse("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n").unwrap();
    assert_eq!(empty, Configuration::default());
    empty.check().unwrap();
}

#[test]
fn every_field_has_its_effect() {
    let text = "
apiVersion: soroi.dev/v1alpha1
kind: Configuration
placement: QuotaOnly
timeouts: {start: 1m30s, gather: 250ms, recovery: 2h, deadPod: 7s}
undoBackoff: {min: 2s, max: 3s}
requests: {timeout: 4s, inFlight: 5}
identity: blue
leaderElection: {namespace: here, name: there, leaseDuration: 9s, renewEvery: 1s}
http: {bindAddress: '0.0.0.0:0'}
";
    let configuration = parse(text).unwrap();
    expect![[r#""#]].assert_eq(&format!("{configuration:#?}"));
    expect![[r#""#]].assert_eq(&format!("{:#?}", configuration.control(7, true, "blue")));
}

#[test]
fn mistakes_name_the_field() {
    check("timeuots: {start: 1s}\n", expect![[""]]);
    check("timeouts: {strat: 1s}\n", expect![[""]]);
    check("timeouts: {start: 1}\n", expect![[""]]);
    check("timeouts: {start: 1 fortnight}\n", expect![[""]]);
    check("timeouts: {start: -1s}\n", expect![[""]]);
    check("placement: Everywhere\n", expect![[""]]);
    check("requests: {inFlight: many}\n", expect![[""]]);
    check("requests: {inFlight: 0}\n", expect![[""]]);
    check("requests: {timeout: 20s}\n", expect![[""]]);
    check("leaderElection: {leaseDuration: 1500ms}\n", expect![[""]]);
    check("leaderElection: {renewEvery: 10s}\n", expect![[""]]);
    check("http: {bindAddress: here}\n", expect![[""]]);
    check("placement: Unified\nplacement: QuotaOnly\n", expect![[""]]);
    check("- what\n", expect![[""]]);
}

#[test]
fn another_kind_of_file_is_refused() {
    let said = |text: &str| format!("{:#}", parse(text).unwrap_err());
    expect![[""]].assert_eq(&said("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"));
    expect![[""]].assert_eq(&said("apiVersion: soroi.dev/v1alpha1\nkind: Workload\n"));
    expect![[""]].assert_eq(&said("kind: Configuration\n"));
    expect![[""]].assert_eq(&said(""));
}
