//! One request to the API server, and what came of it.
//!
//! Knows HTTP and the kinds of answers that there are. Must never know why something is asked or
//! what follows from the answer.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_engine::event::{Name, PodUid};

use crate::draft::{self, Draft};
use crate::kind::Target;
use crate::parsed::Context;
use crate::project;

/// What is asked of a target. Every write carries its own precondition (a uid or a resource
/// version) in its body where a repeated or late request could do harm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Call {
    /// Read it back.
    Read,
    /// Create it (at its collection).
    Create(Value),
    /// Write the whole object; it carries the version that it replaces.
    Replace(Value),
    /// A write whose content has to be read first.
    Draft(Box<Draft>),
    /// RFC 7386 merge patch of the object.
    Merge(Value),
    /// RFC 7386 merge patch of its status subresource.
    MergeStatus(Value),
    /// RFC 6902 patch of the object.
    Json(json_patch::Patch),
    /// RFC 6902 patch of its status subresource.
    JsonStatus(json_patch::Patch),
    /// Bind a pod.
    Bind(Binding),
    /// Delete it, with `DeleteOptions`.
    Delete(Value),
}

/// A pod that is to be bound. Its `core/v1` Binding is made when it is sent: of thousands that are
/// wished for, few are sent before all of them are looked at anew.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Binding {
    /// Its uid.
    pub(crate) pod: PodUid,
    pub(crate) node: Name,
    /// Of the leader that binds it.
    pub(crate) epoch: i64,
}

impl Call {
    /// The Job or PodGroup whose Workload is made, or made anew as that is now.
    pub(crate) fn makes_workload_of(&self) -> Option<&Target> {
        let Self::Draft(draft) = self else { return None };
        match &**draft {
            Draft::CreateWorkload { job } | Draft::MatchWorkload { job } | Draft::Reclassify { job } => {
                Some(job)
            }
            Draft::GroupWorkload { group, .. } => Some(group),
            _ => None,
        }
    }

    /// What is asked, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Create(_) => "create",
            Self::Replace(_) => "replace",
            Self::Draft(_) => "write",
            Self::Merge(_) | Self::Json(_) => "patch",
            Self::MergeStatus(_) | Self::JsonStatus(_) => "patch_status",
            Self::Bind(_) => "bind",
            Self::Delete(_) => "delete",
        }
    }

    /// Deletes only the object of this uid: a namesake is somebody else.
    pub(crate) fn delete(uid: &str) -> Self {
        Self::Delete(json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid },
        }))
    }

    /// The same with what it owns: a Job's pods would be left behind otherwise.
    pub(crate) fn delete_with_all(uid: &str) -> Self {
        Self::Delete(json!({
            "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": { "uid": uid },
            "propagationPolicy": "Background",
        }))
    }
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    /// The object as it is now, as JSON.
    Object(String),
    /// Done; the answer carries no object.
    Accepted,
    /// There is no such object.
    Missing,
    /// The server said no, and nothing changed.
    Refused(Refusal),
    /// Nobody knows whether it happened: a lost reply, a time-out, a server in trouble. What is
    /// there has to be read back.
    Unknown(String),
}

impl Answer {
    /// The kind of answer, in a word.
    pub(crate) fn word(&self) -> &'static str {
        match self {
            Self::Object(_) | Self::Accepted => "done",
            Self::Missing => "missing",
            Self::Refused(refusal) if refusal.is_conflict() => "conflict",
            Self::Refused(_) => "refused",
            Self::Unknown(_) => "unknown",
        }
    }
}

/// Why the server said no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) code: u16,
    /// The machine-readable reason.
    pub(crate) reason: String,
    /// The text for people.
    pub(crate) message: String,
}

impl Refusal {
    /// Somebody wrote in between, or it exists already: look again, then decide anew.
    pub(crate) fn is_conflict(&self) -> bool {
        self.code == 409
    }
}

/// Carries calls to the API server.
#[derive(Clone)]
pub(crate) struct Api {
    client: kube::Client,
    clock: Clock,
    timeout: Duration,
    context: Arc<Context>,
}

impl Api {
    pub(crate) fn new(client: kube::Client, clock: Clock, timeout: Duration, context: Arc<Context>) -> Self {
        Self { client, clock, timeout, context }
    }

    /// Makes one attempt; never fails, since every way to fail is an answer.
    pub(crate) async fn call(&self, target: &Target, call: &Call) -> Answer {
        match call {
            Call::Draft(draft) => match draft::prepare(self, &self.context, target, draft).await {
                Ok(call) => self.send(target, &call).await,
                Err(answer) => answer,
            },
            call => self.send(target, call).await,
        }
    }

    /// Sends one request.
    pub(crate) async fn send(&self, target: &Target, call: &Call) -> Answer {
        let request = match request(target, call) {
            Ok(request) => request,
            Err(error) => {
                let message = error.to_string();
                return Answer::Refused(Refusal { code: 400, reason: "BadRequest".into(), message });
            }
        };
        match self.clock.timeout(self.timeout, self.client.request_text(request)).await {
            Err(_) => Answer::Unknown(format!("no answer within {:?}", self.timeout)),
            Ok(Ok(body)) => answer(body),
            Ok(Err(error)) => failure(error),
        }
    }
}

fn request(target: &Target, call: &Call) -> Result<http::Request<Vec<u8>>, http::Error> {
    let object = target.path();
    let (method, path, content, body) = match call {
        Call::Read => ("GET", object, "", None),
        Call::Create(body) => ("POST", target.collection(), "application/json", Some(body)),
        Call::Replace(body) => ("PUT", object, "application/json", Some(body)),
        Call::Merge(body) => ("PATCH", object, "application/merge-patch+json", Some(body)),
        Call::MergeStatus(body) => {
            ("PATCH", format!("{object}/status"), "application/merge-patch+json", Some(body))
        }
        Call::Draft(_) => unreachable!("a draft is prepared before it is sent"),
        Call::Json(patch) => return patched(object, patch),
        Call::JsonStatus(patch) => return patched(format!("{object}/status"), patch),
        Call::Bind(binding) => return bind(target, binding),
        Call::Delete(body) => ("DELETE", object, "application/json", Some(body)),
    };
    let mut builder = http::Request::builder().method(method).uri(path);
    builder = builder.header(http::header::ACCEPT, "application/json");
    if !content.is_empty() {
        builder = builder.header(http::header::CONTENT_TYPE, content);
    }
    builder.body(body.map_or_else(Vec::new, bytes))
}

fn bind(target: &Target, binding: &Binding) -> Result<http::Request<Vec<u8>>, http::Error> {
    http::Request::post(format!("{}/binding", target.path()))
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, "application/json")
        .body(bytes(&project::pod::binding(&target.namespace, &target.name, binding)))
}

fn patched(path: String, patch: &json_patch::Patch) -> Result<http::Request<Vec<u8>>, http::Error> {
    http::Request::patch(path)
        .header(http::header::ACCEPT, "application/json")
        .header(http::header::CONTENT_TYPE, "application/json-patch+json")
        .body(bytes(patch))
}

fn bytes(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).expect("JSON values always serialise")
}

/// Only the kind is looked at: a Status says "done", anything else is the object.
#[derive(serde::Deserialize)]
struct Envelope {
    kind: Option<String>,
}

fn answer(body: String) -> Answer {
    match serde_json::from_str::<Envelope>(&body) {
        Ok(Envelope { kind: Some(kind) }) if kind == "Status" => Answer::Accepted,
        Ok(_) => Answer::Object(body),
        Err(error) => Answer::Unknown(format!("unreadable answer: {error}")),
    }
}

fn failure(error: kube::Error) -> Answer {
    let kube::Error::Api(status) = error else { return Answer::Unknown(error.to_string()) };
    match status.code {
        404 => Answer::Missing,
        // 408, 429 and the 5xx say "not now" or nothing certain.
        408 | 429 | 500.. => Answer::Unknown(format!("{} {}", status.code, status.message)),
        code => Answer::Refused(Refusal { code, reason: status.reason, message: status.message }),
    }
}
