//! The CRDs are what a real API server takes: structural, printable, and the columns are the known ones.

use expect_test::expect;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use super::*;

fn schema_of(crd: &CustomResourceDefinition) -> Value {
    let schema = crd.spec.versions[0].schema.as_ref().unwrap();
    serde_json::to_value(schema.open_api_v3_schema.as_ref().unwrap()).unwrap()
}

/// The rules of structural schemas (Kubernetes, "Specifying a structural schema"), with the path
/// of each violation.
fn violations(path: &str, schema: &Value, inside_choice: bool, found: &mut Vec<String>) {
    let Some(object) = schema.as_object() else {
        found.push(format!("{path}: not an object"));
        return;
    };
    let has = |keyword: &str| object.contains_key(keyword);
    let int_or_string = has("x-kubernetes-int-or-string");
    let preserve = has("x-kubernetes-preserve-unknown-fields");
    if !has("type") && !int_or_string && !preserve && !inside_choice {
        found.push(format!("{path}: no type"));
    }
    if object.get("type").is_some_and(|type_| !type_.is_string()) {
        found.push(format!("{path}: type is not one word"));
    }
    if has("type") && int_or_string {
        found.push(format!("{path}: int-or-string with a type"));
    }
    for keyword in ["$ref", "definitions", "title", "nullable", "oneOf", "allOf", "not", "const", "examples"]
    {
        if has(keyword) {
            found.push(format!("{path}: {keyword}"));
        }
    }
    if object.get("enum").and_then(Value::as_array).is_some_and(|words| words.contains(&Value::Null)) {
        found.push(format!("{path}: null among the words"));
    }
    if has("anyOf") && !int_or_string {
        found.push(format!("{path}: anyOf"));
    }
    if has("properties") && has("additionalProperties") {
        found.push(format!("{path}: properties and additionalProperties"));
    }
    if object.get("type").is_some_and(|type_| type_ == "array") && !has("items") {
        found.push(format!("{path}: array without items"));
    }
    if object.get("additionalProperties").is_some_and(Value::is_boolean) {
        found.push(format!("{path}: additionalProperties is no schema"));
    }
    for (name, property) in object.get("properties").and_then(Value::as_object).into_iter().flatten() {
        violations(&format!("{path}.{name}"), property, false, found);
    }
    for field in object.get("required").and_then(Value::as_array).into_iter().flatten() {
        if object.get("properties").and_then(|all| all.get(field.as_str().unwrap())).is_none() {
            found.push(format!("{path}: requires {field}, which it does not have"));
        }
    }
    for keyword in ["items", "additionalProperties"] {
        if let Some(inner) = object.get(keyword) {
            violations(&format!("{path}.{keyword}"), inner, false, found);
        }
    }
    for key in object.get("x-kubernetes-list-map-keys").and_then(Value::as_array).into_iter().flatten() {
        let key = key.as_str().unwrap();
        let item = &object["items"];
        let required = item["required"].as_array().is_some_and(|all| all.iter().any(|name| name == key));
        if !required && item["properties"][key].get("default").is_none() {
            found.push(format!("{path}: list key {key} is neither required nor defaulted"));
        }
    }
}

#[test]
fn schemas_are_structural() {
    for crd in all() {
        let mut found = Vec::new();
        violations("", &schema_of(&crd), false, &mut found);
        assert_eq!(found, Vec::<String>::new(), "{}", crd.metadata.name.unwrap());
    }
}

/// What the API server lets one rule cost, for all the places of an object that it may stand for together
/// (`StaticEstimatedCostLimit` of apiextensions-apiserver).
const RULE_COST_MAX: u64 = 10_000_000;

/// What the rules of a schema may cost that stands `times` in an object. A rough copy of the API server's
/// estimate: a rule costs a few steps, one that goes through a list a dozen for each of its entries.
fn costs(path: &str, schema: &Value, times: u64, found: &mut Vec<String>) {
    let entries_max = |list: &Value| list["maxItems"].as_u64();
    for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
        let text = rule["rule"].as_str().unwrap();
        let lists = schema["properties"].as_object().into_iter().flatten();
        let lists = lists.filter(|(name, _)| text.contains(&format!("self.{name}.")));
        let longest = lists.filter_map(|(_, list)| entries_max(list)).chain(entries_max(schema)).max();
        let steps = if text.contains(".all(") { longest.unwrap_or(1).saturating_mul(12) } else { 3 };
        let cost = times.saturating_mul(steps);
        if cost > RULE_COST_MAX {
            found.push(format!("{path}: {cost} for {text}"));
        }
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        costs(&format!("{path}.{name}"), property, times, found);
    }
    if let Some(entry) = schema.get("items") {
        // Without a bound a list has as many entries of three letters as a request of 3 MiB may hold.
        let times = times.saturating_mul(entries_max(schema).unwrap_or(1 << 20));
        costs(&format!("{path}[]"), entry, times, found);
    }
}

#[test]
fn no_rule_costs_more_than_the_api_server_allows() {
    for crd in all() {
        let mut found = Vec::new();
        costs("", &schema_of(&crd), 1, &mut found);
        assert_eq!(found, Vec::<String>::new(), "{}", crd.metadata.name.unwrap());
    }
}

#[test]
fn every_field_is_explained() {
    fn silent(path: &str, schema: &Value, found: &mut Vec<String>) {
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let path = format!("{path}.{name}");
            if property.get("description").is_none() && path != ".metadata" {
                found.push(path.clone());
            }
            silent(&path, property, found);
        }
        for keyword in ["items", "additionalProperties"] {
            if let Some(inner) = schema.get(keyword) {
                silent(path, inner, found);
            }
        }
    }
    for crd in all() {
        let mut found = Vec::new();
        silent("", &schema_of(&crd), &mut found);
        assert_eq!(found, Vec::<String>::new(), "{}", crd.metadata.name.unwrap());
    }
}

#[test]
fn kinds_have_the_known_names_and_columns() {
    let mut picture = String::new();
    for crd in all() {
        let (names, version) = (&crd.spec.names, &crd.spec.versions[0]);
        picture += &format!("{} {} {}", crd.spec.group, version.name, crd.spec.scope);
        picture += &format!(": {} {}", names.plural, names.kind);
        picture += &format!(" [{}]", names.short_names.clone().unwrap_or_default().join(","));
        let status = version.subresources.as_ref().is_some_and(|all| all.status.is_some());
        picture += if status { " /status\n" } else { "\n" };
        for field in version.selectable_fields.iter().flatten() {
            picture += &format!("    selectable {}\n", field.json_path);
        }
        for column in version.additional_printer_columns.iter().flatten() {
            let wide = if column.priority == Some(1) { " (wide)" } else { "" };
            picture += &format!("    {}: {} {}{wide}\n", column.name, column.type_, column.json_path);
        }
    }
    expect![[r#"
        kueue.x-k8s.io v1beta2 Cluster: admissionchecks AdmissionCheck [ac] /status
        kueue.x-k8s.io v1beta2 Cluster: clusterqueues ClusterQueue [cq] /status
            Cohort: string .spec.cohortName
            Strategy: string .spec.queueingStrategy (wide)
            Pending Workloads: integer .status.pendingWorkloads
            Admitted Workloads: integer .status.admittedWorkloads (wide)
        kueue.x-k8s.io v1beta2 Cluster: cohorts Cohort [co] /status
        kueue.x-k8s.io v1beta2 Namespaced: localqueues LocalQueue [queue,queues,lq] /status
            ClusterQueue: string .spec.clusterQueue
            Pending Workloads: integer .status.pendingWorkloads
            Admitted Workloads: integer .status.admittedWorkloads
        kueue.x-k8s.io v1beta2 Cluster: resourceflavors ResourceFlavor [flavor,flavors,rf]
        kueue.x-k8s.io v1beta2 Cluster: topologies Topology [topo]
        kueue.x-k8s.io v1beta2 Namespaced: workloads Workload [kwl,kueueworkload,kueueworkloads] /status
            selectable .status.admission.clusterQueue
            Queue: string .spec.queueName
            Reserved in: string .status.admission.clusterQueue
            Admitted: string .status.conditions[?(@.type=='Admitted')].status
            Finished: string .status.conditions[?(@.type=='Finished')].status
            Age: date .metadata.creationTimestamp
        kueue.x-k8s.io v1beta2 Cluster: workloadpriorityclasses WorkloadPriorityClass [wpc]
            Value: integer .value
        scheduling.volcano.sh v1beta1 Namespaced: podgroups PodGroup [pg,podgroup-v1beta1]
            STATUS: string .status.phase
            minMember: integer .spec.minMember
            RUNNINGS: integer .status.running
            AGE: date .metadata.creationTimestamp
            QUEUE: string .spec.queue (wide)
        scheduling.volcano.sh v1beta1 Cluster: queues Queue [q,queue-v1beta1] /status
            PARENT: string .spec.parent
        soroi.dev v1alpha1 Namespaced: gangplans GangPlan [gp]
            Gang: string .spec.gang.name
            Phase: string .status.phase
            Pods: integer .spec.pods
            Policy: string .spec.policy (wide)
            ClusterQueue: string .spec.clusterQueue (wide)
            Age: date .metadata.creationTimestamp
    "#]]
    .assert_eq(&picture);
}

#[test]
fn both_printed_forms_read_back_as_the_same_crds() {
    let stream = yaml().unwrap();
    assert_eq!(stream, yaml().unwrap());
    let documents: Vec<CustomResourceDefinition> = serde_saphyr::from_multiple(&stream).unwrap();
    assert_eq!(documents, all());
    let list: Value = serde_json::from_str(&json().unwrap()).unwrap();
    assert_eq!(list["items"], serde_json::to_value(all()).unwrap());
}

#[test]
fn crds_stay_small() {
    for crd in all() {
        let bytes = serde_json::to_vec(&crd).unwrap().len();
        // `kubectl apply` keeps a copy in an annotation, which may have 256 KiB.
        assert!(bytes < 64 * 1024, "{}: {bytes} bytes", crd.metadata.name.unwrap());
    }
}

#[test]
fn an_object_may_come_without_a_spec_where_an_empty_one_is_valid() {
    let allowed: Vec<String> = all()
        .into_iter()
        .filter(|crd| schema_of(crd)["properties"]["spec"].get("default").is_some())
        .map(|crd| crd.spec.names.kind)
        .collect();
    assert_eq!(
        allowed,
        ["ClusterQueue", "Cohort", "LocalQueue", "ResourceFlavor", "Workload", "PodGroup", "Queue"]
    );
}

/// What both versions of Kueue's kinds have: structural schemas, one of them stored; and nothing of the
/// new version's words in the old one.
#[test]
fn old_clients_are_served_by_conversion() {
    let converter = k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::WebhookClientConfig {
        url: Some("https://127.0.0.1:9443/convert".into()),
        ..Default::default()
    };
    let mut told = String::new();
    for crd in v1beta1::all(&converter) {
        if crd.spec.group != crate::kueue::GROUP {
            assert!(crd.spec.conversion.is_none());
            continue;
        }
        let [new, old] = crd.spec.versions.as_slice() else { panic!("two versions") };
        assert!(new.storage && !old.storage && old.served && old.deprecated == Some(true));
        let schema = |version: &CustomResourceDefinitionVersion| {
            let schema = version.schema.as_ref().unwrap().open_api_v3_schema.as_ref().unwrap();
            serde_json::to_value(schema).unwrap()
        };
        let (new, old) = (schema(new), schema(old));
        let mut found = Vec::new();
        violations("", &old, false, &mut found);
        assert_eq!(found, Vec::<String>::new());
        for word in
            ["cohortName", "priorityClassRef", "preemptionGates", "concurrentAdmissionPolicy", "slices"]
        {
            assert!(!old.to_string().contains(word), "{word} in v1beta1 of {}", crd.spec.names.kind);
        }
        let same = if new == old { "the same" } else { "differs" };
        told += &format!("{}: {same}\n", crd.spec.names.kind);
    }
    expect![[r#"
        AdmissionCheck: differs
        ClusterQueue: differs
        Cohort: the same
        LocalQueue: differs
        ResourceFlavor: the same
        Topology: the same
        Workload: differs
        WorkloadPriorityClass: the same
    "#]]
    .assert_eq(&told);
}
