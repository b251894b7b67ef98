//! A whole cluster in one process: API server, nodes, controllers and Soroi, under one clock.
//!
//! [`Embedded`] puts the parts together as a real cluster has them: the API server with Soroi's
//! custom resources and admission, and beside it everything that talks to it through a client:
//! kubelets, Job controller, scheduler ([`Embedded::run_cluster`]) and the product itself
//! ([`soroi_control::run`], started by whoever holds the cluster, so that it can be stopped,
//! crashed and restarted on its own).
//!
//! The demo and every scenario use this one wiring; it lives in a crate of its own
//! because both the binary and the test kit need it, and neither may depend on the other.
//!
//! Knows which parts there are. It must never know what any of them decides.

mod admission;
pub mod table;

use std::sync::{Arc, LazyLock};

use serde_json::Value;
use soroi_apiserver::{Admission, ApiServer, ApiService};
use soroi_clock::Clock;

/// Soroi's CRDs as objects. They are the same for every cluster and take a while to form.
static CRDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let crds = soroi_api::crds::all().into_iter();
    crds.map(|crd| serde_json::to_value(crd).expect("a CRD is plain data")).collect()
});

/// How an embedded cluster is set up.
#[derive(Clone, Default)]
pub struct Options {
    /// Uids, generated names, retries: the same seed gives the same run on a simulated clock.
    pub seed: u64,
    /// Admission hooks of others, asked after Soroi's own.
    pub admission: Vec<Arc<dyn Admission>>,
    /// The cluster beside the API server; its seed is taken from `seed`.
    pub cluster: soroi_cluster::Options,
}

/// An embedded cluster. Its objects live as long as any service or client made from it.
pub struct Embedded {
    clock: Clock,
    server: ApiServer,
    cluster: soroi_cluster::Options,
}

impl Embedded {
    /// A cluster without nodes, with Soroi's custom resources and admission in place. Nothing runs
    /// until [`Self::run_cluster`] and [`soroi_control::run`] do.
    pub fn new(clock: Clock, options: Options) -> Self {
        let mut admission: Vec<Arc<dyn Admission>> = vec![Arc::new(admission::Webhook)];
        admission.extend(options.admission);
        let server_options = soroi_apiserver::Options {
            seed: options.seed,
            crds: CRDS.clone(),
            admission,
            ..soroi_apiserver::Options::default()
        };
        let server = ApiServer::new(clock.clone(), server_options);
        Self { clock, server, cluster: soroi_cluster::Options { seed: options.seed, ..options.cluster } }
    }

    /// The API server as a service, for clients with something in between.
    pub fn service(&self) -> ApiService {
        self.server.service()
    }

    /// A client with all rights. Must be called within a runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Runs everything of the cluster that is neither its API server nor Soroi, for ever.
    pub fn run_cluster(&self) -> impl Future<Output = ()> + Send + 'static {
        soroi_cluster::run(self.client(), self.clock.clone(), self.cluster.clone())
    }
}
