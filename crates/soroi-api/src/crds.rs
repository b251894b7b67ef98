//! The CustomResourceDefinitions of all kinds, made from the Rust types.
//!
//! Knows how Kubernetes wants schemas to look ("structural": no references, one type per place,
//! nothing nullable by accident) and mends what the generator does otherwise. Must never know a
//! single field.

pub mod v1beta1;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation, JSONSchemaProps,
};
use kube::CustomResourceExt;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::{kueue, plan, volcano};

/// All CRDs, in the order in which they are printed and installed.
pub fn all() -> Vec<CustomResourceDefinition> {
    vec![
        crd::<kueue::AdmissionCheck>(),
        crd::<kueue::ClusterQueue>(),
        crd::<kueue::Cohort>(),
        crd::<kueue::LocalQueue>(),
        crd::<kueue::ResourceFlavor>(),
        crd::<kueue::Topology>(),
        crd::<kueue::Workload>(),
        crd::<kueue::WorkloadPriorityClass>(),
        without_status_subresource(crd::<volcano::PodGroup>()),
        crd::<volcano::Queue>(),
        without_status_subresource(crd::<plan::GangPlan>()),
    ]
}

/// All CRDs as one YAML stream, documents divided by `---`. The same on every call.
///
/// # Errors
/// A CRD cannot be written as YAML.
pub fn yaml() -> Result<String, PrintError> {
    let mut stream = String::new();
    for crd in all() {
        stream.push_str("---\n");
        let document = serde_saphyr::to_string(&crd).map_err(|error| PrintError(error.to_string()))?;
        stream.push_str(document.trim_end());
        stream.push('\n');
    }
    Ok(stream)
}

/// All CRDs as one JSON object of kind List, indented. The same on every call.
///
/// # Errors
/// A CRD cannot be written as JSON.
pub fn json() -> Result<String, PrintError> {
    let list = json!({"apiVersion": "v1", "kind": "List", "items": all()});
    serde_json::to_string_pretty(&list).map_err(|error| PrintError(error.to_string()))
}

/// A CRD that could not be printed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a CustomResourceDefinition cannot be printed: {0}")]
pub struct PrintError(String);

fn crd<T: CustomResourceExt + JsonSchema>() -> CustomResourceDefinition {
    let mut crd = T::crd();
    for version in &mut crd.spec.versions {
        version.schema = Some(CustomResourceValidation { open_api_v3_schema: Some(schema::<T>()) });
    }
    crd
}

/// Kinds whose status is written with the whole object.
fn without_status_subresource(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    for CustomResourceDefinitionVersion { subresources, .. } in &mut crd.spec.versions {
        *subresources = None;
    }
    crd
}

fn schema<T: JsonSchema>() -> JSONSchemaProps {
    let generator = SchemaSettings::openapi3()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.into_root_schema_for::<T>().to_value();
    mend(&mut schema);
    let spec_needs_nothing =
        schema.pointer("/properties/spec").is_some_and(|spec| spec.get("required").is_none());
    if spec_needs_nothing {
        default_spec(&mut schema);
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        name_common_fields(properties);
    }
    serde_json::from_value(schema).expect("what schemars makes is a JSON schema")
}

/// An object without a spec has an empty one, if that is valid: `kind: ResourceFlavor` with nothing
/// but a name is the most common flavor there is, and everybody may read `spec` without asking.
fn default_spec(schema: &mut Value) {
    if let Some(spec) = schema.pointer_mut("/properties/spec").and_then(Value::as_object_mut) {
        spec.insert("default".to_owned(), json!({}));
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|field| field != "spec");
    }
}

/// Fields of every object. Kubernetes knows them by itself; they are here so that `kubectl explain`
/// and simple validators see whole objects.
fn name_common_fields(properties: &mut Map<String, Value>) {
    for (field, schema) in [
        ("apiVersion", json!({"type": "string", "description": "Group and version of the kind."})),
        ("kind", json!({"type": "string", "description": "The kind of the object."})),
        ("metadata", json!({"type": "object"})),
    ] {
        properties.insert(field.to_owned(), schema);
    }
}

/// Formats that Kubernetes knows. Others would be accepted with a warning.
const FORMATS: [&str; 4] = ["int32", "int64", "date-time", "byte"];

/// Makes a schema structural, from the leaves up.
fn mend(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(mend),
        Value::Object(object) => {
            // Examples and defaults are data, not schemas.
            for (_, value) in object.iter_mut().filter(|(keyword, _)| *keyword != "default") {
                mend(value);
            }
            mend_object(object);
        }
        _ => {}
    }
}

fn mend_object(schema: &mut Map<String, Value>) {
    drop_null_choice(schema);
    // An absent field says "none"; the API server drops null where it is not allowed.
    if schema.get("nullable").is_some_and(Value::is_boolean) {
        schema.remove("nullable");
    }
    // The title repeats the Rust type's name. A field may be called so too: then it is an object.
    if schema.get("title").is_some_and(Value::is_string) {
        schema.remove("title");
    }
    if let Some(Value::Array(types)) = schema.get("type")
        && let Some(type_) = types.iter().find(|type_| *type_ != "null").cloned()
    {
        schema.insert("type".to_owned(), type_);
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
    }
    if schema.get("format").and_then(Value::as_str).is_some_and(|format| !FORMATS.contains(&format)) {
        schema.remove("format");
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
}

/// `anyOf: [X, null]` is how the generator writes "X or nothing" where X is not a plain type.
fn drop_null_choice(schema: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = schema.get("anyOf") else { return };
    let is_null = |choice: &Value| choice.get("type").is_some_and(|type_| type_ == "null");
    let mut real = choices.iter().filter(|choice| !is_null(choice));
    let (Some(Value::Object(only)), None, true) =
        (real.next().cloned(), real.next(), choices.iter().any(is_null))
    else {
        return;
    };
    schema.remove("anyOf");
    for (keyword, value) in only {
        schema.entry(keyword).or_insert(value);
    }
}

#[cfg(test)]
mod tests;
