//! How does a terminal look? Colours where there is a terminal, plain text elsewhere.
//!
//! Knows escape codes; never what the text is about.

use std::io::IsTerminal as _;

/// Whether colours are used, decided once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paint {
    on: bool,
}

/// What a colour says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    /// As it should be.
    Good,
    /// Not as it should be.
    Bad,
    /// Worth a look.
    Strong,
    /// Less important.
    Faint,
}

impl Paint {
    /// Colours if standard output is a terminal and nobody set `NO_COLOR` (<https://no-color.org>:
    /// set and not empty).
    pub(crate) fn for_stdout() -> Self {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { on: !refused && std::io::stdout().is_terminal() }
    }

    /// `text` in a tone.
    pub(crate) fn tone(self, tone: Tone, text: &str) -> String {
        if !self.on {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Strong => "1",
            Tone::Faint => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }
}

/// A whole number with commas: `12,345`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_in_thousands() {
        assert_eq!(grouped(7), "7");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(123_456_789), "123,456,789");
    }

    #[test]
    fn plain_text_has_no_escape_codes() {
        assert_eq!(Paint { on: false }.tone(Tone::Good, "ok"), "ok");
        assert_eq!(Paint { on: true }.tone(Tone::Good, "ok"), "\x1b[32mok\x1b[0m");
    }
}
