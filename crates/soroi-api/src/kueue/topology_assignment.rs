//! Topology domains and pod counts in Kueue's compressed form, and its expansion.
//!
//! Knows the encoding only. Which domains are good is not its business.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compress::{Parts, split};
use crate::schema::{self, rule};

/// The topology domains that the pods of a pod set go to.
///
/// Only the lowest level is listed when that is the host name. Domains are cut into slices, and
/// within a slice equal values and equal ends are written once. Use
/// [`TopologyAssignment::from_domains`] and [`TopologyAssignment::domains`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "self.slices.all(s, s.valuesPerLevel.size() == self.levels.size())",
    "valuesPerLevel of each slice must have one entry per level",
)]))]
pub struct TopologyAssignment {
    /// Node labels, coarsest first.
    #[schemars(schema_with = "levels")]
    pub levels: Vec<String>,
    /// The domains.
    #[schemars(length(max = 1000), extend("x-kubernetes-list-type" = "atomic"))]
    pub slices: Vec<TopologyAssignmentSlice>,
}

fn levels(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut levels = schema::strings(16, 317);
    levels.insert("minItems".into(), 1.into());
    levels
}

/// Some domains, column by column.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [
    rule(
        "self.valuesPerLevel.all(v, !has(v.individual) || v.individual.roots.size() == self.domainCount)",
        "individual values of a level must have one root per domain",
    ),
    rule(
        "!has(self.podCounts.individual) || self.podCounts.individual.size() == self.domainCount",
        "individual podCounts must have one entry per domain",
    ),
]))]
pub struct TopologyAssignmentSlice {
    /// How many domains.
    #[schemars(range(min = 1))]
    pub domain_count: i32,
    /// Their label values, per level.
    #[schemars(length(min = 1, max = 16), extend("x-kubernetes-list-type" = "atomic"))]
    pub values_per_level: Vec<TopologyLevelValues>,
    /// How many pods go to each.
    pub pod_counts: TopologyPodCounts,
}

/// The values of one label.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "has(self.universal) != has(self.individual)",
    "exactly one of universal and individual must be set",
)]))]
pub struct TopologyLevelValues {
    /// The value of all domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub universal: Option<String>,
    /// The values, one by one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub individual: Option<TopologyValueParts>,
}

/// Values that differ in the middle.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TopologyValueParts {
    /// What all begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub prefix: Option<String>,
    /// What all end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub suffix: Option<String>,
    /// What is between, one entry per domain.
    #[schemars(schema_with = "roots")]
    pub roots: Vec<String>,
}

fn roots(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    let mut roots = schema::strings(100_000, 63);
    roots.insert("minItems".into(), 1.into());
    roots
}

/// How many pods go to each domain.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = [rule(
    "has(self.universal) != has(self.individual)",
    "exactly one of universal and individual must be set",
)]))]
pub struct TopologyPodCounts {
    /// The number for all domains.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub universal: Option<i32>,
    /// The numbers, one by one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "counts")]
    pub individual: Vec<i32>,
}

pub(crate) fn counts(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array", "minItems": 1, "maxItems": 100_000,
        "items": {"type": "integer", "format": "int32", "minimum": 1},
        "x-kubernetes-list-type": "atomic",
    })
}

/// A topology domain and how many pods go there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopologyDomain {
    /// One label value per level.
    pub values: Vec<String>,
    /// Number of pods.
    pub count: i32,
}

/// A compressed assignment that contradicts itself. Names the slice, counted from 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("topologyAssignment.slices[{slice}]: {problem}")]
pub struct MalformedAssignment {
    /// The slice.
    pub slice: usize,
    /// What is wrong with it.
    pub problem: &'static str,
}

impl TopologyAssignment {
    /// Compresses domains, in the order given. Each has one value per level.
    pub fn from_domains(levels: Vec<String>, domains: &[TopologyDomain]) -> Self {
        if domains.is_empty() {
            return Self { levels, slices: Vec::new() };
        }
        let values_per_level = (0..levels.len())
            .map(|level| {
                let column: Vec<&str> = domains
                    .iter()
                    .map(|domain| domain.values.get(level).map_or("", String::as_str))
                    .collect();
                level_values(&column)
            })
            .collect();
        let counts: Vec<i32> = domains.iter().map(|domain| domain.count).collect();
        let pod_counts = match uniform(&counts) {
            Some(count) => TopologyPodCounts { universal: Some(count), individual: Vec::new() },
            None => TopologyPodCounts { universal: None, individual: counts },
        };
        let domain_count = i32::try_from(domains.len()).unwrap_or(i32::MAX);
        Self { levels, slices: vec![TopologyAssignmentSlice { domain_count, values_per_level, pod_counts }] }
    }

    /// The domains one by one, in order.
    ///
    /// # Errors
    /// A slice contradicts itself.
    pub fn domains(&self) -> Result<Vec<TopologyDomain>, MalformedAssignment> {
        let mut domains = Vec::new();
        for (ix, slice) in self.slices.iter().enumerate() {
            let malformed = |problem| MalformedAssignment { slice: ix, problem };
            if slice.values_per_level.len() != self.levels.len() {
                return Err(malformed("valuesPerLevel must have one entry per level"));
            }
            for row in 0..usize::try_from(slice.domain_count).unwrap_or(0) {
                let values = slice.values_per_level.iter().map(|level| level.value(row));
                let values = values
                    .collect::<Option<Vec<_>>>()
                    .ok_or_else(|| malformed("a level has fewer values than domainCount"))?;
                let count = slice
                    .pod_counts
                    .universal
                    .or_else(|| slice.pod_counts.individual.get(row).copied())
                    .ok_or_else(|| malformed("podCounts has fewer entries than domainCount"))?;
                domains.push(TopologyDomain { values, count });
            }
        }
        Ok(domains)
    }
}

impl TopologyLevelValues {
    fn value(&self, row: usize) -> Option<String> {
        if let Some(value) = &self.universal {
            return Some(value.clone());
        }
        let parts = self.individual.as_ref()?;
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        Some(format!("{}{}{}", text(&parts.prefix), parts.roots.get(row)?, text(&parts.suffix)))
    }
}

fn level_values(column: &[&str]) -> TopologyLevelValues {
    if let Some(value) = uniform(column) {
        return TopologyLevelValues { universal: Some(value.to_owned()), individual: None };
    }
    let Parts { prefix, suffix, roots } = split(column);
    let part = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    TopologyLevelValues {
        universal: None,
        individual: Some(TopologyValueParts {
            prefix: part(prefix),
            suffix: part(suffix),
            roots: roots.into_iter().map(str::to_owned).collect(),
        }),
    }
}

/// The value that all entries have.
pub(crate) fn uniform<T: PartialEq + Copy>(entries: &[T]) -> Option<T> {
    let (first, rest) = entries.split_first()?;
    rest.iter().all(|entry| entry == first).then_some(*first)
}

#[cfg(test)]
mod tests;
