//! What pods need, compiled once: equal pods share one.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::event::Shape;
use crate::fit::Ask;
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
}

/// The table of needs.
#[derive(Clone, Debug, Default)]
pub(crate) struct Needs {
    by_ask: BTreeMap<Ask, Arc<Need>>,
    issued: u64,
    swept_len: usize,
    /// The last shape that was asked for: gangs come in runs of equal pods.
    last: Option<(Arc<Shape>, Arc<Need>)>,
}

impl Needs {
    /// The need of a pod to which no flavor adds anything.
    pub(crate) fn of_shape(&mut self, shape: &Arc<Shape>, names: &mut ResourceNames) -> Arc<Need> {
        if let Some((last, need)) = &self.last
            && Arc::ptr_eq(last, shape)
        {
            return need.clone();
        }
        let need = self.of_ask(&Ask::plain(shape), names);
        self.last = Some((shape.clone(), need.clone()));
        need
    }

    pub(crate) fn of_ask(&mut self, ask: &Ask, names: &mut ResourceNames) -> Arc<Need> {
        if let Some(need) = self.by_ask.get(ask) {
            return need.clone();
        }
        if self.by_ask.len() >= 2 * self.swept_len + SWEEP_MIN {
            self.by_ask.retain(|_, need| Arc::strong_count(need) > 1);
            self.swept_len = self.by_ask.len();
        }
        self.issued += 1;
        let requests = Requests::of_pod(&ask.shape.requests, names);
        let need = Arc::new(Need { ix: ShapeIx(self.issued), ask: ask.clone(), requests });
        self.by_ask.insert(ask.clone(), need.clone());
        need
    }
}
