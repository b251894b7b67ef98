//! What does the query string ask for? Parsed once, into typed options.
//!
//! Knows the query parameters of the Kubernetes API. Must never know a kind.

use std::time::Duration;

use crate::read::Extent;
use crate::select::{FieldSelector, LabelSelector};
use crate::status::{ApiError, FieldError};

/// The decoded `key=value` pairs of a query string.
#[derive(Debug, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    /// Decodes a query string; what is malformed is taken literally, as Go does.
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                (decode(key, true), decode(value, true))
            })
            .collect();
        Self { pairs }
    }

    /// The first value of a parameter.
    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.pairs.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    fn text(&self, key: &str) -> &str {
        self.get(key).unwrap_or("")
    }

    /// A truth value: given without a value it is true, as Go's conversion has it.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| !matches!(v.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, ApiError> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: invalid syntax"))
            }),
        }
    }
}

/// Percent decoding; `+` is a space in query strings, but not in paths.
pub(crate) fn decode(raw: &str, plus_is_space: bool) -> String {
    let bytes = raw.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let hex = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match (byte, hex.and_then(|two| u8::from_str_radix(two, 16).ok())) {
            (b'%', Some(decoded)) => {
                out.push(decoded);
                at += 3;
                continue;
            }
            (b'+', _) if plus_is_space => out.push(b' '),
            _ => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// How a list or watch narrows and places itself.
#[derive(Debug)]
pub(crate) struct ListOptions {
    pub(crate) labels: LabelSelector,
    pub(crate) fields: FieldSelector,
    /// Most items of one page; 0 is all.
    pub(crate) limit: usize,
    pub(crate) page: Option<Page>,
    pub(crate) revision: Revision,
    pub(crate) bookmarks: bool,
    pub(crate) initial_events: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) extent: Extent,
}

/// Which state a list shows, or where a watch begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revision {
    /// The newest.
    Latest,
    /// Any; ours is always the newest.
    Any,
    /// Not older than this.
    AtLeast(u64),
    /// Exactly this.
    Exactly(u64),
}

/// Where a list goes on: the revision of its first page and the last key shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) revision: u64,
    pub(crate) after: (String, String),
}

impl Page {
    /// The `continue` token.
    pub(crate) fn token(&self) -> String {
        let text = format!("{}\n{}\n{}", self.revision, self.after.0, self.after.1);
        text.bytes().map(|b| format!("{b:02x}")).collect()
    }

    fn parse(token: &str) -> Option<Self> {
        let bytes: Vec<u8> = token
            .as_bytes()
            .chunks(2)
            .map(|two| std::str::from_utf8(two).ok().and_then(|two| u8::from_str_radix(two, 16).ok()))
            .collect::<Option<_>>()?;
        let text = String::from_utf8(bytes).ok()?;
        let mut parts = text.split('\n');
        let revision = parts.next()?.parse().ok()?;
        let after = (parts.next()?.to_owned(), parts.next()?.to_owned());
        parts.next().is_none().then_some(Self { revision, after })
    }
}

impl ListOptions {
    /// Reads the options of a list (`watching` false) or a watch.
    ///
    /// # Errors
    /// 400 for a malformed value, 422 for values that exclude each other.
    pub(crate) fn parse(query: &Query, watching: bool) -> Result<Self, ApiError> {
        let page = match query.text("continue") {
            "" => None,
            token => Some(
                Page::parse(token)
                    .ok_or_else(|| ApiError::bad_request("continue key is not valid: encoding"))?,
            ),
        };
        let initial_events = query.flag("sendInitialEvents");
        let limit = query.number("limit")?.unwrap_or(0);
        Ok(Self {
            labels: LabelSelector::parse(query.text("labelSelector"))?,
            fields: FieldSelector::parse(query.text("fieldSelector"))?,
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
            revision: revision(query, watching, page.is_some())?,
            page,
            bookmarks: query.flag("allowWatchBookmarks"),
            initial_events,
            extent: Extent::Whole,
            timeout: query.number("timeoutSeconds")?.filter(|s| *s > 0).map(Duration::from_secs),
        })
    }
}

/// The rules for `resourceVersion` and `resourceVersionMatch` (`apimachinery`'s
/// `ValidateListOptions`).
fn revision(query: &Query, watching: bool, paging: bool) -> Result<Revision, ApiError> {
    let (raw, rule) = (query.text("resourceVersion"), query.text("resourceVersionMatch"));
    let streaming = watching && query.get("sendInitialEvents").is_some();
    let refuse = |error: FieldError| Err(ApiError::invalid("meta.k8s.io", "ListOptions", "", &[error]));
    let field = "resourceVersionMatch";
    if !rule.is_empty() {
        if watching && !streaming {
            return refuse(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
        if raw.is_empty() && !streaming {
            return refuse(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if paging {
            return refuse(FieldError::forbidden(
                field,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if !matches!(rule, "Exact" | "NotOlderThan") || (streaming && rule == "Exact") {
            let supported: &[&str] = if streaming { &["NotOlderThan"] } else { &["Exact", "NotOlderThan"] };
            return refuse(FieldError::not_supported(field, rule, supported));
        }
        if rule == "Exact" && raw == "0" {
            return refuse(FieldError::forbidden(
                field,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    } else if streaming && query.flag("sendInitialEvents") {
        return refuse(FieldError::forbidden(
            field,
            "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        ));
    }
    match raw {
        "" => Ok(Revision::Latest),
        "0" => Ok(Revision::Any),
        text => {
            let number = text.parse().map_err(|_| {
                let why = format!("strconv.ParseUint: parsing {text:?}: invalid syntax");
                let error = FieldError::invalid("resourceVersion", text, why);
                // A watch fails at another place in Kubernetes, which has no better word for it.
                if watching {
                    ApiError::unknown(error.to_string())
                } else {
                    ApiError::invalid("", "", "", &[error])
                }
            })?;
            let exactly = rule == "Exact";
            Ok(if exactly { Revision::Exactly(number) } else { Revision::AtLeast(number) })
        }
    }
}

/// What to do with fields that the schema does not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValidation {
    Strict,
    Warn,
    Ignore,
}

/// How a write is carried out.
#[derive(Clone, Debug)]
pub(crate) struct WriteOptions {
    /// Everything but the storing.
    pub(crate) dry_run: bool,
    pub(crate) manager: Option<String>,
    pub(crate) validation: FieldValidation,
    pub(crate) force: bool,
}

impl WriteOptions {
    /// Reads the options of a create, update or patch; `kind` names them in errors.
    ///
    /// # Errors
    /// 422 for a value that is not supported.
    pub(crate) fn parse(query: &Query, kind: &str) -> Result<Self, ApiError> {
        let refuse = |error: FieldError| ApiError::invalid("meta.k8s.io", kind, "", &[error]);
        let validation = match query.text("fieldValidation") {
            "Strict" => FieldValidation::Strict,
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                return Err(refuse(FieldError::not_supported("fieldValidation", other, &supported)));
            }
        };
        Ok(Self {
            dry_run: dry_run(query.get("dryRun")).map_err(refuse)?,
            manager: query.get("fieldManager").filter(|m| !m.is_empty()).map(str::to_owned),
            validation,
            force: query.flag("force"),
        })
    }
}

/// Is this a trial? Only `All` is supported.
pub(crate) fn dry_run(value: Option<&str>) -> Result<bool, FieldError> {
    match value {
        None | Some("") => Ok(false),
        Some("All") => Ok(true),
        Some(other) => Err(FieldError::not_supported("dryRun", other, &["All"])),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percent_signs_are_decoded_and_broken_ones_kept() {
        let cases =
            [("a%3Db+c", "a=b c"), ("100%", "100%"), ("%zz", "%zz"), ("%E6%8F%83", "揃"), ("%2", "%2")];
        for (raw, expected) in cases {
            assert_eq!(decode(raw, true), expected);
        }
        assert_eq!(decode("a+b", false), "a+b");
    }

    #[test]
    fn page_tokens_survive_the_round_trip() {
        let page = Page { revision: 42, after: ("ns".into(), "a-b".into()) };
        assert_eq!(Page::parse(&page.token()), Some(page));
        assert_eq!(Page::parse("zz"), None);
        assert_eq!(Page::parse("abc"), None);
    }

    proptest! {
        #[test]
        fn no_query_string_panics(raw in "\\PC{0,60}") {
            let query = Query::parse(&raw);
            let _ = ListOptions::parse(&query, true);
            let _ = WriteOptions::parse(&query, "CreateOptions");
        }

        #[test]
        fn no_option_value_panics(selector in "[a-z=!,() \"'.]{0,30}", revision in "[0-9a-z-]{0,22}") {
            let query = Query::parse(&format!(
                "labelSelector={selector}&fieldSelector={selector}&resourceVersion={revision}&continue={revision}&limit={revision}&timeoutSeconds={revision}"
            ));
            let _ = ListOptions::parse(&query, false);
        }
    }
}
