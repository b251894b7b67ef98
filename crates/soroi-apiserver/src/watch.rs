//! What happens next? The stream behind a watch.
//!
//! A watcher keeps only the revision that it has shown. When its resource changes it reads on in
//! the shared history, whose lines are encoded once for all; when the history no longer reaches
//! back to it, its stream ends and the client begins again. Must never know HTTP.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::Shared;
use crate::bell::Listener;
use crate::query::{ListOptions, Revision};
use crate::read::Extent;
use crate::resource::{Resource, View};
use crate::select::Selection;
use crate::status::ApiError;
use crate::store::{Change, Event, State, Stored, event_line};

/// How often a watcher that allows bookmarks is told the current revision; Kubernetes: a minute.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// How long a watch lasts when the client does not say; Kubernetes: 30 to 60 minutes, at random.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30 * 60);

/// One watch.
struct Watcher {
    shared: Arc<Shared>,
    resource: Arc<Resource>,
    namespace: Option<String>,
    selection: Selection,
    changes: Listener,
    /// Everything up to here has been shown.
    shown: u64,
    /// How much of each object it wants.
    extent: Extent,
    /// What to send before anything else.
    ready: VecDeque<Ready>,
    bookmarks: bool,
    next_bookmark: Timestamp,
    end: Timestamp,
    ended: bool,
}

/// What a watcher is about to send.
enum Ready {
    Line(Bytes),
    /// An object that is there already; its line is made when its turn comes.
    Added(Arc<Stored>),
}

/// Starts a watch: its lines, from the revision that the options name.
pub(crate) fn start(
    shared: &Arc<Shared>,
    resource: &Arc<Resource>,
    namespace: Option<&str>,
    selection: Selection,
    options: &ListOptions,
) -> Result<impl Stream<Item = Bytes> + Send + 'static + use<>, ApiError> {
    let now = shared.clock.now();
    let later = |span| now.saturating_add(span).unwrap_or(Timestamp::MAX);
    let mut state = shared.store.lock();
    let changes = state.collection_mut(&resource.slot).listen();
    let mut watcher = Watcher {
        shared: shared.clone(),
        resource: resource.clone(),
        namespace: namespace.map(str::to_owned),
        selection,
        changes,
        shown: state.revision,
        extent: options.extent,
        ready: VecDeque::new(),
        bookmarks: options.bookmarks,
        next_bookmark: later(BOOKMARK_EVERY),
        end: later(options.timeout.unwrap_or(DEFAULT_TIMEOUT)),
        ended: false,
    };
    match options.revision {
        Revision::AtLeast(from) | Revision::Exactly(from) if !options.initial_events => {
            watcher.resume(&state, from);
        }
        Revision::AtLeast(from) if from > state.revision => {
            return Err(ApiError::future_revision(from, state.revision));
        }
        _ => watcher.snapshot(&state, options.initial_events && options.bookmarks),
    }
    drop(state);
    Ok(futures::stream::unfold(watcher, |mut watcher| async move {
        watcher.next().await.map(|line| (line, watcher))
    }))
}

impl Watcher {
    /// Shows every object that is there now, as if just added.
    fn snapshot(&mut self, state: &State, mark_end: bool) {
        let objects = crate::read::select(state, &self.resource, self.namespace.as_deref(), &self.selection);
        self.ready = objects.into_iter().map(Ready::Added).collect();
        if mark_end {
            self.ready.push_back(Ready::Line(self.bookmark(state.revision, true)));
        }
    }

    /// Goes on after a revision, or says that it is too old.
    fn resume(&mut self, state: &State, from: u64) {
        self.shown = from;
        let known = state.collection(&self.resource.slot).is_some_and(|c| c.since(from).is_some());
        if !known {
            let error = ApiError::expired(format!("too old resource version: {from} ({})", state.revision));
            self.ready.push_back(Ready::Line(error_line(&error)));
            self.ended = true;
        }
    }

    async fn next(&mut self) -> Option<Bytes> {
        loop {
            match self.ready.pop_front() {
                Some(Ready::Line(line)) => return Some(line),
                Some(Ready::Added(stored)) => return Some(self.line_of(Change::Added, &stored)),
                None => {}
            }
            if self.ended {
                return None;
            }
            self.read_on();
            if self.ended || !self.ready.is_empty() {
                continue;
            }
            self.wait().await;
        }
    }

    /// Takes what happened since `shown` out of the history.
    fn read_on(&mut self) {
        self.changes.catch_up();
        let events: Vec<Arc<Event>> = {
            let state = self.shared.store.lock();
            let Some(collection) = state.collection(&self.resource.slot) else {
                self.ended = true;
                return;
            };
            let Some(events) = collection.since(self.shown) else {
                // Too far behind: the client resumes, is told 410, and lists anew.
                self.ended = true;
                return;
            };
            let events = events.cloned().collect();
            self.ended = collection.is_closed();
            events
        };
        for event in events {
            self.shown = event.object.revision;
            if let Some(line) = self.line(&event) {
                self.ready.push_back(Ready::Line(line));
            }
        }
    }

    /// The event as this watcher sees it: an object that enters its selection is added, one that
    /// leaves it is deleted.
    fn line(&self, event: &Event) -> Option<Bytes> {
        if let Some(wanted) = &self.namespace
            && crate::object::meta(&event.object.value, "namespace") != wanted
        {
            return None;
        }
        let as_stored = self.resource.view == View::Plain && self.extent == Extent::Whole;
        if self.selection.is_everything() && as_stored {
            return Some(event.object.line().clone());
        }
        let is = event.change != Change::Deleted && self.selection.matches(&event.object.value);
        let was = event.before.as_ref().is_some_and(|b| self.selection.matches(&b.value));
        let change = match (was, is) {
            (false, false) => return None,
            (false, true) => Change::Added,
            (true, true) => Change::Modified,
            (true, false) => Change::Deleted,
        };
        if change == Change::Deleted && event.change != Change::Deleted {
            // It left the selection: Kubernetes shows its last state inside, at this revision.
            let mut value = event.before.as_ref()?.value.clone();
            let revision = event.object.revision.to_string();
            crate::object::meta_mut(&mut value).insert("resourceVersion".into(), revision.into());
            return Some(self.line_of(change, &Stored::unsaved(value)));
        }
        if change == event.change && as_stored {
            return Some(event.object.line().clone());
        }
        Some(self.line_of(change, &event.object))
    }

    fn line_of(&self, change: Change, stored: &Stored) -> Bytes {
        let now = self.shared.clock.now();
        event_line(change, |text| text.extend_from_slice(&self.extent.show(&self.resource, stored, now)))
    }

    /// A BOOKMARK event: the revision, and perhaps that the initial events are complete.
    fn bookmark(&self, revision: u64, initial_events_end: bool) -> Bytes {
        let mut metadata = json!({ "resourceVersion": revision.to_string() });
        if initial_events_end {
            metadata["annotations"] = json!({ "k8s.io/initial-events-end": "true" });
        }
        let (kind, version) = (&self.resource.kind, self.resource.api_version());
        line("BOOKMARK", &json!({ "kind": kind, "apiVersion": version, "metadata": metadata }))
    }

    /// Waits for a change, the next bookmark or the end.
    async fn wait(&mut self) {
        let clock = self.shared.clock.clone();
        let until = if self.bookmarks { self.end.min(self.next_bookmark) } else { self.end };
        let shown = tokio::select! {
            biased;
            () = self.changes.rings() => return,
            () = clock.sleep_until(until) => self.shown,
        };
        if self.bookmarks {
            // The resource did not change, so the whole store's revision is safe to resume from.
            let current = self.shared.store.lock().revision;
            let unchanged = !self.changes.is_behind();
            self.shown = if unchanged { current.max(shown) } else { shown };
            self.ready.push_back(Ready::Line(self.bookmark(self.shown, false)));
            let next = self.next_bookmark.saturating_add(BOOKMARK_EVERY);
            self.next_bookmark = next.unwrap_or(Timestamp::MAX);
        }
        if clock.now() >= self.end {
            self.ended = true;
        }
    }
}

fn error_line(error: &ApiError) -> Bytes {
    line("ERROR", &error.to_status())
}

fn line(word: &str, object: &Value) -> Bytes {
    let mut text = json!({ "type": word, "object": object }).to_string();
    text.push('\n');
    Bytes::from(text)
}
