//! How does a patch change an object?
//!
//! Knows the four patch formats. Must never know storage or validation.

use http::HeaderMap;
use serde_json::Value;

use crate::decode;
use crate::resource::Resource;
use crate::schema::Shape;
use crate::status::ApiError;

mod json;
mod strategic;

/// A parsed patch.
#[derive(Clone, Debug)]
pub(crate) enum Patch {
    /// RFC 6902.
    Json(json_patch::Patch),
    /// RFC 7386.
    Merge(Value),
    /// Kubernetes' own merge, which knows keyed lists.
    Strategic(Value),
    /// A configuration for server-side apply.
    Apply(Value),
}

impl Patch {
    /// Parses a body by its media type.
    ///
    /// # Errors
    /// 415 for a format that the resource does not take, 400 for a malformed patch.
    pub(crate) fn parse(resource: &Resource, headers: &HeaderMap, body: &[u8]) -> Result<Self, ApiError> {
        match decode::media_type(headers) {
            "application/json-patch+json" => json::parse(body).map(Self::Json),
            "application/merge-patch+json" => object(body).map(Self::Merge),
            "application/strategic-merge-patch+json" if !resource.custom => {
                strategic(body).map(Self::Strategic)
            }
            "application/apply-patch+yaml" => match decode::yaml(body)? {
                value @ Value::Object(_) => Ok(Self::Apply(value)),
                _ => Err(ApiError::bad_request("error decoding patch: the configuration is not an object")),
            },
            _ => {
                let mut accepted = vec!["application/json-patch+json", "application/merge-patch+json"];
                if !resource.custom {
                    accepted.push("application/strategic-merge-patch+json");
                }
                accepted.push("application/apply-patch+yaml");
                Err(ApiError::unsupported_media(format!(
                    "the body of the request was in an unknown format - accepted media types include: {}",
                    accepted.join(", ")
                )))
            }
        }
    }

    /// The object with the patch applied.
    ///
    /// # Errors
    /// 422 or 400 when the patch does not fit the object.
    pub(crate) fn apply(&self, resource: &Resource, mut object: Value) -> Result<Value, ApiError> {
        match self {
            Self::Json(patch) => json::apply(patch, &mut object)?,
            Self::Merge(patch) => json_patch::merge(&mut object, patch),
            Self::Strategic(patch) => {
                let shape = Shape::root(resource.schema().map(std::sync::Arc::as_ref));
                strategic::apply(shape, &mut object, patch)?;
            }
            // Applying needs to know who owns what: see `managed`.
            Self::Apply(configuration) => json_patch::merge(&mut object, configuration),
        }
        if !object.is_object() {
            return Err(ApiError::bad_request("the patch leaves no object"));
        }
        Ok(object)
    }
}

fn strategic(body: &[u8]) -> Result<Value, ApiError> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) if !value.is_object() => {
            let found = decode::type_word(&value);
            Err(ApiError::bad_request(format!(
                "json: cannot unmarshal {found} into Go value of type map[string]interface {{}}"
            )))
        }
        _ => object(body),
    }
}

fn object(body: &[u8]) -> Result<Value, ApiError> {
    match serde_json::from_slice(body) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(ApiError::bad_request(
            "error decoding patch: json: cannot unmarshal into Go value of type map[string]interface {}",
        )),
        Err(e) => Err(ApiError::bad_request(format!("error decoding patch: {e}"))),
    }
}
