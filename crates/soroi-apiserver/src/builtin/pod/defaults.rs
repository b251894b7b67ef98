//! What a pod's author may leave out (Kubernetes 1.36, `pkg/apis/core/v1/defaults.go`).

use serde_json::{Value, json};
use soroi_quantity::Quantity;

use super::{amount, each_container};
use crate::object::{self, Fields, set_default};

/// Fills in a pod.
pub(crate) fn pod(pod: &mut Value) {
    let spec = object::ensure(pod, &["spec"]);
    template_spec(spec);
    set_default(spec, "enableServiceLinks", true);
    each_container(spec, requests_from_limits);
    pod_level_requests(spec);
    if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
        each_container(spec, host_ports);
    }
}

/// Fills in the pod spec of a template, which gets less than a pod does.
pub(crate) fn template_spec(spec: &mut Fields) {
    set_default(spec, "dnsPolicy", "ClusterFirst");
    set_default(spec, "restartPolicy", "Always");
    set_default(spec, "schedulerName", "default-scheduler");
    set_default(spec, "securityContext", json!({}));
    set_default(spec, "terminationGracePeriodSeconds", 30);
    each_container(spec, container);
    for volume in spec.get_mut("volumes").and_then(Value::as_array_mut).into_iter().flatten() {
        volume_source(object::fields_mut(volume));
    }
    for constraint in
        spec.get_mut("topologySpreadConstraints").and_then(Value::as_array_mut).into_iter().flatten()
    {
        let constraint = object::fields_mut(constraint);
        set_default(constraint, "nodeAffinityPolicy", "Honor");
        set_default(constraint, "nodeTaintsPolicy", "Ignore");
    }
}

/// Fills in the pod spec of the template at `spec.template`.
pub(crate) fn template(owner: &mut Value) {
    template_spec(object::ensure(owner, &["spec", "template", "spec"]));
}

fn container(container: &mut Fields) {
    set_default(container, "resources", json!({}));
    set_default(container, "terminationMessagePath", "/dev/termination-log");
    set_default(container, "terminationMessagePolicy", "File");
    let policy = pull_policy(container.get("image").and_then(Value::as_str).unwrap_or(""));
    set_default(container, "imagePullPolicy", policy);
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        set_default(object::fields_mut(port), "protocol", "TCP");
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            probe_numbers(object::fields_mut(probe));
        }
    }
    for variable in container.get_mut("env").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(field) = variable.get_mut("valueFrom").and_then(|v| v.get_mut("fieldRef")) {
            set_default(object::fields_mut(field), "apiVersion", "v1");
        }
    }
}

/// An image without a tag, or with `latest`, is pulled each time.
fn pull_policy(image: &str) -> &'static str {
    let last = image.rsplit('/').next().unwrap_or(image);
    if last.contains('@') {
        return "IfNotPresent";
    }
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn probe_numbers(probe: &mut Fields) {
    for (name, number) in
        [("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3)]
    {
        set_default(probe, name, number);
    }
    if let Some(http) = probe.get_mut("httpGet") {
        let http = object::fields_mut(http);
        set_default(http, "path", "/");
        set_default(http, "scheme", "HTTP");
    }
    if let Some(grpc) = probe.get_mut("grpc") {
        set_default(object::fields_mut(grpc), "service", "");
    }
}

fn volume_source(volume: &mut Fields) {
    const MODE: i32 = 0o644;
    if volume.len() == 1 && volume.contains_key("name") {
        volume.insert("emptyDir".into(), json!({}));
    }
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = volume.get_mut(name) {
            set_default(object::fields_mut(source), "defaultMode", MODE);
        }
    }
    if let Some(path) = volume.get_mut("hostPath") {
        set_default(object::fields_mut(path), "type", "");
    }
    if let Some(iscsi) = volume.get_mut("iscsi") {
        set_default(object::fields_mut(iscsi), "iscsiInterface", "default");
    }
}

/// What a container may use at most it also requests, unless it says otherwise.
fn requests_from_limits(container: &mut Fields) {
    let Some(resources) = container.get_mut("resources") else { return };
    let Some(limits) = object::map(resources, &["limits"]).cloned() else { return };
    let requests = object::ensure(resources, &["requests"]);
    for (name, limit) in limits {
        set_default(requests, &name, limit);
    }
}

/// Resources that may be given for the pod as a whole.
fn is_pod_level(resource: &str) -> bool {
    matches!(resource, "cpu" | "memory") || resource.starts_with("hugepages-")
}

/// Pod-level requests that are left out: the sum of the containers', or else the pod's limit.
fn pod_level_requests(spec: &mut Fields) {
    let Some(resources) = spec.get("resources") else { return };
    let Some(limits) = object::map(resources, &["limits"]).cloned() else { return };
    let mut missing = Fields::new();
    for (name, limit) in limits.into_iter().filter(|(name, _)| is_pod_level(name)) {
        if object::at(resources, &["requests", &name]).is_some() {
            continue;
        }
        let containers = spec.get("containers").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let asked: Vec<Quantity> = containers
            .iter()
            .filter_map(|c| amount(object::map(c, &["resources", "requests"]), &name))
            .collect();
        let sum = asked.into_iter().reduce(|a, b| a.saturating_add(&b));
        missing.insert(name, sum.map_or(limit, |s| s.to_string().into()));
    }
    if !missing.is_empty()
        && let Some(resources) = spec.get_mut("resources")
    {
        object::ensure(resources, &["requests"]).extend(missing);
    }
}

/// On the host's network every port of a container is one of the host.
fn host_ports(container: &mut Fields) {
    for port in container.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
        let port = object::fields_mut(port);
        if let Some(number) = port.get("containerPort").cloned() {
            set_default(port, "hostPort", number);
        }
    }
}
