//! CustomResourceDefinitions: from an object to a served resource.
//!
//! One version of each is served, the one that is stored. A definition is Established as soon as
//! it is created; a wrong one is refused, so there are none that wait.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};

use crate::Shared;
use crate::builtin::{PLAIN, Rules};
use crate::object;
use crate::resource::{Resource, Scale, View};
use crate::schema::Schema;
use crate::status::FieldError;

pub(crate) const RULES: Rules =
    Rules { generation: true, defaults, create, update, check, check_update, ..PLAIN };

/// Rules of every custom resource.
pub(crate) const CUSTOM: Rules = Rules { generation: true, ..PLAIN };

const SLOT: &str = "customresourcedefinitions.apiextensions.k8s.io";

fn defaults(crd: &mut Value) {
    let kind = object::text(crd, &["spec", "names", "kind"]).to_owned();
    let names = object::ensure(crd, &["spec", "names"]);
    object::set_default(names, "singular", kind.to_lowercase());
    object::set_default(names, "listKind", format!("{kind}List"));
    object::set_default(object::ensure(crd, &["spec"]), "conversion", json!({ "strategy": "None" }));
}

fn create(crd: &mut Value) {
    let now = object::meta(crd, "creationTimestamp").to_owned();
    accept(crd, &now);
}

/// Records that the names are accepted and the resource is served.
fn accept(crd: &mut Value, now: &str) {
    let names = object::at(crd, &["spec", "names"]).cloned().unwrap_or_default();
    let stored = stored_version(crd).map(|v| object::text(v, &["name"]).to_owned()).unwrap_or_default();
    let condition = |kind: &str, reason: &str, message: &str| {
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now,
        })
    };
    let status = object::ensure(crd, &["status"]);
    status.insert("acceptedNames".into(), names);
    status.insert("storedVersions".into(), json!([stored]));
    object::set_default(
        status,
        "conditions",
        json!([
            condition("NamesAccepted", "NoConflicts", "no conflicts found"),
            condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        ]),
    );
}

fn update(crd: &mut Value, old: &Value) {
    let now = object::meta(old, "creationTimestamp").to_owned();
    accept(crd, &now);
}

fn stored_version(crd: &Value) -> Option<&Value> {
    object::list(crd, &["spec", "versions"]).iter().find(|v| object::flag(v, &["storage"]))
}

fn check(crd: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for field in ["group", "scope"] {
        if object::text(crd, &["spec", field]).is_empty() {
            errors.push(FieldError::required(&format!("spec.{field}"), ""));
        }
    }
    for field in ["plural", "kind"] {
        if object::text(crd, &["spec", "names", field]).is_empty() {
            errors.push(FieldError::required(&format!("spec.names.{field}"), ""));
        }
    }
    let plural = object::text(crd, &["spec", "names", "plural"]);
    let expected = format!("{plural}.{}", object::text(crd, &["spec", "group"]));
    let name = object::meta(crd, "name");
    if name != expected {
        let why = "must be spec.names.plural+\".\"+spec.group";
        errors.push(FieldError::invalid("metadata.name", name, why));
    }
    let scope = object::text(crd, &["spec", "scope"]);
    if !scope.is_empty() && !matches!(scope, "Namespaced" | "Cluster") {
        errors.push(FieldError::not_supported("spec.scope", scope, &["Cluster", "Namespaced"]));
    }
    let versions = object::list(crd, &["spec", "versions"]);
    if versions.iter().filter(|v| object::flag(v, &["storage"])).count() != 1 {
        let shown = object::at(crd, &["spec", "versions"]).cloned().unwrap_or_default();
        let why = "must have exactly one version marked as storage version";
        errors.push(FieldError::invalid("spec.versions", shown, why));
    }
    for (at, version) in versions.iter().enumerate() {
        let field = format!("spec.versions[{at}].schema.openAPIV3Schema");
        match object::at(version, &["schema", "openAPIV3Schema"]) {
            None => errors.push(FieldError::required(&field, "schemas are required")),
            Some(schema) => {
                if let Err(wrong) = Schema::of_custom(schema) {
                    errors.extend(wrong.into_iter().map(|e| e.under(&field)));
                }
            }
        }
    }
    errors
}

fn check_update(crd: &Value, old: &Value) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let fixed: [&[&str]; 4] =
        [&["spec", "group"], &["spec", "scope"], &["spec", "names", "plural"], &["spec", "names", "kind"]];
    for path in fixed {
        let new = object::at(crd, path);
        if new != object::at(old, path) {
            let shown = new.cloned().unwrap_or_default();
            errors.push(FieldError::invalid(&path.join("."), shown, "field is immutable"));
        }
    }
    errors
}

/// Serves what a stored definition defines.
pub(crate) fn after_write(shared: &Shared, resource: &Resource, crd: &Value) {
    if &*resource.slot != SLOT {
        return;
    }
    if let Some(defined) = defined(crd) {
        shared.serve(|registry| {
            registry.remove(&defined.group, &defined.plural);
            registry.insert(Arc::new(defined));
        });
    }
}

/// Ends what a removed definition defined, and removes its objects.
pub(crate) fn after_removal(shared: &Shared, resource: &Resource, crd: &Value) {
    if &*resource.slot != SLOT {
        return;
    }
    let Some(defined) = defined(crd) else { return };
    shared.serve(|registry| registry.remove(&defined.group, &defined.plural));
    let mut state = shared.store.lock();
    let keys: Vec<_> = state
        .collection(&defined.slot)
        .into_iter()
        .flat_map(|c| c.range(None, None).map(|(key, _)| key.clone()))
        .collect();
    for (namespace, name) in keys {
        state.remove(&defined.slot, &namespace, &name);
    }
    state.close_slot(&defined.slot);
}

/// The resource that a definition defines.
fn defined(crd: &Value) -> Option<Resource> {
    let version = stored_version(crd).filter(|v| object::flag(v, &["served"]))?;
    let name = |key: &str| object::text(crd, &["spec", "names", key]).to_owned();
    let names = |key: &str| -> Vec<String> {
        let list = object::list(crd, &["spec", "names", key]);
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let group = object::text(crd, &["spec", "group"]).to_owned();
    let plural = name("plural");
    let slot = Arc::from(format!("{plural}.{group}").as_str());
    let schema = object::at(version, &["schema", "openAPIV3Schema"]).and_then(|s| Schema::of_custom(s).ok());
    let selectable = object::list(version, &["selectableFields"])
        .iter()
        .map(|f| path(object::text(f, &["jsonPath"])).join("."))
        .collect();
    Some(Resource {
        group,
        version: object::text(version, &["name"]).to_owned(),
        kind: name("kind"),
        list_kind: name("listKind"),
        plural,
        singular: name("singular"),
        short_names: names("shortNames"),
        categories: names("categories"),
        namespaced: object::text(crd, &["spec", "scope"]) == "Namespaced",
        status: version.get("subresources").is_some_and(|s| s.get("status").is_some()),
        scale: object::at(version, &["subresources", "scale"]).map(scale),
        custom: true,
        rules: CUSTOM,
        selectable,
        slot,
        view: View::Plain,
        columns: crate::table::of_custom(version).into(),
        schema: OnceLock::from(schema),
    })
}

fn scale(scale: &Value) -> Scale {
    let selector = object::text(scale, &["labelSelectorPath"]);
    Scale {
        spec_replicas: path(object::text(scale, &["specReplicasPath"])),
        status_replicas: path(object::text(scale, &["statusReplicasPath"])),
        selector: (!selector.is_empty()).then(|| path(selector)),
    }
}

/// The keys of a simple JSON path such as `.spec.replicas`.
fn path(text: &str) -> Vec<String> {
    text.trim_start_matches('.').split('.').map(str::to_owned).collect()
}
