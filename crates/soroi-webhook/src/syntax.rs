//! What is wrong with labels and selectors (Kubernetes, `apimachinery/pkg/util/validation` and
//! `pkg/apis/core/validation`).

use serde_json::Value;
use soroi_api::syntax::{LABEL_KEY_WORDS, LABEL_VALUE_WORDS, is_label_key, is_label_value};

use crate::field::Findings;
use crate::json::{entries, items};

/// Labels: keys and values.
pub(crate) fn labels(path: &str, labels: &Value, findings: &mut Findings) {
    for (key, value) in entries(labels) {
        if !is_label_key(key) {
            findings.invalid(path, &key.as_str().into(), LABEL_KEY_WORDS);
        }
        if value.as_str().is_some_and(|value| !is_label_value(value)) {
            findings.invalid(format!("{path}[{key}]"), value, LABEL_VALUE_WORDS);
        }
    }
}

/// A label selector.
pub(crate) fn selector(path: &str, selector: &Value, findings: &mut Findings) {
    labels(&format!("{path}.matchLabels"), &selector["matchLabels"], findings);
    for (ix, one) in items(&selector["matchExpressions"]).iter().enumerate() {
        expression(&format!("{path}.matchExpressions[{ix}]"), one, &OF_LABELS, findings);
    }
}

/// Operators of a label selector.
const OF_LABELS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
/// Operators of a node selector term.
const OF_NODES: [&str; 6] = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// Node affinity that must hold: pods with such a template could not be created otherwise.
pub(crate) fn node_affinity(path: &str, affinity: &Value, findings: &mut Findings) {
    let field = "requiredDuringSchedulingIgnoredDuringExecution";
    let required = &affinity["nodeAffinity"][field];
    if required.is_null() {
        return;
    }
    let path = format!("{path}.nodeAffinity.{field}.nodeSelectorTerms");
    let terms = items(&required["nodeSelectorTerms"]);
    if terms.is_empty() {
        findings.required(path.clone(), "must have at least one node selector term");
    }
    for (ix, term) in terms.iter().enumerate() {
        for (at, one) in items(&term["matchExpressions"]).iter().enumerate() {
            expression(&format!("{path}[{ix}].matchExpressions[{at}]"), one, &OF_NODES, findings);
        }
        for (at, one) in items(&term["matchFields"]).iter().enumerate() {
            node_field(&format!("{path}[{ix}].matchFields[{at}]"), one, findings);
        }
    }
}

/// One requirement of a selector that knows these operators.
fn expression(path: &str, expression: &Value, operators: &[&str], findings: &mut Findings) {
    if expression["key"].as_str().is_some_and(|key| !is_label_key(key)) {
        findings.invalid(format!("{path}.key"), &expression["key"], LABEL_KEY_WORDS);
    }
    let values = items(&expression["values"]);
    match expression["operator"].as_str().filter(|operator| operators.contains(operator)) {
        Some("In" | "NotIn") if values.is_empty() => {
            findings.required(format!("{path}.values"), "must be given for operator In or NotIn");
        }
        Some("Exists" | "DoesNotExist") if !values.is_empty() => {
            let words = "must not be given for operator Exists or DoesNotExist";
            findings.forbidden(format!("{path}.values"), words);
        }
        Some("Gt" | "Lt") if !is_one_number(values) => {
            findings.required(format!("{path}.values"), "must be one whole number for operator Gt or Lt");
        }
        Some(_) => {}
        None => findings.not_supported(format!("{path}.operator"), &expression["operator"], operators),
    }
    for (at, value) in values.iter().enumerate() {
        if value.as_str().is_some_and(|value| !is_label_value(value)) {
            findings.invalid(format!("{path}.values[{at}]"), value, LABEL_VALUE_WORDS);
        }
    }
}

fn is_one_number(values: &[Value]) -> bool {
    matches!(values, [one] if one.as_str().is_some_and(|text| text.parse::<i64>().is_ok()))
}

fn node_field(path: &str, expression: &Value, findings: &mut Findings) {
    if expression["key"] != "metadata.name" {
        findings.not_supported(format!("{path}.key"), &expression["key"], &["metadata.name"]);
    }
    if !matches!(expression["operator"].as_str(), Some("In" | "NotIn")) {
        findings.not_supported(format!("{path}.operator"), &expression["operator"], &["In", "NotIn"]);
    } else if items(&expression["values"]).len() != 1 {
        findings.required(format!("{path}.values"), "must be one name");
    }
}
