//! The Helm chart makes the same objects as `soroi manifests`. helm itself is a pinned Go tool, built by
//! Go when it is first used.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).canonicalize().unwrap()
}

/// What helm prints, or what it complains of.
fn helm(arguments: &[&str]) -> Result<String, String> {
    let output = Command::new("go")
        .args(["tool", "helm"])
        .args(arguments)
        .current_dir(root().join("kubernetes/helm"))
        .output()
        .expect("Go is there: the control plane was built by it");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn rendered(values: &[&str]) -> Result<String, String> {
    let chart = root().join("deploy/helm/soroi");
    let mut arguments = vec!["template", "soroi", chart.to_str().unwrap()];
    arguments.extend(["--namespace", "batch", "--kube-version", "1.36.1"]);
    arguments.extend(values.iter().flat_map(|value| ["--set", value]));
    helm(&arguments)
}

fn printed(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_soroi"))
        .args(["manifests", "--namespace", "batch"])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Objects by kind and name. Helm makes the namespace itself, and is told to keep definitions.
fn objects(stream: &str) -> BTreeMap<(String, String), Value> {
    let objects: Vec<Value> = serde_saphyr::from_multiple(stream).unwrap();
    let mut found = BTreeMap::new();
    for mut object in objects.into_iter().filter(|object| object["kind"] != "Namespace") {
        let metadata = object["metadata"].as_object_mut().unwrap();
        let kept = metadata.get_mut("annotations").and_then(Value::as_object_mut);
        if let Some(annotations) = kept {
            annotations.remove("helm.sh/resource-policy");
            if annotations.is_empty() {
                metadata.remove("annotations");
            }
        }
        let place = (object["kind"].to_string(), object["metadata"]["name"].to_string());
        assert!(found.insert(place, object).is_none(), "each of them once");
    }
    found
}

#[test]
#[ignore = "needs Go: cargo xtask test --real"]
fn the_chart_makes_the_same_objects() {
    let config = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("chart.yaml");
    let head = "apiVersion: soroi.dev/v1alpha1\nkind: Configuration\n";
    std::fs::write(&config, format!("{head}placement: QuotaOnly\ntimeouts: {{start: 2m}}\n")).unwrap();
    let config = config.to_str().unwrap();
    for (values, arguments) in [
        (&["replicas=2"][..], &[][..]),
        (
            &["defaults=webhooks", "replicas=3", "image=registry.local/soroi:1"],
            &["--defaults", "webhooks", "--replicas", "3", "--image", "registry.local/soroi:1"],
        ),
        (&["configuration.placement=QuotaOnly", "configuration.timeouts.start=2m"], &["--config", config]),
    ] {
        let (ours, helms) = (objects(&printed(arguments)), objects(&rendered(values).unwrap()));
        let names = |objects: &BTreeMap<_, _>| objects.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&helms), names(&ours), "{values:?}");
        for (place, object) in &ours {
            assert_eq!(&helms[place], object, "{values:?} {place:?}");
        }
    }
    // What only Helm's users set.
    let values = [
        "resources.limits.memory=2Gi",
        "nodeSelector.pool=system",
        "tolerations[0].operator=Exists",
        "imagePullSecrets[0].name=registry",
    ];
    let deployment = ("\"Deployment\"".to_owned(), "\"soroi\"".to_owned());
    let pod = objects(&rendered(&values).unwrap())[&deployment]["spec"]["template"]["spec"].clone();
    assert_eq!(pod["containers"][0]["resources"]["limits"]["memory"], "2Gi");
    assert_eq!(pod["containers"][0]["resources"]["requests"]["cpu"], "250m");
    assert_eq!(pod["nodeSelector"]["pool"], "system");
    assert_eq!(pod["tolerations"][0]["operator"], "Exists");
    assert_eq!(pod["imagePullSecrets"][0]["name"], "registry");
    let kinds = |stream: &str| objects(stream).into_keys().map(|(kind, _)| kind).collect::<Vec<_>>();
    assert!(!kinds(&rendered(&["crds=false"]).unwrap()).contains(&"\"CustomResourceDefinition\"".to_owned()));
}

#[test]
#[ignore = "needs Go: cargo xtask test --real"]
fn values_that_mean_nothing_are_refused() {
    for (value, words) in [
        ("replica=3", "replica"),
        ("replicas=0", "replicas"),
        ("defaults=magic", "defaults"),
        ("configuration.http.bindAddress=x", "configuration.http: follows from the chart"),
    ] {
        let said = rendered(&[value]).expect_err(value);
        assert!(said.contains(words), "{value}: {said}");
    }
    let chart = root().join("deploy/helm/soroi");
    helm(&["lint", "--strict", chart.to_str().unwrap()]).unwrap();
}
