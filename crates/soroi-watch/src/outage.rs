//! What is said of something that fails again and again: once, then less and less often, and when it is
//! over. Knows times; never says anything itself.

use std::time::Duration;

use jiff::Timestamp;

/// The first summary comes so long after what was said first; each further one after twice as long.
const FIRST_SUMMARY: Duration = Duration::from_secs(10);
/// The longest time without one.
const LONGEST_SILENCE: Duration = Duration::from_secs(600);

/// Counts failures in a row.
#[derive(Clone, Debug)]
pub struct Outage {
    patience: Duration,
    /// Since when it fails, while it does.
    since: Option<Timestamp>,
    failures: u64,
    /// When something was said last, and how long nothing is said after that.
    said: Option<(Timestamp, Duration)>,
}

/// It is time to say how it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failing {
    /// Since the first failure.
    pub lasts: Duration,
    /// How many there were in a row.
    pub failures: u64,
}

impl Outage {
    /// Nothing failed yet. What is over within `patience` is not worth a word.
    pub const fn new(patience: Duration) -> Self {
        Self { patience, since: None, failures: 0, said: None }
    }

    /// It failed. What is to be said now, if anything.
    pub fn fails(&mut self, now: Timestamp) -> Option<Failing> {
        let since = *self.since.get_or_insert(now);
        self.failures = self.failures.saturating_add(1);
        let lasts = between(since, now);
        let (due, silence) = match self.said {
            None => (lasts >= self.patience, FIRST_SUMMARY),
            Some((at, silence)) => (between(at, now) >= silence, silence.saturating_mul(2)),
        };
        due.then(|| {
            self.said = Some((now, silence.min(LONGEST_SILENCE)));
            Failing { lasts, failures: self.failures }
        })
    }

    /// It works. For how long it did not, if that was said.
    pub fn works(&mut self, now: Timestamp) -> Option<Duration> {
        let (since, said) = (self.since.take(), self.said.take());
        self.failures = 0;
        since.filter(|_| said.is_some()).map(|since| between(since, now))
    }
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_once_then_less_and_less_often_and_when_it_is_over() {
        let mut outage = Outage::new(Duration::ZERO);
        let at = |half_seconds: i64| Timestamp::from_millisecond(half_seconds * 500).unwrap();
        assert_eq!(outage.works(at(0)), None);
        let told: Vec<(i64, u64)> =
            (0..14_400).filter_map(|half| Some((half / 2, outage.fails(at(half))?.failures))).collect();
        assert_eq!(
            told,
            [
                (0, 1),
                (10, 21),
                (30, 61),
                (70, 141),
                (150, 301),
                (310, 621),
                (630, 1_261),
                (1_230, 2_461),
                (1_830, 3_661),
                (2_430, 4_861),
                (3_030, 6_061),
                (3_630, 7_261),
                (4_230, 8_461),
                (4_830, 9_661),
                (5_430, 10_861),
                (6_030, 12_061),
                (6_630, 13_261),
            ]
        );
        assert_eq!(outage.works(at(14_400)), Some(Duration::from_secs(7_200)));
        assert_eq!(outage.works(at(14_401)), None);
    }

    #[test]
    fn what_is_over_soon_is_not_told() {
        let mut outage = Outage::new(Duration::from_secs(20));
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        assert_eq!((outage.fails(at(0)), outage.fails(at(19)), outage.works(at(19))), (None, None, None));
        assert_eq!(outage.fails(at(20)), None);
        assert!(outage.fails(at(40)).is_some_and(|told| told.failures == 2));
        assert_eq!(outage.works(at(41)), Some(Duration::from_secs(21)));
    }
}
