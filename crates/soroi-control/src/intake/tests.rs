//! What intake makes of nodes, pods and Jobs as a real cluster leaves them.

use expect_test::{Expect, expect};
use soroi_engine::event::{self, Labels, Shape, TolerationMatch};

use super::*;

/// An object from YAML.
pub(crate) fn yaml<T: serde::de::DeserializeOwned>(text: &str) -> T {
    serde_saphyr::from_str(text).unwrap()
}

fn nobody() -> event::Who {
    event::Who { namespace: "default".into(), labels: Labels::new() }
}

/// A shape in one line: requests, then constraints.
pub(crate) fn shape_line(shape: &Shape) -> String {
    let mut words: Vec<String> =
        shape.requests.iter().map(|(resource, amount)| format!("{resource}={amount}")).collect();
    let selector = |labels: &Labels| {
        labels.iter().map(|(key, value)| format!("{key}:{value}")).collect::<Vec<_>>().join(",")
    };
    if !shape.node_selector.is_empty() {
        words.push(format!("selector[{}]", selector(&shape.node_selector)));
    }
    if let Some(terms) = &shape.node_affinity {
        words.push(format!("affinity{terms:?}"));
    }
    for toleration in &shape.tolerations {
        let key = toleration.key.as_deref().unwrap_or("*");
        let value = match &toleration.matches {
            TolerationMatch::Exists => String::new(),
            TolerationMatch::Equal(value) => format!("={value}"),
        };
        let effect = toleration.effect.map(|effect| format!(":{effect:?}")).unwrap_or_default();
        words.push(format!("tolerates[{key}{value}{effect}]"));
    }
    words.join(" ")
}

fn pod_line(facts: &PodFacts) -> String {
    let event::Pod { node, owner, pod_set, index, phase, bindable, terminating, shape, .. } = &facts.pod;
    format!(
        "node={node:?} owner={owner:?} set={pod_set:?} index={index:?} {phase:?} bindable={bindable} \
         terminating={terminating}\n{}",
        shape_line(shape)
    )
    .replace("Some(", "(")
}

fn check_pod(text: &str, expected: Expect) {
    let facts = pod(&yaml(text), &Schedulers { volcano: true, ..Schedulers::default() });
    expected.assert_eq(&facts.map_or_else(|invalid| invalid.to_string(), |facts| pod_line(&facts)));
}

#[test]
fn a_node_offers_what_its_status_says() {
    let node = node(&yaml(
        r#"
        metadata: {name: worker, labels: {kubernetes.io/hostname: worker}}
        spec:
          unschedulable: true
          taints:
          - {key: node.kubernetes.io/unschedulable, effect: NoSchedule}
          - {key: dedicated, value: gpu, effect: NoExecute}
        status:
          allocatable: {cpu: 7500m, memory: 32Gi, pods: "110", example.com/gpu: "2"}
          conditions: [{type: Ready, status: "True"}]
        "#,
    ))
    .unwrap();
    expect![[r#"
        Node {
            name: "worker",
            labels: {
                "kubernetes.io/hostname": "worker",
            },
            taints: [
                Taint {
                    key: "dedicated",
                    value: "gpu",
                    effect: NoExecute,
                },
            ],
            unschedulable: true,
            ready: true,
            allocatable: {
                "cpu": 7500,
                "example.com/gpu": 2,
                "memory": 34359738368,
                "pods": 110,
            },
        }
    "#]]
    .assert_debug_eq(&node);
}

#[test]
fn a_node_without_allocatable_offers_its_capacity_and_is_not_ready_unasked() {
    let node = node(&yaml("{metadata: {name: n}, status: {capacity: {cpu: '8'}}}")).unwrap();
    assert_eq!(node.allocatable.get("cpu"), Some(&8000));
    assert!(!node.ready);
}

#[test]
fn a_malformed_node_is_told_by_its_field() {
    let told = |text: &str| node(&yaml(text)).unwrap_err().to_string();
    expect![[r#"spec.taints[0].effect: unknown effect "Sometimes""#]]
        .assert_eq(&told("{metadata: {name: n}, spec: {taints: [{key: a, effect: Sometimes}]}}"));
    expect![[r#"status.allocatable[cpu]: quantity "4x": expected one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3 at position 1"#]].assert_eq(&told("{metadata: {name: n}, status: {allocatable: {cpu: 4x}}}"));
    expect![[r#"status.allocatable[memory]: "-1Gi": must not be negative"#]]
        .assert_eq(&told("{metadata: {name: n}, status: {allocatable: {memory: -1Gi}}}"));
}

/// As Kueue and the Job controller leave it (TAS policy, gate still there).
const JOB_POD: &str = r#"
metadata:
  annotations: {kueue.x-k8s.io/workload: job-a-ddc9f, batch.kubernetes.io/job-completion-index: "3"}
  labels: {kueue.x-k8s.io/podset: main}
  name: a-2zd5z
  namespace: default
  uid: pod-1
  ownerReferences: [{apiVersion: batch/v1, controller: true, kind: Job, name: a, uid: job-1}]
spec:
  schedulerName: default-scheduler
  schedulingGates: [{name: kueue.x-k8s.io/topology}]
  nodeSelector: {rack: r1}
  tolerations:
  - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}
  containers:
  - {name: c, image: i, resources: {requests: {cpu: 500m, memory: 128Mi, example.com/gpu: "1"}}}
status: {phase: Pending}
"#;

#[test]
fn a_pod_of_a_job_belongs_to_the_job() {
    check_pod(
        JOB_POD,
        expect![[r#"
        node=None owner=("job-1") set=("main") index=(3) Pending bindable=false terminating=false
        cpu=500 example.com/gpu=1 memory=134217728 selector[rack:r1] tolerates[node.kubernetes.io/not-ready:NoExecute]"#]],
    );
    let ours = JOB_POD
        .replace("schedulerName: default-scheduler", "schedulerName: soroi")
        .replace("schedulingGates: [{name: kueue.x-k8s.io/topology}]", "nodeName: worker")
        .replace("phase: Pending", "phase: Unknown")
        .replace("uid: pod-1", "uid: pod-1\n  deletionTimestamp: '2026-01-01T00:00:00Z'");
    check_pod(
        &ours,
        expect![[r#"
        node=("worker") owner=("job-1") set=("main") index=(3) Running bindable=true terminating=true
        cpu=500 example.com/gpu=1 memory=134217728 selector[rack:r1] tolerates[node.kubernetes.io/not-ready:NoExecute]"#]],
    );
}

#[test]
fn the_job_wins_over_the_group_and_the_group_over_the_pod() {
    let named = JOB_POD.replace("annotations: {", "annotations: {scheduling.k8s.io/group-name: pg, ");
    check_pod(
        &named,
        expect![[r#"
        node=None owner=("job-1") set=("main") index=(3) Pending bindable=false terminating=false
        cpu=500 example.com/gpu=1 memory=134217728 selector[rack:r1] tolerates[node.kubernetes.io/not-ready:NoExecute]"#]],
    );
    let stranger = named.replace("kind: Job", "kind: ReplicaSet");
    check_pod(
        &stranger,
        expect![[r#"
        node=None owner=("podgroup:default/pg") set=("main") index=(3) Pending bindable=false terminating=false
        cpu=500 example.com/gpu=1 memory=134217728 selector[rack:r1] tolerates[node.kubernetes.io/not-ready:NoExecute]"#]],
    );
    let single =
        JOB_POD.replace("controller: true", "controller: false").replace("default-scheduler", "volcano");
    check_pod(
        &single,
        expect![[r#"
        node=None owner=("pod-1") set=("main") index=(3) Pending bindable=false terminating=false
        cpu=500 example.com/gpu=1 memory=134217728 selector[rack:r1] tolerates[node.kubernetes.io/not-ready:NoExecute]"#]],
    );
}

#[test]
fn a_malformed_pod_is_told_by_its_field() {
    check_pod(
        &JOB_POD.replace("cpu: 500m", "cpu: half"),
        expect![[
            r#"spec.containers[0].resources.requests[cpu]: quantity "half": expected a number at position 0"#
        ]],
    );
    check_pod(
        &JOB_POD.replace("effect: NoExecute", "effect: Never"),
        expect![[r#"
            node=None owner=("job-1") set=("main") index=(3) Pending bindable=false terminating=false
            cpu=500 example.com/gpu=1 memory=134217728 affinity[]"#]],
    );
}

#[test]
fn of_tolerations_that_cover_each_other_the_widest_remains() {
    let shape = |tolerations: &str| {
        let text = format!("{{tolerations: {tolerations}, containers: []}}");
        shape_line(&super::pod::shape(&yaml(&text), Default::default(), &nobody()).unwrap())
    };
    expect!["tolerates[*]"]
        .assert_eq(&shape("[{operator: Exists}, {key: a, value: b, effect: NoSchedule}, {key: c}]"));
    expect!["tolerates[a=x] tolerates[b=y]"].assert_eq(&shape(
        "[{key: b, value: y}, {key: a, value: x, effect: NoSchedule}, {key: a, value: x}, \
          {key: a, operator: Lt, value: '5'}, {key: b, value: y, tolerationSeconds: 3}]",
    ));
}

#[test]
fn label_selectors_match_as_in_kubernetes() {
    let selector = |text: &str| selector::label_selector(&yaml(text)).unwrap();
    let labels = |text: &str| -> Labels {
        text.split(' ')
            .filter_map(|pair| pair.split_once('='))
            .map(|(key, value)| (key.into(), value.into()))
            .collect()
    };
    for (text, on, want) in [
        ("{}", "", true),
        ("{matchLabels: {a: x}}", "a=x b=y", true),
        ("{matchLabels: {a: x}}", "a=y", false),
        ("{matchExpressions: [{key: a, operator: NotIn, values: [x]}]}", "", true),
        ("{matchExpressions: [{key: a, operator: In, values: [x, y]}]}", "a=y", true),
        ("{matchExpressions: [{key: a, operator: DoesNotExist}]}", "a=y", false),
        ("{matchLabels: {a: x}, matchExpressions: [{key: b, operator: Exists}]}", "a=x", false),
    ] {
        assert_eq!(selector::matches(&selector(text), &labels(on)), want, "{text} on {on}");
    }
    let wrong =
        selector::label_selector(&yaml("{matchExpressions: [{key: a, operator: Gt, values: ['1']}]}"));
    expect![[r#"matchExpressions[0].operator: unknown operator "Gt""#]]
        .assert_eq(&wrong.unwrap_err().to_string());
}

#[test]
fn node_affinity_is_taken_term_by_term() {
    let spec = yaml(
        r#"
        containers: []
        affinity:
          nodeAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
              - matchExpressions: [{key: gen, operator: Gt, values: ["3"]}]
                matchFields: [{key: metadata.name, operator: In, values: [n1]}]
              - {}
        "#,
    );
    let shape = super::pod::shape(&spec, Default::default(), &nobody()).unwrap();
    expect![[r#"
        Some(
            [
                NodeSelectorTerm {
                    labels: [
                        Expression {
                            key: "gen",
                            op: Gt(
                                3,
                            ),
                        },
                    ],
                    fields: [
                        Expression {
                            key: "metadata.name",
                            op: In(
                                [
                                    "n1",
                                ],
                            ),
                        },
                    ],
                },
                NodeSelectorTerm {
                    labels: [],
                    fields: [],
                },
            ],
        )
    "#]]
    .assert_debug_eq(&shape.node_affinity);
}
