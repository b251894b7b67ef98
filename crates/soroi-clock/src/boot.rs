//! How long has this machine been up, the time in which it was suspended included?
//!
//! The monotonic clock, by which timers and [`std::time::Instant`] go, stands while a machine is suspended
//! (Linux, `clock_gettime(2)`): whoever measured a lease by it would take it for valid on waking.

use std::time::Duration;

/// Time since a fixed moment in the past, which goes on whatever becomes of the machine.
#[cfg(target_os = "linux")]
pub(crate) fn uptime() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (u64::try_from(time.tv_sec), u32::try_from(time.tv_nsec));
    Duration::new(seconds.unwrap_or(0), nanos.unwrap_or(0))
}

/// The wall clock, where there is nothing better: that it is set is rarer than that a machine is suspended.
#[cfg(not(target_os = "linux"))]
pub(crate) fn uptime() -> Duration {
    std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default()
}
