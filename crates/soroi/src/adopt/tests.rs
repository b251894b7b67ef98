//! What an adoption would do, as people see it; and that it does so, on an embedded cluster.

#[path = "../../tests/real/left.rs"]
#[allow(unreachable_pub, reason = "shared with the story on a real control plane")]
mod left;
mod story;

use clap::Parser as _;
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::look::Seen;
use super::{plan, show, verdict};
use crate::{Args, Output};

/// The definition of a kind as Soroi has it.
fn ours(name: &str) -> Value {
    let all = soroi_api::crds::all();
    let found = all.iter().find(|one| one.metadata.name.as_deref() == Some(name)).unwrap();
    serde_json::to_value(found).unwrap()
}

fn theirs(name: &str, stored: &[&str]) -> Value {
    let mut definition = left::definition(ours(name));
    definition["status"] = json!({ "storedVersions": stored });
    definition
}

fn check(seen: &Seen, expected: &Expect) {
    let mut out = Vec::new();
    show::plan(&plan::plan(seen).unwrap(), Output::Table, &mut out).unwrap();
    expected.assert_eq(&String::from_utf8(out).unwrap());
}

fn objects(resource: &str, objects: &[Value]) -> (String, Result<Vec<Value>, String>) {
    (resource.to_owned(), Ok(objects.to_vec()))
}

#[test]
fn arguments_say_where_things_are_kept_unless_nothing_changes() {
    let parse = |arguments: &[&str]| Args::try_parse_from([&["soroi", "adopt"], arguments].concat()).is_ok();
    assert!(parse(&["--check"]));
    assert!(parse(&["--check", "--output", "json"]));
    assert!(parse(&["--save-to", "before"]));
    assert!(parse(&["--undo", "--save-to", "before"]));
    assert!(!parse(&[]));
    assert!(!parse(&["--undo"]));
    assert!(!parse(&["--check", "--undo", "--save-to", "before"]));
}

#[test]
fn nothing_is_to_be_done_on_an_empty_cluster_or_after_an_adoption() {
    let expected = expect![[r#"
        Nothing to take over.
    "#]];
    check(&Seen::default(), &expected);
    let seen = Seen { definitions: vec![ours("workloads.kueue.x-k8s.io")], ..Seen::default() };
    check(&seen, &expected);
}

#[test]
fn what_kueue_left_is_removed_or_replaced_in_this_order() {
    let mut admission = left::admission();
    let api_services = vec![admission.pop().unwrap()];
    let queue = json!({ "metadata": { "name": "gpu-queue" } });
    let pod = json!({
        "metadata": {
            "namespace": "ml", "name": "alone", "finalizers": ["kueue.x-k8s.io/managed"],
            "labels": { "kueue.x-k8s.io/managed": "true" },
        },
        "status": { "phase": "Succeeded" },
    });
    let seen = Seen {
        definitions: vec![
            theirs("clusterqueues.kueue.x-k8s.io", &["v1beta1", "v1beta2"]),
            theirs("workloads.kueue.x-k8s.io", &["v1beta2"]),
            theirs("podgroups.scheduling.volcano.sh", &["v1beta1"]),
        ],
        webhooks: admission,
        api_services,
        objects: [objects("clusterqueues.kueue.x-k8s.io", &[queue]), objects("pods", &[pod])].into(),
        ..Seen::default()
    };
    check(
        &seen,
        &expect![[r#"
            STEP   OBJECT                                                                        CHANGE
            1      MutatingWebhookConfiguration kueue-mutating-webhook-configuration             removed: it calls Kueue at kueue-system/kueue-webhook-service
            2      ValidatingWebhookConfiguration kueue-validating-webhook-configuration         removed: it calls Kueue at kueue-system/kueue-webhook-service
            3      ValidatingWebhookConfiguration volcano-admission-service-podgroups-validate   removed: it calls Volcano at volcano-system/volcano-admission-service
            4      APIService v1beta2.visibility.kueue.x-k8s.io                                  removed: its API was served by Kueue's manager
            5      clusterqueues.kueue.x-k8s.io                                                  objects stored anew as v1beta2: 1
            6      clusterqueues.kueue.x-k8s.io                                                  replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            7      workloads.kueue.x-k8s.io                                                      replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            8      podgroups.scheduling.volcano.sh                                               replaced by Soroi's, which serves v1beta1
            9      Pod ml/alone                                                                  finalizer kueue.x-k8s.io/managed is taken off

            Adoption is possible.
        "#]],
    );
}

#[test]
fn it_is_not_possible_while_another_product_lives_or_an_object_cannot_be_read() {
    let mut older = theirs("cohorts.kueue.x-k8s.io", &["v1beta1"]);
    older["spec"]["versions"][0]["storage"] = false.into();
    older["spec"]["versions"][1]["storage"] = true.into();
    let unreadable = "workloads.kueue.x-k8s.io";
    let seen = Seen {
        live: vec![("Kueue's manager", "kueue-system/c1f6bfd2.kueue.x-k8s.io".into())],
        webhooks: left::admission().into_iter().take(1).collect(),
        answering: ["kueue-system/kueue-webhook-service".to_owned()].into(),
        definitions: vec![older, theirs(unreadable, &["v1beta1", "v1beta2"])],
        objects: [(unreadable.to_owned(), Err("conversion webhook failed".to_owned()))].into(),
        ..Seen::default()
    };
    check(
        &seen,
        &expect![[r#"
            STEP   OBJECT                                                              CHANGE
            1      MutatingWebhookConfiguration kueue-mutating-webhook-configuration   removed: it calls Kueue at kueue-system/kueue-webhook-service

            Not possible now: Kueue's manager is live: it holds the lease kueue-system/c1f6bfd2.kueue.x-k8s.io; stop it first.
            Not possible now: Kueue's admission is live: the service kueue-system/kueue-webhook-service of MutatingWebhookConfiguration kueue-mutating-webhook-configuration has endpoints; stop it first.
            Not possible now: cohorts.kueue.x-k8s.io stores v1beta1, and Soroi serves v1beta2: upgrade to a release that stores v1beta2 first (Kueue 0.18, Volcano 1.15).
            Not possible now: workloads.kueue.x-k8s.io cannot be read (conversion webhook failed); stored versions: v1beta2, v1beta1: start the product that converts between them, `kubectl get workloads.kueue.x-k8s.io -A -o json | kubectl replace -f -`, and stop it again.
        "#]],
    );
    assert_eq!(verdict(&plan::plan(&seen).unwrap(), true), std::process::ExitCode::FAILURE);
}

#[test]
fn admission_of_others_stays() {
    let hook = |name: &str, client: Value| {
        json!({
            "kind": "ValidatingWebhookConfiguration", "metadata": { "name": name },
            "webhooks": [{ "name": name, "clientConfig": client,
                           "rules": [{ "apiGroups": ["kueue.x-k8s.io"], "resources": ["clusterqueues"] }] }],
        })
    };
    let webhooks = vec![
        hook("policy.example.com", json!({ "service": { "namespace": "a", "name": "b", "path": "/kueue" } })),
        hook("bindings.volcano.sh", json!({ "url": "https://elsewhere.example.com" })),
    ];
    let plan = plan::plan(&Seen { webhooks, ..Seen::default() }).unwrap();
    assert_eq!(plan, plan::Plan::default());
}

/// Each line of the list: an object that asks for it, and one of the same kind that does not.
#[test]
fn what_is_not_served_is_named_with_who_uses_it() {
    let named = |name: &str, spec: Value| json!({ "metadata": { "name": name }, "spec": spec });
    let in_ml = |name: &str, more: Value| {
        let mut object = json!({ "metadata": { "namespace": "ml", "name": name } });
        for (field, value) in more.as_object().unwrap() {
            match object[field].as_object_mut() {
                Some(known) => known.extend(value.as_object().unwrap().clone()),
                None => object[field] = value.clone(),
            }
        }
        object
    };
    let set = |set: Value| json!({ "spec": { "podSets": [set] } });
    let gated = |gate: &str| json!({ "spec": { "schedulingGates": [{ "name": gate }] } });
    let seen = Seen {
        definitions: vec![json!({ "metadata": { "name": "jobs.batch.volcano.sh" } })],
        objects: [
            objects("clusterqueues.kueue.x-k8s.io", &[
                named("plain", json!({ "preemption": { "withinClusterQueue": "Never" }, "fairSharing": { "weight": "1" } })),
                named("preempts", json!({ "preemption": { "withinClusterQueue": "LowerPriority" } })),
                named("reclaims", json!({ "preemption": { "reclaimWithinCohort": "Any" } })),
                named("weighs", json!({ "fairSharing": { "weight": "2" } })),
                named("remembers", json!({ "admissionScope": { "admissionMode": "UsageBasedAdmissionFairSharing" } })),
                named("tries", json!({ "concurrentAdmissionPolicy": { "migration": { "mode": "RetainFirstAdmission" } } })),
            ]),
            objects("cohorts.kueue.x-k8s.io", &[named("heavy", json!({ "fairSharing": { "weight": 3 } }))]),
            objects("admissionchecks.kueue.x-k8s.io", &[
                named("provision", json!({ "controllerName": "kueue.x-k8s.io/provisioning-request" })),
                named("own", json!({ "controllerName": "example.com/check" })),
            ]),
            objects("workloads.kueue.x-k8s.io", &[
                in_ml("plain", set(json!({ "topologyRequest": { "required": "rack" } }))),
                in_ml("partial", set(json!({ "minCount": 2 }))),
                in_ml("away", json!({ "status": { "clusterName": "west" } })),
                in_ml("past", json!({
                    "spec": { "podSets": [{ "minCount": 2 }] },
                    "status": { "conditions": [{ "type": "Finished", "status": "True" }] },
                })),
            ]),
            objects("jobs.batch", &[
                in_ml("plain", json!({})),
                in_ml("half", json!({ "spec": { "parallelism": 4 }, "status": { "ready": 3 } })),
                in_ml("whole", json!({ "spec": { "parallelism": 3 }, "status": { "ready": 3 } })),
                in_ml("sent", json!({ "spec": { "managedBy": "kueue.x-k8s.io/multikueue" } })),
                in_ml("elastic", json!({ "metadata": { "annotations": { "kueue.x-k8s.io/elastic-job": "true" } } })),
                in_ml("built", json!({ "metadata": { "labels": { "kueue.x-k8s.io/prebuilt-workload-name": "w" } } })),
            ]),
            objects("pods", &[
                in_ml("plain", json!({})),
                in_ml("managed", json!({ "metadata": { "labels": { "kueue.x-k8s.io/managed": "true" } } })),
                in_ml("domain", gated("kueue.x-k8s.io/topology")),
                in_ml("elastic", gated("kueue.x-k8s.io/elastic-job")),
            ]),
            objects("podgroups.scheduling.volcano.sh", &[
                in_ml("plain", json!({ "spec": { "minMember": 4 } })),
                in_ml("net", json!({ "spec": { "networkTopology": { "mode": "hard" } } })),
                in_ml("net-soft", json!({ "spec": { "networkTopology": { "mode": "soft" } } })),
                in_ml("sub", json!({ "spec": { "subGroupPolicy": [{ "name": "a" }] } })),
                in_ml("roles", json!({ "spec": { "minTaskMember": { "ps": 1 } } })),
            ]),
            objects("queues.scheduling.volcano.sh", &[
                named("default", json!({ "weight": 1, "guarantee": {}, "reclaimable": true })),
                named("share", json!({ "weight": 4 })),
            ]),
            objects("jobs.batch.volcano.sh", &[
                in_ml("v1", json!({})), in_ml("v2", json!({})), in_ml("v3", json!({})), in_ml("v4", json!({})),
                in_ml("done", json!({ "status": { "state": { "phase": "Completed" } } })),
            ]),
            objects("jobsets.jobset.x-k8s.io", &[in_ml("set", json!({}))]),
            ("multikueueclusters.kueue.x-k8s.io".to_owned(), Err("no conversion".to_owned())),
        ]
        .into(),
        ..Seen::default()
    };
    check(
        &seen,
        &expect![[r#"
            NOT SERVED YET                           INSTEAD                                                                            USED BY
            admission fair sharing                   weights are ignored                                                                ClusterQueue remembers
            concurrent admission                     flavors are tried one after the other                                              ClusterQueue tries
            checks of Kueue's own controllers        gangs wait for a check that nobody answers                                         AdmissionCheck provision
            MultiKueue                               not sent to another cluster                                                        Workload ml/away, Job ml/sent
            jobs that run in part                    taken back as a whole, unless whole soon or their queue's placement is QuotaOnly   Job ml/half
            elastic jobs                             not resized while they run                                                         Job ml/elastic
            prebuilt Workloads                       the Job gets a Workload of its own                                                 Job ml/built
            pods and pod groups of Kueue             running ones go on, gated ones wait for ever                                       Pod ml/managed
            gates of Kueue's topology                lifted under TopologyOnly; else the gang is taken back and starts anew             Pod ml/domain
            other scheduling gates                   the pod waits for ever                                                             Pod ml/elastic
            network topology                         refused, with that reason                                                          PodGroup ml/net
            sub-groups                               refused, with that reason                                                          PodGroup ml/sub
            shares of Volcano's queues               only capability, guarantee and priority count                                      Queue share
            kind jobs.batch.volcano.sh               kept as they are; nobody acts on them                                              jobs.batch.volcano.sh ml/v1, jobs.batch.volcano.sh ml/v2, jobs.batch.volcano.sh ml/v3 and 1 more
            kind jobsets.jobset.x-k8s.io             not admitted; what runs goes on                                                    jobsets.jobset.x-k8s.io ml/set
            kind multikueueclusters.kueue.x-k8s.io   not admitted; what runs goes on                                                    multikueueclusters.kueue.x-k8s.io (cannot be read: no conversion)

            Adoption is possible with --accept-unserved.
        "#]],
    );
    assert_eq!(verdict(&plan::plan(&seen).unwrap(), false), std::process::ExitCode::from(super::UNSERVED));
    assert_eq!(verdict(&plan::plan(&seen).unwrap(), true), std::process::ExitCode::SUCCESS);
}

#[test]
fn the_first_copy_of_an_object_is_the_one_that_counts() {
    let folder = tempfile::tempdir().unwrap();
    let folder = super::Folder::new(&folder.path().join("before"));
    folder.claim("here").unwrap();
    let pod =
        |spec: &str| json!({ "kind": "Pod", "metadata": { "namespace": "a", "name": "b" }, "spec": spec });
    folder.keep(&pod("before")).unwrap();
    folder.keep(&pod("after")).unwrap();
    assert_eq!(folder.objects().unwrap(), [pod("before")]);
    assert!(folder.claim("there").is_err() && folder.belongs_to("here").is_ok());
}
