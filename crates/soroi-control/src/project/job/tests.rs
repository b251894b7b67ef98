//! Release and the way back, on Jobs as the API server has them.

use expect_test::{Expect, expect};
use k8s_openapi::api::batch::v1::Job;
use serde_json::Value;

use super::super::workload::tests::picture;
use super::*;
use crate::intake;
use crate::intake::job::pod_set_template;
use crate::intake::job::tests::SUSPENDED;
use crate::intake::tests::yaml;

fn facts(job: &str) -> (JobFacts, PodTemplateSpec, Value) {
    let job: Job = yaml(job);
    (intake::job(&job).unwrap(), pod_set_template(&job), json!(job))
}

fn flavor(text: &str) -> ResourceFlavor {
    yaml(&format!("{{metadata: {{name: f}}, spec: {text}}}"))
}

fn content<'a>(flavors: Vec<&'a ResourceFlavor>) -> Release<'a> {
    Release {
        gang: Some("wl-uid"),
        workload: "job-train-12345",
        pod_set: "main",
        cluster_queue: "gpu-queue",
        local_queue: "team-a",
        flavors,
        ..Release::default()
    }
}

/// The difference that a patch makes to a Job, as a merge patch.
fn difference(before: &Value, patch: &json_patch::Patch) -> Value {
    let mut after = before.clone();
    json_patch::patch(&mut after, patch).unwrap();
    super::super::merge_patch(before, &after).unwrap_or(Value::Null)
}

fn check(job: &str, content: &Release<'_>, expected: Expect) {
    let (facts, template, object) = facts(job);
    let text = release(&facts, &template, content).map(|patch| picture(difference(&object, &patch)));
    expected.assert_eq(&text.unwrap_or_else(|invalid| invalid.to_string()));
}

#[test]
fn a_release_starts_the_job_and_injects_flavor_and_marks() {
    let flavor = flavor(
        "{nodeLabels: {cloud.provider.com/topology-rack: rack-1}, \
          tolerations: [{key: gpu, operator: Exists, effect: NoSchedule}]}",
    );
    check(
        SUSPENDED,
        &content(vec![&flavor, &flavor]),
        expect![[r#"
        {
          "spec": {
            "suspend": false,
            "template": {
              "metadata": {
                "annotations": {
                  "kueue.x-k8s.io/workload": "job-train-12345"
                },
                "labels": {
                  "kueue.x-k8s.io/cluster-queue-name": "gpu-queue",
                  "kueue.x-k8s.io/local-queue-name": "team-a",
                  "kueue.x-k8s.io/podset": "main",
                  "soroi.dev/gang": "wl-uid"
                }
              },
              "spec": {
                "nodeSelector": {
                  "cloud.provider.com/topology-rack": "rack-1"
                },
                "tolerations": [
                  {
                    "effect": "NoSchedule",
                    "key": "gpu",
                    "operator": "Exists"
                  }
                ]
              }
            }
          }
        }"#]],
    );
}

#[test]
fn under_topology_only_pods_wait_at_the_gate() {
    let flavor = flavor("{nodeLabels: {cloud.provider.com/topology-rack: rack-1}, topologyName: t}");
    let gated = Release { gang: None, topology_gate: true, ..content(vec![&flavor]) };
    check(
        SUSPENDED,
        &gated,
        expect![[r#"
        {
          "spec": {
            "suspend": false,
            "template": {
              "metadata": {
                "annotations": {
                  "kueue.x-k8s.io/workload": "job-train-12345"
                },
                "labels": {
                  "kueue.x-k8s.io/cluster-queue-name": "gpu-queue",
                  "kueue.x-k8s.io/local-queue-name": "team-a",
                  "kueue.x-k8s.io/podset": "main"
                }
              },
              "spec": {
                "nodeSelector": {
                  "cloud.provider.com/topology-rack": "rack-1"
                },
                "schedulingGates": [
                  {
                    "name": "kueue.x-k8s.io/topology"
                  }
                ]
              }
            }
          }
        }"#]],
    );
    // Asked for nothing: the gate alone must not look like a request for one domain.
    let unasked = SUSPENDED.replace("podset-required-topology: cloud.provider.com/topology-rack", "x: y");
    let (facts, template, object) = facts(&unasked);
    let patch = release(&facts, &template, &gated).unwrap();
    let annotations = &difference(&object, &patch)["spec"]["template"]["metadata"]["annotations"];
    expect![[r#"
        {
          "kueue.x-k8s.io/podset-unconstrained-topology": "true",
          "kueue.x-k8s.io/workload": "job-train-12345"
        }"#]]
    .assert_eq(&picture(annotations));
}

#[test]
fn checks_add_to_the_template_and_may_not_contradict_it() {
    let update: PodSetUpdate = serde_json::from_value(json!({
        "name": "main", "labels": {"pool": "spot"}, "annotations": {"note": "y"},
        "nodeSelector": {"pool": "spot"}, "tolerations": [{"key": "spot", "operator": "Exists"}],
    }))
    .unwrap();
    let mut partial = content(vec![]);
    partial.updates = vec![&update];
    check(
        SUSPENDED,
        &partial,
        expect![[r#"
        {
          "spec": {
            "suspend": false,
            "template": {
              "metadata": {
                "annotations": {
                  "kueue.x-k8s.io/workload": "job-train-12345",
                  "note": "y"
                },
                "labels": {
                  "kueue.x-k8s.io/cluster-queue-name": "gpu-queue",
                  "kueue.x-k8s.io/local-queue-name": "team-a",
                  "kueue.x-k8s.io/podset": "main",
                  "pool": "spot",
                  "soroi.dev/gang": "wl-uid"
                }
              },
              "spec": {
                "nodeSelector": {
                  "pool": "spot"
                },
                "tolerations": [
                  {
                    "key": "spot",
                    "operator": "Exists"
                  }
                ]
              }
            }
          }
        }"#]],
    );
    let other = flavor("{nodeLabels: {pool: reserved}}");
    partial.flavors = vec![&other];
    check(
        SUSPENDED,
        &partial,
        expect![[r#"template.spec.nodeSelector[pool]: "spot" contradicts "reserved""#]],
    );
}

#[test]
fn a_release_without_reading_makes_the_same_job() {
    let plain = flavor("{nodeLabels: {pool: a}}");
    let selecting =
        SUSPENDED.replace("restartPolicy: Never", "nodeSelector: {pool: a}\n      restartPolicy: Never");
    for (job, flavors) in [(SUSPENDED, vec![&plain]), (SUSPENDED, vec![]), (&selecting, vec![&plain])] {
        let (facts, template, object) = facts(job);
        let shape = intake::template(&template, "default", &Default::default()).unwrap();
        let patch = release_at_once(&facts, "7", &shape.node_selector, &content(flavors.clone())).unwrap();
        let version = json!({ "uid": "1b2c", "resourceVersion": "7" });
        assert_eq!(patch["metadata"], version);
        let (mut read, mut at_once) = (object.clone(), object.clone());
        json_patch::patch(&mut read, &release(&facts, &template, &content(flavors)).unwrap()).unwrap();
        json_patch::merge(&mut at_once, &json!({ "spec": patch["spec"] }));
        // An empty map and none are the same to the API server.
        let selector = |job: &mut Value| {
            let spec = job["spec"]["template"]["spec"].as_object_mut().unwrap();
            spec.remove("nodeSelector").filter(|selector| *selector != json!({}))
        };
        assert_eq!(selector(&mut read), selector(&mut at_once));
        assert_eq!(read, at_once);
    }
}

#[test]
fn a_release_that_depends_on_the_template_reads_it() {
    let (facts, _, _) = facts(SUSPENDED);
    let at_once = |selector: &[(&str, &str)], release: &Release<'_>| {
        let selector = selector.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        release_at_once(&facts, "7", &selector, release).is_some()
    };
    let (labels, tolerating) =
        (flavor("{nodeLabels: {pool: a}}"), flavor("{tolerations: [{key: gpu, operator: Exists}]}"));
    assert!(at_once(&[("pool", "a"), ("disk", "ssd")], &content(vec![&labels])));
    assert!(!at_once(&[("pool", "b")], &content(vec![&labels])));
    assert!(!at_once(&[], &content(vec![&tolerating])));
    assert!(!at_once(&[], &Release { topology_gate: true, ..content(vec![]) }));
    let update = PodSetUpdate { name: "main".into(), ..PodSetUpdate::default() };
    assert!(!at_once(&[], &Release { updates: vec![&update], ..content(vec![]) }));
}

#[test]
fn a_queue_whose_name_is_no_label_value_gets_no_label() {
    let long = "q".repeat(64);
    let (facts, template, object) = facts(SUSPENDED);
    let long = Release { cluster_queue: &long, ..content(vec![]) };
    let change = difference(&object, &release(&facts, &template, &long).unwrap());
    let labels = &change["spec"]["template"]["metadata"]["labels"];
    assert!(labels.get(keys::CLUSTER_QUEUE_NAME).is_none(), "{labels}");
    assert_eq!(labels[keys::LOCAL_QUEUE_NAME], "team-a");
}

#[test]
fn the_way_back_gives_exactly_the_template_that_was() {
    let flavor = flavor("{nodeLabels: {a: b}, tolerations: [{key: gpu, operator: Exists}]}");
    let own = "nodeSelector: {disk: ssd}\n      tolerations: [{key: mine, operator: Exists}]\n      restartPolicy: Never";
    for job in [SUSPENDED.to_string(), SUSPENDED.replace("restartPolicy: Never", own)] {
        let (facts, template, object) = facts(&job);
        let gated = Release { topology_gate: true, ..content(vec![&flavor]) };
        let mut released = object.clone();
        json_patch::patch(&mut released, &release(&facts, &template, &gated).unwrap()).unwrap();
        assert_ne!(released["spec"]["template"], object["spec"]["template"]);
        json_patch::patch(&mut released, &suspend(&facts)).unwrap();
        json_patch::patch(&mut released, &restore(&facts, &template, facts.pods())).unwrap();
        assert_eq!(released["spec"], object["spec"]);
    }
}

#[test]
fn nothing_is_written_to_another_job_of_the_same_name_or_one_that_runs() {
    let (facts, template, object) = facts(SUSPENDED);
    let release = release(&facts, &template, &content(vec![])).unwrap();
    let mut another = object.clone();
    another["metadata"]["uid"] = json!("3d4e");
    for patch in [&release, &suspend(&facts), &restore(&facts, &template, facts.pods())] {
        assert!(json_patch::patch(&mut another.clone(), patch).is_err());
    }
    let mut resumed = object;
    resumed["spec"]["suspend"] = json!(false);
    assert!(json_patch::patch(&mut resumed.clone(), &release).is_err());
    assert!(json_patch::patch(&mut resumed.clone(), &restore(&facts, &template, facts.pods())).is_err());
}

#[test]
fn a_job_with_a_selector_of_its_own_keeps_its_labels() {
    let manual = SUSPENDED.replace("manualSelector: false", "manualSelector: true");
    let (facts, mut template, object) = facts(&manual);
    // Such a template has no generated labels; what looks like them is its user's.
    template.metadata = Some(yaml("{labels: {mine: 'yes'}}"));
    let mut restored = object;
    json_patch::patch(&mut restored, &restore(&facts, &template, facts.pods())).unwrap();
    assert_eq!(restored["spec"]["template"]["metadata"], json!({"labels": {"mine": "yes"}}));
}

#[test]
fn a_job_of_which_fewer_pods_would_do_gets_their_number_and_its_own_back() {
    for (follow, completions) in [("'true'", json!(3)), ("'false'", json!(4))] {
        let asks = format!(
            "annotations: {{kueue.x-k8s.io/job-min-parallelism: '2', \
             kueue.x-k8s.io/job-completions-equal-parallelism: {follow}}}"
        );
        let (facts, template, object) = facts(&SUSPENDED.replace("annotations: {}", &asks));
        let fewer = Release { pods: Some(3), ..content(vec![]) };
        let size = |job: &Value| json!([job["spec"]["parallelism"], job["spec"]["completions"]]);
        assert_eq!(size(&object), json!([4, 4]));
        let mut released = object.clone();
        json_patch::patch(&mut released, &release(&facts, &template, &fewer).unwrap()).unwrap();
        assert_eq!(size(&released), json!([3, completions]));
        // The shorter way to the same.
        let mut at_once = object.clone();
        let patch = release_at_once(&facts, "7", &event::Labels::new(), &fewer).unwrap();
        json_patch::merge(&mut at_once, &patch);
        assert_eq!(size(&at_once), size(&released));
        let running = intake::job(&serde_json::from_value(released.clone()).unwrap()).unwrap();
        json_patch::patch(&mut released, &suspend(&running)).unwrap();
        json_patch::patch(&mut released, &restore(&running, &template, 4)).unwrap();
        assert_eq!(released["spec"], object["spec"]);
    }
}
