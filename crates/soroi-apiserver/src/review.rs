//! May I? Questions about rights: `kubectl auth can-i` and `whoami`.
//!
//! Whoever reaches this server may do everything, so the answer is always yes. Knows the questions'
//! form only.

use http::Method;
use http::request::Parts;
use serde_json::json;

use crate::reply::Reply;
use crate::status::ApiError;
use crate::store::encode;
use crate::{decode, object};

/// Does a group hold questions?
pub(crate) fn is_asked(group: &str) -> bool {
    matches!(group, "authorization.k8s.io" | "authentication.k8s.io")
}

/// Answers a question.
///
/// # Errors
/// 404 for one that is not known, 405 for anything but a POST.
pub(crate) fn answer(
    parts: &Parts,
    group: &str,
    plural: &str,
    user: &str,
    body: &[u8],
) -> Result<Reply, ApiError> {
    let (kind, status) = match (group, plural) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => {
            ("SelfSubjectAccessReview", json!({ "allowed": true, "reason": REASON }))
        }
        ("authorization.k8s.io", "selfsubjectrulesreviews") => {
            let all = json!(["*"]);
            let status = json!({
                "resourceRules": [{ "verbs": all, "apiGroups": all, "resources": all }],
                "nonResourceRules": [{ "verbs": all, "nonResourceURLs": all }],
                "incomplete": false,
            });
            ("SelfSubjectRulesReview", status)
        }
        ("authentication.k8s.io", "selfsubjectreviews") => {
            let groups = json!(["system:masters", "system:authenticated"]);
            ("SelfSubjectReview", json!({ "userInfo": { "username": user, "groups": groups } }))
        }
        _ => return Err(ApiError::no_path()),
    };
    if parts.method != Method::POST {
        return Err(ApiError::method_not_allowed());
    }
    let mut review = decode::value(&parts.headers, body)?;
    let said = object::text(&review, &["kind"]);
    if !review.is_object() || !(said.is_empty() || said == kind) {
        return Err(ApiError::bad_request(format!("the body is no {kind}")));
    }
    review["kind"] = kind.into();
    review["apiVersion"] = format!("{group}/v1").into();
    review["metadata"] = object::at(&review, &["metadata"]).cloned().unwrap_or_else(|| json!({}));
    review["status"] = status;
    Ok(Reply::created(encode(&review)))
}

const REASON: &str = "everybody who reaches this server may do everything";
