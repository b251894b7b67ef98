//! Kubernetes' built-in admission of new pods: what depends on other objects.

use serde_json::{Value, json};
use soroi_quantity::Quantity;

use super::{amount, each_container};
use crate::object::{self, Fields, set_default};
use crate::status::ApiError;
use crate::store::State;

const LIMIT_RANGES: &str = "limitranges";
const PRIORITY_CLASSES: &str = "priorityclasses.scheduling.k8s.io";
const RUNTIME_CLASSES: &str = "runtimeclasses.node.k8s.io";

fn forbid(pod: &Value, why: impl std::fmt::Display) -> ApiError {
    ApiError::forbidden_pod(object::meta(pod, "name"), why)
}

/// LimitRanger: defaults for containers, then the bounds.
pub(crate) fn limit_ranges(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    let namespace = object::meta(pod, "namespace").to_owned();
    let Some(ranges) = state.collection(LIMIT_RANGES) else { return Ok(()) };
    let limits: Vec<Value> = ranges
        .range(Some(&namespace), None)
        .flat_map(|(_, range)| object::list(&range.value, &["spec", "limits"]).iter().cloned())
        .collect();
    if limits.is_empty() {
        return Ok(());
    }
    let mut said = Vec::new();
    for limit in limits.iter().filter(|l| object::text(l, &["type"]) == "Container") {
        let (request, most) = (object::map(limit, &["defaultRequest"]), object::map(limit, &["default"]));
        each_container(object::ensure(pod, &["spec"]), |container| {
            let name = container.get("name").and_then(Value::as_str).unwrap_or("").to_owned();
            let resources = container.entry("resources").or_insert_with(|| json!({}));
            for (which, word, defaults) in [("requests", "request", request), ("limits", "limit", most)] {
                let Some(defaults) = defaults.filter(|d| !d.is_empty()) else { continue };
                let list = object::ensure(resources, &[which]);
                let missing: Vec<&str> =
                    defaults.keys().filter(|k| !list.contains_key(*k)).map(String::as_str).collect();
                for key in &missing {
                    set_default(list, key, defaults[*key].clone());
                }
                if !missing.is_empty() {
                    said.push(format!("{} {word} for container {name}", missing.join(", ")));
                }
            }
        });
    }
    if !said.is_empty() {
        let text = format!("LimitRanger plugin set: {}", said.join("; "));
        object::ensure(pod, &["metadata", "annotations"])
            .insert("kubernetes.io/limit-ranger".into(), text.into());
    }
    let wrong: Vec<String> = limits.iter().flat_map(|limit| bounds(limit, pod)).collect();
    match wrong.as_slice() {
        [] => Ok(()),
        [one] => Err(forbid(pod, one)),
        many => Err(forbid(pod, format!("[{}]", many.join(", ")))),
    }
}

/// What is outside the bounds of one limit.
fn bounds(limit: &Value, pod: &Value) -> Vec<String> {
    let kind = object::text(limit, &["type"]);
    let containers = object::list(pod, &["spec", "containers"]);
    let asked = |which: &str, resource: &str| -> Vec<Option<Quantity>> {
        let each = containers.iter().map(|c| amount(object::map(c, &["resources", which]), resource));
        match kind {
            "Container" => each.collect(),
            "Pod" => vec![each.flatten().reduce(|a, b| a.saturating_add(&b))],
            _ => Vec::new(),
        }
    };
    let mut wrong = Vec::new();
    for (resource, bound) in object::map(limit, &["min"]).into_iter().flatten() {
        let Some(least) = bound.as_str().and_then(|b| b.parse::<Quantity>().ok()) else { continue };
        for request in asked("requests", resource) {
            match request {
                None => wrong.push(format!(
                    "minimum {resource} usage per {kind} is {least}.  No request is specified"
                )),
                Some(r) if r < least => {
                    wrong.push(format!("minimum {resource} usage per {kind} is {least}, but request is {r}"));
                }
                Some(_) => {}
            }
        }
    }
    for (resource, bound) in object::map(limit, &["max"]).into_iter().flatten() {
        let Some(most) = bound.as_str().and_then(|b| b.parse::<Quantity>().ok()) else { continue };
        for (most_used, request) in asked("limits", resource).into_iter().zip(asked("requests", resource)) {
            match (most_used, request) {
                (None, _) => wrong
                    .push(format!("maximum {resource} usage per {kind} is {most}.  No limit is specified")),
                (Some(l), _) if l > most => {
                    wrong.push(format!("maximum {resource} usage per {kind} is {most}, but limit is {l}"));
                }
                (_, Some(r)) if r > most => {
                    wrong.push(format!("maximum {resource} usage per {kind} is {most}, but request is {r}"));
                }
                _ => {}
            }
        }
    }
    wrong
}

/// ServiceAccount: only the name. No token is mounted, so the account need not exist.
pub(crate) fn service_account(pod: &mut Value) {
    let spec = object::ensure(pod, &["spec"]);
    set_default(spec, "serviceAccountName", "default");
    let name = spec.get("serviceAccountName").cloned().unwrap_or_default();
    spec.insert("serviceAccount".into(), name);
}

/// Priority: the number behind the class's name.
pub(crate) fn priority(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    let name = object::text(pod, &["spec", "priorityClassName"]).to_owned();
    let class = if name.is_empty() {
        let classes = state.collection(PRIORITY_CLASSES).into_iter().flat_map(|c| c.range(None, None));
        classes.map(|(_, c)| c).find(|c| object::flag(&c.value, &["globalDefault"])).cloned()
    } else {
        let found = state.get(PRIORITY_CLASSES, "", &name).cloned();
        if found.is_none() {
            return Err(forbid(pod, format!("no PriorityClass with name {name} was found")));
        }
        found
    };
    let value = class.as_ref().and_then(|c| object::number(&c.value, &["value"])).unwrap_or(0);
    let policy = class.as_ref().map_or("", |c| object::text(&c.value, &["preemptionPolicy"]));
    let policy = if policy.is_empty() { "PreemptLowerPriority" } else { policy };
    if let Some(given) = object::number(pod, &["spec", "priority"])
        && given != value
    {
        return Err(forbid(
            pod,
            format!(
                "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller computed {value} from the given PriorityClass name"
            ),
        ));
    }
    let given = object::text(pod, &["spec", "preemptionPolicy"]);
    if !given.is_empty() && given != policy {
        return Err(forbid(
            pod,
            format!(
                "the string value of PreemptionPolicy ({given}) must not be provided in pod spec; priority admission controller computed {policy} from the given PriorityClass name"
            ),
        ));
    }
    let spec = object::ensure(pod, &["spec"]);
    if let Some(class) = class.as_ref().filter(|_| name.is_empty()) {
        spec.insert("priorityClassName".into(), object::meta(&class.value, "name").into());
    }
    spec.insert("priority".into(), value.into());
    spec.insert("preemptionPolicy".into(), policy.into());
    Ok(())
}

/// DefaultTolerationSeconds: a pod stays five minutes on a node that is not ready or unreachable.
pub(crate) fn tolerations(pod: &mut Value) {
    const SECS: i64 = 300;
    for key in ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"] {
        let tolerated = object::list(pod, &["spec", "tolerations"]).iter().any(|t| {
            let (its_key, effect) = (object::text(t, &["key"]), object::text(t, &["effect"]));
            (its_key.is_empty() || its_key == key) && matches!(effect, "" | "NoExecute")
        });
        if tolerated {
            continue;
        }
        let toleration =
            json!({ "key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": SECS });
        let list = object::ensure(pod, &["spec"]).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.push(toleration);
        }
    }
}

/// RuntimeClass: its overhead, node selector and tolerations.
pub(crate) fn runtime_class(state: &State, pod: &mut Value) -> Result<(), ApiError> {
    let name = object::text(pod, &["spec", "runtimeClassName"]).to_owned();
    let given = object::map(pod, &["spec", "overhead"]).filter(|o| !o.is_empty()).cloned();
    if name.is_empty() {
        return match given {
            Some(_) => Err(forbid(
                pod,
                "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead",
            )),
            None => Ok(()),
        };
    }
    let Some(class) = state.get(RUNTIME_CLASSES, "", &name).cloned() else {
        return Err(forbid(pod, format!("pod rejected: RuntimeClass {name:?} not found")));
    };
    let fixed = object::map(&class.value, &["overhead", "podFixed"]).cloned();
    match (given, fixed) {
        (Some(given), Some(fixed)) if given != fixed => {
            let why = "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead";
            return Err(forbid(pod, why));
        }
        (Some(_), None) => {
            let why = "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead";
            return Err(forbid(pod, why));
        }
        (None, Some(fixed)) => {
            object::ensure(pod, &["spec"]).insert("overhead".into(), Value::Object(fixed));
        }
        _ => {}
    }
    place_like_class(&class.value, pod)
}

fn place_like_class(class: &Value, pod: &mut Value) -> Result<(), ApiError> {
    let selector = object::map(class, &["scheduling", "nodeSelector"]).cloned().unwrap_or_default();
    for (key, value) in selector {
        let list: &mut Fields = object::ensure(pod, &["spec", "nodeSelector"]);
        match list.get(&key) {
            Some(other) if *other != value => {
                let why = format!(
                    "conflict: runtimeClass.scheduling.nodeSelector[{key}] = {}; pod.spec.nodeSelector[{key}] = {}",
                    value.as_str().unwrap_or(""),
                    other.as_str().unwrap_or("")
                );
                return Err(forbid(pod, why));
            }
            _ => {
                list.insert(key, value);
            }
        }
    }
    let more = object::list(class, &["scheduling", "tolerations"]).to_vec();
    if !more.is_empty() {
        let list = object::ensure(pod, &["spec"]).entry("tolerations").or_insert_with(|| json!([]));
        if let Some(list) = list.as_array_mut() {
            list.extend(more.into_iter().filter(|t| !list.contains(t)).collect::<Vec<_>>());
        }
    }
    Ok(())
}
