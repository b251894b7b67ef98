//! For how long was at least one write on its way? A layer around a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use http::{Method, Request};
use jiff::Timestamp;
use kube::client::Body;
use soroi_clock::Clock;
use tower::BoxError;

/// Counts the writes of whoever is behind it.
#[derive(Clone)]
pub(super) struct Meter {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    under_way: u32,
    since: Option<Timestamp>,
    busy: Duration,
    writes: u64,
}

impl Meter {
    pub(super) fn new(clock: Clock) -> Self {
        Self { clock, state: Arc::default() }
    }

    /// For how long there was one so far, and how many there were.
    pub(super) fn read(&self) -> (Duration, u64) {
        let now = self.clock.now();
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (state.busy + state.since.map_or(Duration::ZERO, |since| span(since, now)), state.writes)
    }

    fn begin(&self) {
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.writes += 1;
        state.under_way += 1;
        state.since.get_or_insert(now);
    }

    fn end(&self) {
        let now = self.clock.now();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.under_way -= 1;
        if state.under_way == 0
            && let Some(since) = state.since.take()
        {
            state.busy += span(since, now);
        }
    }
}

fn span(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// One write: ends when it is dropped, answered or not.
struct UnderWay(Meter);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<S> tower::Layer<S> for Meter {
    type Service = Metered<S>;

    fn layer(&self, inner: S) -> Metered<S> {
        Metered { meter: self.clone(), inner }
    }
}

/// A service behind a [`Meter`].
#[derive(Clone)]
pub(super) struct Metered<S> {
    meter: Meter,
    inner: S,
}

impl<S> tower::Service<Request<Body>> for Metered<S>
where
    S: tower::Service<Request<Body>>,
    S::Future: Send + 'static,
    S::Response: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let answer = self.inner.call(request);
        if reads {
            return answer.map(|result| result.map_err(Into::into)).boxed();
        }
        self.meter.begin();
        let under_way = UnderWay(self.meter.clone());
        async move {
            let result = answer.await;
            drop(under_way);
            result.map_err(Into::into)
        }
        .boxed()
    }
}
