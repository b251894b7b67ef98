//! Prediction against creation: the shape told from a template is the shape of the pod.

use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::intake::tests::{shape_line, yaml};
use crate::intake::{Schedulers, pod};

fn check(defaults: &Defaults, spec: &str, expected: Expect) {
    let told = template(&yaml(&format!("{{spec: {spec}}}")), "default", defaults);
    expected.assert_eq(&told.map_or_else(|invalid| invalid.to_string(), |shape| shape_line(&shape)));
}

fn with_range(limits: &str) -> Defaults {
    let mut defaults = Defaults::default();
    let text = format!("{{metadata: {{name: lr, namespace: default}}, spec: {{limits: {limits}}}}}");
    defaults.set_limit_range(&yaml(&text));
    defaults
}

#[test]
fn requests_follow_from_limits() {
    check(
        &Defaults::default(),
        "{containers: [{name: a, resources: {requests: {cpu: 500m}, limits: {cpu: '2', example.com/gpu: '8'}}}]}",
        expect![
            "cpu=500 example.com/gpu=8 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
}

#[test]
fn at_pod_level_requests_follow_from_containers_then_from_limits() {
    check(
        &Defaults::default(),
        "{resources: {limits: {cpu: '4', memory: 1Gi}}, containers: [{name: a, resources: {limits: {cpu: '1'}}}]}",
        expect![
            "cpu=1000 memory=1073741824 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
    check(
        &Defaults::default(),
        "{resources: {requests: {cpu: '4'}}, containers: [{name: a, resources: {limits: {hugepages-2Mi: 4Mi}}}]}",
        expect![
            "cpu=4000 hugepages-2Mi=4194304 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
}

#[test]
fn a_limit_range_fills_in_what_is_missing_in_its_own_namespace_only() {
    let defaults = with_range("[{type: Container, default: {cpu: '2'}, defaultRequest: {memory: 64Mi}}]");
    check(
        &defaults,
        "{containers: [{name: a}, {name: b, resources: {requests: {cpu: 100m}}}]}",
        expect![
            "cpu=2100 memory=134217728 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
    let elsewhere = template(&yaml("{spec: {containers: [{name: a}]}}"), "other", &defaults).unwrap();
    assert!(elsewhere.requests.is_empty());
}

#[test]
fn a_template_that_a_limit_range_forbids_is_told_why() {
    let spec = "{containers: [{name: a, resources: {requests: {cpu: '1'}, limits: {cpu: '4'}}}]}";
    check(
        &with_range("[{type: Container, max: {cpu: '2'}}]"),
        spec,
        expect![
            "template.spec.containers[0].resources: LimitRange lr: maximum cpu usage per Container is 2, but the limit is 4"
        ],
    );
    check(
        &with_range("[{type: Container, min: {cpu: '2'}}]"),
        spec,
        expect![
            "template.spec.containers[0].resources: LimitRange lr: minimum cpu usage per Container is 2, but the request is 1"
        ],
    );
    check(
        &with_range("[{type: Container, maxLimitRequestRatio: {cpu: '3'}}]"),
        spec,
        expect![
            "template.spec.containers[0].resources: LimitRange lr: cpu max limit to request ratio per Container is 3, but 4 to 1 is given"
        ],
    );
    check(
        &with_range("[{type: Container, maxLimitRequestRatio: {cpu: '4'}}]"),
        spec,
        expect![
            "cpu=1000 tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
    check(
        &with_range("[{type: Pod, max: {cpu: '3', memory: 1Gi}}]"),
        spec,
        expect!["template.spec: LimitRange lr: maximum cpu usage per Pod is 3, but the limit is 4"],
    );
    check(
        &with_range("[{type: Pod, min: {memory: 1Gi}}]"),
        spec,
        expect![
            "template.spec: LimitRange lr: minimum memory usage per Pod is 1Gi, but no request is specified"
        ],
    );
}

#[test]
fn a_runtime_class_adds_overhead_selector_and_tolerations() {
    let mut defaults = Defaults::default();
    defaults.set_runtime_class(&yaml(
        "{metadata: {name: kata}, handler: kata, overhead: {podFixed: {cpu: 250m, memory: 160Mi}}, \
          scheduling: {nodeSelector: {kata: 'yes'}, tolerations: [{key: kata, operator: Exists}]}}",
    ));
    let containers = "containers: [{name: a, resources: {requests: {cpu: '1'}}}]";
    check(
        &defaults,
        &format!("{{runtimeClassName: kata, {containers}}}"),
        expect![
            "cpu=1250 memory=167772160 selector[kata:yes] tolerates[kata] tolerates[node.kubernetes.io/not-ready:NoExecute] tolerates[node.kubernetes.io/unreachable:NoExecute]"
        ],
    );
    check(
        &defaults,
        &format!("{{runtimeClassName: gvisor, {containers}}}"),
        expect![[r#"template.spec.runtimeClassName: RuntimeClass "gvisor" not found"#]],
    );
    check(
        &defaults,
        &format!("{{runtimeClassName: kata, nodeSelector: {{kata: 'no'}}, {containers}}}"),
        expect![[r#"template.spec.nodeSelector[kata]: "no" contradicts "yes" of RuntimeClass "kata""#]],
    );
    check(
        &defaults,
        &format!("{{runtimeClassName: kata, overhead: {{cpu: 1m}}, {containers}}}"),
        expect![[r#"template.spec.overhead: differs from that of RuntimeClass "kata""#]],
    );
}

#[test]
fn priorities_come_from_the_job_then_the_pods_then_the_cluster() {
    let mut defaults = Defaults::default();
    defaults.set_workload_priority_class("urgent", 900);
    defaults.set_priority_class(&yaml("{metadata: {name: high}, value: 100}"));
    assert_eq!(defaults.priority(None, None), Ok((0, None)));
    defaults.set_priority_class(&yaml("{metadata: {name: usual}, value: 10, globalDefault: true}"));
    let source = |name: &str| Some(PrioritySource::Pod(name.into()));
    assert_eq!(defaults.priority(None, None), Ok((10, source("usual"))));
    assert_eq!(defaults.priority(None, Some("high")), Ok((100, source("high"))));
    let workload = Some(PrioritySource::Workload("urgent".into()));
    assert_eq!(defaults.priority(Some("urgent"), Some("high")), Ok((900, workload)));
    let missing = defaults.priority(Some("gone"), None).unwrap_err().to_string();
    expect![[r#"metadata.labels[kueue.x-k8s.io/priority-class]: WorkloadPriorityClass "gone" not found"#]]
        .assert_eq(&missing);
    defaults.remove_priority_class("usual");
    let missing = defaults.priority(None, Some("usual")).unwrap_err().to_string();
    expect![[r#"spec.template.spec.priorityClassName: PriorityClass "usual" not found"#]].assert_eq(&missing);
}

// What the API server does at creation, written down a second time and otherwise: on JSON, from
// the text of Kubernetes' documentation. The property below compares the two.

fn resource_list() -> impl Strategy<Value = Value> {
    let amount = prop::sample::select(vec!["0", "1", "250m", "1500m", "2", "3", "64Mi", "1Gi"]);
    let name = prop::sample::select(vec!["cpu", "memory", "example.com/gpu"]);
    prop::collection::btree_map(name, amount, 0..3).prop_map(|map| json!(map))
}

fn resources() -> impl Strategy<Value = Value> {
    (resource_list(), resource_list())
        .prop_map(|(requests, limits)| json!({"requests": requests, "limits": limits}))
}

fn container() -> impl Strategy<Value = Value> {
    resources().prop_map(|resources| json!({"name": "c", "resources": resources}))
}

fn init_container() -> impl Strategy<Value = Value> {
    (container(), any::<bool>()).prop_map(|(mut container, sidecar)| {
        if sidecar {
            container["restartPolicy"] = json!("Always");
        }
        container
    })
}

fn pod_spec() -> impl Strategy<Value = Value> {
    let containers = prop::collection::vec(container(), 1..4);
    let init = prop::collection::vec(init_container(), 0..4);
    let keys = prop::sample::select(vec!["a", "node.kubernetes.io/not-ready", "kata"]);
    let toleration = (keys, any::<bool>()).prop_map(|(key, exists)| match exists {
        true => json!({"key": key, "operator": "Exists", "effect": "NoExecute"}),
        false => json!({"key": key, "operator": "Equal", "value": "x"}),
    });
    let tolerations = prop::collection::vec(toleration, 0..3);
    (containers, init, tolerations, any::<bool>()).prop_map(|(containers, init, tolerations, kata)| {
        let mut spec = json!({"containers": containers, "initContainers": init, "tolerations": tolerations});
        if kata {
            spec["runtimeClassName"] = json!("kata");
        }
        spec
    })
}

fn fill_in(list: &mut Value, from: &Value) {
    for (key, value) in from.as_object().into_iter().flatten() {
        let list = list.as_object_mut().unwrap();
        if !list.contains_key(key) {
            list.insert(key.clone(), value.clone());
        }
    }
}

/// A pod of this template as the API server stores it. `range` is a LimitRange's only item.
fn created(spec: &Value, range: &Value, class: &Value) -> Value {
    let mut spec = spec.clone();
    for list in ["containers", "initContainers"] {
        for container in spec[list].as_array_mut().unwrap() {
            let limits = container["resources"]["limits"].clone();
            fill_in(&mut container["resources"]["requests"], &limits);
            fill_in(&mut container["resources"]["limits"], &range["default"]);
            fill_in(&mut container["resources"]["requests"], &range["defaultRequest"]);
        }
    }
    let kata = class["scheduling"]["tolerations"].as_array().unwrap();
    if !spec["runtimeClassName"].is_null() {
        spec["tolerations"].as_array_mut().unwrap().extend(kata.iter().cloned());
        spec["overhead"] = class["overhead"]["podFixed"].clone();
        spec["nodeSelector"] = class["scheduling"]["nodeSelector"].clone();
    }
    let tolerations = spec["tolerations"].as_array_mut().unwrap();
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let effect = |one: &Value| one["effect"].is_null() || one["effect"] == "NoExecute";
        if !tolerations.iter().any(|one| one["key"] == key && effect(one)) {
            tolerations.push(json!({"key": key, "operator": "Exists", "effect": "NoExecute"}));
        }
    }
    json!({"metadata": {"name": "p", "uid": "u", "namespace": "default"}, "spec": spec})
}

proptest! {
    #[test]
    fn the_predicted_shape_is_the_shape_of_the_created_pod(
        spec in pod_spec(),
        default in resource_list(),
        default_request in resource_list(),
    ) {
        let class = json!({
            "metadata": {"name": "kata"}, "handler": "kata",
            "overhead": {"podFixed": {"cpu": "250m", "memory": "10Mi"}},
            "scheduling": {"nodeSelector": {"kata": "y"}, "tolerations": [{"key": "kata", "operator": "Exists"}]},
        });
        // Kubernetes stores LimitRanges with requests that follow from limits.
        let mut item = json!({"type": "Container", "default": default, "defaultRequest": default_request});
        let limits = item["default"].clone();
        fill_in(&mut item["defaultRequest"], &limits);
        let mut defaults = Defaults::default();
        defaults.set_runtime_class(&serde_json::from_value(class.clone()).unwrap());
        let range = json!({"metadata": {"name": "lr", "namespace": "default"}, "spec": {"limits": [item]}});
        defaults.set_limit_range(&serde_json::from_value(range).unwrap());

        let told: k8s_openapi::api::core::v1::PodTemplateSpec =
            serde_json::from_value(json!({"spec": spec})).unwrap();
        let told = template(&told, "default", &defaults).unwrap();
        let made = serde_json::from_value(created(&spec, &item, &class)).unwrap();
        let made = pod(&made, &Schedulers::default()).unwrap();
        prop_assert_eq!(&told, &*made.pod.shape);
    }
}
