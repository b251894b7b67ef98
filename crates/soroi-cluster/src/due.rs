//! What has to be looked at, and when: a queue in which every key stands once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use soroi_clock::Clock;

/// Keys with the earliest time at which each has to be looked at.
#[derive(Debug)]
pub(crate) struct Due<K> {
    when: BTreeMap<K, Timestamp>,
    order: BTreeSet<(Timestamp, K)>,
}

impl<K> Default for Due<K> {
    fn default() -> Self {
        Self { when: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Due<K> {
    /// Look at `key` at `at`, or earlier if that was asked for before.
    pub(crate) fn add(&mut self, key: K, at: Timestamp) {
        match self.when.get(&key) {
            Some(earlier) if *earlier <= at => return,
            Some(later) => {
                self.order.remove(&(*later, key.clone()));
            }
            None => {}
        }
        self.when.insert(key.clone(), at);
        self.order.insert((at, key));
    }

    /// Do not look at `key` any more.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(at) = self.when.remove(key) {
            self.order.remove(&(at, key.clone()));
        }
    }

    /// Takes out the first key whose time has come.
    pub(crate) fn pop(&mut self, now: Timestamp) -> Option<K> {
        let (at, key) = self.order.first()?;
        if *at > now {
            return None;
        }
        let key = key.clone();
        self.remove(&key);
        Some(key)
    }

    /// When the first key's time comes.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.order.first().map(|(at, _)| *at)
    }
}

/// Waits until `when`; for ever if there is nothing to wait for.
pub(crate) async fn wait_until(clock: &Clock, when: Option<Timestamp>) {
    match when {
        Some(when) => clock.sleep_until(when).await,
        None => std::future::pending().await,
    }
}

/// `at` plus `span`, at most the end of time.
pub(crate) fn after(at: Timestamp, span: Duration) -> Timestamp {
    at.saturating_add(span).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_once_at_its_earliest_time() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut due = Due::default();
        due.add("b", at(5));
        due.add("a", at(5));
        due.add("b", at(3));
        due.add("b", at(9));
        assert_eq!(due.next(), Some(at(3)));
        assert_eq!(due.pop(at(2)), None);
        assert_eq!([due.pop(at(9)), due.pop(at(9)), due.pop(at(9))], [Some("b"), Some("a"), None]);
        due.add("c", at(1));
        due.remove(&"c");
        assert_eq!(due.next(), None);
    }
}
