//! Which unit a resource is counted in, and how its amounts are printed.
//!
//! The table is Kueue's (`pkg/resources`, 0.18): `cpu` in thousandths, everything else in whole
//! units; memory-like resources print in powers of 1024.

use crate::{Format, Quantity};

/// Whether amounts of the resource are counted in thousandths: `cpu` is, all others in whole units.
pub fn is_milli(resource: &str) -> bool {
    resource == "cpu"
}

/// Whether amounts of the resource are printed in powers of 1024: memory, ephemeral storage and
/// huge pages.
pub fn is_binary(resource: &str) -> bool {
    matches!(resource, "memory" | "ephemeral-storage") || resource.starts_with("hugepages-")
}

/// The amount of a resource in its base unit, fractions rounded up (away from zero) and absurd
/// amounts at the bounds of `i64`: milli for `cpu`, bytes or pieces for the rest.
pub fn base_units(resource: &str, quantity: &Quantity) -> i64 {
    if is_milli(resource) { quantity.milli() } else { quantity.units() }
}

/// As [`base_units`], but `None` if anything was rounded or cut off.
pub fn base_units_exact(resource: &str, quantity: &Quantity) -> Option<i64> {
    let amount = base_units(resource, quantity);
    (from_base_units(resource, amount) == *quantity).then_some(amount)
}

/// The quantity of an amount in base units, in the format that Kueue uses for the resource.
pub fn from_base_units(resource: &str, amount: i64) -> Quantity {
    if is_milli(resource) {
        Quantity::from_milli(amount, Format::DecimalSi)
    } else if is_binary(resource) {
        Quantity::from_units(amount, Format::BinarySi)
    } else {
        Quantity::from_units(amount, Format::DecimalSi)
    }
}

/// The canonical text of an amount in base units, as Kueue writes it into status and messages.
pub fn display(resource: &str, amount: i64) -> String {
    from_base_units(resource, amount).to_string()
}
