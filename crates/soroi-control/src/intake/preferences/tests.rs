//! What is read of preferences, as pictures.

use expect_test::{Expect, expect};
use k8s_openapi::api::core::v1::PodSpec;
use soroi_engine::event::Who;

use super::preferences;
use crate::intake::tests::yaml;

fn check(spec: &str, expected: Expect) {
    let spec: PodSpec = yaml(spec);
    let who = Who { namespace: "ns".into(), labels: [("app".into(), "x".into())].into() };
    let text = match preferences(&spec, &who) {
        Ok(None) => "nothing".to_owned(),
        Ok(Some(prefers)) => format!("{prefers:#?}"),
        Err(invalid) => invalid.to_string(),
    };
    expected.assert_eq(&text);
}

#[test]
fn most_pods_would_like_nothing() {
    check("{containers: []}", expect!["nothing"]);
    // Demands are no preferences, and what means no node is none.
    check(
        "{containers: [], topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}],
          affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 5, preference: {}}]}}}",
        expect!["nothing"],
    );
}

#[test]
fn preferences_of_all_kinds() {
    check(
        "{containers: [], affinity: {
          nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
            {weight: 5, preference: {matchExpressions: [{key: disk, operator: In, values: [ssd]}]}},
            {weight: 1, preference: {matchFields: [{key: metadata.name, operator: In, values: [a]}]}}]},
          podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
            {weight: 100, podAffinityTerm: {topologyKey: zone, labelSelector: {matchLabels: {a: b}}, matchLabelKeys: [app]}}]},
          podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
            {weight: 7, podAffinityTerm: {topologyKey: host, namespaceSelector: {}}}]}},
          topologySpreadConstraints: [
            {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}]}",
        expect![[r#"
            Preferences {
                nodes: [
                    (
                        1,
                        NodeSelectorTerm {
                            labels: [],
                            fields: [
                                Expression {
                                    key: "metadata.name",
                                    op: In(
                                        [
                                            "a",
                                        ],
                                    ),
                                },
                            ],
                        },
                    ),
                    (
                        5,
                        NodeSelectorTerm {
                            labels: [
                                Expression {
                                    key: "disk",
                                    op: In(
                                        [
                                            "ssd",
                                        ],
                                    ),
                                },
                            ],
                            fields: [],
                        },
                    ),
                ],
                near: [
                    (
                        100,
                        PodTerm {
                            topology_key: "zone",
                            pods: PodSelector {
                                namespaces: [
                                    "ns",
                                ],
                                namespace_selector: None,
                                labels: Some(
                                    [
                                        Expression {
                                            key: "a",
                                            op: In(
                                                [
                                                    "b",
                                                ],
                                            ),
                                        },
                                        Expression {
                                            key: "app",
                                            op: In(
                                                [
                                                    "x",
                                                ],
                                            ),
                                        },
                                    ],
                                ),
                            },
                        },
                    ),
                ],
                apart: [
                    (
                        7,
                        PodTerm {
                            topology_key: "host",
                            pods: PodSelector {
                                namespaces: [],
                                namespace_selector: Some(
                                    [],
                                ),
                                labels: None,
                            },
                        },
                    ),
                ],
                spread: [
                    Spread {
                        topology_key: "zone",
                        pods: PodSelector {
                            namespaces: [
                                "ns",
                            ],
                            namespace_selector: None,
                            labels: Some(
                                [
                                    Expression {
                                        key: "a",
                                        op: In(
                                            [
                                                "b",
                                            ],
                                        ),
                                    },
                                ],
                            ),
                        },
                        max_skew: 2,
                        min_domains: 1,
                        honours_affinity: true,
                        honours_taints: false,
                    },
                ],
            }"#]],
    );
}

#[test]
fn what_is_wrong_is_named() {
    check(
        "{containers: [], affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
          {weight: 0, preference: {}}]}}}",
        expect![
            "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 0 must be between 1 and 100"
        ],
    );
    check(
        "{containers: [], affinity: {nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
          {weight: 1, preference: {matchExpressions: [{key: a, operator: Near}]}}]}}}",
        expect![[
            r#"affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator: unknown operator "Near""#
        ]],
    );
    check(
        "{containers: [], affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
          {weight: 101, podAffinityTerm: {topologyKey: zone}}]}}}",
        expect![
            "affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight: 101 must be between 1 and 100"
        ],
    );
    check(
        "{containers: [], affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
          {weight: 1, podAffinityTerm: {topologyKey: ''}}]}}}",
        expect![
            "affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.topologyKey: must be given"
        ],
    );
}
