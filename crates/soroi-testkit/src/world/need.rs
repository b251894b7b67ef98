//! How much does a pod ask for? Kubernetes' formula, written a second time.
//!
//! On purpose no code of the product: a rule that is checked with the code that it checks finds
//! nothing. Knows pods as JSON.

use std::collections::BTreeMap;

use serde_json::Value;
use soroi_quantity::{Quantity, base_units};

/// Amounts by resource, in base units.
pub type Amounts = BTreeMap<String, i64>;

/// A resource list as amounts; what cannot be read counts as nothing.
pub fn amounts(list: &Value) -> Amounts {
    let entries = list.as_object().into_iter().flatten();
    entries.map(|(name, quantity)| (name.clone(), amount(name, quantity))).collect()
}

/// One amount of a resource; what cannot be read counts as nothing.
pub fn amount(name: &str, quantity: &Value) -> i64 {
    let text = quantity.as_str().map_or_else(|| quantity.to_string(), str::to_owned);
    text.parse::<Quantity>().map_or(0, |quantity| base_units(name, &quantity))
}

fn add(total: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = total.entry(name.clone()).or_insert(0);
        *sum = sum.saturating_add(*amount);
    }
}

fn raise(total: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        let sum = total.entry(name.clone()).or_insert(0);
        *sum = (*sum).max(*amount);
    }
}

/// What a pod charges its node with, its pod slot included.
///
/// Kubernetes 1.36, `k8s.io/component-helpers/resource` `PodRequests`: containers and restartable
/// init containers add up; an ordinary init container needs its own share beside the restartable
/// ones before it; pod-level requests take the place of cpu, memory and huge pages; overhead comes
/// on top.
pub fn pod_requests(pod: &Value) -> Amounts {
    let spec = &pod["spec"];
    let mut total = Amounts::new();
    for container in spec["containers"].as_array().into_iter().flatten() {
        add(&mut total, &container_requests(container));
    }
    let mut sidecars = Amounts::new();
    let mut peak = Amounts::new();
    for container in spec["initContainers"].as_array().into_iter().flatten() {
        let own = container_requests(container);
        if container["restartPolicy"] == "Always" {
            add(&mut total, &own);
            add(&mut sidecars, &own);
            raise(&mut peak, &sidecars);
        } else {
            let mut with_sidecars = sidecars.clone();
            add(&mut with_sidecars, &own);
            raise(&mut peak, &with_sidecars);
        }
    }
    raise(&mut total, &peak);
    total.extend(amounts(&spec["resources"]["requests"]));
    add(&mut total, &amounts(&spec["overhead"]));
    total.insert("pods".into(), 1);
    total
}

/// Requests of a container; limits stand in where a request is missing, as the API's defaults do.
fn container_requests(container: &Value) -> Amounts {
    let mut requests = amounts(&container["resources"]["limits"]);
    requests.extend(amounts(&container["resources"]["requests"]));
    requests
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn init_containers_and_sidecars_count_in_order() {
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}});
        let pod = json!({"spec": {
            "initContainers": [
                {"resources": cpu("5")},
                {"resources": cpu("1"), "restartPolicy": "Always"},
                {"resources": cpu("3")},
            ],
            "containers": [{"resources": cpu("2")}],
            "overhead": {"cpu": "100m"},
        }});
        // First init 5; sidecar 1 + init 3 = 4; containers 2 + sidecar 1 = 3. The peak is 5, and
        // the overhead comes on top.
        assert_eq!(pod_requests(&pod), Amounts::from([("cpu".into(), 5_100), ("pods".into(), 1)]));
    }

    #[test]
    fn limits_stand_in_for_missing_requests() {
        let pod = json!({"spec": {"containers": [{"resources": {"limits": {"example.com/gpu": "2"}}}]}});
        assert_eq!(pod_requests(&pod)["example.com/gpu"], 2);
    }
}
