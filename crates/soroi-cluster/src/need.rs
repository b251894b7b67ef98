//! How much does a pod need? Kubernetes' request formula, in exact integers.
//!
//! Source: `component-helpers/resource.PodRequests` and "Resource calculation" of KEP-753
//! (sidecars), Kubernetes 1.36. This crate has its own so that the embedded cluster judges
//! Soroi's decisions independently of the engine's arithmetic.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use serde::Deserialize;

/// The resource that every pod needs one of.
pub(crate) const PODS: &str = "pods";

/// How much of each resource: milli-CPUs, and whole units of everything else.
pub(crate) type Amounts = BTreeMap<String, i64>;

/// The resources of one container or one pod, as written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    requests: Option<BTreeMap<String, Quantity>>,
    limits: Option<BTreeMap<String, Quantity>>,
}

/// What of a container matters to the formula.
#[derive(Clone, Debug, Default)]
pub(crate) struct Part {
    /// What it asks for, by its spec and, while a resize is under way, its status: the larger.
    pub(crate) asked: Amounts,
    /// An init container that keeps running.
    pub(crate) sidecar: bool,
}

impl Asked {
    /// The requests; a limit without a request stands for one, as the API server's defaults say.
    pub(crate) fn amounts(&self) -> Amounts {
        let mut asked = self.limits.as_ref().map(amounts).unwrap_or_default();
        asked.extend(self.requests.as_ref().map(amounts).unwrap_or_default());
        asked
    }
}

/// Quantities as integers. One that cannot be read is larger than any node: it does not fit.
pub(crate) fn amounts(quantities: &BTreeMap<String, Quantity>) -> Amounts {
    let units = |(name, quantity): (&String, &Quantity)| {
        let amount = quantity.0.parse::<soroi_quantity::Quantity>();
        (name.clone(), amount.map_or(i64::MAX, |amount| soroi_quantity::base_units(name, &amount)))
    };
    quantities.iter().map(units).collect()
}

/// What a pod occupies on its node, its slot included.
///
/// Init containers run one after the other, beside the sidecars that were started before them;
/// the pod needs the most that it ever uses at once.
pub(crate) fn pod(containers: &[Part], inits: &[Part], whole: &Amounts, overhead: &Amounts) -> Amounts {
    let mut running = Amounts::new();
    for part in containers {
        add(&mut running, &part.asked);
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for part in inits {
        let mut at_once = sidecars.clone();
        add(&mut at_once, &part.asked);
        if part.sidecar {
            add(&mut running, &part.asked);
            sidecars.clone_from(&at_once);
        }
        raise(&mut starting, &at_once);
    }
    raise(&mut running, &starting);
    // Pod-level requests replace the sum for the resources that have them (KEP-2837).
    let pod_level = |name: &str| name == "cpu" || name == "memory" || name.starts_with("hugepages-");
    running.extend(
        whole.iter().filter(|(name, _)| pod_level(name)).map(|(name, amount)| (name.clone(), *amount)),
    );
    add(&mut running, overhead);
    running.insert(PODS.into(), 1);
    running
}

/// Adds `more` to `sum`, at most to the largest number.
pub(crate) fn add(sum: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let entry = sum.entry(name.clone()).or_default();
        *entry = entry.saturating_add(*amount);
    }
}

/// Takes `less` away from `sum`, at least to nothing.
pub(crate) fn take(sum: &mut Amounts, less: &Amounts) {
    for (name, amount) in less {
        if let Some(entry) = sum.get_mut(name) {
            *entry = entry.saturating_sub(*amount).max(0);
        }
    }
}

/// Raises every amount to at least that of `other`.
pub(crate) fn raise(amounts: &mut Amounts, other: &Amounts) {
    for (name, amount) in other {
        let entry = amounts.entry(name.clone()).or_default();
        *entry = (*entry).max(*amount);
    }
}

/// A resource that does not suffice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Short {
    pub(crate) resource: String,
    pub(crate) requested: i64,
    pub(crate) used: i64,
    pub(crate) capacity: i64,
}

/// Every resource of `need` that `allocatable` minus `used` does not have, pod slots first, then
/// CPU, memory and storage, then the others by name: the order of kube-scheduler's messages.
pub(crate) fn shortages(need: &Amounts, used: &Amounts, allocatable: &Amounts) -> Vec<Short> {
    let rank = |name: &str| match name {
        PODS => 0,
        "cpu" => 1,
        "memory" => 2,
        "ephemeral-storage" => 3,
        _ => 4,
    };
    let mut short: Vec<Short> = need
        .iter()
        .filter(|(_, requested)| **requested > 0)
        .map(|(resource, requested)| Short {
            resource: resource.clone(),
            requested: *requested,
            used: used.get(resource).copied().unwrap_or(0),
            capacity: allocatable.get(resource).copied().unwrap_or(0),
        })
        .filter(|short| short.used.saturating_add(short.requested) > short.capacity)
        .collect();
    short.sort_by_key(|short| rank(&short.resource));
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amounts_of(text: &str) -> Amounts {
        let pairs = text.split_whitespace().map(|pair| pair.split_once('=').unwrap());
        pairs.map(|(name, amount)| (name.into(), amount.parse().unwrap())).collect()
    }

    fn part(text: &str, sidecar: bool) -> Part {
        Part { asked: amounts_of(text), sidecar }
    }

    fn check(containers: &[&str], inits: &[(&str, bool)], whole: &str, overhead: &str, expected: &str) {
        let containers: Vec<_> = containers.iter().map(|text| part(text, false)).collect();
        let inits: Vec<_> = inits.iter().map(|(text, sidecar)| part(text, *sidecar)).collect();
        let need = pod(&containers, &inits, &amounts_of(whole), &amounts_of(overhead));
        assert_eq!(need, amounts_of(expected));
    }

    #[test]
    fn the_formula_of_kep_753() {
        check(&[], &[], "", "", "pods=1");
        check(&["cpu=1", "cpu=2 gpu=1"], &[], "", "", "pods=1 cpu=3 gpu=1");
        // A plain init container counts only where it is larger than what runs later.
        check(&["cpu=3"], &[("cpu=2 memory=7", false)], "", "", "pods=1 cpu=3 memory=7");
        // A sidecar runs beside the containers and beside later init containers, not earlier ones.
        check(&["cpu=1"], &[("cpu=5", false), ("cpu=2", true)], "", "", "pods=1 cpu=5");
        check(&["cpu=1"], &[("cpu=2", true), ("cpu=5", false)], "", "", "pods=1 cpu=7");
        check(&["cpu=1"], &[("cpu=2", true), ("cpu=3", true)], "", "", "pods=1 cpu=6");
        // Pod-level requests replace the sum, extended resources aside; overhead comes on top.
        check(&["cpu=9 gpu=1"], &[], "cpu=2 gpu=8", "cpu=1", "pods=1 cpu=3 gpu=1");
    }

    #[test]
    fn limits_stand_for_requests_and_nonsense_never_fits() {
        let quantity = |text: &str| Quantity(text.into());
        let asked = Asked {
            requests: Some([("cpu".into(), quantity("250m"))].into()),
            limits: Some([("cpu".into(), quantity("2")), ("memory".into(), quantity("1Ki"))].into()),
        };
        assert_eq!(asked.amounts(), amounts_of("cpu=250 memory=1024"));
        assert_eq!(amounts(&[("x".into(), quantity("much"))].into()), [("x".into(), i64::MAX)].into());
    }

    #[test]
    fn shortages_name_slots_first() {
        let short = shortages(
            &amounts_of("pods=1 cpu=2 gpu=1 memory=0 a=9"),
            &amounts_of("pods=3 cpu=1"),
            &amounts_of("pods=3 cpu=3"),
        );
        let names: Vec<_> = short.iter().map(|short| short.resource.as_str()).collect();
        assert_eq!(names, ["pods", "a", "gpu"]);
    }
}
