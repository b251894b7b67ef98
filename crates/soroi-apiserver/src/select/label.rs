//! Label selectors: `a=b,c!=d,e in (f,g),h,!i`, and the object form with `matchLabels`.
//!
//! Syntax and error texts follow Kubernetes 1.36 (`apimachinery/pkg/labels/selector.go`).

use serde_json::Value;

use crate::object::{self, Fields};
use crate::status::ApiError;

/// Requirements on labels, all of which must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LabelSelector {
    requirements: Vec<Requirement>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    rule: Rule,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    In(Vec<String>),
    NotIn(Vec<String>),
    Exists,
    Missing,
    Greater(i64),
    Less(i64),
}

impl LabelSelector {
    /// Parses the text of a `labelSelector` parameter.
    ///
    /// # Errors
    /// 400 that says where the text stops making sense.
    pub(crate) fn parse(text: &str) -> Result<Self, ApiError> {
        let mut tokens = Tokens { rest: text };
        let mut requirements = Vec::new();
        if tokens.peek() == Token::End {
            return Ok(Self::default());
        }
        let refuse = |found: &Token<'_>, expected: &str| {
            Err(ApiError::bad_request(format!("found '{}', expected: {expected}", found.text())))
        };
        let mut begins = "!, identifier, or 'end of string'";
        loop {
            match tokens.peek() {
                Token::Word(_) | Token::Not => {}
                other => return refuse(&other, begins),
            }
            requirements.push(
                requirement(&mut tokens)
                    .map_err(|why| ApiError::bad_request(format!("unable to parse requirement: {why}")))?,
            );
            match tokens.next() {
                Token::End => return Ok(Self { requirements }),
                Token::Comma => begins = "identifier after ','",
                other => return refuse(&other, "',' or 'end of string'"),
            }
        }
    }

    /// Reads a `metav1.LabelSelector` object; `None` when it is malformed.
    pub(crate) fn from_object(selector: &Value) -> Option<Self> {
        let mut requirements = Vec::new();
        for (key, value) in object::map(selector, &["matchLabels"]).into_iter().flatten() {
            let rule = Rule::In(vec![value.as_str()?.to_owned()]);
            requirements.push(Requirement { key: key.clone(), rule });
        }
        for expression in object::list(selector, &["matchExpressions"]) {
            let values = || -> Option<Vec<String>> {
                object::list(expression, &["values"]).iter().map(|v| v.as_str().map(str::to_owned)).collect()
            };
            let rule = match object::text(expression, &["operator"]) {
                "In" => Rule::In(values()?),
                "NotIn" => Rule::NotIn(values()?),
                "Exists" => Rule::Exists,
                "DoesNotExist" => Rule::Missing,
                _ => return None,
            };
            requirements.push(Requirement { key: object::text(expression, &["key"]).to_owned(), rule });
        }
        Some(Self { requirements })
    }

    /// Does it ask for nothing?
    pub(crate) fn is_empty(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Do these labels meet every requirement?
    pub(crate) fn matches(&self, labels: Option<&Fields>) -> bool {
        self.requirements.iter().all(|r| {
            let value = labels.and_then(|l| l.get(&r.key)).and_then(Value::as_str);
            match (&r.rule, value) {
                (Rule::In(values), Some(value)) => values.iter().any(|v| v == value),
                (Rule::NotIn(values), Some(value)) => values.iter().all(|v| v != value),
                (Rule::NotIn(_) | Rule::Missing, None) | (Rule::Exists, Some(_)) => true,
                (Rule::Greater(limit), Some(value)) => value.parse().is_ok_and(|n: i64| n > *limit),
                (Rule::Less(limit), Some(value)) => value.parse().is_ok_and(|n: i64| n < *limit),
                _ => false,
            }
        })
    }
}

/// `a=b,c in (d,e),f,!g`: the text that [`LabelSelector::parse`] reads.
impl std::fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (at, Requirement { key, rule }) in self.requirements.iter().enumerate() {
            if at > 0 {
                f.write_str(",")?;
            }
            match rule {
                Rule::In(values) => match values.as_slice() {
                    [one] => write!(f, "{key}={one}")?,
                    many => write!(f, "{key} in ({})", many.join(","))?,
                },
                Rule::NotIn(values) => match values.as_slice() {
                    [one] => write!(f, "{key}!={one}")?,
                    many => write!(f, "{key} notin ({})", many.join(","))?,
                },
                Rule::Exists => f.write_str(key)?,
                Rule::Missing => write!(f, "!{key}")?,
                Rule::Greater(limit) => write!(f, "{key}>{limit}")?,
                Rule::Less(limit) => write!(f, "{key}<{limit}")?,
            }
        }
        Ok(())
    }
}

fn requirement(tokens: &mut Tokens<'_>) -> Result<Requirement, String> {
    let negated = tokens.peek() == Token::Not;
    if negated {
        tokens.next();
    }
    let key = match tokens.next() {
        Token::Word(word) => word.to_owned(),
        other => return Err(format!("found '{}', expected: identifier", other.text())),
    };
    check_key(&key)?;
    if negated {
        return Ok(Requirement { key, rule: Rule::Missing });
    }
    let rule = match tokens.peek() {
        Token::End | Token::Comma => Rule::Exists,
        _ => rule(tokens)?,
    };
    Ok(Requirement { key, rule })
}

fn rule(tokens: &mut Tokens<'_>) -> Result<Rule, String> {
    match tokens.next() {
        Token::Equals => Ok(Rule::In(vec![one_value(tokens)?])),
        Token::NotEquals => Ok(Rule::NotIn(vec![one_value(tokens)?])),
        Token::Greater => Ok(Rule::Greater(one_number(tokens)?)),
        Token::Less => Ok(Rule::Less(one_number(tokens)?)),
        Token::Word("in") => Ok(Rule::In(values(tokens)?)),
        Token::Word("notin") => Ok(Rule::NotIn(values(tokens)?)),
        other => {
            let expected = "in, notin, =, ==, !=, gt, lt";
            Err(format!("found '{}', expected: {expected}", other.text()))
        }
    }
}

fn one_value(tokens: &mut Tokens<'_>) -> Result<String, String> {
    match tokens.peek() {
        Token::Word(word) => {
            tokens.next();
            check_value(word)?;
            Ok(word.to_owned())
        }
        Token::End | Token::Comma => Ok(String::new()),
        other => Err(format!("found '{}', expected: identifier", other.text())),
    }
}

fn one_number(tokens: &mut Tokens<'_>) -> Result<i64, String> {
    let value = one_value(tokens)?;
    let why = "for 'Gt', 'Lt' operators, the value must be an integer";
    value.parse().map_err(|_| format!("values[0][gt]: Invalid value: {value:?}: {why}"))
}

fn values(tokens: &mut Tokens<'_>) -> Result<Vec<String>, String> {
    match tokens.next() {
        Token::Open => {}
        other => return Err(format!("found '{}' expected: '('", other.text())),
    }
    let mut values = Vec::new();
    loop {
        values.push(one_value_or_empty(tokens)?);
        match tokens.next() {
            Token::Comma => {}
            Token::Close => {
                values.sort();
                values.dedup();
                return Ok(values);
            }
            other => return Err(format!("found '{}', expected: ',' or ')'", other.text())),
        }
    }
}

fn one_value_or_empty(tokens: &mut Tokens<'_>) -> Result<String, String> {
    if tokens.peek() == Token::Close { Ok(String::new()) } else { one_value(tokens) }
}

/// What Kubernetes says of a malformed name.
pub(crate) const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
/// What Kubernetes says of a malformed label value.
pub(crate) const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";

fn check_key(key: &str) -> Result<(), String> {
    let name = key.rsplit_once('/').map_or(key, |(_, name)| name);
    if is_qualified_part(name) { Ok(()) } else { Err(format!("key: Invalid value: {key:?}: {NAME_PART}")) }
}

fn check_value(value: &str) -> Result<(), String> {
    if value.is_empty() || is_qualified_part(value) {
        return Ok(());
    }
    Err(format!("values[0][key]: Invalid value: {value:?}: {LABEL_VALUE}"))
}

/// Is this a qualified name's last part, or a label value: at most 63 letters, digits, `-_.`,
/// with a letter or digit at both ends?
pub(crate) fn is_qualified_part(text: &str) -> bool {
    let bytes = text.as_bytes();
    let outer = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
    bytes.len() <= 63
        && outer(bytes.first())
        && outer(bytes.last())
        && bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(b))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Equals,
    NotEquals,
    Not,
    Greater,
    Less,
    Open,
    Close,
    Comma,
    End,
}

impl<'a> Token<'a> {
    fn text(self) -> &'a str {
        match self {
            Self::Word(word) => word,
            Self::Equals => "=",
            Self::NotEquals => "!=",
            Self::Not => "!",
            Self::Greater => ">",
            Self::Less => "<",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
            Self::End => "",
        }
    }
}

struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    fn peek(&self) -> Token<'a> {
        self.split().0
    }

    fn next(&mut self) -> Token<'a> {
        let (token, rest) = self.split();
        self.rest = rest;
        token
    }

    fn split(&self) -> (Token<'a>, &'a str) {
        let text = self.rest.trim_start_matches([' ', '\t', '\r', '\n']);
        let fixed: [(&str, Token<'_>); 9] = [
            ("==", Token::Equals),
            ("!=", Token::NotEquals),
            ("=", Token::Equals),
            ("!", Token::Not),
            (">", Token::Greater),
            ("<", Token::Less),
            ("(", Token::Open),
            (")", Token::Close),
            (",", Token::Comma),
        ];
        for (symbol, token) in fixed {
            if let Some(rest) = text.strip_prefix(symbol) {
                return (token, rest);
            }
        }
        let end = text.find([' ', '\t', '\r', '\n', '=', '!', '>', '<', '(', ')', ',']).unwrap_or(text.len());
        match text.split_at(end) {
            ("", _) => (Token::End, ""),
            (word, rest) => (Token::Word(word), rest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_match_as_in_kubernetes() {
        let labels = json!({"app": "web", "tier": "front", "n": "5", "example.com/x": ""});
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier=front", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("app in (db, web)", true),
            ("app in ()", false),
            ("app notin (db,web)", false),
            ("other notin (a)", true),
            ("app", true),
            ("!app", false),
            ("!nope", true),
            ("nope", false),
            ("n>4,n<6", true),
            ("n>5", false),
            ("example.com/x=", true),
            ("example.com/x", true),
        ];
        for (text, expected) in cases {
            let selector = LabelSelector::parse(text).unwrap();
            assert_eq!(selector.matches(labels.as_object()), expected, "{text}");
        }
    }

    #[test]
    fn malformed_selectors_say_where() {
        let cases = [
            ("=x", "found '=', expected: !, identifier, or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("!=x", "found '!=', expected: !, identifier, or 'end of string'"),
        ];
        for (text, message) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap_err().message, message, "{text}");
        }
    }

    #[test]
    fn the_object_form_matches_too() {
        let selector = LabelSelector::from_object(&json!({
            "matchLabels": {"a": "b"},
            "matchExpressions": [{"key": "c", "operator": "NotIn", "values": ["d"]}],
        }))
        .unwrap();
        assert!(selector.matches(json!({"a": "b"}).as_object()));
        assert!(!selector.matches(json!({"a": "b", "c": "d"}).as_object()));
        assert!(
            LabelSelector::from_object(&json!({"matchExpressions": [{"key": "c", "operator": "Like"}]}))
                .is_none()
        );
    }
}
