//! What does a column's JSON path find? The simple paths that definitions may use.
//!
//! Steps are `.key`, `['key']`, `[0]`, `[*]` and a filter such as `[?(@.type=="Ready")]` (or `!=`,
//! or only `[?(@.key)]`), as `client-go/util/jsonpath` reads them.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JsonPath {
    steps: Vec<Step>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Key(String),
    /// An item of a list; negative from its end.
    Item(i64),
    Every,
    Where(JsonPath, Test),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Test {
    Exists,
    Is(Value),
    IsNot(Value),
}

impl JsonPath {
    /// Reads a path; `None` when it has a form that columns cannot have.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim();
        while !rest.is_empty() {
            let step;
            (step, rest) = match rest.strip_prefix('[') {
                Some(inside) => bracket(inside)?,
                None => key(rest.strip_prefix('.').unwrap_or(rest))?,
            };
            steps.push(step);
        }
        (!steps.is_empty()).then_some(Self { steps })
    }

    /// The first value that it finds.
    pub(crate) fn first<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        find(&self.steps, value)
    }
}

fn key(text: &str) -> Option<(Step, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let name = name.replace('\\', "");
    match name.as_str() {
        "" => None,
        "*" => Some((Step::Every, rest)),
        name if name.contains(['=', '(', ')', '\'', '"', '@', ' ', ']']) => None,
        _ => Some((Step::Key(name), rest)),
    }
}

fn bracket(inside: &str) -> Option<(Step, &str)> {
    if let Some(filter) = inside.strip_prefix("?(") {
        let end = outside_quotes(filter, ")]")?;
        let (filter, rest) = (&filter[..end], &filter[end + 2..]);
        return Some((test(filter.trim())?, rest));
    }
    let end = outside_quotes(inside, "]")?;
    let (name, rest) = (&inside[..end], &inside[end + 1..]);
    let step = match name {
        "*" => Step::Every,
        _ => match name.parse() {
            Ok(number) => Step::Item(number),
            Err(_) => Step::Key(unquoted(name)?.to_owned()),
        },
    };
    Some((step, rest))
}

/// Where `mark` first stands outside of quotes.
fn outside_quotes(text: &str, mark: &str) -> Option<usize> {
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), _) if open == letter => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, _) if text[at..].starts_with(mark) => return Some(at),
            _ => {}
        }
    }
    None
}

fn unquoted(text: &str) -> Option<&str> {
    let strip = |quote| text.strip_prefix(quote).and_then(|t: &str| t.strip_suffix(quote));
    strip('\'').or_else(|| strip('"'))
}

fn test(text: &str) -> Option<Step> {
    for (sign, equal) in [("==", true), ("!=", false)] {
        if let Some(at) = outside_quotes(text, sign) {
            let path = relative(&text[..at])?;
            let wanted = text[at + sign.len()..].trim();
            let wanted = match unquoted(wanted) {
                Some(text) => text.into(),
                None => serde_json::from_str(wanted).ok()?,
            };
            return Some(Step::Where(path, if equal { Test::Is(wanted) } else { Test::IsNot(wanted) }));
        }
    }
    Some(Step::Where(relative(text)?, Test::Exists))
}

fn relative(text: &str) -> Option<JsonPath> {
    JsonPath::parse(text.trim().strip_prefix('@')?)
}

fn find<'a>(steps: &[Step], value: &'a Value) -> Option<&'a Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    let within = |items: &'a Value| -> Vec<&'a Value> {
        match items {
            Value::Array(items) => items.iter().collect(),
            Value::Object(fields) => fields.values().collect(),
            _ => Vec::new(),
        }
    };
    match step {
        Step::Key(key) => find(rest, value.get(key)?),
        Step::Item(at) => {
            let items = value.as_array()?;
            let length = i64::try_from(items.len()).ok()?;
            let at = if *at < 0 { length.checked_add(*at)? } else { *at };
            find(rest, items.get(usize::try_from(at).ok()?)?)
        }
        Step::Every => within(value).into_iter().find_map(|item| find(rest, item)),
        Step::Where(path, test) => {
            within(value).into_iter().filter(|item| test.holds(path.first(item))).find_map(|i| find(rest, i))
        }
    }
}

impl Test {
    fn holds(&self, found: Option<&Value>) -> bool {
        match self {
            Self::Exists => found.is_some(),
            Self::Is(wanted) => found == Some(wanted),
            Self::IsNot(wanted) => found.is_some_and(|found| found != wanted),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn paths_find_what_columns_name() {
        let object = json!({
            "spec": {"queue.name": "a", "items": [1, 2], "deep": {"x": null}},
            "status": {"conditions": [
                {"type": "QuotaReserved", "status": "False"},
                {"type": "Admitted", "status": "True", "reason": "a)]b"},
            ]},
        });
        let cases = [
            (".status.conditions[?(@.type==\"Admitted\")].status", Some(json!("True"))),
            (".status.conditions[?(@.type == 'Finished')].status", None),
            (".status.conditions[?(@.reason)].type", Some(json!("Admitted"))),
            (".status.conditions[?(@.type!=\"Admitted\")].status", Some(json!("False"))),
            (".status.conditions[?(@.reason==\"a)]b\")].type", Some(json!("Admitted"))),
            (".spec['queue.name']", Some(json!("a"))),
            (".spec.queue\\.name", None),
            (".spec.items[-1]", Some(json!(2))),
            (".spec.items[5]", None),
            (".spec.items[*]", Some(json!(1))),
            (".spec.deep.x", Some(json!(null))),
            (".nothing.there", None),
        ];
        for (path, expected) in cases {
            assert_eq!(JsonPath::parse(path).unwrap().first(&object).cloned(), expected, "{path}");
        }
        for path in ["", ".", "..x", ".a[", ".a[b]", ".a[?(b)]", ".a[?(@.b=c)]"] {
            assert!(JsonPath::parse(path).is_none(), "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_panics(text in "[a@\\[\\].?()='\"*9\\\\-]{0,20}") {
            let found = JsonPath::parse(&text);
            let value = json!({"a": [{"a": 1}, {"a": {"a": "b"}}]});
            let _ = found.as_ref().map(|path| path.first(&value));
        }
    }
}
