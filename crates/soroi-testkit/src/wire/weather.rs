//! How bad is a storm, and at what? Every seed has weather of its own.
//!
//! Storms that are all alike hide what only shows where one kind of trouble prevails: a crash after each
//! commit, lists that come late, watches that lag. Knows numbers; never a request.

use std::time::Duration;

use soroi_watch::SplitMix64;

/// What trouble comes how often.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Weather {
    /// One of the first four of so many draws is a fault.
    pub(super) faults_in: u64,
    /// One write in so many is the last of its process.
    pub(super) crash_in: u64,
    /// The same for writes at which something begins or ends: a plan, a binding, a release.
    pub(super) crash_at_turns_in: u64,
    /// A request or a reply is on its way for up to two to the power of less than so many milliseconds.
    delay_bits: u64,
    /// The longest that a watch lives.
    watch_millis_max: u64,
    /// A watch that is cut counts as expired once in so many times.
    expired_in: u64,
    /// How late a list may come beside that.
    list_millis_max: u64,
    /// How far a watch may lag behind.
    lag_millis_max: u64,
}

/// As scenarios are played from a seed: a little of everything.
pub(super) const MILD: Weather = Weather {
    faults_in: 24,
    crash_in: u64::MAX,
    crash_at_turns_in: u64::MAX,
    delay_bits: 0,
    watch_millis_max: 20_000,
    expired_in: 4,
    list_millis_max: 0,
    lag_millis_max: 0,
};
/// The longest that a request or a reply is on its way in mild weather; two of them in flight change order.
const MILD_DELAY_MILLIS_MAX: u64 = 25;

impl Weather {
    /// The weather of a storm.
    pub(super) fn of_storm(seed: u64) -> Self {
        let mut random = SplitMix64::new(seed ^ 0x77ea_7e12);
        let mut one = |of: [u64; 4]| of[usize::try_from(random.below(4)).unwrap_or(0)];
        Self {
            faults_in: one([12, 24, 24, 120]),
            crash_in: one([60, 60, 200, 2_000]),
            crash_at_turns_in: one([8, 16, 60, 2_000]),
            delay_bits: one([6, 9, 12, 12]),
            watch_millis_max: one([5_000, 20_000, 20_000, 200_000]),
            expired_in: one([1, 2, 4, 4]),
            list_millis_max: one([0, 0, 3_000, 9_000]),
            lag_millis_max: one([0, 0, 200, 2_000]),
        }
    }

    /// How long a request or a reply is on its way: mostly briefly, sometimes longer than other things take.
    pub(super) fn delay(&self, random: &mut SplitMix64) -> Duration {
        let most = match self.delay_bits {
            0 => MILD_DELAY_MILLIS_MAX,
            bits => 1 << random.below(bits),
        };
        Duration::from_millis(random.below(most))
    }

    /// How long a watch lives, and whether its version counts as expired then.
    pub(super) fn life(&self, random: &mut SplitMix64) -> (Duration, bool) {
        let life = Duration::from_millis(random.below(self.watch_millis_max));
        (life, random.below(self.expired_in) == 0)
    }

    /// How much later than others a list comes.
    pub(super) fn list_delay(&self, random: &mut SplitMix64) -> Duration {
        drawn(self.list_millis_max, random)
    }

    /// How far a watch lags behind for as long as it lives.
    pub(super) fn lag(&self, random: &mut SplitMix64) -> Duration {
        drawn(self.lag_millis_max, random)
    }
}

/// Nothing half of the time.
fn drawn(millis_max: u64, random: &mut SplitMix64) -> Duration {
    if millis_max == 0 || random.below(2) == 0 {
        return Duration::ZERO;
    }
    Duration::from_millis(random.below(millis_max))
}
