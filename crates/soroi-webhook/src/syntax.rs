//! How names, labels and selectors are spelt (Kubernetes, `apimachinery/pkg/util/validation`).

use serde_json::Value;

use crate::field::Findings;
use crate::json::{entries, items};

const NAME_LEN_MAX: usize = 253;
const LABEL_LEN_MAX: usize = 63;

/// What a DNS-1123 subdomain is, for people.
pub(crate) const SUBDOMAIN_WORDS: &str = "must consist of lower case letters, digits, '-' and '.', and begin and end with a letter or digit (at most 253 characters)";
/// What a label key is, for people.
pub(crate) const LABEL_KEY_WORDS: &str = "must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";
/// What a label value is, for people.
const LABEL_VALUE_WORDS: &str = "must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";

/// Whether a text is the name of an object (DNS-1123 subdomain).
pub(crate) fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let ends = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        ends(part.as_bytes().first())
            && ends(part.as_bytes().last())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= NAME_LEN_MAX && text.split('.').all(part)
}

/// Whether a text is a label key.
pub(crate) fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && !name.is_empty() && is_label_value(name),
        None => !text.is_empty() && is_label_value(text),
    }
}

/// Whether a text is a label value. An empty one is.
pub(crate) fn is_label_value(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    text.len() <= LABEL_LEN_MAX
        && ends(text.as_bytes().first())
        && ends(text.as_bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

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
    for (ix, expression) in items(&selector["matchExpressions"]).iter().enumerate() {
        let path = format!("{path}.matchExpressions[{ix}]");
        if expression["key"].as_str().is_some_and(|key| !is_label_key(key)) {
            findings.invalid(format!("{path}.key"), &expression["key"], LABEL_KEY_WORDS);
        }
        let values = items(&expression["values"]);
        match expression["operator"].as_str() {
            Some("In" | "NotIn") if values.is_empty() => {
                findings.required(format!("{path}.values"), "must be given for operator In or NotIn");
            }
            Some("Exists" | "DoesNotExist") if !values.is_empty() => {
                findings.forbidden(
                    format!("{path}.values"),
                    "must not be given for operator Exists or DoesNotExist",
                );
            }
            Some("In" | "NotIn" | "Exists" | "DoesNotExist") => {}
            _ => findings.not_supported(
                format!("{path}.operator"),
                &expression["operator"],
                &["In", "NotIn", "Exists", "DoesNotExist"],
            ),
        }
        for (at, value) in values.iter().enumerate() {
            if value.as_str().is_some_and(|value| !is_label_value(value)) {
                findings.invalid(format!("{path}.values[{at}]"), value, LABEL_VALUE_WORDS);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_told_from_others() {
        for name in ["a", "team-a", "a.b-c.d1", &"x".repeat(253)] {
            assert!(is_subdomain(name), "{name}");
        }
        for name in ["", "A", "-a", "a-", "a..b", ".a", "a_b", &"x".repeat(254)] {
            assert!(!is_subdomain(name), "{name}");
        }
        for key in ["rack", "cloud.provider.com/topology-rack", "A_b.c", "x/Y"] {
            assert!(is_label_key(key), "{key}");
        }
        for key in ["", "/a", "a/", "a/b/c", "A.com/x", "-a", "a b", &"x".repeat(64)] {
            assert!(!is_label_key(key), "{key}");
        }
        assert!(is_label_value(""));
        assert!(!is_label_value("a/b"));
    }
}
