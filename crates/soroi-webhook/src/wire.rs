//! What the API server posts to a webhook, and what it wants to hear: `admission.k8s.io/v1`
//! AdmissionReview and `apiextensions.k8s.io/v1` ConversionReview, as JSON.
//!
//! Knows the envelopes. Must never know HTTP, or what is defaulted, refused and converted.

use k8s_openapi::ByteString;
use serde_json::{Value, json};

use crate::{Cause, Denial, Operation, Review, convert, default, validate, wants_default_queue};

/// Longest warning that the API server shows whole.
const WARNING_CHARS_MAX: usize = 256;

/// What is asked about an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// What it lacks.
    Default,
    /// Whether it is allowed.
    Validate,
}

/// A body that is no review of the kind that was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoReview(pub &'static str);

/// The namespace of an AdmissionReview's object, if the answer depends on whether that has a default
/// queue.
pub fn asks_for_default_queue(body: &Value) -> Option<&str> {
    review(&body["request"], false).filter(wants_default_queue).map(|review| review.namespace)
}

/// Answers an AdmissionReview. `default_queue`: [`Review::default_queue`].
///
/// # Errors
/// It is none, or one of another version.
pub fn admission(step: Step, body: &Value, default_queue: bool) -> Result<Value, NoReview> {
    if body["apiVersion"] != "admission.k8s.io/v1" || body["kind"] != "AdmissionReview" {
        return Err(NoReview("the body is no admission.k8s.io/v1 AdmissionReview"));
    }
    let request = &body["request"];
    let review = review(request, default_queue)
        .ok_or(NoReview("request: has no uid, kind or operation that is known"))?;
    let mut response = match step {
        Step::Default => completed(&review),
        Step::Validate => match validate(&review) {
            Ok(warnings) => allowed(&warnings),
            Err(denial) => denied(&denial),
        },
    };
    response["uid"] = request["uid"].clone();
    Ok(json!({ "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response }))
}

fn review(request: &Value, default_queue: bool) -> Option<Review<'_>> {
    request["uid"].as_str()?;
    let operation = match request["operation"].as_str()? {
        "CREATE" => Operation::Create,
        "UPDATE" => Operation::Update,
        "DELETE" => Operation::Delete,
        _ => return None,
    };
    let object = |field: &str| Some(&request[field]).filter(|object| !object.is_null());
    let word = |field: &str| request[field].as_str().unwrap_or_default();
    let kind = &request["kind"];
    Some(Review {
        operation,
        group: kind["group"].as_str().unwrap_or_default(),
        version: kind["version"].as_str()?,
        kind: kind["kind"].as_str()?,
        subresource: word("subResource"),
        namespace: word("namespace"),
        name: word("name"),
        object: object("object"),
        old_object: object("oldObject"),
        user: request["userInfo"]["username"].as_str().unwrap_or_default(),
        dry_run: request["dryRun"] == true,
        default_queue,
    })
}

fn completed(review: &Review<'_>) -> Value {
    let mut response = json!({ "allowed": true });
    if let (Some(before), Some(after)) = (review.object, default(review)) {
        let patch = json_patch::diff(before, &after);
        let text = serde_json::to_vec(&patch).expect("a patch is JSON");
        response["patchType"] = "JSONPatch".into();
        response["patch"] = json!(ByteString(text));
    }
    response
}

fn allowed(warnings: &[String]) -> Value {
    let cut = |warning: &String| warning.chars().take(WARNING_CHARS_MAX).collect::<String>();
    let mut response = json!({ "allowed": true });
    if !warnings.is_empty() {
        response["warnings"] = warnings.iter().map(cut).collect();
    }
    response
}

fn denied(denial: &Denial) -> Value {
    let cause = |cause: &Cause| json!({ "reason": cause.kind.as_str(), "field": cause.field, "message": cause.body() });
    let causes: Vec<Value> = denial.causes.iter().map(cause).collect();
    json!({
        "allowed": false,
        "status": {
            "code": denial.code, "reason": denial.reason, "message": denial.message,
            "details": { "causes": causes },
        },
    })
}

/// Answers a ConversionReview. One object that cannot be converted fails them all, as the API server
/// wants it.
///
/// # Errors
/// It is none, or one of another version.
pub fn conversion(body: &Value) -> Result<Value, NoReview> {
    if body["apiVersion"] != "apiextensions.k8s.io/v1" || body["kind"] != "ConversionReview" {
        return Err(NoReview("the body is no apiextensions.k8s.io/v1 ConversionReview"));
    }
    let request = &body["request"];
    let wanted = request["desiredAPIVersion"].as_str();
    let (Some(wanted), Some(objects)) = (wanted, request["objects"].as_array()) else {
        return Err(NoReview("request: has no desiredAPIVersion or objects"));
    };
    let converted: Result<Vec<Value>, _> = objects.iter().map(|one| convert::convert(one, wanted)).collect();
    let mut response = match converted {
        Ok(objects) => json!({ "result": { "status": "Success" }, "convertedObjects": objects }),
        Err(convert::CannotConvert(message)) => {
            json!({ "result": { "status": "Failure", "message": message }, "convertedObjects": [] })
        }
    };
    response["uid"] = request["uid"].clone();
    Ok(json!({ "apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response }))
}

#[cfg(test)]
mod tests;
