//! Workloads of Jobs and PodGroups, compared by eye with what Kueue 0.18.1 made.

use expect_test::{Expect, expect};
use serde_json::json;
use soroi_api::volcano::PodGroup;

use super::*;
use crate::intake::group::{Roll, Rolls, pod_sets};
use crate::intake::job::tests::SUSPENDED;
use crate::intake::tests::yaml;
use crate::intake::{Schedulers, pod, template};

/// An object in YAML order, one line per value.
pub(crate) fn picture(object: impl serde::Serialize) -> String {
    serde_json::to_string_pretty(&json!(object)).unwrap()
}

fn check(job: &str, defaults: &Defaults, expected: Expect) {
    let workload = of_job(&yaml(job), defaults);
    expected.assert_eq(&workload.map_or_else(|invalid| invalid.to_string(), picture));
}

#[test]
fn a_job_has_the_workload_that_kueue_makes() {
    check(
        SUSPENDED,
        &Defaults::default(),
        expect![[r#"
        {
          "apiVersion": "kueue.x-k8s.io/v1beta2",
          "kind": "Workload",
          "metadata": {
            "finalizers": [
              "kueue.x-k8s.io/resource-in-use"
            ],
            "labels": {
              "kueue.x-k8s.io/job-uid": "1b2c"
            },
            "name": "job-train-280f3",
            "namespace": "default",
            "ownerReferences": [
              {
                "apiVersion": "batch/v1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "Job",
                "name": "train",
                "uid": "1b2c"
              }
            ]
          },
          "spec": {
            "active": true,
            "podSets": [
              {
                "count": 4,
                "name": "main",
                "template": {
                  "metadata": {
                    "annotations": {
                      "kueue.x-k8s.io/podset-required-topology": "cloud.provider.com/topology-rack"
                    },
                    "labels": {
                      "batch.kubernetes.io/job-name": "train"
                    }
                  },
                  "spec": {
                    "containers": [
                      {
                        "image": "registry.k8s.io/pause:3.9",
                        "name": "trainer",
                        "resources": {
                          "limits": {
                            "example.com/gpu": "1"
                          },
                          "requests": {
                            "cpu": "500m",
                            "example.com/gpu": "1",
                            "memory": "128Mi"
                          }
                        }
                      }
                    ],
                    "restartPolicy": "Never",
                    "schedulerName": "default-scheduler"
                  }
                },
                "topologyRequest": {
                  "podIndexLabel": "batch.kubernetes.io/job-completion-index",
                  "required": "cloud.provider.com/topology-rack"
                }
              }
            ],
            "priority": 0,
            "queueName": "team-a"
          }
        }"#]],
    );
}

#[test]
fn name_and_hash_are_those_seen_on_kueue() {
    let seen = SUSPENDED
        .replace("name: train\n", "name: distributed-training-volcano\n")
        .replace("uid: 1b2c", "uid: f366a3c2-d21c-4eeb-9d49-61432e974248");
    let workload = of_job(&yaml(&seen), &Defaults::default()).unwrap();
    assert_eq!(workload.metadata.name.unwrap(), "job-distributed-training-volcano-88111");
}

#[test]
fn priority_time_limit_gates_and_least_parallelism_come_along() {
    let mut defaults = Defaults::default();
    defaults.set_workload_priority_class("urgent", 900);
    let job = SUSPENDED
        .replace(
            "annotations: {}",
            "annotations: {kueue.x-k8s.io/job-min-parallelism: '2', \
                  kueue.x-k8s.io/admission-gated-by: a.example/gate}",
        )
        .replace(
            "queue-name: team-a",
            "queue-name: team-a, kueue.x-k8s.io/priority-class: urgent, \
                  kueue.x-k8s.io/max-exec-time-seconds: '60'",
        );
    let workload = of_job(&yaml(&job), &defaults).unwrap();
    let spec = &workload.spec;
    let told = json!({
        "annotations": workload.metadata.annotations, "priority": spec.priority,
        "class": spec.priority_class_ref, "seconds": spec.maximum_execution_time_seconds,
        "minCount": spec.pod_sets[0].min_count,
    });
    expect![[r#"
        {
          "annotations": {
            "kueue.x-k8s.io/admission-gated-by": "a.example/gate"
          },
          "class": {
            "group": "kueue.x-k8s.io",
            "kind": "WorkloadPriorityClass",
            "name": "urgent"
          },
          "minCount": 2,
          "priority": 900,
          "seconds": 60
        }"#]]
    .assert_eq(&picture(told));
}

#[test]
fn a_job_that_cannot_be_understood_is_told_by_its_field() {
    let with = |from: &str, to: &str| SUSPENDED.replace(from, to);
    let queue = "queue-name: team-a";
    let class = format!("{queue}, kueue.x-k8s.io/priority-class: gone");
    check(
        &with(queue, &class),
        &Defaults::default(),
        expect![[
            r#"metadata.labels[kueue.x-k8s.io/priority-class]: WorkloadPriorityClass "gone" not found"#
        ]],
    );
    let seconds = format!("{queue}, kueue.x-k8s.io/max-exec-time-seconds: soon");
    check(
        &with(queue, &seconds),
        &Defaults::default(),
        expect![[
            r#"metadata.labels[kueue.x-k8s.io/max-exec-time-seconds]: "soon" is no whole number of seconds above 0"#
        ]],
    );
    check(
        &with("parallelism: 4", "parallelism: -1"),
        &Defaults::default(),
        expect!["spec.parallelism: -1 must not be negative"],
    );
}

const GROUP: &str = "
    metadata: {name: ring, namespace: team, uid: pg-1}
    spec: {minMember: 3, priorityClassName: high}
";

fn member(name: &str, role: &str, gpus: u32) -> Pod {
    yaml(&format!(
        "
        metadata:
          name: {name}
          namespace: team
          uid: uid-{name}
          labels: {{app: ring}}
          annotations: {{scheduling.k8s.io/group-name: ring, volcano.sh/task-spec: {role}}}
        spec:
          schedulerName: soroi
          nodeName: gone-by
          priority: 7
          preemptionPolicy: Never
          containers:
          - name: c
            image: i
            resources: {{requests: {{example.com/gpu: '{gpus}'}}}}
            volumeMounts: [{{name: kube-api-access-x, mountPath: /t}}, {{name: data, mountPath: /d}}]
          tolerations:
          - {{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}}
          - {{key: node.kubernetes.io/unreachable, operator: Exists, effect: NoExecute}}
          volumes: [{{name: kube-api-access-x}}, {{name: data}}]
        "
    ))
}

fn of_members(members: &[Pod]) -> Result<Workload, Invalid> {
    let mut defaults = Defaults::default();
    defaults.set_priority_class(&yaml("{metadata: {name: high}, value: 100}"));
    let facts: Vec<_> = members.iter().map(|member| pod(member, &Schedulers::default()).unwrap()).collect();
    let find = |uid: &str| members.iter().find(|member| member.metadata.uid.as_deref() == Some(uid)).unwrap();
    let roll: Roll = facts.iter().collect();
    let sets = pod_sets(&Rolls::from(&roll), &[]);
    let sets: Vec<_> = sets.into_iter().map(|set| (set.clone(), find(&set.example))).collect();
    of_group(&yaml::<PodGroup>(GROUP), &sets, "team-q", &defaults)
}

#[test]
fn a_pod_group_has_a_workload_with_one_pod_set_per_kind_of_pod() {
    let members = [member("w-1", "worker", 1), member("w-0", "worker", 1), member("head", "head", 0)];
    expect![[r#"
        {
          "apiVersion": "kueue.x-k8s.io/v1beta2",
          "kind": "Workload",
          "metadata": {
            "finalizers": [
              "kueue.x-k8s.io/resource-in-use"
            ],
            "labels": {
              "kueue.x-k8s.io/job-uid": "pg-1"
            },
            "name": "podgroup-ring-878e3",
            "namespace": "team",
            "ownerReferences": [
              {
                "apiVersion": "scheduling.volcano.sh/v1beta1",
                "blockOwnerDeletion": true,
                "controller": true,
                "kind": "PodGroup",
                "name": "ring",
                "uid": "pg-1"
              }
            ]
          },
          "spec": {
            "active": true,
            "podSets": [
              {
                "count": 1,
                "name": "head",
                "template": {
                  "metadata": {
                    "annotations": {
                      "scheduling.k8s.io/group-name": "ring",
                      "volcano.sh/task-spec": "head"
                    },
                    "labels": {
                      "app": "ring"
                    }
                  },
                  "spec": {
                    "containers": [
                      {
                        "image": "i",
                        "name": "c",
                        "resources": {
                          "requests": {
                            "example.com/gpu": "0"
                          }
                        },
                        "volumeMounts": [
                          {
                            "mountPath": "/d",
                            "name": "data"
                          }
                        ]
                      }
                    ],
                    "schedulerName": "soroi",
                    "tolerations": [
                      {
                        "effect": "NoExecute",
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists"
                      },
                      {
                        "effect": "NoExecute",
                        "key": "node.kubernetes.io/unreachable",
                        "operator": "Exists"
                      }
                    ],
                    "volumes": [
                      {
                        "name": "data"
                      }
                    ]
                  }
                }
              },
              {
                "count": 2,
                "name": "worker",
                "template": {
                  "metadata": {
                    "annotations": {
                      "scheduling.k8s.io/group-name": "ring",
                      "volcano.sh/task-spec": "worker"
                    },
                    "labels": {
                      "app": "ring"
                    }
                  },
                  "spec": {
                    "containers": [
                      {
                        "image": "i",
                        "name": "c",
                        "resources": {
                          "requests": {
                            "example.com/gpu": "1"
                          }
                        },
                        "volumeMounts": [
                          {
                            "mountPath": "/d",
                            "name": "data"
                          }
                        ]
                      }
                    ],
                    "schedulerName": "soroi",
                    "tolerations": [
                      {
                        "effect": "NoExecute",
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists"
                      },
                      {
                        "effect": "NoExecute",
                        "key": "node.kubernetes.io/unreachable",
                        "operator": "Exists"
                      }
                    ],
                    "volumes": [
                      {
                        "name": "data"
                      }
                    ]
                  }
                }
              }
            ],
            "priority": 100,
            "priorityClassRef": {
              "group": "scheduling.k8s.io",
              "kind": "PriorityClass",
              "name": "high"
            },
            "queueName": "team-q"
          }
        }"#]]
    .assert_eq(&picture(of_members(&members).unwrap()));
}

#[test]
fn a_pod_set_made_of_a_pod_has_that_pods_shape() {
    let one = member("w", "worker", 2);
    let shape = template(&template_of_pod(&one), "team", &Defaults::default()).unwrap();
    assert_eq!(shape, *pod(&one, &Schedulers::default()).unwrap().pod.shape);
}

#[test]
fn more_kinds_of_pods_than_a_workload_allows_are_refused_with_that_reason() {
    let members: Vec<Pod> = (1..=19).map(|gpus| member(&format!("w-{gpus}"), "worker", gpus)).collect();
    expect!["spec.podSets: the group has 19 distinct kinds of pods, a Workload at most 18"]
        .assert_eq(&of_members(&members).unwrap_err().to_string());
    expect!["spec.podSets: the group has no pods"].assert_eq(&of_members(&[]).unwrap_err().to_string());
}
