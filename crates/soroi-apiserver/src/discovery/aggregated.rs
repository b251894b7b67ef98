//! Everything that is served in one answer: `apidiscovery.k8s.io/v2`.
//!
//! kubectl asks for it first; it then needs two requests instead of one per group and version.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::describe;
use crate::object;
use crate::reply::Reply;
use crate::resource::{Registry, Resource};

const FORM: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";

/// Does a client want this form before any other that we know?
pub(super) fn is_wanted(accepted: &str) -> bool {
    let parts = |form: &str| form.split(';').map(|part| part.trim().to_owned()).collect::<Vec<_>>();
    let ours = parts(FORM);
    // Forms stand in the order of preference; a plain one that comes first is what is wanted.
    let known = accepted.split(',').map(parts).find(|form| {
        let plain = matches!(form.as_slice(), [one] if matches!(one.as_str(), "application/json" | "*/*"));
        plain || ours.iter().all(|part| form.contains(part))
    });
    known.is_some_and(|form| form.len() > 1)
}

/// The core group, or all the others.
pub(super) fn answer(registry: &Registry, core: bool) -> Reply {
    let mut groups: BTreeMap<&str, BTreeMap<&str, Vec<Value>>> = BTreeMap::new();
    for resource in registry.all().filter(|r| r.group.is_empty() == core) {
        let versions = groups.entry(&resource.group).or_default();
        versions.entry(&resource.version).or_default().push(shown(resource));
    }
    let items: Vec<Value> = groups.into_iter().map(|(name, versions)| group(name, versions)).collect();
    let list = json!({
        "kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {},
        "items": items,
    });
    Reply::value(&list).of_type(FORM)
}

fn group(name: &str, versions: BTreeMap<&str, Vec<Value>>) -> Value {
    let versions: Vec<Value> = versions
        .into_iter()
        .map(|(version, resources)| {
            json!({ "version": version, "resources": resources, "freshness": "Current" })
        })
        .collect();
    let metadata = if name.is_empty() { json!({}) } else { json!({ "name": name }) };
    json!({ "metadata": metadata, "versions": versions })
}

/// A resource with its subresources; the same words as in plain discovery under other names.
fn shown(resource: &Resource) -> Value {
    let mut described = describe(resource).into_iter();
    let main = described.next().unwrap_or_default();
    let response = |of: &Value| {
        let own = |key: &str, ours: &str| match object::text(of, &[key]) {
            "" => ours.to_owned(),
            given => given.to_owned(),
        };
        json!({
            "group": own("group", &resource.group), "version": own("version", &resource.version),
            "kind": of.get("kind"),
        })
    };
    let mut shown = json!({
        "resource": resource.plural,
        "responseKind": response(&main),
        "scope": if resource.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": resource.singular,
        "verbs": main.get("verbs"),
    });
    for key in ["shortNames", "categories"] {
        object::put(object::fields_mut(&mut shown), key, main.get(key).cloned());
    }
    let subresources: Vec<Value> = described
        .map(|sub| {
            let name = object::text(&sub, &["name"]).split('/').next_back().unwrap_or_default();
            json!({ "subresource": name, "responseKind": response(&sub), "verbs": sub.get("verbs") })
        })
        .collect();
    if !subresources.is_empty() {
        shown["subresources"] = subresources.into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_form_that_is_known_decides() {
        let cases = [
            ("application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json", true),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io,application/json",
                false,
            ),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2beta1;g=apidiscovery.k8s.io, application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io",
                true,
            ),
            ("application/json, application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", false),
            ("application/vnd.kubernetes.protobuf,application/json", false),
            ("*/*", false),
            ("", false),
        ];
        for (accepted, expected) in cases {
            assert_eq!(is_wanted(accepted), expected, "{accepted}");
        }
    }
}
