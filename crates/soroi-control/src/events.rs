//! What do people see happen? Events, recorded so that they tell and do not flood.
//!
//! [`Recorder`] decides, [`send`] writes. An occurrence is known by its object, its reason and its
//! note. The first one is an event at once. The same again only raises the count of that event's
//! series, now and then. Another note is another event at once, as far as the object's bucket
//! allows; the last thing to be said of an object is always said in the end. [`reasons`] does the
//! same for reasons in statuses, [`words`] holds the wording.
//!
//! Knows how events look (`events.k8s.io/v1`) and what they cost. Never knows a clock, or why
//! something happened.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::{Event, EventSeries};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, Patch, PatchParams, PostParams};
use serde_json::json;
use sha1::{Digest, Sha1};
use soroi_engine::event::Name;

mod bucket;
pub mod reasons;
pub mod words;

use bucket::Bucket;
pub use reasons::Reasons;

/// New events of one object that may follow each other at once (as Kubernetes' own recorders allow).
const OBJECT_BURST: u32 = 25;
/// How long it takes until an object may have one more.
const OBJECT_REFILL: SignedDuration = SignedDuration::from_secs(5);
/// How often at most the count of a series is written.
const SERIES_PAUSE: SignedDuration = SignedDuration::from_secs(10);
/// A series that was silent for so long is over (as in Kubernetes' recorders): the same again is a
/// new event.
const SERIES_END: SignedDuration = SignedDuration::from_mins(6);
/// How often it is looked for what can be forgotten.
const SWEEP_PAUSE: SignedDuration = SignedDuration::from_mins(1);
/// Series remembered at once. The oldest are forgotten first; the same again is a new event then.
const SERIES_MAX: usize = 8_192;
/// Longest note that the API server accepts, in bytes (`pkg/apis/core/validation`).
const NOTE_BYTES_MAX: usize = 1_024;
/// Longest name of an object, in bytes.
const NAME_BYTES_MAX: usize = 253;

/// The object that an event is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct About {
    /// Its API group and version.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace; empty for an object of the whole cluster.
    pub namespace: Name,
    /// Its name.
    pub name: Name,
    /// Its uid.
    pub uid: Name,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The object.
    pub about: About,
    /// It is worth a warning.
    pub warning: bool,
    /// Why, in one word.
    pub reason: String,
    /// Why, for people.
    pub note: String,
    /// What was done or tried; Kueue repeats the reason here.
    pub action: String,
    /// Who says so (`reportingController`, the column From).
    pub reporter: &'static str,
}

/// A write that the recorder asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Send {
    /// A new event.
    Create(Box<Event>),
    /// The event has a new count. It is given as a whole, so that it can be made again if it is
    /// gone by now.
    Count(Box<Event>),
}

type Key = (Name, String, String);

#[derive(Clone, Debug)]
struct Series {
    event: Event,
    count: i32,
    seen_at: Timestamp,
    written_at: Timestamp,
}

/// Decides which occurrences are written, and how. Pure: time is an argument.
#[derive(Debug)]
pub struct Recorder {
    instance: String,
    series: BTreeMap<Key, Series>,
    /// What each object may still say, by uid.
    objects: BTreeMap<Name, Bucket>,
    /// Series whose count is behind: few of all.
    behind: BTreeSet<Key>,
    /// The last that an object wanted to say for a reason and might not yet.
    waiting: BTreeMap<(Name, String), Occurrence>,
    swept_at: Timestamp,
    serial: u64,
}

impl Recorder {
    /// A recorder that signs as this instance (`reportingInstance`).
    pub fn new(instance: impl Into<String>) -> Self {
        Self {
            instance: instance.into(),
            series: BTreeMap::new(),
            objects: BTreeMap::new(),
            behind: BTreeSet::new(),
            waiting: BTreeMap::new(),
            swept_at: Timestamp::MIN,
            serial: 0,
        }
    }

    /// Takes in an occurrence. What comes back is to be written now; `None`: nothing, or later
    /// ([`Self::due`]).
    pub fn record(&mut self, occurrence: Occurrence, now: Timestamp) -> Option<Send> {
        let key = key(&occurrence);
        if self.series.get(&key).is_some_and(|series| !series.is_over(now)) {
            return self.repeat(&key, now);
        }
        let about = (occurrence.about.uid.clone(), occurrence.reason.clone());
        if !self.may_say(&about.0, now) {
            self.waiting.insert(about, occurrence);
            return None;
        }
        self.waiting.remove(&about);
        Some(self.create(key, &occurrence, now))
    }

    fn may_say(&mut self, uid: &Name, now: Timestamp) -> bool {
        let full = || Bucket::full(OBJECT_BURST, OBJECT_REFILL, now);
        self.objects.entry(uid.clone()).or_insert_with(full).take(now)
    }

    /// The same again. Its count is written at once when something else was said in between, so that
    /// what was last seen is what is true; else now and then.
    fn repeat(&mut self, key: &Key, now: Timestamp) -> Option<Send> {
        let seen_at = self.series.get(key)?.seen_at;
        let (uid, reason, _) = key;
        let others = self.series.range((uid.clone(), reason.clone(), String::new())..);
        let mut others = others.take_while(|((of, why, _), _)| of == uid && why == reason);
        let overtaken = others.any(|(other, series)| other != key && series.seen_at >= seen_at);
        // Saying it again, the object takes back what it was about to say instead.
        self.waiting.remove(&(uid.clone(), reason.clone()));
        let at_once = overtaken && self.may_say(uid, now);
        let series = self.series.get_mut(key)?;
        if series.repeat(now) || at_once {
            self.behind.remove(key);
            return Some(series.write(now));
        }
        self.behind.insert(key.clone());
        None
    }

    /// What was put off and may be written now. To be asked at [`Self::next_due`].
    pub fn due(&mut self, now: Timestamp) -> Vec<Send> {
        let mut sends = Vec::new();
        let waiting: Vec<(Name, String)> = self.waiting.keys().cloned().collect();
        for about in waiting {
            if self.may_say(&about.0, now)
                && let Some(occurrence) = self.waiting.remove(&about)
            {
                sends.push(self.create(key(&occurrence), &occurrence, now));
            }
        }
        let ripe = |series: &Series| now.duration_since(series.written_at) >= SERIES_PAUSE;
        let counts: Vec<Key> =
            self.behind.iter().filter(|key| self.series.get(*key).is_none_or(ripe)).cloned().collect();
        for key in counts {
            self.behind.remove(&key);
            sends.extend(self.series.get_mut(&key).map(|series| series.write(now)));
        }
        self.sweep(now);
        sends
    }

    /// Forgets what makes no difference any more.
    fn sweep(&mut self, now: Timestamp) {
        if now.duration_since(self.swept_at) < SWEEP_PAUSE {
            return;
        }
        self.swept_at = now;
        let behind = &self.behind;
        self.series.retain(|key, series| behind.contains(key) || !series.is_over(now));
        self.objects.retain(|_, bucket| !bucket.is_full(now));
    }

    /// When there will be something due; `None`: not before the next occurrence.
    pub fn next_due(&self) -> Option<Timestamp> {
        let objects = self.waiting.keys().filter_map(|(uid, _)| self.objects.get(uid)).map(Bucket::next);
        let series = self.behind.iter().filter_map(|key| self.series.get(key));
        objects.chain(series.map(|series| later(series.written_at, SERIES_PAUSE))).min()
    }

    /// Forgets the oldest series: some at once, so that not all are gone through for each new one.
    fn forget_oldest(&mut self) {
        let mut ages: Vec<(Timestamp, Key)> =
            self.series.iter().map(|(key, series)| (series.seen_at, key.clone())).collect();
        ages.sort();
        for (_, oldest) in ages.into_iter().take(SERIES_MAX / 8) {
            self.series.remove(&oldest);
            self.behind.remove(&oldest);
        }
    }

    fn create(&mut self, key: Key, occurrence: &Occurrence, now: Timestamp) -> Send {
        if self.series.len() >= SERIES_MAX {
            self.forget_oldest();
        }
        self.serial = self.serial.wrapping_add(1);
        let event = event(occurrence, &self.instance, self.serial, now);
        let series = Series { event: event.clone(), count: 1, seen_at: now, written_at: now };
        self.series.insert(key, series);
        Send::Create(Box::new(event))
    }
}

impl Series {
    fn is_over(&self, now: Timestamp) -> bool {
        now.duration_since(self.seen_at) >= SERIES_END
    }

    /// Counts one more, and says whether that may be written now.
    fn repeat(&mut self, now: Timestamp) -> bool {
        self.count = self.count.saturating_add(1);
        self.seen_at = now;
        now.duration_since(self.written_at) >= SERIES_PAUSE
    }

    fn write(&mut self, now: Timestamp) -> Send {
        self.written_at = now;
        let last_observed_time = MicroTime(self.seen_at);
        self.event.series = Some(EventSeries { count: self.count, last_observed_time });
        Send::Count(Box::new(self.event.clone()))
    }
}

fn key(occurrence: &Occurrence) -> Key {
    (occurrence.about.uid.clone(), occurrence.reason.clone(), occurrence.note.clone())
}

fn later(time: Timestamp, span: SignedDuration) -> Timestamp {
    time.saturating_add(span).unwrap_or(Timestamp::MAX)
}

/// The first `most` bytes of a text, cut between characters.
fn cut(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    &text[..end]
}

fn event(occurrence: &Occurrence, instance: &str, serial: u64, now: Timestamp) -> Event {
    let about = &occurrence.about;
    // As Kubernetes names events: the object's name and something unique. Instance, time and serial
    // tell this event from any other of this or another process.
    let unique = format!("{}\n{instance}\n{now}\n{serial}", about.uid);
    let hash: String =
        Sha1::digest(unique.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let name = cut(&about.name, NAME_BYTES_MAX - 1 - hash.len());
    let namespace = if about.namespace.is_empty() { "default" } else { &about.namespace };
    let text = |text: &str| Some(text.to_string()).filter(|text| !text.is_empty());
    Event {
        metadata: ObjectMeta {
            name: Some(format!("{name}.{hash}")),
            namespace: text(namespace),
            ..ObjectMeta::default()
        },
        event_time: Some(MicroTime(now)),
        type_: text(if occurrence.warning { "Warning" } else { "Normal" }),
        reason: text(&occurrence.reason),
        note: text(cut(&occurrence.note, NOTE_BYTES_MAX)),
        action: text(&occurrence.action),
        reporting_controller: text(occurrence.reporter),
        reporting_instance: text(instance),
        regarding: Some(ObjectReference {
            api_version: text(about.api_version),
            kind: text(about.kind),
            namespace: text(&about.namespace),
            name: text(&about.name),
            uid: text(&about.uid),
            ..ObjectReference::default()
        }),
        ..Event::default()
    }
}

/// Writes an event, or its new count. An event that has expired meanwhile is made again.
///
/// # Errors
/// What the API server or the connection says. Events are for people: a caller logs it and goes on.
pub async fn send(client: &kube::Client, send: &Send) -> kube::Result<()> {
    let (Send::Create(event) | Send::Count(event)) = send;
    let namespace = event.metadata.namespace.as_deref().unwrap_or("default");
    let api: Api<Event> = Api::namespaced(client.clone(), namespace);
    if let Send::Count(_) = send {
        let name = event.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({"series": event.series}));
        match api.patch(name, &PatchParams::default(), &patch).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => {}
            other => return other.map(drop),
        }
    }
    api.create(&PostParams::default(), event).await.map(drop)
}

impl About {
    /// An object by its parts.
    pub fn new(
        api_version: &'static str,
        kind: &'static str,
        namespace: &Name,
        name: &Name,
        uid: &Name,
    ) -> Self {
        let (namespace, name, uid) = (Arc::clone(namespace), Arc::clone(name), Arc::clone(uid));
        Self { api_version, kind, namespace, name, uid }
    }
}

#[cfg(test)]
mod tests;
