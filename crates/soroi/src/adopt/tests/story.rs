//! Jobs that Kueue and Volcano started go on under Soroi, and those that wait are taken up.
//!
//! The embedded API server calls no webhooks and aggregates no APIs; their objects are kept there by
//! definitions of the test's own. What a real one does is told by `tests/real/adopt.rs`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser as _;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_control::Config;
use soroi_embedded::{Embedded, Options};
use soroi_testkit::wire::{Trouble, Wire};
use tokio::task::JoinSet;

use super::left;
use crate::adopt::carry::{delete, merge, put};
use crate::adopt::look::{DEFINITIONS, items};
use crate::adopt::object::{holds, name, text};
use crate::run::apply::get;
use crate::run::config::Configuration;
use crate::run::install;

const WORKLOADS: &str = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads";
const JOBS: &str = "/apis/batch/v1/namespaces/default/jobs";
const PODS: &str = "/api/v1/namespaces/default/pods";
const GROUPS: &str = "/apis/scheduling.volcano.sh/v1beta1/namespaces/default/podgroups";
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";
const AGGREGATION: &str = "/apis/apiregistration.k8s.io/v1";

struct Story {
    client: kube::Client,
    clock: Clock,
    embedded: Embedded,
    parts: JoinSet<()>,
    product: JoinSet<()>,
}

fn play<F: Future<Output = ()>>(story: impl FnOnce(Story) -> F) {
    let runtime = soroi_clock::simulated_runtime().unwrap();
    runtime.block_on(async {
        let clock = Clock::simulated("2026-01-01T00:00:00Z".parse().unwrap());
        let embedded = Embedded::new(clock.clone(), Options::default());
        let mut parts = JoinSet::new();
        parts.spawn(embedded.run_cluster());
        let client = embedded.client();
        let played = Story { client, clock, embedded, parts, product: JoinSet::new() };
        played.set_up().await;
        story(played).await;
    });
}

impl Story {
    /// Two nodes, queues, definitions and admission as Kueue and Volcano leave them.
    async fn set_up(&self) {
        for ours in soroi_api::crds::all() {
            let ours = serde_json::to_value(ours).unwrap();
            let path = format!("{DEFINITIONS}/{}", name(&ours));
            if text(&ours, "/spec/group") == "soroi.dev" {
                delete(&self.client, &path).await.unwrap();
                continue;
            }
            let there: Value = get(&self.client, &path).await.unwrap().unwrap();
            let mut theirs = left::definition(ours);
            theirs["metadata"]["resourceVersion"] = there["metadata"]["resourceVersion"].clone();
            put(&self.client, &path, &theirs).await.unwrap();
        }
        for (group, kind) in [
            ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"),
            ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"),
            ("apiregistration.k8s.io", "APIService"),
        ] {
            self.create(DEFINITIONS, &kept(group, kind)).await;
        }
        for object in left::admission() {
            let base = if object["kind"] == "APIService" { AGGREGATION } else { REGISTRATION };
            self.create(&format!("{base}/{}s", text(&object, "/kind").to_lowercase()), &object).await;
        }
        let hands = soroi_testkit::api::Hands::new(self.client.clone());
        for manifest in
            [include_str!("../../../tests/real/nodes.yaml"), include_str!("../../../tests/real/queues.yaml")]
        {
            let objects: Vec<Value> = serde_saphyr::from_multiple(manifest).unwrap();
            for object in &objects {
                hands.apply(object).await.unwrap();
            }
        }
        self.wait(5).await;
    }

    async fn create(&self, collection: &str, object: &Value) -> Value {
        let request = http::Request::post(collection).header("content-type", "application/json");
        self.client.request(request.body(object.to_string().into_bytes()).unwrap()).await.unwrap()
    }

    async fn wait(&self, seconds: u64) {
        self.clock.sleep(Duration::from_secs(seconds)).await;
    }

    /// Starts Soroi, as `soroi run` does.
    async fn start(&mut self) {
        install::install(&self.client, &self.clock, &Configuration::default()).await.unwrap();
        let run = soroi_control::run(self.embedded.client(), self.clock.clone(), Config::default());
        self.product.spawn(async move { run.await.unwrap() });
    }

    async fn adopt(&self, arguments: &[&str]) -> (ExitCode, String) {
        self.adopt_over(&self.client, arguments).await
    }

    async fn adopt_over(&self, client: &kube::Client, arguments: &[&str]) -> (ExitCode, String) {
        let args = crate::Args::parse_from([&["soroi", "adopt"], arguments].concat());
        let crate::Command::Adopt(args) = args.command else { panic!("another command") };
        let mut out = Vec::new();
        let code = crate::adopt::run_on(client, &self.clock, &args, &mut out).await.unwrap();
        (code, String::from_utf8(out).unwrap())
    }

    /// A Job that waits under Kueue; the name of its Workload.
    async fn queued(&self, job: &Value) -> String {
        let job = self.create(JOBS, job).await;
        let workload = soroi_api::names::workload("Job", "batch", name(&job), text(&job, "/metadata/uid"));
        self.create(WORKLOADS, &left::workload(&job, &workload)).await;
        merge(&self.client, &format!("{WORKLOADS}/{workload}/status"), &left::pending()).await.unwrap();
        self.wait(1).await;
        workload
    }

    /// A Job that Kueue started, with its pods on this node if it chose one.
    async fn started(&self, job: &Value, queue: &str, flavor: &str, node: Option<&str>) {
        let workload = self.queued(job).await;
        let pods = u32::try_from(job["spec"]["parallelism"].as_u64().unwrap()).unwrap();
        let status = left::admitted(pods, queue, flavor, node);
        merge(&self.client, &format!("{WORKLOADS}/{workload}/status"), &status).await.unwrap();
        let local = text(job, "/metadata/labels/kueue.x-k8s.io~1queue-name");
        let start = left::start(&workload, queue, local, node.is_some());
        merge(&self.client, &format!("{JOBS}/{}", name(job)), &start).await.unwrap();
        self.wait(2).await;
        let waiting = items(&self.client, PODS, "").await.unwrap();
        let waiting = waiting.iter().filter(|pod| !pod["spec"]["schedulingGates"].is_null());
        for pod in waiting {
            let ungate = left::ungate(node.unwrap());
            merge(&self.client, &format!("{PODS}/{}", name(pod)), &ungate).await.unwrap();
        }
        self.wait(10).await;
    }

    /// Everything that an adoption may change, without what a server counts by itself.
    async fn contents(&self) -> Vec<Value> {
        let mut contents = Vec::new();
        for (base, plural) in [
            (REGISTRATION, "mutatingwebhookconfigurations"),
            (REGISTRATION, "validatingwebhookconfigurations"),
            (AGGREGATION, "apiservices"),
            ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions"),
            ("/api/v1", "pods"),
        ] {
            for mut object in items(&self.client, &format!("{base}/{plural}"), "").await.unwrap() {
                if text(&object, "/spec/group") == "soroi.dev" {
                    continue;
                }
                let meta = &object["metadata"];
                object["metadata"] = json!({
                    "name": meta["name"], "annotations": meta["annotations"], "finalizers": meta["finalizers"],
                });
                object["status"].take();
                contents.push(object);
            }
        }
        contents
    }

    /// The uids of all pods.
    async fn uids(&self) -> Vec<String> {
        let pods = items(&self.client, PODS, "").await.unwrap();
        pods.iter().map(|pod| text(pod, "/metadata/uid").to_owned()).collect()
    }

    async fn see(&self, expected: &Expect) {
        expected.assert_eq(&self.board().await);
    }

    async fn board(&self) -> String {
        let mut board = String::new();
        let mut pods: BTreeMap<String, u32> = BTreeMap::new();
        for pod in items(&self.client, PODS, "").await.unwrap() {
            let job = text(&pod, "/metadata/labels/batch.kubernetes.io~1job-name").to_owned();
            let node = text(&pod, "/spec/nodeName");
            let row =
                format!("{job} {node} {} {}", text(&pod, "/status/phase"), text(&pod, "/spec/schedulerName"));
            *pods.entry(row).or_default() += 1;
        }
        for (row, count) in pods {
            let _ = writeln!(board, "pods {count} {row}");
        }
        for workload in items(&self.client, WORKLOADS, "").await.unwrap() {
            let kinds = ["QuotaReserved", "Admitted", "Evicted", "Finished"];
            let held: Vec<&str> = kinds.into_iter().filter(|kind| holds(&workload, kind)).collect();
            let shown = base(name(&workload));
            let _ = writeln!(board, "workload {shown} {}", held.join(" "));
        }
        for plan in items(&self.client, "/apis/soroi.dev/v1alpha1/gangplans", "").await.unwrap() {
            let gang = base(text(&plan, "/spec/gang/name"));
            let _ = writeln!(board, "plan {gang} {}", text(&plan, "/status/phase"));
        }
        for queue in items(&self.client, "/apis/kueue.x-k8s.io/v1beta2/clusterqueues", "").await.unwrap() {
            let resources = queue["status"]["flavorsReservation"][0]["resources"].as_array().cloned();
            let resources = resources.unwrap_or_default();
            let gpus = resources.iter().find(|one| one["name"] == "example.com/gpu");
            let gpus = gpus.map_or("-", |one| text(one, "/total"));
            let _ = writeln!(
                board,
                "queue {} gpu {gpus} pending {}",
                name(&queue),
                queue["status"]["pendingWorkloads"]
            );
        }
        board
    }
}

/// The name of a Workload without its hash.
fn base(name: &str) -> &str {
    name.rsplit_once('-').map_or(name, |(base, _)| base)
}

/// A definition that keeps objects of a kind as they are.
fn kept(group: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": { "name": format!("{plural}.{group}") },
        "spec": {
            "group": group, "scope": "Cluster", "names": { "kind": kind, "plural": plural },
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": { "openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    })
}

fn flag(folder: &Path) -> [&str; 2] {
    ["--save-to", folder.to_str().unwrap()]
}

#[test]
fn jobs_of_kueue_go_on_and_waiting_ones_are_taken_up() {
    play(async |mut story| {
        story.started(&left::job("quota", "team-a", 2), "gpu-queue", "default-flavor", None).await;
        story
            .started(&left::job("tas", "team-b", 2), "topology-queue", "topology-flavor", Some("worker2"))
            .await;
        story.queued(&left::job("next", "team-a", 2)).await;
        story
            .see(&expect![[r#"
                pods 2 quota worker1 Running default-scheduler
                pods 2 tas worker2 Running default-scheduler
                workload job-next 
                workload job-quota QuotaReserved Admitted
                workload job-tas QuotaReserved Admitted
                queue gpu-queue gpu - pending null
                queue topology-queue gpu - pending null
            "#]])
            .await;
        let before = story.uids().await;

        let folder = tempfile::tempdir().unwrap();
        let (code, said) = story.adopt(&[&flag(folder.path())[..], &["--accept-unserved"]].concat()).await;
        assert_eq!(code, ExitCode::SUCCESS, "{said}");
        expect![[r#"
            STEP   OBJECT                                                                        CHANGE
            1      MutatingWebhookConfiguration kueue-mutating-webhook-configuration             removed: it calls Kueue at kueue-system/kueue-webhook-service
            2      ValidatingWebhookConfiguration kueue-validating-webhook-configuration         removed: it calls Kueue at kueue-system/kueue-webhook-service
            3      ValidatingWebhookConfiguration volcano-admission-service-podgroups-validate   removed: it calls Volcano at volcano-system/volcano-admission-service
            4      APIService v1beta2.visibility.kueue.x-k8s.io                                  removed: its API was served by Kueue's manager
            5      admissionchecks.kueue.x-k8s.io                                                replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            6      clusterqueues.kueue.x-k8s.io                                                  replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            7      cohorts.kueue.x-k8s.io                                                        replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            8      localqueues.kueue.x-k8s.io                                                    replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            9      podgroups.scheduling.volcano.sh                                               replaced by Soroi's, which serves v1beta1
            10     queues.scheduling.volcano.sh                                                  replaced by Soroi's, which serves v1beta1
            11     resourceflavors.kueue.x-k8s.io                                                replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            12     topologies.kueue.x-k8s.io                                                     replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            13     workloadpriorityclasses.kueue.x-k8s.io                                        replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook
            14     workloads.kueue.x-k8s.io                                                      replaced by Soroi's, which serves v1beta2; v1beta1 waits for Soroi's webhooks; no conversion webhook

            Adoption is possible.
            Done. What was there before is in FOLDER. Start Soroi now (`soroi run`, or what `soroi manifests` prints).
        "#]].assert_eq(&said.replace(folder.path().to_str().unwrap(), "FOLDER"));
        let (code, said) = story.adopt(&["--check"]).await;
        assert_eq!((code, &*said), (ExitCode::SUCCESS, "Nothing to take over.\n"));

        story.start().await;
        story.wait(300).await;
        assert_eq!(story.uids().await, before, "a pod was restarted");
        story
            .see(&expect![[r#"
                pods 2 quota worker1 Running default-scheduler
                pods 2 tas worker2 Running default-scheduler
                workload job-next 
                workload job-quota QuotaReserved Admitted
                workload job-tas QuotaReserved Admitted
                plan job-tas Settled
                plan job-quota Settled
                queue gpu-queue gpu 2 pending 1
                queue topology-queue gpu 2 pending 0
            "#]])
            .await;

        delete(&story.client, &format!("{JOBS}/quota?propagationPolicy=Background")).await.unwrap();
        story.wait(30).await;
        story
            .see(&expect![[r#"
                pods 2 next worker1 Running soroi
                pods 2 tas worker2 Running default-scheduler
                workload job-next QuotaReserved Admitted
                workload job-tas QuotaReserved Admitted
                plan job-tas Settled
                plan job-next Settled
                queue gpu-queue gpu 2 pending 0
                queue topology-queue gpu 2 pending 0
            "#]])
            .await;
        // A lost pod's replacement has the gate of Kueue's topology: the Job starts anew as a whole.
        let pods = items(&story.client, PODS, "labelSelector=job-name%3Dtas").await.unwrap();
        delete(&story.client, &format!("{PODS}/{}", name(&pods[0]))).await.unwrap();
        story.wait(300).await;
        story
            .see(&expect![[r#"
                pods 2 next worker1 Running soroi
                pods 2 tas worker2 Running soroi
                workload job-next QuotaReserved Admitted
                workload job-tas QuotaReserved Admitted
                plan job-tas Settled
                plan job-next Settled
                queue gpu-queue gpu 2 pending 0
                queue topology-queue gpu 2 pending 0
            "#]])
            .await;
        assert!(story.parts.try_join_next().is_none() && story.product.try_join_next().is_none());
    });
}

#[test]
fn a_job_that_runs_in_part_goes_on_under_quota_only() {
    play(async |mut story| {
        story.create(PODS, &hog()).await;
        story.started(&left::job("train", "team-a", 4), "gpu-queue", "default-flavor", None).await;
        let before = story.uids().await;
        let (_, said) = story.adopt(&["--check"]).await;
        assert!(said.contains("Job default/train"), "{said}");
        let policy = json!({ "metadata": { "annotations": { "soroi.dev/placement": "QuotaOnly" } } });
        merge(&story.client, QUEUE, &policy).await.unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (code, said) = story.adopt(&[&flag(folder.path())[..], &["--accept-unserved"]].concat()).await;
        assert_eq!(code, ExitCode::SUCCESS, "{said}");
        story.start().await;
        story.wait(300).await;
        assert_eq!(story.uids().await, before, "a pod was restarted");
        delete(&story.client, &format!("{PODS}/hog?gracePeriodSeconds=0")).await.unwrap();
        story.wait(60).await;
        story
            .see(&expect![[r#"
            pods 2 train worker1 Running default-scheduler
            pods 2 train worker2 Running default-scheduler
            workload job-train QuotaReserved Admitted
            queue gpu-queue gpu 4 pending 0
            queue topology-queue gpu 0 pending 0
        "#]])
            .await;
    });
}

const QUEUE: &str = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues/gpu-queue";

fn hog() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "hog", "namespace": "default" },
        "spec": { "nodeName": "worker1", "containers": [{
            "name": "main", "image": "hog", "resources": { "limits": { "example.com/gpu": "1" } },
        }] },
    })
}

/// Kueue admitted both; Volcano bound the first.
#[test]
fn groups_of_volcano_go_on_and_waiting_ones_are_bound() {
    play(async |mut story| {
        for (job, bound) in [("train", true), ("next", false)] {
            let group = json!({
                "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
                "metadata": { "name": job, "namespace": "default" },
                "spec": { "minMember": 2, "queue": "default" },
                "status": if bound { json!({ "phase": "Running", "running": 2 }) } else { json!({ "phase": "Inqueue" }) },
            });
            story.create(GROUPS, &group).await;
            let mut job = left::job(job, "team-a", 2);
            let template = &mut job["spec"]["template"];
            template["metadata"]["annotations"]["scheduling.k8s.io/group-name"] =
                group["metadata"]["name"].clone();
            template["spec"]["schedulerName"] = "volcano".into();
            story.started(&job, "gpu-queue", "default-flavor", None).await;
            if bound {
                for pod in items(&story.client, PODS, "").await.unwrap() {
                    let binding = json!({
                        "apiVersion": "v1", "kind": "Binding", "metadata": { "name": name(&pod) },
                        "target": { "apiVersion": "v1", "kind": "Node", "name": "worker2" },
                    });
                    story.create(&format!("{PODS}/{}/binding", name(&pod)), &binding).await;
                }
            }
        }
        story.wait(5).await;
        story
            .see(&expect![[r#"
            pods 2 next  Pending volcano
            pods 2 train worker2 Running volcano
            workload job-next QuotaReserved Admitted
            workload job-train QuotaReserved Admitted
            queue gpu-queue gpu - pending null
            queue topology-queue gpu - pending null
        "#]])
            .await;
        let before = story.uids().await;
        let folder = tempfile::tempdir().unwrap();
        let (code, said) = story.adopt(&flag(folder.path())).await;
        assert_eq!(code, ExitCode::SUCCESS, "{said}");
        story.start().await;
        story.wait(300).await;
        assert_eq!(story.uids().await, before, "a pod was restarted");
        story
            .see(&expect![[r#"
                pods 2 next worker1 Running volcano
                pods 2 train worker2 Running volcano
                workload job-next QuotaReserved Admitted
                workload job-train QuotaReserved Admitted
                plan next Settled
                plan train Settled
                queue gpu-queue gpu 4 pending 0
                queue topology-queue gpu 0 pending 0
            "#]])
            .await;
    });
}

#[test]
fn an_adoption_can_be_undone() {
    play(async |story| {
        let mut alone = hog();
        alone["metadata"]["finalizers"] = json!(["example.com/other", "kueue.x-k8s.io/managed"]);
        alone["metadata"]["labels"] = json!({ "kueue.x-k8s.io/managed": "true" });
        story.create(PODS, &alone).await;
        story.wait(5).await;
        let before = story.contents().await;
        let (_, planned) = story.adopt(&["--check", "--output", "json"]).await;
        let folder = tempfile::tempdir().unwrap();
        let (code, said) = story.adopt(&flag(folder.path())).await;
        assert_eq!(
            (code, story.contents().await),
            (ExitCode::from(super::super::UNSERVED), before.clone()),
            "{said}"
        );
        let accept = [&flag(folder.path())[..], &["--accept-unserved"]].concat();
        story.adopt(&accept).await;
        let after = story.contents().await;
        assert!(
            after != before && !after.iter().any(|one| one.to_string().contains("kueue.x-k8s.io/managed\"]"))
        );
        let (code, said) = story.adopt(&[&["--undo"][..], &flag(folder.path())].concat()).await;
        assert_eq!(code, ExitCode::SUCCESS);
        assert_eq!(said.lines().count(), 10 + 1 + 4 + 1, "{said}");
        assert_eq!(story.contents().await, before);
        let (_, again) = story.adopt(&["--check", "--output", "json"]).await;
        assert_eq!(again, planned);
    });
}

/// Whatever it had done by then: the same again ends as if there had been no crash, and what was
/// there before is still known.
#[test]
fn an_adoption_is_repeated_after_a_crash() {
    for crash in [2, 6, 13, 20] {
        play(async |story| {
            let before = story.contents().await;
            let folder = tempfile::tempdir().unwrap();
            let wire = Wire::new(story.clock.clone(), Trouble::CrashAfterWrite(crash));
            let broken = wire.client(story.embedded.service());
            let arguments = flag(folder.path());
            tokio::select! {
                biased;
                () = wire.crash() => {}
                (_, said) = story.adopt_over(&broken, &arguments) => panic!("no crash: {said}"),
            }
            let (code, said) = story.adopt(&flag(folder.path())).await;
            assert_eq!(code, ExitCode::SUCCESS, "{said}");
            let (_, said) = story.adopt(&["--check"]).await;
            assert_eq!(said, "Nothing to take over.\n", "after {crash} writes");
            story.adopt(&[&["--undo"][..], &flag(folder.path())].concat()).await;
            assert_eq!(story.contents().await, before, "after {crash} writes");
        });
    }
}

#[test]
fn nothing_is_changed_beside_a_living_manager_or_in_a_folder_of_another_cluster() {
    play(async |story| {
        let before = story.contents().await;
        let folder = tempfile::tempdir().unwrap();
        let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": { "name": "volcano" },
            "spec": {
                "holderIdentity": "a", "leaseDurationSeconds": 15,
                "renewTime": story.clock.now().strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string(),
            },
        });
        story.create(leases, &lease).await;
        let (code, said) = story.adopt(&flag(folder.path())).await;
        assert_eq!(code, ExitCode::FAILURE);
        assert!(said.contains("Volcano's scheduler is live: it holds the lease default/volcano"), "{said}");
        story.wait(60).await;
        std::fs::write(folder.path().join("cluster"), "another").unwrap();
        let args = crate::Args::parse_from([&["soroi", "adopt"][..], &flag(folder.path())].concat());
        let crate::Command::Adopt(args) = args.command else { panic!("another command") };
        let refused = crate::adopt::run_on(&story.client, &story.clock, &args, &mut Vec::new()).await;
        let refused = refused.unwrap_err().to_string();
        assert!(refused.contains("was saved from another cluster"), "{refused}");
        assert_eq!(story.contents().await, before);
    });
}
