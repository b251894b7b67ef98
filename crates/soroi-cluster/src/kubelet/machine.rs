//! Is the machine up? One simulated node: how its kubelet is, and what is taken of it.

use std::time::Duration;

use jiff::Timestamp;

use crate::annotation::{self, Kubelet};
use crate::due::after;
use crate::need::Amounts;
use crate::options::Options;
use crate::seen::Node;

/// A simulated node.
#[derive(Debug)]
pub(crate) struct Machine {
    pub(crate) uid: String,
    /// What the pods occupy that it has taken in.
    pub(crate) used: Amounts,
    /// Its lease exists.
    pub(crate) leased: bool,
    /// Its kubelet works now.
    pub(crate) up: bool,
    kubelet: Kubelet,
    /// Since when its kubelet is so.
    since: Timestamp,
    /// Its containers have died since it was last up.
    rebooted: bool,
}

/// How a machine came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// It had only been cut off.
    Reconnected,
    /// Its containers have died.
    Rebooted,
}

/// What came of time passing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) back: Option<Back>,
}

impl Machine {
    pub(crate) fn new(node: &Node, options: &Options, now: Timestamp) -> Self {
        let kubelet = wanted(node, options);
        Self {
            uid: node.meta.uid.clone(),
            used: Amounts::new(),
            leased: false,
            up: works(kubelet, now, now),
            kubelet,
            since: now,
            rebooted: false,
        }
    }

    /// The node has changed: perhaps its kubelet is told to be otherwise.
    pub(crate) fn told(&mut self, node: &Node, options: &Options, now: Timestamp) {
        let kubelet = wanted(node, options);
        if kubelet != self.kubelet {
            self.kubelet = kubelet;
            self.since = now;
        }
    }

    /// Brings it to where it is at `now`.
    pub(crate) fn pass(&mut self, now: Timestamp) -> Passed {
        let was_up = self.up;
        self.up = works(self.kubelet, self.since, now);
        self.rebooted |= self.kubelet == Kubelet::Dead;
        if was_up || !self.up {
            return Passed { back: None };
        }
        let back = if std::mem::take(&mut self.rebooted) { Back::Rebooted } else { Back::Reconnected };
        Passed { back: Some(back) }
    }

    /// When it changes by itself.
    pub(crate) fn next_flip(&self, now: Timestamp) -> Option<Timestamp> {
        let Kubelet::Blinking(period) = self.kubelet else { return None };
        let passed = periods(self.since, now, period).saturating_add(1);
        Some(after(self.since, period.saturating_mul(u32::try_from(passed).unwrap_or(u32::MAX))))
    }
}

fn wanted(node: &Node, options: &Options) -> Kubelet {
    let told = node.meta.annotation(annotation::KUBELET).and_then(Kubelet::parse);
    told.or_else(|| options.kubelets.get(node.name()).copied()).unwrap_or_default()
}

fn works(kubelet: Kubelet, since: Timestamp, now: Timestamp) -> bool {
    match kubelet {
        Kubelet::Alive => true,
        Kubelet::Unreachable | Kubelet::Dead => false,
        Kubelet::Blinking(period) => periods(since, now, period).is_multiple_of(2),
    }
}

fn periods(since: Timestamp, now: Timestamp, period: Duration) -> u128 {
    now.duration_since(since).unsigned_abs().as_nanos() / period.as_nanos().max(1)
}
