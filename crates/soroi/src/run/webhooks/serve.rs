//! HTTPS: connections, bodies and answers, each within bounds.
//!
//! Knows HTTP and TLS, and looks up what an answer depends on. Must never know what it means.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use soroi_clock::Clock;
use soroi_webhook::wire::{NoReview, Step, admission, asks_for_default_queue, conversion};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Shown, objects};
use crate::run::apply;
use crate::run::metrics::Metrics;

/// Connections at once. An API server keeps 25 of them at rest, and there are few API servers.
const CONNECTIONS_MAX: usize = 256;
/// Until a connection is encrypted.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
/// Until the head of a request is there, on a connection at rest, too: longer than the 90 s after
/// which an API server closes such a connection, so that it does so and not we.
const REST_MAX: Duration = Duration::from_secs(120);
/// Until the body of a request is there.
const BODY_TIME_MAX: Duration = Duration::from_secs(10);
/// Until the API server says whether a namespace has a default queue. A Job that names no queue is
/// not held up for longer: the API server gives up after 2 s ([`objects`]) and creates it as it is.
const LOOK_UP_MAX: Duration = Duration::from_secs(1);
/// Two objects of at most 3 MiB (the API server's own limit for a request), and the words around.
const ADMISSION_BYTES_MAX: usize = 8 << 20;
/// A whole list of objects is converted at once.
const CONVERSION_BYTES_MAX: usize = 64 << 20;
/// Bodies in memory at once: the bound on what all requests together may take.
const ADMISSIONS_MAX: usize = 32;
const CONVERSIONS_MAX: usize = 2;

/// Serves for ever.
pub(super) async fn serve(
    listener: TcpListener,
    mut shown: Shown,
    client: kube::Client,
    clock: Clock,
    metrics: Arc<Metrics>,
) -> anyhow::Result<()> {
    // Who connects before there is a certificate waits in the listener's queue.
    shown.wait_for(Option::is_some).await.context("the certificates' keeper has ended")?;
    let router = router(client, clock.clone(), metrics);
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            biased;
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if connections.len() < CONNECTIONS_MAX => {
                let stream = match accepted {
                    Ok((stream, _)) => stream,
                    Err(error) => {
                        tracing::debug!(%error, "a connection was lost before it began");
                        // Out of files, say: at once it would be the same again.
                        clock.sleep(Duration::from_millis(100)).await;
                        continue;
                    }
                };
                let config = shown.borrow().clone().context("a certificate does not go away")?;
                let (acceptor, clock, router) = (TlsAcceptor::from(config), clock.clone(), router.clone());
                connections.spawn(async move {
                    if let Err(error) = connection(stream, acceptor, clock, router).await {
                        tracing::debug!(error = format!("{error:#}"), "a connection ended early");
                    }
                });
            }
        }
    }
}

async fn connection(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    clock: Clock,
    router: Router,
) -> anyhow::Result<()> {
    let stream =
        clock.timeout(HANDSHAKE_MAX, acceptor.accept(stream)).await.context("TLS")?.context("TLS")?;
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(REST_MAX)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router))
        .await?;
    Ok(())
}

#[derive(Clone)]
struct Shared {
    client: kube::Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    admissions: Arc<Semaphore>,
    conversions: Arc<Semaphore>,
}

fn router(client: kube::Client, clock: Clock, metrics: Arc<Metrics>) -> Router {
    let shared = Shared {
        client,
        clock,
        metrics,
        admissions: Arc::new(Semaphore::new(ADMISSIONS_MAX)),
        conversions: Arc::new(Semaphore::new(CONVERSIONS_MAX)),
    };
    Router::new()
        .route(objects::DEFAULT, post(default))
        .route(objects::VALIDATE, post(validate))
        .route(objects::CONVERT, post(convert))
        .with_state(shared)
}

/// The word of requests for defaults.
const DEFAULT_CALL: &str = "default";

async fn default(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.admissions);
    shared
        .answer(DEFAULT_CALL, at_once, ADMISSION_BYTES_MAX, body, |review, default_queue| {
            admission(Step::Default, review, default_queue)
        })
        .await
}

async fn validate(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.admissions);
    shared
        .answer("validate", at_once, ADMISSION_BYTES_MAX, body, |review, _| {
            admission(Step::Validate, review, false)
        })
        .await
}

async fn convert(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.conversions);
    shared.answer("convert", at_once, CONVERSION_BYTES_MAX, body, |review, _| conversion(review)).await
}

/// Answers a body; for a default, with whether the namespace has a default queue.
type Answer = fn(&Value, bool) -> Result<Value, NoReview>;

impl Shared {
    async fn answer(
        self,
        call: &'static str,
        at_once: Arc<Semaphore>,
        bytes_max: usize,
        body: Body,
        answer: Answer,
    ) -> Response {
        let (response, word) = match self.judged(call, &at_once, bytes_max, body, answer).await {
            Ok(review) => {
                let word = word(&review);
                let content = [(header::CONTENT_TYPE, "application/json")];
                ((content, review.to_string()).into_response(), word)
            }
            Err((status, words)) => ((status, words).into_response(), "bad_request"),
        };
        self.metrics.reviewed(call, word);
        response
    }

    async fn judged(
        &self,
        call: &'static str,
        at_once: &Semaphore,
        bytes_max: usize,
        body: Body,
        answer: Answer,
    ) -> Result<Value, (StatusCode, &'static str)> {
        let busy = (StatusCode::SERVICE_UNAVAILABLE, "closing\n");
        let _turn = at_once.acquire().await.map_err(|_| busy)?;
        let read = axum::body::to_bytes(body, bytes_max);
        let bytes = match self.clock.timeout(BODY_TIME_MAX, read).await {
            Err(_) => return Err((StatusCode::REQUEST_TIMEOUT, "the body took too long\n")),
            Ok(Err(_)) => {
                return Err((StatusCode::PAYLOAD_TOO_LARGE, "the body is too large or broken off\n"));
            }
            Ok(Ok(bytes)) => bytes,
        };
        let body = aside(move || serde_json::from_slice::<Value>(&bytes)).await?;
        let body = body.map_err(|_| (StatusCode::BAD_REQUEST, "the body is no JSON\n"))?;
        let asks = if call == DEFAULT_CALL { asks_for_default_queue(&body) } else { None };
        let default_queue = match asks {
            Some(namespace) => self.has_default_queue(namespace).await?,
            None => false,
        };
        let judged = aside(move || answer(&body, default_queue)).await?;
        judged.map_err(|NoReview(words)| (StatusCode::BAD_REQUEST, words))
    }

    /// Whether a namespace has the queue of jobs that name none. Asked each time: what a cache does
    /// not show yet would be another answer on another replica.
    async fn has_default_queue(&self, namespace: &str) -> Result<bool, (StatusCode, &'static str)> {
        // A namespace is a DNS label; another text would be another path.
        if !namespace.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Ok(false);
        }
        let (group, version) = (soroi_api::kueue::GROUP, soroi_api::kueue::VERSION);
        let queue = soroi_webhook::DEFAULT_QUEUE;
        let path = format!("/apis/{group}/{version}/namespaces/{namespace}/localqueues/{queue}");
        match self.clock.timeout(LOOK_UP_MAX, apply::get::<Value>(&self.client, &path)).await {
            Ok(Ok(found)) => Ok(found.is_some()),
            Ok(Err(error)) => {
                tracing::debug!(%error, namespace, "cannot look up the default queue");
                Err((StatusCode::SERVICE_UNAVAILABLE, "the default queue could not be looked up\n"))
            }
            Err(_) => Err((StatusCode::SERVICE_UNAVAILABLE, "the default queue was not found in time\n")),
        }
    }
}

/// Does what a large body makes long, on a thread that nobody else waits for.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, (StatusCode, &'static str)> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "a bug of Soroi\n"))
}

/// What came of a review, in a word.
fn word(review: &Value) -> &'static str {
    let response = &review["response"];
    let good = response["allowed"] == true || response["result"]["status"] == "Success";
    let changed = !response["patch"].is_null();
    match (good, changed) {
        (true, true) => "changed",
        (true, false) => "allowed",
        (false, _) => "refused",
    }
}

#[cfg(test)]
mod tests;
