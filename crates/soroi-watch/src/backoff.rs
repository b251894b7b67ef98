//! How long to wait before the next try: growing, bounded, spread out, and repeatable from a seed.

use std::time::Duration;

/// A small pseudo-random sequence (Steele, Lea, Flood: "Fast splittable pseudorandom number
/// generators", 2014). Written out here because it must never change with a crate's release:
/// recorded seeds would stop reproducing their runs.
#[derive(Clone, Debug)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The sequence of this seed. Any seed is good, also 0.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The next number, uniform over all of `u64`.
    pub const fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// The next number in `0..bound` (0 when `bound` is 0).
    pub const fn below(&mut self, bound: u64) -> u64 {
        // The high half of the 128-bit product: uniform but for a bias below bound / 2^64.
        ((self.next_u64() as u128 * bound as u128) >> 64) as u64
    }

    /// A sequence of its own, for a part that draws at its own rate.
    pub const fn split(&mut self) -> Self {
        Self::new(self.next_u64())
    }
}

/// Waiting times that double from `first` to `longest`, each shortened by a random part of up to
/// half, so that many clients which failed together do not come back together.
#[derive(Clone, Debug)]
pub struct Backoff {
    first: Duration,
    longest: Duration,
    next: Duration,
    random: SplitMix64,
}

impl Backoff {
    /// Starts at `first` (at least 1 ms, so that it never is a busy loop) and grows to `longest`.
    pub fn new(first: Duration, longest: Duration, seed: u64) -> Self {
        let first = first.max(Duration::from_millis(1));
        let longest = longest.max(first);
        Self { first, longest, next: first, random: SplitMix64::new(seed) }
    }

    /// How long to wait now; the following answer is about twice as long.
    pub fn next_wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.longest);
        let nanos = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
        Duration::from_nanos(nanos - self.random.below(nanos / 2 + 1))
    }

    /// Something succeeded: the next wait is short again.
    pub fn reset(&mut self) {
        self.next = self.first;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_gives_the_published_numbers() {
        let mut random = SplitMix64::new(1234567);
        let numbers: Vec<u64> = (0..3).map(|_| random.next_u64()).collect();
        assert_eq!(numbers, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
        assert_eq!(random.below(0), 0);
        assert!((0..100).all(|_| random.below(7) < 7));
    }

    #[test]
    fn waits_double_up_to_the_longest_and_differ_by_seed() {
        let waits = |seed| {
            let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(1), seed);
            (0..6).map(|_| backoff.next_wait().as_millis()).collect::<Vec<_>>()
        };
        for (wait, whole) in waits(1).into_iter().zip([100, 200, 400, 800, 1000, 1000]) {
            assert!(wait <= whole && wait >= whole / 2, "{wait} of {whole}");
        }
        assert_eq!(waits(1), waits(1));
        assert_ne!(waits(1), waits(2));
    }

    #[test]
    fn success_makes_the_next_wait_short_again() {
        let mut backoff = Backoff::new(Duration::ZERO, Duration::from_secs(1), 3);
        for _ in 0..20 {
            assert!(backoff.next_wait() > Duration::ZERO);
        }
        backoff.reset();
        assert!(backoff.next_wait() <= Duration::from_millis(1));
    }
}
