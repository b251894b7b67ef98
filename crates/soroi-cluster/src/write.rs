//! How do we change the cluster? Requests as values, and what became of them.
//!
//! Parts decide a [`Request`] and hand it to a [`Flight`], which keeps a bounded number under way;
//! nothing here retries, because whoever decided will look at the world again anyway.

use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use futures::stream::{FuturesUnordered, StreamExt as _};
use http::Method;
use serde_json::{Map, Value, json};
use soroi_clock::Clock;

use crate::seen::Meta;

/// Longer than any sane API server takes; after it the outcome is unknown.
const REPLY_MAX: Duration = Duration::from_secs(30);
/// Requests of one batch under way at once.
const AT_ONCE: usize = 16;

/// A write (or, rarely, a read) that somebody decided to make.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Request {
    method: Method,
    path: String,
    content_type: &'static str,
    body: Value,
}

impl Request {
    /// Reads one object or document.
    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), content_type: "application/json", body: Value::Null }
    }

    /// Creates `object` in a collection, or posts it to a subresource.
    pub(crate) fn post(path: impl Into<String>, object: Value) -> Self {
        Self { method: Method::POST, path: path.into(), content_type: "application/json", body: object }
    }

    /// Changes an object by a JSON merge patch (RFC 7386).
    pub(crate) fn merge(path: impl Into<String>, patch: Value) -> Self {
        let content_type = "application/merge-patch+json";
        Self { method: Method::PATCH, path: path.into(), content_type, body: patch }
    }

    /// Takes one finalizer away by a JSON patch (RFC 6902), which fails if the list was reordered
    /// meanwhile and otherwise leaves alone what others write.
    pub(crate) fn without_finalizer(path: impl Into<String>, meta: &Meta, finalizer: &str) -> Self {
        let place = meta.finalizers.iter().position(|other| other == finalizer).unwrap_or(0);
        let place = format!("/metadata/finalizers/{place}");
        let body = json!([
            { "op": "test", "path": "/metadata/uid", "value": meta.uid },
            { "op": "test", "path": place, "value": finalizer },
            { "op": "remove", "path": place },
        ]);
        let content_type = "application/json-patch+json";
        Self { method: Method::PATCH, path: path.into(), content_type, body }
    }

    /// Deletes an object, with these `DeleteOptions`.
    pub(crate) fn delete(path: impl Into<String>, options: Value) -> Self {
        Self { method: Method::DELETE, path: path.into(), content_type: "application/json", body: options }
    }
}

/// What became of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was done; the answer's body.
    Done(String),
    /// The object, or something that its path needs, does not exist (404).
    Missing,
    /// Somebody was faster, or a precondition does not hold (409).
    Conflict,
    /// Refused for another reason.
    Refused { code: u16, message: String },
    /// No answer: it may or may not have been done.
    Lost(String),
}

/// The way to the API server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    clock: Clock,
}

impl Api {
    pub(crate) fn new(client: kube::Client, clock: Clock) -> Self {
        Self { client, clock }
    }

    /// Sends many requests, some of them at once; the outcomes are in the order of the requests.
    pub(crate) async fn send_all(&self, requests: Vec<Request>) -> Vec<Outcome> {
        let sent = requests.into_iter().map(|request| {
            let api = self.clone();
            async move { api.send(request).await }.boxed()
        });
        futures::stream::iter(sent).buffered(AT_ONCE).collect().await
    }

    /// Sends one request and waits for what becomes of it.
    pub(crate) async fn send(&self, request: Request) -> Outcome {
        let body = if request.body.is_null() { Vec::new() } else { request.body.to_string().into_bytes() };
        let built = http::Request::builder()
            .method(request.method.clone())
            .uri(&request.path)
            .header(http::header::CONTENT_TYPE, request.content_type)
            .header(http::header::ACCEPT, "application/json")
            .body(body);
        let outcome = match built {
            Err(error) => Outcome::Refused { code: 400, message: error.to_string() },
            Ok(built) => match self.clock.timeout(REPLY_MAX, self.client.request_text(built)).await {
                Ok(Ok(text)) => Outcome::Done(text),
                Ok(Err(kube::Error::Api(status))) => match status.code {
                    404 => Outcome::Missing,
                    409 => Outcome::Conflict,
                    code => Outcome::Refused { code, message: status.message.clone() },
                },
                Ok(Err(error)) => Outcome::Lost(error.to_string()),
                Err(late) => Outcome::Lost(late.to_string()),
            },
        };
        if let Outcome::Refused { message, .. } | Outcome::Lost(message) = &outcome {
            tracing::debug!(method = %request.method, path = request.path, message, "request failed");
        }
        outcome
    }
}

/// The JSON merge patch that turns `old` into `new`.
pub(crate) fn difference(old: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(new)) = (old, new) else { return new.clone() };
    let mut patch = Map::new();
    for (key, value) in new {
        match old.get(key) {
            Some(before) if before == value => {}
            Some(before) if before.is_object() && value.is_object() => {
                patch.insert(key.clone(), difference(before, value));
            }
            _ => {
                patch.insert(key.clone(), value.clone());
            }
        }
    }
    let gone = old.keys().filter(|key| !new.contains_key(*key));
    patch.extend(gone.map(|key| (key.clone(), Value::Null)));
    Value::Object(patch)
}

/// Requests under way, at most `room` of them, each with a tag that says what it was for.
pub(crate) struct Flight<K> {
    api: Api,
    room: usize,
    under_way: FuturesUnordered<BoxFuture<'static, (K, Outcome)>>,
}

impl<K: Send + 'static> Flight<K> {
    pub(crate) fn new(api: Api, room: usize) -> Self {
        Self { api, room, under_way: FuturesUnordered::new() }
    }

    pub(crate) fn has_room(&self) -> bool {
        self.under_way.len() < self.room
    }

    pub(crate) fn push(&mut self, tag: K, request: Request) {
        let api = self.api.clone();
        self.under_way.push(Box::pin(async move { (tag, api.send(request).await) }));
    }

    /// The next outcome; waits for ever while nothing is under way. Cancel safe.
    pub(crate) async fn next(&mut self) -> (K, Outcome) {
        match self.under_way.next().await {
            Some(landed) => landed,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_what_changed_and_what_is_gone() {
        let old = json!({ "a": 1, "b": { "c": [1], "d": 2 }, "e": {}, "f": 3 });
        let new = json!({ "a": 1, "b": { "c": [1, 2] }, "e": {}, "g": null });
        assert_eq!(difference(&old, &new), json!({ "b": { "c": [1, 2], "d": null }, "f": null, "g": null }));
        assert_eq!(difference(&new, &new), json!({}));
    }
}
