//! What happened? All watches as one stream of batches, in an order that depends on nothing but
//! what the server sent.
//!
//! Each kind is followed by a task of its own, which also decodes and parses; the batches are put
//! together here, kind by kind in the order of [`Kind`]. Kinds that others are understood by (limit
//! ranges, priority classes) are listed before the rest is followed at all. A kind that the server
//! does not serve counts as empty and is asked for again from time to time, quietly.
//!
//! Knows kinds and when their first lists are in. Must never know what an object means.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures::StreamExt as _;
use futures::stream::{self, BoxStream};
use soroi_clock::Clock;
use soroi_watch::{Backoff, Change, SplitMix64};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use crate::kind::Kind;
use crate::parsed::{self, Context, Parsed};

/// How often a kind that is not served is asked for again: somebody may install it any time.
const PROBE_EVERY: Duration = Duration::from_secs(15);
/// Changes of one kind that may wait to be taken in; beyond that its task waits.
const BACKLOG_MAX: usize = 1024;
/// Changes of one kind in one batch, so that a flood of one kind does not hold up the others.
const BATCH_MAX: usize = 256;

/// All watches. Dropping it ends them.
pub(crate) struct Watches {
    client: kube::Client,
    clock: Clock,
    context: Arc<Context>,
    random: SplitMix64,
    tasks: JoinSet<()>,
    followed: Vec<(Kind, mpsc::Receiver<Heard>)>,
    unlisted: BTreeSet<Kind>,
    served: BTreeSet<Kind>,
}

/// What the task of a kind has to say.
#[allow(clippy::large_enum_variant, reason = "moved once through a channel, never stored")]
enum Heard {
    /// The server serves the kind.
    Served,
    Change(Change<Parsed>),
}

impl Watches {
    pub(crate) fn start(client: kube::Client, clock: Clock, context: Arc<Context>, seed: u64) -> Self {
        let mut watches = Self {
            client,
            clock,
            context,
            random: SplitMix64::new(seed),
            tasks: JoinSet::new(),
            followed: Vec::new(),
            unlisted: BTreeSet::from(Kind::ALL),
            served: BTreeSet::new(),
        };
        watches.follow(|kind| kind.is_context());
        watches
    }

    /// Whether the first list of every kind was handed out.
    pub(crate) fn are_listed(&self) -> bool {
        self.unlisted.is_empty()
    }

    /// Kinds of which the first list is not in.
    pub(crate) fn unlisted(&self) -> impl Iterator<Item = Kind> + '_ {
        self.unlisted.iter().copied()
    }

    /// Whether the server serves this kind, as far as is known.
    pub(crate) fn serves(&self, kind: Kind) -> bool {
        self.served.contains(&kind)
    }

    /// The next changes, if any beside other news. Never ends.
    pub(crate) async fn next(&mut self) -> Vec<(Kind, Change<Parsed>)> {
        let batch = std::future::poll_fn(|cx| {
            let mut batch = Vec::new();
            let mut news = false;
            for (kind, changes) in &mut self.followed {
                for _ in 0..BATCH_MAX {
                    let Poll::Ready(Some(heard)) = changes.poll_recv(cx) else { break };
                    news = true;
                    match heard {
                        Heard::Served => {
                            self.served.insert(*kind);
                        }
                        Heard::Change(change) => batch.push((*kind, change)),
                    }
                }
            }
            if news { Poll::Ready(batch) } else { Poll::Pending }
        })
        .await;
        for (kind, change) in &batch {
            if matches!(change, Change::Reset(_)) && self.unlisted.remove(kind) {
                tracing::debug!(kind = kind.plural(), "listed");
            }
        }
        let all_followed = self.followed.len() == Kind::ALL.len();
        if !all_followed && !self.unlisted.iter().any(|kind| kind.is_context()) {
            self.follow(|kind| !kind.is_context());
        }
        batch
    }

    fn follow(&mut self, which: impl Fn(Kind) -> bool) {
        for kind in Kind::ALL.into_iter().filter(|kind| which(*kind)) {
            let (sender, receiver) = mpsc::channel(BACKLOG_MAX);
            let seed = self.random.next_u64();
            let context = Arc::clone(&self.context);
            let mut changes = changes(self.client.clone(), self.clock.clone(), kind, seed, context);
            self.tasks.spawn(async move {
                while let Some(heard) = changes.next().await {
                    if sender.send(heard).await.is_err() {
                        break;
                    }
                }
            });
            self.followed.push((kind, receiver));
        }
    }
}

/// The changes of one kind, from the moment that it is served; an empty list before that.
fn changes(
    client: kube::Client,
    clock: Clock,
    kind: Kind,
    seed: u64,
    context: Arc<Context>,
) -> BoxStream<'static, Heard> {
    if !kind.may_be_missing() {
        return watched(client, clock, kind, seed, &context);
    }
    enum Phase {
        Ask { told: bool },
        Served,
        Watched,
    }
    stream::unfold(Phase::Ask { told: false }, move |phase| {
        let (client, clock, context) = (client.clone(), clock.clone(), context.clone());
        async move {
            match phase {
                Phase::Ask { told } => {
                    let served = wait_until_known(&client, &clock, kind, seed).await;
                    if served {
                        return Some((stream::empty().boxed(), Phase::Served));
                    }
                    if told {
                        clock.sleep(PROBE_EVERY).await;
                        return Some((stream::empty().boxed(), Phase::Ask { told }));
                    }
                    let none = stream::once(async { Heard::Change(Change::Reset(Vec::new())) }).boxed();
                    Some((none, Phase::Ask { told: true }))
                }
                Phase::Served => Some((watched(client, clock, kind, seed, &context), Phase::Watched)),
                Phase::Watched => None,
            }
        }
    })
    .flatten()
    .boxed()
}

fn watched(
    client: kube::Client,
    clock: Clock,
    kind: Kind,
    seed: u64,
    context: &Arc<Context>,
) -> BoxStream<'static, Heard> {
    let changes = parsed::watch(client, clock, kind, seed, context).map(Heard::Change);
    stream::once(async { Heard::Served }).chain(changes).boxed()
}

/// Asks until the server says whether it serves the kind.
async fn wait_until_known(client: &kube::Client, clock: &Clock, kind: Kind, seed: u64) -> bool {
    let mut pauses = Backoff::new(Duration::from_millis(100), PROBE_EVERY, seed);
    loop {
        match client.request_text(resources(kind)).await {
            Ok(body) => return lists(&body, kind.plural()),
            Err(kube::Error::Api(status)) if status.code == 404 => return false,
            Err(error) => tracing::debug!(kind = kind.plural(), %error, "cannot ask what is served"),
        }
        clock.sleep(pauses.next_wait()).await;
    }
}

fn resources(kind: Kind) -> http::Request<Vec<u8>> {
    http::Request::get(kind.group())
        .header(http::header::ACCEPT, "application/json")
        .body(Vec::new())
        .expect("constant paths are valid URIs")
}

fn lists(body: &str, plural: &str) -> bool {
    let list: serde_json::Value = serde_json::from_str(body).unwrap_or_default();
    list["resources"].as_array().into_iter().flatten().any(|resource| resource["name"] == plural)
}
