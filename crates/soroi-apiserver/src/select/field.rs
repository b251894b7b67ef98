//! Field selectors: `spec.nodeName=a,status.phase!=Running`, for the fields that a kind offers.

use serde_json::Value;

use crate::object;
use crate::resource::{Resource, View};
use crate::status::ApiError;

/// Terms on fields, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Term {
    path: Vec<String>,
    value: String,
    equal: bool,
}

impl FieldSelector {
    /// Parses the text of a `fieldSelector` parameter (`apimachinery/pkg/fields/selector.go`):
    /// terms with `=`, `==` or `!=`, where a backslash escapes `,`, `=` and itself.
    ///
    /// # Errors
    /// 400 for a term without an operator or with a broken escape.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut terms = Vec::new();
        for part in split_terms(text) {
            if part.is_empty() {
                continue;
            }
            let (label, equal, value) = split_operator(part).ok_or_else(|| {
                ApiError::bad_request(format!("invalid selector: '{text}'; can't understand '{part}'"))
            })?;
            let path = label.split('.').map(str::to_owned).collect();
            terms.push(Term { path, value: unescape(value)?, equal });
        }
        Ok(Self { terms })
    }

    /// The same, for one object only.
    pub(crate) fn with_name(mut self, name: &str) -> Self {
        let path = vec!["metadata".to_owned(), "name".to_owned()];
        self.terms.push(Term { path, value: name.to_owned(), equal: true });
        self
    }

    /// Checks that a resource offers every field, and names them as they are stored.
    ///
    /// # Errors
    /// 400 for a field that the resource does not offer.
    pub(crate) fn resolve(mut self, resource: &Resource) -> Result<Self, ApiError> {
        for term in &mut self.terms {
            let label = term.path.join(".");
            let known = label == "metadata.name"
                || (label == "metadata.namespace" && resource.namespaced)
                || resource.selectable.contains(&label);
            if !known {
                return Err(ApiError::bad_request(not_supported(resource, &label)));
            }
            if resource.view == View::NewEvent {
                if term.path[0] == "regarding" {
                    term.path[0] = "involvedObject".into();
                } else if label == "reportingController" {
                    term.path = vec!["reportingComponent".into()];
                }
            }
        }
        Ok(self)
    }

    /// Does it ask for nothing?
    pub(crate) fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// The value that a field must have, if one is demanded.
    pub(crate) fn demanded(&self, path: &[&str]) -> Option<&str> {
        self.terms
            .iter()
            .find(|t| t.equal && t.path.iter().map(String::as_str).eq(path.iter().copied()))
            .map(|t| t.value.as_str())
    }

    /// Does the object meet every term?
    pub(crate) fn matches(&self, object: &Value) -> bool {
        self.terms.iter().all(|term| (field_text(object, &term.path) == term.value) == term.equal)
    }
}

/// A field as selectors see it: text as it is, numbers and truth values printed, missing empty.
fn field_text(object: &Value, path: &[String]) -> String {
    let mut here = object;
    for key in path {
        match here.get(key) {
            Some(next) => here = next,
            None => return default_text(object, path),
        }
    }
    match here {
        Value::String(text) => text.clone(),
        Value::Null => default_text(object, path),
        other => other.to_string(),
    }
}

/// Fields that Go fills with a zero that is not empty, and the one field with two homes.
fn default_text(object: &Value, path: &[String]) -> String {
    match path.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["spec", "unschedulable" | "hostNetwork"] => "false".to_owned(),
        ["status", "successful"] => object::number(object, &["status", "succeeded"]).unwrap_or(0).to_string(),
        _ => String::new(),
    }
}

fn not_supported(resource: &Resource, label: &str) -> String {
    match (resource.custom, resource.group.as_str(), resource.plural.as_str()) {
        (true, ..) | (_, "", "pods" | "nodes" | "events" | "namespaces" | "secrets" | "services") => {
            format!("field label not supported: {label}")
        }
        (_, "batch", "jobs") => format!("field label {label:?} not supported for Job"),
        _ => {
            format!("{label:?} is not a known field selector: only \"metadata.name\", \"metadata.namespace\"")
        }
    }
}

fn split_terms(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut escaped) = (0, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            ',' => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

fn split_operator(part: &str) -> Option<(&str, bool, &str)> {
    for (at, _) in part.char_indices() {
        let rest = &part[at..];
        for (symbol, equal) in [("!=", false), ("==", true), ("=", true)] {
            if let Some(value) = rest.strip_prefix(symbol) {
                return Some((&part[..at], equal, value));
            }
        }
    }
    None
}

fn unescape(value: &str) -> Result<String, ApiError> {
    let mut out = String::with_capacity(value.len());
    let mut letters = value.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => match letters.next() {
                Some(next @ ('\\' | ',' | '=')) => out.push(next),
                other => {
                    let shown: String = other.into_iter().collect();
                    return Err(ApiError::bad_request(format!(
                        "invalid field selector: invalid escape sequence: \\{shown}"
                    )));
                }
            },
            ',' | '=' => {
                return Err(ApiError::bad_request(format!(
                    "invalid field selector: unescaped special character {letter:?} in {value:?}"
                )));
            }
            other => out.push(other),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_fields() {
        let pod =
            json!({"metadata": {"name": "a"}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}});
        let cases = [
            ("", true),
            ("spec.nodeName=n", true),
            ("spec.nodeName==n,status.phase!=Failed", true),
            ("spec.nodeName!=n", false),
            ("spec.missing=", true),
            ("metadata.name=b", false),
        ];
        for (text, expected) in cases {
            assert_eq!(FieldSelector::parse(text).unwrap().matches(&pod), expected, "{text}");
        }
    }

    #[test]
    fn broken_selectors_are_refused() {
        for text in ["nonsense", "a=b=c", r"a=\x"] {
            assert_eq!(FieldSelector::parse(text).unwrap_err().code, 400, "{text}");
        }
        assert_eq!(FieldSelector::parse(r"a=b\,c").unwrap().terms[0].value, "b,c");
    }
}
