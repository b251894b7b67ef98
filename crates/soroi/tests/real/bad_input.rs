//! Objects that nobody should write, one after the other, on a real API server. Each is refused with
//! the field's name or says what is wrong; nobody else suffers.

use serde_json::{Value, json};

use crate::board::{holds, name, text};
use crate::plane::{Plane, job};
use crate::product::{Product, SHORT};

/// A Job with a change, and what becomes of it.
fn jobs() -> Vec<(&'static str, Value)> {
    let changed = |name: &str, queue: &str, pods: u32, change: fn(&mut Value)| {
        let mut job = job(name, queue, pods, "1h");
        change(&mut job);
        job
    };
    let same = |_: &mut Value| {};
    vec![
        ("refused: example.com/gpu", changed("fraction", "team-a", 1, |job| *gpus(job) = "1500m".into())),
        ("refused: quantities must match", changed("word", "team-a", 1, |job| *gpus(job) = "one".into())),
        ("refused: metadata.labels", changed("odd", "a/b", 1, same)),
        (
            "refused: metadata.annotations: Too long",
            changed("mega", "team-a", 1, |job| {
                job["metadata"]["annotations"] = json!({ "note": "x".repeat(1_000_000) });
            }),
        ),
        ("waits: LocalQueue nothing doesn't exist", changed("no-queue", "nothing", 1, same)),
        ("waits: LocalQueue elsewhere doesn't exist", changed("far", "elsewhere", 1, same)),
        ("waits: ClusterQueue nothing doesn't exist", changed("dangling", "dangling", 1, same)),
        ("waits: > maximum capacity (4)", changed("large", "team-a", 1, |job| *gpus(job) = "9".into())),
        (
            "waits: Insufficient example.com/gpu",
            changed("too-large", "endless", 1, |job| *gpus(job) = "9".into()),
        ),
        (
            "waits: Insufficient example.com/gpu",
            changed("absurd", "endless", 1, |job| {
                *gpus(job) = i64::MAX.to_string().into();
            }),
        ),
        (
            "waits: 2147483647 pods are more than",
            changed("many", "endless", 2_147_483_647, |job| {
                *limits(job) = json!({});
            }),
        ),
        (
            "waits: does not contain the requested level",
            changed("level", "team-b", 1, |job| {
                let level = json!({ "kueue.x-k8s.io/podset-required-topology": "no/such" });
                job["spec"]["template"]["metadata"]["annotations"] = level;
            }),
        ),
        (
            "waits: pods name the scheduler ü",
            changed("scheduler", "team-a", 1, |job| {
                job["spec"]["template"]["spec"]["schedulerName"] = "ü".into();
            }),
        ),
        (
            "runs",
            changed("full", "team-a", 1, |job| {
                *limits(job) = json!({});
                let note = json!({ "note": "x".repeat(262_000) });
                job["spec"]["template"]["metadata"]["annotations"] = note;
            }),
        ),
    ]
}

fn limits(job: &mut Value) -> &mut Value {
    &mut job["spec"]["template"]["spec"]["containers"][0]["resources"]["limits"]
}

fn gpus(job: &mut Value) -> &mut Value {
    &mut limits(job)["example.com/gpu"]
}

/// What a condition of this kind that is False says about an object.
fn why(plane: &Plane, kind: &str, of: &str, condition: &str) -> Option<String> {
    let objects = plane.list(kind);
    let found = objects.iter().find(|one| name(one) == of || name(one).starts_with(&format!("job-{of}-")))?;
    let conditions = found["status"]["conditions"].as_array()?;
    let no = conditions.iter().find(|one| one["type"] == condition && one["status"] == "False")?;
    Some(text(&no["message"]).to_owned())
}

/// Creates an object and waits for what must become of it.
fn try_one(plane: &Plane, expected: &str, object: &str) {
    let created = plane.try_kubectl(&["create", "-f", "-", "-o", "json"], Some(object));
    let (what, words) = expected.split_once(": ").unwrap_or((expected, ""));
    let created: Value = match (created, what) {
        (Err(error), "refused") => return assert!(error.contains(words), "{expected}: {error}"),
        (Err(error), _) => panic!("{expected}: {error}"),
        (Ok(created), "refused") => panic!("{expected}: {created}"),
        (Ok(created), _) => serde_json::from_str(&created).unwrap(),
    };
    let of = name(&created);
    let kind = text(&created["kind"]);
    let told = |kind: &str, condition: &str| {
        let mut said = None;
        plane.wait(20, &format!("{of}: {expected}"), || {
            said = why(plane, kind, of, condition);
            said.as_ref().is_some_and(|said| said.contains(words))
        });
    };
    match what {
        "waits" => told("workloads", "QuotaReserved"),
        "inactive" => told(kind, "Active"),
        "runs" => {
            plane.kubectl(&["wait", "--for=jsonpath={.status.ready}=1", "job", of, "--timeout=20s"]);
        }
        _ => {}
    }
}

#[test]
#[ignore = "needs a real control plane: cargo xtask test --real"]
fn what_nobody_should_write_stops_nobody_else() {
    let plane = Plane::up("bad-input");
    let product = Product::start(&plane, "soroi", SHORT);
    plane.apply(include_str!("queues.yaml"));
    for object in include_str!("bad_input.yaml").split("---\n") {
        let expected = object.lines().next().unwrap().trim_start_matches("# ");
        try_one(&plane, expected, object);
    }
    for (expected, job) in jobs() {
        try_one(&plane, expected, &job.to_string());
    }
    let fine = |gang: &str| {
        plane.create(&job(gang, "team-a", 2, "1h"));
        plane.wait(20, "a good gang runs", || {
            plane.list("jobs").iter().any(|job| name(job) == gang && job["status"]["ready"] == 2)
        });
    };
    fine("fine");
    // Who starts meets all of it at once.
    product.kill();
    let product = Product::start(&plane, "soroi", SHORT);
    fine("fine-too");
    let admitted = plane.list("workloads").iter().filter(|one| holds(one, "Admitted")).count();
    assert_eq!(admitted, 3);
    assert!(!product.said().contains("panicked"), "see {}", product.log.display());
}
