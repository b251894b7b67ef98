//! How is a line of a story taken apart? Words, options, names, amounts and spans of time.
//!
//! Knows spelling only. What a word means is decided in `command` and `build`.

use std::collections::BTreeMap;
use std::time::Duration;

use super::ParseError;

/// The namespace of names that do not say another.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Prefix that stories leave out of resource names and labels of their own.
pub const OWN_PREFIX: &str = "example.com/";

/// The words of a command line: bare words in order, and `key=value` options.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) line: usize,
    pub(crate) bare: Vec<String>,
    pub(crate) options: BTreeMap<String, String>,
    taken: usize,
}

impl Words {
    /// Splits at blanks; `key=value` is an option unless the key is empty. Single quotes hold a
    /// word together.
    pub(crate) fn split(line: usize, text: &str) -> Self {
        let mut words = Self { line, ..Self::default() };
        for word in quoted_words(text) {
            match word.split_once('=') {
                Some((key, value)) if !key.is_empty() => {
                    words.options.insert(key.to_owned(), value.to_owned());
                }
                _ => words.bare.push(word),
            }
        }
        words
    }

    pub(crate) fn error(&self, text: impl Into<String>) -> ParseError {
        ParseError { line: self.line, text: text.into() }
    }

    /// The next bare word; `what` says in the error what was expected.
    pub(crate) fn next(&mut self, what: &str) -> Result<String, ParseError> {
        let word = self.bare.get(self.taken).cloned();
        self.taken += 1;
        word.ok_or_else(|| self.error(format!("{what} is missing")))
    }

    /// The next bare word, if there is one.
    pub(crate) fn maybe(&mut self) -> Option<String> {
        let word = self.bare.get(self.taken).cloned();
        self.taken += 1;
        word
    }

    /// The bare words that are left, ranges like `n1..n4` spelt out.
    pub(crate) fn rest(&mut self) -> Vec<String> {
        let rest = self.bare.iter().skip(self.taken).flat_map(|word| spelt_out(word)).collect();
        self.taken = self.bare.len();
        rest
    }

    /// Whether the bare word `flag` is among those left; takes it away.
    pub(crate) fn flag(&mut self, flag: &str) -> bool {
        let place = self.bare.iter().skip(self.taken).position(|word| word == flag);
        match place {
            Some(place) => {
                self.bare.remove(self.taken + place);
                true
            }
            None => false,
        }
    }

    /// Takes the option `key`.
    pub(crate) fn option(&mut self, key: &str) -> Option<String> {
        self.options.remove(key)
    }

    /// Takes the option `key` as a whole number.
    pub(crate) fn number(&mut self, key: &str) -> Result<Option<i64>, ParseError> {
        let Some(text) = self.option(key) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| self.error(format!("{key}: `{text}` is no whole number")))
    }

    /// Takes all options whose key starts with `prefix`; the prefix is cut off.
    pub(crate) fn prefixed(&mut self, prefix: &str) -> BTreeMap<String, String> {
        let (with, without) =
            std::mem::take(&mut self.options).into_iter().partition(|(key, _)| key.starts_with(prefix));
        self.options = without;
        let with: BTreeMap<String, String> = with;
        with.into_iter().map(|(key, value)| (key[prefix.len()..].to_owned(), value)).collect()
    }

    /// Takes the options that name resources.
    pub(crate) fn resources(&mut self) -> BTreeMap<String, String> {
        let (resources, others): (BTreeMap<_, _>, _) =
            std::mem::take(&mut self.options).into_iter().partition(|(key, _)| is_resource(key));
        self.options = others;
        resources.into_iter().map(|(key, amount)| (resource_name(&key), amount)).collect()
    }

    /// Complains about whatever nobody took: a misspelt option must not pass unseen.
    pub(crate) fn end(&self) -> Result<(), ParseError> {
        if let Some(key) = self.options.keys().next() {
            return Err(self.error(format!("unknown option `{key}=`")));
        }
        match self.bare.get(self.taken) {
            Some(word) => Err(self.error(format!("`{word}` is one word too many"))),
            None => Ok(()),
        }
    }
}

fn quoted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut quoted = false;
    for letter in text.chars() {
        match letter {
            '\'' => quoted = !quoted,
            ' ' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// `n1..n4` as `n1 n2 n3 n4`; every other word as it is.
fn spelt_out(word: &str) -> Vec<String> {
    let range = word.split_once("..").and_then(|(first, last)| {
        let stem = first.trim_end_matches(|letter: char| letter.is_ascii_digit());
        let from: u32 = first[stem.len()..].parse().ok()?;
        let to: u32 = last.strip_prefix(stem)?.parse().ok()?;
        Some((from..=to).map(|number| format!("{stem}{number}")).collect())
    });
    range.unwrap_or_else(|| vec![word.to_owned()])
}

/// Whether an option's key names a resource.
fn is_resource(key: &str) -> bool {
    matches!(key, "cpu" | "memory" | "pods" | "ephemeral-storage" | "gpu" | "nic")
        || key.starts_with("hugepages-")
        || (key.contains('/') && !key.contains(':'))
}

/// The full name of a resource: `gpu` and `nic` are of our own domain.
pub(crate) fn resource_name(key: &str) -> String {
    if matches!(key, "gpu" | "nic") { format!("{OWN_PREFIX}{key}") } else { key.to_owned() }
}

/// The full key of a label: `rack` and `block` are levels of the topology, `host` the node itself.
pub(crate) fn label_name(key: &str) -> String {
    match key {
        "rack" | "block" => format!("topology.{OWN_PREFIX}{key}"),
        "host" => "kubernetes.io/hostname".to_owned(),
        "pool" => format!("{OWN_PREFIX}{key}"),
        other => other.to_owned(),
    }
}

/// `namespace/name`, or a name in the default namespace.
pub(crate) fn full_name(text: &str) -> (String, String) {
    match text.split_once('/') {
        Some((namespace, name)) => (namespace.to_owned(), name.to_owned()),
        None => (DEFAULT_NAMESPACE.to_owned(), text.to_owned()),
    }
}

/// A span of time such as `40s`, `1.5s`, `300ms`, `5m` or `1h`.
pub(crate) fn span(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let millis = match &text[digits.len()..] {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" => 60_000.0,
        "h" => 3_600_000.0,
        _ => return None,
    };
    let amount: f64 = digits.parse().ok()?;
    Duration::try_from_secs_f64(amount * millis / 1_000.0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_words_and_options() {
        let mut words = Words::split(1, "node n1..n3 gpu=2 label:a/b=c  'one word'");
        assert_eq!(words.next("verb").unwrap(), "node");
        assert_eq!(words.resources(), BTreeMap::from([("example.com/gpu".into(), "2".into())]));
        assert_eq!(words.prefixed("label:"), BTreeMap::from([("a/b".into(), "c".into())]));
        assert_eq!(words.rest(), ["n1", "n2", "n3", "one word"]);
        words.end().unwrap();
    }

    #[test]
    fn what_nobody_takes_is_an_error() {
        let words = Words::split(7, "job train gpus=1");
        assert_eq!(words.end().unwrap_err().to_string(), "line 7: unknown option `gpus=`");
    }

    #[test]
    fn spans_have_units() {
        assert_eq!(span("1.5s"), Some(Duration::from_millis(1_500)));
        assert_eq!(span("2m"), Some(Duration::from_secs(120)));
        assert_eq!(span("2"), None);
        assert_eq!(span("-1s"), None);
    }
}
