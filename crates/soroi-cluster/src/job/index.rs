//! Which completion indexes? Sets of indexes in the form in which a Job's status shows them.
//!
//! Source: `pkg/controller/job/indexed_job_utils.go`, Kubernetes 1.36.

use std::fmt;

use crate::seen::Pod;

/// The annotation and the label that carry a pod's index.
pub(crate) const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// A set of indexes as ordered, separate intervals, both ends included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(Vec<(i32, i32)>);

impl Indexes {
    /// Reads `1,3-5,7`; what cannot be read, and indexes from `completions` on, are left out.
    pub(crate) fn parse(text: &str, completions: i32) -> Self {
        let mut indexes = Self::default();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (Ok(first), Ok(last)) = (first.parse::<i32>(), last.parse::<i32>()) else { continue };
            if first >= completions {
                break;
            }
            indexes.push(first, last.min(completions - 1));
        }
        indexes
    }

    /// Indexes in any order.
    pub(crate) fn of(indexes: impl IntoIterator<Item = i32>) -> Self {
        let sorted: std::collections::BTreeSet<i32> = indexes.into_iter().collect();
        let mut all = Self::default();
        sorted.into_iter().for_each(|index| all.push(index, index));
        all
    }

    /// Appends an interval that begins no earlier than those there.
    fn push(&mut self, first: i32, last: i32) {
        match self.0.last_mut() {
            Some(end) if first <= end.1.saturating_add(1) => end.1 = end.1.max(last),
            _ => self.0.push((first, last)),
        }
    }

    /// The indexes of both.
    pub(crate) fn union(&self, other: &Self) -> Self {
        let mut both: Vec<_> = self.0.iter().chain(&other.0).copied().collect();
        both.sort_unstable();
        let mut union = Self::default();
        both.into_iter().for_each(|(first, last)| union.push(first, last));
        union
    }

    /// How many.
    pub(crate) fn total(&self) -> i32 {
        self.0.iter().map(|(first, last)| last - first + 1).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn has(&self, index: i32) -> bool {
        self.0.iter().any(|(first, last)| (*first..=*last).contains(&index))
    }

    /// How many are in both.
    pub(crate) fn overlap(&self, other: &Self) -> i32 {
        let common = |a: &(i32, i32), b: &(i32, i32)| (a.1.min(b.1) - a.0.max(b.0) + 1).max(0);
        self.0.iter().map(|a| other.0.iter().map(|b| common(a, b)).sum::<i32>()).sum()
    }

    /// The first `count` indexes below `completions` that are not in the set.
    pub(crate) fn first_missing(&self, count: usize, completions: i32) -> Vec<i32> {
        let mut missing = Vec::new();
        let mut candidate = 0;
        for (first, last) in self.0.iter().copied().chain([(completions, i32::MAX)]) {
            let gap = candidate..first.min(completions);
            missing.extend(gap.take(count - missing.len()));
            candidate = candidate.max(last.saturating_add(1));
        }
        missing
    }
}

impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (first, last)) in self.0.iter().enumerate() {
            let comma = if position > 0 { "," } else { "" };
            match last - first {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

/// A pod's completion index, if it has a valid one.
pub(crate) fn of_pod(pod: &Pod) -> Option<i32> {
    pod.meta.annotation(COMPLETION_INDEX)?.parse().ok().filter(|index| *index >= 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indexes_are_read_joined_and_written_as_in_a_status() {
        let read = |text: &str| Indexes::parse(text, 10).to_string();
        assert_eq!(read("1,2,3,5-6,8"), "1-3,5,6,8");
        assert_eq!(read("x,1,3-z,7-20,30"), "1,7-9");
        assert_eq!(read(""), "");
        let joined = Indexes::of([4, 0, 1]).union(&Indexes::parse("2,6-8", 10));
        assert_eq!((joined.to_string().as_str(), joined.total()), ("0-2,4,6-8", 7));
        assert_eq!((joined.has(3), joined.has(7)), (false, true));
        assert_eq!(joined.overlap(&Indexes::of([1, 2, 3, 4, 5, 6])), 4);
    }

    #[test]
    fn missing_indexes_come_in_order() {
        let some = Indexes::of([0, 1, 3, 6]);
        assert_eq!(some.first_missing(3, 10), [2, 4, 5]);
        assert_eq!(some.first_missing(10, 6), [2, 4, 5]);
        assert_eq!(some.first_missing(0, 6), [0; 0]);
        assert_eq!(Indexes::default().first_missing(2, 1), [0]);
    }
}
