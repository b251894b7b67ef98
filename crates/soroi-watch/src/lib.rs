//! What changed? A small, sequential list-and-watch loop over kube's raw requests.
//!
//! One call of [`watch`] follows one collection for ever: a consistent, paged list first
//! ([`Change::Reset`]), then every change after it in the server's order. It keeps no objects, only
//! the resource version that it has come to, so that what is remembered of an object is decided
//! by whoever consumes the stream. [`watch_map`] turns each object into something smaller before
//! the next one is decoded, which bounds the memory of a list of 100,000 pods.
//!
//! kube's own `watcher` and `reflector` are not used: they keep whole objects, iterate in hash
//! order and read the wall clock, so that a run could not be repeated from its seed.
//!
//! This crate knows how the API server tells of changes. It must never know what any object means.

mod backoff;
mod outage;
mod query;
mod watch;
mod wire;

pub use backoff::{Backoff, SplitMix64};
pub use outage::{Failing, Outage};
pub use query::Query;
pub use watch::{watch, watch_map, watch_mended};

/// What happened to the objects that a [`Query`] selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change<T> {
    /// These are all the objects now; whatever is not among them does not exist (or is reported as
    /// [`Change::Unreadable`] right after). The first change of every stream, and again whenever
    /// the server has forgotten the version that the stream had come to.
    Reset(Vec<T>),
    /// The object was created or changed, or began to match the selectors.
    Set(T),
    /// The object was deleted or stopped matching the selectors; its last state.
    Gone(T),
    /// An object is there (or, rarely, has just gone) that could not be decoded, and of which
    /// [`watch_mended`] made nothing either. The stream goes on with the others.
    Unreadable {
        /// Empty for cluster-scoped objects.
        namespace: String,
        /// Empty if not even the metadata could be read.
        name: String,
        /// What the decoder said; names the field where it can.
        error: String,
    },
}
