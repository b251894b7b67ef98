//! Taking over from Kueue, as it leaves a real control plane when its manager is stopped.

use std::path::Path;
use std::process::{Command, Output};

use expect_test::expect;
use serde_json::{Value, json};

use crate::board::{name, text};
use crate::left;
use crate::plane::{Plane, pause};
use crate::product::{Product, SHORT};

fn adopt(plane: &Plane, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_soroi"))
        .arg("adopt")
        .arg("--kubeconfig")
        .arg(plane.kubeconfig())
        .args(arguments)
        .output()
        .unwrap()
}

/// What it says; it must end with this status.
fn adopts(plane: &Plane, status: i32, arguments: &[&str]) -> String {
    let output = adopt(plane, arguments);
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(status), "{said}{}", String::from_utf8_lossy(&output.stderr));
    said
}

fn get(plane: &Plane, kind: &str, name: &str) -> Value {
    serde_json::from_str(&plane.kubectl(&["get", kind, name, "-o", "json"])).unwrap()
}

fn patch(plane: &Plane, kind: &str, name: &str, more: &[&str], body: &Value) {
    let body = body.to_string();
    let patch = [&["patch", kind, name, "--type=merge", "-p", &body], more].concat();
    // The API server does not know a kind for the moment in which its definition is taken in anew.
    for _ in 0..40 {
        match plane.try_kubectl(&patch, None) {
            Ok(_) => return,
            Err(error) if error.contains("could not find the requested resource") => {
                pause(250);
            }
            Err(error) => panic!("{patch:?}: {error}"),
        }
    }
    panic!("{patch:?}: the kind is not served");
}

/// Definitions as Kueue's and Volcano's. `v1beta1` was stored once.
fn define(plane: &Plane) {
    for ours in soroi_api::crds::all() {
        let ours = serde_json::to_value(ours).unwrap();
        if ours["spec"]["group"] == "soroi.dev" {
            continue;
        }
        let theirs = left::definition(ours);
        plane.create(&theirs);
        let crd = name(&theirs);
        plane.kubectl(&["wait", "--for=condition=Established", "crd", crd, "--timeout=30s"]);
        if theirs["spec"]["group"] == "kueue.x-k8s.io" {
            let stored = json!({ "status": { "storedVersions": ["v1beta1", "v1beta2"] } });
            patch(plane, "crd", crd, &["--subresource=status"], &stored);
        }
    }
}

/// A Job that waits under Kueue; the name of its Workload.
fn queued(plane: &Plane, job: &Value) -> String {
    plane.create(job);
    let job = get(plane, "job", name(job));
    let workload = soroi_api::names::workload("Job", "batch", name(&job), text(&job["metadata"]["uid"]));
    plane.create(&left::workload(&job, &workload));
    patch(plane, "workload", &workload, &["--subresource=status"], &left::pending());
    plane.kubectl(&["wait", "--for=condition=Suspended", "job", name(&job), "--timeout=30s"]);
    workload
}

/// A Job that Kueue started.
fn started(plane: &Plane, job: &Value, queue: &str, flavor: &str, node: Option<&str>) {
    let workload = queued(plane, job);
    let status = left::admitted(2, queue, flavor, node);
    patch(plane, "workload", &workload, &["--subresource=status"], &status);
    let local = text(&job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]);
    patch(plane, "job", name(job), &[], &left::start(&workload, queue, local, node.is_some()));
    let pods = |wanted: fn(&Value) -> bool| {
        let pods = plane.list("pods");
        let own = |pod: &&Value| {
            pod["metadata"]["labels"]["batch.kubernetes.io/job-name"] == job["metadata"]["name"]
        };
        pods.iter().filter(own).filter(|pod| wanted(pod)).map(|pod| name(pod).to_owned()).collect::<Vec<_>>()
    };
    if let Some(node) = node {
        plane.wait(20, "the pods are made", || pods(|_| true).len() == 2);
        for pod in pods(|_| true) {
            patch(plane, "pod", &pod, &[], &left::ungate(node));
        }
    }
    plane.wait(30, "the pods run", || pods(|pod| pod["status"]["phase"] == "Running").len() == 2);
}

fn uids(plane: &Plane) -> Vec<String> {
    plane.list("pods").iter().map(|pod| text(&pod["metadata"]["uid"]).to_owned()).collect()
}

fn flag(folder: &Path) -> [&str; 2] {
    ["--save-to", folder.to_str().unwrap()]
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn jobs_of_kueue_go_on_and_waiting_ones_are_taken_up() {
    let plane = Plane::up("adopt");
    define(&plane);
    plane.apply(include_str!("queues.yaml"));
    started(&plane, &left::job("tas", "team-b", 2), "topology-queue", "topology-flavor", Some("worker1"));
    started(&plane, &left::job("quota", "team-a", 2), "gpu-queue", "default-flavor", None);
    queued(&plane, &left::job("next", "team-a", 2));
    let before = uids(&plane);
    for object in left::admission() {
        plane.create(&object);
    }
    plane.wait(20, "nobody can create a job any more", || {
        let probe = left::job("probe", "team-a", 1).to_string();
        plane.try_kubectl(&["create", "-f", "-", "--dry-run=server"], Some(&probe)).is_err()
    });

    let said = adopts(&plane, 0, &["--check"]);
    assert!(
        said.contains("v1beta1 waits for Soroi's webhooks") && said.ends_with("Adoption is possible.\n"),
        "{said}"
    );
    assert!(said.contains("objects stored anew as v1beta2: 3"), "{said}");
    let folder = plane.dir.join("before");
    adopts(&plane, 0, &flag(&folder));
    assert_eq!(adopts(&plane, 0, &["--check"]), "Nothing to take over.\n");
    let workloads = get(&plane, "crd", "workloads.kueue.x-k8s.io");
    assert_eq!(workloads["status"]["storedVersions"], json!(["v1beta2"]));
    // A job that is created now is suspended, although Soroi does not run yet.
    let mut early = left::job("early", "team-a", 1);
    early["spec"].as_object_mut().unwrap().remove("suspend");
    plane.create(&early);
    assert_eq!(get(&plane, "job", "early")["spec"]["suspend"], true);
    plane.kubectl(&["delete", "job", "early"]);

    // What stands there does not hinder an installation.
    let manifests = Command::new(env!("CARGO_BIN_EXE_soroi")).arg("manifests").output().unwrap();
    let manifests = String::from_utf8(manifests.stdout).unwrap();
    let apply = ["apply", "--server-side", "--force-conflicts", "--dry-run=server", "-f", "-"];
    plane.try_kubectl(&apply, Some(&manifests)).unwrap_or_else(|error| panic!("{error}"));

    let product = Product::start(&plane, "soroi", SHORT);
    plane.see(30, &expect![[r#"
        pod       quota        worker2      Running      default-scheduler
        pod       quota        worker2      Running      default-scheduler
        pod       tas          worker1      Running      default-scheduler
        pod       tas          worker1      Running      default-scheduler
        job       next         suspended    active 0 succeeded 0
        job       quota        released     active 2 succeeded 0
        job       tas          released     active 2 succeeded 0
        workload  job-next     couldn't assign flavors to pod set main: nodes of flavor default-flavor don't allow to fit any of 2 pod(s): 0/3 nodes are available: 3 Insufficient example.com/gpu
        workload  job-quota    QuotaReserved Admitted
        workload  job-tas      QuotaReserved Admitted
        plan      job-quota    Settled      2 pods
        plan      job-tas      Settled      2 pods
        queue     gpu-queue    pending 1 admitted 1 gpu 2
        queue     topology-queue pending 0 admitted 1 gpu 2
    "#]]);
    plane.stays(10);
    assert_eq!(uids(&plane), before, "a pod was restarted");
    plane.kubectl(&["delete", "job", "quota"]);
    plane.see(
        60,
        &expect![[r#"
        pod       next         worker2      Running      soroi
        pod       next         worker2      Running      soroi
        pod       tas          worker1      Running      default-scheduler
        pod       tas          worker1      Running      default-scheduler
        job       next         released     active 2 succeeded 0
        job       tas          released     active 2 succeeded 0
        workload  job-next     QuotaReserved Admitted
        workload  job-tas      QuotaReserved Admitted
        plan      job-next     Settled      2 pods
        plan      job-tas      Settled      2 pods
        queue     gpu-queue    pending 0 admitted 1 gpu 2
        queue     topology-queue pending 0 admitted 1 gpu 2
    "#]],
    );

    let refused = adopt(&plane, &[&["--undo"][..], &flag(&folder)].concat());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("Soroi is live"));
    let before = uids(&plane);
    product.terminate();
    pause(2_500);
    let said = adopts(&plane, 0, &[&["--undo"][..], &flag(&folder)].concat());
    assert!(said.contains("CustomResourceDefinition workloads.kueue.x-k8s.io restored"), "{said}");
    assert_eq!(plane.list("gangplans"), Vec::<Value>::new());
    let workloads = get(&plane, "crd", "workloads.kueue.x-k8s.io");
    assert_eq!(workloads["spec"]["conversion"]["strategy"], "Webhook");
    let webhooks = plane.list("mutatingwebhookconfigurations,validatingwebhookconfigurations");
    let mut names: Vec<&str> = webhooks.iter().map(name).collect();
    names.sort_unstable();
    let left = left::admission();
    let mut expected: Vec<&str> = left.iter().take(3).map(name).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    assert_eq!(uids(&plane), before, "a pod was restarted");
}
