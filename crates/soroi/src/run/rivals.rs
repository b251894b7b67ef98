//! Do Kueue or Volcano run on this cluster? Told by the leases of their leaders.
//!
//! Two products that admit the same jobs would undo each other's work, so Soroi does not run beside
//! Kueue's manager at all, and leaves `schedulerName: volcano` alone while a Volcano scheduler runs.
//!
//! Whether a lease is renewed is seen by looking twice. Time stamps of other machines are trusted
//! only where being wrong is harmless: a lease that looks fresh counts as live at once.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use serde::Deserialize;
use soroi_clock::Clock;
use soroi_watch::Outage;
use tokio::sync::watch;

use super::apply::get;

/// Kueue's manager (0.18, `resourceName` of its default configuration).
pub(crate) const KUEUE: &str = "c1f6bfd2.kueue.x-k8s.io";
/// Volcano's scheduler (1.15): the lease is called as the scheduler is.
pub(crate) const VOLCANO: &str = "volcano";
/// A lease without a duration is taken for one of this length, the default of both.
const DURATION: Duration = Duration::from_secs(15);
/// At start: until a lease that looks old was not renewed for as long as it lasts, at most this.
const SETTLE_MAX: Duration = Duration::from_secs(30);
/// At start, and later.
const LOOK_AT_START: Duration = Duration::from_secs(1);
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// For how long an API server may be away before that is worth a line here.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who runs beside us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Rivals {
    /// A Volcano scheduler does, or may.
    pub(crate) volcano: bool,
}

/// What is known of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Life {
    Live,
    /// It looks old; whether it is renewed has not been seen yet.
    Unknown,
    Dead,
}

/// A lease as it was first seen.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    renewed: Option<Timestamp>,
    since: Timestamp,
    /// It was renewed before our eyes.
    renews: bool,
}

/// The leases of one name, in all namespaces.
#[derive(Debug, Default)]
struct Watched {
    seen: BTreeMap<String, Seen>,
}

impl Watched {
    /// Takes in a reading; what is known of each lease, and its place.
    fn take(&mut self, leases: &[Lease], now: Timestamp) -> Vec<(String, Life)> {
        let mut lives = Vec::new();
        let mut seen = BTreeMap::new();
        for lease in leases {
            let meta = &lease.metadata;
            let text = |name: &Option<String>| name.clone().unwrap_or_default();
            let place = format!("{}/{}", text(&meta.namespace), text(&meta.name));
            let spec = lease.spec.clone().unwrap_or_default();
            let renewed = spec.renew_time.map(|time| time.0);
            let lasts = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
            let lasts = lasts.map_or(DURATION, Duration::from_secs);
            let known = match self.seen.get(&place) {
                Some(known) if known.renewed == renewed => known.clone(),
                Some(_) => Seen { renewed, since: now, renews: true },
                None => Seen { renewed, since: now, renews: false },
            };
            let within = |from: Timestamp| now < from.saturating_add(lasts).unwrap_or(Timestamp::MAX);
            let held = spec.holder_identity.is_some_and(|holder| !holder.is_empty());
            let life = if !held {
                Life::Dead
            } else if renewed.is_some_and(within) || (known.renews && within(known.since)) {
                Life::Live
            } else if within(known.since) {
                Life::Unknown
            } else {
                Life::Dead
            };
            seen.insert(place.clone(), known);
            lives.push((place, life));
        }
        self.seen = seen;
        lives
    }
}

async fn leases(client: &kube::Client, name: &str) -> kube::Result<Vec<Lease>> {
    #[derive(Deserialize)]
    struct List {
        #[serde(default)]
        items: Vec<Lease>,
    }
    let path = format!("/apis/coordination.k8s.io/v1/leases?fieldSelector=metadata.name%3D{name}");
    Ok(get::<List>(client, &path).await?.map(|list| list.items).unwrap_or_default())
}

/// Waits until it is sure that Kueue's manager does not run.
///
/// # Errors
/// It runs; the lease is named.
pub(crate) async fn refuse_beside_kueue(client: &kube::Client, clock: &Clock) -> anyhow::Result<()> {
    refuse(&live(client, clock, KUEUE).await?)
}

/// Waits until it is sure which leases of a name (`namespace/name`) are alive.
pub(crate) async fn live(client: &kube::Client, clock: &Clock, name: &str) -> kube::Result<Vec<String>> {
    let mut watched = Watched::default();
    let patience = clock.now().saturating_add(SETTLE_MAX).unwrap_or(Timestamp::MAX);
    loop {
        let lives = watched.take(&leases(client, name).await?, clock.now());
        let live = alive(&lives);
        let sure = lives.iter().all(|(_, life)| *life != Life::Unknown);
        if sure || !live.is_empty() || clock.now() >= patience {
            return Ok(live);
        }
        tracing::info!(leases = ?lives, "waiting to see whether a lease is still renewed");
        clock.sleep(LOOK_AT_START).await;
    }
}

fn alive(lives: &[(String, Life)]) -> Vec<String> {
    let live = lives.iter().filter(|(_, life)| *life == Life::Live);
    live.map(|(place, _)| place.clone()).collect()
}

fn refuse(live: &[String]) -> anyhow::Result<()> {
    if let Some(place) = live.first() {
        bail!(
            "Kueue's manager is live on this cluster (it holds the lease {place}); Soroi does not run \
             beside it: stop it first"
        );
    }
    Ok(())
}

/// Keeps looking. Ends when Kueue's manager appears.
pub(crate) async fn watch(
    client: kube::Client,
    clock: Clock,
    rivals: watch::Sender<Rivals>,
) -> anyhow::Result<()> {
    let (mut kueue, mut volcano) = (Watched::default(), Watched::default());
    let mut outage = Outage::new(PATIENCE);
    loop {
        match leases(&client, KUEUE).await {
            Ok(leases) => refuse(&alive(&kueue.take(&leases, clock.now())))?,
            Err(error) => in_vain(&mut outage, "Kueue's", &error, clock.now()),
        }
        match leases(&client, VOLCANO).await {
            Ok(leases) => {
                outage.works(clock.now());
                let lives = volcano.take(&leases, clock.now());
                let now = Rivals { volcano: lives.iter().any(|(_, life)| *life != Life::Dead) };
                rivals.send_if_modified(|known| {
                    let changed = *known != now;
                    *known = now.clone();
                    changed
                });
            }
            Err(error) => in_vain(&mut outage, "Volcano's", &error, clock.now()),
        }
        clock.sleep(LOOK_EVERY).await;
    }
}

/// An API server that is away is told of by whoever holds the lease.
fn in_vain(outage: &mut Outage, whose: &str, error: &kube::Error, now: Timestamp) {
    match outage.fails(now) {
        Some(told) => tracing::warn!(%error, lasts = ?told.lasts, "cannot look for {whose} lease"),
        None => tracing::debug!(%error, "cannot look for {whose} lease"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Lease {
        serde_json::from_value(json!({
            "metadata": { "namespace": "kueue-system", "name": KUEUE },
            "spec": { "holderIdentity": holder, "renewTime": renewed, "leaseDurationSeconds": 15 },
        }))
        .unwrap()
    }

    fn lives(watched: &mut Watched, lease: &Lease, now: &str) -> Life {
        watched.take(std::slice::from_ref(lease), now.parse().unwrap())[0].1
    }

    #[test]
    fn a_lease_lives_while_it_looks_fresh_or_is_renewed() {
        let old = lease("a", "2026-01-01T00:00:00.000000Z");
        let mut watched = Watched::default();
        assert_eq!(lives(&mut watched, &old, "2026-01-01T00:00:10Z"), Life::Live);
        assert_eq!(lives(&mut watched, &old, "2026-01-01T00:00:26Z"), Life::Dead);

        // Our clock is ten minutes ahead.
        let mut watched = Watched::default();
        assert_eq!(lives(&mut watched, &old, "2026-01-01T00:10:00Z"), Life::Unknown);
        assert_eq!(lives(&mut watched, &old, "2026-01-01T00:10:14Z"), Life::Unknown);
        let renewed = lease("a", "2026-01-01T00:00:14.000000Z");
        assert_eq!(lives(&mut watched, &renewed, "2026-01-01T00:10:14Z"), Life::Live);
        assert_eq!(lives(&mut watched, &renewed, "2026-01-01T00:10:30Z"), Life::Dead);

        let given_back = lease("", "2026-01-01T00:00:14.000000Z");
        assert_eq!(lives(&mut watched, &given_back, "2026-01-01T00:00:14Z"), Life::Dead);
    }

    #[test]
    fn the_refusal_names_the_lease() {
        let lives = [("kueue-system/c1f6bfd2.kueue.x-k8s.io".to_owned(), Life::Live)];
        let said = refuse(&alive(&lives)).unwrap_err().to_string();
        assert!(said.contains("the lease kueue-system/c1f6bfd2.kueue.x-k8s.io"), "{said}");
        refuse(&alive(&[("a/b".to_owned(), Life::Unknown)])).unwrap();
    }
}
