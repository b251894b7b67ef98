//! The columns of the built-in kinds, as Kubernetes 1.36 prints them
//! (`pkg/printers/internalversion/printers.go`). One list per kind.

use jiff::Timestamp;
use serde_json::Value;

use super::cell::{self, has, joined, words};
use super::{Cell, Column, pod};
use crate::object;

/// The columns of a built-in kind. Those without a list of their own show when they were created.
pub(crate) fn columns(group: &str, kind: &str) -> Vec<Column> {
    match (group, kind) {
        ("", "Pod") => pod::columns(),
        ("", "Node") => node(),
        ("", "Namespace") => vec![name(), text("Status", &["status", "phase"]), age()],
        ("" | "events.k8s.io", "Event") => event(),
        ("", "ConfigMap") => vec![name(), made("Data", |o, _| entries(o, &["data", "binaryData"])), age()],
        ("", "Secret") => {
            vec![name(), text("Type", &["type"]), made("Data", |o, _| entries(o, &["data"])), age()]
        }
        ("", "ServiceAccount") => vec![name(), age()],
        ("", "Service") => service(),
        ("", "PersistentVolume") => volume(),
        ("", "PersistentVolumeClaim") => claim(),
        ("", "ResourceQuota") => vec![
            name(),
            made("Request", |o, _| amounts(o, false).into()),
            made("Limit", |o, _| amounts(o, true).into()),
            age(),
        ],
        ("", "PodTemplate") => vec![
            name(),
            made("Containers", |o, _| joined(object::list(o, TEMPLATE_CONTAINERS), "name").into()),
            made("Images", |o, _| joined(object::list(o, TEMPLATE_CONTAINERS), "image").into()),
            made("Pod Labels", |o, _| cell::labels(o, &["template", "metadata", "labels"]).into()),
        ],
        ("batch", "Job") => job(),
        ("apps", "Deployment") => deployment(),
        ("apps", "ReplicaSet") => replica_set(),
        ("apps", "StatefulSet") => stateful_set(),
        ("apps", "DaemonSet") => daemon_set(),
        ("scheduling.k8s.io", "PriorityClass") => vec![
            name(),
            number("Value", &["value"]),
            typed("Global-Default", "boolean", |o, _| object::flag(o, &["globalDefault"]).into()),
            age(),
            text("PreemptionPolicy", &["preemptionPolicy"]),
        ],
        ("coordination.k8s.io", "Lease") => vec![name(), text("Holder", &["spec", "holderIdentity"]), age()],
        ("node.k8s.io", "RuntimeClass") => vec![name(), text("Handler", &["handler"]), age()],
        ("policy", "PodDisruptionBudget") => vec![
            name(),
            made("Min Available", |o, _| int_or_text(o, &["spec", "minAvailable"])),
            made("Max Unavailable", |o, _| int_or_text(o, &["spec", "maxUnavailable"])),
            number("Allowed Disruptions", &["status", "disruptionsAllowed"]),
            age(),
        ],
        ("rbac.authorization.k8s.io", "RoleBinding" | "ClusterRoleBinding") => binding(),
        ("storage.k8s.io", "StorageClass") => storage_class(),
        ("storage.k8s.io", "CSINode") => vec![
            name(),
            typed("Drivers", "integer", |o, _| object::list(o, &["spec", "drivers"]).len().into()),
            age(),
        ],
        ("storage.k8s.io", "CSIDriver") => csi_driver(),
        _ => vec![
            name(),
            Column::new("Created At", "date", Cell::Text(&["metadata", "creationTimestamp"], "")),
        ],
    }
}

const TEMPLATE_CONTAINERS: &[&str] = &["template", "spec", "containers"];
const CONTAINERS: &[&str] = &["spec", "template", "spec", "containers"];

fn name() -> Column {
    text("Name", &["metadata", "name"])
}

fn age() -> Column {
    Column::new("Age", "string", Cell::Since(&["metadata", "creationTimestamp"]))
}

fn text(name: &str, path: &'static [&'static str]) -> Column {
    Column::new(name, "string", Cell::Text(path, ""))
}

fn text_or(name: &str, path: &'static [&'static str], missing: &'static str) -> Column {
    Column::new(name, "string", Cell::Text(path, missing))
}

fn number(name: &str, path: &'static [&'static str]) -> Column {
    Column::new(name, "integer", Cell::Number(path))
}

fn made(name: &str, make: fn(&Value, Timestamp) -> Value) -> Column {
    Column::new(name, "string", Cell::Made(make))
}

fn typed(name: &str, kind: &'static str, make: fn(&Value, Timestamp) -> Value) -> Column {
    Column::new(name, kind, Cell::Made(make))
}

/// Names and images of the containers of `spec.template`.
fn containers() -> [Column; 2] {
    [
        made("Containers", |o, _| joined(object::list(o, CONTAINERS), "name").into()).wide(),
        made("Images", |o, _| joined(object::list(o, CONTAINERS), "image").into()).wide(),
    ]
}

fn selector() -> Column {
    made("Selector", |o, _| cell::selector(o, &["spec", "selector"]).into()).wide()
}

fn node() -> Vec<Column> {
    const INFO: &str = "<unknown>";
    vec![
        name(),
        made("Status", |o, _| node_status(o).into()),
        made("Roles", |o, _| node_roles(o).into()),
        age(),
        text("Version", &["status", "nodeInfo", "kubeletVersion"]),
        made("Internal-IP", |o, _| node_address(o, "InternalIP").into()).wide(),
        made("External-IP", |o, _| node_address(o, "ExternalIP").into()).wide(),
        text_or("OS-Image", &["status", "nodeInfo", "osImage"], INFO).wide(),
        made("Kernel-Version", |o, _| kernel(o).into()).wide(),
        text_or("Container-Runtime", &["status", "nodeInfo", "containerRuntimeVersion"], INFO).wide(),
    ]
}

fn node_status(node: &Value) -> String {
    let ready = match cell::status_of(node, "Ready") {
        Some("True") => "Ready",
        Some(_) => "NotReady",
        None => "Unknown",
    };
    let cordoned = object::flag(node, &["spec", "unschedulable"]);
    format!("{ready}{}", if cordoned { ",SchedulingDisabled" } else { "" })
}

fn node_roles(node: &Value) -> String {
    let labels = object::labels(node).into_iter().flatten();
    let roles: std::collections::BTreeSet<&str> = labels
        .filter_map(|(key, value)| match key.strip_prefix("node-role.kubernetes.io/") {
            Some(role) => Some(role),
            None if key == "kubernetes.io/role" => value.as_str(),
            None => None,
        })
        .filter(|role| !role.is_empty())
        .collect();
    if roles.is_empty() { "<none>".to_owned() } else { roles.into_iter().collect::<Vec<_>>().join(",") }
}

fn node_address<'a>(node: &'a Value, kind: &str) -> &'a str {
    let addresses = object::list(node, &["status", "addresses"]);
    let found = addresses.iter().find(|a| object::text(a, &["type"]) == kind);
    found.map_or("<none>", |a| object::text(a, &["address"]))
}

fn kernel(node: &Value) -> String {
    let version = cell::text(node, &["status", "nodeInfo", "kernelVersion"], "<unknown>");
    match object::text(node, &["status", "nodeInfo", "architecture"]) {
        "" => version.to_owned(),
        architecture => format!("{version} ({architecture})"),
    }
}

fn event() -> Vec<Column> {
    vec![
        made("Last Seen", |o, now| last_seen(o, now).into()),
        text("Type", &["type"]),
        text("Reason", &["reason"]),
        made("Object", |o, _| event_object(o).into()),
        text("Subobject", &["involvedObject", "fieldPath"]).wide(),
        made("Source", |o, _| event_source(o).into()).wide(),
        made("Message", |o, _| object::text(o, &["message"]).trim().into()),
        made("First Seen", |o, now| first_seen(o, now).into()).wide(),
        made("Count", |o, _| event_count(o).into()).wide(),
        name().wide(),
    ]
}

fn first_seen(event: &Value, now: Timestamp) -> String {
    let first = ["firstTimestamp", "eventTime"].into_iter().find_map(|key| cell::time(event, &[key]));
    first.map_or_else(|| "<unknown>".to_owned(), |then| cell::between(then, now))
}

fn last_seen(event: &Value, now: Timestamp) -> String {
    let series = cell::time(event, &["series", "lastObservedTime"]);
    match series.or_else(|| cell::time(event, &["lastTimestamp"])) {
        Some(then) => cell::between(then, now),
        None => first_seen(event, now),
    }
}

fn event_count(event: &Value) -> i64 {
    let count = object::number(event, &["series", "count"]).or_else(|| object::number(event, &["count"]));
    count.filter(|count| *count != 0).unwrap_or(1)
}

fn event_object(event: &Value) -> String {
    let kind = object::text(event, &["involvedObject", "kind"]).to_lowercase();
    match object::text(event, &["involvedObject", "name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    }
}

fn event_source(event: &Value) -> String {
    let component = cell::text(
        event,
        &["source", "component"],
        cell::text(event, &["reportingComponent"], object::text(event, &["reportingController"])),
    );
    match cell::text(event, &["source", "host"], object::text(event, &["reportingInstance"])) {
        "" => component.to_owned(),
        host => format!("{component}, {host}"),
    }
}

fn entries(object: &Value, maps: &[&str]) -> Value {
    maps.iter().filter_map(|key| object::map(object, &[*key])).map(serde_json::Map::len).sum::<usize>().into()
}

fn int_or_text(object: &Value, path: &[&str]) -> Value {
    match object::at(object, path) {
        Some(Value::String(text)) => text.as_str().into(),
        Some(other) => other.to_string().into(),
        None => "N/A".into(),
    }
}

fn service() -> Vec<Column> {
    vec![
        name(),
        text("Type", &["spec", "type"]),
        made("Cluster-IP", |o, _| {
            let first = object::list(o, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
            first.unwrap_or("<none>").into()
        }),
        made("External-IP", |o, _| external_ip(o).into()),
        made("Port(s)", |o, _| ports(o).into()),
        age(),
        made("Selector", |o, _| cell::labels(o, &["spec", "selector"]).into()).wide(),
    ]
}

fn external_ip(service: &Value) -> String {
    let mut ips: Vec<&str> =
        object::list(service, &["spec", "externalIPs"]).iter().filter_map(Value::as_str).collect();
    let missing = match object::text(service, &["spec", "type"]) {
        "ExternalName" => return object::text(service, &["spec", "externalName"]).to_owned(),
        "LoadBalancer" => {
            let ingress = object::list(service, &["status", "loadBalancer", "ingress"]).iter();
            let shown = ingress.map(|i| cell::text(i, &["ip"], object::text(i, &["hostname"])));
            ips.splice(0..0, shown);
            "<pending>"
        }
        _ => "<none>",
    };
    if ips.is_empty() { missing.to_owned() } else { ips.join(",") }
}

fn ports(service: &Value) -> String {
    let shown: Vec<String> = object::list(service, &["spec", "ports"])
        .iter()
        .map(|port| {
            let number = |key| object::number(port, &[key]).filter(|n| *n != 0);
            let on_nodes = number("nodePort").map(|n| format!(":{n}")).unwrap_or_default();
            let protocol = cell::text(port, &["protocol"], "TCP");
            format!("{}{on_nodes}/{protocol}", number("port").unwrap_or(0))
        })
        .collect();
    if shown.is_empty() { "<none>".to_owned() } else { shown.join(",") }
}

fn volume() -> Vec<Column> {
    vec![
        name(),
        text_or("Capacity", &["spec", "capacity", "storage"], "0"),
        made("Access Modes", |o, _| access_modes(object::list(o, &["spec", "accessModes"])).into()),
        text("Reclaim Policy", &["spec", "persistentVolumeReclaimPolicy"]),
        made("Status", |o, _| phase(o).into()),
        made("Claim", |o, _| match object::at(o, &["spec", "claimRef"]) {
            Some(claim) => {
                format!("{}/{}", object::text(claim, &["namespace"]), object::text(claim, &["name"])).into()
            }
            None => "".into(),
        }),
        made("StorageClass", |o, _| class(o).into()),
        text_or("VolumeAttributesClass", &["spec", "volumeAttributesClassName"], "<unset>"),
        text("Reason", &["status", "reason"]),
        age(),
        text_or("VolumeMode", &["spec", "volumeMode"], "<unset>").wide(),
    ]
}

fn claim() -> Vec<Column> {
    fn bound(claim: &Value) -> bool {
        !object::text(claim, &["spec", "volumeName"]).is_empty()
    }
    vec![
        name(),
        made("Status", |o, _| phase(o).into()),
        text("Volume", &["spec", "volumeName"]),
        made("Capacity", |o, _| {
            let capacity = cell::text(o, &["status", "capacity", "storage"], "0");
            if bound(o) { capacity.into() } else { "".into() }
        }),
        made("Access Modes", |o, _| {
            let modes = access_modes(object::list(o, &["status", "accessModes"]));
            if bound(o) { modes.into() } else { "".into() }
        }),
        made("StorageClass", |o, _| class(o).into()),
        text_or("VolumeAttributesClass", &["spec", "volumeAttributesClassName"], "<unset>"),
        age(),
        text_or("VolumeMode", &["spec", "volumeMode"], "<unset>").wide(),
    ]
}

fn phase(object: &Value) -> &str {
    if object::deleting(object) { "Terminating" } else { object::text(object, &["status", "phase"]) }
}

fn class(object: &Value) -> &str {
    let annotation = &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"];
    cell::text(object, annotation, object::text(object, &["spec", "storageClassName"]))
}

fn access_modes(modes: &[Value]) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let there = short.into_iter().filter(|(mode, _)| modes.iter().any(|m| m == mode));
    there.map(|(_, short)| short).collect::<Vec<_>>().join(",")
}

/// `NAME: USED/HARD` of the limits of a quota, or of what are none.
fn amounts(quota: &Value, limits: bool) -> String {
    let hard = object::map(quota, &["status", "hard"]).into_iter().flatten();
    let shown: Vec<String> = hard
        .filter(|(resource, _)| resource.starts_with("limits.") == limits)
        .map(|(resource, hard)| {
            let used = cell::text(quota, &["status", "used", resource], "0");
            format!("{resource}: {used}/{}", hard.as_str().unwrap_or("0"))
        })
        .collect();
    shown.join(", ")
}

fn job() -> Vec<Column> {
    let mut columns = vec![
        name(),
        made("Status", |o, _| job_status(o).into()),
        made("Completions", |o, _| completions(o).into()),
        made("Duration", |o, now| job_duration(o, now).into()),
        age(),
    ];
    columns.extend(containers());
    columns.push(selector());
    columns
}

fn job_status(job: &Value) -> &'static str {
    match () {
        () if has(job, "Complete") => "Complete",
        () if has(job, "Failed") => "Failed",
        () if object::deleting(job) => "Terminating",
        () if has(job, "Suspended") => "Suspended",
        () if has(job, "FailureTarget") => "FailureTarget",
        () if has(job, "SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn completions(job: &Value) -> String {
    let succeeded = object::number(job, &["status", "succeeded"]).unwrap_or(0);
    let parallelism = object::number(job, &["spec", "parallelism"]).unwrap_or(0);
    match object::number(job, &["spec", "completions"]) {
        Some(completions) => format!("{succeeded}/{completions}"),
        None if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        None => format!("{succeeded}/1"),
    }
}

fn job_duration(job: &Value, now: Timestamp) -> String {
    let ended = cell::time(job, &["status", "completionTime"]).unwrap_or(now);
    let started = cell::time(job, &["status", "startTime"]);
    started.map(|started| cell::between(started, ended)).unwrap_or_default()
}

fn ready_of_replicas(object: &Value) -> Value {
    let number = |path: &[&str]| object::number(object, path).unwrap_or(0);
    format!("{}/{}", number(&["status", "readyReplicas"]), number(&["spec", "replicas"])).into()
}

fn deployment() -> Vec<Column> {
    let mut columns = vec![
        name(),
        made("Ready", |o, _| ready_of_replicas(o)),
        number("Up-to-date", &["status", "updatedReplicas"]),
        number("Available", &["status", "availableReplicas"]),
        age(),
    ];
    columns.extend(containers());
    columns.push(selector());
    columns
}

fn replica_set() -> Vec<Column> {
    let mut columns = vec![
        name(),
        number("Desired", &["spec", "replicas"]),
        number("Current", &["status", "replicas"]),
        number("Ready", &["status", "readyReplicas"]),
        age(),
    ];
    columns.extend(containers());
    columns.push(selector());
    columns
}

fn stateful_set() -> Vec<Column> {
    let mut columns = vec![name(), made("Ready", |o, _| ready_of_replicas(o)), age()];
    columns.extend(containers());
    columns
}

fn daemon_set() -> Vec<Column> {
    let mut columns = vec![
        name(),
        number("Desired", &["status", "desiredNumberScheduled"]),
        number("Current", &["status", "currentNumberScheduled"]),
        number("Ready", &["status", "numberReady"]),
        number("Up-to-date", &["status", "updatedNumberScheduled"]),
        number("Available", &["status", "numberAvailable"]),
        made("Node Selector", |o, _| cell::labels(o, &["spec", "template", "spec", "nodeSelector"]).into()),
        age(),
    ];
    columns.extend(containers());
    columns.push(selector());
    columns
}

fn binding() -> Vec<Column> {
    vec![
        name(),
        made("Role", |o, _| {
            let part = |key| object::text(o, &["roleRef", key]);
            format!("{}/{}", part("kind"), part("name")).into()
        }),
        age(),
        made("Users", |o, _| subjects(o, "User").into()).wide(),
        made("Groups", |o, _| subjects(o, "Group").into()).wide(),
        made("ServiceAccounts", |o, _| subjects(o, "ServiceAccount").into()).wide(),
    ]
}

fn subjects(binding: &Value, kind: &str) -> String {
    let ours = object::list(binding, &["subjects"]).iter().filter(|s| object::text(s, &["kind"]) == kind);
    let shown = ours.map(|subject| match object::text(subject, &["namespace"]) {
        "" => object::text(subject, &["name"]).to_owned(),
        namespace => format!("{namespace}/{}", object::text(subject, &["name"])),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn storage_class() -> Vec<Column> {
    vec![
        made("Name", |o, _| {
            let default = &["metadata", "annotations", "storageclass.kubernetes.io/is-default-class"];
            let mark = if object::text(o, default) == "true" { " (default)" } else { "" };
            format!("{}{mark}", object::meta(o, "name")).into()
        }),
        text("Provisioner", &["provisioner"]),
        text_or("ReclaimPolicy", &["reclaimPolicy"], "Delete"),
        text_or("VolumeBindingMode", &["volumeBindingMode"], "Immediate"),
        made("AllowVolumeExpansion", |o, _| object::flag(o, &["allowVolumeExpansion"]).into()),
        age(),
    ]
}

fn csi_driver() -> Vec<Column> {
    vec![
        name(),
        typed("AttachRequired", "boolean", |o, _| {
            object::at(o, &["spec", "attachRequired"]).cloned().unwrap_or(true.into())
        }),
        typed("PodInfoOnMount", "boolean", |o, _| object::flag(o, &["spec", "podInfoOnMount"]).into()),
        typed("StorageCapacity", "boolean", |o, _| object::flag(o, &["spec", "storageCapacity"]).into()),
        made("TokenRequests", |o, _| match object::at(o, &["spec", "tokenRequests"]) {
            Some(Value::Array(requests)) => joined(requests, "audience").into(),
            _ => "<unset>".into(),
        }),
        typed("RequiresRepublish", "boolean", |o, _| object::flag(o, &["spec", "requiresRepublish"]).into()),
        made("Modes", |o, _| match words(object::list(o, &["spec", "volumeLifecycleModes"])).as_str() {
            "" => "<none>".into(),
            modes => modes.into(),
        }),
        age(),
    ]
}
