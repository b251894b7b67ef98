//! What must every object's `metadata` look like?
//!
//! Rules and sentences of Kubernetes 1.36 (`apimachinery/pkg/api/validation/objectmeta.go`).
//! Must never know a kind, but for the form of its names.

use serde_json::Value;

use crate::object;
use crate::select::{LABEL_VALUE, NAME_PART, is_qualified_part};
use crate::status::FieldError;

/// Which names a kind allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NameRule {
    /// `a.b-c`, at most 253 letters.
    Subdomain,
    /// `a-b`, at most 63 letters.
    Label,
    /// `a-b`, beginning with a letter.
    ServiceLabel,
    /// Anything that is one segment of a path.
    PathSegment,
}

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SERVICE: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";

/// Is it an RFC 1123 label?
pub(crate) fn is_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let outer = |b: Option<&u8>| b.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

/// Is it an RFC 1123 subdomain?
pub(crate) fn is_subdomain(text: &str) -> bool {
    text.split('.').all(is_label)
}

/// What is wrong with a name, if anything.
pub(crate) fn name_errors(rule: NameRule, name: &str, field: &str) -> Vec<FieldError> {
    let (max, valid, sentence) = match rule {
        NameRule::Subdomain => (253, is_subdomain(name), SUBDOMAIN),
        NameRule::Label => (63, is_label(name), LABEL),
        NameRule::ServiceLabel => {
            let letter = name.as_bytes().first().is_some_and(u8::is_ascii_lowercase);
            (63, letter && is_label(name), SERVICE)
        }
        NameRule::PathSegment => return path_segment_errors(name, field),
    };
    let mut errors = Vec::new();
    if name.len() > max {
        errors.push(FieldError::invalid(field, name, format!("must be no more than {max} bytes")));
    }
    if !valid {
        errors.push(FieldError::invalid(field, name, sentence));
    }
    errors
}

fn path_segment_errors(name: &str, field: &str) -> Vec<FieldError> {
    if matches!(name, "." | "..") {
        return vec![FieldError::invalid(field, name, format!("may not be '{name}'"))];
    }
    ['/', '%']
        .into_iter()
        .filter(|c| name.contains(*c))
        .map(|c| FieldError::invalid(field, name, format!("may not contain '{c}'")))
        .collect()
}

/// What is wrong with the metadata of a new or changed object.
pub(crate) fn errors(object: &Value, rule: NameRule) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = object::meta(object, "name");
    if name.is_empty() {
        errors.push(FieldError::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(name_errors(rule, name, "metadata.name"));
    }
    errors.extend(label_errors(object::at(object, &["metadata", "labels"]), "metadata.labels"));
    errors
        .extend(annotation_errors(object::at(object, &["metadata", "annotations"]), "metadata.annotations"));
    for (at, finalizer) in object::finalizers(object).iter().enumerate() {
        let text = finalizer.as_str().unwrap_or("");
        let field = format!("metadata.finalizers[{at}]");
        errors.extend(qualified_name_errors(text, &field));
        if !text.contains('/') && !matches!(text, "orphan" | "foregroundDeletion" | "kubernetes") {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&field, text, why));
        }
    }
    owner_errors(object, &mut errors);
    errors
}

/// What is wrong with a map of labels.
pub(crate) fn label_errors(labels: Option<&Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    for (key, value) in labels.and_then(Value::as_object).into_iter().flatten() {
        errors.extend(qualified_name_errors(key, field));
        let value = value.as_str().unwrap_or("");
        if value.len() > 63 {
            errors.push(FieldError::invalid(field, value, "must be no more than 63 bytes"));
        }
        if !value.is_empty() && !is_qualified_part(value) {
            errors.push(FieldError::invalid(field, value, LABEL_VALUE));
        }
    }
    errors
}

/// Most bytes that an object's annotations may have together.
const ANNOTATION_BYTES_MAX: usize = 256 * 1024;

/// What is wrong with a map of annotations.
pub(crate) fn annotation_errors(annotations: Option<&Value>, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut bytes = 0;
    for (key, value) in annotations.and_then(Value::as_object).into_iter().flatten() {
        bytes += key.len() + value.as_str().map_or(0, str::len);
        errors.extend(qualified_name_errors(&key.to_lowercase(), field));
    }
    if bytes > ANNOTATION_BYTES_MAX {
        errors.push(FieldError::too_long(field, ANNOTATION_BYTES_MAX as u64));
    }
    errors
}

fn owner_errors(object: &Value, errors: &mut Vec<FieldError>) {
    let mut controllers = Vec::new();
    for owner in object::list(object, &["metadata", "ownerReferences"]) {
        for key in ["apiVersion", "kind", "name", "uid"] {
            if object::text(owner, &[key]).is_empty() {
                let shown =
                    if key == "apiVersion" { "version must not be empty" } else { "must not be empty" };
                let field = format!("metadata.ownerReferences.{key}");
                errors.push(FieldError::invalid(&field, "", shown));
            }
        }
        if object::flag(owner, &["controller"]) {
            controllers.push(object::text(owner, &["name"]));
        }
    }
    if let [first, second, ..] = controllers.as_slice() {
        let why = format!(
            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {second}"
        );
        let shown = object::at(object, &["metadata", "ownerReferences"]).cloned().unwrap_or_default();
        errors.push(FieldError::invalid("metadata.ownerReferences", shown, why));
    }
}

/// What is wrong with a name of the form `prefix/name`, whose prefix is a subdomain.
fn qualified_name_errors(text: &str, field: &str) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let name = match text.split_once('/') {
        Some((prefix, name)) => {
            if prefix.is_empty() {
                errors.push(FieldError::invalid(field, text, "prefix part must be non-empty"));
            } else if !is_subdomain(prefix) {
                errors.push(FieldError::invalid(field, text, format!("prefix part {SUBDOMAIN}")));
            }
            name
        }
        None => text,
    };
    if name.is_empty() {
        errors.push(FieldError::invalid(field, text, "name part must be non-empty"));
    } else if name.len() > 63 {
        errors.push(FieldError::invalid(field, text, "name part must be no more than 63 bytes"));
    }
    if !is_qualified_part(name) && name.len() <= 63 {
        errors.push(FieldError::invalid(field, text, NAME_PART));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(object: &Value) -> Vec<String> {
        errors(object, NameRule::Subdomain).iter().map(|e| e.to_string().chars().take(70).collect()).collect()
    }

    #[test]
    fn wrong_metadata_is_named() {
        assert_eq!(said(&json!({"metadata": {"name": "a.b-c"}})), Vec::<String>::new());
        assert_eq!(
            said(&json!({"metadata": {
                "name": "Not_Good",
                "labels": {"a b": "c", "k": "v v"},
                "finalizers": ["plain", "example.com/good"],
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "x"}],
            }})),
            [
                "metadata.name: Invalid value: \"Not_Good\": a lowercase RFC 1123 subdoma",
                "metadata.labels: Invalid value: \"a b\": name part must consist of alpha",
                "metadata.labels: Invalid value: \"v v\": a valid label must be an empty ",
                "metadata.finalizers[0]: Invalid value: \"plain\": name is neither a stan",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ]
        );
    }
}
