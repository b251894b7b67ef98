//! Binding, eviction and scale: requests that change a part of an object by their own rules.

use bytes::Bytes;
use http::Method;
use http::request::Parts;

use crate::query::Query;
use crate::reply::Reply;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::store::PODS;
use crate::write::Call;
use crate::{decode, read};

mod binding;
mod eviction;
mod resize;
mod scale;

/// What a real kubelet would be asked for.
const SIMULATED: [&str; 6] = ["attach", "ephemeralcontainers", "exec", "log", "portforward", "proxy"];
/// Resource of the accounts, which would have tokens on a real server.
const ACCOUNTS: &str = "serviceaccounts";

/// Does the resource have this subresource, beside status?
pub(crate) fn exists(resource: &Resource, name: &str) -> bool {
    match name {
        "binding" | "eviction" | "resize" => &*resource.slot == PODS,
        simulated if SIMULATED.contains(&simulated) => &*resource.slot == PODS,
        "scale" => resource.scale.is_some(),
        "token" => &*resource.slot == ACCOUNTS,
        _ => false,
    }
}

/// Answers a request on a subresource.
pub(crate) fn answer(call: &mut Call, parts: &Parts, body: Bytes) -> Result<Reply, ApiError> {
    let headers = &parts.headers;
    match (call.subresource.as_str(), &parts.method) {
        ("binding", &Method::POST) => binding::bind(call, &decode::value(headers, &body)?),
        ("eviction", &Method::POST) => eviction::evict(call, &decode::value(headers, &body)?),
        ("resize", &Method::GET) => {
            let current = call.current()?;
            Ok(Reply::ok(read::show_json(&call.resource, &current)))
        }
        ("scale", &Method::GET) => scale::show(call),
        ("resize", &Method::PUT | &Method::PATCH) => resize::resize(call, parts, &body),
        ("scale", &Method::PUT) => scale::replace(call, &decode::value(headers, &body)?),
        ("scale", &Method::PATCH) => scale::patch(call, headers, &body),
        // Whoever follows a log asks again and again when it is refused (kubectl, for 20 s).
        ("log", &Method::GET) if Query::parse(parts.uri.query().unwrap_or("")).flag("follow") => {
            let text = Bytes::from(format!("{}\n", ApiError::simulated("log")));
            Ok(Reply::ok(text).of_type("text/plain; charset=utf-8"))
        }
        ("token", &Method::POST) => Err(ApiError::no_tokens()),
        ("ephemeralcontainers", _) => Err(ApiError::simulated("container to add to them")),
        (simulated, _) if SIMULATED.contains(&simulated) => Err(ApiError::simulated(simulated)),
        _ => Err(ApiError::method_not_allowed()),
    }
}
