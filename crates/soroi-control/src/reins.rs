//! What steers a run from outside, and who watches it.
//!
//! Knows switches. Must never know who turns them.

use std::sync::Arc;

use tokio::sync::watch;

use crate::observe::{Nobody, Observer};

/// The switches of a run.
#[derive(Clone)]
pub struct Reins {
    /// Whether pods of a release are known to get our scheduler. While they are not, no gang is
    /// released whose pods Soroi would have to bind, and it says so.
    pub admission: watch::Receiver<bool>,
    /// True: decide nothing any more, finish what is under way, and end. What takes longer is
    /// finished by the next leader, from its plan.
    pub stop: watch::Receiver<bool>,
    /// Who is told what happens.
    pub observer: Arc<dyn Observer>,
}

impl Default for Reins {
    /// Admission works, nobody stops it, nobody watches.
    fn default() -> Self {
        Self { admission: watch::channel(true).1, stop: watch::channel(false).1, observer: Arc::new(Nobody) }
    }
}

impl Reins {
    pub(crate) fn admission_works(&self) -> bool {
        *self.admission.borrow()
    }

    pub(crate) fn stops(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits until a switch is turned. Never ends when nobody is left who could.
    pub(crate) async fn changed(&mut self) {
        tokio::select! {
            biased;
            Ok(()) = self.stop.changed() => {}
            Ok(()) = self.admission.changed() => {}
            else => std::future::pending().await,
        }
    }
}
