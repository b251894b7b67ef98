//! The policies as they are applied. That they do what `soroi_webhook` does is shown on a real API
//! server, which alone evaluates them.

use expect_test::expect;

use super::*;

#[test]
fn policies_match_by_label_and_say_what_they_change() {
    let spec = |name: &str| {
        let found = objects().into_iter().find(|(path, _)| path.ends_with(&format!("{POLICIES}/{name}")));
        serde_json::to_string_pretty(&found.unwrap().1["spec"]).unwrap()
    };
    expect![[r#"
        {
          "failurePolicy": "Fail",
          "matchConditions": [
            {
              "expression": "!has(object.spec.suspend) || !object.spec.suspend",
              "name": "runs"
            },
            {
              "expression": "object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].orValue('') != ''",
              "name": "names-a-queue"
            },
            {
              "expression": "!has(object.spec.managedBy) || object.spec.managedBy in ['', 'kubernetes.io/job-controller']",
              "name": "runs-here"
            },
            {
              "expression": "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && ((o.kind == 'Job' && o.apiVersion.startsWith('batch/')) || (o.kind == 'Workload' && o.apiVersion.startsWith('kueue.x-k8s.io/')) || (o.kind == 'PodGroup' && o.apiVersion.startsWith('scheduling.volcano.sh/'))))",
              "name": "owner-is-not-managed"
            }
          ],
          "matchConstraints": {
            "objectSelector": {
              "matchExpressions": [
                {
                  "key": "kueue.x-k8s.io/queue-name",
                  "operator": "Exists"
                }
              ]
            },
            "resourceRules": [
              {
                "apiGroups": [
                  "batch"
                ],
                "apiVersions": [
                  "v1"
                ],
                "operations": [
                  "CREATE"
                ],
                "resources": [
                  "jobs"
                ]
              }
            ]
          },
          "mutations": [
            {
              "applyConfiguration": {
                "expression": "Object{spec: Object.spec{suspend: true}}"
              },
              "patchType": "ApplyConfiguration"
            }
          ],
          "reinvocationPolicy": "IfNeeded"
        }"#]].assert_eq(&spec("jobs.soroi.dev"));
    expect![[r#"
        {
          "failurePolicy": "Fail",
          "matchConditions": [
            {
              "expression": "!has(object.spec.schedulerName) || object.spec.schedulerName in ['', 'default-scheduler']",
              "name": "names-no-scheduler"
            },
            {
              "expression": "!has(object.spec.schedulingGates) || object.spec.schedulingGates.all(g, g.name != 'kueue.x-k8s.io/topology')",
              "name": "is-not-pinned"
            }
          ],
          "matchConstraints": {
            "objectSelector": {
              "matchExpressions": [
                {
                  "key": "soroi.dev/gang",
                  "operator": "Exists"
                }
              ]
            },
            "resourceRules": [
              {
                "apiGroups": [
                  ""
                ],
                "apiVersions": [
                  "v1"
                ],
                "operations": [
                  "CREATE"
                ],
                "resources": [
                  "pods"
                ]
              }
            ]
          },
          "mutations": [
            {
              "applyConfiguration": {
                "expression": "Object{spec: Object.spec{schedulerName: 'soroi'}}"
              },
              "patchType": "ApplyConfiguration"
            }
          ],
          "reinvocationPolicy": "IfNeeded"
        }"#]].assert_eq(&spec("pods.soroi.dev"));
    expect![[r#"
        {
          "failurePolicy": "Ignore",
          "matchConditions": [
            {
              "expression": "object.metadata.?labels[?'kueue.x-k8s.io/queue-name'].orValue('') == ''",
              "name": "names-no-queue"
            },
            {
              "expression": "!has(object.spec.managedBy) || object.spec.managedBy in ['', 'kubernetes.io/job-controller']",
              "name": "runs-here"
            },
            {
              "expression": "!has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(o, has(o.controller) && o.controller && ((o.kind == 'Job' && o.apiVersion.startsWith('batch/')) || (o.kind == 'Workload' && o.apiVersion.startsWith('kueue.x-k8s.io/')) || (o.kind == 'PodGroup' && o.apiVersion.startsWith('scheduling.volcano.sh/'))))",
              "name": "owner-is-not-managed"
            }
          ],
          "matchConstraints": {
            "resourceRules": [
              {
                "apiGroups": [
                  "batch"
                ],
                "apiVersions": [
                  "v1"
                ],
                "operations": [
                  "CREATE"
                ],
                "resources": [
                  "jobs"
                ]
              }
            ]
          },
          "mutations": [
            {
              "applyConfiguration": {
                "expression": "Object{metadata: Object.metadata{labels: {'kueue.x-k8s.io/queue-name': 'default'}}, spec: Object.spec{suspend: true}}"
              },
              "patchType": "ApplyConfiguration"
            }
          ],
          "paramKind": {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "LocalQueue"
          },
          "reinvocationPolicy": "IfNeeded"
        }"#]].assert_eq(&spec("default-queue.soroi.dev"));
}

#[test]
fn the_default_queue_is_a_parameter_that_may_be_missing() {
    let found = objects()
        .into_iter()
        .find(|(path, _)| path.ends_with(&format!("{BINDINGS}/default-queue.soroi.dev")));
    expect![[r#"{"paramRef":{"name":"default","parameterNotFoundAction":"Allow"},"policyName":"default-queue.soroi.dev"}"#]].assert_eq(&found.unwrap().1["spec"].to_string());
}

#[test]
fn every_policy_is_bound() {
    let paths: Vec<String> = objects().into_iter().map(|(path, _)| path.replace(GROUP, "")).collect();
    expect![[r#"
        /mutatingadmissionpolicies/default-queue.soroi.dev
        /mutatingadmissionpolicybindings/default-queue.soroi.dev
        /mutatingadmissionpolicies/jobs.soroi.dev
        /mutatingadmissionpolicybindings/jobs.soroi.dev
        /mutatingadmissionpolicies/pods.soroi.dev
        /mutatingadmissionpolicybindings/pods.soroi.dev"#]]
    .assert_eq(&paths.join("\n"));
}

fn object(uid: &str, version: &str) -> PartialObjectMeta {
    serde_json::from_value(json!({ "metadata": { "uid": uid, "resourceVersion": version } })).unwrap()
}

#[test]
fn only_what_comes_after_the_first_list_is_a_change() {
    let mut known = Known::default();
    let list = || Change::Reset(vec![object("a", "1"), object("b", "2")]);
    let told = [
        known.take(POLICIES, list()),
        known.take(BINDINGS, Change::Reset(vec![])),
        known.take(POLICIES, list()),
        known.take(POLICIES, Change::Set(object("b", "2"))),
        known.take(POLICIES, Change::Set(object("b", "3"))),
        known.take(POLICIES, list()),
        known.take(BINDINGS, Change::Gone(object("c", "1"))),
    ];
    assert_eq!(told, [false, false, false, false, true, true, true]);
}
