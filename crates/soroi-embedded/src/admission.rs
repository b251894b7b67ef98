//! How do Soroi's own defaults and rules reach the embedded API server? As a hook in its process,
//! with the answers that the webhook gives over HTTPS elsewhere.
//!
//! Knows both sides' words for a request and an answer; never what is defaulted or refused.

use serde_json::Value;
use soroi_apiserver::{
    Admission, AdmissionPhase, AdmissionRequest, AdmissionResponse, FieldError, FieldErrorKind, Operation,
};
use soroi_webhook::{Cause, CauseKind, Denial, Review};

/// Soroi's admission.
pub(crate) struct Webhook;

impl Admission for Webhook {
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse {
        let mut review = review(request);
        match request.phase {
            AdmissionPhase::Mutating => {
                review.default_queue =
                    soroi_webhook::wants_default_queue(&review) && has_default_queue(request);
                AdmissionResponse::Allowed { object: soroi_webhook::default(&review), warnings: Vec::new() }
            }
            AdmissionPhase::Validating => match soroi_webhook::validate(&review) {
                Ok(warnings) => AdmissionResponse::Allowed { object: None, warnings },
                Err(denial) => denied(denial),
            },
        }
    }
}

fn has_default_queue(request: &AdmissionRequest<'_>) -> bool {
    let queue = soroi_webhook::DEFAULT_QUEUE;
    request.others.has(soroi_api::kueue::GROUP, "localqueues", request.namespace, queue)
}

fn review<'a>(request: &AdmissionRequest<'a>) -> Review<'a> {
    Review {
        operation: match request.operation {
            Operation::Create => soroi_webhook::Operation::Create,
            Operation::Update => soroi_webhook::Operation::Update,
            Operation::Delete => soroi_webhook::Operation::Delete,
        },
        group: request.group,
        version: request.version,
        kind: request.kind,
        subresource: request.subresource,
        namespace: request.namespace,
        name: request.name,
        object: request.object,
        old_object: request.old_object,
        user: &request.user.name,
        dry_run: request.dry_run,
        default_queue: false,
    }
}

fn denied(denial: Denial) -> AdmissionResponse {
    AdmissionResponse::Denied {
        code: denial.code,
        reason: denial.reason.to_owned(),
        message: denial.message,
        causes: denial.causes.into_iter().map(cause).collect(),
    }
}

fn cause(cause: Cause) -> FieldError {
    let kind = match cause.kind {
        CauseKind::Invalid => FieldErrorKind::Invalid,
        CauseKind::Forbidden => FieldErrorKind::Forbidden,
        CauseKind::Duplicate => FieldErrorKind::Duplicate,
        CauseKind::NotFound => FieldErrorKind::NotFound,
        CauseKind::NotSupported => FieldErrorKind::NotSupported,
        CauseKind::Required => FieldErrorKind::Required,
        CauseKind::TooMany => FieldErrorKind::TooMany,
    };
    FieldError::new(kind, &cause.field, cause.value.unwrap_or(Value::Null), cause.detail)
}
