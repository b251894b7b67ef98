//! What Kubernetes has and this server has not: who asks is told so, instead of being sent to look for
//! a mistake of his own.

use crate::status::ApiError;

/// Group and plural of Kubernetes' own resources that a scheduler does not meet.
const RESOURCES: &[(&str, &str)] = &[
    ("", "componentstatuses"),
    ("", "endpoints"),
    ("", "replicationcontrollers"),
    ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
    ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
    ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
    ("apiregistration.k8s.io", "apiservices"),
    ("apps", "controllerrevisions"),
    ("autoscaling", "horizontalpodautoscalers"),
    ("batch", "cronjobs"),
    ("certificates.k8s.io", "certificatesigningrequests"),
    ("discovery.k8s.io", "endpointslices"),
    ("flowcontrol.apiserver.k8s.io", "flowschemas"),
    ("networking.k8s.io", "ingresses"),
    ("networking.k8s.io", "networkpolicies"),
    ("resource.k8s.io", "resourceclaims"),
    ("resource.k8s.io", "resourceclaimtemplates"),
    ("storage.k8s.io", "volumeattachments"),
];

/// The refusal for a resource that the server does not know.
pub(crate) fn refusal(group: &str, plural: &str) -> ApiError {
    if !RESOURCES.contains(&(group, plural)) {
        return ApiError::no_path();
    }
    let resource = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
    let message = format!(
        "this cluster has no {resource}: it serves what a scheduler meets, as `kubectl api-resources` shows"
    );
    ApiError { message, ..ApiError::no_path() }
}

/// What is said to whoever creates an object that is only stored.
pub(crate) fn stored_only(group: &str, kind: &str) -> Option<String> {
    (group == "apps").then(|| {
        format!("nobody makes pods for a {kind} in this cluster, it is only stored: use a Job, or pods")
    })
}
