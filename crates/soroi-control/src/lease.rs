//! Who leads? One `coordination.k8s.io/v1` Lease among all replicas, and how long a turn is sure.
//!
//! ```text
//! leader    renew ──2 s──▶ renew ──▶ …            (its term ends `duration` after the last renewal
//!                                                  was sent, whatever became of it)
//! follower  sees a renewal ──duration + request time-out──▶ takes over, with the next epoch
//!           sees its own name ──own term + request time-out──▶ takes over, with the next epoch
//! ```
//!
//! A lease is not a fence: the API server does not look at it when something else is written. So a
//! leader writes only within its term ([`fence`]), every write of it is given up after the request
//! time-out, and whoever takes over waits out both. Time is measured by each replica's own clock
//! from what it saw itself, never by comparing time stamps of two machines, so that a clock that is
//! wrong does no harm; the time stamps in the Lease are for people.
//!
//! Knows the Lease. Must never know what a leader does.

pub mod fence;

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde_json::{Value, json};
use soroi_clock::Clock;
use soroi_watch::Outage;
use tokio::sync::watch;

/// Which Lease, and how it is held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseSettings {
    /// The namespace of the Lease.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Who we are. No other process, an earlier one of ours included, may ever have been called so.
    pub identity: String,
    /// How long a renewal lasts. Whole seconds.
    pub duration: Duration,
    /// How often the leader renews. Followers look twice as often.
    pub renew_every: Duration,
    /// How long at most one request of a leader takes, the renewal included.
    pub request_timeout: Duration,
}

/// Where leadership stands, as this replica knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Somebody else leads (named, if known), or nobody does yet.
    Following(Option<String>),
    /// We lead.
    Leading(Term),
}

/// A turn of leadership.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// Counts the turns of this Lease; larger than that of every earlier one.
    pub epoch: i64,
    /// Until when nobody else can lead, on this replica's own clock.
    pub until: Timestamp,
}

impl Standing {
    /// Whether the turn of this epoch lasts at `now`.
    pub fn leads(&self, epoch: i64, now: Timestamp) -> bool {
        matches!(self, Self::Leading(term) if term.epoch == epoch && now < term.until)
    }
}

/// Takes part in the election until the future is dropped, or until `resign` becomes true: then a
/// lease that we hold is given back, so that the next leader need not wait, and the future ends.
/// Whoever resigns must have ended its own writes before. Where leadership stands is told by
/// `standing`.
pub async fn elect(
    client: kube::Client,
    clock: Clock,
    settings: LeaseSettings,
    standing: watch::Sender<Standing>,
    mut resign: watch::Receiver<bool>,
) {
    let mut elector = Elector {
        client,
        clock,
        settings,
        standing,
        seen: None,
        held: None,
        lapsed: None,
        tried: None,
        last_epoch: 0,
        outage: Outage::new(Duration::ZERO),
    };
    loop {
        let resigned = async { resign.wait_for(|resigned| *resigned).await.is_ok() };
        tokio::select! {
            biased;
            // Without anybody left who could say so, it never is.
            true = resigned => return elector.resign().await,
            () = elector.turn() => {}
        }
    }
}

/// Waits until this replica is elected; the epoch of its term. `None` when there is no election any
/// more. Says for whom it waits.
pub async fn elected(mut standing: watch::Receiver<Standing>, clock: &Clock) -> Option<i64> {
    let mut told = None;
    loop {
        match &*standing.borrow_and_update() {
            Standing::Leading(term) if clock.now() < term.until => return Some(term.epoch),
            Standing::Following(Some(leader)) if told.as_ref() != Some(leader) => {
                tracing::info!(%leader, "standing by: this replica takes over when the lease of that one runs out");
                told = Some(leader.clone());
            }
            Standing::Leading(_) | Standing::Following(_) => {}
        }
        standing.changed().await.ok()?;
    }
}

/// Waits until a term is over.
pub async fn over(mut standing: watch::Receiver<Standing>, epoch: i64, clock: &Clock) {
    loop {
        let until = match &*standing.borrow_and_update() {
            Standing::Leading(term) if term.epoch == epoch => term.until,
            _ => return,
        };
        if clock.now() >= until {
            return;
        }
        tokio::select! {
            biased;
            changed = standing.changed() => if changed.is_err() { return },
            () = clock.sleep_until(until) => {}
        }
    }
}

/// A Lease as it was last read.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    version: String,
    holder: String,
    duration: Duration,
    epoch: i64,
    /// When this state was first seen, on our clock: not before it was written.
    since: Timestamp,
}

/// Our own turn.
#[derive(Clone, Debug)]
struct Held {
    version: String,
    epoch: i64,
    acquired: Timestamp,
    until: Timestamp,
}

/// What the API server said to a write.
enum Wrote {
    Done(String),
    /// Somebody else wrote in between.
    Overtaken,
    /// Nobody knows.
    Unclear,
}

struct Elector {
    client: kube::Client,
    clock: Clock,
    settings: LeaseSettings,
    standing: watch::Sender<Standing>,
    seen: Option<Seen>,
    held: Option<Held>,
    /// Until when our last turn lasted.
    lapsed: Option<Timestamp>,
    /// The epoch that we tried to take, and when that was sent, while nobody said what became of it.
    tried: Option<(i64, Timestamp)>,
    /// The largest epoch ever seen: a Lease that somebody deleted is made with a larger one.
    last_epoch: i64,
    /// Requests that came to nothing, one after the other.
    outage: Outage,
}

impl Elector {
    /// One look at the Lease with what follows from it, and the pause after it.
    async fn turn(&mut self) {
        let next = match self.held.take() {
            Some(held) => self.renew(held).await,
            None => self.follow().await,
        };
        self.clock.sleep_until(next).await;
    }

    /// Renews; when the next look is due.
    async fn renew(&mut self, held: Held) -> Timestamp {
        let sent = self.clock.now();
        self.lapsed = Some(held.until);
        if sent >= held.until {
            tracing::warn!(epoch = held.epoch, "leadership is lost: the lease could not be renewed in time");
            self.tell(Standing::Following(None));
            return sent;
        }
        let left = Duration::try_from(held.until.duration_since(sent)).unwrap_or_default();
        let clock = self.clock.clone();
        let write = self.write(&held.version, held.epoch, held.acquired, sent);
        match clock.timeout(left, write).await.unwrap_or(Wrote::Unclear) {
            Wrote::Done(version) => {
                self.lead(Held { version, until: after(sent, self.settings.duration), ..held });
                after(sent, self.settings.renew_every)
            }
            // Perhaps by an earlier renewal of ours whose answer was lost.
            Wrote::Overtaken => match self.read().await {
                Some(Some(seen)) if seen.holder == self.settings.identity && seen.epoch == held.epoch => {
                    self.held = Some(Held { version: seen.version, ..held });
                    sent
                }
                None => self.retry(held),
                Some(other) => {
                    let leader = other.map(|seen| seen.holder);
                    tracing::warn!(
                        epoch = held.epoch,
                        ?leader,
                        "leadership is lost: the lease is not ours any more"
                    );
                    self.tell(Standing::Following(leader));
                    self.clock.now()
                }
            },
            Wrote::Unclear => self.retry(held),
        }
    }

    fn retry(&mut self, held: Held) -> Timestamp {
        let next = after(self.clock.now(), self.look_every()).min(held.until);
        self.held = Some(held);
        next
    }

    /// Looks at the Lease of somebody else, and takes it when that one's turn is over.
    async fn follow(&mut self) -> Timestamp {
        let Some(found) = self.read().await else { return after(self.clock.now(), self.look_every()) };
        let now = self.clock.now();
        let Some(seen) = found else { return self.create().await };
        if seen.holder == self.settings.identity
            && let Some((epoch, sent)) = self.tried.take().filter(|(epoch, _)| *epoch == seen.epoch)
        {
            return self.take_over(seen.version, epoch, sent);
        }
        let leader = Some(seen.holder.clone()).filter(|holder| !holder.is_empty());
        self.tell(Standing::Following(leader.clone()));
        let free = match (leader, self.lapsed) {
            (None, _) => now,
            // The API server was away, or a renewal of ours arrived too late for us. Nobody else has led
            // since we did, and we know when we wrote for the last time.
            (Some(holder), Some(until)) if holder == self.settings.identity => {
                after(until, self.settings.request_timeout)
            }
            _ => after(seen.since, seen.duration.saturating_add(self.settings.request_timeout)),
        };
        if now < free {
            return after(now, self.look_every()).min(free);
        }
        let epoch = self.last_epoch.saturating_add(1);
        let wrote = self.write(&seen.version, epoch, now, now).await;
        self.tried(wrote, epoch, now)
    }

    async fn create(&mut self) -> Timestamp {
        let now = self.clock.now();
        let epoch = self.last_epoch.saturating_add(1);
        let mut lease = self.lease(epoch, now, now);
        lease["metadata"]["name"] = json!(self.settings.name);
        let wrote = self.send("POST", self.collection(), &lease).await;
        self.tried(wrote, epoch, now)
    }

    /// What came of trying to take the Lease.
    fn tried(&mut self, wrote: Wrote, epoch: i64, sent: Timestamp) -> Timestamp {
        match wrote {
            Wrote::Done(version) => return self.take_over(version, epoch, sent),
            Wrote::Overtaken => self.tried = None,
            Wrote::Unclear => self.tried = Some((epoch, sent)),
        }
        after(self.clock.now(), self.look_every())
    }

    fn take_over(&mut self, version: String, epoch: i64, sent: Timestamp) -> Timestamp {
        tracing::info!(epoch, identity = self.settings.identity, "leading");
        self.last_epoch = epoch;
        self.lead(Held { version, epoch, acquired: sent, until: after(sent, self.settings.duration) });
        after(sent, self.settings.renew_every)
    }

    fn lead(&mut self, held: Held) {
        self.tell(Standing::Leading(Term { epoch: held.epoch, until: held.until }));
        self.held = Some(held);
    }

    /// Gives the Lease back.
    async fn resign(mut self) {
        let Some(held) = self.held.take() else { return };
        self.tell(Standing::Following(None));
        let now = self.clock.now();
        let mut lease = self.lease(held.epoch, held.acquired, now);
        lease["metadata"]["resourceVersion"] = json!(held.version);
        lease["spec"]["holderIdentity"] = json!("");
        if now < held.until && matches!(self.send("PUT", self.path(), &lease).await, Wrote::Done(_)) {
            tracing::info!(epoch = held.epoch, "the lease is given back");
        }
    }

    fn tell(&self, standing: Standing) {
        self.standing.send_if_modified(|known| {
            let changed = *known != standing;
            *known = standing;
            changed
        });
    }

    fn look_every(&self) -> Duration {
        self.settings.renew_every / 2
    }

    /// The Lease as it is now: `None` if that is not known, `Some(None)` if there is none.
    async fn read(&mut self) -> Option<Option<Seen>> {
        let request = http::Request::get(self.path()).body(Vec::new()).ok()?;
        let asked = self.client.request::<Lease>(request);
        let lease = match self.clock.timeout(self.settings.request_timeout, asked).await {
            Ok(Ok(lease)) => lease,
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => {
                self.answered();
                self.seen = None;
                return Some(None);
            }
            Ok(Err(error)) => return self.in_vain("read", &error),
            Err(late) => return self.in_vain("read", &late),
        };
        self.answered();
        let spec = lease.spec.unwrap_or_default();
        let version = lease.metadata.resource_version.unwrap_or_default();
        let seconds = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let epoch = spec.lease_transitions.map_or(0, i64::from);
        self.last_epoch = self.last_epoch.max(epoch);
        if self.seen.as_ref().is_none_or(|seen| seen.version != version) {
            self.seen = Some(Seen {
                version,
                holder: spec.holder_identity.unwrap_or_default(),
                duration: seconds.map_or(self.settings.duration, Duration::from_secs),
                epoch,
                since: self.clock.now(),
            });
        }
        Some(self.seen.clone())
    }

    /// A request came to nothing. That is said once, and then less and less often: the lease is asked for
    /// every few seconds, and whoever reads the log knows by then.
    fn in_vain<T>(&mut self, what: &str, error: &dyn std::error::Error) -> Option<T> {
        match self.outage.fails(self.clock.now()) {
            Some(told) => {
                let (lasts, tries) = (told.lasts, told.failures);
                tracing::warn!(%error, ?lasts, tries, "the lease cannot be {what}: is the API server there?");
            }
            None => tracing::debug!(%error, "the lease cannot be {what}"),
        }
        None
    }

    fn answered(&mut self) {
        if let Some(after) = self.outage.works(self.clock.now()) {
            tracing::info!(?after, "the API server answers again");
        }
    }

    async fn write(&mut self, version: &str, epoch: i64, acquired: Timestamp, now: Timestamp) -> Wrote {
        let mut lease = self.lease(epoch, acquired, now);
        lease["metadata"]["resourceVersion"] = json!(version);
        self.send("PUT", self.path(), &lease).await
    }

    async fn send(&mut self, method: &str, path: String, lease: &Value) -> Wrote {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(lease.to_string().into_bytes());
        let Ok(request) = request else { return Wrote::Unclear };
        let asked = self.client.request::<Lease>(request);
        match self.clock.timeout(self.settings.request_timeout, asked).await {
            Ok(Ok(lease)) => {
                self.answered();
                Wrote::Done(lease.metadata.resource_version.unwrap_or_default())
            }
            Ok(Err(kube::Error::Api(status))) if matches!(status.code, 404 | 409) => {
                self.answered();
                tracing::debug!(message = status.message, "the lease was not written");
                Wrote::Overtaken
            }
            Ok(Err(error)) => self.in_vain("written", &error).unwrap_or(Wrote::Unclear),
            Err(late) => self.in_vain("written", &late).unwrap_or(Wrote::Unclear),
        }
    }

    fn lease(&self, epoch: i64, acquired: Timestamp, now: Timestamp) -> Value {
        json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "namespace": self.settings.namespace, "name": self.settings.name },
            "spec": {
                "holderIdentity": self.settings.identity,
                "leaseDurationSeconds": self.settings.duration.as_secs().max(1),
                "acquireTime": micros(acquired),
                "renewTime": micros(now),
                "leaseTransitions": epoch,
            },
        })
    }

    fn collection(&self) -> String {
        format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.settings.namespace)
    }

    fn path(&self) -> String {
        format!("{}/{}", self.collection(), self.settings.name)
    }
}

fn micros(at: Timestamp) -> k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime {
    k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime(at)
}

fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests;
