//! What intake makes of flavors and queues, good and bad.

use expect_test::{Expect, expect};
use soroi_engine::event::Event;

use super::*;
use crate::intake::tests::yaml;

const QUEUE: &str = "
    metadata: {name: gpu-queue, annotations: {soroi.dev/placement: QuotaOnly}}
    spec:
      cohortName: all
      namespaceSelector: {matchLabels: {team: a}}
      queueingStrategy: StrictFIFO
      stopPolicy: Hold
      flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: MayStopSearch}
      fairSharing: {weight: '0.5'}
      resourceGroups:
      - coveredResources: [cpu, example.com/gpu]
        flavors:
        - name: spot
          resources:
          - {name: cpu, nominalQuota: 16, borrowingLimit: 1500m}
          - {name: example.com/gpu, nominalQuota: '4', lendingLimit: 2}
      - coveredResources: [memory]
        flavors: [{name: any, resources: [{name: memory, nominalQuota: 1E}]}]
";

fn read(text: &str) -> event::ClusterQueue {
    cluster_queue(&yaml(text), &Checks::new())
}

#[test]
fn a_cluster_queue_is_read_in_whole_numbers() {
    expect![[r#"
        ClusterQueue {
            name: "gpu-queue",
            cohort: Some(
                "all",
            ),
            namespace_selector: Some(
                [
                    Expression {
                        key: "team",
                        op: In(
                            [
                                "a",
                            ],
                        ),
                    },
                ],
            ),
            strategy: StrictFifo,
            stop: Hold,
            groups: [
                ResourceGroup {
                    covered: [
                        "cpu",
                        "example.com/gpu",
                    ],
                    flavors: [
                        FlavorQuotas {
                            flavor: "spot",
                            quotas: [
                                Quota {
                                    resource: "cpu",
                                    nominal: 16000,
                                    borrowing_limit: Some(
                                        1500,
                                    ),
                                    lending_limit: None,
                                },
                                Quota {
                                    resource: "example.com/gpu",
                                    nominal: 4,
                                    borrowing_limit: None,
                                    lending_limit: Some(
                                        2,
                                    ),
                                },
                            ],
                        },
                    ],
                },
                ResourceGroup {
                    covered: [
                        "memory",
                    ],
                    flavors: [
                        FlavorQuotas {
                            flavor: "any",
                            quotas: [
                                Quota {
                                    resource: "memory",
                                    nominal: 1000000000000000000,
                                    borrowing_limit: None,
                                    lending_limit: None,
                                },
                            ],
                        },
                    ],
                },
            ],
            fungibility: Fungibility {
                stop_at_borrow: false,
                stop_at_preempt: true,
                prefer_preemption: false,
            },
            preemption: Preemption {
                within_queue: Never,
                reclaim: Never,
                while_borrowing: None,
            },
            weight_milli: 500,
            placement: Some(
                QuotaOnly,
            ),
            packing: None,
            inactive: None,
        }
    "#]]
    .assert_debug_eq(&read(QUEUE));
}

#[test]
fn what_is_not_said_is_kueues_default() {
    let queue = read("{metadata: {name: q}, spec: {namespaceSelector: {}}}");
    expect![[r#"
        ClusterQueue {
            name: "q",
            cohort: None,
            namespace_selector: Some(
                [],
            ),
            strategy: BestEffortFifo,
            stop: None,
            groups: [],
            fungibility: Fungibility {
                stop_at_borrow: true,
                stop_at_preempt: false,
                prefer_preemption: false,
            },
            preemption: Preemption {
                within_queue: Never,
                reclaim: Never,
                while_borrowing: None,
            },
            weight_milli: 1000,
            placement: None,
            packing: None,
            inactive: None,
        }
    "#]]
    .assert_debug_eq(&queue);
    assert_eq!(read("{metadata: {name: q}, spec: {}}").namespace_selector, None);
}

fn check_inactive(text: &str, expected: Expect) {
    let queue = read(text);
    expected.assert_eq(&queue.inactive.map_or_else(|| "active".into(), |inactive| format!("{inactive:?}")));
}

#[test]
fn a_cluster_queue_that_cannot_be_understood_is_inactive_with_the_field() {
    check_inactive(
        &QUEUE.replace("nominalQuota: 16", "nominalQuota: lots"),
        expect![[
            r#"Invalid("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: quantity \"lots\": expected a number at position 0")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("nominalQuota: 16", "nominalQuota: -1"),
        expect![[
            r#"Invalid("spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: \"-1\": must not be negative")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("lendingLimit: 2", "lendingLimit: 5"),
        expect![[
            r#"Invalid("spec.resourceGroups[0].flavors[0].resources[1].lendingLimit: must be at most nominalQuota")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("cohortName: all", ""),
        expect![[
            r#"Invalid("spec.resourceGroups[0].flavors[0].resources[0].borrowingLimit: needs a cohort")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("coveredResources: [memory]", "coveredResources: [cpu]"),
        expect![[r#"Invalid("spec.resourceGroups[1].coveredResources[0]: \"cpu\" is covered twice")"#]],
    );
    check_inactive(
        &QUEUE.replace("name: any", "name: spot"),
        expect![[r#"Invalid("spec.resourceGroups[1].flavors[0].name: flavor \"spot\" is listed twice")"#]],
    );
    check_inactive(
        &QUEUE.replace("[cpu, example.com/gpu]", "[example.com/gpu, cpu]"),
        expect![[
            r#"Invalid("spec.resourceGroups[0].flavors[0].resources: must list exactly the coveredResources, in their order")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("QuotaOnly", "Quota"),
        expect![[
            r#"Invalid("metadata.annotations[soroi.dev/placement]: unknown value \"Quota\", expected one of: Unified, TopologyOnly, AfterAdmission, QuotaOnly")"#
        ]],
    );
    check_inactive(
        &QUEUE.replace("weight: '0.5'", "weight: heavy"),
        expect![[
            r#"Invalid("spec.fairSharing.weight: quantity \"heavy\": expected a number at position 0")"#
        ]],
    );
    let selector = "namespaceSelector: {matchExpressions: [{key: a, operator: Near}]}";
    check_inactive(
        &QUEUE.replace("namespaceSelector: {matchLabels: {team: a}}", selector),
        expect![[
            r#"Invalid("spec.namespaceSelector.matchExpressions[0].operator: unknown operator \"Near\"")"#
        ]],
    );
    let deleted = QUEUE.replace("name: gpu-queue", "name: q, deletionTimestamp: '2026-01-01T00:00:00Z'");
    check_inactive(&deleted, expect!["Terminating"]);
    check_inactive(QUEUE, expect!["active"]);
}

#[test]
fn a_cluster_queue_waits_for_its_checks() {
    let text =
        "{metadata: {name: q}, spec: {admissionChecksStrategy: {admissionChecks: [{name: b}, {name: a}]}}}";
    let told = |checks: &[(&str, bool)]| {
        let checks = checks.iter().map(|(name, active)| (Name::from(*name), *active)).collect();
        format!("{:?}", cluster_queue(&yaml(text), &checks).inactive)
    };
    expect![[r#"Some(CheckNotFound(["a", "b"]))"#]].assert_eq(&told(&[]));
    expect![[r#"Some(CheckInactive(["b"]))"#]].assert_eq(&told(&[("a", true), ("b", false)]));
    expect!["None"].assert_eq(&told(&[("a", true), ("b", true)]));
}

#[test]
fn a_cohort_that_cannot_be_understood_has_no_quota_of_its_own() {
    let text = "{metadata: {name: c}, spec: {parentName: root, resourceGroups: [{coveredResources: [cpu], \
                flavors: [{name: f, resources: [{name: cpu, nominalQuota: 4}]}]}]}}";
    let good = cohort(&yaml(text)).unwrap();
    assert_eq!(good.groups[0].flavors[0].quotas[0].nominal, 4000);
    let (bad, why) = cohort(&yaml(&text.replace("nominalQuota: 4", "nominalQuota: x"))).unwrap_err();
    assert_eq!((bad.parent.as_deref(), bad.groups.len()), (Some("root"), 0));
    expect![[r#"spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: quantity "x": expected a number at position 0"#]].assert_eq(&why.to_string());
}

#[test]
fn a_flavor_is_its_labels_taints_and_tolerations() {
    let text = "{metadata: {name: f}, spec: {nodeLabels: {a: b}, topologyName: t, \
                nodeTaints: [{key: k, value: v, effect: NoSchedule}], tolerations: [{key: k, operator: Exists}]}}";
    expect![[r#"
        Flavor {
            name: "f",
            node_labels: {
                "a": "b",
            },
            node_taints: [
                Taint {
                    key: "k",
                    value: "v",
                    effect: NoSchedule,
                },
            ],
            tolerations: [
                Toleration {
                    key: Some(
                        "k",
                    ),
                    matches: Exists,
                    effect: None,
                },
            ],
            topology: Some(
                "t",
            ),
        }
    "#]]
    .assert_debug_eq(&flavor(&yaml(text)).unwrap());
    let told = flavor(&yaml(&text.replace("effect: NoSchedule", "effect: No"))).unwrap_err().to_string();
    expect![[r#"spec.nodeTaints[0].effect: unknown effect "No""#]].assert_eq(&told);
}

#[test]
fn topologies_local_queues_and_namespaces() {
    let levels =
        topology(&yaml("{metadata: {name: t}, spec: {levels: [{nodeLabel: rack}, {nodeLabel: host}]}}"));
    assert_eq!(levels.levels.iter().map(|level| &**level).collect::<Vec<_>>(), ["rack", "host"]);
    let queue =
        local_queue(&yaml("{metadata: {name: l, namespace: n}, spec: {clusterQueue: c, stopPolicy: Hold}}"));
    assert_eq!((&*queue.cluster_queue, queue.stop), ("c", StopPolicy::Hold));
    let Event::Namespace { labels, .. } = namespace(&yaml("{metadata: {name: n, labels: {team: a}}}")) else {
        panic!("another event")
    };
    assert_eq!(labels.get("kubernetes.io/metadata.name").map(|name| &**name), Some("n"));
    assert_eq!(labels.len(), 2);
}

#[test]
fn a_volcano_queue_takes_gangs_unless_it_says_that_it_does_not() {
    let read = |spec: &str, status: &str| {
        volcano_queue(&yaml(&format!("{{metadata: {{name: q}}, spec: {spec}, status: {status}}}")))
    };
    let open = |status: &str| read("{}", status).0.open;
    assert!(
        open("{allocated: {}}")
            && open("{allocated: {}, state: Open}")
            && open("{allocated: {}, state: Unknown}")
    );
    assert!(!open("{allocated: {}, state: Closing}") && !open("{allocated: {}, state: Closed}"));
    let text =
        "{capability: {cpu: 2, example.com/gpu: '4'}, guarantee: {resource: {cpu: 500m}}, priority: 3}";
    let queue = read(text, "{allocated: {}}").0;
    expect![[r#"
        VolcanoQueue {
            name: "q",
            parent: Some(
                "root",
            ),
            capability: {
                "cpu": 2000,
                "example.com/gpu": 4,
            },
            guarantee: {
                "cpu": 500,
            },
            priority: 3,
            open: true,
            invalid: None,
        }
    "#]]
    .assert_debug_eq(&queue);
    let root = volcano_queue(&yaml("{metadata: {name: root}, spec: {}}")).0;
    assert_eq!(root.parent, None);
    // The queue is there all the same, and takes nothing.
    let (queue, invalid) = read("{capability: {cpu: many, memory: 1Gi}}", "{allocated: {}}");
    assert_eq!(queue.capability.len(), 1);
    assert_eq!(queue.invalid, invalid.as_ref().map(Invalid::reason));
    expect![[r#"spec.capability[cpu]: quantity "many": expected a number at position 0"#]]
        .assert_eq(&invalid.unwrap().to_string());
    let (_, invalid) = read("{guarantee: {resource: {cpu: much}}}", "{allocated: {}}");
    expect![[r#"spec.guarantee.resource[cpu]: quantity "much": expected a number at position 0"#]]
        .assert_eq(&invalid.unwrap().to_string());
}

#[test]
fn a_selector_that_means_nothing_stops_its_queue_and_is_named() {
    let mut told = String::new();
    for selector in [
        "{matchLabels: {team: a}, matchExpressions: [{key: x, operator: In, values: [b]}]}",
        "{matchLabels: {a b: c}}",
        "{matchLabels: {team: c d}}",
        "{matchExpressions: [{key: a b c, operator: Exists}]}",
        "{matchExpressions: [{key: x, operator: In, values: []}]}",
        "{matchExpressions: [{key: x, operator: NotIn}]}",
        "{matchExpressions: [{key: x, operator: Exists, values: [a]}]}",
        "{matchExpressions: [{key: x, operator: DoesNotExist, values: [a]}]}",
        "{matchExpressions: [{key: x, operator: In, values: [a, b/c]}]}",
        "{matchExpressions: [{key: x, operator: Is}]}",
    ] {
        let queue = read(&format!("{{metadata: {{name: q}}, spec: {{namespaceSelector: {selector}}}}}"));
        told += &match queue.inactive {
            None => "active\n".to_owned(),
            Some(QueueInactive::Invalid(text)) => format!("{text}\n"),
            Some(other) => format!("{other:?}\n"),
        };
    }
    expect![[r#"
        active
        spec.namespaceSelector.matchLabels: "a b" must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        spec.namespaceSelector.matchLabels[team]: "c d" must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        spec.namespaceSelector.matchExpressions[0].key: "a b c" must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        spec.namespaceSelector.matchExpressions[0].values: must be given for operator In
        spec.namespaceSelector.matchExpressions[0].values: must be given for operator NotIn
        spec.namespaceSelector.matchExpressions[0].values: must not be given for operator Exists
        spec.namespaceSelector.matchExpressions[0].values: must not be given for operator DoesNotExist
        spec.namespaceSelector.matchExpressions[0].values[1]: "b/c" must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit
        spec.namespaceSelector.matchExpressions[0].operator: unknown operator "Is"
    "#]].assert_eq(&told);
}
