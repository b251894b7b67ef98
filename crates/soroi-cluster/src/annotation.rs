//! How does a story tell simulated kubelets what to do? By annotations on pods and nodes.

use std::time::Duration;

/// On a pod: how long its containers run, e.g. `30s`, `1h30m`; without it they run for ever.
pub const RUN_FOR: &str = "soroi.dev/run-for";

/// On a pod: the exit code of its containers when [`RUN_FOR`] is over; 0 without it.
pub const EXIT_CODE: &str = "soroi.dev/exit-code";

/// On a pod: how long its containers take to start, e.g. `5s`; without it
/// [`Options::start_latency`](crate::Options::start_latency).
pub const START_AFTER: &str = "soroi.dev/start-after";

/// On a pod: how long after its start it becomes Ready, or `never`; at once without it.
pub const READY_AFTER: &str = "soroi.dev/ready-after";

/// On a pod: how long its containers take to stop once it is deleted, or `never`; at once without
/// it. Grace periods do not shorten it: this is how a process that ignores signals is told of.
pub const STOP_AFTER: &str = "soroi.dev/stop-after";

/// On a node: how its kubelet is. `alive` (as without it); `unreachable`: it sends nothing and
/// hears nothing, its pods run on; `dead`: the same, and its containers have died;
/// `blinking/90s`: alive for so long, unreachable for so long, and so on.
pub const KUBELET: &str = "soroi.dev/kubelet";

/// A pod with a finalizer of this name (any prefix) keeps running after its deletion until the
/// finalizer is taken away: a slow or stuck exit, as the cases from the field tell it.
pub const SLOW_EXIT_FINALIZERS: [&str; 2] = ["/slow-exit", "/no-kubelet"];

/// How long something takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    For(Duration),
    Never,
}

/// Reads `never`, or a sum of whole numbers with the units `ms`, `s`, `m` and `h`.
pub(crate) fn span(text: &str) -> Option<Span> {
    if text == "never" {
        return Some(Span::Never);
    }
    let mut total = Duration::ZERO;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        let unit_end = rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |at| digits + at);
        let millis = match &rest[digits..unit_end] {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            "h" => 3_600_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(millis)?))?;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(Span::For(total))
}

/// How the kubelet of a node is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kubelet {
    /// It does its work.
    #[default]
    Alive,
    /// Cut off: it sends nothing and hears nothing, and its pods run on.
    Unreachable,
    /// Down: it sends nothing, and its containers have died.
    Dead,
    /// Alive for so long, then unreachable for so long, and so on.
    Blinking(Duration),
}

impl Kubelet {
    /// Reads the value of [`KUBELET`].
    pub(crate) fn parse(text: &str) -> Option<Self> {
        match text {
            "alive" => Some(Self::Alive),
            "unreachable" => Some(Self::Unreachable),
            "dead" => Some(Self::Dead),
            _ => match span(text.strip_prefix("blinking/")?)? {
                Span::For(period) if !period.is_zero() => Some(Self::Blinking(period)),
                _ => None,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_as_written() {
        for (text, millis) in
            [("30s", 30_000), ("1h30m", 5_400_000), ("250ms", 250), ("2m5s", 125_000), ("0s", 0)]
        {
            assert_eq!(span(text), Some(Span::For(Duration::from_millis(millis))), "{text}");
        }
        assert_eq!(span("never"), Some(Span::Never));
        for text in ["", "30", "s", "-1s", "1.5s", "1d", "99999999999999999999s", "18446744073709551615h"] {
            assert_eq!(span(text), None, "{text}");
        }
    }

    #[test]
    fn kubelets_are_as_told() {
        assert_eq!(Kubelet::parse("dead"), Some(Kubelet::Dead));
        assert_eq!(Kubelet::parse("blinking/90s"), Some(Kubelet::Blinking(Duration::from_secs(90))));
        for text in ["", "blinking", "blinking/never", "blinking/0s", "Alive"] {
            assert_eq!(Kubelet::parse(text), None, "{text}");
        }
    }
}
