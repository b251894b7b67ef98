//! What can be asked? Discovery, version and health.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::header::ACCEPT;
use http::request::Parts;
use serde_json::{Value, json};

use crate::reply::Reply;
use crate::resource::{Resource, group_version};
use crate::status::ApiError;
use crate::store::encode;
use crate::{Shared, openapi};

mod aggregated;

const OPENAPI_V2: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// Answers a GET outside the resources.
pub(crate) fn answer(shared: &Shared, parts: &Parts, segments: &[&str]) -> Result<Reply, ApiError> {
    let accepted = parts.headers.get(ACCEPT).and_then(|v| v.to_str().ok()).unwrap_or("");
    match segments {
        ["api" | "apis"] if aggregated::is_wanted(accepted) => {
            Ok(aggregated::answer(&shared.registry(), segments == ["api"]))
        }
        ["openapi", "v2"] if accepted.contains("protobuf") => {
            Ok(Reply::ok(Bytes::from_static(openapi::NOTHING_IN_V2)).of_type(OPENAPI_V2))
        }
        ["openapi", "v3"] => Ok(Reply::value(&openapi::index(shared))),
        ["openapi", "v3", path @ ..] => Ok(Reply::value(&openapi::document(shared, path)?)),
        ["healthz" | "readyz" | "livez", ..] => Ok(Reply::word("ok")),
        ["version"] => Ok(Reply::value(&version())),
        ["api"] => Ok(Reply::value(&json!({
            "kind": "APIVersions",
            "versions": ["v1"],
            "serverAddressByClientCIDRs": [{ "clientCIDR": "0.0.0.0/0", "serverAddress": "127.0.0.1" }],
        }))),
        ["apis"] => {
            let groups: Vec<Value> = groups(shared).into_iter().map(|(g, v)| group(&g, &v)).collect();
            Ok(Reply::value(&json!({ "kind": "APIGroupList", "apiVersion": "v1", "groups": groups })))
        }
        ["apis", name] => {
            let versions = groups(shared).remove(*name).ok_or_else(ApiError::no_path)?;
            let mut answer = group(name, &versions);
            answer["kind"] = "APIGroup".into();
            answer["apiVersion"] = "v1".into();
            Ok(Reply::value(&answer))
        }
        ["api", version] => resources(shared, "", version),
        ["apis", group, version] => resources(shared, group, version),
        _ => Err(ApiError::no_path()),
    }
}

fn version() -> Value {
    json!({
        "major": "1",
        "minor": "36",
        "gitVersion": concat!("v1.36.1+soroi-", env!("CARGO_PKG_VERSION")),
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "rustc",
        "platform": concat!("linux/", "amd64"),
    })
}

fn groups(shared: &Shared) -> BTreeMap<String, Vec<String>> {
    let mut groups: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in shared.registry().all().filter(|r| !r.group.is_empty()) {
        let versions = groups.entry(resource.group.clone()).or_default();
        if !versions.contains(&resource.version) {
            versions.push(resource.version.clone());
        }
    }
    groups
}

fn group(name: &str, versions: &[String]) -> Value {
    let shown: Vec<Value> =
        versions.iter().map(|v| json!({ "groupVersion": group_version(name, v), "version": v })).collect();
    json!({ "name": name, "versions": shown, "preferredVersion": shown.first() })
}

const VERBS: &[&str] = &["create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"];

fn resources(shared: &Shared, group: &str, version: &str) -> Result<Reply, ApiError> {
    let registry = shared.registry();
    let describe_all = || {
        let of_it = registry.all().filter(|r| r.group == group && r.version == version);
        let shown: Vec<Value> = of_it.flat_map(|resource| describe(resource)).collect();
        let list = || {
            encode(&json!({
                "kind": "APIResourceList",
                "apiVersion": "v1",
                "groupVersion": group_version(group, version),
                "resources": shown,
            }))
        };
        (!shown.is_empty()).then(list)
    };
    registry.described(group, version, describe_all).map(Reply::ok).ok_or_else(ApiError::no_path)
}

fn describe(resource: &Resource) -> Vec<Value> {
    let mut main = json!({
        "name": resource.plural,
        "singularName": resource.singular,
        "namespaced": resource.namespaced,
        "kind": resource.kind,
        "verbs": VERBS,
    });
    if !resource.short_names.is_empty() {
        main["shortNames"] = json!(resource.short_names);
    }
    if !resource.categories.is_empty() {
        main["categories"] = json!(resource.categories);
    }
    let sub = |name: &str, kind: &str, verbs: &[&str]| {
        json!({
            "name": format!("{}/{name}", resource.plural),
            "singularName": "",
            "namespaced": resource.namespaced,
            "kind": kind,
            "verbs": verbs,
        })
    };
    let mut all = vec![main];
    if resource.status {
        all.push(sub("status", &resource.kind, &["get", "patch", "update"]));
    }
    if resource.scale.is_some() {
        let mut scale = sub("scale", "Scale", &["get", "patch", "update"]);
        scale["group"] = "autoscaling".into();
        scale["version"] = "v1".into();
        all.push(scale);
    }
    if &*resource.slot == crate::store::PODS {
        all.push(sub("binding", "Binding", &["create"]));
        let mut eviction = sub("eviction", "Eviction", &["create"]);
        eviction["group"] = "policy".into();
        eviction["version"] = "v1".into();
        all.push(eviction);
    }
    all
}
