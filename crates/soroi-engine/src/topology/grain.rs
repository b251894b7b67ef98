//! Pods that belong into domains in portions only: slices.
//!
//! A domain of a level with slices takes a multiple of the slice's size, or nothing. Room that is
//! rounded down so from the nodes upwards is exact: slices of one layer consist of whole slices of
//! the next, so whatever the domains below take together is a multiple of theirs.

use super::Tree;
use crate::event::Slice;

/// Level and portion, from coarse to fine. Without entries: every number of pods may go anywhere.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Grain(Vec<(usize, u32)>);

impl Grain {
    /// Any number of pods anywhere.
    pub(crate) const FINE: Self = Self(Vec::new());

    /// The slices as levels of the tree. `None`: the tree has no such level, the layers do not
    /// become finer, or their sizes do not divide each other.
    pub(crate) fn of(slices: &[Slice], tree: &Tree) -> Option<Self> {
        let layer = |slice: &Slice| Some((tree.level(&slice.level)?, slice.size));
        let layers: Vec<(usize, u32)> = slices.iter().map(layer).collect::<Option<_>>()?;
        let nested = |pair: &[(usize, u32)]| pair[0].0 < pair[1].0 && pair[0].1.is_multiple_of(pair[1].1);
        (layers.iter().all(|(_, size)| *size > 0) && layers.windows(2).all(nested)).then_some(Self(layers))
    }

    /// Layers of a grain, by themselves.
    pub(crate) fn nested(layers: &[(usize, u32)]) -> Self {
        Self(layers.to_vec())
    }

    /// Pods go into a domain of this level in multiples of this.
    pub(crate) fn at(&self, level: usize) -> u32 {
        self.0.iter().find(|(of, _)| *of == level).map_or(1, |(_, size)| *size)
    }

    /// All pods together are a multiple of this.
    pub(crate) fn whole(&self) -> u32 {
        self.0.first().map_or(1, |(_, size)| *size)
    }

    /// The coarsest level with slices.
    pub(crate) fn first_level(&self) -> Option<usize> {
        self.0.first().map(|(level, _)| *level)
    }

    pub(crate) fn is_fine(&self) -> bool {
        self.0.iter().all(|(_, size)| *size == 1)
    }

    /// Level and portion of each layer, from coarse to fine.
    pub(crate) fn layers(&self) -> &[(usize, u32)] {
        &self.0
    }

    /// So many pods rounded down to what a domain of this level takes.
    pub(crate) fn round(&self, level: usize, pods: u64) -> u64 {
        let portion = u64::from(self.at(level));
        pods - pods % portion
    }
}
