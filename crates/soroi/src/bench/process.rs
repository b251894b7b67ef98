//! What does a process hold of the machine's memory? As Linux counts it.

use anyhow::Context as _;

/// In MiB.
pub(super) struct Memory {
    /// At most so far.
    pub(super) peak: f64,
    /// Now.
    pub(super) now: f64,
}

impl Memory {
    /// Of a process by its number, or of this one: `self`.
    ///
    /// # Errors
    /// If there is no such process, or this is no Linux.
    pub(super) fn of(process: &str) -> anyhow::Result<Self> {
        let path = format!("/proc/{process}/status");
        let status = std::fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
            number.map(|kib| kib / 1024.0).with_context(|| format!("{path} has no {name}"))
        };
        Ok(Self { peak: kib("VmHWM:")?, now: kib("VmRSS:")? })
    }
}
