//! Quantities inside objects: kept as they are written, read when somebody asks.
//!
//! Knows their two JSON forms. The arithmetic is `soroi-quantity`'s.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use soroi_quantity::ParseError;

/// A quantity as an object holds it: an integer or a text, unread.
///
/// It is written back exactly as it was read, so that no object changes by passing through us, and
/// an object with a malformed quantity can still be read, shown and explained.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantity(Written);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Written {
    Integer(i64),
    Text(String),
}

/// A quantity per resource, as in `resources.requests`.
pub type Quantities = BTreeMap<String, Quantity>;

impl Quantity {
    /// The exact amount.
    ///
    /// # Errors
    /// The text is no quantity.
    pub fn read(&self) -> Result<soroi_quantity::Quantity, ParseError> {
        match &self.0 {
            Written::Integer(units) => {
                Ok(soroi_quantity::Quantity::from_units(*units, soroi_quantity::Format::DecimalSi))
            }
            Written::Text(text) => text.trim().parse(),
        }
    }

    /// The amount in base units of the resource (milli for `cpu`, whole units for the rest),
    /// rounded up.
    ///
    /// # Errors
    /// The text is no quantity.
    pub fn base_units(&self, resource: &str) -> Result<i64, ParseError> {
        Ok(soroi_quantity::base_units(resource, &self.read()?))
    }

    /// The quantity of an amount in base units of the resource, in the format that Kueue uses.
    pub fn of(resource: &str, amount: i64) -> Self {
        soroi_quantity::from_base_units(resource, amount).into()
    }
}

impl Default for Quantity {
    fn default() -> Self {
        Self(Written::Text("0".to_owned()))
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Written::Integer(units) => units.fmt(f),
            Written::Text(text) => text.fmt(f),
        }
    }
}

impl From<soroi_quantity::Quantity> for Quantity {
    fn from(amount: soroi_quantity::Quantity) -> Self {
        Self(Written::Text(amount.to_string()))
    }
}

impl From<&str> for Quantity {
    fn from(text: &str) -> Self {
        Self(Written::Text(text.to_owned()))
    }
}

impl From<i64> for Quantity {
    fn from(units: i64) -> Self {
        Self(Written::Integer(units))
    }
}

impl From<k8s_openapi::apimachinery::pkg::api::resource::Quantity> for Quantity {
    fn from(text: k8s_openapi::apimachinery::pkg::api::resource::Quantity) -> Self {
        Self(Written::Text(text.0))
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Written::Integer(units) => serializer.serialize_i64(*units),
            Written::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl<'de> Deserialize<'de> for Quantity {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct IntOrString;

        impl Visitor<'_> for IntOrString {
            type Value = Quantity;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a quantity (an integer or a string)")
            }

            fn visit_i64<E: de::Error>(self, units: i64) -> Result<Quantity, E> {
                Ok(units.into())
            }

            fn visit_u64<E: de::Error>(self, units: u64) -> Result<Quantity, E> {
                // Beyond i64 only the text form can hold it.
                Ok(i64::try_from(units)
                    .map_or_else(|_| Quantity(Written::Text(units.to_string())), Quantity::from))
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Quantity, E> {
                Ok(text.into())
            }
        }

        deserializer.deserialize_any(IntOrString)
    }
}

impl JsonSchema for Quantity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Quantity".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        crate::schema::quantity(generator)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Result<Quantity, serde_json::Error> {
        serde_json::from_str(text)
    }

    #[test]
    fn both_forms_are_written_back_as_they_came() {
        for text in ["16", "\"16\"", "\"1024Mi\"", "\"nonsense\"", "-3", "\"9Ei\""] {
            assert_eq!(serde_json::to_string(&json(text).unwrap()).unwrap(), text);
        }
    }

    #[test]
    fn amounts_are_read_when_asked_for() {
        assert_eq!(json("2").unwrap().base_units("cpu").unwrap(), 2000);
        assert_eq!(json("\"1Gi\"").unwrap().base_units("memory").unwrap(), 1 << 30);
        assert_eq!(
            json("\"1Gb\"").unwrap().base_units("memory").unwrap_err().to_string(),
            "quantity \"1Gb\": expected one of the suffixes n, u, m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi, Ei or an exponent such as e3 at position 1"
        );
        assert_eq!(Quantity::of("cpu", 1500).to_string(), "1500m");
        assert_eq!(Quantity::of("memory", 512 << 20).to_string(), "512Mi");
    }

    #[test]
    fn other_json_is_refused() {
        for text in ["true", "null", "1.5", "{}"] {
            assert!(
                json(text).unwrap_err().to_string().contains("a quantity (an integer or a string)"),
                "{text}"
            );
        }
    }
}
