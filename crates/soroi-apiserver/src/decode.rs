//! What does the body say? From bytes to an object of the right kind.

use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use serde_json::Value;

use crate::object;
use crate::query::FieldValidation;
use crate::resource::Resource;
use crate::status::ApiError;

/// The media type of a body, without parameters.
pub(crate) fn media_type(headers: &HeaderMap) -> &str {
    let full = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).unwrap_or("");
    full.split(';').next().unwrap_or("").trim()
}

/// A body as JSON, whether it was sent as JSON, YAML or Protobuf.
///
/// # Errors
/// 415 for another format, 400 when it does not parse.
pub(crate) fn value(headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    match media_type(headers) {
        "" | "application/json" => json(body),
        "application/yaml" => yaml(body),
        "application/vnd.kubernetes.protobuf" => crate::protobuf::object(body),
        other => {
            let supported = "application/json, application/yaml, application/vnd.kubernetes.protobuf";
            Err(ApiError::unsupported_media(format!(
                "the body of the request was in an unknown format - accepted media types include: {supported} (not {other})"
            )))
        }
    }
}

/// Bytes as JSON.
pub(crate) fn json(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body)
        .map_err(|e| ApiError::bad_request(format!("couldn't get version/kind; json parse error: {e}")))
}

/// Bytes as YAML, which JSON is too.
pub(crate) fn yaml(body: &[u8]) -> Result<Value, ApiError> {
    let text = std::str::from_utf8(body)
        .map_err(|e| ApiError::bad_request(format!("error converting YAML to JSON: {e}")))?;
    serde_saphyr::from_str(text)
        .map_err(|e| ApiError::bad_request(format!("error converting YAML to JSON: {e}")))
}

/// Reads an object of a resource from a body.
///
/// # Errors
/// 400 when it is not an object of that kind, or under strict validation has unknown fields.
pub(crate) fn object(
    resource: &Resource,
    headers: &HeaderMap,
    body: &Bytes,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value, ApiError> {
    let mut value = value(headers, body)?;
    check_type(resource, &mut value)?;
    settle(resource, &mut value, validation, warnings, |unknown| {
        let (kind, version) = (&resource.kind, &resource.version);
        ApiError::bad_request(format!(
            "{kind} in version {version:?} cannot be handled as a {kind}: {unknown}"
        ))
    })?;
    Ok(value)
}

/// Checks `apiVersion` and `kind`, and fills them in where they are missing.
fn check_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    let expected = resource.api_version();
    if !value.is_object() {
        let found = match value {
            Value::Null => "Object 'Kind' is missing in 'null'".to_owned(),
            other => format!("json: cannot unmarshal {} into Go value of type struct", type_word(other)),
        };
        return Err(ApiError::bad_request(found));
    }
    let (version, kind) = (object::text(value, &["apiVersion"]), object::text(value, &["kind"]));
    if !version.is_empty() && version != expected {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({version}) does not match the expected API version ({expected})"
        )));
    }
    if !kind.is_empty() && kind != resource.kind {
        let group = object::text(value, &["apiVersion"]);
        return Err(ApiError::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {}: no kind {kind:?} is registered for version {group:?}",
            resource.version, resource.kind
        )));
    }
    let fields = object::fields_mut(value);
    fields.insert("apiVersion".into(), expected.into());
    fields.insert("kind".into(), resource.kind.as_str().into());
    Ok(())
}

/// Go's word for a JSON value in decoding errors.
pub(crate) fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Brings an object into the form of its schema: unknown fields go, and that is said as strictly
/// as asked.
pub(crate) fn settle(
    resource: &Resource,
    value: &mut Value,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
    refuse: impl FnOnce(String) -> ApiError,
) -> Result<(), ApiError> {
    let unknown = match resource.schema().map(|schema| schema.settle(value)) {
        Some(Ok(unknown)) => unknown,
        Some(Err(why)) => return Err(refuse(why)),
        None => return Ok(()),
    };
    if unknown.is_empty() {
        return Ok(());
    }
    let said = unknown.iter().map(|field| format!("unknown field {field:?}"));
    match validation {
        FieldValidation::Ignore => {}
        FieldValidation::Warn => {
            // A write that is tried again says it once.
            let new: Vec<String> = said.filter(|w| !warnings.contains(w)).collect();
            warnings.extend(new);
        }
        FieldValidation::Strict => {
            let all = said.collect::<Vec<_>>().join(", ");
            return Err(refuse(format!("strict decoding error: {all}")));
        }
    }
    Ok(())
}
