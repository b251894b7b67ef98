//! How much is it? Lists of quantities as exact sums, and as the engine's whole numbers.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity as ApiQuantity;
use soroi_engine::event::{Amount, Name};
use soroi_quantity::{Quantity, base_units};

use super::Invalid;

/// Exact amounts by resource, before they are rounded to base units.
pub(crate) type Sums = BTreeMap<Name, Quantity>;

/// One quantity: not negative, and rounded up to thousandths as the API server stores it
/// (`core/v1` SetDefaults_ResourceList).
///
/// # Errors
/// [`Invalid`] on the field given.
pub(crate) fn parse(field: &str, quantity: &ApiQuantity) -> Result<Quantity, Invalid> {
    let parsed: Quantity = quantity.0.parse().map_err(|error| Invalid::new(field, error))?;
    if parsed.is_negative() {
        return Err(Invalid::new(field, format!("\"{}\": must not be negative", quantity.0)));
    }
    // Beyond this many thousandths nobody can tell one more from one less.
    let exact = parsed.milli();
    Ok(if exact == i64::MAX { parsed } else { Quantity::from_milli(exact, parsed.format()) })
}

/// A list of quantities; errors name `field[resource]`.
///
/// # Errors
/// [`Invalid`] on the first malformed or negative one.
pub(crate) fn sums(field: &str, list: Option<&BTreeMap<String, ApiQuantity>>) -> Result<Sums, Invalid> {
    let each = list.into_iter().flatten();
    each.map(|(resource, quantity)| {
        Ok((Arc::from(resource.as_str()), parse(&format!("{field}[{resource}]"), quantity)?))
    })
    .collect()
}

/// A list of quantities in base units, zero ones included.
///
/// # Errors
/// [`Invalid`] on the first malformed or negative one.
pub(crate) fn amounts(
    field: &str,
    list: Option<&BTreeMap<String, ApiQuantity>>,
) -> Result<BTreeMap<Name, Amount>, Invalid> {
    let list = sums(field, list)?;
    Ok(list.into_iter().map(|(resource, sum)| (resource.clone(), base_units(&resource, &sum))).collect())
}

/// Adds a list to a sum.
pub(crate) fn add(sum: &mut Sums, list: &Sums) {
    for (resource, amount) in list {
        let total = sum.entry(resource.clone()).or_default();
        *total = total.saturating_add(amount);
    }
}

/// Raises every entry to that of a list.
pub(crate) fn larger(sum: &mut Sums, list: &Sums) {
    for (resource, amount) in list {
        let most = sum.entry(resource.clone()).or_default();
        if *amount > *most {
            *most = *amount;
        }
    }
}

/// Base units, rounded up once, without the resources of which nothing is asked.
pub(crate) fn finish(sum: &Sums) -> BTreeMap<Name, Amount> {
    sum.iter()
        .map(|(resource, amount)| (resource.clone(), base_units(resource, amount)))
        .filter(|(_, amount)| *amount != 0)
        .collect()
}

/// A sum as the API writes it.
pub(crate) fn quantity(amount: Quantity) -> ApiQuantity {
    ApiQuantity(amount.to_string())
}
