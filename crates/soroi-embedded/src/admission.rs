//! How do Soroi's own defaults and rules reach the embedded API server? As a hook in its process,
//! with the answers that the webhook gives over HTTPS elsewhere.

use soroi_apiserver::{Admission, AdmissionPhase, AdmissionRequest, AdmissionResponse, FieldError};
use soroi_webhook::{Cause, CauseKind, Denial, Review};

/// Soroi's admission.
pub(crate) struct Webhook;

impl Admission for Webhook {
    fn admit(&self, request: &AdmissionRequest<'_>) -> AdmissionResponse {
        let review = review(request);
        match request.phase {
            AdmissionPhase::Mutating => {
                AdmissionResponse::Allowed { object: soroi_webhook::default(&review), warnings: Vec::new() }
            }
            AdmissionPhase::Validating => match soroi_webhook::validate(&review) {
                Ok(warnings) => AdmissionResponse::Allowed { object: None, warnings },
                Err(denial) => denied(denial),
            },
        }
    }
}

fn review<'a>(request: &AdmissionRequest<'a>) -> Review<'a> {
    Review {
        operation: match request.operation {
            soroi_apiserver::Operation::Create => soroi_webhook::Operation::Create,
            soroi_apiserver::Operation::Update => soroi_webhook::Operation::Update,
            soroi_apiserver::Operation::Delete => soroi_webhook::Operation::Delete,
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
    }
}

fn denied(denial: Denial) -> AdmissionResponse {
    AdmissionResponse::Denied {
        code: denial.code,
        reason: denial.reason.to_owned(),
        message: denial.message,
        causes: denial.causes.into_iter().map(field_error).collect(),
    }
}

fn field_error(cause: Cause) -> FieldError {
    let Cause { kind, field, value, detail } = cause;
    let value = value.unwrap_or_default();
    match kind {
        CauseKind::Forbidden => FieldError::forbidden(&field, detail),
        CauseKind::Required => FieldError::required(&field, detail),
        CauseKind::Duplicate => FieldError::duplicate(&field, value),
        CauseKind::NotFound => FieldError::not_found(&field, value),
        CauseKind::NotSupported | CauseKind::TooMany | CauseKind::Invalid => {
            FieldError::invalid(&field, value, detail)
        }
    }
}
