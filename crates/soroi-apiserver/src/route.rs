//! Which verb on which resource? From an HTTP request to a function.
//!
//! Knows the layout of the API's paths. Must never know a kind's rules.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{Method, Request, Response};
use http_body::Body;
use http_body_util::BodyExt;

use crate::admission::User;
use crate::query::{ListOptions, Query, WriteOptions, decode};
use crate::read::Extent;
use crate::reply::{Reply, ReplyBody};
use crate::resource::Resource;
use crate::select::Selection;
use crate::status::ApiError;
use crate::write::Call;
use crate::{Shared, delete, discovery, read, review, subresource, unserved, watch, write};

/// Answers one request.
pub(crate) async fn answer<B>(shared: Arc<Shared>, request: Request<B>) -> Response<ReplyBody>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let (parts, body) = request.into_parts();
    let mut warnings = Vec::new();
    let reply = match collect(body, shared.body_bytes_max).await {
        Ok(body) => dispatch(&shared, &parts, body, &mut warnings),
        Err(error) => Err(error),
    };
    reply.unwrap_or_else(|error| Reply::from(&error)).into_response(&warnings)
}

/// Reads a body, up to its limit.
async fn collect<B>(body: B, bytes_max: usize) -> Result<Bytes, ApiError>
where
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    let mut body = Box::pin(body);
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| ApiError::bad_request(format!("reading the body: {e}")))?;
        let Ok(mut data) = frame.into_data() else { continue };
        let length = bytes::Buf::remaining(&data);
        let so_far = all.as_ref().map_or(first.len(), BytesMut::len);
        if so_far.saturating_add(length) > bytes_max {
            return Err(ApiError::too_large(&format!("limit is {bytes_max}")));
        }
        let data = bytes::Buf::copy_to_bytes(&mut data, length);
        match &mut all {
            Some(all) => all.extend_from_slice(&data),
            // Nearly every body is one frame, which is then not copied.
            None if first.is_empty() => first = data,
            None => {
                let mut joined = BytesMut::from(&first[..]);
                joined.extend_from_slice(&data);
                all = Some(joined);
            }
        }
    }
    Ok(all.map_or(first, BytesMut::freeze))
}

/// What a path under `/api/v1` or `/apis/GROUP/VERSION` names.
#[derive(Debug)]
struct Target {
    resource: Arc<Resource>,
    namespace: Option<String>,
    name: Option<String>,
    subresource: String,
}

fn dispatch(
    shared: &Arc<Shared>,
    parts: &Parts,
    body: Bytes,
    warnings: &mut Vec<String>,
) -> Result<Reply, ApiError> {
    let segments: Vec<String> =
        parts.uri.path().split('/').filter(|s| !s.is_empty()).map(|s| decode(s, false)).collect();
    let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
    let (group, version, rest) = match segments.as_slice() {
        ["api", version, rest @ ..] if !rest.is_empty() => ("", *version, rest),
        ["apis", group, version, rest @ ..] if !rest.is_empty() => (*group, *version, rest),
        other if parts.method == Method::GET => return discovery::answer(shared, parts, other),
        _ => return Err(ApiError::no_path()),
    };
    if let [plural] = rest
        && review::is_asked(group)
    {
        return review::answer(parts, group, plural, &user(parts).name, &body);
    }
    let target = target(shared, group, version, rest)?;
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    if target.name.is_none() {
        on_collection(shared, parts, &target, &query, body, warnings)
    } else {
        on_object(shared, parts, target, &query, body, warnings)
    }
}

fn target(shared: &Shared, group: &str, version: &str, rest: &[&str]) -> Result<Target, ApiError> {
    let registry = shared.registry();
    let find = |plural: &str| {
        let found = registry.find(group, version, plural).cloned();
        found.ok_or_else(|| unserved::refusal(group, plural))
    };
    let owned = |text: &&str| (*text).to_owned();
    // `namespaces/x/status` is a subresource of the namespace x, not a kind inside it.
    let (plural, namespace, rest) = match rest {
        ["namespaces", namespace, plural, rest @ ..] if !matches!(*plural, "status" | "finalize") => {
            (*plural, Some(owned(namespace)), rest)
        }
        [plural, rest @ ..] => (*plural, None, rest),
        [] => return Err(ApiError::no_path()),
    };
    let resource = find(plural)?;
    let (name, subresource) = match rest {
        [] => (None, String::new()),
        [name] => (Some(owned(name)), String::new()),
        [name, subresource] => (Some(owned(name)), owned(subresource)),
        _ => return Err(ApiError::no_path()),
    };
    let scoped = namespace.is_some();
    if scoped != resource.namespaced && (scoped || name.is_some()) {
        return Err(ApiError::no_path());
    }
    Ok(Target { resource, namespace, name, subresource })
}

fn on_collection(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: &Target,
    query: &Query,
    body: Bytes,
    warnings: &mut Vec<String>,
) -> Result<Reply, ApiError> {
    let resource = &target.resource;
    let namespace = target.namespace.as_deref();
    let select = |options: &ListOptions| -> Result<Selection, ApiError> {
        let fields = options.fields.clone().resolve(resource)?;
        Ok(Selection { labels: options.labels.clone(), fields })
    };
    match parts.method {
        Method::GET if query.flag("watch") => {
            let mut options = ListOptions::parse(query, true)?;
            options.extent = Extent::parse(&parts.headers, query)?;
            let selection = select(&options)?;
            Ok(Reply::lines(watch::start(shared, resource, namespace, selection, &options)?))
        }
        Method::GET => {
            let mut options = ListOptions::parse(query, false)?;
            options.extent = Extent::parse(&parts.headers, query)?;
            let selection = select(&options)?;
            read::list(shared, resource, namespace, &selection, &options)
        }
        Method::POST if namespace.is_some() == resource.namespaced => {
            let mut call = call(shared, parts, target, query, "CreateOptions")?;
            finish(write::create(&mut call, &parts.headers, body), call, warnings)
        }
        Method::DELETE if namespace.is_some() == resource.namespaced => {
            let options = ListOptions::parse(query, false)?;
            let selection = select(&options)?;
            let mut call = call(shared, parts, target, query, "DeleteOptions")?;
            let reply = delete::collection(&mut call, &parts.headers, query, body, &selection);
            finish(reply, call, warnings)
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn on_object(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: Target,
    query: &Query,
    body: Bytes,
    warnings: &mut Vec<String>,
) -> Result<Reply, ApiError> {
    let resource = &target.resource;
    let known = match target.subresource.as_str() {
        "" => true,
        "status" => resource.status,
        other => subresource::exists(resource, other),
    };
    if !known {
        return Err(ApiError::no_path());
    }
    let plain = matches!(target.subresource.as_str(), "" | "status");
    let name = target.name.as_deref().unwrap_or("");
    if parts.method == Method::GET && plain {
        if query.flag("watch") && target.subresource.is_empty() {
            return watch_one(shared, parts, &target, name, query);
        }
        let stored =
            read::get(&shared.store.lock(), resource, target.namespace.as_deref().unwrap_or(""), name)?;
        let extent = Extent::parse(&parts.headers, query)?;
        return Ok(Reply::ok(extent.show(resource, &stored, shared.clock.now())));
    }
    let options = match parts.method {
        Method::PUT => "UpdateOptions",
        Method::PATCH => "PatchOptions",
        Method::DELETE => "DeleteOptions",
        _ => "CreateOptions",
    };
    let mut call = call(shared, parts, &target, query, options)?;
    let reply = match parts.method {
        _ if !plain => subresource::answer(&mut call, parts, body),
        Method::PUT => write::update(&mut call, &parts.headers, body),
        Method::PATCH => write::patch(&mut call, &parts.headers, body),
        Method::DELETE if call.subresource.is_empty() => delete::one(&mut call, &parts.headers, query, body),
        _ => Err(ApiError::method_not_allowed()),
    };
    finish(reply, call, warnings)
}

/// A watch on the path of one object: the same as with a selector for its name.
fn watch_one(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: &Target,
    name: &str,
    query: &Query,
) -> Result<Reply, ApiError> {
    let mut options = ListOptions::parse(query, true)?;
    options.extent = Extent::parse(&parts.headers, query)?;
    let fields = std::mem::take(&mut options.fields).with_name(name).resolve(&target.resource)?;
    let selection = Selection { labels: options.labels.clone(), fields };
    let namespace = target.namespace.as_deref();
    Ok(Reply::lines(watch::start(shared, &target.resource, namespace, selection, &options)?))
}

fn call(
    shared: &Arc<Shared>,
    parts: &Parts,
    target: &Target,
    query: &Query,
    options_kind: &str,
) -> Result<Call, ApiError> {
    let options = WriteOptions::parse(query, options_kind)?;
    let user = user(parts);
    let agent = parts.headers.get("user-agent").and_then(|v| v.to_str().ok());
    let agent = agent.and_then(|agent| agent.split('/').next()).unwrap_or("unknown");
    Ok(Call {
        shared: shared.clone(),
        resource: target.resource.clone(),
        namespace: target.namespace.clone().unwrap_or_default(),
        name: target.name.clone().unwrap_or_default(),
        subresource: target.subresource.clone(),
        manager: options.manager.clone().unwrap_or_else(|| agent.to_owned()),
        options,
        user,
        applying: false,
        warnings: Vec::new(),
    })
}

/// Who asks: an administrator, or whom that one plays.
fn user(parts: &Parts) -> User {
    let header = |name: &str| parts.headers.get(name).and_then(|v| v.to_str().ok());
    User {
        name: header("impersonate-user").unwrap_or("kubernetes-admin").to_owned(),
        groups: parts
            .headers
            .get_all("impersonate-group")
            .iter()
            .filter_map(|v| v.to_str().ok())
            .map(str::to_owned)
            .collect(),
    }
}

fn finish(reply: Result<Reply, ApiError>, call: Call, warnings: &mut Vec<String>) -> Result<Reply, ApiError> {
    *warnings = call.warnings;
    reply
}
