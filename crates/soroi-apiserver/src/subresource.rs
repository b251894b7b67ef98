//! Binding, eviction and scale: requests that change a part of an object by their own rules.

use bytes::Bytes;
use http::Method;
use http::request::Parts;

use crate::decode;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::store::PODS;
use crate::write::Call;

mod binding;
mod eviction;
mod resize;
mod scale;

/// What a real kubelet would be asked for.
const SIMULATED: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

/// Does the resource have this subresource, beside status?
pub(crate) fn exists(resource: &Resource, name: &str) -> bool {
    match name {
        "binding" | "eviction" | "resize" => &*resource.slot == PODS,
        simulated if SIMULATED.contains(&simulated) => &*resource.slot == PODS,
        "scale" => resource.scale.is_some(),
        _ => false,
    }
}

/// Answers a request on a subresource.
pub(crate) fn answer(call: &mut Call, parts: &Parts, body: Bytes) -> Result<Reply, ApiError> {
    let headers = &parts.headers;
    match (call.subresource.as_str(), &parts.method) {
        ("binding", &Method::POST) => binding::bind(call, &decode::value(headers, &body)?),
        ("eviction", &Method::POST) => eviction::evict(call, &decode::value(headers, &body)?),
        ("resize", &Method::GET) | ("scale", &Method::GET) => scale::show(call),
        ("resize", &Method::PUT | &Method::PATCH) => resize::resize(call, parts, &body),
        ("scale", &Method::PUT) => scale::replace(call, &decode::value(headers, &body)?),
        ("scale", &Method::PATCH) => scale::patch(call, headers, &body),
        (simulated, _) if SIMULATED.contains(&simulated) => Err(ApiError::simulated(simulated)),
        _ => Err(ApiError::method_not_allowed()),
    }
}
