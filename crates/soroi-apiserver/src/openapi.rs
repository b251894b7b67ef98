//! What is every kind like? OpenAPI v3, one document per group and version.
//!
//! `kubectl apply` reads from it that the server validates fields, `kubectl explain` what the fields
//! are. The schemas of built-in kinds come from the types that this server validates with, those of
//! custom kinds from their definitions. Paths are there as far as kubectl looks at them.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::resource::Resource;
use crate::status::ApiError;
use crate::{Shared, builtin, object};

const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";
const REFERENCE: &str = "#/components/schemas/";
const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

/// An empty document of version 2, in Protobuf, the only form in which kubectl asks for it: it does so
/// for kinds that it does not find here, and then says itself that there is no such kind.
pub(crate) const NOTHING_IN_V2: &[u8] = b"\x0a\x032.0\x12\x15\x0a\x0aKubernetes\x12\x07v1.36.1\x42\x00";

/// The list of documents.
pub(crate) fn index(shared: &Shared) -> Value {
    // What is served changes with definitions only: their revision tells documents apart.
    let definitions = shared
        .store
        .lock()
        .collection(DEFINITIONS)
        .into_iter()
        .flat_map(|c| c.range(None, None).map(|(_, stored)| stored.revision).collect::<Vec<_>>())
        .max();
    let hash = definitions.unwrap_or(0);
    let mut paths = Map::new();
    for resource in shared.registry().all() {
        let path = base(resource);
        let url = format!("/openapi/v3/{path}?hash={hash:016X}");
        paths.insert(path, json!({ "serverRelativeURL": url }));
    }
    json!({ "paths": paths })
}

/// `api/v1`, or `apis/batch/v1`.
fn base(resource: &Resource) -> String {
    let root = if resource.group.is_empty() { "api" } else { "apis" };
    format!("{root}/{}", resource.api_version())
}

/// The document of the group and version that a path names.
///
/// # Errors
/// 404 when nothing is served there.
pub(crate) fn document(shared: &Shared, path: &[&str]) -> Result<Value, ApiError> {
    let (group, version) = match path {
        ["api", version] => ("", *version),
        ["apis", group, version] => (*group, *version),
        _ => return Err(ApiError::no_path()),
    };
    let mut paths = Map::new();
    let mut schemas = BTreeMap::new();
    let registry = shared.registry();
    for resource in registry.all().filter(|r| r.group == group && r.version == version) {
        for path in paths_of(resource) {
            paths.insert(path, operations(resource));
        }
        if resource.custom { custom(shared, resource, &mut schemas) } else { known(resource, &mut schemas) }
    }
    if paths.is_empty() {
        return Err(ApiError::no_path());
    }
    Ok(json!({
        "openapi": "3.0.0",
        "info": { "title": "Kubernetes", "version": "v1.36.1" },
        "paths": paths,
        "components": { "schemas": schemas },
    }))
}

fn paths_of(resource: &Resource) -> Vec<String> {
    let (base, plural) = (base(resource), &resource.plural);
    let own = if resource.namespaced {
        format!("/{base}/namespaces/{{namespace}}/{plural}")
    } else {
        format!("/{base}/{plural}")
    };
    let mut paths = vec![own.clone(), format!("{own}/{{name}}")];
    if resource.status {
        paths.push(format!("{own}/{{name}}/status"));
    }
    paths
}

/// What can be done at a path. That writes take `fieldValidation` is what kubectl looks for before it
/// leaves validation to the server.
fn operations(resource: &Resource) -> Value {
    let kind = kind_of(resource);
    let parameter = |name: &str, what: &str| {
        json!({
            "name": name, "in": "query", "description": what, "schema": { "type": "string", "uniqueItems": true },
        })
    };
    let writes = json!([
        parameter("dryRun", "When present, indicates that modifications should not be persisted."),
        parameter("fieldManager", "The name of the actor that makes these changes."),
        parameter("fieldValidation", "What to do with unknown or duplicate fields: Ignore, Warn or Strict."),
    ]);
    let operation = |action: &str, parameters: &Value| {
        json!({
            "x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": parameters,
            "responses": { "200": { "description": "OK" } },
        })
    };
    json!({
        "get": operation("get", &json!([])),
        "post": operation("post", &writes),
        "put": operation("put", &writes),
        "patch": operation("patch", &writes),
    })
}

fn kind_of(resource: &Resource) -> Value {
    json!({ "group": resource.group, "kind": resource.kind, "version": resource.version })
}

/// Adds the schema of a built-in kind, and those that it refers to.
fn known(resource: &Resource, schemas: &mut BTreeMap<String, Value>) {
    let Some(mut schema) = builtin::schema_source(&resource.group, &resource.kind) else { return };
    let fields = object::fields_mut(&mut schema);
    let shared = fields.remove("$defs").unwrap_or_default();
    let title = fields.remove("title").and_then(|t| t.as_str().map(str::to_owned)).unwrap_or_default();
    fields.remove("$schema");
    fields.insert("x-kubernetes-group-version-kind".into(), json!([kind_of(resource)]));
    rewrite(&mut schema);
    schemas.insert(title, schema);
    for (name, mut schema) in shared.as_object().cloned().unwrap_or_default() {
        // What several kinds refer to is added once.
        schemas.entry(name).or_insert_with(|| {
            rewrite(&mut schema);
            schema
        });
    }
}

/// Brings a schema into the form of OpenAPI: references lead to the components.
fn rewrite(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let named = fields.get("$ref").and_then(Value::as_str);
            if let Some(name) = named.and_then(|reference| reference.strip_prefix("#/$defs/")) {
                // Beside a bare reference nothing else counts, so that a description would be lost.
                let reference = json!({ "$ref": format!("{REFERENCE}{name}") });
                fields.remove("$ref");
                fields.insert("allOf".into(), json!([reference]));
                return;
            }
            let has_metadata = fields.get("properties").is_some_and(|p| p.get("metadata").is_some());
            if let Some(Value::Array(required)) = fields.get_mut("required")
                && has_metadata
            {
                // Our types always have it, Kubernetes' schemas never ask for it.
                required.retain(|field| field != "metadata");
            }
            fields.values_mut().for_each(rewrite);
        }
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        _ => {}
    }
}

/// Adds the schema of a custom kind, with the fields that every object has.
fn custom(shared: &Shared, resource: &Resource, schemas: &mut BTreeMap<String, Value>) {
    let name = format!("{}.{}", resource.plural, resource.group);
    let Some(definition) = shared.store.lock().get(DEFINITIONS, "", &name).cloned() else { return };
    let versions = object::list(&definition.value, &["spec", "versions"]);
    let Some(version) = versions.iter().find(|v| object::text(v, &["name"]) == resource.version) else {
        return;
    };
    let mut schema = object::at(version, &["schema", "openAPIV3Schema"]).cloned().unwrap_or_default();
    let properties = object::ensure(&mut schema, &["properties"]);
    for (field, meaning) in [("apiVersion", API_VERSION), ("kind", KIND)] {
        properties.insert(field.into(), json!({ "type": "string", "description": meaning }));
    }
    properties.insert(
        "metadata".into(),
        json!({
            "allOf": [{ "$ref": format!("{REFERENCE}{OBJECT_META}") }],
            "description": "Standard object's metadata. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata",
        }),
    );
    schema["x-kubernetes-group-version-kind"] = json!([kind_of(resource)]);
    let mut turned: Vec<&str> = resource.group.split('.').collect();
    turned.reverse();
    let name = format!("{}.{}.{}", turned.join("."), resource.version, resource.kind);
    schemas.insert(name, schema);
    if !schemas.contains_key(OBJECT_META) {
        // Every built-in kind refers to it; one is as good as another.
        let mut of_map = BTreeMap::new();
        if let Some(map) = shared.registry().find("", "v1", "configmaps") {
            known(map, &mut of_map);
        }
        schemas.extend(of_map.into_iter().filter(|(name, _)| name.contains(".meta.v1.")));
    }
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the latest internal value, and may reject unrecognized values. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
