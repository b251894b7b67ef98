//! Tells watchers that a resource has changed, in the order in which they began to wait.
//!
//! It knows how often it rang and nothing of what changed. The order matters: equal runs wake equal
//! watchers first, so that a seed tells one story. (`tokio::sync::watch` spreads its receivers over
//! several queues at random.)

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::Notify;

/// Rings when something changes.
#[derive(Debug, Default)]
pub(crate) struct Bell(Arc<Rung>);

#[derive(Debug, Default)]
struct Rung {
    times: AtomicU64,
    waiters: Notify,
}

/// Hears a bell.
#[derive(Debug)]
pub(crate) struct Listener {
    rung: Arc<Rung>,
    heard: u64,
}

impl Bell {
    /// Wakes everyone who waits; who does not wait yet hears it when they do.
    pub(crate) fn ring(&self) {
        self.0.times.fetch_add(1, Ordering::Release);
        self.0.waiters.notify_waiters();
    }

    /// Hears what rings from now on.
    pub(crate) fn listen(&self) -> Listener {
        let mut listener = Listener { rung: self.0.clone(), heard: 0 };
        listener.catch_up();
        listener
    }
}

impl Listener {
    /// Counts everything so far as heard.
    pub(crate) fn catch_up(&mut self) {
        self.heard = self.rung.times.load(Ordering::Acquire);
    }

    /// Did it ring since [`Self::catch_up`]?
    pub(crate) fn is_behind(&self) -> bool {
        self.rung.times.load(Ordering::Acquire) != self.heard
    }

    /// Waits until it has rung since [`Self::catch_up`].
    pub(crate) async fn rings(&self) {
        // Made before the look: it takes every ring from here on, also before it is polled.
        let next = self.rung.waiters.notified();
        if !self.is_behind() {
            next.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_waits_first_is_woken_first() {
        let bell = Bell::default();
        let listeners: Vec<Listener> = (0..100).map(|_| bell.listen()).collect();
        let (waits, mut waiting) = tokio::sync::mpsc::unbounded_channel();
        let (wakes, woken) = std::sync::mpsc::channel();
        let mut tasks = tokio::task::JoinSet::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            let (waits, wakes) = (waits.clone(), wakes.clone());
            tasks.spawn(async move {
                waits.send(number).unwrap();
                listener.rings().await;
                wakes.send(number).unwrap();
            });
        }
        while waiting.len() < 100 {
            tokio::task::yield_now().await;
        }
        bell.ring();
        while tasks.join_next().await.is_some() {}
        drop(wakes);
        let woken: Vec<usize> = woken.iter().collect();
        for number in woken {
            assert_eq!(waiting.recv().await, Some(number));
        }
    }

    #[tokio::test]
    async fn a_ring_before_the_wait_is_heard() {
        let bell = Bell::default();
        let mut listener = bell.listen();
        bell.ring();
        assert!(listener.is_behind());
        listener.rings().await;
        listener.catch_up();
        assert!(!listener.is_behind());
    }
}
