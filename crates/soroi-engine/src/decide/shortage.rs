//! Shortages of places: what a sleeping want found too little of. When nodes changed, each
//! distinct shortage is asked whether it still holds; how many gangs suffer from it costs nothing.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::place::{PlaceRequest, fitting, place};
use crate::queue::certificate::ShortageIx;

/// The shortages that certificates name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shortages {
    by_request: BTreeMap<PlaceRequest, ShortageIx>,
    requests: BTreeMap<ShortageIx, PlaceRequest>,
    issued: ShortageIx,
    /// How far the changes of the nodes were looked at.
    seen: u64,
}

impl Shortages {
    /// The number of this shortage: the same for the same request while it is named.
    pub(crate) fn of(&mut self, request: &PlaceRequest) -> ShortageIx {
        if let Some(known) = self.by_request.get(request) {
            return *known;
        }
        self.issued += 1;
        self.by_request.insert(request.clone(), self.issued);
        self.requests.insert(self.issued, request.clone());
        self.issued
    }

    /// Nobody names it any more.
    pub(crate) fn forget(&mut self, shortage: ShortageIx) {
        if let Some(request) = self.requests.remove(&shortage) {
            self.by_request.remove(&request);
        }
    }

    /// Those that do not hold any more, after what happened to nodes since the last call.
    pub(crate) fn ended(&mut self, cluster: &mut Cluster) -> Vec<ShortageIx> {
        if self.seen == cluster.changes_end() {
            return Vec::new();
        }
        let requests = self.requests.iter();
        let ended: Vec<_> =
            requests.filter(|(_, request)| fits(cluster, request)).map(|(ix, _)| *ix).collect();
        self.seen(cluster);
        ended
    }

    /// What happened to nodes until now helps nobody.
    pub(crate) fn seen(&mut self, cluster: &Cluster) {
        self.seen = cluster.changes_end();
    }
}

fn fits(cluster: &mut Cluster, request: &PlaceRequest) -> bool {
    match request.pod_sets.as_slice() {
        [alone] if request.min_members.is_none() && request.excluded.is_empty() => {
            fitting(cluster, alone) >= u64::from(alone.count)
        }
        _ => place(cluster, request).is_ok(),
    }
}
