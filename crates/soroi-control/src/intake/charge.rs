//! What of a pod's requests is charged to quota? All of it, unless the configuration leaves some out or
//! counts it as something else (Kueue, `resources.excludeResourcePrefixes` and `resources.transformations`).
//!
//! Knows amounts by resource. Places are asked for what pods really need, whatever is charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use soroi_engine::event::{Amount, Name, PodSet, Shape};
use soroi_quantity::{Quantity, base_units};

/// What is charged otherwise than as pods name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Charging {
    /// Resources whose names begin with one of these are not charged.
    pub excluded: Vec<String>,
    /// By the resource that is counted as others.
    pub transformed: BTreeMap<Name, Transformation>,
}

/// How a resource is counted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transformation {
    /// It is charged under its own name, too.
    pub retain: bool,
    /// How much of another resource each unit of it is.
    pub outputs: BTreeMap<Name, Quantity>,
    /// A resource whose amount, in whole units, multiplies it first, where pods ask for that one.
    pub multiply_by: Option<Name>,
}

impl Charging {
    /// Notes in a pod set what of it is charged, if that differs from what it needs.
    pub fn apply(&self, set: &mut PodSet) {
        let requests = self.charged(&set.shape.requests);
        let differs = requests != set.shape.requests;
        set.charged = differs.then(|| Arc::new(Shape { requests, ..(*set.shape).clone() }));
    }

    /// The requests that are charged (Kueue 0.18, `dropExcludedResources` and
    /// `applyResourceTransformations`). Amounts count in whole units as inputs, rounded up.
    fn charged(&self, requests: &BTreeMap<Name, Amount>) -> BTreeMap<Name, Amount> {
        let excluded = |name: &Name| self.excluded.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let counted: BTreeMap<&Name, Amount> =
            requests.iter().filter(|(name, _)| !excluded(name)).map(|(name, amount)| (name, *amount)).collect();
        let mut charged: BTreeMap<Name, Amount> = BTreeMap::new();
        let mut add = |name: &Name, amount: Amount| {
            let sum = charged.entry(name.clone()).or_default();
            *sum = sum.saturating_add(amount);
        };
        for (name, amount) in &counted {
            let Some(rule) = self.transformed.get(*name) else {
                add(name, *amount);
                continue;
            };
            let by = rule.multiply_by.as_ref().and_then(|by| Some(units(by, *counted.get(by)?)));
            let amount = amount.saturating_mul(by.unwrap_or(1));
            for (output, each) in &rule.outputs {
                let each = base_units(output, each);
                add(output, each.saturating_mul(units(name, amount)));
            }
            if rule.retain {
                add(name, amount);
            }
        }
        charged
    }
}

/// Whole units: `cpu` is counted in thousandths.
fn units(resource: &str, amount: Amount) -> Amount {
    match resource {
        "cpu" => amount.saturating_add(999) / 1_000,
        _ => amount,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(all: &[(&str, Amount)]) -> BTreeMap<Name, Amount> {
        all.iter().map(|(name, amount)| ((*name).into(), *amount)).collect()
    }

    fn rule(retain: bool, outputs: &[(&str, &str)], by: Option<&str>) -> Transformation {
        let outputs = outputs.iter().map(|(name, each)| ((*name).into(), each.parse().unwrap()));
        Transformation { retain, outputs: outputs.collect(), multiply_by: by.map(Into::into) }
    }

    #[test]
    fn what_is_excluded_is_not_charged() {
        let charging = Charging { excluded: vec!["example.com/".into()], ..Charging::default() };
        let asked = requests(&[("cpu", 500), ("example.com/gpu", 2), ("example.org/nic", 1)]);
        assert_eq!(charging.charged(&asked), requests(&[("cpu", 500), ("example.org/nic", 1)]));
    }

    /// The example of Kueue's documentation: slices of a GPU as memory and credits.
    #[test]
    fn a_resource_counts_as_others() {
        let slice = rule(false, &[("memory.gpu", "10Gi"), ("credits", "15")], None);
        let cpu = rule(true, &[("credits", "1")], None);
        let transformed = [("gpu-slice".into(), slice), ("cpu".into(), cpu)].into_iter().collect();
        let charging = Charging { transformed, ..Charging::default() };
        let asked = requests(&[("cpu", 1_500), ("gpu-slice", 2), ("memory", 100)]);
        let charged = [("cpu", 1_500), ("credits", 32), ("memory", 100), ("memory.gpu", 20 << 30)];
        assert_eq!(charging.charged(&asked), requests(&charged));
    }

    #[test]
    fn an_amount_is_multiplied_by_another_if_that_is_asked_for() {
        let cores = rule(false, &[("total-cores", "1")], Some("vgpu"));
        let charging =
            Charging { transformed: [("cores".into(), cores)].into_iter().collect(), ..Charging::default() };
        let both = charging.charged(&requests(&[("cores", 30), ("vgpu", 4)]));
        assert_eq!(both, requests(&[("total-cores", 120), ("vgpu", 4)]));
        assert_eq!(charging.charged(&requests(&[("cores", 30)])), requests(&[("total-cores", 30)]));
    }

    #[test]
    fn absurd_amounts_saturate() {
        let much = rule(false, &[("credits", "9Ei")], None);
        let charging =
            Charging { transformed: [("gpu".into(), much)].into_iter().collect(), ..Charging::default() };
        assert_eq!(charging.charged(&requests(&[("gpu", 100)])), requests(&[("credits", Amount::MAX)]));
    }
}
