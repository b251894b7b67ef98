//! The shortages of places that certificates name. When nodes gained room, each distinct one is
//! asked whether it still holds; how many gangs suffer from it costs nothing.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::place::{PlaceRequest, Shortage};
use crate::queue::certificate::ShortageIx;

/// The shortages, by number and by what was asked.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortages {
    by_request: BTreeMap<PlaceRequest, ShortageIx>,
    known: BTreeMap<ShortageIx, Shortage>,
    issued: ShortageIx,
    /// How far the gains of the nodes were looked at.
    seen: u64,
}

impl Shortages {
    /// The number of a request that was just refused: the same for the same request while it is
    /// named.
    pub(crate) fn of(&mut self, cluster: &mut Cluster, request: &PlaceRequest) -> ShortageIx {
        if let Some(known) = self.by_request.get(request) {
            return *known;
        }
        self.issued += 1;
        self.by_request.insert(request.clone(), self.issued);
        self.known.insert(self.issued, Shortage::new(cluster, request.clone()));
        self.issued
    }

    /// Nobody names it any more.
    pub(crate) fn forget(&mut self, shortage: ShortageIx) {
        if let Some(shortage) = self.known.remove(&shortage) {
            self.by_request.remove(shortage.request());
        }
    }

    /// Whether nodes gained room since [`Self::ended`] was last asked.
    pub(crate) fn are_behind(&self, cluster: &mut Cluster) -> bool {
        self.seen != cluster.gains_end()
    }

    /// Those that do not hold any more, after what nodes gained since the last call.
    pub(crate) fn ended(&mut self, cluster: &mut Cluster) -> Vec<ShortageIx> {
        let gains = cluster.gains_since(self.seen);
        self.seen = cluster.gains_end();
        if gains.is_empty() {
            return Vec::new();
        }
        let shortages = self.known.iter_mut();
        shortages.filter_map(|(ix, shortage)| shortage.ended(cluster, &gains).then_some(*ix)).collect()
    }
}
