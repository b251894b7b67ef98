//! What went wrong, in the words of Kubernetes: `metav1.Status` answers.
//!
//! Knows the codes, reasons and sentences that clients match on (Kubernetes 1.36,
//! `apimachinery/pkg/api/errors` and `util/validation/field`). Must never know storage or HTTP
//! beyond the status code.

use serde_json::{Map, Value, json};

use crate::resource::Resource;

/// One wrong field, as Kubernetes' validation reports it.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldError {
    /// What kind of wrong.
    pub kind: FieldErrorKind,
    /// Path of the field, such as `spec.containers[0].name`.
    pub field: String,
    /// The value that was refused; not shown for the kinds that leave it out.
    pub value: Value,
    /// Why it was refused.
    pub detail: String,
    /// How the value is shown, where that is not its JSON form.
    verbatim: Option<String>,
    /// Is the value left out of the sentence?
    hidden: bool,
}

/// The kinds of [`FieldError`]; each is a cause type of `metav1.StatusCause`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldErrorKind {
    /// Nothing has the name that the value refers to.
    NotFound,
    /// A value must be given.
    Required,
    /// A value that must be unique is there twice.
    Duplicate,
    /// The value is malformed or out of bounds.
    Invalid,
    /// The value is of the wrong type.
    TypeInvalid,
    /// The value is not one of those allowed.
    NotSupported,
    /// The value may not be set or changed now.
    Forbidden,
    /// The text is too long.
    TooLong,
    /// The list or map has too many items.
    TooMany,
}

impl FieldErrorKind {
    /// The cause type that clients see.
    pub fn cause(self) -> &'static str {
        match self {
            Self::NotFound => "FieldValueNotFound",
            Self::Required => "FieldValueRequired",
            Self::Duplicate => "FieldValueDuplicate",
            Self::Invalid => "FieldValueInvalid",
            Self::TypeInvalid => "FieldValueTypeInvalid",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Forbidden => "FieldValueForbidden",
            Self::TooLong => "FieldValueTooLong",
            Self::TooMany => "FieldValueTooMany",
        }
    }

    /// Does such an error keep the CEL rules of a schema from being asked?
    pub(crate) fn blocks_rules(self) -> bool {
        matches!(
            self,
            Self::Required | Self::NotSupported | Self::TypeInvalid | Self::TooLong | Self::TooMany
        )
    }

    fn words(self) -> &'static str {
        match self {
            Self::NotFound => "Not found",
            Self::Required => "Required value",
            Self::Duplicate => "Duplicate value",
            Self::Invalid | Self::TypeInvalid => "Invalid value",
            Self::NotSupported => "Unsupported value",
            Self::Forbidden => "Forbidden",
            Self::TooLong => "Too long",
            Self::TooMany => "Too many",
        }
    }

    fn shows_value(self) -> bool {
        !matches!(self, Self::Required | Self::Forbidden | Self::TooLong)
    }
}

impl FieldError {
    /// An error of any kind, as an admission hook reports it.
    pub fn new(kind: FieldErrorKind, field: &str, value: Value, detail: impl Into<String>) -> Self {
        Self { kind, field: field.to_owned(), value, detail: detail.into(), verbatim: None, hidden: false }
    }

    /// A value is malformed or out of bounds.
    pub fn invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Invalid, field, value.into(), detail)
    }

    /// A broken rule; objects and lists are not shown.
    pub(crate) fn rule(field: &str, value: Option<Value>, detail: impl Into<String>) -> Self {
        let hidden = value.is_none();
        let mut error = Self::invalid(field, value.unwrap_or_default(), detail);
        error.hidden = hidden;
        error
    }

    /// The same, with the value shown as `text` without quotes.
    pub(crate) fn unquoted(field: &str, text: &str, detail: &str) -> Self {
        let shown = serde_json::from_str(text).unwrap_or_else(|_| Value::Number(0.into()));
        let mut error = Self::new(FieldErrorKind::Invalid, field, shown, detail);
        error.verbatim = Some(text.to_owned());
        error
    }

    /// A value of the wrong JSON type.
    pub fn type_invalid(field: &str, value: impl Into<Value>, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::TypeInvalid, field, value.into(), detail)
    }

    /// A value that must be given is missing.
    pub fn required(field: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Required, field, Value::Null, detail)
    }

    /// A field that may not be set or changed now.
    pub fn forbidden(field: &str, detail: impl Into<String>) -> Self {
        Self::new(FieldErrorKind::Forbidden, field, Value::Null, detail)
    }

    /// A value that must be unique is there twice.
    pub fn duplicate(field: &str, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::Duplicate, field, value.into(), "")
    }

    /// A name that nothing has.
    pub fn not_found(field: &str, value: impl Into<Value>) -> Self {
        Self::new(FieldErrorKind::NotFound, field, value.into(), "")
    }

    /// A value that is none of `supported`.
    pub fn not_supported(field: &str, value: impl Into<Value>, supported: &[&str]) -> Self {
        let quoted: Vec<String> = supported.iter().map(|s| format!("{s:?}")).collect();
        let detail = if quoted.is_empty() {
            String::new()
        } else {
            format!("supported values: {}", quoted.join(", "))
        };
        Self::new(FieldErrorKind::NotSupported, field, value.into(), detail)
    }

    /// A text of more than `max` bytes.
    pub fn too_long(field: &str, max: u64) -> Self {
        let unit = if max == 1 { "byte" } else { "bytes" };
        Self::new(FieldErrorKind::TooLong, field, Value::Null, format!("may not be more than {max} {unit}"))
    }

    /// A list or map of `actual` items where at most `max` are allowed.
    pub fn too_many(field: &str, actual: usize, max: u64) -> Self {
        let unit = if max == 1 { "item" } else { "items" };
        Self::new(FieldErrorKind::TooMany, field, json!(actual), format!("must have at most {max} {unit}"))
    }

    /// The same error with `path` before its field.
    pub(crate) fn under(mut self, path: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => path.to_owned(),
            field if field.starts_with('[') => format!("{path}{field}"),
            field => format!("{path}.{field}"),
        };
        self
    }

    /// The sentence without the field's path, as in `causes[].message`.
    pub fn body(&self) -> String {
        let mut text = self.kind.words().to_owned();
        if self.kind.shows_value() && !self.hidden {
            match (&self.verbatim, &self.value) {
                (Some(shown), _) => text.push_str(&format!(": {shown}")),
                (None, Value::String(s)) => text.push_str(&format!(": {s:?}")),
                (None, other) => text.push_str(&format!(": {other}")),
            }
        }
        if !self.detail.is_empty() {
            text.push_str(": ");
            text.push_str(&self.detail);
        }
        text
    }
}

impl std::fmt::Display for FieldError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.body())
    }
}

/// A refusal, ready to be sent as `metav1.Status`.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason, such as `NotFound`.
    pub reason: String,
    /// The sentence for people.
    pub message: String,
    /// `details` of the Status: group, kind, name, causes, retryAfterSeconds.
    pub details: Option<Value>,
}

impl ApiError {
    fn new(code: u16, reason: &str, message: impl Into<String>) -> Self {
        Self { code, reason: reason.to_owned(), message: message.into(), details: None }
    }

    fn about(code: u16, reason: &str, resource: &Resource, name: &str, message: String) -> Self {
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !resource.group.is_empty() {
            details.insert("group".into(), resource.group.as_str().into());
        }
        details.insert("kind".into(), resource.plural.as_str().into());
        Self { details: Some(Value::Object(details)), ..Self::new(code, reason, message) }
    }

    /// 404: there is no such object.
    pub(crate) fn not_found(resource: &Resource, name: &str) -> Self {
        Self::about(404, "NotFound", resource, name, format!("{} {name:?} not found", resource.qualified()))
    }

    /// 404: the namespace of a new object is missing.
    pub(crate) fn no_namespace(name: &str) -> Self {
        Self {
            details: Some(json!({ "name": name, "kind": "namespaces" })),
            ..Self::new(404, "NotFound", format!("namespaces {name:?} not found"))
        }
    }

    /// 404: there is no such path.
    pub(crate) fn no_path() -> Self {
        Self {
            details: Some(json!({})),
            ..Self::new(404, "NotFound", "the server could not find the requested resource")
        }
    }

    /// 409: the name is taken.
    pub(crate) fn already_exists(resource: &Resource, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", resource.qualified());
        Self::about(409, "AlreadyExists", resource, name, message)
    }

    /// 409: the object is not in the state that the request needs.
    pub(crate) fn conflict(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {name:?}: {why}", resource.qualified());
        Self::about(409, "Conflict", resource, name, message)
    }

    /// 409 about a subresource such as `pods/binding`.
    pub(crate) fn conflict_named(resource: &str, name: &str, why: impl std::fmt::Display) -> Self {
        Self {
            details: Some(json!({ "name": name, "kind": resource })),
            ..Self::new(
                409,
                "Conflict",
                format!("Operation cannot be fulfilled on {resource} {name:?}: {why}"),
            )
        }
    }

    /// 409: somebody else wrote the object in between.
    pub(crate) fn modified(resource: &Resource, name: &str) -> Self {
        let why =
            "the object has been modified; please apply your changes to the latest version and try again";
        Self::conflict(resource, name, why)
    }

    /// 409 of a server-side apply: other managers own fields that it would change.
    pub(crate) fn apply_conflict(message: String, causes: Vec<Value>) -> Self {
        Self { details: Some(json!({ "causes": causes })), ..Self::new(409, "Conflict", message) }
    }

    /// 403: not allowed, whoever asks.
    pub(crate) fn forbidden(resource: &Resource, name: &str, why: impl std::fmt::Display) -> Self {
        let what =
            if name.is_empty() { resource.qualified() } else { format!("{} {name:?}", resource.qualified()) };
        Self::about(403, "Forbidden", resource, name, format!("{what} is forbidden: {why}"))
    }

    /// 403 about a pod.
    pub(crate) fn forbidden_pod(name: &str, why: impl std::fmt::Display) -> Self {
        Self::forbidden_named("", "pods", name, why)
    }

    /// 403 about an object of a built-in kind.
    pub(crate) fn forbidden_named(
        group: &str,
        plural: &str,
        name: &str,
        why: impl std::fmt::Display,
    ) -> Self {
        let qualified = if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") };
        let mut details = json!({ "name": name, "kind": plural });
        if !group.is_empty() {
            details["group"] = group.into();
        }
        Self {
            details: Some(details),
            ..Self::new(403, "Forbidden", format!("{qualified} {name:?} is forbidden: {why}"))
        }
    }

    /// 422: one or more fields are wrong.
    pub(crate) fn invalid(group: &str, kind: &str, name: &str, errors: &[FieldError]) -> Self {
        let causes: Vec<Value> = errors
            .iter()
            .map(|e| json!({ "reason": e.kind.cause(), "message": e.body(), "field": e.field }))
            .collect();
        // Kubernetes' aggregate leaves out sentences that it has said already.
        let mut lines: Vec<String> = Vec::new();
        for error in errors {
            let line = error.to_string();
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
        let all = match lines.len() {
            1 => lines.remove(0),
            _ => format!("[{}]", lines.join(", ")),
        };
        let full = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let mut details = Map::new();
        if !name.is_empty() {
            details.insert("name".into(), name.into());
        }
        if !group.is_empty() {
            details.insert("group".into(), group.into());
        }
        if !kind.is_empty() {
            details.insert("kind".into(), kind.into());
        }
        details.insert("causes".into(), causes.into());
        Self {
            details: Some(Value::Object(details)),
            ..Self::new(422, "Invalid", format!("{full} {name:?} is invalid: {all}"))
        }
    }

    /// 422 about the object of a resource.
    pub(crate) fn invalid_object(resource: &Resource, name: &str, errors: &[FieldError]) -> Self {
        Self::invalid(&resource.group, &resource.kind, name, errors)
    }

    /// 422 for a JSON patch that cannot be applied.
    pub(crate) fn unprocessable() -> Self {
        let text = "the server rejected our request due to an error in our request";
        Self { details: Some(json!({})), ..Self::new(422, "Invalid", text) }
    }

    /// 400: the request makes no sense.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: nobody knows who asks.
    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 405: the verb is not served here.
    pub(crate) fn method_not_allowed() -> Self {
        let text = "the server does not allow this method on the requested resource";
        Self { details: Some(json!({})), ..Self::new(405, "MethodNotAllowed", text) }
    }

    /// 410: the asked-for revision is no longer kept.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: the body is larger than the server takes.
    pub(crate) fn too_large(message: &str) -> Self {
        Self::new(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    /// 431: the path and headers are larger than the server takes.
    pub(crate) fn head_too_large(bytes_max: usize) -> Self {
        Self::new(431, "", format!("the request's head is too large: limit is {bytes_max}"))
    }

    /// 415: the body's format is not understood.
    pub(crate) fn unsupported_media(message: impl Into<String>) -> Self {
        Self::new(415, "UnsupportedMediaType", message)
    }

    /// 429 of an eviction that a disruption budget refuses.
    pub(crate) fn disruption_budget(cause: String, retry_after_secs: u32) -> Self {
        let mut details = json!({ "causes": [{ "reason": "DisruptionBudget", "message": cause }] });
        if retry_after_secs > 0 {
            details["retryAfterSeconds"] = retry_after_secs.into();
        }
        let message = "Cannot evict pod as it would violate the pod's disruption budget.";
        Self { details: Some(details), ..Self::new(429, "TooManyRequests", message) }
    }

    /// 501: a pod of a simulated node has no process that could be asked.
    pub(crate) fn simulated(what: &str) -> Self {
        let text = format!(
            "pods of this cluster are simulated, no process runs in them, so there is no {what}: what they do is in their status (kubectl describe pod)"
        );
        Self::new(501, "NotImplemented", text)
    }

    /// 501: accounts have no tokens.
    pub(crate) fn no_tokens() -> Self {
        let text = "accounts have no tokens in this cluster: whoever reaches it may do everything, with the token \
                    of its kubeconfig if that has one";
        Self::new(501, "NotImplemented", text)
    }

    /// 500 without a reason, as Kubernetes answers where it has no better error.
    pub(crate) fn unknown(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504: the client asks for a revision that does not exist yet.
    pub(crate) fn future_revision(asked: u64, current: u64) -> Self {
        let cause = json!({ "reason": "ResourceVersionTooLarge", "message": "Too large resource version" });
        Self {
            details: Some(json!({ "causes": [cause], "retryAfterSeconds": 1 })),
            ..Self::new(
                504,
                "Timeout",
                format!("Timeout: Too large resource version: {asked}, current: {current}"),
            )
        }
    }

    /// The `metav1.Status` object.
    pub fn to_status(&self) -> Value {
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = self.reason.as_str().into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.clone();
        }
        status
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn field_errors_read_as_kubernetes_writes_them() {
        let cases = [
            (FieldError::invalid("spec.x", 3, "must be less"), "spec.x: Invalid value: 3: must be less"),
            (FieldError::invalid("spec.x", "a\"b", "no"), r#"spec.x: Invalid value: "a\"b": no"#),
            (FieldError::required("spec.x", ""), "spec.x: Required value"),
            (FieldError::forbidden("spec", "may not change"), "spec: Forbidden: may not change"),
            (FieldError::duplicate("l[1]", "a"), r#"l[1]: Duplicate value: "a""#),
            (
                FieldError::not_supported("spec.p", "x", &["a", "b"]),
                r#"spec.p: Unsupported value: "x": supported values: "a", "b""#,
            ),
            (FieldError::too_long("n", 63), "n: Too long: may not be more than 63 bytes"),
            (FieldError::too_many("n", 3, 2), "n: Too many: 3: must have at most 2 items"),
        ];
        for (error, text) in cases {
            assert_eq!(error.to_string(), text);
        }
    }

    #[test]
    fn several_field_errors_make_a_list() {
        let errors =
            [FieldError::required("a", ""), FieldError::required("a", ""), FieldError::required("b", "")];
        let error = ApiError::invalid("batch", "Job", "x", &errors);
        assert_eq!(error.message, r#"Job.batch "x" is invalid: [a: Required value, b: Required value]"#);
    }
}
