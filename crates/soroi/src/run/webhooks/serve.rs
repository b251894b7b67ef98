//! HTTPS: connections, bodies and answers, each within bounds.
//!
//! Knows HTTP and TLS. Must never know what an answer means.

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
use soroi_webhook::wire::{NoReview, Step, admission, conversion};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::{Shown, objects};
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
    clock: Clock,
    metrics: Arc<Metrics>,
) -> anyhow::Result<()> {
    // Who connects before there is a certificate waits in the listener's queue.
    shown.wait_for(Option::is_some).await.context("the certificates' keeper has ended")?;
    let router = router(clock.clone(), metrics);
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
    clock: Clock,
    metrics: Arc<Metrics>,
    admissions: Arc<Semaphore>,
    conversions: Arc<Semaphore>,
}

fn router(clock: Clock, metrics: Arc<Metrics>) -> Router {
    let shared = Shared {
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

async fn default(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.admissions);
    shared
        .answer("default", at_once, ADMISSION_BYTES_MAX, body, |review| admission(Step::Default, review))
        .await
}

async fn validate(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.admissions);
    shared
        .answer("validate", at_once, ADMISSION_BYTES_MAX, body, |review| admission(Step::Validate, review))
        .await
}

async fn convert(State(shared): State<Shared>, body: Body) -> Response {
    let at_once = Arc::clone(&shared.conversions);
    shared.answer("convert", at_once, CONVERSION_BYTES_MAX, body, conversion).await
}

type Answer = fn(&Value) -> Result<Value, NoReview>;

impl Shared {
    async fn answer(
        self,
        call: &'static str,
        at_once: Arc<Semaphore>,
        bytes_max: usize,
        body: Body,
        answer: Answer,
    ) -> Response {
        let (response, word) = match self.judged(&at_once, bytes_max, body, answer).await {
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
        // A large body keeps a thread busy: not one that others wait for.
        let judged = tokio::task::spawn_blocking(move || {
            let body = serde_json::from_slice(&bytes).map_err(|_| "the body is no JSON\n")?;
            answer(&body).map_err(|NoReview(words)| words)
        });
        let judged = judged.await.map_err(|_| (StatusCode::INTERNAL_SERVER_ERROR, "a bug of Soroi\n"))?;
        judged.map_err(|words| (StatusCode::BAD_REQUEST, words))
    }
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
