//! What of a pod's requests is charged to quota? All of it, unless the configuration leaves some out or
//! counts it as something else (Kueue, `resources.excludeResourcePrefixes` and `resources.transformations`).
//!
//! Knows amounts by resource. Places are asked for what pods really need, whatever is charged.

use std::collections::BTreeMap;
use std::sync::Arc;

use soroi_engine::event::{Amount, Name, PodSet, Shape};
use soroi_quantity::{Quantity, base_units, from_base_units};

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
    /// How much of another resource each unit of it is. Less than nothing is an allowance: it lowers what others
    /// are counted as, never what pods ask for under that name themselves.
    pub outputs: BTreeMap<Name, Quantity>,
    /// A resource whose amount multiplies what it is counted as, where pods ask for that one.
    pub multiply_by: Option<Name>,
}

impl Charging {
    /// Notes in a pod set what of it is charged, if that differs from what it needs.
    pub fn apply(&self, set: &mut PodSet) {
        if *self == Self::default() {
            return;
        }
        let requests = self.charged(&set.shape.requests);
        let differs = requests != set.shape.requests;
        set.charged = differs.then(|| Arc::new(Shape { requests, ..(*set.shape).clone() }));
    }

    /// The requests that are charged, for one pod (Kueue, `dropExcludedResources` and
    /// `applyResourceTransformations`): counted exactly, and rounded up at the end. As in Kueue from 0.19 on,
    /// `multiply_by` does not reach what is retained.
    fn charged(&self, requests: &BTreeMap<Name, Amount>) -> BTreeMap<Name, Amount> {
        let excluded = |name: &Name| self.excluded.iter().any(|prefix| name.starts_with(prefix.as_str()));
        let asked = |name: &Name| {
            let amount = requests.get(name).filter(|_| !excluded(name))?;
            Some(from_base_units(name, *amount))
        };
        let mut charged: BTreeMap<Name, Amount> = BTreeMap::new();
        let mut counted: BTreeMap<&Name, Quantity> = BTreeMap::new();
        for (name, amount) in requests.iter().filter(|(name, _)| !excluded(name)) {
            let Some(rule) = self.transformed.get(name) else {
                charged.insert(name.clone(), *amount);
                continue;
            };
            if rule.retain {
                charged.insert(name.clone(), *amount);
            }
            let own = from_base_units(name, *amount);
            let times = rule.multiply_by.as_ref().and_then(asked);
            let input = times.map_or(own, |times| own.saturating_product(&times));
            for (output, each) in &rule.outputs {
                let sum = counted.entry(output).or_default();
                *sum = sum.saturating_add(&input.saturating_product(each));
            }
        }
        for (name, sum) in counted {
            let total = charged.entry(name.clone()).or_default();
            *total = total.saturating_add(base_units(name, &sum).max(0));
        }
        charged
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

    fn counting<const N: usize>(rules: [(&str, Transformation); N]) -> Charging {
        let transformed = rules.into_iter().map(|(input, rule)| (input.into(), rule)).collect();
        Charging { transformed, ..Charging::default() }
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
        let charging = counting([("gpu-slice", slice), ("cpu", rule(true, &[("credits", "1")], None))]);
        let asked = requests(&[("cpu", 1_500), ("gpu-slice", 2), ("memory", 100)]);
        let charged = [("cpu", 1_500), ("credits", 32), ("memory", 100), ("memory.gpu", 20 << 30)];
        assert_eq!(charging.charged(&asked), requests(&charged));
    }

    #[test]
    fn fractions_count_until_the_end() {
        let ten = counting([("cpu", rule(false, &[("credits", "10")], None))]);
        assert_eq!(ten.charged(&requests(&[("cpu", 1_250)])), requests(&[("credits", 13)]));
        let tenth = counting([("gpu", rule(false, &[("credits", "100m"), ("cpu", "250m")], None))]);
        assert_eq!(tenth.charged(&requests(&[("gpu", 3)])), requests(&[("cpu", 750), ("credits", 1)]));
    }

    #[test]
    fn what_it_counts_as_is_multiplied_by_another_if_that_is_asked_for() {
        let charging = counting([("cores", rule(true, &[("total-cores", "1")], Some("vgpu")))]);
        let both = charging.charged(&requests(&[("cores", 30), ("vgpu", 4)]));
        assert_eq!(both, requests(&[("cores", 30), ("total-cores", 120), ("vgpu", 4)]));
        let alone = charging.charged(&requests(&[("cores", 30)]));
        assert_eq!(alone, requests(&[("cores", 30), ("total-cores", 30)]));
        // What is excluded multiplies nothing.
        let charging = Charging { excluded: vec!["vgpu".into()], ..charging };
        assert_eq!(charging.charged(&requests(&[("cores", 30), ("vgpu", 4)])), alone);
    }

    #[test]
    fn an_allowance_lowers_what_others_count_as_and_nothing_else() {
        let license = rule(false, &[("credits", "-3")], None);
        let charging = counting([("gpu", rule(false, &[("credits", "2")], None)), ("license", license)]);
        let charged = |asked: &[(&str, Amount)]| charging.charged(&requests(asked));
        assert_eq!(charged(&[("gpu", 4), ("license", 1)]), requests(&[("credits", 5)]));
        let own = charged(&[("credits", 7), ("gpu", 1), ("license", 1)]);
        assert_eq!(own, requests(&[("credits", 7)]));
    }

    #[test]
    fn absurd_amounts_saturate() {
        let charging = counting([("gpu", rule(false, &[("credits", "9Ei")], Some("cpu")))]);
        let asked = requests(&[("cpu", Amount::MAX), ("gpu", 100)]);
        let charged = requests(&[("cpu", Amount::MAX), ("credits", Amount::MAX)]);
        assert_eq!(charging.charged(&asked), charged);
    }
}
