//! Admission and conversion over HTTPS: what policies and schemas cannot say.
//!
//! ```text
//! certificates ──▶ a Secret that all replicas share, or files
//!      │
//!      ├──▶ upkeep: `caBundle` of the webhook configurations and of the resource definitions
//!      └──▶ serve: POST /default, /validate, /convert ──▶ soroi_webhook
//! ```
//!
//! Every replica serves, whoever leads. Nothing that Soroi does not manage is ever sent here, and
//! for Kueue's kinds a missing answer counts as "yes" (`objects`), so that a cluster goes on while
//! Soroi is down; only `v1beta1` needs somebody who converts it.
//!
//! Knows how the parts are wired. Must never know what is allowed.

mod authority;
mod certificates;
pub(crate) mod objects;
mod serve;
mod upkeep;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use jiff::Timestamp;
use rustls::ServerConfig;
use soroi_clock::Clock;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::config::{Configuration, Webhooks};
use super::metrics::Metrics;
use certificates::Certificates;

/// How soon it is tried again after something went wrong.
const RETRY: Duration = Duration::from_secs(2);
/// How often it is looked whether somebody changed something.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What a listener shows to those who connect; none while there is no certificate.
type Shown = watch::Receiver<Option<Arc<ServerConfig>>>;

/// One replica's webhooks.
pub(crate) struct Server {
    client: kube::Client,
    clock: Clock,
    settings: Webhooks,
    namespace: String,
    listener: TcpListener,
    metrics: Arc<Metrics>,
    /// Whether requests are answered.
    ready: watch::Sender<bool>,
}

impl Server {
    /// Begins to listen. Connections wait until there is a certificate.
    ///
    /// # Errors
    /// The address is taken.
    pub(crate) async fn bind(
        client: kube::Client,
        clock: Clock,
        configuration: &Configuration,
        settings: Webhooks,
        metrics: Arc<Metrics>,
        ready: watch::Sender<bool>,
    ) -> anyhow::Result<(SocketAddr, Self)> {
        let wanted = settings.bind_address;
        let listener = TcpListener::bind(wanted)
            .await
            .with_context(|| format!("webhooks.bindAddress: cannot listen on {wanted}"))?;
        let namespace = configuration.leader_election.namespace.clone();
        let address = listener.local_addr()?;
        Ok((address, Self { client, clock, settings, namespace, listener, metrics, ready }))
    }

    /// Serves for ever, under certificates that are kept valid.
    pub(crate) async fn run(self) -> anyhow::Result<()> {
        let (show, shown) = watch::channel(None);
        let Self { client, clock, settings, namespace, listener, metrics, ready } = self;
        let certificates = Certificates::new(client.clone(), clock.clone(), &settings, &namespace)?;
        let upkeep = upkeep::Upkeep::new(client.clone(), &settings, &namespace);
        tokio::select! {
            biased;
            kept = keep(certificates, upkeep, clock.clone(), &show, &ready) => kept,
            served = serve::serve(listener, shown, client, clock, metrics) => served,
        }
    }
}

/// Keeps certificates valid and known, for ever.
async fn keep(
    mut certificates: Certificates,
    upkeep: upkeep::Upkeep,
    clock: Clock,
    show: &watch::Sender<Option<Arc<ServerConfig>>>,
    ready: &watch::Sender<bool>,
) -> anyhow::Result<()> {
    loop {
        let done = async {
            let current = certificates.current().await?;
            // Who connects must know the authority before it sees what that has signed.
            if let Some(bundle) = &current.bundle {
                upkeep.publish(bundle).await?;
            }
            anyhow::Ok(current)
        };
        let next = match done.await {
            Ok(current) => {
                show.send_if_modified(|shown| {
                    let same = shown.as_ref().is_some_and(|shown| Arc::ptr_eq(shown, &current.shown));
                    *shown = Some(Arc::clone(&current.shown));
                    !same
                });
                ready.send_if_modified(|ready| !std::mem::replace(ready, true));
                let look = clock.now().saturating_add(LOOK_EVERY).unwrap_or(Timestamp::MAX);
                current.due.min(look)
            }
            Err(error) => {
                tracing::warn!(error = format!("{error:#}"), "cannot keep the webhooks' certificates");
                clock.now().saturating_add(RETRY).unwrap_or(Timestamp::MAX)
            }
        };
        clock.sleep_until(next).await;
    }
}
