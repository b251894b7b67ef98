//! Kueue's kinds as old clients speak them, beside the stored version.
//!
//! Knows where the schemas of the two versions differ (Kueue 0.18), and makes the old one out of the
//! new one, so that bounds and rules stay the same. What an object of the one says in the other is
//! known by `soroi-webhook`.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceConversion, CustomResourceDefinition, CustomResourceDefinitionVersion,
    CustomResourceValidation, WebhookClientConfig, WebhookConversion,
};
use serde_json::{Map, Value, json};

use crate::kueue;

/// All CRDs, Kueue's kinds in both versions. `converter` is asked for the other version.
pub fn all(converter: &WebhookClientConfig) -> Vec<CustomResourceDefinition> {
    super::all().into_iter().map(|crd| both(crd, converter)).collect()
}

fn both(mut crd: CustomResourceDefinition, converter: &WebhookClientConfig) -> CustomResourceDefinition {
    if crd.spec.group != kueue::GROUP {
        return crd;
    }
    let old: Vec<_> = crd.spec.versions.iter().map(|version| old(&crd.spec.names.kind, version)).collect();
    crd.spec.versions.extend(old);
    crd.spec.conversion = Some(CustomResourceConversion {
        strategy: "Webhook".into(),
        webhook: Some(WebhookConversion {
            client_config: Some(converter.clone()),
            conversion_review_versions: vec!["v1".into()],
        }),
    });
    crd
}

fn old(kind: &str, version: &CustomResourceDefinitionVersion) -> CustomResourceDefinitionVersion {
    let mut old = version.clone();
    old.name = kueue::V1BETA1.into();
    old.storage = false;
    old.deprecated = Some(true);
    // Kubernetes 1.36 refuses the same selectable fields in versions with different schemas.
    old.selectable_fields = None;
    old.deprecation_warning =
        Some(format!("{}/{} of {kind} is deprecated; use {}", kueue::GROUP, kueue::V1BETA1, kueue::VERSION));
    for column in old.additional_printer_columns.iter_mut().flatten() {
        column.json_path = column.json_path.replace("cohortName", "cohort");
    }
    if let Some(CustomResourceValidation { open_api_v3_schema: Some(schema) }) = &mut old.schema {
        let mut edited = serde_json::to_value(&*schema).expect("a schema is JSON");
        edit(kind, &mut edited);
        *schema = serde_json::from_value(edited).expect("what was edited is a schema again");
    }
    old
}

fn edit(kind: &str, schema: &mut Value) {
    match kind {
        "ClusterQueue" => cluster_queue(schema),
        "LocalQueue" => rename(schema, "/properties/status", "flavorsUsage", "flavorUsage"),
        "Workload" => workload(schema),
        "AdmissionCheck" => {
            let minutes = json!({
                "type": "integer", "format": "int64", "default": 15,
                "description": "Has no effect, and is not kept.",
            });
            add(schema, "/properties/spec", "retryDelayMinutes", minutes);
        }
        _ => {}
    }
}

fn cluster_queue(schema: &mut Value) {
    let spec = "/properties/spec";
    rename(schema, spec, "cohortName", "cohort");
    remove(schema, spec, "concurrentAdmissionPolicy");
    rules(schema, spec, ("cohortName", "cohort"), |rule| {
        (!rule.contains("concurrentAdmissionPolicy")).then(|| rule.to_owned())
    });
    add(
        schema,
        spec,
        "admissionChecks",
        json!({
            "type": "array", "maxItems": 64, "items": { "type": "string", "maxLength": 316 },
            "description": "Checks for all flavors; admissionChecksStrategy says more.",
        }),
    );
    for (field, word) in [("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")] {
        let path = format!("{spec}/properties/flavorFungibility/properties/{field}/enum");
        if let Some(Value::Array(words)) = schema.pointer_mut(&path) {
            words.push(word.into());
        }
    }
}

fn workload(schema: &mut Value) {
    let (spec, status) = ("/properties/spec", "/properties/status");
    remove(schema, spec, "priorityClassRef");
    remove(schema, spec, "preemptionGates");
    let name = json!({
        "type": "string", "maxLength": 253, "pattern": crate::schema::SUBDOMAIN,
        "description": "The class that the priority is from.",
    });
    add(schema, spec, "priorityClassName", name);
    let source = json!({
        "type": "string",
        "enum": ["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""],
        "description": "Of which kind the class is.",
    });
    add(schema, spec, "priorityClassSource", source);
    let names = ("priorityClassRef", "priorityClassName");
    rules(schema, spec, names, |rule| Some(rule.to_owned()));
    // A rule about the reference becomes one about its two halves.
    rules(schema, "", names, |rule| {
        let (reserved, about) = rule.split_once(" || (has(oldSelf.spec.priorityClassName)").unzip();
        match (reserved, about) {
            (Some(reserved), Some(_)) => Some(format!("{reserved} || ({PRIORITY_STAYS})")),
            _ => Some(rule.to_owned()),
        }
    });
    remove(
        schema,
        &format!("{spec}/properties/podSets/items/properties/topologyRequest"),
        "podsetSliceRequiredTopologyConstraints",
    );
    rename(schema, status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds");
    remove(schema, status, "preemptionGates");
    let assigned = format!("{status}/properties/admission/properties/podSetAssignments/items/properties");
    if let Some(assignment) = schema.pointer_mut(&format!("{assigned}/topologyAssignment")) {
        *assignment = topology_assignment();
    }
}

/// While quota is held: the same kind of class, and for a PriorityClass the same name.
const PRIORITY_STAYS: &str = "has(oldSelf.spec.priorityClassSource) == has(self.spec.priorityClassSource) \
     && (!has(self.spec.priorityClassSource) || (self.spec.priorityClassSource == oldSelf.spec.priorityClassSource \
     && (self.spec.priorityClassSource != 'scheduling.k8s.io/priorityclass' \
     || (has(oldSelf.spec.priorityClassName) == has(self.spec.priorityClassName) \
     && (!has(self.spec.priorityClassName) || self.spec.priorityClassName == oldSelf.spec.priorityClassName)))))";

/// Domains one by one.
fn topology_assignment() -> Value {
    let words = json!({
        "type": "array", "minItems": 1, "maxItems": 16, "items": { "type": "string", "maxLength": 317 },
        "x-kubernetes-list-type": "atomic",
    });
    json!({
        "type": "object", "required": ["domains", "levels"],
        "description": "The topology domains that the pods go to.",
        "properties": {
            "levels": words,
            "domains": {
                "type": "array", "maxItems": 100_000, "x-kubernetes-list-type": "atomic",
                "items": {
                    "type": "object", "required": ["count", "values"],
                    "properties": {
                        "values": words,
                        "count": { "type": "integer", "format": "int32", "minimum": 1 },
                    },
                },
            },
        },
    })
}

fn properties<'a>(schema: &'a mut Value, path: &str) -> Option<&'a mut Map<String, Value>> {
    schema.pointer_mut(path)?.get_mut("properties")?.as_object_mut()
}

fn add(schema: &mut Value, path: &str, field: &str, value: Value) {
    let properties = properties(schema, path).expect("every kind has a spec with fields");
    properties.insert(field.to_owned(), value);
}

fn remove(schema: &mut Value, path: &str, field: &str) -> Value {
    let removed = properties(schema, path).and_then(|properties| properties.remove(field));
    removed.unwrap_or_else(|| unreachable!("the stored version has {path} {field}"))
}

fn rename(schema: &mut Value, path: &str, from: &str, to: &str) {
    let value = remove(schema, path, from);
    add(schema, path, to, value);
}

/// Uses another name in each CEL rule at this place and in its message; the rule is then as `edit`
/// says, or taken away.
fn rules(schema: &mut Value, path: &str, (name, other): (&str, &str), edit: impl Fn(&str) -> Option<String>) {
    let renamed = |text: &Value| text.as_str().unwrap_or_default().replace(name, other);
    let found = schema.pointer_mut(path).and_then(|place| place.get_mut("x-kubernetes-validations"));
    let Some(Value::Array(rules)) = found else { return };
    rules.retain_mut(|rule| match edit(&renamed(&rule["rule"])) {
        Some(edited) => {
            rule["rule"] = edited.into();
            rule["message"] = renamed(&rule["message"]).into();
            true
        }
        None => false,
    });
}
