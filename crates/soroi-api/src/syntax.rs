//! How names and labels are spelt (Kubernetes, `apimachinery/pkg/util/validation`).

/// Longest name of an object.
const NAME_LEN_MAX: usize = 253;
/// Longest label value, and longest name in a label key.
const LABEL_LEN_MAX: usize = 63;

/// What a DNS-1123 subdomain is, for people.
pub const SUBDOMAIN_WORDS: &str = "must consist of lower case letters, digits, '-' and '.', and begin and end with a letter or digit (at most 253 characters)";
/// What a label key is, for people.
pub const LABEL_KEY_WORDS: &str = "must be a label key: an optional DNS prefix and '/', then at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";
/// What a label value is, for people.
pub const LABEL_VALUE_WORDS: &str = "must be a label value: at most 63 letters, digits, '-', '_' or '.', beginning and ending with a letter or digit";

/// Whether a text is the name of an object (DNS-1123 subdomain).
pub fn is_subdomain(text: &str) -> bool {
    let part = |part: &str| {
        let ends = |byte: Option<&u8>| byte.is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        ends(part.as_bytes().first())
            && ends(part.as_bytes().last())
            && part.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    text.len() <= NAME_LEN_MAX && text.split('.').all(part)
}

/// Whether a text is a label key.
pub fn is_label_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_subdomain(prefix) && !name.is_empty() && is_label_value(name),
        None => !text.is_empty() && is_label_value(text),
    }
}

/// Whether a text is a label value. An empty one is.
pub fn is_label_value(text: &str) -> bool {
    let ends = |byte: Option<&u8>| byte.is_none_or(u8::is_ascii_alphanumeric);
    text.len() <= LABEL_LEN_MAX
        && ends(text.as_bytes().first())
        && ends(text.as_bytes().last())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
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
