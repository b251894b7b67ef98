//! One watch for many: pods and nodes are read and parsed once, then told to every part.

use std::sync::Arc;

use futures::StreamExt as _;
use serde::de::DeserializeOwned;
use soroi_clock::Clock;
use soroi_watch::{Change, Query};
use tokio::sync::mpsc;

/// Changes that a part may lag behind before the watch waits for it.
const LAG_MAX: usize = 256;

/// Where a part hears of changes.
pub(crate) type News<T> = mpsc::Receiver<Change<Arc<T>>>;

/// A watch and those who listen to it.
pub(crate) struct Feed<T> {
    query: Query,
    listeners: Vec<mpsc::Sender<Change<Arc<T>>>>,
}

impl<T: DeserializeOwned + Send + Sync + 'static> Feed<T> {
    pub(crate) fn new(query: Query) -> Self {
        Self { query, listeners: Vec::new() }
    }

    /// Listens from the beginning; to be called before [`Feed::run`].
    pub(crate) fn listen(&mut self) -> News<T> {
        let (sender, receiver) = mpsc::channel(LAG_MAX);
        self.listeners.push(sender);
        receiver
    }

    /// Whether anybody listens.
    pub(crate) fn wanted(&self) -> bool {
        !self.listeners.is_empty()
    }

    /// Tells every change to every listener, for ever.
    pub(crate) async fn run(self, client: kube::Client, clock: Clock, seed: u64) {
        let mut changes = soroi_watch::watch_map(client, clock, self.query, seed, Arc::<T>::new);
        while let Some(change) = changes.next().await {
            for listener in &self.listeners {
                // A listener that is gone has ended on purpose, or has taken the cluster with it.
                let _ = listener.send(change.clone()).await;
            }
        }
    }
}
