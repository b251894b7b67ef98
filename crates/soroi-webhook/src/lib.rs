//! Admission: stateless defaults and validation, the same on every replica.
//!
//! Two pure functions of one request: [`default`] completes an object before it is stored, and
//! [`validate`] refuses one that could never be carried out, with the field's name. [`admit`] does
//! both in turn. What schemas and their CEL rules can say is not said here again (`soroi-api`).
//!
//! The crate knows objects as raw JSON, so that fields nobody here has heard of survive. It must
//! never know other objects than the one in the request: no replica sees more, and an answer that
//! depended on a cache would differ between two of them. The one fact beside it, whether a namespace
//! has a default queue, is looked up at the API server by whoever asks ([`wants_default_queue`]).
//! What is not managed by Soroi passes
//! untouched, and so does what cannot be understood: that is for the API server to refuse.

pub mod convert;
mod field;
mod job;
mod json;
mod kueue;
mod plan;
mod pod;
mod syntax;
mod topology;
mod volcano;
pub mod wire;

use serde_json::Value;

use field::Findings;
pub use field::{Cause, CauseKind, Denial};
pub use job::MANAGED_KINDS;
pub use pod::GROUP_KEYS;

/// The LocalQueue of jobs that name none, in namespaces that have it (Kueue, LocalQueueDefaulting).
pub const DEFAULT_QUEUE: &str = "default";

/// What a request does to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// A new object.
    Create,
    /// A change, by update, patch or the status subresource.
    Update,
    /// A deletion.
    Delete,
}

/// A request to be admitted: the fields of `admission.k8s.io/v1` AdmissionRequest that matter.
#[derive(Clone, Copy, Debug)]
pub struct Review<'a> {
    /// What happens.
    pub operation: Operation,
    /// API group of the object; empty for core.
    pub group: &'a str,
    /// API version of the object.
    pub version: &'a str,
    /// Kind of the object.
    pub kind: &'a str,
    /// Subresource, such as `status`; empty for the object itself.
    pub subresource: &'a str,
    /// Namespace; empty for objects that have none.
    pub namespace: &'a str,
    /// Name; empty while the API server has not generated it yet.
    pub name: &'a str,
    /// The object as it would be stored; none for a deletion.
    pub object: Option<&'a Value>,
    /// The object as it is stored; none for a creation.
    pub old_object: Option<&'a Value>,
    /// The name of the user who asks.
    pub user: &'a str,
    /// Nothing is going to be stored.
    pub dry_run: bool,
    /// The namespace has a LocalQueue of the name [`DEFAULT_QUEUE`]. Only asked for when
    /// [`wants_default_queue`].
    pub default_queue: bool,
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// It goes on.
    Allowed {
        /// The object to store instead, if it is to be another.
        object: Option<Value>,
        /// Sentences for the user who asked.
        warnings: Vec<String>,
    },
    /// It is refused.
    Denied(Denial),
}

/// Completes an object and judges the result.
pub fn admit(review: &Review<'_>) -> Verdict {
    let object = default(review);
    let completed = Review { object: object.as_ref().or(review.object), ..*review };
    match validate(&completed) {
        Ok(warnings) => Verdict::Allowed { object, warnings },
        Err(denial) => Verdict::Denied(denial),
    }
}

/// The object completed with what its user left to us; `None` if there is nothing to add.
/// Completing an object twice is the same as once.
pub fn default(review: &Review<'_>) -> Option<Value> {
    let object = review.object.filter(|_| review.subresource.is_empty())?;
    match (review.operation, review.group, review.kind) {
        (Operation::Create, "batch", "Job") => job::default(object, review.default_queue),
        (Operation::Create, "", "Pod") => pod::default(object),
        (Operation::Create, soroi_api::volcano::GROUP, "Queue") => volcano::default_queue(object),
        _ => None,
    }
}

/// Whether it matters if the namespace has a LocalQueue of the name [`DEFAULT_QUEUE`].
pub fn wants_default_queue(review: &Review<'_>) -> bool {
    (review.operation, review.group, review.kind, review.subresource)
        == (Operation::Create, "batch", "Job", "")
        && review.object.is_some_and(job::wants_queue)
}

/// Judges a request as it stands, and gives warnings for its user.
///
/// # Errors
/// The request is refused; every field that is wrong is named.
pub fn validate(review: &Review<'_>) -> Result<Vec<String>, Denial> {
    if !matches!(review.subresource, "" | "status") {
        return Ok(Vec::new());
    }
    let findings = match (review.operation, review.object) {
        (Operation::Delete, _) => {
            if (review.group, review.kind) == (soroi_api::volcano::GROUP, "Queue") {
                volcano::delete_queue(review.name)?;
            }
            return Ok(Vec::new());
        }
        (Operation::Create, Some(object)) => validate_object(review, object, None),
        (Operation::Update, Some(object)) => validate_object(review, object, review.old_object),
        (_, None) => return Ok(Vec::new()),
    };
    findings.verdict(review.group, review.kind, review.name)
}

/// Judges the object as it would be, and the way to it. What was wrong already is not held against
/// a change that leaves it as it is: an object that became invalid can still be labelled, shown a
/// status, and mended step by step.
fn validate_object(review: &Review<'_>, new: &Value, old: Option<&Value>) -> Findings {
    // An object that is being deleted must be able to go: only its finalizers can still change,
    // and whoever takes them off did not write the rest.
    if !new["metadata"]["deletionTimestamp"].is_null() {
        return Findings::default();
    }
    let mut findings = state(review, new);
    if let Some(old) = old {
        findings.forget(&state(review, old));
        change(review, new, old, &mut findings);
    }
    findings
}

/// What an object says.
fn state(review: &Review<'_>, object: &Value) -> Findings {
    let mut findings = Findings::default();
    match (review.group, review.kind) {
        ("batch", "Job") => job::state(object, review.old_object, &mut findings),
        (soroi_api::kueue::GROUP, kind) => kueue::state(kind, object, &mut findings),
        (soroi_api::volcano::GROUP, "PodGroup") => volcano::pod_group(object, &mut findings),
        (soroi_api::volcano::GROUP, "Queue") => volcano::queue(review.name, object, &mut findings),
        (soroi_api::plan::GROUP, "GangPlan") => plan::state(review, object, &mut findings),
        _ => {}
    }
    findings
}

/// What changes about it.
fn change(review: &Review<'_>, new: &Value, old: &Value, findings: &mut Findings) {
    match (review.group, review.kind) {
        ("batch", "Job") => job::change(new, old, findings),
        ("", "Pod") => pod::change(new, old, findings),
        (soroi_api::kueue::GROUP, "Workload") => kueue::workload_change(new, old, findings),
        (soroi_api::plan::GROUP, "GangPlan") => plan::change(new, old, findings),
        _ => {}
    }
}

#[cfg(test)]
pub(crate) mod tests;
