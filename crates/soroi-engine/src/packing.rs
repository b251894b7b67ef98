//! Which of the places that do is best? What a node has left, seen by the pods that come.
//!
//! Knows amounts, devices and a mix of pods. Must never know names, topologies or gangs: it judges
//! one node at a time.
//!
//! *Fragments* are free devices that a pod could not use where they are: because too little else is
//! left on the node, or because what is left of the device itself is too little. Weighed by how
//! often each kind of pod comes, they say how much of a node's room is worth nothing. Fragmentation
//! gradient descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023) places each pod where
//! that grows least.
//!
//! That looks one pod ahead: a node on which one more pod fits counts as good, though processors
//! may run out long before its devices do. So the pods that come are also looked at as one stream:
//! devices beyond what the stream could use of a node, given all else that is left there, are
//! fragments too.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use smallvec::SmallVec;

use crate::event::Amount;

/// A whole device.
pub const DEVICE: u32 = 1_000;

/// How places are chosen among those that do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Packing {
    /// The fewest domains, then the one with the least to spare.
    #[default]
    BestFit,
    /// Where the cluster's own mix of pods loses least of what it could still use.
    Fragmentation,
    /// Where most is left: the opposite of the others.
    Spread,
}

/// What a pod needs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Needs {
    /// Amounts that are no devices, in the order of [`Room::plain`].
    pub plain: SmallVec<[Amount; 3]>,
    /// How many devices.
    pub devices: u32,
    /// Thousandths of each; all of it where there are several.
    pub milli: u32,
    /// The kinds of devices that do, one bit each; 0: all.
    pub kinds: u64,
}

/// What a node has left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Amounts that are no devices.
    pub plain: SmallVec<[Amount; 3]>,
    /// Thousandths of each device.
    pub devices: SmallVec<[u32; 8]>,
    /// The bit of its kind of device; 0: none.
    pub kind: u64,
}

/// How much more than a fragment for one kind of pod one for the stream of all of them weighs. On
/// the traces that `soroi bench packing` replays, 1 to 4 are equally good, and all better than 0.
const STREAM_WEIGHT: u128 = 2;

/// The pods that come: their kinds, and how often each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mix {
    kinds: Vec<(Needs, u64)>,
    /// Of those that need devices: how many, and what they need in all.
    weight: u128,
    devices: u128,
    plain: SmallVec<[u128; 3]>,
}

impl Mix {
    /// Kinds of pods, and how often each comes, in any unit.
    pub fn new(kinds: impl IntoIterator<Item = (Needs, u64)>) -> Self {
        let mut mix = Self::default();
        for (needs, weight) in kinds.into_iter().filter(|(needs, _)| needs.devices > 0) {
            let times = u128::from(weight);
            mix.weight += times;
            mix.devices += times * u128::from(needs.devices) * u128::from(needs.milli);
            mix.plain.resize(needs.plain.len().max(mix.plain.len()), 0);
            for (sum, amount) in mix.plain.iter_mut().zip(&needs.plain) {
                *sum += times * u128::from(amount.max(&0).unsigned_abs());
            }
            mix.kinds.push((needs, weight));
        }
        mix
    }
}

impl Room {
    /// Whether such a pod fits.
    pub fn takes(&self, needs: &Needs) -> bool {
        let of_kind = needs.devices == 0 || needs.kinds == 0 || needs.kinds & self.kind != 0;
        let suitable = || self.devices.iter().filter(|free| **free >= needs.milli).count();
        of_kind
            && needs.plain.iter().zip(&self.plain).all(|(need, free)| need <= free)
            && (needs.devices == 0 || suitable() >= needs.devices as usize)
    }

    /// Thousandths of free devices that are of no use to such a pod here.
    fn unusable(&self, needs: &Needs) -> u64 {
        match self.takes(needs) {
            true => {
                self.devices.iter().filter(|free| **free < needs.milli).map(|free| u64::from(*free)).sum()
            }
            false => self.free(),
        }
    }

    /// Thousandths of free devices that are left when the stream of pods has used up something else.
    fn beyond(&self, mix: &Mix) -> u128 {
        let free = u128::from(self.free());
        let needed = self.plain.iter().zip(&mix.plain).filter(|(_, needed)| **needed > 0);
        let usable =
            needed.map(|(left, needed)| u128::from(left.max(&0).unsigned_abs()) * mix.devices / needed);
        free.saturating_sub(usable.min().unwrap_or(free))
    }

    /// The weighed sum of what pods cannot use, each kind for itself and all of them one after the
    /// other.
    pub fn fragments(&self, mix: &Mix) -> u128 {
        if self.devices.is_empty() {
            return 0;
        }
        let lost = |(needs, weight): &(Needs, u64)| u128::from(self.unusable(needs)) * u128::from(*weight);
        mix.kinds.iter().map(lost).sum::<u128>() + STREAM_WEIGHT * mix.weight * self.beyond(mix)
    }

    /// The ways to take the devices for a pod that fits: one for each amount that a device may have
    /// left, where the pod needs a part of one.
    fn ways(&self, needs: &Needs) -> SmallVec<[SmallVec<[usize; 8]>; 2]> {
        let suitable = (0..self.devices.len()).filter(|at| self.devices[*at] >= needs.milli);
        if needs.devices != 1 {
            return SmallVec::from_iter([suitable.take(needs.devices as usize).collect()]);
        }
        let mut ways: SmallVec<[SmallVec<[usize; 8]>; 2]> = SmallVec::new();
        for at in suitable {
            if !ways.iter().any(|way| self.devices[way[0]] == self.devices[at]) {
                ways.push(SmallVec::from_iter([at]));
            }
        }
        ways
    }

    /// What is left when the pod has these devices.
    pub fn without(&self, needs: &Needs, devices: &[usize]) -> Self {
        let mut left = self.clone();
        for (free, need) in left.plain.iter_mut().zip(&needs.plain) {
            *free = free.saturating_sub(*need);
        }
        for device in devices {
            left.devices[*device] = left.devices[*device].saturating_sub(needs.milli);
        }
        left
    }

    /// Thousandths of devices that are free.
    fn free(&self) -> u64 {
        self.devices.iter().map(|free| u64::from(*free)).sum()
    }
}

/// How good a place is: smaller is better.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Score(i128, u64, Reverse<Amount>);

impl Score {
    /// What it costs to put the pod there, in what its packing counts.
    pub fn cost(&self) -> i128 {
        self.0
    }
}

/// Where on a node the pod would go, and how good that is; `None`: it does not fit.
pub fn judge(
    packing: Packing,
    room: &Room,
    needs: &Needs,
    mix: &Mix,
) -> Option<(Score, SmallVec<[usize; 8]>)> {
    if !room.takes(needs) {
        return None;
    }
    let plain = || room.plain.first().copied().unwrap_or(0);
    let of = |way: SmallVec<[usize; 8]>| {
        let first = way.first().map_or(0, |device| u64::from(room.devices[*device]));
        let score = match packing {
            Packing::Fragmentation => {
                let (before, after) = (room.fragments(mix), room.without(needs, &way).fragments(mix));
                // Of equal ones the fuller device, on the fuller node.
                let grown =
                    i128::try_from(after).unwrap_or(i128::MAX) - i128::try_from(before).unwrap_or(i128::MAX);
                Score(grown, first, Reverse(-plain()))
            }
            Packing::BestFit => Score(i128::from(room.free()), first, Reverse(-plain())),
            Packing::Spread => Score(-i128::from(room.free()), u64::MAX - first, Reverse(plain())),
        };
        (score, way)
    };
    room.ways(needs).into_iter().map(of).min_by(|(a, _), (b, _)| a.cmp(b))
}

/// Nodes that pods come to one by one, each kind of which is judged anew only where something
/// changed.
#[derive(Clone, Debug, Default)]
pub struct Floor {
    packing: Packing,
    mix: Mix,
    rooms: Vec<Room>,
    versions: Vec<u64>,
    judged: BTreeMap<Needs, Vec<Judged>>,
}

/// What was found out about a node, at this version of it.
#[derive(Clone, Debug, Default)]
struct Judged {
    version: u64,
    found: Option<(Score, SmallVec<[usize; 8]>)>,
}

impl Floor {
    /// Nodes as they are, and the pods to be expected.
    pub fn new(packing: Packing, rooms: Vec<Room>, mix: Mix) -> Self {
        let versions = vec![1; rooms.len()];
        Self { packing, mix, rooms, versions, judged: BTreeMap::new() }
    }

    /// Places one pod, or says that no node takes it. The number of the node; the first of equals.
    pub fn place(&mut self, needs: &Needs) -> Option<usize> {
        let nodes = self.rooms.len();
        if !self.judged.contains_key(needs) {
            self.judged.insert(needs.clone(), vec![Judged::default(); nodes]);
        }
        let judged = self.judged.get_mut(needs)?;
        let mut best: Option<usize> = None;
        for at in 0..nodes {
            if judged[at].version != self.versions[at] {
                let found = judge(self.packing, &self.rooms[at], needs, &self.mix);
                judged[at] = Judged { version: self.versions[at], found };
            }
            let Some((score, _)) = &judged[at].found else { continue };
            let beaten =
                best.and_then(|best| judged[best].found.as_ref()).is_some_and(|(other, _)| other <= score);
            if !beaten {
                best = Some(at);
            }
        }
        let at = best?;
        let (_, devices) = judged[at].found.clone()?;
        self.rooms[at] = self.rooms[at].without(needs, &devices);
        self.versions[at] += 1;
        Some(at)
    }
}

#[cfg(test)]
mod tests;
