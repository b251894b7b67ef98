//! May this pod be on this node? Selectors, affinity, taints and host ports, as Kubernetes reads
//! them (`component-helpers/scheduling/corev1`, 1.36).

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration};

use crate::seen::{Node, Pod};

/// Whether the node has what the pod's nodeSelector and required node affinity ask for.
pub(crate) fn selects(pod: &Pod, node: &Node) -> bool {
    let selected = pod.selector.iter().all(|(key, value)| node.meta.labels.get(key) == Some(value));
    let required = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.required_during_scheduling_ignored_during_execution.as_ref());
    selected
        && required
            .is_none_or(|required| required.node_selector_terms.iter().any(|term| term_matches(term, node)))
}

/// The sum of the weights of the preferred terms that the node matches.
pub(crate) fn preference(pod: &Pod, node: &Node) -> i64 {
    let preferred = pod
        .affinity
        .as_ref()
        .and_then(|affinity| affinity.preferred_during_scheduling_ignored_during_execution.as_ref());
    let terms = preferred.into_iter().flatten();
    terms.filter(|term| term_matches(&term.preference, node)).map(|term| i64::from(term.weight)).sum()
}

/// An empty term matches nothing.
fn term_matches(term: &NodeSelectorTerm, node: &Node) -> bool {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    let fields = term.match_fields.as_deref().unwrap_or_default();
    if expressions.is_empty() && fields.is_empty() {
        return false;
    }
    let name = BTreeMap::from([("metadata.name".to_owned(), node.name().to_owned())]);
    expressions.iter().all(|requirement| requirement_holds(requirement, &node.meta.labels))
        && fields.iter().all(|requirement| requirement_holds(requirement, &name))
}

fn requirement_holds(requirement: &NodeSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let value = labels.get(&requirement.key);
    let values = requirement.values.as_deref().unwrap_or_default();
    let compared = |wanted: fn(i64, i64) -> bool| {
        let found = value.and_then(|value| value.parse().ok());
        let bound = values.first().and_then(|bound| bound.parse().ok());
        matches!((found, bound), (Some(found), Some(bound)) if wanted(found, bound))
    };
    match requirement.operator.as_str() {
        "In" => value.is_some_and(|value| values.contains(value)),
        "NotIn" => value.is_none_or(|value| !values.contains(value)),
        "Exists" => value.is_some(),
        "DoesNotExist" => value.is_none(),
        "Gt" => compared(|found, bound| found > bound),
        "Lt" => compared(|found, bound| found < bound),
        _ => false,
    }
}

/// The first taint with one of these effects that the pod does not tolerate.
pub(crate) fn untolerated<'a>(pod: &Pod, node: &'a Node, effects: &[&str]) -> Option<&'a Taint> {
    let mut taints = node.taints.iter().filter(|taint| effects.contains(&taint.effect.as_str()));
    taints.find(|taint| !pod.tolerations.iter().any(|toleration| tolerates(toleration, taint)))
}

/// How many `PreferNoSchedule` taints the pod does not tolerate.
pub(crate) fn disliked(pod: &Pod, node: &Node) -> usize {
    let taints = node.taints.iter().filter(|taint| taint.effect == "PreferNoSchedule");
    taints.filter(|taint| !pod.tolerations.iter().any(|toleration| tolerates(toleration, taint))).count()
}

/// An empty effect tolerates every effect, an empty key (with `Exists`) every taint.
pub(crate) fn tolerates(toleration: &Toleration, taint: &Taint) -> bool {
    let effect = toleration.effect.as_deref().unwrap_or_default();
    let key = toleration.key.as_deref().unwrap_or_default();
    let value = toleration.value.as_deref().unwrap_or_default();
    let there = taint.value.as_deref().unwrap_or_default();
    let compared = |wanted: fn(i64, i64) -> bool| matches!((there.parse(), value.parse()), (Ok(there), Ok(value)) if wanted(there, value));
    (effect.is_empty() || effect == taint.effect)
        && (key.is_empty() || key == taint.key)
        && match toleration.operator.as_deref().unwrap_or("Equal") {
            "Exists" => true,
            "Equal" | "" => !key.is_empty() && value == there,
            // Behind a gate in 1.36 (TaintTolerationComparisonOperators); the API server decides.
            "Lt" => compared(|there, value| there < value),
            "Gt" => compared(|there, value| there > value),
            _ => false,
        }
}

/// Whether two pods want the same port of their node. An empty address means all addresses.
pub(crate) fn ports_collide(one: &Pod, other: &Pod) -> bool {
    let everywhere = |address: &str| address.is_empty() || address == "0.0.0.0";
    one.host_ports.iter().any(|(protocol, address, port)| {
        other.host_ports.iter().any(|(protocol2, address2, port2)| {
            let same_place = address == address2 || everywhere(address) || everywhere(address2);
            protocol == protocol2 && port == port2 && same_place
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(labels: serde_json::Value, taints: serde_json::Value) -> Node {
        serde_json::from_value(serde_json::json!({
            "metadata": { "name": "n1", "labels": labels }, "spec": { "taints": taints }
        }))
        .unwrap()
    }

    fn pod(spec: serde_json::Value) -> Pod {
        serde_json::from_value(serde_json::json!({ "metadata": { "name": "p" }, "spec": spec })).unwrap()
    }

    #[test]
    fn selectors_and_affinity_read_labels_and_the_name() {
        let node = node(serde_json::json!({ "zone": "a", "size": "8" }), serde_json::json!([]));
        let with = |kind: &str, key: &str, operator: &str, values: &[&str]| {
            pod(serde_json::json!({ "affinity": { "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [
                    { kind: [{ "key": key, "operator": operator, "values": values }] }
                ] }
            } } }))
        };
        let table = [
            ("matchExpressions", "zone", "In", &["a", "b"][..], true),
            ("matchExpressions", "zone", "NotIn", &["a"], false),
            ("matchExpressions", "rack", "NotIn", &["a"], true),
            ("matchExpressions", "rack", "Exists", &[], false),
            ("matchExpressions", "rack", "DoesNotExist", &[], true),
            ("matchExpressions", "size", "Gt", &["7"], true),
            ("matchExpressions", "size", "Lt", &["8"], false),
            ("matchExpressions", "zone", "Gt", &["7"], false),
            ("matchFields", "metadata.name", "In", &["n1"], true),
            ("matchFields", "metadata.name", "In", &["n2"], false),
        ];
        for (kind, key, operator, values, expected) in table {
            assert_eq!(selects(&with(kind, key, operator, values), &node), expected, "{key} {operator}");
        }
        assert!(selects(&pod(serde_json::json!({ "nodeSelector": { "zone": "a" } })), &node));
        assert!(!selects(&pod(serde_json::json!({ "nodeSelector": { "zone": "b" } })), &node));
        let empty_term = serde_json::json!({ "affinity": { "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": { "nodeSelectorTerms": [{}] } } } });
        assert!(!selects(&pod(empty_term), &node));
    }

    #[test]
    fn tolerations_match_key_value_and_effect() {
        let node = node(
            serde_json::json!({}),
            serde_json::json!([{ "key": "k", "value": "v", "effect": "NoExecute" }]),
        );
        let table = [
            (serde_json::json!({ "key": "k", "value": "v" }), true),
            (serde_json::json!({ "key": "k", "operator": "Equal", "value": "w" }), false),
            (serde_json::json!({ "key": "k", "operator": "Exists" }), true),
            (serde_json::json!({ "operator": "Exists" }), true),
            (serde_json::json!({ "key": "k", "operator": "Exists", "effect": "NoSchedule" }), false),
            (serde_json::json!({ "key": "l", "operator": "Exists" }), false),
        ];
        for (toleration, expected) in table {
            let pod = pod(serde_json::json!({ "tolerations": [toleration] }));
            assert_eq!(untolerated(&pod, &node, &["NoExecute"]).is_none(), expected, "{toleration}");
        }
    }

    #[test]
    fn host_ports_collide_on_the_same_address() {
        let port = |address: &str, port: i32| {
            pod(
                serde_json::json!({ "containers": [{ "name": "c", "ports": [{ "hostPort": port, "hostIP": address }] }] }),
            )
        };
        assert!(ports_collide(&port("", 80), &port("10.0.0.1", 80)));
        assert!(!ports_collide(&port("10.0.0.2", 80), &port("10.0.0.1", 80)));
        assert!(!ports_collide(&port("", 80), &port("", 81)));
    }
}
