//! What pods need, compiled once: equal pods share one.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::volumes::{Mounted, Volumes};
use crate::event::{ClaimKey, Node, Shape};
use crate::fit::{Ask, node_problem, reaches};
use crate::reason::NodeProblem;
use crate::resources::{Requests, ResourceNames};

/// Needs that nobody uses are swept when there are twice as many as after the last sweep, and at
/// least this many more: a sweep then costs a constant per new need.
const SWEEP_MIN: usize = 256;

/// The number of an interned shape (with what its flavor adds). Never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ShapeIx(u64);

/// What a pod needs: its ask, and its requests as numbers.
#[derive(Debug)]
pub(crate) struct Need {
    pub(crate) ix: ShapeIx,
    pub(crate) ask: Ask,
    pub(crate) requests: Requests,
    /// Its claims, as they were when it was made: when one changes, the need is made anew.
    pub(crate) mounted: Vec<Mounted>,
}

impl Need {
    /// Why this node takes no such pod, however empty it is; `None` if it may.
    pub(crate) fn node_problem(&self, node: &Node) -> Option<NodeProblem> {
        if let Some(problem) = self.mounted.iter().find_map(Mounted::problem) {
            return Some(problem);
        }
        let volumes = || self.mounted.iter().filter_map(|one| one.volume.as_ref().ok());
        node_problem(&self.ask, node)
            .or_else(|| volumes().any(|one| !reaches(one, node)).then_some(NodeProblem::VolumeAffinity))
            .or_else(|| volumes().any(|one| !one.is_in_zone(&node.labels)).then_some(NodeProblem::VolumeZone))
    }
}

/// The table of needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    by_ask: BTreeMap<Ask, Arc<Need>>,
    /// Who mounts a claim; and, until the next sweep, some who were forgotten for another one of theirs.
    by_claim: BTreeMap<ClaimKey, BTreeSet<Ask>>,
    issued: u64,
    swept_len: usize,
    /// The last shape that was asked for: gangs come in runs of equal pods.
    last: Option<(Arc<Shape>, Arc<Need>)>,
}

impl Needs {
    /// The need of a pod to which no flavor adds anything.
    pub(crate) fn of_shape(
        &mut self,
        shape: &Arc<Shape>,
        names: &mut ResourceNames,
        volumes: &Volumes,
    ) -> Arc<Need> {
        if let Some((last, need)) = &self.last
            && Arc::ptr_eq(last, shape)
        {
            return need.clone();
        }
        let need = self.of_ask(&Ask::plain(shape), names, volumes);
        self.last = Some((shape.clone(), need.clone()));
        need
    }

    pub(crate) fn of_ask(&mut self, ask: &Ask, names: &mut ResourceNames, volumes: &Volumes) -> Arc<Need> {
        if let Some(need) = self.by_ask.get(ask) {
            return need.clone();
        }
        if self.by_ask.len() >= 2 * self.swept_len + SWEEP_MIN {
            self.sweep();
        }
        self.issued += 1;
        let requests = Requests::of_pod(&ask.shape.requests, names);
        let mounted = volumes.mounted(&ask.shape.claims);
        let need = Arc::new(Need { ix: ShapeIx(self.issued), ask: ask.clone(), requests, mounted });
        self.by_ask.insert(ask.clone(), need.clone());
        for claim in &ask.shape.claims {
            self.by_claim.entry(claim.clone()).or_default().insert(ask.clone());
        }
        need
    }

    fn sweep(&mut self) {
        self.by_ask.retain(|_, need| Arc::strong_count(need) > 1);
        self.swept_len = self.by_ask.len();
        for asks in self.by_claim.values_mut() {
            asks.retain(|ask| self.by_ask.contains_key(ask));
        }
        self.by_claim.retain(|_, asks| !asks.is_empty());
    }

    /// What one of these claims means has changed: needs with it are made anew when they are asked for.
    /// Says whether there was one.
    pub(crate) fn forget(&mut self, claims: &[ClaimKey]) -> bool {
        let mut found = false;
        for ask in claims.iter().filter_map(|claim| self.by_claim.remove(claim)).flatten() {
            found |= self.by_ask.remove(&ask).is_some();
        }
        if found {
            self.last = None;
        }
        found
    }

    /// Says which needs are not what they would be if they were made now.
    pub(super) fn discrepancies(&self, volumes: &Volumes, found: &mut Vec<String>) {
        for (ask, need) in &self.by_ask {
            let now = volumes.mounted(&ask.shape.claims);
            if need.mounted != now {
                found.push(format!("claims of a need: {:?}, looked up {now:?}", need.mounted));
            }
        }
    }
}
