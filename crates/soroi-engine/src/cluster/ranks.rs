//! Numbers that sort like keys: so that ties end with a name, and indexes compare integers.

use std::collections::BTreeMap;

/// A number that sorts like its key among all keys of one [`Ranks`]. 40 bits, see `topology`.
pub(crate) type Rank = u64;

/// The number of bits that a rank needs.
pub(crate) const RANK_BITS: u32 = 40;
const RANK_MAX: Rank = (1 << RANK_BITS) - 1;
/// Room between neighbours: 16 insertions at one spot before all ranks are handed out anew, and
/// still room for 2^24 keys.
const GAP: Rank = 1 << 16;

/// Keys and their ranks.
#[derive(Clone, Debug)]
pub(crate) struct Ranks<K> {
    ranks: BTreeMap<K, Rank>,
}

impl<K> Default for Ranks<K> {
    fn default() -> Self {
        Self { ranks: BTreeMap::new() }
    }
}

impl<K: Ord> Ranks<K> {
    pub(crate) fn get(&self, key: &K) -> Option<Rank> {
        self.ranks.get(key).copied()
    }

    pub(crate) fn remove(&mut self, key: &K) {
        self.ranks.remove(key);
    }

    /// The rank of a key, in between its neighbours'. `None`: there was no room between them, and
    /// *all* ranks are new now.
    pub(crate) fn insert(&mut self, key: K) -> Option<Rank> {
        if let Some(rank) = self.get(&key) {
            return Some(rank);
        }
        let below = self.ranks.range(..&key).next_back().map_or(0, |(_, rank)| *rank);
        let above = self.ranks.range(&key..).next().map_or(RANK_MAX.min(below + 2 * GAP), |(_, rank)| *rank);
        let rank = below + (above - below) / 2;
        self.ranks.insert(key, rank);
        if rank > below && rank < above {
            return Some(rank);
        }
        let gap = GAP.min(RANK_MAX / (self.ranks.len() as u64 + 1));
        let mut next = 0;
        for rank in self.ranks.values_mut() {
            next += gap;
            *rank = next;
        }
        None
    }
}
