//! Which manifests does a short line stand for?
//!
//! `job train pods=4 gpu=1` is a whole Job; this module is the one place that says which. Knows
//! the shapes of the API's objects; never a client.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::ParseError;
use super::words::{DEFAULT_NAMESPACE, Words, full_name, label_name};
use crate::kind;

/// Room of a node whose line does not say otherwise: enough never to be the reason.
const NODE_ROOM: &[(&str, &str)] = &[("cpu", "32"), ("memory", "128Gi"), ("pods", "110")];

/// Options that tell a simulated kubelet what happens to a pod, and the annotations that they are:
/// how long it runs, starts, stops, and how it ends.
const KUBELET_OPTIONS: &[(&str, &str)] = &[
    ("runs", "soroi.dev/run-for"),
    ("starts", "soroi.dev/start-after"),
    ("ready", "soroi.dev/ready-after"),
    ("stops", "soroi.dev/stop-after"),
    ("exit", "soroi.dev/exit-code"),
];

/// The manifests that a line stands for, or `None` if its first word is no builder.
pub(crate) fn manifests(verb: &str, words: &mut Words) -> Option<Result<Vec<Value>, ParseError>> {
    Some(match verb {
        "node" => nodes(words),
        "namespace" => namespaces(words),
        "topology" => topology(words),
        "flavor" => flavor(words),
        "cohort" => cohort(words),
        "queue" => queue(words),
        "localqueue" => local_queue(words),
        "volcanoqueue" => volcano_queue(words),
        "priority" => priority(words),
        "pod" => pod(words),
        "job" => job(words),
        "group" => group(words),
        _ => return None,
    })
}

fn nodes(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let mut room: Map<String, Value> =
        NODE_ROOM.iter().map(|(name, amount)| ((*name).to_owned(), json!(amount))).collect();
    room.extend(words.resources().into_iter().map(|(name, amount)| (name, json!(amount))));
    let mut labels = Map::new();
    labels.insert(label_name("pool"), json!("train"));
    for level in ["block", "rack", "pool"] {
        if let Some(value) = words.option(level) {
            labels.insert(label_name(level), json!(value));
        }
    }
    labels.extend(words.prefixed("label:").into_iter().map(|(key, value)| (key, json!(value))));
    let taints = taints(words)?;
    let names = words.rest();
    if names.is_empty() {
        return Err(words.error("a node's name is missing"));
    }
    let node = |name: String| {
        let mut labels = labels.clone();
        labels.insert(label_name("host"), json!(name));
        let mut node = json!({
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels},
            "status": {"capacity": room, "allocatable": room},
        });
        if !taints.is_empty() {
            node["spec"] = json!({"taints": taints});
        }
        node
    };
    Ok(names.into_iter().map(node).collect())
}

/// Taints from `taint:KEY=VALUE:EFFECT` options.
fn taints(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    words
        .prefixed("taint:")
        .into_iter()
        .map(|(key, rest)| match rest.rsplit_once(':') {
            Some((value, effect)) => Ok(json!({"key": key, "value": value, "effect": effect})),
            None => {
                Err(words.error(format!("taint:{key}={rest}: the effect is missing (`value:NoSchedule`)")))
            }
        })
        .collect()
}

fn namespaces(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let labels = words.prefixed("label:");
    let namespace =
        |name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}});
    Ok(words.rest().into_iter().map(namespace).collect())
}

fn topology(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the topology's name")?;
    let levels: Vec<Value> =
        words.rest().iter().map(|level| json!({"nodeLabel": label_name(level)})).collect();
    Ok(vec![object(&kind::TOPOLOGY, "", &name, json!({"levels": levels}))])
}

fn flavor(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the flavor's name")?;
    let topology = words.option("topology");
    let mut labels: Map<String, Value> =
        words.prefixed("label:").into_iter().map(|(key, value)| (key, json!(value))).collect();
    // Kueue refuses a flavor with a topology and no labels; every node of a story has this one.
    if topology.is_some() && labels.is_empty() {
        labels.insert(label_name("pool"), json!("train"));
    }
    let mut spec = Map::new();
    if !labels.is_empty() {
        spec.insert("nodeLabels".into(), Value::Object(labels));
    }
    let taints = taints(words)?;
    if !taints.is_empty() {
        spec.insert("nodeTaints".into(), json!(taints));
    }
    if let Some(topology) = topology {
        spec.insert("topologyName".into(), json!(topology));
    }
    Ok(vec![object(&kind::FLAVOR, "", &name, Value::Object(spec))])
}

fn cohort(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the cohort's name")?;
    let mut spec = json!({});
    if let Some(parent) = words.option("parent") {
        spec["parentName"] = json!(parent);
    }
    let flavor = words.option("flavor").unwrap_or_else(|| "default".to_owned());
    let quotas = quotas(words)?;
    if !quotas.is_empty() {
        spec["resourceGroups"] = json!([resource_group(&flavor, &quotas)]);
    }
    Ok(vec![object(&kind::COHORT, "", &name, spec)])
}

/// A ClusterQueue with one flavor, and a LocalQueue of the same name in every namespace that `in=`
/// lists. Without `flavor=` it also makes the flavor `default`, which means every node.
fn queue(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the queue's name")?;
    let flavor = words.option("flavor");
    let mut made = Vec::new();
    if flavor.is_none() {
        made.push(object(&kind::FLAVOR, "", "default", json!({})));
    }
    let flavor = flavor.unwrap_or_else(|| "default".to_owned());
    let quotas = quotas(words)?;
    let mut spec = json!({"namespaceSelector": {}, "resourceGroups": [resource_group(&flavor, &quotas)]});
    if words.flag("strict") {
        spec["queueingStrategy"] = json!("StrictFIFO");
    }
    if let Some(cohort) = words.option("cohort") {
        spec["cohortName"] = json!(cohort);
    }
    if let Some(stop) = words.option("stop") {
        spec["stopPolicy"] = json!(stop);
    }
    let preemption = preemption(words)?;
    if !preemption.is_empty() {
        spec["preemption"] = Value::Object(preemption);
    }
    if let Some(weight) = words.option("weight") {
        spec["fairSharing"] = json!({"weight": weight});
    }
    let mut cluster_queue = object(&kind::CLUSTER_QUEUE, "", &name, spec);
    if let Some(placement) = words.option("placement") {
        cluster_queue["metadata"]["annotations"] = json!({"soroi.dev/placement": placement});
    }
    made.push(cluster_queue);
    let namespaces = words.option("in").unwrap_or_else(|| DEFAULT_NAMESPACE.to_owned());
    for namespace in namespaces.split(',').filter(|namespace| !namespace.is_empty()) {
        made.push(object(&kind::LOCAL_QUEUE, namespace, &name, json!({"clusterQueue": name})));
    }
    Ok(made)
}

/// Whom a queue's gangs preempt: `within=LowerPriority reclaim=Any whileborrowing[=PRIORITY]`.
fn preemption(words: &mut Words) -> Result<Map<String, Value>, ParseError> {
    let mut preemption = Map::new();
    for (word, field) in [("within", "withinClusterQueue"), ("reclaim", "reclaimWithinCohort")] {
        if let Some(rule) = words.option(word) {
            preemption.insert(field.into(), json!(rule));
        }
    }
    let most = words.number("whileborrowing")?;
    if most.is_some() || words.flag("whileborrowing") {
        let mut borrow = json!({"policy": "LowerPriority"});
        if let Some(most) = most {
            borrow["maxPriorityThreshold"] = json!(most);
        }
        preemption.insert("borrowWithinCohort".into(), borrow);
    }
    Ok(preemption)
}

fn local_queue(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let (namespace, name) = full_name(&words.next("the queue's name")?);
    let to = words.option("to").ok_or_else(|| words.error("to=CLUSTERQUEUE is missing"))?;
    Ok(vec![object(&kind::LOCAL_QUEUE, &namespace, &name, json!({"clusterQueue": to}))])
}

fn volcano_queue(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the queue's name")?;
    let guarantee = words.prefixed("keep:");
    let guarantee = guarantee.iter().map(|(key, amount)| (super::words::resource_name(key), amount));
    let guarantee: BTreeMap<String, &String> = guarantee.collect();
    let parent = words.option("parent");
    let capability = words.resources();
    let mut spec = json!({"weight": words.number("weight")?.unwrap_or(1)});
    if !guarantee.is_empty() {
        (spec["guarantee"], spec["deserved"]) = (json!({ "resource": guarantee }), json!(guarantee));
    }
    if let Some(parent) = parent {
        spec["parent"] = parent.into();
    }
    if !capability.is_empty() {
        spec["capability"] = json!(capability);
    }
    Ok(vec![object(&kind::VOLCANO_QUEUE, "", &name, spec)])
}

/// Quota entries: nominal from `gpu=4`, limits from `borrow:gpu=2` and `lend:gpu=1`.
fn quotas(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let borrow = words.prefixed("borrow:");
    let lend = words.prefixed("lend:");
    let mut quotas = Vec::new();
    for (resource, nominal) in words.resources() {
        let mut quota = json!({"name": resource, "nominalQuota": nominal});
        for (limits, field) in [(&borrow, "borrowingLimit"), (&lend, "lendingLimit")] {
            let found = limits.iter().find(|(key, _)| super::words::resource_name(key) == resource);
            if let Some((_, amount)) = found {
                quota[field] = json!(amount);
            }
        }
        quotas.push(quota);
    }
    Ok(quotas)
}

fn resource_group(flavor: &str, quotas: &[Value]) -> Value {
    let covered: Vec<&Value> = quotas.iter().map(|quota| &quota["name"]).collect();
    json!({"coveredResources": covered, "flavors": [{"name": flavor, "resources": quotas}]})
}

fn priority(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let name = words.next("the class's name")?;
    let value = words.number("value")?.ok_or_else(|| words.error("value=NUMBER is missing"))?;
    Ok(vec![json!({
        "apiVersion": kind::WORKLOAD_PRIORITY_CLASS.api_version(), "kind": kind::WORKLOAD_PRIORITY_CLASS.kind,
        "metadata": {"name": name}, "value": value,
    })])
}

/// A pod: bound from the start with `on=NODE`, else a member of the group `group=NAME`, else a pod
/// alone that asks for our scheduler.
fn pod(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let node = words.option("on");
    let scheduler = words.option("scheduler");
    let mut labels = Map::new();
    if let Some(queue) = words.option("queue") {
        labels.insert("kueue.x-k8s.io/queue-name".into(), json!(queue));
    }
    labels.extend(words.prefixed("label:").into_iter().map(|(key, value)| (key, json!(value))));
    let mut annotations = Map::new();
    add_group(words, &mut annotations);
    add_kubelet_options(words, &mut annotations);
    add_topology(words, &mut annotations);
    let mut spec = pod_spec(words)?;
    let foreign = node.is_some() && !annotations.contains_key("scheduling.k8s.io/group-name");
    let usual = if foreign { "default-scheduler" } else { "soroi" };
    spec["schedulerName"] = json!(scheduler.as_deref().unwrap_or(usual));
    if let Some(node) = &node {
        spec["nodeName"] = json!(node);
    }
    let names = words.rest();
    if names.is_empty() {
        return Err(words.error("the pod's name is missing"));
    }
    let made = names.iter().map(|name| {
        let (namespace, name) = full_name(name);
        let mut pod = object(&kind::POD, &namespace, &name, spec.clone());
        pod["metadata"]["labels"] = Value::Object(labels.clone());
        pod["metadata"]["annotations"] = Value::Object(annotations.clone());
        pod
    });
    Ok(made.collect())
}

fn job(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let (namespace, name) = full_name(&words.next("the job's name")?);
    let pods = words.number("pods")?.unwrap_or(1);
    let mut labels = Map::new();
    let queue = words.option("queue").unwrap_or_else(|| "main".to_owned());
    if queue != "-" {
        labels.insert("kueue.x-k8s.io/queue-name".into(), json!(queue));
    }
    if let Some(class) = words.option("priority") {
        labels.insert("kueue.x-k8s.io/priority-class".into(), json!(class));
    }
    let mut annotations = Map::new();
    add_kubelet_options(words, &mut annotations);
    add_topology(words, &mut annotations);
    add_group(words, &mut annotations);
    let suspend = words.option("suspend").as_deref() != Some("false");
    let completions = words.number("completions")?.unwrap_or(pods);
    let mut spec = json!({"parallelism": pods, "completions": completions, "suspend": suspend});
    if words.flag("indexed") {
        spec["completionMode"] = json!("Indexed");
    }
    for (key, field) in [("backoff", "backoffLimit"), ("deadline", "activeDeadlineSeconds")] {
        if let Some(number) = words.number(key)? {
            spec[field] = json!(number);
        }
    }
    if let Some(when) = words.option("replace") {
        spec["podReplacementPolicy"] = json!(when);
    }
    let mut template = pod_spec(words)?;
    if let Some(scheduler) = words.option("scheduler") {
        template["schedulerName"] = json!(scheduler);
    }
    spec["template"] = json!({"metadata": {"annotations": annotations}, "spec": template});
    if let Some(finalizer) = words.option("finalizer") {
        spec["template"]["metadata"]["finalizers"] = json!([finalizer]);
    }
    let mut job = object(&kind::JOB, &namespace, &name, spec);
    job["metadata"]["labels"] = Value::Object(labels);
    Ok(vec![job])
}

fn group(words: &mut Words) -> Result<Vec<Value>, ParseError> {
    let (namespace, name) = full_name(&words.next("the group's name")?);
    let mut spec = json!({"minMember": words.number("min")?.unwrap_or(1)});
    for (role, least) in words.prefixed("role:") {
        let least: u32 = least
            .parse()
            .map_err(|_| words.error(format!("the minimum of {role}: `{least}` is no number")))?;
        spec["minTaskMember"][role] = json!(least);
    }
    if let Some(queue) = words.option("volcano") {
        spec["queue"] = json!(queue);
    }
    let mut group = object(&kind::POD_GROUP, &namespace, &name, spec);
    if let Some(queue) = words.option("queue") {
        group["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": queue});
    }
    Ok(vec![group])
}

/// The PodGroup of a pod, and its role there.
fn add_group(words: &mut Words, annotations: &mut Map<String, Value>) {
    for (option, key) in [("group", "scheduling.k8s.io/group-name"), ("role", "volcano.sh/task-spec")] {
        if let Some(value) = words.option(option) {
            annotations.insert(key.into(), json!(value));
        }
    }
}

/// The part of a pod that placement looks at. Extended resources get equal limits, as the API
/// demands.
fn pod_spec(words: &mut Words) -> Result<Value, ParseError> {
    let requests = words.resources();
    let limits: Map<String, Value> = requests
        .iter()
        .filter(|(name, _)| name.contains('/') || name.starts_with("hugepages-"))
        .map(|(name, amount)| (name.clone(), json!(amount)))
        .collect();
    let mut resources = json!({"requests": requests});
    if !limits.is_empty() {
        resources["limits"] = Value::Object(limits);
    }
    let mut spec = json!({
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "registry.example/train:1", "resources": resources}],
    });
    let selector: Map<String, Value> =
        words.prefixed("select:").into_iter().map(|(key, value)| (label_name(&key), json!(value))).collect();
    if !selector.is_empty() {
        spec["nodeSelector"] = Value::Object(selector);
    }
    if let Some(keys) = words.option("tolerate") {
        let tolerations: Vec<Value> =
            keys.split(',').map(|key| json!({"key": key, "operator": "Exists"})).collect();
        spec["tolerations"] = json!(tolerations);
    }
    Ok(spec)
}

fn add_kubelet_options(words: &mut Words, annotations: &mut Map<String, Value>) {
    for (option, annotation) in KUBELET_OPTIONS {
        if let Some(value) = words.option(option) {
            annotations.insert((*annotation).to_owned(), json!(value));
        }
    }
}

fn add_topology(words: &mut Words, annotations: &mut Map<String, Value>) {
    for request in ["required", "preferred"] {
        if let Some(level) = words.option(request) {
            annotations
                .insert(format!("kueue.x-k8s.io/podset-{request}-topology"), json!(label_name(&level)));
        }
    }
    if let Some((level, size)) = words.option("slice").as_deref().and_then(|slice| slice.split_once(':')) {
        let key = |name: &str| format!("kueue.x-k8s.io/podset-slice-{name}");
        annotations.insert(key("required-topology"), json!(label_name(level)));
        annotations.insert(key("size"), json!(size));
    }
    if let Some(group) = words.option("together") {
        annotations.insert("kueue.x-k8s.io/podset-group-name".into(), json!(group));
    }
    if words.flag("unconstrained") {
        annotations.insert("kueue.x-k8s.io/podset-unconstrained-topology".into(), json!("true"));
    }
}

fn object(kind: &kind::Kind, namespace: &str, name: &str, spec: Value) -> Value {
    let mut object = json!({"apiVersion": kind.api_version(), "kind": kind.kind, "metadata": {"name": name}, "spec": spec});
    if kind.namespaced {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object
}
