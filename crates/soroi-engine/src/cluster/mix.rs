//! What the cluster is used for: the kinds of pods that are there, and how many of each.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Cluster, Need, ShapeIx};

/// Kinds that are told of: what is rarer than so many others says little about what will come.
const KINDS_TOLD: usize = 32;

/// Occupants by need.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally(BTreeMap<ShapeIx, (Arc<Need>, u32)>);

impl Tally {
    pub(super) fn come(&mut self, need: &Arc<Need>) {
        self.0.entry(need.ix).or_insert_with(|| (need.clone(), 0)).1 += 1;
    }

    pub(super) fn go(&mut self, need: &Need) {
        if let Some((_, count)) = self.0.get_mut(&need.ix) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&need.ix);
            }
        }
    }

    /// Says whether these occupants add up to something else.
    pub(super) fn discrepancies<'a>(
        &self,
        needs: impl Iterator<Item = &'a Arc<Need>>,
        found: &mut Vec<String>,
    ) {
        let mut fresh = Self::default();
        needs.for_each(|need| fresh.come(need));
        let counts = |tally: &Self| tally.0.iter().map(|(ix, (_, count))| (*ix, *count)).collect::<Vec<_>>();
        if counts(&fresh) != counts(self) {
            found.push("kinds of pods are counted wrongly".to_owned());
        }
    }
}

impl Cluster {
    /// The kinds of pods that are there and how many of each, the most frequent first.
    pub(crate) fn mix(&self) -> Vec<(&Arc<Need>, u32)> {
        let mut kinds: Vec<(&Arc<Need>, u32)> =
            self.tally.0.values().map(|(need, count)| (need, *count)).collect();
        kinds.sort_by(|(a, more), (b, count)| count.cmp(more).then_with(|| a.ask.cmp(&b.ask)));
        kinds.truncate(KINDS_TOLD);
        kinds
    }
}
