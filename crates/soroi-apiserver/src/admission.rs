//! Who else has a say? Hooks that change or refuse objects before they are stored.
//!
//! A hook is a synchronous function of raw JSON, as a webhook is, called in the server's own
//! process. It is asked twice: while objects may still be changed, and again about the final
//! object, when an answer with another object is no longer heeded.

use serde_json::{Value, json};

use crate::Shared;
use crate::resource::Resource;
use crate::status::{ApiError, FieldError};

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, by update, patch or a subresource.
    Update,
    /// A deletion.
    Delete,
}

/// When a hook is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AdmissionPhase {
    /// The answer may replace the object.
    Mutating,
    /// The object is final; the answer can only refuse it.
    Validating,
}

/// Who sends a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name, from `Impersonate-User`, or `kubernetes-admin`.
    pub name: String,
    /// The groups, from `Impersonate-Group`.
    pub groups: Vec<String>,
}

/// A question to a hook, with the fields of `admission.k8s.io/v1` AdmissionRequest.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionRequest<'a> {
    /// May the answer still replace the object?
    pub phase: AdmissionPhase,
    /// What happens.
    pub operation: Operation,
    /// API group; empty for core.
    pub group: &'a str,
    /// API version.
    pub version: &'a str,
    /// Kind of the object in `object`.
    pub kind: &'a str,
    /// Plural name of the resource, such as `pods`.
    pub resource: &'a str,
    /// Subresource, such as `status`, or empty.
    pub subresource: &'a str,
    /// Namespace, or empty.
    pub namespace: &'a str,
    /// Name; empty while the server has not yet generated it.
    pub name: &'a str,
    /// The object as it would be stored; none for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it is stored; none for a creation.
    pub old_object: Option<&'a Value>,
    /// Who asks.
    pub user: &'a User,
    /// Is nothing going to be stored?
    pub dry_run: bool,
    /// What else there is.
    pub others: Others<'a>,
}

/// The objects that are stored, as far as a hook may ask for them: the parameters of a policy.
#[derive(Clone, Copy, Debug)]
pub struct Others<'a>(&'a Shared);

impl Others<'_> {
    /// Whether there is an object of this resource (group and plural) in this namespace.
    pub fn has(&self, group: &str, resource: &str, namespace: &str, name: &str) -> bool {
        let registry = self.0.registry();
        let found = registry.all().find(|known| known.group == group && known.plural == resource);
        found.is_some_and(|known| self.0.store.lock().get(&known.slot, namespace, name).is_some())
    }
}

/// A hook's answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AdmissionResponse {
    /// Go on, with another object if one is given; warnings are passed to the client.
    Allowed {
        /// Takes the place of the request's object while the phase is mutating.
        object: Option<Value>,
        /// Sentences for the client's `Warning` headers.
        warnings: Vec<String>,
    },
    /// The request is refused.
    Denied {
        /// HTTP status code, such as 403.
        code: u16,
        /// Machine-readable reason, such as `Forbidden`.
        reason: String,
        /// The sentence that the client sees.
        message: String,
        /// The fields at fault.
        causes: Vec<FieldError>,
    },
}

impl AdmissionResponse {
    /// Go on with the object as it is.
    pub fn allow() -> Self {
        Self::Allowed { object: None, warnings: Vec::new() }
    }

    /// Go on with `object` in its place.
    pub fn replace(object: Value) -> Self {
        Self::Allowed { object: Some(object), warnings: Vec::new() }
    }

    /// 403 Forbidden, as a webhook that gives only a message.
    pub fn forbid(message: impl Into<String>) -> Self {
        let reason = "Forbidden".to_owned();
        Self::Denied { code: 403, reason, message: message.into(), causes: Vec::new() }
    }

    /// 422 Invalid in the words that the API server itself uses for wrong fields.
    pub fn invalid(request: &AdmissionRequest<'_>, causes: Vec<FieldError>) -> Self {
        let error = ApiError::invalid(request.group, request.kind, request.name, &causes);
        Self::Denied { code: error.code, reason: error.reason, message: error.message, causes }
    }
}

/// A hook.
pub trait Admission: Send + Sync {
    /// Answers one request. Called without any lock held, on the thread that serves the request.
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse;
}

/// One request to be admitted, without its phase and object.
pub(crate) struct Admitting<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) resource: &'a Resource,
    pub(crate) kind: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) namespace: &'a str,
    pub(crate) name: &'a str,
    pub(crate) user: &'a User,
    pub(crate) dry_run: bool,
}

impl Admitting<'_> {
    /// Asks every hook in turn while the object may change. Says whether it was replaced.
    pub(crate) fn mutate(
        &self,
        operation: Operation,
        object: &mut Value,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<bool, ApiError> {
        let mut replaced = false;
        for hook in &self.shared.admission {
            let request = self.request(AdmissionPhase::Mutating, operation, Some(object), old);
            if let Some(new) = heed(&request, hook.admit(&request), warnings)? {
                *object = new;
                replaced = true;
            }
        }
        Ok(replaced)
    }

    /// Asks every hook about the final object.
    pub(crate) fn validate(
        &self,
        operation: Operation,
        object: Option<&Value>,
        old: Option<&Value>,
        warnings: &mut Vec<String>,
    ) -> Result<(), ApiError> {
        for hook in &self.shared.admission {
            let request = self.request(AdmissionPhase::Validating, operation, object, old);
            heed(&request, hook.admit(&request), warnings)?;
        }
        Ok(())
    }

    fn request<'a>(
        &'a self,
        phase: AdmissionPhase,
        operation: Operation,
        object: Option<&'a Value>,
        old_object: Option<&'a Value>,
    ) -> AdmissionRequest<'a> {
        AdmissionRequest {
            phase,
            operation,
            group: &self.resource.group,
            version: &self.resource.version,
            kind: self.kind,
            resource: &self.resource.plural,
            subresource: self.subresource,
            namespace: self.namespace,
            name: self.name,
            object,
            old_object,
            user: self.user,
            dry_run: self.dry_run,
            others: Others(self.shared),
        }
    }
}

fn heed(
    request: &AdmissionRequest<'_>,
    response: AdmissionResponse,
    said: &mut Vec<String>,
) -> Result<Option<Value>, ApiError> {
    match response {
        AdmissionResponse::Allowed { object, warnings } => {
            for warning in warnings {
                // Both phases give the same warning; the client needs it once.
                if !said.contains(&warning) {
                    said.push(warning);
                }
            }
            Ok(object)
        }
        AdmissionResponse::Denied { code, reason, message, causes } => {
            let mut details = json!({ "kind": request.kind });
            if !request.group.is_empty() {
                details["group"] = request.group.into();
            }
            if !request.name.is_empty() {
                details["name"] = request.name.into();
            }
            if !causes.is_empty() {
                let causes: Vec<Value> = causes
                    .iter()
                    .map(|c| json!({ "reason": c.kind.cause(), "message": c.body(), "field": c.field }))
                    .collect();
                details["causes"] = causes.into();
            }
            Err(ApiError { code, reason, message, details: Some(details) })
        }
    }
}
