//! Health, readiness and metrics over plain HTTP, on loopback unless configured otherwise.
//!
//! `/healthz`: the process answers. `/readyz`: it has prepared the cluster, answers webhooks if
//! it is to, and takes part in the election, and if it leads it has read all objects; a follower is as ready as a leader.
//! `/metrics`: OpenMetrics text.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::State as Extract;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use soroi_clock::Clock;
use soroi_control::lease::Standing;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::metrics::Metrics;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What answers are made from.
#[derive(Clone)]
pub(crate) struct State {
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) standing: watch::Receiver<Standing>,
    /// Whether webhooks are answered; true if they are not served at all.
    pub(crate) webhooks: watch::Receiver<bool>,
    pub(crate) clock: Clock,
}

/// Begins to listen; the address, and the future that serves.
pub(crate) async fn serve(
    address: SocketAddr,
    state: State,
) -> anyhow::Result<(SocketAddr, impl Future<Output = anyhow::Result<()>> + Send + 'static)> {
    let listener = TcpListener::bind(address)
        .await
        .with_context(|| format!("http.bindAddress: cannot listen on {address} (is another Soroi running here? Give each a port of its own)"))?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/readyz", get(readiness))
        .route("/metrics", get(metrics))
        .with_state(state);
    Ok((address, async move { axum::serve(listener, router).await.context("cannot serve HTTP") }))
}

async fn readiness(Extract(state): Extract<State>) -> impl IntoResponse {
    let words = match &*state.standing.borrow() {
        _ if !state.metrics.is_prepared() => Err("preparing the cluster".to_owned()),
        _ if !*state.webhooks.borrow() => Err("making a certificate for the webhooks".to_owned()),
        Standing::Following(None) => Err("looking for the leader".to_owned()),
        Standing::Following(Some(leader)) => Ok(format!("following {leader}")),
        Standing::Leading(term) if state.clock.now() >= term.until => Err("the term is over".to_owned()),
        Standing::Leading(term) if state.metrics.decides() => Ok(format!("leading, epoch {}", term.epoch)),
        Standing::Leading(term) => Err(format!("reading the cluster, epoch {}", term.epoch)),
    };
    match words {
        Ok(words) => (StatusCode::OK, format!("ok: {words}\n")),
        Err(words) => (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {words}\n")),
    }
}

async fn metrics(Extract(state): Extract<State>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, OPEN_METRICS)], state.metrics.text())
}
