//! From text to amount. Knows the grammar of quantities and how Kubernetes rounds and caps.

use std::fmt;
use std::str::FromStr;

use crate::{Format, NANOS_MAX, Quantity};

/// A text that is no quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("quantity {text:?}: {problem} at position {position}")]
pub struct ParseError {
    /// The text.
    pub text: String,
    /// Where reading it failed, in bytes from 0.
    pub position: usize,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong with a text that is no quantity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Problem {
    /// There is no digit where the number should be.
    NoDigits,
    /// After the number comes something that is no suffix.
    UnknownSuffix,
    /// After `e` or `E` comes something that is no whole number.
    BadExponent,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDigits => "expected a number",
            Self::UnknownSuffix => {
                "expected one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3"
            }
            Self::BadExponent => "expected a whole number as exponent",
        })
    }
}

impl FromStr for Quantity {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = Number::scan(text)?;
        let suffix = Suffix::scan(text, number.end)?;
        Ok(amount(&number, suffix))
    }
}

/// The digits of a quantity, cut out of its text.
struct Number<'a> {
    negative: bool,
    whole: &'a [u8],
    fraction: &'a [u8],
    end: usize,
}

impl<'a> Number<'a> {
    fn scan(text: &'a str) -> Result<Self, ParseError> {
        let bytes = text.as_bytes();
        let digits_from =
            |start: usize| start + bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let start = usize::from(matches!(bytes.first(), Some(b'+' | b'-')));
        let whole_end = digits_from(start);
        let (fraction, end) = match bytes.get(whole_end) {
            Some(b'.') => (whole_end + 1, digits_from(whole_end + 1)),
            _ => (whole_end, whole_end),
        };
        if start == whole_end && fraction == end {
            return Err(error(text, start, Problem::NoDigits));
        }
        Ok(Self {
            negative: bytes.first() == Some(&b'-'),
            whole: &bytes[start..whole_end],
            fraction: &bytes[fraction..end],
            end,
        })
    }

    fn digits(&self) -> impl Iterator<Item = i128> {
        self.whole.iter().chain(self.fraction).map(|digit| i128::from(digit - b'0'))
    }
}

/// What the number is multiplied by.
#[derive(Clone, Copy)]
enum Suffix {
    /// A power of two.
    Binary(u32),
    /// A power of ten, and how it was written.
    Decimal(i64, Format),
}

impl Suffix {
    fn scan(text: &str, start: usize) -> Result<Self, ParseError> {
        let si = |exponent| Ok(Self::Decimal(exponent, Format::DecimalSi));
        match &text[start..] {
            "n" => si(-9),
            "u" => si(-6),
            "m" => si(-3),
            "" => si(0),
            "k" => si(3),
            "M" => si(6),
            "G" => si(9),
            "T" => si(12),
            "P" => si(15),
            "E" => si(18),
            "Ki" => Ok(Self::Binary(10)),
            "Mi" => Ok(Self::Binary(20)),
            "Gi" => Ok(Self::Binary(30)),
            "Ti" => Ok(Self::Binary(40)),
            "Pi" => Ok(Self::Binary(50)),
            "Ei" => Ok(Self::Binary(60)),
            other if other.starts_with(['e', 'E']) => Self::exponent(text, start + 1),
            _ => Err(error(text, start, Problem::UnknownSuffix)),
        }
    }

    fn exponent(text: &str, start: usize) -> Result<Self, ParseError> {
        let exponent = &text[start..];
        let digits = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error(text, start, Problem::BadExponent));
        }
        // An exponent too large for an i64 is beyond every bound in its direction already.
        let bound = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
        Ok(Self::Decimal(exponent.parse().unwrap_or(bound), Format::DecimalExponent))
    }
}

fn error(text: &str, position: usize, problem: Problem) -> ParseError {
    ParseError { text: text.to_owned(), position, problem }
}

/// Multiplies out. Rounds fractions of a nano up, away from zero, and caps: binary amounts at
/// 2^63 - 1 units as Kubernetes does, all others at the bound of [`Quantity`].
fn amount(number: &Number<'_>, suffix: Suffix) -> Quantity {
    let (nanos, format) = match suffix {
        Suffix::Decimal(exponent, format) => (decimal_nanos(number, exponent), format),
        Suffix::Binary(exponent) => binary_nanos(number, exponent),
    };
    Quantity::from_nanos(if number.negative { -nanos } else { nanos }, format)
}

/// `digits × 10^(exponent + 9 - fraction digits)`, rounded up, capped at [`NANOS_MAX`].
fn decimal_nanos(number: &Number<'_>, exponent: i64) -> i128 {
    let fraction_len = i64::try_from(number.fraction.len()).unwrap_or(i64::MAX);
    let shift = exponent.saturating_add(9).saturating_sub(fraction_len);
    // Digits right of the last nano only decide whether to round up.
    let all = number.whole.len() + number.fraction.len();
    let dropped = usize::try_from(shift.saturating_neg()).unwrap_or(0).min(all);
    let mut nanos = 0_i128;
    for digit in number.digits().take(all - dropped) {
        nanos = nanos.saturating_mul(10).saturating_add(digit);
    }
    if number.digits().skip(all - dropped).any(|digit| digit != 0) {
        nanos = nanos.saturating_add(1);
    }
    if shift > 0 && nanos != 0 {
        // 10^38 is beyond the bound of any whole number of nanos.
        let power = u32::try_from(shift).unwrap_or(u32::MAX).min(38);
        nanos = nanos.saturating_mul(10_i128.pow(power));
    }
    nanos.min(NANOS_MAX)
}

/// `number × 2^exponent` units, fractions of a nano rounded up, capped at 2^63 - 1 units.
fn binary_nanos(number: &Number<'_>, exponent: u32) -> (i128, Format) {
    let cap = i128::from(i64::MAX) * crate::NANOS_PER_UNIT;
    let mut whole = 0_i128;
    for digit in number.whole {
        // Already 2^63 whole units are beyond the cap.
        whole = (whole * 10 + i128::from(digit - b'0')).min(1 << 63);
    }
    let fraction = fraction_nanos(number.fraction, exponent);
    let nanos = (whole << exponent).saturating_mul(crate::NANOS_PER_UNIT).saturating_add(fraction).min(cap);
    // As Kubernetes: what is left below one unit is not worth a binary suffix.
    let small = nanos > 0 && nanos < crate::NANOS_PER_UNIT;
    (nanos, if small { Format::DecimalSi } else { Format::BinarySi })
}

/// `0.digits × 2^exponent` units in nanos, rounded up; exact for any number of digits.
///
/// Long multiplication from the last digit on: the carry left of the point is the part of the
/// product that is whole in nanos, and digits that stay right of it make it round up.
fn fraction_nanos(fraction: &[u8], exponent: u32) -> i128 {
    let factor = (1_i128 << exponent) * crate::NANOS_PER_UNIT;
    let mut carry = 0_i128;
    let mut rest = false;
    for digit in fraction.iter().rev() {
        // At most (9 × factor + factor): far below the bounds of i128.
        let product = i128::from(digit - b'0') * factor + carry;
        rest |= product % 10 != 0;
        carry = product / 10;
    }
    carry + i128::from(rest)
}
