//! Nothing is written outside one's own term: a layer around the client of a leader.
//!
//! Every write is checked against the term right before it is sent, and given up after the request
//! time-out, so that it has ended, one way or the other, before the next leader may begin. Reads
//! pass at any time.
//!
//! Knows requests as reads and writes. Must never know what they are about.

use std::task::{Context, Poll};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt as _};
use http::{Method, Request};
use kube::client::Body;
use soroi_clock::Clock;
use tokio::sync::watch;

use super::Standing;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Why a write was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not sent: the term of leadership {epoch} is over")]
pub struct Over {
    /// The term's epoch.
    pub epoch: i64,
}

/// Why a write was given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no answer within {0:?}")]
pub struct Late(pub Duration);

/// Lets the writes of one term pass while that lasts.
#[derive(Clone, Debug)]
pub struct Fence {
    /// Where leadership stands.
    pub standing: watch::Receiver<Standing>,
    /// The term's epoch.
    pub epoch: i64,
    /// The clock that the term is measured by.
    pub clock: Clock,
    /// How long a write may take.
    pub request_timeout: Duration,
}

impl Fence {
    fn is_open(&self) -> bool {
        self.standing.borrow().leads(self.epoch, self.clock.now())
    }
}

impl<S> tower::Layer<S> for Fence {
    type Service = Fenced<S>;

    fn layer(&self, inner: S) -> Fenced<S> {
        Fenced { fence: self.clone(), inner }
    }
}

/// A service behind a [`Fence`].
#[derive(Clone, Debug)]
pub struct Fenced<S> {
    fence: Fence,
    inner: S,
}

impl<S> tower::Service<Request<Body>> for Fenced<S>
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
        if matches!(*request.method(), Method::GET | Method::HEAD) {
            return self.inner.call(request).map(|result| result.map_err(Into::into)).boxed();
        }
        let Fence { epoch, clock, request_timeout, .. } = self.fence.clone();
        if !self.fence.is_open() {
            return std::future::ready(Err(Over { epoch }.into())).boxed();
        }
        let answer = self.inner.call(request);
        async move {
            match clock.timeout(request_timeout, answer).await {
                Ok(result) => result.map_err(Into::into),
                Err(_) => Err(Late(request_timeout).into()),
            }
        }
        .boxed()
    }
}
