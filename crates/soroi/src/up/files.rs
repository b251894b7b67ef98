//! Manifests that a cluster begins with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Context as _;
use http::Request;
use serde_json::Value;

/// An object of a file.
pub(super) struct Manifest {
    file: PathBuf,
    pub(super) object: Value,
}

/// Reads the objects of files, in order; those of a `List` one by one.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Vec<Manifest>> {
    let mut objects = Vec::new();
    for path in paths {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let documents: Vec<Value> =
            serde_saphyr::from_multiple(&text).with_context(|| format!("{}", path.display()))?;
        let manifest = |object| Manifest { file: path.clone(), object };
        for document in documents.into_iter().filter(|document| !document.is_null()) {
            match &document["items"] {
                Value::Array(items) if document["kind"] == "List" => {
                    objects.extend(items.iter().cloned().map(manifest));
                }
                _ => objects.push(manifest(document)),
            }
        }
    }
    Ok(objects)
}

/// Creates the objects; those that are there already are changed to say the same.
pub(super) async fn load(client: &kube::Client, manifests: Vec<Manifest>) -> anyhow::Result<()> {
    let mut served = BTreeMap::new();
    for Manifest { file, object } in manifests {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (version, kind, name) =
            (text(&object["apiVersion"]), text(&object["kind"]), text(&object["metadata"]["name"]));
        let what = || format!("{}: cannot load {kind} {name}", file.display());
        if !served.contains_key(&version) {
            served.insert(version.clone(), resources(client, &version).await.with_context(what)?);
        }
        let resource = served[&version].iter().find(|resource| resource["kind"] == kind.as_str());
        let resource =
            resource.with_context(|| format!("{version} has no kind {kind}")).with_context(what)?;
        let namespace = match resource["namespaced"].as_bool() {
            Some(true) => match text(&object["metadata"]["namespace"]) {
                given if given.is_empty() => "namespaces/default/".to_owned(),
                given => format!("namespaces/{given}/"),
            },
            _ => String::new(),
        };
        let path = format!("{}/{namespace}{}", base(&version), text(&resource["name"]));
        put(client, &path, &name, &object).await.with_context(what)?;
        if kind == "CustomResourceDefinition" {
            // What it defines may be asked for next.
            served.clear();
        }
    }
    Ok(())
}

/// `/api/v1`, or `/apis/batch/v1`.
fn base(version: &str) -> String {
    if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") }
}

async fn resources(client: &kube::Client, version: &str) -> anyhow::Result<Vec<Value>> {
    let request = Request::get(base(version)).body(Vec::new())?;
    let list: Value = client.request(request).await?;
    let resources = list["resources"].as_array().cloned().unwrap_or_default();
    // Subresources have their parent's kind.
    let main = |resource: &Value| resource["name"].as_str().is_some_and(|name| !name.contains('/'));
    Ok(resources.into_iter().filter(main).collect())
}

async fn put(client: &kube::Client, path: &str, name: &str, object: &Value) -> anyhow::Result<()> {
    let query = "fieldManager=soroi-up&fieldValidation=Strict";
    let request = Request::post(format!("{path}?{query}"))
        .header("content-type", "application/json")
        .body(object.to_string().into_bytes())?;
    match client.request::<Value>(request).await {
        Err(kube::Error::Api(status)) if status.code == 409 && !name.is_empty() => {
            let request = Request::patch(format!("{path}/{name}?{query}"))
                .header("content-type", "application/merge-patch+json")
                .body(object.to_string().into_bytes())?;
            client.request::<Value>(request).await?;
            Ok(())
        }
        created => {
            created?;
            Ok(())
        }
    }
}
