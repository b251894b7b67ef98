//! The loop itself: list, watch, resume, and list again when the server has forgotten.

use std::collections::VecDeque;
use std::pin::Pin;
use std::time::Duration;

use futures::io::{AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _};
use futures::stream::{BoxStream, StreamExt as _};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use soroi_clock::Clock;

use crate::wire::{self, Line, Reader};
use crate::{Backoff, Change, Outage, Query, SplitMix64};

/// Objects per page of a list: client-go's page size, a few megabytes of pods.
const PAGE_LIMIT: &str = "500";
/// How long a page, or the first byte of a watch, may take: the API server's own request limit.
const REQUEST_MAX: Duration = Duration::from_secs(60);
/// A watch is asked to end after 4 to 5 minutes, not all watches at once (client-go: 5 to 10).
const WATCH_SECS: std::ops::Range<u64> = 240..300;
/// A server that has not ended the watch this long after it should have is not there any more.
const SILENCE_GRACE: Duration = Duration::from_secs(5);
/// A watch that lived this long is no sign of trouble, even if it said nothing.
const CALM: Duration = Duration::from_secs(5);
/// After so many attempts in a row without progress a version is given up and the list read anew:
/// there may be something on the way there that the server can never send.
const RESUMES_MAX: u32 = 8;
/// The longest line that is read: objects are bounded by etcd's request limit of 1.5 MiB.
const LINE_BYTES_MAX: u64 = 16 << 20;
/// A server that is away for less is not worth a line of each watch: whoever follows many kinds says
/// first that it is away.
const PATIENCE: Duration = Duration::from_secs(20);
const FIRST_WAIT: Duration = Duration::from_millis(100);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// Follows the objects of `query` for ever. The stream never ends and never fails: whatever goes
/// wrong is retried, with back-off by `clock` and spread by `seed`.
///
/// Only what `T` asks for is kept of an object: a struct of a few fields costs what those cost.
/// Works for k8s-openapi's types, custom resources and any other type that decodes from JSON.
pub fn watch<T>(client: kube::Client, clock: Clock, query: Query, seed: u64) -> BoxStream<'static, Change<T>>
where
    T: DeserializeOwned + Send + 'static,
{
    watch_map(client, clock, query, seed, |object: T| object)
}

/// Like [`watch`], and turns each object into something else before more are read: a page of 500
/// is the most that exists as `T` at once.
pub fn watch_map<T, U, F>(
    client: kube::Client,
    clock: Clock,
    query: Query,
    seed: u64,
    parse: F,
) -> BoxStream<'static, Change<U>>
where
    T: DeserializeOwned + Send + 'static,
    U: Send + 'static,
    F: FnMut(T) -> U + Send + 'static,
{
    watch_mended(client, clock, query, seed, parse, |_| None)
}

/// Like [`watch_map`], and gives an object that does not decode to `mend`, as it came: who makes
/// something of it is told of it like of any other, and not by [`Change::Unreadable`].
pub fn watch_mended<T, U, F, M>(
    client: kube::Client,
    clock: Clock,
    query: Query,
    seed: u64,
    parse: F,
    mend: M,
) -> BoxStream<'static, Change<U>>
where
    T: DeserializeOwned + Send + 'static,
    U: Send + 'static,
    F: FnMut(T) -> U + Send + 'static,
    M: FnMut(serde_json::Value) -> Option<U> + Send + 'static,
{
    let mut random = SplitMix64::new(seed);
    let backoff = Backoff::new(FIRST_WAIT, LONGEST_WAIT, random.next_u64());
    let watcher = Watcher {
        client,
        clock,
        query,
        reader: Reader { parse, mend, decoded: std::marker::PhantomData::<fn() -> T> },
        random,
        backoff,
        away: Outage::new(PATIENCE),
        refused: Outage::new(Duration::ZERO),
        place: Place::Unknown,
        moved: false,
        ready: VecDeque::new(),
    };
    futures::stream::unfold(watcher, |mut watcher| async move {
        let change = watcher.next().await;
        Some((change, watcher))
    })
    .boxed()
}

struct Watcher<T, U, F, M> {
    client: kube::Client,
    clock: Clock,
    query: Query,
    reader: Reader<T, F, M>,
    random: SplitMix64,
    backoff: Backoff,
    /// Attempts that nobody answered.
    away: Outage,
    /// Attempts that were answered, and not with what was asked for.
    refused: Outage,
    place: Place,
    /// Whether a watch has been of use since the last list.
    moved: bool,
    /// Changes that are known and not yet handed out; at most those of one list.
    ready: VecDeque<Change<U>>,
}

/// How far the loop has come.
enum Place {
    /// The collection has to be listed.
    Unknown,
    /// Everything up to `version` was handed out; `failures` attempts to go on from there failed.
    At { version: String, failures: u32 },
    /// A watch is open.
    Open(Open),
}

struct Open {
    lines: Pin<Box<dyn AsyncBufRead + Send>>,
    version: String,
    opened: Timestamp,
    /// When the server should have ended it.
    deadline: Timestamp,
    /// Whether it has said anything yet.
    progress: bool,
    failures: u32,
}

/// Why a step failed.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    #[error("the version to resume from is too old: {0}")]
    Expired(String),
    #[error("the server answered {code}: {message}")]
    Refused { code: u16, message: String },
    #[error("request failed")]
    Request(#[source] kube::Error),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("the stream broke")]
    Broken(#[source] std::io::Error),
    #[error("unreadable answer: {0}")]
    Garbled(String),
}

impl Trouble {
    /// Nobody answered, as opposed to an answer that was not hoped for.
    fn is_silence(&self) -> bool {
        match self {
            Self::Request(error) => !matches!(error, kube::Error::Api(_)),
            Self::Late(_) | Self::Broken(_) => true,
            Self::Expired(_) | Self::Refused { .. } | Self::Garbled(_) => false,
        }
    }
}

impl From<kube::Error> for Trouble {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.code == 410 => Self::Expired(status.message),
            other => Self::Request(other),
        }
    }
}

impl<T, U, F, M> Watcher<T, U, F, M>
where
    T: DeserializeOwned + Send + 'static,
    U: Send + 'static,
    F: FnMut(T) -> U + Send + 'static,
    M: FnMut(serde_json::Value) -> Option<U> + Send + 'static,
{
    async fn next(&mut self) -> Change<U> {
        loop {
            if let Some(change) = self.ready.pop_front() {
                return change;
            }
            match std::mem::replace(&mut self.place, Place::Unknown) {
                Place::Unknown => match self.list().await {
                    Ok(version) => self.place = Place::At { version, failures: 0 },
                    Err(trouble) => self.wait(&trouble).await,
                },
                Place::At { version, failures } => match self.open(&version, failures).await {
                    Ok(open) => self.place = Place::Open(open),
                    Err(trouble) => self.recover(version, failures, trouble).await,
                },
                Place::Open(open) => self.read(open).await,
            }
        }
    }

    /// Lists the collection as it is now, hands it out and returns its version. No
    /// `resourceVersion=0`: that may answer from an old cache, and time would run backwards.
    async fn list(&mut self) -> Result<String, Trouble> {
        let listed = match self.list_pages(Some(PAGE_LIMIT)).await {
            // The first page's version is too old for the next page: take it all in one go.
            Err(Trouble::Expired(_)) => self.list_pages(None).await,
            other => other,
        };
        let (items, unreadable, version) = listed?;
        tracing::debug!(path = self.query.path.as_str(), objects = items.len(), "listed");
        self.works();
        self.moved = false;
        self.ready.push_back(Change::Reset(items));
        self.ready.extend(unreadable);
        Ok(version)
    }

    async fn list_pages(&mut self, limit: Option<&str>) -> Result<(Vec<U>, Vec<Change<U>>, String), Trouble> {
        let (mut items, mut unreadable) = (Vec::new(), Vec::new());
        let mut next: Option<String> = None;
        loop {
            let parameters = [("limit", limit), ("continue", next.as_deref())];
            let parameters: Vec<_> =
                parameters.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
            let asked = self.client.request_text(get(&self.query.uri(&parameters))?);
            let body = self.clock.timeout(REQUEST_MAX, asked).await;
            let body = body.map_err(|_| Trouble::Late(REQUEST_MAX))??;
            let page = wire::page(&body, &mut self.reader).map_err(Trouble::Garbled)?;
            items.extend(page.items);
            unreadable.extend(page.unreadable);
            next = page.next;
            if next.is_none() {
                return Ok((items, unreadable, page.version));
            }
        }
    }

    async fn open(&mut self, version: &str, failures: u32) -> Result<Open, Trouble> {
        let seconds = WATCH_SECS.start + self.random.below(WATCH_SECS.end - WATCH_SECS.start);
        let uri = self.query.uri(&[
            ("watch", "true"),
            ("resourceVersion", version),
            ("allowWatchBookmarks", "true"),
            ("timeoutSeconds", &seconds.to_string()),
        ]);
        let opened = self.clock.now();
        let asked = self.client.request_stream(get(&uri)?);
        let lines = self.clock.timeout(REQUEST_MAX, asked).await;
        let lines = Box::pin(lines.map_err(|_| Trouble::Late(REQUEST_MAX))??);
        let lifetime = Duration::from_secs(seconds) + SILENCE_GRACE;
        let deadline = opened.saturating_add(lifetime).unwrap_or(Timestamp::MAX);
        let version = version.to_owned();
        Ok(Open { lines, version, opened, deadline, progress: false, failures })
    }

    /// Reads one line and decides where that leads.
    async fn read(&mut self, mut open: Open) {
        let left = Duration::try_from(open.deadline.duration_since(self.clock.now()));
        let left = left.unwrap_or(Duration::ZERO);
        let mut text = Vec::new();
        let mut line = open.lines.as_mut().take(LINE_BYTES_MAX);
        let read = match self.clock.timeout(left, line.read_until(b'\n', &mut text)).await {
            Err(_) => Err(Trouble::Late(left)),
            Ok(Err(error)) => Err(Trouble::Broken(error)),
            Ok(Ok(0)) => return self.ended(open).await,
            Ok(Ok(_)) if text.trim_ascii().is_empty() => {
                self.place = Place::Open(open);
                return;
            }
            Ok(Ok(_)) => wire::line(&text, &mut self.reader).map_err(Trouble::Garbled),
        };
        let trouble = match read {
            Ok(Line::Error { code: 410, message }) => Trouble::Expired(message),
            Ok(Line::Error { code, message }) => Trouble::Refused { code, message },
            Ok(Line::Change(change, version)) => {
                self.ready.push_back(change);
                return self.advance(open, version);
            }
            Ok(Line::Bookmark(version)) => return self.advance(open, version),
            Err(trouble) => trouble,
        };
        self.lived(&open);
        self.recover(open.version, open.failures, trouble).await;
    }

    fn advance(&mut self, mut open: Open, version: Option<String>) {
        if let Some(version) = version.filter(|version| !version.is_empty()) {
            open.version = version;
        }
        open.progress = true;
        open.failures = 0;
        self.moved = true;
        self.backoff.reset();
        self.works();
        self.place = Place::Open(open);
    }

    /// The server closed the watch: resume, at once if it was of use.
    async fn ended(&mut self, open: Open) {
        if self.lived(&open) {
            self.place = Place::At { version: open.version, failures: 0 };
        } else {
            let trouble = Trouble::Garbled("the watch ended before it began".into());
            self.recover(open.version, open.failures, trouble).await;
        }
    }

    /// Whether a watch that has come to its end was of use; trouble starts counting anew then.
    fn lived(&mut self, open: &Open) -> bool {
        let lived = open.progress || self.clock.now().duration_since(open.opened).unsigned_abs() >= CALM;
        if lived {
            self.moved = true;
            self.backoff.reset();
        }
        lived
    }

    /// Decides between resuming and listing anew, and waits.
    async fn recover(&mut self, version: String, failures: u32, trouble: Trouble) {
        let expired = matches!(trouble, Trouble::Expired(_));
        // A forgotten version is no fault of the server: list at once, but never twice in a row.
        if !(expired && self.moved) {
            self.wait(&trouble).await;
        }
        if !expired && failures < RESUMES_MAX {
            self.place = Place::At { version, failures: failures + 1 };
        }
    }

    async fn wait(&mut self, trouble: &Trouble) {
        let wait = self.backoff.next_wait();
        let path = self.query.path.as_str();
        let cause = std::error::Error::source(trouble).map(ToString::to_string);
        let now = self.clock.now();
        let said = match trouble {
            // The server is well, and a list will do.
            Trouble::Expired(_) => None,
            trouble if trouble.is_silence() => self.away.fails(now),
            _ => self.refused.fails(now),
        };
        match said {
            Some(told) => {
                let (lasts, tries) = (told.lasts, told.failures);
                tracing::warn!(path, %trouble, cause, ?lasts, tries, "watch interrupted");
            }
            None => tracing::debug!(path, %trouble, cause, ?wait, "watch interrupted"),
        }
        self.clock.sleep(wait).await;
    }

    /// What is asked for is answered.
    fn works(&mut self) {
        let now = self.clock.now();
        let over = self.away.works(now).max(self.refused.works(now));
        if let Some(after) = over {
            tracing::info!(path = self.query.path.as_str(), ?after, "the watch goes on");
        }
    }
}

fn get(uri: &str) -> Result<http::Request<Vec<u8>>, Trouble> {
    http::Request::get(uri)
        .header(http::header::ACCEPT, "application/json")
        // Kubernetes 1.37 compresses watches event by event, which kube's client cannot follow.
        .header(http::header::ACCEPT_ENCODING, "identity")
        .body(Vec::new())
        .map_err(|error| Trouble::Garbled(error.to_string()))
}

#[cfg(test)]
mod tests;
