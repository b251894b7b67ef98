//! Taking part in the election, and doing the work while elected.
//!
//! The lease is renewed by a thread of its own, so that a long decision never costs the leadership.
//! The work is done through a client behind a fence, and dropped as a whole when the term ends: what
//! that leaves behind is what a crash leaves behind, and the next leader finishes it.
//!
//! Knows terms. Must never know what the work is.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::Context as _;
use kube::client::ClientBuilder;
use soroi_clock::Clock;
use soroi_control::lease::fence::Fence;
use soroi_control::lease::{LeaseSettings, Standing, elect, elected, over};
use soroi_control::{Reins, run_with};
use tokio::sync::watch;

use super::Stop;
use super::config::Configuration;
use super::metrics::Metrics;
use super::rivals::Rivals;

/// How long a stop may take until what is under way is left to the next leader. Below the 30 s that
/// Kubernetes gives a pod to end.
const STOP_MAX: Duration = Duration::from_secs(10);
/// How long giving back the lease may take.
const RESIGN_MAX: Duration = Duration::from_secs(5);

/// One replica.
pub(crate) struct Leader {
    pub(crate) access: kube::Config,
    pub(crate) clock: Clock,
    pub(crate) configuration: Configuration,
    pub(crate) metrics: Arc<Metrics>,
    /// Whether pods of a release get our scheduler.
    pub(crate) admission: watch::Receiver<bool>,
    pub(crate) rivals: watch::Receiver<Rivals>,
    pub(crate) standing: watch::Receiver<Standing>,
}

/// The thread that takes part in the election.
pub(crate) struct Election {
    resign: watch::Sender<bool>,
    thread: JoinHandle<()>,
}

impl Leader {
    /// Begins to take part in the election.
    pub(crate) fn elect(&self, standing: watch::Sender<Standing>) -> anyhow::Result<Election> {
        let (resign, resigned) = watch::channel(false);
        let (access, clock, settings) = (self.access.clone(), self.clock.clone(), self.lease()?);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("lease".into()).spawn(move || {
            runtime.block_on(async {
                match kube::Client::try_from(access) {
                    Ok(client) => elect(client, clock, settings, standing, resigned).await,
                    Err(error) => tracing::error!(%error, "cannot set up the client of the lease"),
                }
            });
        })?;
        Ok(Election { resign, thread })
    }

    fn lease(&self) -> anyhow::Result<LeaseSettings> {
        let election = &self.configuration.leader_election;
        Ok(LeaseSettings {
            namespace: election.namespace.clone(),
            name: election.name.clone(),
            // Whoever is started anew under the same name must not pass for the one before.
            identity: format!("{}_{}", self.name(), random()?),
            duration: election.lease_duration,
            renew_every: election.renew_every,
            request_timeout: self.configuration.requests.timeout,
        })
    }

    /// How this replica is called.
    fn name(&self) -> String {
        let configured = self.configuration.identity.clone();
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let name = configured.or_else(host).map(|name| name.trim().to_owned());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| "soroi".into())
    }

    /// Leads whenever elected, until asked to stop.
    pub(crate) async fn lead(&mut self, stop: &mut Stop) -> anyhow::Result<()> {
        let (tell_halt, halt) = watch::channel(false);
        loop {
            let epoch = tokio::select! {
                biased;
                () = stop.asked() => return Ok(()),
                epoch = elected(self.standing.clone(), &self.clock) => {
                    epoch.context("the election has ended unexpectedly")?
                }
            };
            self.metrics.leads(epoch);
            let mut term = std::pin::pin!(self.term(epoch, halt.clone()));
            let ended = tokio::select! {
                biased;
                () = stop.asked() => {
                    tracing::info!("stopping: what is under way is finished");
                    tell_halt.send_replace(true);
                    if self.clock.timeout(STOP_MAX, term).await.is_err() {
                        tracing::warn!("what is under way is left to the next leader");
                    }
                    return Ok(());
                }
                ended = &mut term => ended,
            };
            self.metrics.follows();
            ended?;
        }
    }

    /// Works until the term ends, or something changes that the work cannot be told.
    async fn term(&self, epoch: i64, halt: watch::Receiver<bool>) -> anyhow::Result<()> {
        let fence = Fence {
            standing: self.standing.clone(),
            epoch,
            clock: self.clock.clone(),
            request_timeout: self.configuration.requests.timeout,
        };
        let builder = ClientBuilder::try_from(self.access.clone()).context("cannot set up a client")?;
        let client = builder.with_layer(&fence).build();
        let mut rivals = self.rivals.clone();
        let volcano = rivals.borrow_and_update().volcano;
        tracing::info!(epoch, serves_volcano = !volcano, "the work begins");
        let config = self.configuration.control(epoch, !volcano, &self.name());
        let observer = Arc::clone(&self.metrics);
        let reins = Reins { admission: self.admission.clone(), stop: halt, observer };
        tokio::select! {
            biased;
            () = over(self.standing.clone(), epoch, &self.clock) => {
                tracing::warn!(epoch, "the term is over");
                Ok(())
            }
            _ = rivals.wait_for(|rivals| rivals.volcano != volcano) => {
                tracing::info!(volcano = !volcano, "a Volcano scheduler came or went");
                Ok(())
            }
            ended = run_with(client, self.clock.clone(), config, reins) => Ok(ended?),
        }
    }
}

impl Election {
    /// Gives the lease back. Only when everything that wrote has ended.
    pub(crate) async fn resign(self) {
        self.resign.send_replace(true);
        let joined = tokio::task::spawn_blocking(move || self.thread.join());
        if Clock::real().timeout(RESIGN_MAX, joined).await.is_err() {
            tracing::warn!("the lease could not be given back; it will run out");
        }
    }
}

/// 64 bits from the operating system, in hexadecimal.
fn random() -> anyhow::Result<String> {
    let mut bytes = [0; 8];
    let mut source = std::fs::File::open("/dev/urandom").context("no source of random numbers")?;
    std::io::Read::read_exact(&mut source, &mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
