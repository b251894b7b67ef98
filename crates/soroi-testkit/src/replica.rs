//! One replica of the product on the embedded stage: its processes, one after the other.
//!
//! Alone it leads from the start; beside others it takes part in their election, as `soroi run` does,
//! and works only while its term lasts. Each of its processes has a machine of its own that can be put
//! to sleep, and a clock that may be wrong.
//!
//! Knows how the product is started. Must never know what a story is about.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use soroi_apiserver::ApiService;
use soroi_clock::{Clock, Machine};
use soroi_control::config::Config;
use soroi_control::lease::fence::Fence;
use soroi_control::lease::{LeaseSettings, Standing, elect, elected, over};
use soroi_watch::SplitMix64;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::Layer as _;

use crate::wire::Wire;
use crate::wire::sight::Sender;

/// The longest that a request of a leader takes; what `soroi run` does without settings.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// The term and its renewal, likewise.
const TERM: Duration = Duration::from_secs(15);
const RENEW_EVERY: Duration = Duration::from_secs(2);

/// What the processes of a replica have in common.
#[derive(Clone)]
pub(crate) struct Terms {
    /// The cluster's clock.
    pub(crate) clock: Clock,
    pub(crate) service: ApiService,
    pub(crate) wire: Wire,
    pub(crate) config: Config,
    /// It is one of several, of which one leads.
    pub(crate) elects: bool,
    /// How far the clock of a process may be off.
    pub(crate) astray: Duration,
}

/// See the module.
pub(crate) struct Replica {
    name: &'static str,
    terms: Terms,
    /// How many processes it has had.
    starts: Arc<AtomicU64>,
    process: JoinSet<String>,
    present: Arc<Mutex<Option<Present>>>,
}

/// The process that runs now.
#[derive(Clone)]
struct Present {
    clock: Clock,
    machine: Machine,
    /// `None`: it leads without an election.
    standing: Option<watch::Receiver<Standing>>,
}

impl Replica {
    pub(crate) fn new(name: &'static str, terms: Terms) -> Self {
        Self { name, terms, starts: Arc::default(), process: JoinSet::new(), present: Arc::default() }
    }

    /// Starts it, unless it runs.
    pub(crate) fn start(&mut self) {
        if self.process.is_empty() {
            let (name, terms) = (self.name, self.terms.clone());
            let (starts, present) = (Arc::clone(&self.starts), Arc::clone(&self.present));
            self.process.spawn(processes(name, terms, starts, present));
        }
    }

    /// Ends its process without a farewell.
    pub(crate) fn stop(&mut self) {
        self.process.abort_all();
        self.process = JoinSet::new();
        self.tell(None);
    }

    /// Its machine, if it leads as far as it knows itself.
    pub(crate) fn leading(&self) -> Option<Machine> {
        let present = self.present()?;
        let leads = present.standing.is_none_or(|standing| {
            matches!(&*standing.borrow(), Standing::Leading(term) if present.clock.now() < term.until)
        });
        leads.then_some(present.machine)
    }

    /// Wakes its machine.
    pub(crate) fn wake(&self) {
        if let Some(present) = self.present() {
            present.machine.wake();
        }
    }

    /// How it ended although nobody stopped it.
    pub(crate) fn ended(&mut self) -> Option<String> {
        let ended = self.process.try_join_next()?;
        Some(ended.unwrap_or_else(|error| error.to_string()))
    }

    fn present(&self) -> Option<Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn tell(&self, now: Option<Present>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }
}

/// One process after the other, each until it crashes.
async fn processes(
    name: &'static str,
    terms: Terms,
    starts: Arc<AtomicU64>,
    present: Arc<Mutex<Option<Present>>>,
) -> String {
    let tell = |now| *present.lock().unwrap_or_else(PoisonError::into_inner) = now;
    loop {
        let number = starts.fetch_add(1, Ordering::Relaxed) + 1;
        let (clock, machine) = Clock::on_machine(terms.face(name, number));
        let sender = Sender { who: if terms.elects { name } else { "" }, number };
        let wire = terms.wire.process(sender, machine.clone());
        let (tell_standing, standing) = watch::channel(Standing::Following(None));
        let shown = terms.elects.then(|| standing.clone());
        tell(Some(Present { clock: clock.clone(), machine, standing: shown }));
        let work = async {
            match terms.elects {
                true => terms.elected(name, number, &wire, &clock, (tell_standing, standing)).await,
                false => terms.alone(number, &wire, &clock).await,
            }
        };
        tokio::select! {
            biased;
            ended = work => return ended,
            () = wire.crash() => {}
        }
        tell(None);
        // One crash a run, but for a storm: what comes after it must set things right.
        let restart = terms.wire.restart();
        if !terms.wire.storms() {
            terms.wire.heal();
        }
        terms.clock.sleep(restart).await;
    }
}

impl Terms {
    /// What the clock of a process shows when it starts.
    fn face(&self, name: &str, number: u64) -> Timestamp {
        let most = u64::try_from(self.astray.as_millis()).unwrap_or(u64::MAX / 2);
        let seed = name.bytes().fold(self.config.seed, |seed, byte| seed.rotate_left(8) ^ u64::from(byte));
        let off = SplitMix64::new(seed ^ number).below(most.saturating_mul(2) + 1);
        let off = i64::try_from(off).unwrap_or(0).saturating_sub(i64::try_from(most).unwrap_or(0));
        self.clock.now().saturating_add(SignedDuration::from_millis(off)).unwrap_or(Timestamp::MAX)
    }

    /// The control loop and nothing else.
    async fn alone(&self, number: u64, wire: &Wire, clock: &Clock) -> String {
        let epoch = i64::try_from(number).unwrap_or(i64::MAX);
        let config = Config { epoch, ..self.config.clone() };
        format!("{:?}", soroi_control::run(wire.client(self.service.clone()), clock.clone(), config).await)
    }

    /// The election, and the control loop in every term of it.
    async fn elected(
        &self,
        name: &str,
        number: u64,
        wire: &Wire,
        clock: &Clock,
        (tell, standing): (watch::Sender<Standing>, watch::Receiver<Standing>),
    ) -> String {
        let settings = LeaseSettings {
            namespace: "default".into(),
            name: "soroi".into(),
            identity: format!("{name}_{number}"),
            duration: TERM,
            renew_every: RENEW_EVERY,
            request_timeout: REQUEST_TIMEOUT,
        };
        let (_nobody_resigns, resign) = watch::channel(false);
        let election = elect(wire.client(self.service.clone()), clock.clone(), settings, tell, resign);
        let work = async {
            while let Some(epoch) = elected(standing.clone(), clock).await {
                tokio::select! {
                    biased;
                    () = over(standing.clone(), epoch, clock) => {}
                    ended = self.term(name, epoch, wire, clock, standing.clone()) => return ended,
                }
            }
            "the election has ended".to_owned()
        };
        tokio::select! {
            biased;
            () = election => "the election has ended".to_owned(),
            ended = work => ended,
        }
    }

    /// One term: nothing is written outside it.
    async fn term(
        &self,
        name: &str,
        epoch: i64,
        wire: &Wire,
        clock: &Clock,
        standing: watch::Receiver<Standing>,
    ) -> String {
        let fence = Fence { standing, epoch, clock: clock.clone(), request_timeout: REQUEST_TIMEOUT };
        let client = kube::Client::new(fence.layer(wire.service(self.service.clone())), "default");
        let timeout = u64::try_from(REQUEST_TIMEOUT.as_millis()).unwrap_or(u64::MAX);
        let config =
            Config { epoch, instance: name.to_owned(), request_timeout_ms: timeout, ..self.config.clone() };
        format!("{:?}", soroi_control::run(client, clock.clone(), config).await)
    }
}
