//! A small Kubernetes API server in memory, as one [`tower::Service`].
//!
//! The unmodified kube client drives it in process:
//!
//! ```
//! # soroi_clock::simulated_runtime().unwrap().block_on(async {
//! use soroi_apiserver::{ApiServer, Options};
//! use soroi_clock::Clock;
//!
//! let clock = Clock::simulated(jiff::Timestamp::UNIX_EPOCH);
//! let server = ApiServer::new(clock, Options::default());
//! let client = kube::Client::new(server.service(), "default");
//! assert_eq!(client.apiserver_version().await.unwrap().minor, "36");
//! # });
//! ```
//!
//! It knows Kubernetes' API: verbs, patches, selectors, watches, validation, admission, and the
//! rules of the built-in kinds that a scheduler meets. It has no controllers: what a kubelet, the
//! Job controller or the garbage collector does is done by clients. Objects are raw JSON. Time
//! comes from the clock and every random choice from the seed, so equal requests in equal order
//! give equal answers.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use http::{Request, Response};
use serde_json::Value;
use soroi_clock::Clock;

mod admission;
mod bell;
mod builtin;
mod decode;
mod delete;
mod discovery;
mod managed;
mod meta;
mod object;
mod openapi;
mod patch;
mod protobuf;
mod query;
mod read;
mod reply;
mod resource;
mod review;
mod route;
mod schema;
mod select;
pub mod serve;
mod status;
mod store;
mod subresource;
mod table;
mod unserved;
mod watch;
mod write;

pub use admission::{
    Admission, AdmissionPhase, AdmissionRequest, AdmissionResponse, Operation, Others, User,
};
pub use reply::ReplyBody;
pub use status::{ApiError, FieldError, FieldErrorKind};

use resource::Registry;
use store::Store;

/// How a server is set up.
#[derive(Clone)]
pub struct Options {
    /// Uids and generated names follow from it.
    pub seed: u64,
    /// CustomResourceDefinition objects to serve from the start.
    pub crds: Vec<Value>,
    /// Hooks, asked in this order.
    pub admission: Vec<Arc<dyn Admission>>,
    /// Events kept per resource, for watches that resume. Who falls further behind is told 410
    /// and lists again.
    pub history: usize,
    /// Most bytes of a request's body.
    pub body_bytes_max: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            seed: 0,
            crds: Vec::new(),
            admission: Vec::new(),
            // Ten thousand changes of one kind, each of a few kilobytes: who falls further behind
            // lists faster than it would read on.
            history: 10_000,
            // Kubernetes' own limit.
            body_bytes_max: 3 * 1024 * 1024,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("seed", &self.seed)
            .field("crds", &self.crds.len())
            .field("admission", &self.admission.len())
            .field("history", &self.history)
            .field("body_bytes_max", &self.body_bytes_max)
            .finish()
    }
}

/// What every request shares.
pub(crate) struct Shared {
    pub(crate) clock: Clock,
    pub(crate) store: Store,
    pub(crate) admission: Vec<Arc<dyn Admission>>,
    pub(crate) body_bytes_max: usize,
    registry: RwLock<Arc<Registry>>,
    /// Requests that were begun.
    requests: AtomicU64,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("store", &self.store).finish_non_exhaustive()
    }
}

impl Shared {
    /// What is served now.
    pub(crate) fn registry(&self) -> Arc<Registry> {
        self.registry.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Changes what is served.
    pub(crate) fn serve(&self, change: impl FnOnce(&mut Registry)) {
        let mut registry = self.registry.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut registry));
    }
}

/// The server. Clones share everything.
#[derive(Clone, Debug)]
pub struct ApiServer {
    shared: Arc<Shared>,
}

impl ApiServer {
    /// A server with the namespaces that every cluster has and the given CRDs, each Established.
    /// A CRD that the API would refuse is left out, with a line in the log that says why.
    pub fn new(clock: Clock, options: Options) -> Self {
        let shared = Arc::new(Shared {
            clock,
            store: Store::new(options.seed, options.history),
            admission: options.admission,
            body_bytes_max: options.body_bytes_max,
            registry: RwLock::new(Arc::new(Registry::builtin())),
            requests: AtomicU64::new(0),
        });
        builtin::bootstrap(&shared, options.crds);
        Self { shared }
    }

    /// The service to drive it with: for `kube::Client::new`, or behind tower layers.
    pub fn service(&self) -> ApiService {
        ApiService { shared: self.shared.clone() }
    }

    /// The newest resource version given out.
    pub fn revision(&self) -> u64 {
        self.shared.store.lock().revision
    }
}

/// The server as a [`tower::Service`] of HTTP requests with any body. It never fails: what goes
/// wrong is answered as a `metav1.Status`.
#[derive(Clone, Debug)]
pub struct ApiService {
    shared: Arc<Shared>,
}

impl ApiService {
    /// How many requests the server was asked, by all clients together; a watch is one.
    pub fn requests(&self) -> u64 {
        self.shared.requests.load(Ordering::Relaxed)
    }
}

impl<B> tower::Service<Request<B>> for ApiService
where
    B: http_body::Body + Send + 'static,
    B::Data: Send,
    B::Error: std::fmt::Display,
{
    type Response = Response<ReplyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let shared = self.shared.clone();
        shared.requests.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move { Ok(route::answer(shared, request).await) })
    }
}

#[cfg(test)]
mod tests;
