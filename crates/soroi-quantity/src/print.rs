//! From amount to the canonical text: the largest suffix that leaves a whole mantissa.

use std::fmt;

use crate::{Format, NANOS_PER_UNIT, Quantity};

const DECIMAL: [&str; 10] = ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

impl fmt::Display for Quantity {
    /// The canonical text, as Kubernetes prints it (`Quantity.CanonicalizeBytes`): `1024Mi` is
    /// `1Gi`, `0.5` is `500m`, `1.5Gi` is `1536Mi`; binary amounts below 1024 or with a fraction
    /// are printed in decimal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (units, whole) = self.per(NANOS_PER_UNIT);
        match self.format() {
            _ if self.is_zero() => f.pad("0"),
            Format::BinarySi if whole && units.abs() >= 1024 => f.pad(&binary(units)),
            Format::BinarySi | Format::DecimalSi => f.pad(&decimal(self.nanos())),
            Format::DecimalExponent => f.pad(&exponent(self.nanos())),
        }
    }
}

fn binary(mut units: i128) -> String {
    let mut steps = 0;
    while steps < BINARY.len() - 1 && units % 1024 == 0 {
        units /= 1024;
        steps += 1;
    }
    format!("{units}{}", BINARY[steps])
}

fn decimal(nanos: i128) -> String {
    let (mantissa, steps) = thousands(nanos, DECIMAL.len() - 1);
    format!("{mantissa}{}", DECIMAL[steps])
}

fn exponent(nanos: i128) -> String {
    let (mantissa, steps) = thousands(nanos, usize::MAX);
    match steps * 3 {
        9 => mantissa.to_string(),
        above @ 10.. => format!("{mantissa}e{}", above - 9),
        below => format!("{mantissa}e-{}", 9 - below),
    }
}

/// Divides by 1000 as long as that is exact, at most `most` times; not for zero.
fn thousands(mut mantissa: i128, most: usize) -> (i128, usize) {
    let mut steps = 0;
    while steps < most && mantissa % 1000 == 0 {
        mantissa /= 1000;
        steps += 1;
    }
    (mantissa, steps)
}
