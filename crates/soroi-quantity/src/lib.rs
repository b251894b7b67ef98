//! Exact Kubernetes quantities: integers in base units, rounded and printed as Kubernetes does.
//!
//! ```
//! use soroi_quantity::{Quantity, base_units, display};
//!
//! let memory: Quantity = "1024Mi".parse()?;
//! assert_eq!(memory.to_string(), "1Gi");
//! assert_eq!(base_units("memory", &memory), 1 << 30);
//!
//! let cpu: Quantity = "0.5".parse()?;
//! assert_eq!(base_units("cpu", &cpu), 500);
//! assert_eq!(display("cpu", 1500), "1500m");
//! # Ok::<(), soroi_quantity::ParseError>(())
//! ```
//!
//! The rules are those of `k8s.io/apimachinery/pkg/api/resource` (Kubernetes 1.36), with five
//! differences, all of them on purpose:
//!
//! - a text without any digit (`""`, `"+"`, `"Ki"`) is an error; Go's parser reads it as 0, the
//!   published pattern of quantities forbids it;
//! - amounts beyond ±10^28 stay at that bound; Go keeps them, but then cuts them to 64 bits at
//!   random wherever they are used. [`Quantity::units`] and the like saturate at the bounds of `i64`,
//!   so that an absurd request never becomes a small one;
//! - `1000E` and more print with the suffix `E`; Go prints the bare mantissa, which is another amount;
//! - negative amounts round and count like positive ones; Go's `Value` is off there (`-1003e-9` gives 1);
//! - printing is always canonical; Go returns some texts as they came (`"05"`, `"+5"`, `"1.500"`).
//!
//! This crate knows numbers and suffixes. It must never know objects, JSON or files.

mod parse;
mod print;
mod resource;
#[cfg(test)]
mod tests;

use std::cmp::Ordering;

pub use parse::{ParseError, Problem};
pub use resource::{base_units, base_units_exact, display, from_base_units, is_binary, is_milli};

/// The smallest amount there is: everything is a whole number of these.
pub(crate) const NANOS_PER_UNIT: i128 = 1_000_000_000;

/// The bound of amounts, in nanos: 10^28 units. Sums of two amounts still fit an `i128`.
pub(crate) const NANOS_MAX: i128 = 10_i128.pow(37);

/// How a quantity was written, and hence how it is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Format {
    /// `12e6`.
    DecimalExponent,
    /// `12Mi`, `4Gi`: powers of 1024.
    BinarySi,
    /// `12M`, `500m`: powers of 1000.
    #[default]
    DecimalSi,
}

/// An exact amount: a whole number of nanos (10^-9), and the format to print it in.
///
/// Comparisons look at the amount only: `1Gi` equals `1073741824`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quantity {
    nanos: i128,
    format: Format,
}

impl Quantity {
    /// Nothing.
    pub const ZERO: Self = Self { nanos: 0, format: Format::DecimalSi };

    /// A whole number of units.
    pub const fn from_units(units: i64, format: Format) -> Self {
        Self { nanos: units as i128 * NANOS_PER_UNIT, format }
    }

    /// A whole number of thousandths.
    pub const fn from_milli(milli: i64, format: Format) -> Self {
        Self { nanos: milli as i128 * (NANOS_PER_UNIT / 1000), format }
    }

    /// An amount in nanos, kept inside the bounds.
    pub(crate) fn from_nanos(nanos: i128, format: Format) -> Self {
        Self { nanos: nanos.clamp(-NANOS_MAX, NANOS_MAX), format }
    }

    pub(crate) const fn nanos(&self) -> i128 {
        self.nanos
    }

    /// How it is printed.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// The amount in whole units, fractions rounded away from zero (Kubernetes' `Value`), and
    /// beyond the bounds of `i64` the bound.
    pub fn units(&self) -> i64 {
        saturated(self.per(NANOS_PER_UNIT).0)
    }

    /// The amount in thousandths, smaller fractions rounded away from zero (Kubernetes'
    /// `MilliValue`), and beyond the bounds of `i64` the bound.
    pub fn milli(&self) -> i64 {
        saturated(self.per(NANOS_PER_UNIT / 1000).0)
    }

    /// Whether the amount is a whole number of units. Kubernetes demands it of extended resources.
    pub const fn is_whole(&self) -> bool {
        self.nanos % NANOS_PER_UNIT == 0
    }

    /// Whether the amount is zero.
    pub const fn is_zero(&self) -> bool {
        self.nanos == 0
    }

    /// Whether the amount is below zero.
    pub const fn is_negative(&self) -> bool {
        self.nanos < 0
    }

    /// The sum; `None` if it is beyond the bounds. The format is the left one's, or the right
    /// one's if the left is zero (as in Kubernetes).
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        // Both are within ±10^37, so that the sum is within the bounds of i128.
        bounded(self.nanos + other.nanos, self.joint_format(other))
    }

    /// The difference; `None` if it is beyond the bounds. Formats as in [`Self::checked_add`].
    pub fn checked_sub(&self, other: &Self) -> Option<Self> {
        bounded(self.nanos - other.nanos, self.joint_format(other))
    }

    /// The product with a whole number; `None` if it is beyond the bounds.
    pub fn checked_mul(&self, factor: i64) -> Option<Self> {
        bounded(self.nanos.checked_mul(i128::from(factor))?, self.format)
    }

    /// The sum, or the bound that it is beyond.
    pub fn saturating_add(&self, other: &Self) -> Self {
        Self::from_nanos(self.nanos + other.nanos, self.joint_format(other))
    }

    /// The difference, or the bound that it is beyond.
    pub fn saturating_sub(&self, other: &Self) -> Self {
        Self::from_nanos(self.nanos - other.nanos, self.joint_format(other))
    }

    /// The product with a whole number, or the bound that it is beyond.
    pub fn saturating_mul(&self, factor: i64) -> Self {
        Self::from_nanos(self.nanos.saturating_mul(i128::from(factor)), self.format)
    }

    /// The product with another amount, smaller fractions than nanos rounded away from zero, or the bound that
    /// it is beyond. (Beyond 10^20 units as a factor, fractions of the other one count to the whole unit.)
    pub fn saturating_product(&self, other: &Self) -> Self {
        let nanos = self.nanos.checked_mul(other.nanos).map_or_else(
            || self.coarse_product(other),
            |product| product / NANOS_PER_UNIT + (product % NANOS_PER_UNIT).signum(),
        );
        Self::from_nanos(nanos, self.format)
    }

    /// For products that do not fit while they are counted in nanos of nanos.
    fn coarse_product(&self, other: &Self) -> i128 {
        let (small, large) = if self.nanos.abs() < other.nanos.abs() {
            (self.nanos, other.nanos)
        } else {
            (other.nanos, self.nanos)
        };
        let (whole, rest) = (small / NANOS_PER_UNIT, small % NANOS_PER_UNIT);
        whole.saturating_mul(large).saturating_add(rest.saturating_mul(large / NANOS_PER_UNIT))
    }

    fn joint_format(&self, other: &Self) -> Format {
        if self.is_zero() { other.format } else { self.format }
    }

    /// The amount counted in `nanos_each`, rounded away from zero, and whether that was exact.
    pub(crate) fn per(&self, nanos_each: i128) -> (i128, bool) {
        let (whole, rest) = (self.nanos / nanos_each, self.nanos % nanos_each);
        (whole + rest.signum(), rest == 0)
    }
}

fn bounded(nanos: i128, format: Format) -> Option<Quantity> {
    (nanos.abs() <= NANOS_MAX).then_some(Quantity { nanos, format })
}

fn saturated(amount: i128) -> i64 {
    i64::try_from(amount).unwrap_or(if amount < 0 { i64::MIN } else { i64::MAX })
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.nanos == other.nanos
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.nanos.cmp(&other.nanos)
    }
}
