//! What intake makes of demands on other pods.

use expect_test::{Expect, expect};
use soroi_engine::event::Shape;

use crate::intake::tests::yaml;
use crate::intake::{Defaults, Schedulers, pod, template};

fn told(shape: &Shape) -> String {
    match shape.neighbours.as_deref() {
        None => format!("nothing; unserved: {:?}", shape.unserved),
        Some(demands) => format!("{demands:#?}").replace("\n    ", "\n"),
    }
}

/// A template says the same as a pod made of it.
fn check(labels: &str, spec: &str, expected: Expect) {
    let of_template = template(
        &yaml(&format!("{{metadata: {{labels: {labels}}}, spec: {spec}}}")),
        "team",
        &Defaults::default(),
    );
    let text = format!("{{metadata: {{uid: u, name: p, namespace: team, labels: {labels}}}, spec: {spec}}}");
    let of_pod = pod(&yaml(&text), &Schedulers::default()).unwrap();
    let predicted = of_template.map_err(|invalid| invalid.to_string());
    let predicted = predicted.map_or_else(|text| text, |shape| told(&shape));
    let real = of_pod.invalid.map_or_else(|| told(&of_pod.pod.shape), |invalid| invalid.to_string());
    assert_eq!(predicted.trim_start_matches("template."), real);
    expected.assert_eq(&predicted);
}

#[test]
fn most_pods_demand_nothing() {
    check(
        "{}",
        "{containers: [{name: a, ports: [{containerPort: 80}]}]}",
        expect!["nothing; unserved: None"],
    );
    // Preferences are no demands.
    check(
        "{a: b}",
        "{containers: [{name: a}], affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [
          {weight: 1, podAffinityTerm: {topologyKey: zone}}]}},
          topologySpreadConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway}]}",
        expect!["nothing; unserved: None"],
    );
    check(
        "{}",
        "{containers: [{name: a}], resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]}",
        expect!["nothing; unserved: Some(ResourceClaims)"],
    );
}

#[test]
fn ports_of_the_node() {
    // An init container that ends has none; a sidecar does.
    check(
        "{}",
        "{containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}, {containerPort: 81}]},
                       {name: b, ports: [{containerPort: 1, hostPort: 53, protocol: UDP, hostIP: 10.0.0.1}]}],
          initContainers: [{name: c, ports: [{containerPort: 2, hostPort: 99}]},
                           {name: d, restartPolicy: Always, ports: [{containerPort: 2, hostPort: 98}]}]}",
        expect![[r#"
            Neighbours {
            ports: [
                HostPort {
                    port: 53,
                    protocol: Udp,
                    ip: Some(
                        "10.0.0.1",
                    ),
                },
                HostPort {
                    port: 98,
                    protocol: Tcp,
                    ip: None,
                },
                HostPort {
                    port: 8080,
                    protocol: Tcp,
                    ip: None,
                },
            ],
            affinity: [],
            anti_affinity: [],
            spread: [],
            }"#]],
    );
    check(
        "{}",
        "{hostNetwork: true, containers: [{name: a, ports: [{containerPort: 80, hostIP: 0.0.0.0}]}]}",
        expect![[r#"
            Neighbours {
            ports: [
                HostPort {
                    port: 80,
                    protocol: Tcp,
                    ip: None,
                },
            ],
            affinity: [],
            anti_affinity: [],
            spread: [],
            }"#]],
    );
    check(
        "{}",
        "{containers: [{name: a, ports: [{containerPort: 80, hostPort: 70000}]}]}",
        expect!["template.spec.containers[0].ports[0].hostPort: 70000 must be between 1 and 65535"],
    );
}

#[test]
fn terms_mean_the_own_namespace_unless_they_name_others() {
    check(
        "{job: j, rank: '1'}",
        "{containers: [{name: a}], affinity: {
          podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
            {topologyKey: rack, labelSelector: {matchLabels: {app: x}}, matchLabelKeys: [job, none]}]},
          podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
            {topologyKey: host, namespaces: [b, a, b]},
            {topologyKey: host, namespaceSelector: {}, labelSelector: {}, mismatchLabelKeys: [job]}]}}}",
        expect![[r#"
            Neighbours {
            ports: [],
            affinity: [
                PodTerm {
                    topology_key: "rack",
                    pods: PodSelector {
                        namespaces: [
                            "team",
                        ],
                        namespace_selector: None,
                        labels: Some(
                            [
                                Expression {
                                    key: "app",
                                    op: In(
                                        [
                                            "x",
                                        ],
                                    ),
                                },
                                Expression {
                                    key: "job",
                                    op: In(
                                        [
                                            "j",
                                        ],
                                    ),
                                },
                            ],
                        ),
                    },
                },
            ],
            anti_affinity: [
                PodTerm {
                    topology_key: "host",
                    pods: PodSelector {
                        namespaces: [],
                        namespace_selector: Some(
                            [],
                        ),
                        labels: Some(
                            [
                                Expression {
                                    key: "job",
                                    op: NotIn(
                                        [
                                            "j",
                                        ],
                                    ),
                                },
                            ],
                        ),
                    },
                },
                PodTerm {
                    topology_key: "host",
                    pods: PodSelector {
                        namespaces: [
                            "a",
                            "b",
                        ],
                        namespace_selector: None,
                        labels: None,
                    },
                },
            ],
            spread: [],
            }"#]],
    );
    check(
        "{}",
        "{containers: [{name: a}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
          {topologyKey: '', labelSelector: {}}]}}}",
        expect![
            "template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: must be given"
        ],
    );
    check(
        "{}",
        "{containers: [{name: a}], affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [
          {topologyKey: zone, labelSelector: {matchExpressions: [{key: a, operator: Gt, values: ['1']}]}}]}}}",
        expect![[r#"template.spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector.matchExpressions[0].operator: unknown operator "Gt""#]],
    );
}

#[test]
fn spreading() {
    check(
        "{job: j}",
        "{containers: [{name: a}], topologySpreadConstraints: [
          {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}},
           matchLabelKeys: [job], minDomains: 3, nodeAffinityPolicy: Ignore, nodeTaintsPolicy: Honor}]}",
        expect![[r#"
            Neighbours {
            ports: [],
            affinity: [],
            anti_affinity: [],
            spread: [
                Spread {
                    topology_key: "zone",
                    pods: PodSelector {
                        namespaces: [
                            "team",
                        ],
                        namespace_selector: None,
                        labels: Some(
                            [
                                Expression {
                                    key: "app",
                                    op: In(
                                        [
                                            "x",
                                        ],
                                    ),
                                },
                                Expression {
                                    key: "job",
                                    op: In(
                                        [
                                            "j",
                                        ],
                                    ),
                                },
                            ],
                        ),
                    },
                    max_skew: 2,
                    min_domains: 3,
                    honours_affinity: false,
                    honours_taints: true,
                },
            ],
            }"#]],
    );
    check(
        "{}",
        "{containers: [{name: a}], topologySpreadConstraints: [
          {maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}",
        expect!["template.spec.topologySpreadConstraints[0].maxSkew: 0 must be at least 1"],
    );
}
