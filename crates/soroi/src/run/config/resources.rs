//! What pods charge to quota, in the words of Kueue (0.18, `resources`).

use std::collections::BTreeSet;

use anyhow::{Context as _, ensure};
use serde::Deserialize;
use soroi_api::Quantities;
use soroi_control::intake::charge::{self, Charging};

/// As in Kueue.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct Resources {
    /// What is asked of resources that a ClusterQueue does not name.
    quota_check_strategy: QuotaCheckStrategy,
    /// Resources whose names begin so are not charged.
    exclude_resource_prefixes: Vec<String>,
    /// Resources that are counted as others.
    transformations: Vec<Transformation>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum QuotaCheckStrategy {
    /// Who asks for one is not admitted.
    #[default]
    BlockUndeclared,
    /// They need no quota.
    IgnoreUndeclared,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Transformation {
    /// The resource that pods ask for.
    input: String,
    /// Whether it is charged under its own name, too.
    #[serde(default)]
    strategy: Strategy,
    /// How much of other resources each unit of it is.
    #[serde(default)]
    outputs: Quantities,
    /// A resource whose amount multiplies that.
    multiply_by: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
enum Strategy {
    #[default]
    Retain,
    Replace,
}

impl Resources {
    /// Whether resources that a ClusterQueue does not name need no quota there.
    pub(super) fn ignores_undeclared(&self) -> bool {
        self.quota_check_strategy == QuotaCheckStrategy::IgnoreUndeclared
    }

    /// What the control side is told.
    pub(super) fn charging(&self) -> Charging {
        let transformed = self.transformations.iter().map(|one| (one.input.as_str().into(), one.rule()));
        Charging { excluded: self.exclude_resource_prefixes.clone(), transformed: transformed.collect() }
    }

    /// Kueue's own rules (`validateResourceTransformations`, `validateQuotaCheckStrategy`), and that what is
    /// written means something.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let mut inputs = BTreeSet::new();
        for (at, one) in self.transformations.iter().enumerate() {
            let field = |name: &str| format!("resources.transformations[{at}].{name}");
            ensure!(!one.input.is_empty(), "{}: must not be empty", field("input"));
            ensure!(inputs.insert(&one.input), "{}: {:?} is there already", field("input"), one.input);
            for (resource, amount) in &one.outputs {
                amount.read().with_context(|| field(&format!("outputs[{resource}]")))?;
            }
        }
        if let Some(at) = self.exclude_resource_prefixes.iter().position(String::is_empty) {
            anyhow::bail!("resources.excludeResourcePrefixes[{at}]: would leave out every resource");
        }
        ensure!(
            !self.ignores_undeclared() || self.exclude_resource_prefixes.is_empty(),
            "resources.excludeResourcePrefixes: must not be there together with quotaCheckStrategy IgnoreUndeclared"
        );
        Ok(())
    }
}

impl Transformation {
    fn rule(&self) -> charge::Transformation {
        // Amounts were read by `check`.
        let outputs = self.outputs.iter();
        let outputs =
            outputs.filter_map(|(resource, amount)| Some((resource.as_str().into(), amount.read().ok()?)));
        charge::Transformation {
            retain: self.strategy == Strategy::Retain,
            outputs: outputs.collect(),
            multiply_by: self.multiply_by.as_deref().filter(|by| !by.is_empty()).map(Into::into),
        }
    }
}
