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
packing: Spread
timeouts: {start: 1m30s, gather: 250ms, recovery: 2h, deadPod: 7s}
undoBackoff: {min: 2s, max: 3s}
waitForPodsReady:
  timeout: 5m
  recoveryTimeout: 0s
  blockAdmission: true
  requeuingStrategy: {timestamp: Creation, backoffLimitCount: 4, backoffBaseSeconds: 1, backoffMaxSeconds: 2}
requests: {timeout: 4s, inFlight: 5}
identity: blue
leaderElection: {namespace: here, name: there, leaseDuration: 9s, renewEvery: 1s}
http: {bindAddress: '0.0.0.0:0'}
";
    let configuration = parse(text).unwrap();
    expect![[r#"
        Configuration {
            placement: QuotaOnly,
            packing: Spread,
            timeouts: Timeouts {
                start: 90s,
                gather: 250ms,
                recovery: 7200s,
                dead_pod: 7s,
            },
            undo_backoff: UndoBackoff {
                min: 2s,
                max: 3s,
            },
            wait_for_pods_ready: Some(
                WaitForPodsReady {
                    timeout: 300s,
                    recovery_timeout: Some(
                        0ns,
                    ),
                    block_admission: true,
                    requeuing_strategy: RequeuingStrategy {
                        timestamp: Creation,
                        backoff_limit_count: Some(
                            4,
                        ),
                        backoff_base_seconds: 1,
                        backoff_max_seconds: 2,
                    },
                },
            ),
            fair_sharing: None,
            resources: Resources {
                quota_check_strategy: BlockUndeclared,
                exclude_resource_prefixes: [],
                transformations: [],
            },
            object_retention_policies: ObjectRetentionPolicies {
                workloads: Workloads {
                    after_finished: None,
                    after_deactivated_by_kueue: None,
                },
            },
            requests: Requests {
                timeout: 4s,
                in_flight: 5,
            },
            identity: Some(
                "blue",
            ),
            compat: Compat {
                reasons: Kueue018,
            },
            leader_election: LeaderElection {
                namespace: "here",
                name: "there",
                lease_duration: 9s,
                renew_every: 1s,
            },
            http: Http {
                bind_address: 0.0.0.0:0,
            },
            webhooks: None,
        }"#]]
    .assert_eq(&format!("{configuration:#?}"));
    expect![[r#"
        Config {
            settings: Settings {
                placement: QuotaOnly,
                start_timeout: 90000,
                gather_timeout: 250,
                recovery_timeout: 7200000,
                dead_pod_timeout: 7000,
                undo_backoff_min: 2000,
                undo_backoff_max: 3000,
                ignore_undeclared: false,
                fair_sharing: None,
                block_admission: true,
                packing: Spread,
            },
            charging: Charging {
                excluded: [],
                transformed: {},
            },
            retention: Retention {
                after_finished: None,
                after_deactivated: None,
            },
            epoch: 7,
            serve_volcano: true,
            instance: "blue",
            seed: 7,
            writes_in_flight: 5,
            request_timeout_ms: 4000,
            reason_refresh_ms: 5000,
            refreshes_per_second: 50,
            wait_for_pods_ready: Some(
                WaitForPodsReady {
                    timeout: 300000,
                    recovery_timeout: None,
                    requeuing: Requeuing {
                        to_the_back: false,
                        limit: Some(
                            4,
                        ),
                        base_secs: 1,
                        max_secs: 2,
                    },
                },
            ),
            dialect: Kueue018,
        }"#]]
    .assert_eq(&format!("{:#?}", configuration.control(7, true, "blue")));
}

#[test]
fn pods_that_do_not_get_ready_are_spoken_of_as_in_kueue() {
    let rules = |text: &str| {
        let text = format!("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nwaitForPodsReady: {text}\n");
        parse(&text).map(|all| all.control(7, false, "a").wait_for_pods_ready.unwrap())
    };
    let wait = rules("{timeout: 30m}").unwrap();
    expect![[r#"
        WaitForPodsReady {
            timeout: 1800000,
            recovery_timeout: Some(
                1800000,
            ),
            requeuing: Requeuing {
                to_the_back: true,
                limit: None,
                base_secs: 60,
                max_secs: 3600,
            },
        }"#]]
    .assert_eq(&format!("{wait:#?}"));
    let mistakes = [
        "{}",
        "{timeout: 0s}",
        "{timeout: 5}",
        "{timeout: 5m, recoveryTimeout: -1s}",
        "{timeout: 5m, enable: true}",
        "{timeout: 5m, requeuingStrategy: {timestamp: Now}}",
        "{timeout: 5m, requeuingStrategy: {backoffLimitCount: -1}}",
        "{timeout: 5m, requeuingStrategy: {backoff: 1}}",
    ];
    let told = mistakes.map(|text| format!("{:#}\n", rules(text).unwrap_err()));
    expect![[r#"
        waitForPodsReady: missing field `timeout`
        waitForPodsReady.timeout: must be longer than nothing
        waitForPodsReady.timeout: 5 has no unit: write 5s for seconds
        waitForPodsReady.recoveryTimeout: "-1s" is negative
        waitForPodsReady.enable: unknown field `enable`, expected one of `timeout`, `recoveryTimeout`, `blockAdmission`, `requeuingStrategy`
        waitForPodsReady.requeuingStrategy.timestamp: unknown variant `Now`, expected `Eviction` or `Creation`
        waitForPodsReady.requeuingStrategy.backoffLimitCount: invalid value: integer `-1`, expected u32
        waitForPodsReady.requeuingStrategy.backoff: unknown field `backoff`, expected one of `timestamp`, `backoffLimitCount`, `backoffBaseSeconds`, `backoffMaxSeconds`
    "#]].assert_eq(&told.concat());
}

#[test]
fn mistakes_name_the_field() {
    check(
        "timeuots: {start: 1s}\n",
        expect![
            "timeuots: unknown field `timeuots`, expected one of `placement`, `packing`, `timeouts`, `undoBackoff`, `waitForPodsReady`, `fairSharing`, `resources`, `objectRetentionPolicies`, `requests`, `identity`, `compat`, `leaderElection`, `http`, `webhooks`"
        ],
    );
    check(
        "timeouts: {strat: 1s}\n",
        expect![
            "timeouts.strat: unknown field `strat`, expected one of `start`, `gather`, `recovery`, `deadPod`"
        ],
    );
    check(
        "fairSharing: {preemptionStrategies: [LessThanInitialShare, LessThanOrEqualToFinalShare]}\n",
        expect![
            "fairSharing.preemptionStrategies: must be LessThanOrEqualToFinalShare, LessThanInitialShare, or both in this order"
        ],
    );
    check(
        "compat: {reasons: '0.20'}\n",
        expect!["compat.reasons: unknown variant `0.20`, expected `0.18` or `0.19`"],
    );
    check("timeouts: {start: 1}\n", expect!["timeouts.start: 1 has no unit: write 1s for seconds"]);
    check(
        "timeouts: {start: 1 fortnight}\n",
        expect![[r#"timeouts.start: "1 fortnight" is no span of time such as 90s or 1m30s"#]],
    );
    check("timeouts: {start: -1s}\n", expect![[r#"timeouts.start: "-1s" is negative"#]]);
    for (span, why) in [
        ("99999999999999999999s", "is longer than ten years"),
        ("100000h", "is longer than ten years"),
        ("1h-5s", "is no span of time such as 90s or 1m30s"),
        ("1e300h", "is no span of time such as 90s or 1m30s"),
        ("\"\"", "is no span of time such as 90s or 1m30s"),
    ] {
        let quoted = span.trim_matches('"');
        let text =
            format!("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\ntimeouts: {{start: {span}}}\n");
        let error = parse(&text).unwrap_err().to_string();
        assert_eq!(error, format!("timeouts.start: {quoted:?} {why}"));
    }
    check(
        "placement: Everywhere\n",
        expect![
            "placement: unknown variant `Everywhere`, expected one of `Unified`, `TopologyOnly`, `AfterAdmission`, `QuotaOnly`"
        ],
    );
    check(
        "requests: {inFlight: many}\n",
        expect![[r#"requests.inFlight: invalid type: string "many", expected usize"#]],
    );
    check("requests: {inFlight: 0}\n", expect!["requests.inFlight: must be at least 1"]);
    check(
        "requests: {timeout: 20s}\n",
        expect!["requests.timeout: must be less than leaderElection.leaseDuration"],
    );
    check(
        "leaderElection: {leaseDuration: 1500ms}\n",
        expect!["leaderElection.leaseDuration: must be whole seconds, and at least one"],
    );
    check(
        "leaderElection: {renewEvery: 10s}\n",
        expect!["leaderElection.renewEvery: must be less than half of leaseDuration"],
    );
    check("http: {bindAddress: here}\n", expect!["http.bindAddress: invalid socket address syntax"]);
    check(
        "placement: Unified\nplacement: QuotaOnly\n",
        expect![[r#"
        error: line 4 column 1: duplicate mapping key: placement, set DuplicateKeyPolicy in Options if acceptable
         --> <input>:4:1
          |
        2 | kind: Configuration
        3 | placement: Unified
        4 | placement: QuotaOnly
          | ^ duplicate mapping key: placement, set DuplicateKeyPolicy in Options if acceptable"#]],
    );
    check(
        "- what\n",
        expect![[r#"
        error: line 3 column 3: while parsing a block mapping, did not find expected key
         --> <input>:3:3
          |
        1 | apiVersion: soroi.dev/v1alpha1
        2 | kind: Configuration
        3 | - what
          |   ^ while parsing a block mapping, did not find expected key"#]],
    );
}

#[test]
fn another_kind_of_file_is_refused() {
    let said = |text: &str| format!("{:#}", parse(text).unwrap_err());
    expect![[r#"apiVersion: must be soroi.dev/v1alpha1, not "config.kueue.x-k8s.io/v1beta2""#]]
        .assert_eq(&said("apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"));
    expect![[r#"kind: must be Configuration, not "Workload""#]]
        .assert_eq(&said("apiVersion: soroi.dev/v1alpha1\nkind: Workload\n"));
    expect![[r#"
        error: line 1 column 1: missing field `apiVersion`
         --> <input>:1:1
          |
        1 | kind: Configuration
          | ^ missing field `apiVersion`"#]]
    .assert_eq(&said("kind: Configuration\n"));
    expect!["unexpected end of input at line 1, column 1"].assert_eq(&said(""));
}

#[test]
fn what_pods_charge_and_how_long_workloads_stay_is_read_as_kueue_writes_it() {
    let text = "
apiVersion: soroi.dev/v1alpha1
kind: Configuration
resources:
  excludeResourcePrefixes: [example.com/]
  transformations:
  - {input: gpu-slice, strategy: Replace, outputs: {credits: 15, memory.gpu: 10Gi}, multiplyBy: vgpu}
  - {input: cpu, outputs: {credits: 1}}
objectRetentionPolicies: {workloads: {afterFinished: 1h, afterDeactivatedByKueue: 0s}}
";
    let control = parse(text).unwrap().control(1, true, "a");
    assert!(!control.settings.ignore_undeclared);
    let charging = control.charging;
    assert_eq!(charging.excluded, ["example.com/"]);
    let slice = &charging.transformed["gpu-slice"];
    assert!(!slice.retain && charging.transformed["cpu"].retain);
    assert_eq!(slice.multiply_by.as_deref(), Some("vgpu"));
    let outputs = slice.outputs.iter().map(|(name, each)| format!("{name}: {each}"));
    assert_eq!(outputs.collect::<Vec<_>>(), ["credits: 15", "memory.gpu: 10Gi"]);
    let kept = control.retention;
    assert_eq!((kept.after_finished, kept.after_deactivated), (Some(3_600_000), Some(0)));
    let head = "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n";
    let lenient = format!("{head}resources: {{quotaCheckStrategy: IgnoreUndeclared}}\n");
    assert!(parse(&lenient).unwrap().control(1, true, "a").settings.ignore_undeclared);
}

#[test]
fn what_pods_cannot_charge_is_named() {
    let mut told = String::new();
    for resources in [
        "{transformations: [{input: a}, {input: a}]}",
        "{transformations: [{input: ''}]}",
        "{transformations: [{outputs: {b: 1}}]}",
        "{transformations: [{input: a, strategy: Keep}]}",
        "{transformations: [{input: a, outputs: {b: much}}]}",
        "{excludeResourcePrefixes: ['']}",
        "{excludeResourcePrefixes: [a], quotaCheckStrategy: IgnoreUndeclared}",
        "{deviceClassMappings: []}",
    ] {
        let text = format!("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\nresources: {resources}\n");
        told += &format!("{:#}\n", parse(&text).unwrap_err());
    }
    expect![[r#"
        resources.transformations[1].input: "a" is there already
        resources.transformations[0].input: must not be empty
        resources.transformations[0]: missing field `input`
        resources.transformations[0].strategy: unknown variant `Keep`, expected `Retain` or `Replace`
        resources.transformations[0].outputs[b]: quantity "much": expected a number at position 0
        resources.excludeResourcePrefixes[0]: would leave out every resource
        resources.excludeResourcePrefixes: must not be there together with quotaCheckStrategy IgnoreUndeclared
        resources.deviceClassMappings: unknown field `deviceClassMappings`, expected one of `quotaCheckStrategy`, `excludeResourcePrefixes`, `transformations`
    "#]].assert_eq(&told);
}

#[test]
fn reasons_are_those_of_the_kueue_that_is_named() {
    for (text, expected) in [("", Dialect::Kueue018), ("compat: {reasons: '0.19'}\n", Dialect::Kueue019)] {
        let text = format!("apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n{text}");
        assert_eq!(parse(&text).unwrap().control(1, true, "a").dialect, expected);
    }
}
